"""Values from ratios: what all of them agree on is found, and unlinked items are groups of their own."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regress.stats.ratios import Ratio, values_from


@given(st.lists(st.floats(-2, 2), min_size=2, max_size=12), st.randoms(use_true_random=False))
def test_ratios_that_agree_give_the_values_they_are_of(logs: list[float], chance: random.Random) -> None:
    tree = [(at, chance.randrange(at)) for at in range(1, len(logs))]
    more = [(chance.randrange(len(logs)), chance.randrange(len(logs))) for _ in range(5)]
    by_item = values_from(
        [Ratio(one, other, logs[one] - logs[other], chance.uniform(0.1, 10)) for one, other in [*tree, *more]]
    )
    last = len(logs) - 1
    assert {at: entry[1] for at, entry in by_item.items()} == dict.fromkeys(range(len(logs)), last)
    assert [by_item[at][0] for at in range(len(logs))] == pytest.approx([log - logs[last] for log in logs], abs=1e-9)


def test_ratios_that_disagree_share_the_difference_by_their_weights() -> None:
    by_item = values_from([Ratio(0, 1, 0.0, 3.0), Ratio(0, 1, 0.4, 1.0)])
    assert by_item[0][0] == pytest.approx(0.1)
    around = values_from([Ratio(0, 1, 0.1, 1.0), Ratio(1, 2, 0.1, 1.0), Ratio(0, 2, 0.5, 1.0)])
    assert [around[at][0] for at in (0, 1)] == pytest.approx([0.4, 0.2])


def test_what_no_ratio_links_is_a_group_of_its_own() -> None:
    by_item = values_from([Ratio(0, 4, 1.0, 1.0), Ratio(7, 2, math.log(2), 1.0), Ratio(3, 3, 5.0, 1.0)])
    assert {at: entry[1] for at, entry in by_item.items()} == {0: 4, 4: 4, 2: 7, 7: 7}
    assert by_item[2][0] == pytest.approx(-math.log(2))
    assert values_from([]) == {}


def test_one_far_anchor_holds_a_long_chain() -> None:
    """Ratios with an error of 1 % each: 300 along a chain are off by a tenth, and with one each to the first item by little."""
    chance = random.Random(1)
    chain = [Ratio(at, at - 1, chance.gauss(0, 0.01), 1.0) for at in range(1, 300)]
    anchored = [Ratio(at, 0, chance.gauss(0, 0.01), 1.0) for at in range(1, 300)]
    alone, held = (
        max(abs(value) for value, _ in values_from(those).values()) for those in (chain, [*chain, *anchored])
    )
    assert alone > 0.1
    assert held < 0.03
