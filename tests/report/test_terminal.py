"""What the text for people says, and what it leaves out."""

from __future__ import annotations

import dataclasses

import pytest

from regress.errors import NothingMeasured, RegressError
from regress.model import (
    METRICS,
    Case,
    Check,
    Commit,
    Comparison,
    Listed,
    Measurement,
    Report,
    Setting,
    Side,
    SuiteProblem,
    Verdict,
    metric_of,
)
from regress.report import Style, render
from regress.report.terminal import render_error

from . import sample
from .sample import BOOM, HANG, NOW, PROBLEMS, compared, exact, summary

POLICY = {"alpha": 0.05, "confidence": 0.95}
CASE = Case("a.time_x")


def text(*comparisons: Comparison, style: Style | None = None, **more: object) -> str:
    report = Report("check", comparisons=comparisons, policy=POLICY, **more)  # type: ignore[arg-type]
    return render(report, style or Style())


def titles(output: str) -> list[str]:
    """First words of the sections, in order."""
    return [
        line.split()[0].rstrip(",") for line in output.splitlines() if line.startswith("  ") and line[2:3].isalpha()
    ]


def of(verdict: Verdict, **more: object) -> Comparison:
    head = 1.0 if verdict is Verdict.UNCHANGED else 1.2
    return compared(Case(f"a.time_{verdict}"), "wall_time", verdict, 1.0, head, **more)  # type: ignore[arg-type]


def test_sections_come_in_order_of_seriousness_whatever_the_order_of_rows() -> None:
    rows = [of(verdict) for verdict in reversed(Verdict)]
    serious = ["regressed", "failed", "improved", "undecided", "changed", "incomparable", "new", "gone", "skipped"]
    assert titles(text(*rows)) == serious
    assert titles(text(*rows, style=Style(verbose=True))) == [*serious, "unchanged"]


@pytest.mark.parametrize("verdict", list(Verdict))
def test_no_verdict_is_told_by_color_alone(verdict: Verdict) -> None:
    output = text(of(verdict), style=Style(verbose=True))
    signs = {line[0] for line in output.splitlines() if "a.time_" in line}
    assert len(signs) == 1
    assert signs.isdisjoint({" "})
    assert verdict.value in titles(output)


def test_unchanged_rows_are_shown_only_when_verbose() -> None:
    same = compared(CASE, "wall_time", Verdict.UNCHANGED, 1.0, 1.001, p=0.9)
    assert "a.time_x" not in text(same)
    assert "a.time_x" in text(same, style=Style(verbose=True))


@pytest.mark.parametrize(
    ("metric", "head", "folded"),
    [
        ("wall_time", 1.03, "  1 slower, below 5 % (-v lists them)"),
        ("wall_time", 0.97, None),
        ("peak_memory", 1.03, "  1 larger, below 10 % (-v lists them)"),
        ("peak_memory", 3.0, "  1 larger, under the floor (-v lists them)"),
        ("GFLOP/s", 0.97, "  1 lower, below 5 % (-v lists them)"),
        ("GFLOP/s", 1.03, None),
        ("points", 1.03, None),
    ],
)
def test_a_significant_change_to_the_worse_is_folded_not_hidden(metric: str, head: float, folded: str | None) -> None:
    what = METRICS.get(metric) or metric_of("value", metric)
    output = text(compared(CASE, what, Verdict.UNCHANGED, 1.0, head, p=1e-3))
    assert [line for line in output.splitlines() if "lists them" in line] == ([folded] if folded else [])
    listed = text(compared(CASE, what, Verdict.UNCHANGED, 1.0, head, p=1e-3), style=Style(verbose=True))
    assert titles(listed) == ([folded.split()[1].rstrip(",")] if folded else ["unchanged"])
    assert listed.count("a.time_x") == 1


def test_noise_is_not_folded() -> None:
    assert "slower" not in text(compared(CASE, "wall_time", Verdict.UNCHANGED, 1.0, 1.03, p=0.06))
    assert "slower" not in text(compared(CASE, "wall_time", Verdict.UNCHANGED, 1.0, 1.03, p=None))


