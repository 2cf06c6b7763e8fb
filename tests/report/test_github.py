"""Annotations: the runner obeys these and nothing else in the output, and there are never more than it shows."""

from __future__ import annotations

import dataclasses
from collections import Counter

import pytest

from regress.errors import Exit
from regress.model import Case, Cause, Report, Verdict
from regress.report import Style, render
from regress.text.style import visible

from . import sample
from .readers import Command, commands
from .test_golden import REPORTS


def shown(report: Report, verbose: bool = False) -> list[Command]:
    return commands(render(report, Style(verbose=verbose), "github"))


@pytest.mark.parametrize("name", REPORTS)
def test_there_is_an_error_exactly_where_the_exit_code_says_so(name: str) -> None:
    report = REPORTS[name][0]()
    written = shown(report)
    assert any(command.name == "error" for command in written) is bool(report.exit_code)
    assert {command.name for command in written} <= {"error", "warning", "notice"}


def test_the_worst_come_first() -> None:
    titles = [command.properties["title"] for command in shown(sample.check()) if command.name == "error"]
    assert titles[0] == f"regressed: {sample.SOFTMAX}", "critical"
    assert [title.partition("(")[0] for title in titles[1:]] == [
        "regressed: cache.peakmem_fill",
        "regressed: io.time_load",
        "regressed: mem.track_rate",
        "regressed: attn.cudatime_fwd",
        "failed: conv.time_conv",
        "suite: benchmarks/broken.py:3",
    ]


def test_the_words_are_those_of_the_text() -> None:
    first = shown(sample.check())[0]
    assert first.data == "27.4 us -> 30.0 us, +9.4 %, +8.5 … +10.3, gpu time, critical"


def test_what_a_regression_comes_from_is_its_second_line() -> None:
    by_title = {command.properties["title"]: command.data.splitlines() for command in shown(sample.check_explained())}
    cause = "because a fusion was lost: softmax::wide became 3 launches a call (high confidence)"
    assert [title for title, lines in by_title.items() if cause in lines] == [f"regressed: {sample.SOFTMAX}"]
    assert by_title[f"regressed: {sample.SOFTMAX}"][1:] == [cause]


def test_cases_that_moved_together_have_the_cause_of_the_one_that_was_explained() -> None:
    report = sample.together()
    explained = dataclasses.replace(sample.explain().explained[0], comparison=report.comparisons[7])
    first = shown(dataclasses.replace(report, explained=(explained,)))[0]
    assert first.properties["title"].startswith("regressed: softmax.CudaTimeSoftmax.cudatime_fwd: 8 of 10 cases")
    assert first.data.endswith("became 3 launches a call (high confidence)")


def test_another_case_of_the_benchmark_says_whose_cause_it_is() -> None:
    report = sample.together()
    explained = dataclasses.replace(sample.explain().explained[0], comparison=report.comparisons[7])
    alone = (report.comparisons[0], *report.comparisons[8:])
    written = shown(dataclasses.replace(report, comparisons=alone, explained=(explained,)))
    told = [command.data.splitlines()[1] for command in written if len(command.data.splitlines()) > 1]
    cause = "because a fusion was lost: softmax::wide became 3 launches a call (high confidence)"
    assert told == [f"{report.comparisons[7].case}: {cause}"]


def test_a_cause_of_any_length_stays_below_what_is_shown() -> None:
    report = sample.check_explained()
    cause = Cause("fusion", "k" * 100_000, "high")
    explanation = dataclasses.replace(sample.explanation(), causes=(cause,))
    explained = dataclasses.replace(report.explained[0], explanation=explanation)
    assert len(shown(dataclasses.replace(report, explained=(explained,)))[0].data) <= 4_000


def test_what_has_a_place_is_shown_there() -> None:
    (conv,) = [command for command in shown(sample.check()) if "conv.time_conv" in command.properties["title"]]
    assert (conv.properties["file"], conv.properties["line"]) == ("benchmarks/conv.py", "42")


def test_a_step_has_ten_of_a_type_and_the_tenth_counts_the_rest() -> None:
    report = sample.many()
    written = shown(report)
    assert Counter(command.name for command in written) == {"error": 10, "warning": 10, "notice": 1}
    errors = [command for command in written if command.name == "error"]
    said, *names = errors[-1].data.split("\n")
    assert said == f"{10_000 + 1 - 9} more: all are in the log of this step"
    assert names[0].startswith("failed: "), "what fails is named first"
    assert sum(error.properties["title"].startswith("failed: ") for error in errors) == 4, "and some of it is shown"
    assert errors[0].properties["title"].startswith("regressed: m4999.time_4999"), "the worst of all"


def test_ten_are_ten() -> None:
    report = dataclasses.replace(sample.passed(), warnings=tuple(f"warning {n}" for n in range(10)))
    warnings = [command.data for command in shown(report) if command.name == "warning"]
    assert warnings == list(report.warnings)


@pytest.mark.parametrize(
    "text",
    [
        "::error::x",
        "x\n::set-output name=a::b",
        "\r::add-mask::x",
        "%0A::error::x",
        "##[error]x",
        "a,line=1::x",
        "file=x,line=2",
        "\u2028::error::x",
        "::stop-commands::x",
        "%25",
    ],
)
@pytest.mark.parametrize("verbose", [False, True])
def test_nothing_in_the_report_is_a_command(text: str, verbose: bool) -> None:
    plain = sample.check()
    failure = dataclasses.replace(sample.BOOM, message=text, detail=f"{text}\n{text}", where=text)
    assert plain.head is not None
    report = dataclasses.replace(
        plain,
        head=dataclasses.replace(plain.head, commit=dataclasses.replace(plain.head.commit, subject=text)),
        comparisons=(
            sample.compared(Case(text, (text,)), "gpu_time", Verdict.REGRESSED, 1.0, 1.1, text),
            sample.compared(Case("b", (text,)), "gpu_time", Verdict.FAILED, 1.0, None, text, head_failure=failure),
        ),
        warnings=(text,),
        device=text,
        problems=(),
    )
    written = shown(report, verbose)
    assert [command.name for command in written] == ["error", "error", "warning", "notice"]
    assert all(set(command.properties) == {"title"} for command in written)
    assert written[2].data == visible(text), "and is read as it is written"
    assert written[0].properties["title"] == f"regressed: {visible(f'{text}({text})')}"


def test_a_title_is_as_long_as_is_shown() -> None:
    (title,) = [command.properties["title"] for command in shown(sample.sweep()) if command.name == "error"][:1]
    assert len(title) <= 255
    long = dataclasses.replace(
        sample.passed(),
        comparisons=(sample.compared(Case("a" * 10_000), "gpu_time", Verdict.REGRESSED, 1.0, 1.1),),
        exit_codes=(Exit.REGRESSED,),
    )
    assert len(shown(long)[0].properties["title"]) == 255
