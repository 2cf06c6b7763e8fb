"""A report as JUnit's XML, as Jenkins and GitLab read it: a testcase a case and metric, grouped by benchmark.

What fails the check is a failure (regressed) or an error (fails on head); what is undecided, skipped or fails on both sides is
skipped. The first testcase is the verdict: there is an error or a failure exactly where the exit code is not 0.
"""

from __future__ import annotations

import math
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from regress.errors import Exit
from regress.model import Changed, Comparison, Measurement, Report, Verdict
from regress.report import changes, summary
from regress.report.explained import because
from regress.report.failures import failure_lines, failures_of
from regress.report.rows import in_words, metric_words, row
from regress.report.xml import document, inert
from regress.text.style import Style

_MESSAGE = 1_000
_DETAILS = 2_000
"""Characters of a message, and of what a failure printed, of which the end is kept: the exception stands there."""
_ALL_DETAILS = 5_000_000
"""GitLab reads files of up to 30 MB, and its older versions refuse documents of many elements: what passed is one element."""
_NARROW = Style(width=80)

Outcome = Literal["", "failure", "error", "skipped"]
_SERIOUS = ("error", "failure", "skipped", "")


@dataclass(frozen=True)
class TestCase:
    """One testcase; `kind` is a word for its outcome. If it passed, only a message and its cause are written."""

    suite: str
    name: str
    outcome: Outcome
    kind: str
    message: str
    details: tuple[str, ...] = ()
    because: str = ""


def render(report: Report, style: Style) -> str:
    """The document, in UTF-8. The style changes nothing."""
    tests = [*_comparisons(report), *_drift(report), *_measurements(report), *_changes(report), *_others(report)]
    tests.insert(0, _verdict(report, tests))
    root = ElementTree.Element("testsuites", name=tests[0].suite)
    _count(root, tests, report)
    suites: dict[str, list[TestCase]] = {}
    for test in tests:
        suites.setdefault(test.suite, []).append(test)
    details = _details(tests)
    for name, cases in suites.items():
        suite = ElementTree.SubElement(root, "testsuite", name=inert(name))
        _count(suite, cases, report if name == tests[0].suite else None)
        suite.set("skipped", str(sum(case.outcome == "skipped" for case in cases)))
        if name == tests[0].suite:
            _properties(suite, report)
        for case in cases:
            _testcase(suite, case, details[id(case)])
    return document(root)


# -- testcases -----------------------------------------------------------------------------------------------------------


def _verdict(report: Report, others: Sequence[TestCase]) -> TestCase:
    """The testcase of the whole report. It fails if no other one shows that the exit code is not 0."""
    told = any(other.outcome in ("failure", "error") for other in others)
    outcome: Outcome = "error" if report.exit_code and not told else ""
    code = f"exit code {report.exit_code}"
    message = "   ".join(summary.verdict(report, Style())) or code
    error = (("why", report.error.why), ("fix", report.error.fix)) if report.error else ()
    said = [*error, *(("warning", text) for text in report.warnings)]
    details = tuple(f"{word}: {text}" for word, text in said if text)
    return TestCase(f"regress {report.command}", "verdict", outcome, report.state or code, message, details)


def _comparisons(report: Report) -> Iterator[TestCase]:
    for comparison in report.comparisons:
        verdict = comparison.verdict
        failures = failures_of(comparison)
        values = in_words(row(comparison, _NARROW).cells)
        told = (failure.message for _, failure in failures) if verdict.traits.listed else ()
        message = "" if verdict is Verdict.UNCHANGED else "; ".join(told) or values
        details = (*failure_lines(failures, Style(verbose=True)), f"again: {summary.again(report, comparison.case)}")
        outcome = _outcome(comparison, report.strict)
        yield TestCase(
            comparison.case.name,
            _name(comparison),
            outcome,
            str(verdict),
            message,
            details,
            because(report, comparison),
        )


def _drift(report: Report) -> Iterator[TestCase]:
    for comparison in report.drift:
        verdict, name = comparison.verdict, f"{_name(comparison)} since {report.drift_since}"
        message = "" if verdict is Verdict.UNCHANGED else in_words(row(comparison, _NARROW).cells)
        yield TestCase(comparison.case.name, name, _outcome(comparison, report.strict), str(verdict), message)


def _outcome(comparison: Comparison, strict: bool) -> Outcome:
    code = comparison.exit_code(strict)
    if code in (Exit.REGRESSED, Exit.FAILED):
        return "failure" if code == Exit.REGRESSED else "error"
    return "skipped" if comparison.verdict.traits.skips else ""


