"""Which commits of a range come next: the ends, then the middles of gaps, soonest where something changed."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regress.commands.sweep.order import evenly, next_places

pytestmark = pytest.mark.usefixtures("dated")


def wanted(pattern: str) -> list[bool]:
    """ "o" is to be measured, "#" is measured."""
    return [letter == "o" for letter in pattern]


@pytest.mark.parametrize(
    ("pattern", "order"),
    [
        ("ooooooooo", [8, 0, 4, 6, 2, 7, 5, 3, 1]),
        ("#oooo", [4, 2, 3, 1]),
        ("#o#ooooo#", [5, 6, 3, 7, 4, 1]),
        ("o", [0]),
        ("###", []),
    ],
)
def test_ends_then_middles_of_the_longest_gaps(pattern: str, order: list[int]) -> None:
    assert next_places(wanted(pattern), (), len(pattern)) == order


def test_a_gap_that_a_change_lies_in_comes_before_longer_ones() -> None:
    pattern = wanted("#oo#" + "o" * 12 + "#")
    assert next_places(pattern, (), 1) == [9]
    assert next_places(pattern, {2, 3}, 2) == [1, 9], "what is left of it is short"
    assert next_places(wanted("#oo#" + "o" * 40 + "#"), {2}, 1) == [3 + 20], "a very long one is looked into first"


@given(st.lists(st.booleans(), max_size=40), st.sets(st.integers(0, 39), max_size=5), st.integers(0, 50))
def test_each_that_is_wanted_comes_once(pattern: list[bool], changed: set[int], count: int) -> None:
    places = next_places(pattern, changed, count)
    assert len(places) == len(set(places)) == min(count, sum(pattern))
    assert all(pattern[place] for place in places)
    assert places == next_places(pattern, changed, 100)[:count], "asking for more changes nothing about the first ones"


@given(st.integers(0, 200), st.integers(1, 200))
def test_steps_are_spread_evenly_from_end_to_end(count: int, steps: int) -> None:
    places = evenly(count, steps)
    assert len(places) == len(set(places)) == min(count, steps)
    assert places == sorted(places)
    if places:
        assert places[-1] == count - 1
    if len(places) > 1:
        gaps = [after - before for before, after in pairwise(places)]
        assert places[0] == 0
        assert max(gaps) - min(gaps) <= 1
