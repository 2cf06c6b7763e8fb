"""Which rows become one, and what that row says."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regress.model import Case, Comparison, Report, Verdict
from regress.report import Style, render
from regress.report.together import FEWEST, Together, gathered

from .sample import compared

BAD, GOOD, SAME = Verdict.REGRESSED, Verdict.IMPROVED, Verdict.UNCHANGED


def moved(size: int, verdict: Verdict = BAD, head: float = 1.1, name: str = "a.time_x", **more: object) -> Comparison:
    return compared(Case(name, (str(size),)), "wall_time", verdict, 1.0, head, **more)  # type: ignore[arg-type]


def text(*comparisons: Comparison, verbose: bool = False) -> str:
    report = Report("check", comparisons=comparisons, policy={"alpha": 0.05, "confidence": 0.95})
    return render(report, Style(verbose=verbose))


def rows(output: str) -> list[str]:
    return [line for line in output.splitlines() if "a.time_x" in line]


@pytest.mark.parametrize("verdict", [BAD, GOOD])
def test_cases_that_moved_together_are_one_row_and_all_rows_when_verbose(verdict: Verdict) -> None:
    heads = (1.08, 1.11, 1.09) if verdict is BAD else (0.92, 0.89, 0.91)
    comparisons = [moved(size, verdict, head) for size, head in enumerate(heads)]
    comparisons += [moved(size, SAME, 1.0, p=0.9) for size in (7, 8)]
    (row,) = rows(text(*comparisons))
    words = "+8.0 … +11.0 %" if verdict is BAD else "-11.0 … -8.0 %"
    assert "a.time_x: 3 of 5 cases" in row
    assert words in row
    assert row.endswith("worst a.time_x(1)" if verdict is BAD else "best a.time_x(1)")
    assert len(rows(text(*comparisons, verbose=True))) == 5
    assert "3 of 5" not in text(*comparisons, verbose=True)


def test_fewer_are_rows_of_their_own() -> None:
    assert len(rows(text(*map(moved, range(FEWEST - 1))))) == FEWEST - 1


def test_one_that_moved_the_other_way_keeps_the_rows_apart() -> None:
    comparisons = [*map(moved, range(4)), moved(9, GOOD, 0.9)]
    assert len(rows(text(*comparisons))) == 5
    elsewhere = [*map(moved, range(4)), moved(9, GOOD, 0.9, "b.time_x")]
    assert len(rows(text(*elsewhere))) == 1


def test_metrics_are_not_mixed() -> None:
    memory = [compared(Case("a.time_x", (str(size),)), "peak_memory", BAD, 1.0, 1.2) for size in range(2)]
    assert len(rows(text(*map(moved, range(2)), *memory))) == 4


def test_a_change_from_zero_has_a_row_of_its_own() -> None:
    zero = [compared(Case("a.time_x", (str(size),)), "wall_time", BAD, 0.0, 1.0, "from zero") for size in range(3)]
    assert len(rows(text(*zero))) == 3


def test_reasons_that_all_share_are_said_and_others_are_pointed_to() -> None:
    comparisons = [dataclasses.replace(moved(size), reasons=("confirmed",)) for size in range(3)]
    (row,) = rows(text(*comparisons))
    assert "confirmed, worst a.time_x(0)" in row
    assert "-v" not in row
    comparisons[1] = dataclasses.replace(comparisons[1], reasons=("confirmed", "launches differ"), critical=True)
    (row,) = rows(text(*comparisons))
    assert row.endswith("1 critical, confirmed, worst a.time_x(0), more reasons with -v")


def test_of_what_is_folded_the_groups_are_named() -> None:
    comparisons = [moved(size, SAME, 1.02 + size / 100) for size in range(3)] + [moved(0, SAME, 1.02, "b.time_y")]
    lines = [line for line in text(*comparisons).splitlines() if "lists them" in line]
    assert lines == ["  4 slower, below 5 % (-v lists them): a.time_x: 3 of 3 cases, +2.0 … +4.0 %"]


comparisons = st.builds(
    moved,
    st.integers(0, 99),
    st.sampled_from(list(Verdict)),
    st.sampled_from([0.8, 0.9, 1.0, 1.1, 1.5]),
    st.sampled_from(["a.time_x", "b.time_y"]),
)


@given(st.lists(comparisons, max_size=20))
def test_no_row_is_lost_or_told_twice(drawn: list[Comparison]) -> None:
    shown = gathered(drawn, drawn)
    told = [comparison for one in shown for comparison in (one.moved if isinstance(one, Together) else (one,))]
    assert sorted(map(id, told)) == sorted(map(id, drawn))
    for group in (together for together in shown if isinstance(together, Together)):
        assert FEWEST <= len(group.moved) <= group.of
        assert (
            len({(comparison.case.name, comparison.metric.name, comparison.verdict) for comparison in group.moved}) == 1
        )
