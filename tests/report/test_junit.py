"""JUnit's XML: always valid, red exactly where the exit code is, and one name is one testcase."""

from __future__ import annotations

import dataclasses
import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Callable

import pytest

from regress.errors import Exit
from regress.model import Case, Cause, Comparison, Failure, Report, SuiteProblem, Verdict
from regress.report import Style, render

from . import sample
from .readers import junit
from .test_golden import REPORTS

RED = ("failure", "error")


def outcomes(report: Report) -> dict[str, str]:
    """Testcase -> how it came out, "" where it passed."""
    root = junit(render(report, Style(), "junit"))
    by_name = {}
    for case in root.iter("testcase"):
        kinds = [child.tag for child in case if child.tag != "system-out"]
        by_name[case.get("name")] = kinds[0] if kinds else ""
    return by_name


@pytest.mark.parametrize("name", REPORTS)
def test_counts_and_colours_are_those_of_the_report(name: str) -> None:
    report = REPORTS[name][0]()
    root = junit(render(report, Style(), "junit"))
    assert bool(root.findall(".//failure") + root.findall(".//error")) is bool(report.exit_code)
    for suite in (root, *root.iter("testsuite")):
        cases = list(suite.iter("testcase"))
        assert int(suite.get("tests")) == len(cases)
        for tag, attribute in (("failure", "failures"), ("error", "errors"), ("skipped", "skipped")):
            if suite is not root or attribute != "skipped":
                assert int(suite.get(attribute)) == sum(case.find(tag) is not None for case in cases)


@pytest.mark.parametrize(
    "comparison, strict, outcome",
    [
        (sample.compared(sample.SOFTMAX, "gpu_time", Verdict.REGRESSED, 1.0, 1.1), False, "failure"),
        (sample.compared(sample.SOFTMAX, "gpu_time", Verdict.REGRESSED, 1.0, 1.1, gates=False), False, ""),
        (
            sample.compared(sample.SOFTMAX, "gpu_time", Verdict.FAILED, 1.0, None, head_failure=sample.BOOM),
            False,
            "error",
        ),
        (
            sample.compared(
                *(sample.SOFTMAX, "gpu_time", Verdict.FAILED, None, None),
                base_failure=sample.BOOM,
                head_failure=sample.BOOM,
            ),
            False,
            "skipped",
        ),
        (
            sample.compared(
                *(sample.SOFTMAX, "gpu_time", Verdict.FAILED, None, None),
                base_failure=sample.BOOM,
                head_failure=sample.BOOM,
            ),
            True,
            "error",
        ),
        (
            sample.compared(sample.SOFTMAX, "gpu_time", Verdict.FAILED, None, 1.0, base_failure=sample.BOOM),
            True,
            "skipped",
        ),
        (sample.compared(sample.SOFTMAX, "gpu_time", Verdict.UNDECIDED, 1.0, 1.02), True, "skipped"),
        (sample.compared(sample.SOFTMAX, "gpu_time", Verdict.SKIPPED, None, None), False, "skipped"),
        (sample.compared(sample.SOFTMAX, "gpu_time", Verdict.INCOMPARABLE, 1.0, 1.0), False, "skipped"),
        (sample.compared(sample.SOFTMAX, "gpu_time", Verdict.GONE, 1.0, None), False, "skipped"),
        (sample.compared(sample.SOFTMAX, "gpu_time", Verdict.NEW, None, 1.0), False, ""),
        (sample.compared(sample.SOFTMAX, "gpu_time", Verdict.IMPROVED, 1.0, 0.8), False, ""),
        (sample.compared(sample.SOFTMAX, "gpu_time", Verdict.CHANGED, 1.0, 0.8), False, ""),
        (sample.compared(sample.SOFTMAX, "gpu_time", Verdict.UNCHANGED, 1.0, 1.0), False, ""),
    ],
)
def test_each_verdict_has_its_outcome(comparison: Comparison, strict: bool, outcome: str) -> None:
    report = Report("check", comparisons=(comparison,), policy={"strict": strict})
    assert outcomes(report)[f"{comparison.case} gpu time"] == outcome


@pytest.mark.parametrize("code", [Exit.FAILED, Exit.UNDECIDED, Exit.NOTHING, Exit.INTERRUPTED])
def test_what_no_testcase_says_the_verdict_says(code: Exit) -> None:
    """Undecided with --strict, nothing to measure, a build that failed: a green document would hide it."""
    report = dataclasses.replace(sample.passed(), exit_codes=(code,), state="FAIL")
    assert outcomes(report)["verdict"] == "error"
    assert outcomes(dataclasses.replace(report, exit_codes=(Exit.PASSED,)))["verdict"] == ""


