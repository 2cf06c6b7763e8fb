"""Whatever a Report holds, it is rendered: any float, any text, any missing part."""

from __future__ import annotations

import json
import unicodedata
from pathlib import Path

import jsonschema
from hypothesis import given, settings
from hypothesis import strategies as st

from regress.model import (
    METRICS,
    Built,
    Case,
    Changed,
    ChangePoint,
    Check,
    Commit,
    Comparison,
    Failure,
    Fineness,
    Listed,
    Machine,
    Measurement,
    Metric,
    Report,
    SelfCheck,
    Setting,
    Side,
    Stopped,
    SuiteProblem,
    Summary,
    Verdict,
)
from regress.report import Style, render
from regress.report.json import schema
from regress.report.markdown import LIMIT

from .readers import assert_harmless, commands, junit

VALIDATOR = jsonschema.Draft202012Validator(schema())
LAWS = settings(deadline=None, derandomize=True, database=None, max_examples=80)

number = st.floats()
maybe = st.none() | number
words = st.text(st.characters(), max_size=12) | st.sampled_from(
    [
        "\x1b[31mx",
        "a\nb",
        "\ud800",
        "\u202e",
        "{x}",
        "[red]",
        "a|b",
        "`",
        "@me",
        "#1",
        "<img>",
        "]]>",
        "::error::x",
        "##[x]",
    ]
)
names = st.tuples(words, words)
summaries = st.none() | st.builds(Summary, number, number, number, number, st.integers(0, 9), number)
failures = st.none() | st.builds(Failure, st.sampled_from(["error", "oom", "skipped"]), words, words, words)
metrics = st.sampled_from(list(METRICS.values())) | st.builds(
    Metric,
    words,
    words,
    st.sampled_from(["time", "host", "memory", "count", "tracked"]),
    st.sampled_from(["lower", "higher", "unknown"]),
    st.booleans(),
)
cases = st.builds(Case, words, st.lists(words, max_size=2).map(tuple))
commits = st.builds(Commit, words, words, words, number)
known_sides = st.builds(Side, st.sampled_from(["base", "head"]), commits, words, words, st.booleans())
sides = st.none() | known_sides
values = st.recursive(
    maybe | words | st.booleans() | st.builds(Path, st.just("p")), lambda inner: st.lists(inner, max_size=2)
)
comparisons = st.builds(
    Comparison,
    cases,
    metrics,
    st.sampled_from(Verdict),
    st.lists(words, max_size=2).map(tuple),
    summaries,
    summaries,
    *[maybe] * 5,
    gates=st.booleans(),
    exact=st.booleans(),
    threshold=number,
    noise=maybe,
    min_detectable=maybe,
    critical=st.booleans(),
    base_failure=failures,
    head_failure=failures,
)
measurements = st.builds(
    Measurement, cases, metrics, summaries, failures, st.lists(words, max_size=2).map(tuple), st.booleans()
)
points = st.builds(
    ChangePoint,
    first=words,
    blamed=st.lists(words, min_size=1, max_size=2).map(tuple),
    good=words,
    before=number,
    after=number,
    ratio=maybe,
    low=maybe,
    high=maybe,
    moved=st.sampled_from([Verdict.REGRESSED, Verdict.IMPROVED, Verdict.CHANGED]),
    large=st.booleans(),
    threshold=number,
    state=st.sampled_from(["tentative", "confirmed", "recovered", "relapsed"]),
    way=st.just(()),
    recovered_by=words,
    reasons=st.lists(words, max_size=2).map(tuple),
)
changed = st.builds(
    Changed,
    cases,
    metrics,
    words,
    words,
    words,
    points,
    st.lists(commits, min_size=1, max_size=2).map(tuple),
    st.booleans(),
)
self_checks = st.none() | st.builds(
    SelfCheck, number, words, st.lists(words, max_size=2).map(tuple), *[st.integers(0, 9)] * 3, maybe, maybe
)
fineness = st.builds(Fineness, cases, metrics, st.sampled_from(Verdict), st.integers(0, 9), maybe, maybe, maybe)
reports = st.builds(
    Report,
    command=st.sampled_from(["check", "compare", "run", "sweep", "list", "doctor", "init", "build", "config", "demo"]),
    exit_codes=st.sampled_from([(0,), (1, 3), (5,)]),
    state=st.sampled_from(["", "PASS", "FAIL", "UNDECIDED", "NOTHING"]),
    base=sides,
    head=sides,
    machine=st.none() | st.builds(Machine, words, st.dictionaries(words, words, max_size=1)),
    device=words,
    plan=words,
    comparisons=st.lists(comparisons, max_size=4).map(tuple),
    measurements=st.lists(measurements, max_size=3).map(tuple),
    changes=st.lists(changed, max_size=3).map(tuple),
    listed=st.lists(st.builds(Listed, cases, words, st.booleans(), names, maybe), max_size=2).map(tuple),
    checks=st.lists(st.builds(Check, words, st.sampled_from(["ok", "warn", "fail"]), words, words), max_size=2).map(
        tuple
    ),
    builds=st.lists(
        st.builds(Built, known_sides, st.sampled_from(["built", "failed"]), number, words, words, words), max_size=2
    ).map(tuple),
    block=st.none() | st.tuples(words, words),
    settings=st.lists(st.builds(Setting, words, values, words), max_size=2).map(tuple),
    counts=st.dictionaries(st.sampled_from(list(Verdict)).map(str) | words, st.integers(0, 9), max_size=3),
    cases=st.integers(0, 9),
    geomean=st.none() | st.tuples(number, number, number, st.integers(0, 9)),
    noise_floor=st.none() | st.tuples(number, number, words),
    min_detectable=maybe,
    aa=self_checks,
    fineness=st.lists(fineness, max_size=2).map(tuple),
    last_aa=self_checks,
    error=st.none() | st.builds(Stopped, words, words, words),
    problems=st.lists(st.builds(SuiteProblem, words, words, words, st.booleans()), max_size=2).map(tuple),
    warnings=st.lists(words, max_size=2).map(tuple),
    suggestions=st.lists(names, max_size=2).map(tuple),
    policy=st.dictionaries(st.sampled_from(["alpha", "confidence", "x"]), values, max_size=3),
    recorded=words,
    duration_s=number,
)
styles = st.builds(
    Style, st.just(False), st.booleans(), st.booleans(), st.none() | st.integers(0, 200), st.none() | number
)


