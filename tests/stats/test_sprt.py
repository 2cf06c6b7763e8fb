"""The sequential test between two levels."""

from __future__ import annotations

import math
import random
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from regress.stats.sprt import CLIP, TAILS, log_likelihood_ratio, pooled_sd, values_to_decide

values = st.lists(st.floats(-1, 1), min_size=1, max_size=10)
levels = st.floats(-1, 1)


@given(st.floats(-0.2, 0.3), st.floats(0.01, 0.2), st.integers(1, 30))
def test_agrees_with_the_densities_of_scipy(value: float, sd: float, freedom: int) -> None:
    tails = min(freedom, TAILS)
    densities = [stats.t.logpdf(value, tails, loc=level, scale=sd) for level in (0.1, 0.0)]
    expected = max(-CLIP, min(CLIP, densities[0] - densities[1]))
    assert log_likelihood_ratio([value], 0.0, 0.1, sd, freedom) == pytest.approx(expected, abs=1e-9)


@given(values, levels, levels, st.floats(0, 10))
def test_swapping_the_levels_changes_the_sign(values: list[float], low: float, high: float, sd: float) -> None:
    one, other = log_likelihood_ratio(values, low, high, sd), log_likelihood_ratio(values, high, low, sd)
    assert one == pytest.approx(-other, abs=1e-9)


@given(values, levels, levels, st.floats(0, 10))
def test_no_value_says_more_than_the_clip(values: list[float], low: float, high: float, sd: float) -> None:
    assert abs(log_likelihood_ratio(values, low, high, sd)) <= CLIP * len(values) + 1e-9


def test_an_outlier_says_less_than_a_value_in_place() -> None:
    assert 0 < log_likelihood_ratio([5.0], 0.0, 0.1, 0.05) < log_likelihood_ratio([0.1], 0.0, 0.1, 0.05)


def test_without_deviation_the_nearer_level_has_it() -> None:
    assert log_likelihood_ratio([0.06, 0.04, 0.05], 0.0, 0.1, 0.0) == 0.0
    assert log_likelihood_ratio([0.06], 0.0, 0.1, 0.0) == CLIP
    with pytest.raises(ValueError, match="standard deviation"):
        log_likelihood_ratio([0.1], 0.0, 1.0, -1.0)


def test_how_many_values_decide() -> None:
    assert values_to_decide(0.0, 0.1, 0.0, 4.6) == pytest.approx(4.6 / CLIP)
    assert values_to_decide(0.0, 0.1, 0.05, 4.6) < values_to_decide(0.0, 0.1, 0.1, 4.6)
    assert values_to_decide(0.0, 0.0, 0.1, 4.6) == math.inf


def test_the_deviation_is_that_within_groups() -> None:
    random_ = random.Random(1)
    groups = [[random_.gauss(center, 0.02) for _ in range(8)] for center in range(40)]
    sd, freedom = pooled_sd(groups)
    assert freedom == 280
    assert sd == pytest.approx(0.02, rel=0.1)
    groups[0][0] += 1.0
    assert pooled_sd(groups)[0] == pytest.approx(sd, rel=0.05), "one outlier is damped"
    assert pooled_sd([[1.0], []]) == (0.0, 0)
    assert pooled_sd([[1.0, 1.0, 1.0]]) == (0.0, 2)


@given(st.lists(st.floats(-1, 1), min_size=3, max_size=12))
def test_damping_never_adds(group: list[float]) -> None:
    assert pooled_sd([group])[0] <= statistics.stdev(group) * (1 + 1e-9) + 1e-12
