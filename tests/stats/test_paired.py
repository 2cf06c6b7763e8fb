"""Student's test of pairs, beside SciPy's."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from regress.stats.modes import jumps
from regress.stats.paired import paired

SMALL = st.floats(-0.5, 0.5).map(lambda value: round(value, 6))


@given(st.lists(SMALL, min_size=2, max_size=30).filter(lambda values: len(set(values)) > 1))
def test_it_is_scipys_test(differences: list[float]) -> None:
    found, expected = paired(differences), stats.ttest_1samp(differences, 0.0)
    interval = expected.confidence_interval(0.95)
    assert found.p == pytest.approx(expected.pvalue, rel=1e-6)
    assert found.df == expected.df
    assert (found.low, found.high) == pytest.approx((math.exp(interval.low), math.exp(interval.high)), rel=1e-9)
    assert found.ratio == pytest.approx(math.exp(np.mean(differences)), rel=1e-9)


@given(st.lists(SMALL, min_size=2, max_size=20))
def test_the_other_way_round_inverts_the_ratio(differences: list[float]) -> None:
    found, turned = paired(differences), paired([-each for each in differences])
    assert found.low is not None
    assert turned.high is not None
    assert found.ratio * turned.ratio == pytest.approx(1.0)
    assert found.low * turned.high == pytest.approx(1.0)
    assert found.p == pytest.approx(turned.p)


def test_one_pair_is_a_ratio_without_a_test() -> None:
    found = paired([math.log(1.07)])
    assert found.ratio == pytest.approx(1.07)
    assert (found.low, found.p, found.df) == (None, None, None)


@pytest.mark.parametrize(("differences", "p"), [([0.0, 0.0, 0.0], 1.0), ([0.1, 0.1], 0.0)])
def test_pairs_that_are_all_alike(differences: Sequence[float], p: float) -> None:
    found = paired(differences)
    assert (found.p, found.low) == (p, found.high)


@pytest.mark.parametrize("differences", [[], [math.nan, 0.1], [math.inf]])
def test_what_is_no_difference_is_refused(differences: Sequence[float]) -> None:
    with pytest.raises(ValueError, match="finite"):
        paired(differences)


def test_processes_with_two_levels_are_seen_in_the_differences_of_pairs() -> None:
    level = math.log(1.13)
    drawn = [0.0, level, -level, 0.002, level + 0.004, -0.003, -level, 0.001]
    assert jumps(drawn) == pytest.approx(level, rel=0.02)
    assert jumps([each + level for each in [0.001, 0.002, -0.003, 0.0, 0.004, 0.001, 0.0, 0.002]]) is None, "a change"
    assert jumps(list(np.random.default_rng(1).normal(0.0, 0.05, 12))) is None, "noise"
    assert jumps([0.0] * 8) is None
    assert jumps(drawn[:7]) is None, "too few"
