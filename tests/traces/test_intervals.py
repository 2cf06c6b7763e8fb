from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regress.traces.intervals import Interval, Within, complement, intersection, length, union, without

INTERVALS = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60)), max_size=12)


def cells(intervals: list[Interval]) -> set[int]:
    """The obvious reference: the whole numbers that start a covered unit."""
    return {at for start, end in intervals for at in range(int(start), int(end))}


def test_touching_and_nested_intervals_become_one() -> None:
    assert union([(5, 7), (0, 3), (1, 2), (3, 5), (9, 9)]) == [(0, 7)]


@given(INTERVALS, INTERVALS)
def test_sets_of_times_are_sets(left: list[Interval], right: list[Interval]) -> None:
    one, other = union(left), union(right)
    assert cells(one) == cells(left)
    assert cells(intersection(one, other)) == cells(left) & cells(right)
    assert cells(without(one, other)) == cells(left) - cells(right)
    assert cells(complement(one, 10, 40)) == set(range(10, 40)) - cells(left)
    assert length(one) == len(cells(left))


@given(INTERVALS, st.integers(0, 60))
def test_a_time_is_within_with_the_ends(intervals: list[Interval], time: int) -> None:
    expected = any(start <= time <= end for start, end in intervals if end > start)
    assert (time in Within(intervals)) is expected


def test_nothing_is_covered_by_nothing() -> None:
    assert without([], [(0, 1)]) == []
    assert complement([], 0, 2) == [(0, 2)]
    assert length([]) == pytest.approx(0)
