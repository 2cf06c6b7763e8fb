"""A comment: nothing in it is markup, a link or a mention that came from outside, and it always fits."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import Any

import pytest

from regress.errors import Exit
from regress.model import Case, Commit, Failure, Report, Verdict
from regress.report import Style, render
from regress.report.gfm import PagePart, code, fit, words
from regress.report.markdown import LIMIT

from . import sample
from .readers import assert_harmless, page, running_text

HOSTILE = [
    "a|b",
    "\\|",
    "`",
    "``a`b```",
    " a ",
    "<img src=x onerror=alert(1)>",
    "<script>alert(1)</script>",
    "</details></sub>",
    "<!-- hidden",
    "-->",
    "@octocat",
    "org/team@sha",
    "#123",
    "GH-123",
    "fixes #1",
    "!12 ~bug %3 &4 $5",
    "https://evil.example/x",
    "//evil.example",
    "www.evil.example",
    "mail@evil.example",
    "[x](javascript:alert(1))",
    "![x](https://evil.example/p.png)",
    "**bold** _it_ ~~gone~~ ~gone~",
    ":tada:",
    "a\nb\r\n\n# heading",
    "```\n# out",
    "~~~",
    "- [ ] task",
    "1. one",
    "> quote",
    "&lt;b&gt; &#64;octocat",
    "\x00\x1b[2J\u202e",
    "$`x`$",
    "\ud800",
]


def cells(markdown: str) -> list[list[str]]:
    return [[cell.text_content().replace("\u00a0", " ") for cell in row] for row in page(markdown).iter("tr")]


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize("make", ["name", "parameter", "subject", "reason", "revision", "warning", "failure", "metric"])
def test_text_from_outside_is_text(text: str, make: str) -> None:
    report = hostile(text, make)
    for style in (Style(), Style(verbose=True)):
        assert_harmless(render(report, style, "markdown"))


def hostile(text: str, make: str) -> Report:
    report = sample.passed()
    assert report.base is not None
    row = dataclasses.replace(report.comparisons[0], verdict=Verdict.REGRESSED)
    if make == "subject":
        commit = Commit("1" * 40, text, text, 0.0)
        return dataclasses.replace(report, base=dataclasses.replace(report.base, commit=commit))
    if make == "revision":
        return dataclasses.replace(report, base=dataclasses.replace(report.base, revision=text, environment=text))
    if make == "warning":
        return dataclasses.replace(report, warnings=(text,), device=text, plan=text, remark=text)
    changes: dict[str, dict[str, Any]] = {
        "name": {"case": Case(text)},
        "parameter": {"case": Case("a.time_b", (repr(text), text))},
        "reason": {"reasons": (text, "confirmed")},
        "failure": {
            "verdict": Verdict.FAILED,
            "head_failure": dataclasses.replace(sample.BOOM, message=text, detail=text),
        },
        "metric": {"metric": dataclasses.replace(row.metric, name=text, unit=text), "gates": False},
    }
    return dataclasses.replace(report, comparisons=(dataclasses.replace(row, **changes[make]), *report.comparisons))


@pytest.mark.parametrize("text", ["a|b", "``a`b```", "`", " a ", "a\\|b", "\\", "@octocat", "<b>&amp;", "|", "'x | y'"])
def test_a_name_is_read_as_it_is_written(text: str) -> None:
    report = sample.passed()
    row = dataclasses.replace(report.comparisons[0], verdict=Verdict.REGRESSED, case=Case(text), reasons=(text,))
    markdown = render(dataclasses.replace(report, comparisons=(row,)), Style(), "markdown")
    name, *_, reason = cells(markdown)[1]
    assert name.strip() == reason.strip() == text.strip(), "a pipe ends no cell"


@pytest.mark.parametrize(
    "text",
    [
        "launch-bound: host time moved too",
        "spread 7 %, 14 more rounds (40 s) would decide",
        "kernel launches 2 -> 3 a call",
        "+8.0 … +11.2 %",
        "1:12:01",
        "became synchronous",
        "bimodal: two levels 13 % apart, the upper one in 1 of 8 rounds",
        "best attn.cudatime_fwd(1024)",
    ],
)
def test_our_own_words_are_no_code(text: str) -> None:
    assert words(text) == text


def test_nothing_to_see_is_nothing() -> None:
    assert (words(""), code(" ")) == ("", "")


def test_the_verdict_is_one_line_and_what_changed_is_in_sight() -> None:
    markdown = render(sample.check(), Style(), "markdown")
    root = page(markdown)
    (heading,) = root.iter("h3")
    assert heading.text_content().startswith("❌ FAIL · 21 cases: 5 regressed, 3 failed, 2 improved")
    open_ = [
        table for table in root.iter("table") if not any(parent.tag == "details" for parent in table.iterancestors())
    ]
    assert [next(table.iter("th")).text_content() for table in open_] == ["regressed", "improved"]
    folded = [row.text_content() for row in root.iter("summary")]
    assert folded == [
        "2 undecided",
        "1 changed",
        "1 incomparable",
        "1 new",
        "1 gone",
        "1 skipped",
        "1 host time (cannot fail the check)",
        "2 slower, below 5 %",
        "1 larger, below 10 %",
        "1 larger, under the floor",
        "1 unchanged",
        "2 suite problems",
        "how it was measured",
    ]


def test_the_words_are_those_of_the_text() -> None:
    text = render(sample.check(), Style(verbose=True), "text")
    rows = [row for row in cells(render(sample.check(), Style(), "markdown")) if row[1] != "base"]
    for name, *values in rows:
        if "xxx…" not in name:  # a long one is cut here
            after = text[text.index(name) :]
            assert all(value in after for value in values), (name, values)


def test_undecided_is_in_sight_where_it_is_the_verdict() -> None:
    report = dataclasses.replace(sample.check(), exit_codes=(Exit.UNDECIDED,), state="UNDECIDED")
    assert "2 undecided" not in [
        row.text_content() for row in page(render(report, Style(), "markdown")).iter("summary")
    ]


def test_quiet_is_the_verdict() -> None:
    assert render(sample.passed(), Style(quiet=True), "markdown") == "### ✅ PASS · 1 case: 1 unchanged\n"


@pytest.mark.parametrize("verbose", [False, True])
def test_thousands_of_changes_fit_and_what_is_left_out_is_counted(verbose: bool) -> None:
    report = sample.many()
    markdown = render(report, Style(verbose=verbose), "markdown")
    assert LIMIT - 1_000 < len(markdown.encode()) <= LIMIT
    assert_harmless(markdown)
    shown = sum(row[0].startswith("m") for row in cells(markdown))
    assert 200 < shown < 5_000, "as far as there is room"
    assert "m4999.time_4999" in markdown, "of what became worse, the worst"
    assert "`m0.time_0(" not in markdown
    failed = len(re.findall(r"^! f\d+\.time", markdown, re.MULTILINE))
    assert 50 < failed < 5_000, "what fails has half of the room where there is too much of all"
    more = [int(number) for number in re.findall(r"^… and (\d+) more\.$", markdown, re.MULTILINE)]
    assert more == [5_000 - shown, 5_000 - failed]
    assert markdown.rstrip().endswith(
        f"{sum(more)} rows are left out here; all are in `--output json=FILE`, and in the text with `-v`."
    )
    assert "9,999" not in markdown


def test_what_is_less_serious_is_not_there_in_place_of_what_is_more() -> None:
    parts = [
        PagePart("first\n", ("x" * 300 + "\n",) * 3),
        PagePart("second\n", ("y\n",)),
        PagePart("third\n", ("z\n",)).whole(),
    ]
    page = fit(parts, 700, "all are elsewhere.")
    assert (page.count("x"), page.count("y"), page.count("z")) == (300, 0, 1)
    assert "… and 2 more.\n\nsecond\n… and 1 more.\n\nthird\nz\n3 rows are left out here; all are elsewhere." in page


def test_one_name_of_a_hundred_thousand_characters_is_not_the_whole_page() -> None:
    case = Case("a.time_b", ("'" + "x" * 100_000 + "'",))
    report = sample.passed()
    row = dataclasses.replace(report.comparisons[0], verdict=Verdict.REGRESSED, case=case)
    markdown = render(dataclasses.replace(report, comparisons=(row, *sample.comparisons())), Style(), "markdown")
    assert len(markdown.encode()) < 20_000
    assert "a.time_b('xxx" in markdown
    assert "left out" not in markdown


def test_a_cause_is_read_whatever_the_name_of_its_case() -> None:
    report = sample.check_explained()
    case = Case("a.time_b", ("'" + "x" * 100_000 + "'",))
    about = dataclasses.replace(report.comparisons[0], case=case)
    explained = dataclasses.replace(report.explained[0], comparison=about)
    markdown = render(dataclasses.replace(report, explained=(explained,)), Style(), "markdown")
    assert (
        "xxx')`** is 9.4 % slower: `a fusion was lost: softmax::wide became 3 launches a call (high confidence)`"
        in markdown
    )


def test_no_place_on_the_machine_is_told() -> None:
    report = dataclasses.replace(sample.check(), recorded=str(Path("/home/me/.cache/regress")))
    assert "/home/me" not in render(report, Style(), "markdown")


def test_an_error_is_its_own_verdict() -> None:
    root = page(render(sample.stopped(), Style(), "markdown"))
    (heading,) = root.iter("h3")
    assert heading.text_content().startswith("⛔ NOTHING · no benchmark matches 'io.time_load(")
    assert "fix: regress list" in root.text_content()
    assert "octocat" not in running_text(root)


def test_of_many_rows_the_worst_stay_and_all_that_fails_whatever_their_names() -> None:
    few = sample.many(1_200).comparisons[:1_200]
    far = sample.compared(Case("z.time_z"), "wall_time", Verdict.REGRESSED, 1.0, 6.0)
    critical = dataclasses.replace(
        sample.compared(Case("y.time_y"), "wall_time", Verdict.REGRESSED, 1.0, 1.06), critical=True
    )
    failing = [comparison for comparison in sample.many(150).comparisons if comparison.verdict is Verdict.FAILED]
    report = dataclasses.replace(sample.check(), comparisons=(*few, far, critical, *failing))
    markdown = render(report, Style(), "markdown")
    assert all(f"`{name}`" in markdown for name in ("z.time_z", "y.time_y"))
    assert len(re.findall(r"^! f\d+\.time", markdown, re.MULTILINE)) == 150


def test_of_a_run_all_that_fails_stays() -> None:
    failure = Failure("error", "boom")
    measured = sample.run().measurements
    good = [dataclasses.replace(measured[0], case=Case(f"a{n}.time_a"), failure=None) for n in range(2_000)]
    bad = [
        dataclasses.replace(measured[0], case=Case(f"z{n}.time_z"), summary=None, failure=failure) for n in range(50)
    ]
    markdown = render(dataclasses.replace(sample.run(), measurements=(*good, *bad)), Style(), "markdown")
    assert len(re.findall(r"^! z\d+\.time", markdown, re.MULTILINE)) == 50
