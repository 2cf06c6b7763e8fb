"""A report as GitHub Actions reads it on a job's output: the text, then annotations.

The worst nine of each type are annotations, and a tenth says how many more there are: a step has room for ten of a type and
drops the rest silently. The text stands between a command that stops the reading of commands and one that resumes it, so that
nothing in it is taken for one.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from regress.errors import Exit
from regress.model import Comparison, Failure, Report, Verdict, outside
from regress.report import changes, summary, terminal, verdicts
from regress.report.explained import because
from regress.report.failures import alike, failures_of, name_of, reasons_beside
from regress.report.rows import in_words, row
from regress.report.together import Together, gathered, how_far, weight_of
from regress.text.style import Style, cut, visible

_MOST_ANNOTATIONS = 10
"""Of a kind, that GitHub shows of a step."""
_LONGEST = 255
"""Characters of a title."""
_MESSAGE = 4_000
_FAILED = "failed: "
_NARROW = Style(width=80)
_PLACE = re.compile(r"(?P<file>[^/:][^:]*):(?P<line>\d+)")
"""A file of the repository and a line."""

Type = Literal["error", "warning", "notice"]


@dataclass(frozen=True)
class Annotation:
    type: Type
    title: str
    message: tuple[str, ...]
    """Its lines."""
    where: str = ""


def render(report: Report, style: Style) -> str:
    """Lines for standard output. The style is that of the text."""
    text = terminal.render(report, style)
    token = hashlib.sha256(text.encode()).hexdigest()  # no text can contain its own
    annotations = list(_annotations(report))
    lines = [f"::stop-commands::{token}", text.rstrip("\n"), f"::{token}::"]
    for type in ("error", "warning", "notice"):
        these = [annotation for annotation in annotations if annotation.type == type]
        shown = these if len(these) <= _MOST_ANNOTATIONS else these[: _MOST_ANNOTATIONS - 1]
        lines += map(_command, shown)
        if len(shown) < len(these):
            rest = these[len(shown) :]
            more = f"{len(rest)} more: all are in the log of this step"
            # What fails is named, whatever it is behind.
            names = sorted((annotation.title for annotation in rest), key=lambda title: not title.startswith(_FAILED))
            lines.append(_command(Annotation(these[0].type, "regress", (more, *names))))
    return "\n".join(lines) + "\n"


# -- what is said, the worst first ---------------------------------------------------------------------------------------


def _annotations(report: Report) -> Iterator[Annotation]:
    errors = [*_stopped(report), *_compared(report), *_failed(report), *_changed(report), *_others(report)]
    verdict = summary.verdict_line(report, Style())
    if report.exit_code and not any(error.type == "error" for error in errors):
        errors.insert(0, Annotation("error", "regress", (verdict or f"exit code {report.exit_code}",)))
    yield from errors
    for text in report.warnings:
        yield Annotation("warning", "regress", (text,))
    if verdict and report.error is None:
        yield Annotation("notice", f"regress {report.command}", (verdict,))


def _stopped(report: Report) -> Iterator[Annotation]:
    error = report.error
    if error is not None:
        said = (error.what, f"why: {error.why}" if error.why else "", f"fix: {error.fix}" if error.fix else "")
        yield Annotation("error", "regress", tuple(filter(None, said)))


def _compared(report: Report) -> Iterator[Annotation]:
    """Regressions, critical ones and then the largest first; failures; and what is undecided, if that counts."""
    counts = {
        code: [comparison for comparison in report.comparisons if comparison.exit_code(report.strict) == code]
        for code in (Exit.REGRESSED, Exit.FAILED, Exit.UNDECIDED)
    }
    worst = sorted(gathered(counts[Exit.REGRESSED], report.comparisons), key=weight_of, reverse=True)
    failed = [_failure("error", group) for group in alike(counts[Exit.FAILED])]
    # Of those that have room, some are of each kind.
    first = max(_MOST_ANNOTATIONS // 2, _MOST_ANNOTATIONS - 1 - len(failed))
    yield from (_row("error", item, report) for item in worst[:first])
    yield from failed
    yield from (_row("error", item, report) for item in worst[first:])
    for group in alike(comparison for comparison in counts[Exit.UNDECIDED] if failures_of(comparison)):
        yield _failure("error", group)
    for item in gathered([one for one in counts[Exit.UNDECIDED] if not failures_of(one)], report.comparisons):
        yield _row("error", item, report)
    drifted = [comparison for comparison in report.drift if comparison.exit_code(report.strict)]
    for item in sorted(gathered(drifted, report.drift), key=weight_of, reverse=True):
        yield _row("error", item, report, f"since {report.drift_since} ")
    told = {comparison.case for comparison in counts[Exit.FAILED]}
    other = [
        comparison
        for title, comparisons in verdicts.chosen(report)
        for comparison in comparisons
        if title == Verdict.FAILED.value
    ]
    for group in alike(comparison for comparison in other if comparison.case not in told):
        yield _failure("warning", group)


def _row(type: Type, shown: Comparison | Together, report: Report, since: str = "") -> Annotation:
    cells = row(shown, _NARROW).cells
    moved = shown.moved if isinstance(shown, Together) else (shown,)
    why = because(report, *moved) if not since else ""
    return Annotation(type, f"{since}{moved[0].verdict}: {cells[0]}", tuple(filter(None, (in_words(cells), why))))


def _failure(type: Type, group: list[Comparison]) -> Annotation:
    failures = failures_of(group[0])
    said = [f"{side}: {_words(failure)}" for side, failure in failures]
    where = failures[-1][1].where if failures else ""
    title = f"{group[0].verdict}: {name_of(group)}"
    return Annotation(type, title, tuple(filter(None, [*said, reasons_beside(group[0])])), where)


def _words(failure: Failure) -> str:
    kind = "" if failure.kind in ("error", "skipped") else f"{failure.kind}: "
    return f"{kind}{failure.message}{f' at {failure.where}' if failure.where else ''}"


def _failed(report: Report) -> Iterator[Annotation]:
    for measurement in report.measurements:
        failure = measurement.failure
        if failure is not None and failure.kind != "skipped" and measurement.primary:
            yield Annotation("error", f"{_FAILED}{measurement.case}", (_words(failure),), failure.where)


def _changed(report: Report) -> Iterator[Annotation]:
    """What stopped giving numbers is an error where it is new, as is a regression, the farthest first; what is new and not
    sure yet is a warning, and a short improvement that ended a notice."""
    for broken in (breakage for breakage in report.breakages if breakage.new):
        cells, where = changes.broken_row(broken).cells, broken.failure.where
        yield Annotation("error", f"stopped giving numbers: {cells[0]}", (in_words(cells),), where)
    for shift in (event for event in report.shifts if event.new):
        cells, is_open = changes.shift_row(shift).cells, any(change.point.is_open for change in shift.changes)
        yield Annotation("error" if is_open else "warning", f"moved at once: {cells[0]}", (in_words(cells),))
    new = [change for change in outside(report.changes, report.shifts) if change.new]
    for change in sorted((one for one in new if one.point.is_open), key=lambda one: -how_far(one.point.ratio)):
        cells = changes.row(change).cells
        yield Annotation("error", f"regressed: {cells[0]}", (in_words(cells),))
    milder: dict[str, Type] = {"tentative": "warning", "relapsed": "notice"}
    for change in (one for one in new if one.point.state in milder and one.point.moved is Verdict.REGRESSED):
        cells = changes.row(change).cells
        yield Annotation(milder[change.point.state], f"{change.point.state}: {cells[0]}", (in_words(cells),))


def _others(report: Report) -> Iterator[Annotation]:
    for problem in summary.sorted_problems(report):
        type: Type = "error" if problem.fatal and report.exit_code else "warning"
        yield Annotation(type, f"suite: {problem.where}", (problem.message,), problem.where)
    for built in report.builds:
        if built.state == "failed":
            said = (built.reason, f"fix: {built.fix}" if built.fix else "")
            yield Annotation("error", f"does not build: {built.side.label}", tuple(filter(None, said)))
    for check in report.checks:
        if check.state != "ok":
            type = "error" if check.state == "fail" and report.exit_code else "warning"
            fix = (f"fix: {check.fix}",) if check.fix else ()
            yield Annotation(type, check.name, (check.found, *fix))


# -- workflow commands ---------------------------------------------------------------------------------------------------


def _command(annotation: Annotation) -> str:
    properties = {"title": cut(visible(annotation.title), _LONGEST)}
    place = _PLACE.fullmatch(visible(annotation.where))
    if place is not None:
        properties = {"file": place["file"], "line": place["line"], **properties}
    values = ",".join(f"{name}={_escaped(value, ':,')}" for name, value in properties.items())
    message = "\n".join(visible(line) for line in annotation.message)
    return f"::{annotation.type} {values}::{_escaped(message[:_MESSAGE])}"


def _escaped(text: str, more: Iterable[str] = "") -> str:
    """Text for a workflow command: escapes percent signs and line ends, and in properties the separators in `more`."""
    text = text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    for char in more:
        text = text.replace(char, f"%{ord(char):02X}")
    return text