@LAWS
@given(reports, styles)
def test_text_is_rendered_without_control_characters(report: Report, style: Style) -> None:
    text = render(report, style)
    assert {char for char in text if unicodedata.category(char) in ("Cc", "Cs", "Zl", "Zp")} <= {"\n"}
    text.encode()


@LAWS
@given(reports)
def test_color_adds_only_color(report: Report) -> None:
    text = render(report, Style(color=True))
    for code in ("0m", "1m", "2m", *(f"{bold}{color}m" for bold in ("", "1;") for color in range(31, 37))):
        text = text.replace(f"\x1b[{code}", "")
    assert text == render(report, Style())


@LAWS
@given(reports)
def test_json_is_strict_and_fulfils_the_schema(report: Report) -> None:
    text = render(report, Style(), "json")
    assert text.isascii()
    VALIDATOR.validate(json.loads(text, parse_constant=_refuse))


@LAWS
@given(reports, styles)
def test_markdown_is_harmless_and_fits(report: Report, style: Style) -> None:
    text = render(report, style, "markdown")
    assert len(text.encode()) <= LIMIT
    assert_harmless(text)


@LAWS
@given(reports)
def test_junit_is_valid_and_red_where_the_exit_code_is_not_0(report: Report) -> None:
    root = junit(render(report, Style(), "junit"))
    red = root.findall(".//failure") + root.findall(".//error")
    assert red or not report.exit_code


@LAWS
@given(reports, styles)
def test_a_runner_finds_our_annotations_and_nothing_else(report: Report, style: Style) -> None:
    written = commands(render(report, style, "github"))
    assert {command.name for command in written} <= {"error", "warning", "notice"}
    assert all(set(command.properties) <= {"file", "line", "title"} for command in written)
    assert all(sum(command.name == name for command in written) <= 10 for name in ("error", "warning", "notice"))
    assert any(command.name == "error" for command in written) or not report.exit_code


@LAWS
@given(st.lists(comparisons, min_size=1, max_size=5, unique_by=lambda comparison: comparison.case))
def test_verbose_shows_every_comparison(drawn: list[Comparison]) -> None:
    report = Report("check", comparisons=tuple(drawn), policy={"alpha": 0.05})
    marks = {verdict.traits.mark for verdict in Verdict}
    lines = [line for line in render(report, Style(verbose=True)).split("\n") if line[:1] in marks]
    assert len(lines) == len(drawn)


def _refuse(constant: str) -> None:
    raise AssertionError(f"{constant} is not JSON")
