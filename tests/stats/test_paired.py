"""The test of pairs, beside SciPy's."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from regress.stats.modes import jumps
from regress.stats.ttests import pair_spread, paired

SMALL = st.floats(-0.5, 0.5).map(lambda value: round(value, 6))


@given(st.lists(SMALL, min_size=2, max_size=4).filter(lambda values: len(set(values)) > 1))
def test_of_few_pairs_it_is_students_test(differences: list[float]) -> None:
    test, expected = paired(differences), stats.ttest_1samp(differences, 0.0)
    interval = expected.confidence_interval(0.95)
    assert test.p == pytest.approx(expected.pvalue, rel=1e-6)
    assert test.df == expected.df
    assert (test.low, test.high) == pytest.approx((math.exp(interval.low), math.exp(interval.high)), rel=1e-9)
    assert test.ratio == pytest.approx(math.exp(np.mean(differences)), rel=1e-9)


@given(st.lists(SMALL, min_size=5, max_size=30, unique=True))
def test_of_more_it_is_that_of_a_trimmed_mean(differences: list[float]) -> None:
    test = paired(differences)
    cut = int(0.2 * len(differences))
    winsorized = np.asarray(stats.mstats.winsorize(np.array(differences), limits=(0.2, 0.2)))
    error = winsorized.std(ddof=1) / ((1 - 2 * cut / len(differences)) * math.sqrt(len(differences)))
    assert test.ratio == pytest.approx(math.exp(stats.trim_mean(differences, 0.2)), rel=1e-9)
    assert test.df == len(differences) - 2 * cut - 1
    assert test.standard_error == pytest.approx(error, rel=1e-6)


def test_a_pair_that_is_far_off_hides_no_change() -> None:
    """Six pairs of a sort that became 7 % slower, one of whose processes lay badly in memory."""
    seen = [0.068, 0.069, 0.072, 0.068, 0.066, 0.233]
    test, plain = paired(seen), stats.ttest_1samp(seen, 0.0)
    assert test.p is not None
    assert test.p < 1e-4 < 0.01 < plain.pvalue
    assert test.ratio == pytest.approx(math.exp(0.06925), rel=1e-3)
    assert pair_spread(seen) == pytest.approx(1.2 * 1.4826 * 0.0015)


@pytest.mark.parametrize("count", [3, 4, 6, 9, 20])
def test_the_spread_of_few_pairs_is_right_in_the_mean(count: int) -> None:
    noise = np.random.default_rng(5).normal(0.0, 0.01, (6000, count))
    assert np.mean([pair_spread(list(row)) for row in noise]) == pytest.approx(0.01, rel=0.04)


def test_how_often_it_claims_where_nothing_changed() -> None:
    """Normal noise, and noise with strays: no more often than it says."""
    random = np.random.default_rng(3)
    for strays in (0.0, 0.1):
        noise = random.normal(0.0, 0.01, (4000, 10)) * np.where(random.random((4000, 10)) < strays, 10.0, 1.0)
        values = [paired(list(row)).p or 0.0 for row in noise]
        assert np.mean(np.array(values) < 0.05) < 0.06


@given(st.lists(SMALL, min_size=2, max_size=20))
def test_the_other_way_round_inverts_the_ratio(differences: list[float]) -> None:
    test, turned = paired(differences), paired([-difference for difference in differences])
    assert test.low is not None
    assert turned.high is not None
    assert test.ratio * turned.ratio == pytest.approx(1.0)
    assert test.low * turned.high == pytest.approx(1.0)
    assert test.p == pytest.approx(turned.p)


def test_one_pair_is_a_ratio_without_a_test() -> None:
    test = paired([math.log(1.07)])
    assert test.ratio == pytest.approx(1.07)
    assert (test.low, test.p, test.df) == (None, None, None)


@pytest.mark.parametrize(("differences", "p"), [([0.0, 0.0, 0.0], 1.0), ([0.1, 0.1], 0.0)])
def test_pairs_that_are_all_alike(differences: Sequence[float], p: float) -> None:
    test = paired(differences)
    assert (test.p, test.low) == (p, test.high)


@pytest.mark.parametrize("differences", [[], [math.nan, 0.1], [math.inf]])
def test_what_is_no_difference_is_refused(differences: Sequence[float]) -> None:
    with pytest.raises(ValueError, match="finite"):
        paired(differences)


def test_processes_with_two_levels_are_seen_in_the_differences_of_pairs() -> None:
    level = math.log(1.13)
    drawn = [0.0, level, -level, 0.002, level + 0.004, -0.003, -level, 0.001]
    assert jumps(drawn) == pytest.approx(level, rel=0.02)
    assert jumps([value + level for value in [0.001, 0.002, -0.003, 0.0, 0.004, 0.001, 0.0, 0.002]]) is None, "a change"
    assert jumps(list(np.random.default_rng(1).normal(0.0, 0.05, 12))) is None, "noise"
    assert jumps([0.0] * 8) is None
    assert jumps(drawn[:7]) is None, "too few"