def test_a_metric_that_does_not_gate_is_not_folded() -> None:
    assert text(compared(CASE, "wall_time", Verdict.UNCHANGED, 1.0, 1.03, p=1e-3, gates=False)) == ""


def test_host_time_that_got_slower_has_its_own_section() -> None:
    host = compared(CASE, "host_time", Verdict.REGRESSED, 1e-5, 2e-5, gates=False)
    output = text(host)
    assert titles(output) == ["host"]
    assert "  host time (cannot fail the check)" in output
    assert "regressed" not in output


def test_wall_time_does_not_repeat_the_regression_of_gpu_time() -> None:
    gpu = compared(CASE, "gpu_time", Verdict.REGRESSED, 1.0, 1.2)
    wall = compared(CASE, "wall_time", Verdict.REGRESSED, 1.1, 1.3, gates=False)
    host = compared(CASE, "host_time", Verdict.REGRESSED, 0.1, 0.2, gates=False)
    assert titles(text(gpu, wall, host)) == ["regressed", "host"]
    assert titles(text(gpu, wall, host, style=Style(verbose=True))) == ["regressed", "wall", "host"]
    assert titles(text(dataclasses.replace(gpu, verdict=Verdict.IMPROVED), wall)) == ["improved", "wall"]
    memory = compared(CASE, "peak_memory", Verdict.REGRESSED, 1.0, 1.2)
    assert titles(text(memory, wall)) == ["regressed", "wall"]


@pytest.mark.parametrize("verdict", [Verdict.IMPROVED, Verdict.UNDECIDED, Verdict.UNCHANGED])
def test_other_metrics_that_do_not_gate_are_shown_and_marked_when_verbose(verdict: Verdict) -> None:
    host = compared(CASE, "host_time", verdict, 1e-5, 1.0e-5, gates=False)
    assert "host time" not in text(host)
    assert "cannot fail the check" in text(host, style=Style(verbose=True))


@pytest.mark.parametrize("verdict", [Verdict.REGRESSED, Verdict.IMPROVED, Verdict.UNCHANGED])
def test_counters_are_rows_only_when_verbose(verdict: Verdict) -> None:
    gpu = compared(CASE, "gpu_time", Verdict.UNDECIDED, 1.0, 1.04, "kernel launches 12 -> 14 a call")
    counter = compared(CASE, "launches", verdict, 12.0, 14.0, gates=False)
    output = text(gpu, counter)
    assert output.count("a.time_x") == 1
    assert "kernel launches 12 -> 14 a call" in output
    assert text(gpu, counter, style=Style(verbose=True)).count("a.time_x") == 2


def test_a_case_without_numbers_is_one_row_with_the_metric_that_gates() -> None:
    rows = [
        compared(CASE, "host_time", Verdict.NEW, None, 1e-5, gates=False),
        compared(CASE, "gpu_time", Verdict.NEW, None, 2e-5),
        compared(CASE, "peak_memory", Verdict.NEW, None, 96.0),
    ]
    lines = [line for line in text(*rows).splitlines() if "a.time_x" in line]
    assert len(lines) == 1
    assert "gpu time" in lines[0]
    assert text(*rows, style=Style(verbose=True)).count("a.time_x") == 3


def test_from_zero_is_a_word_and_said_once() -> None:
    output = text(compared(CASE, "peak_memory", Verdict.REGRESSED, 0.0, 2.0**20, "from zero"))
    assert output.count("from zero") == 1
    nothing = compared(CASE, "peak_memory", Verdict.UNCHANGED, 0.0, 0.0)
    assert "from zero" not in text(nothing, style=Style(verbose=True))


def test_both_failures_are_told_when_they_differ() -> None:
    failed = compared(CASE, "wall_time", Verdict.FAILED, None, None, base_failure=HANG, head_failure=BOOM)
    lines = text(failed).splitlines()
    assert "    on base: timeout: no result after 60 s" in lines
    assert "    on head: RuntimeError: shape '[0, 3]'\\nis invalid" in lines
    same = dataclasses.replace(failed, base_failure=BOOM)
    assert [line for line in text(same).splitlines() if " on " in line] == [
        "    on both sides: RuntimeError: shape '[0, 3]'\\nis invalid"
    ]