@pytest.mark.parametrize("make", [Report("check"), sample.stopped(), Report("list")], ids=lambda report: report.command)
def test_a_document_is_never_empty(make: Report) -> None:
    """Jenkins takes a document without testcases for a mistake."""
    assert "verdict" in outcomes(make)


@pytest.mark.parametrize(
    "text",
    [
        "]]>",
        "<![CDATA[",
        "<x/>",
        "&amp;",
        '"',
        "a\nb",
        "".join(map(chr, range(0x20))),
        "\x7f\x85",
        "\ud800",
        "\ufffe\uffff",
        "\u202e",
        "🚀",
        "\U0001fffe",
    ],
)
def test_any_text_is_xml(text: str) -> None:
    failure = dataclasses.replace(sample.BOOM, message=text, detail=text, where=text, kind="error")
    case = Case(f"a.{text}", (text,))
    report = dataclasses.replace(
        sample.check(),
        comparisons=(sample.compared(case, "gpu_time", Verdict.FAILED, 1.0, None, text, head_failure=failure),),
        problems=(SuiteProblem(text, text, text),),
        warnings=(text,),
        device=text,
    )
    root = junit(render(report, Style(), "junit"))
    assert len(root.findall(".//error")) == 2
    assert all("\n" not in case.get("name") for case in root.iter("testcase"))


@pytest.mark.parametrize("make", [sample.check, sample.run, sample.sweep, sample.together])
def test_one_name_is_one_testcase(make: Callable[[], Report]) -> None:
    """GitLab leaves out the second testcase of a name."""
    root = junit(render(make(), Style(), "junit"))
    names = Counter((case.get("classname"), case.get("name")) for case in root.iter("testcase"))
    assert max(names.values()) == 1


def test_thousands_of_failures_stay_far_below_what_gitlab_reads() -> None:
    text = render(sample.many(), Style(), "junit")
    root = junit(text)
    assert len(root.findall(".//failure")) == 5_000
    assert len(root.findall(".//error")) == 5_000 + 1, "and a file that cannot be imported"
    assert len(text.encode()) < 10 * 2**20
    assert sum(1 + len(row.attrib) for row in root.iter()) < 250_000


def test_a_failure_says_what_it_comes_from() -> None:
    report = sample.check_explained()
    root = junit(render(report, Style(), "junit"))
    told = {case.get("name"): case[0].text for case in root.iter("testcase") if len(case)}
    cause = "because a fusion was lost: softmax::wide became 3 launches a call (high confidence)"
    assert [name for name, text in told.items() if text and cause in text] == [f"{sample.SOFTMAX} gpu time"]
    assert told[f"{sample.SOFTMAX} gpu time"].splitlines()[0] == cause


def test_a_cause_of_any_length_takes_no_more_than_a_message() -> None:
    report = sample.check_explained()
    explanation = dataclasses.replace(sample.explanation(), causes=(Cause("fusion", "k" * 100_000, "high"),))
    explained = dataclasses.replace(report.explained[0], explanation=explanation)
    root = junit(render(dataclasses.replace(report, explained=(explained,)), Style(), "junit"))
    (text,) = [row.text for row in root.iter("failure") if "kkk" in row.text]
    assert 1_000 < len(text) < 1_300
    assert "again: regress check" in text


def test_where_there_is_no_room_what_fails_has_its_details_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("regress.report.junit._ALL_DETAILS", 3_000)
    skipped = [
        sample.compared(
            Case(f"a{n}.time_a"), "wall_time", Verdict.SKIPPED, None, None, head_failure=Failure("skipped", "x" * 900)
        )
        for n in range(20)
    ]
    failing = sample.compared(
        Case("z.time_z"),
        "wall_time",
        Verdict.FAILED,
        1.0,
        None,
        head_failure=Failure("error", "boom", detail="Traceback\nboom"),
    )
    text = render(dataclasses.replace(sample.check(), comparisons=(*skipped, failing)), Style(), "junit")
    root = ElementTree.fromstring(text.encode())
    (error,) = [
        element.find("error") for element in root.iter("testcase") if str(element.get("name")).startswith("z.time_z")
    ]
    assert error is not None
    assert "boom" in str(error.text)
    assert "left out: the document would be too long" in text