def _measurements(report: Report) -> Iterator[TestCase]:
    for measurement in report.measurements:
        failure = measurement.failure
        if failure is None:
            yield TestCase(measurement.case.name, _name(measurement), "", "measured", "")
        else:
            skipped = failure.kind == "skipped" or not measurement.primary
            again = f"again: {summary.again(report, measurement.case)}"
            details = (*failure_lines([("", failure)], Style(verbose=True)), again)
            outcome: Outcome = "skipped" if skipped else "error"
            yield TestCase(measurement.case.name, _name(measurement), outcome, failure.kind, failure.message, details)


def _changes(report: Report) -> Iterator[TestCase]:
    """Regressions and cases without numbers, which fail the sweep in which they are new."""
    for change in report.changes:
        name = f"{_name(change)} since {change.point.first[:8]} on {changes.place(change)}"
        outcome: Outcome = "failure" if change.new and change.point.is_open else ""
        kind = change.point.state if change.point.state == "relapsed" else str(change.point.moved)
        yield TestCase(change.case.name, name, outcome, kind, in_words(changes.row(change).cells))
    for broken in report.breakages:
        name = f"{broken.case} since {broken.first.short} on {changes.place(broken)}"
        words, details = (
            in_words(changes.broken_row(broken).cells),
            failure_lines([("", broken.failure)], Style(verbose=True)),
        )
        outcome = "error" if broken.new else ""
        yield TestCase(broken.case.name, name, outcome, broken.failure.kind, words, tuple(details))


def _others(report: Report) -> Iterator[TestCase]:
    for problem in report.problems:
        outcome: Outcome = "error" if problem.fatal and report.exit_code else "skipped"
        details = tuple(problem.detail.splitlines())
        yield TestCase("suite problems", problem.where, outcome, "suite", problem.message, details)
    for built in report.builds:
        name = " ".join(filter(None, ("build", built.side.label, built.side.environment)))
        outcome = "error" if built.state == "failed" else ""
        yield TestCase("builds", name, outcome, built.state, built.reason, (f"fix: {built.fix}", f"log: {built.log}"))
    for check in report.checks:
        outcome = "error" if check.state == "fail" and report.exit_code else ""
        fix = f" (fix: {check.fix})" if check.fix else ""
        yield TestCase("checks", check.name, outcome, check.state, f"{check.found}{fix}")


def _name(subject: Comparison | Measurement | Changed) -> str:
    """Case and metric: GitLab merges testcases with the same name."""
    return f"{subject.case} {metric_words(subject.metric.name)}"


# -- XML -----------------------------------------------------------------------------------------------------------------


def _details(tests: Sequence[TestCase]) -> dict[int, str]:
    """The text below each test, by its id, as far as there is room; failures come first."""
    room, details = _ALL_DETAILS, {}
    for test in sorted(tests, key=lambda case: _SERIOUS.index(case.outcome)):
        text = "\n".join(inert(line).rstrip() for line in test.details)
        text = text if len(text) <= _DETAILS else f"…{text[-_DETAILS:]}"
        text = "\n".join(filter(None, (inert(_cut(test.because)), text)))
        written = len(text) if test.outcome else 0
        details[id(test)] = text if written <= room else "left out: the document would be too long"
        room -= written if written <= room else 0
    return details


def _testcase(suite: ElementTree.Element, test: TestCase, details: str) -> None:
    case = ElementTree.SubElement(suite, "testcase", classname=inert(test.suite), name=inert(test.name))
    if test.outcome:
        element = ElementTree.SubElement(case, test.outcome, type=inert(test.kind), message=inert(_cut(test.message)))
        element.text = details
    elif test.message:
        warned = details if test.name == "verdict" else inert(_cut(test.because))
        said = inert(f"{test.kind}: {_cut(test.message)}")
        ElementTree.SubElement(case, "system-out").text = f"{said}\n{warned}".rstrip()


def _cut(message: str) -> str:
    return message if len(message) <= _MESSAGE else f"{message[:_MESSAGE]} …"


def _count(element: ElementTree.Element, tests: Sequence[TestCase], whole: Report | None) -> None:
    element.set("tests", str(len(tests)))
    element.set("failures", str(sum(test.outcome == "failure" for test in tests)))
    element.set("errors", str(sum(test.outcome == "error" for test in tests)))
    if whole is not None and math.isfinite(whole.duration_s) and whole.duration_s >= 0:
        element.set("time", f"{abs(whole.duration_s):.3f}")  # without the sign of -0.0


def _properties(suite: ElementTree.Element, report: Report) -> None:
    """What was measured where."""
    sides = [(side.name, side.full_label) for side in (report.base, report.head) if side is not None]
    machine = report.machine.name if report.machine else ""
    facts = [*sides, ("machine", machine), ("device", report.device), ("plan", report.plan)]
    facts = [(name, value) for name, value in facts if value]
    if facts:
        properties = ElementTree.SubElement(suite, "properties")
        for name, value in facts:
            ElementTree.SubElement(properties, "property", name=inert(name), value=inert(value))