def test_a_case_of_run_has_its_first_failure() -> None:
    wall, memory = METRICS["wall_time"], METRICS["peak_memory"]
    failed = (Measurement(CASE, wall, None, BOOM), Measurement(CASE, memory, None, HANG, primary=False))
    output = render(Report("run", measurements=failed), Style())
    assert "RuntimeError" in output
    assert "timeout" not in output
    assert output.count("a.time_x") == 1


def test_the_same_command_is_suggested_once() -> None:
    output = text(suggestions=(("again", "regress check"), ("again", "regress check"), ("why\n", "x")))
    assert output == "again regress check\nwhy\\n x\n"


def test_an_incomparable_row_has_no_change_and_no_interval() -> None:
    row = compared(CASE, "wall_time", Verdict.INCOMPARABLE, 1.0, 2.0, "version differs", ratio=None)
    output = text(row)
    assert "%" not in output.replace("95 % interval", "").replace("1.2/1.2 %", "")
    assert "version differs" in output


def test_the_first_table_carries_the_column_titles() -> None:
    rows = [of(Verdict.REGRESSED), of(Verdict.IMPROVED)]
    assert text(*rows).count("95 % interval") == 1
    assert "interval" in render(Report("check", comparisons=tuple(rows)), Style())
    assert "95 %" not in render(Report("check", comparisons=tuple(rows)), Style())


def test_rounds_and_spread_give_way_on_a_narrow_terminal() -> None:
    row = dataclasses.replace(of(Verdict.REGRESSED), base=summary(1.0, 0.01, 4), head=summary(1.2, 0.03, 6))
    for style in (Style(), Style(width=120), Style(width=80, verbose=True)):
        assert "4+6" in text(row, style=style)
        assert "1/3 %" in text(row, style=style)
    assert "4+6" not in text(row, style=Style(width=119))


def test_verdict_line() -> None:
    report = Report(
        "check",
        state="FAIL",
        counts={"unchanged": 38, "odd": 1, "none": 0, "regressed": 2, "gone": 0, "improved": 1},
        cases=42,
        geomean=(1.004, 0.99, 1.02, 41),
        noise_floor=(0.006, 0.028, "topk.time_x"),
        min_detectable=0.057,
        duration_s=171.0,
    )
    first, second = render(report, Style()).splitlines()
    assert first == "FAIL  42 cases: 2 regressed, 1 improved, 38 unchanged, 1 odd   geomean +0.4 % over 41   2:51"
    assert second == ("      smallest detectable regression +5.7 %; noisiest is topk.time_x")
    assert render(report, Style(quiet=True)) == first + "\n"


def test_where_nothing_had_to_be_judged_the_last_line_says_so() -> None:
    report = Report("check", state="PASS", remark="nothing affected", duration_s=2.0)
    assert render(report, Style()) == render(report, Style(quiet=True)) == "PASS  nothing affected   2.0 s\n"


def test_quiet_is_the_verdict_line_only() -> None:
    rows = (of(Verdict.REGRESSED), of(Verdict.FAILED))
    output = text(*rows, state="FAIL", cases=2, problems=PROBLEMS, warnings=("w",), style=Style(quiet=True))
    assert output == "FAIL  2 cases; 1 suite problem\n"


def test_quiet_keeps_what_was_asked_for() -> None:
    style = Style(quiet=True)
    listed = Report(
        "list", listed=(Listed(CASE, "wall_time", False), Listed(Case("b", ("1",)), "gpu_time", True)), cases=2
    )
    assert render(listed, style) == "a.time_x\nb(1)\n"
    config = Report("config", settings=(Setting("seed", 0, "default"),))
    assert render(config, style) == render(config, Style())
    doctor = Report("doctor", checks=(Check("a", "ok", "fine"), Check("b", "warn", "so so", "mend it")))
    assert render(doctor, style) == "? warn  b  so so\n    fix: mend it\n"


def test_an_empty_report_is_an_empty_text() -> None:
    assert render(Report("demo"), Style()) == render(Report("demo"), Style(quiet=True)) == ""


def commit(subject: str = "subject") -> Commit:
    return Commit("0123456789abcdef", subject, "A. U. Thor", NOW - 7_300.0)


def test_the_header_says_what_was_compared() -> None:
    base = Side("base", commit(), "HEAD~1", "one")
    head = Side("head", commit("a subject of one line"), "working tree", "two", dirty=True)
    assert text(base=base, head=head, style=Style(now=NOW)).splitlines() == [
        "base  01234567          subject                2 h ago  (HEAD~1, in one)",
        "head  01234567+changes  a subject of one line  2 h ago  (working tree, uncommitted changes, in two)",
    ]
    same = text(base=base, head=dataclasses.replace(head, environment="one"))
    assert "in one" not in same
    assert "2026-05-28" in same


def test_a_commit_may_bear_any_date() -> None:
    for date in (float("nan"), float("inf"), 1e300, -1e300):
        side = Side("head", dataclasses.replace(commit(), date=date), "HEAD")
        assert "no date" in text(head=side)
        assert "subject" in text(head=side, style=Style(now=NOW))


def test_suite_problems_and_warnings() -> None:
    problem = SuiteProblem("benchmarks/x.py:3", "SyntaxError: bad", "line 1\nline\t2")
    assert text(problems=(problem,), warnings=("mind\nthe clock",)).splitlines() == [
        "  suite problems",
        "! benchmarks/x.py:3",
        "    SyntaxError: bad",
        "",
        "warning: mind\\nthe clock",
    ]
    assert "      line\\t2" in text(problems=(problem,), style=Style(verbose=True)).splitlines()
    assert text(problems=(dataclasses.replace(problem, fatal=False),)).splitlines()[1].startswith("? ")


def test_exact_metrics_have_no_interval() -> None:
    row = dataclasses.replace(of(Verdict.REGRESSED), base=exact(1.0), head=exact(2.0), exact=True)
    assert "exact" in text(row)
    assert "…" not in text(row)


def test_an_error_is_what_why_fix() -> None:
    error = NothingMeasured("no GPU\nhere", why="no driver", fix="regress check --device cpu")
    assert render_error(error, Style()) == (
        "error: no GPU\\nhere\nwhy:   no driver\nfix:   regress check --device cpu\n"
    )
    assert render_error(RegressError("only this"), Style()) == "error: only this\n"
    assert render_error(error, Style(color=True)).startswith("\x1b[1;31merror:")


def test_few_rounds_are_told_what_more_would_have_told() -> None:
    report = Report("compare", state="PASS", cases=1, counts={"unchanged": 1}, min_detectable=0.2, finer=(5, 0.0612))
    assert (
        render(report, Style()).splitlines()[1].strip()
        == "smallest detectable regression +20 %; with 5 rounds a side about +6.1 %"
    )
    as_fine = dataclasses.replace(report, finer=(5, 0.2001))
    assert render(as_fine, Style()).splitlines()[1].strip() == "smallest detectable regression +20 %", (
        "more rounds would gain nothing"
    )


@pytest.mark.parametrize("width", [70, 100, 140, None])
def test_subjects_are_cut_to_the_terminal(width: int | None) -> None:
    subject = "attention: keep the scores of both halves in one buffer"
    commit = Commit("3f2c1ab0" + "0" * 32, subject, "Ada", 0.0)
    changed = sample.changed(Case("ops.cudatime_add"), "gpu_time", 1e-3, 1.2e-3, commit, new=True)
    sides = [Side(name, commit, "HEAD") for name in ("base", "head")]
    lines = render(Report("sweep", base=sides[0], head=sides[1], changes=(changed,)), Style(width=width)).splitlines()
    told = [line for line in lines if "3f2c1ab0" in line]
    assert len(told) == 3
    assert width is None or width < 100 or max(map(len, told)) <= width
    assert all("attent" in line and ("(Ada)" in line or "(HEAD)" in line) for line in told), "some of it stays"
