from __future__ import annotations

import math
import statistics
from statistics import fmean, stdev

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from regress.stats.summary import geomean, mean_and_variance, median, summarize

positive = st.floats(1e-9, 1e9)
samples = st.lists(positive, min_size=2, max_size=12)


def test_interval_is_the_t_interval_of_the_logarithms() -> None:
    values = [1.0, 1.1, 0.95, 1.3, 1.02]
    logs = [math.log(value) for value in values]
    low, high = stats.t.interval(0.9, len(logs) - 1, loc=fmean(logs), scale=stats.sem(logs))
    summary = summarize(values, 0.9)
    assert summary.center == pytest.approx(stats.gmean(values))
    assert (summary.low, summary.high) == pytest.approx((math.exp(low), math.exp(high)))
    assert summary.spread == pytest.approx(stdev(logs))
    assert (summary.n, summary.confidence) == (5, 0.9)


def test_one_value_is_its_own_interval() -> None:
    summary = summarize([0.3])
    assert (summary.center, summary.low, summary.high, summary.n, summary.spread) == (0.3, 0.3, 0.3, 1, 0.0)


@given(positive, st.integers(2, 30))
def test_equal_values_have_no_spread_at_all(value: float, n: int) -> None:
    summary = summarize([value] * n)
    assert (summary.center, summary.low, summary.high, summary.spread) == (value, value, value, 0.0)


def test_values_that_have_no_logarithm_are_summarised_plainly() -> None:
    values = [0.0, 2.0, 4.0, -1.0]
    low, high = stats.t.interval(0.95, 3, loc=fmean(values), scale=stats.sem(values))
    summary = summarize(values)
    assert summary.center == pytest.approx(1.25)
    assert (summary.low, summary.high) == pytest.approx((low, high))
    assert summary.spread == pytest.approx(stdev(values) / 1.25)


def test_spread_around_a_centre_of_zero_is_infinite() -> None:
    assert summarize([-1.0, 1.0]).spread == math.inf
    assert summarize([0.0, 0.0]).spread == 0.0


def test_values_of_any_size_do_not_overflow() -> None:
    summary = summarize([1e-300, 1e300])
    assert summary.low == 0.0
    assert summary.high == math.inf
    assert summary.center == pytest.approx(1.0)
    assert summarize([0.0, 1e308, 1.5e308]).high == math.inf


@given(samples, st.randoms(use_true_random=False))
def test_order_does_not_matter(values: list[float], random: object) -> None:
    shuffled = list(values)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert summarize(shuffled) == summarize(values)


@given(samples, st.floats(1e-6, 1e6))
def test_scaling_scales_the_centre_and_leaves_the_spread(values: list[float], factor: float) -> None:
    scaled, summary = summarize([factor * value for value in values]), summarize(values)
    assert scaled.center == pytest.approx(factor * summary.center)
    assert scaled.spread == pytest.approx(summary.spread, abs=1e-9)


@given(samples)
def test_the_interval_holds_the_centre_and_the_centre_lies_among_the_values(values: list[float]) -> None:
    summary = summarize(values)
    assert summary.low <= summary.center <= summary.high
    assert min(values) * (1 - 1e-12) <= summary.center <= max(values) * (1 + 1e-12)


@given(samples)
def test_mean_and_variance_agree_with_the_plain_formulas(values: list[float]) -> None:
    mean, variance = mean_and_variance(values)
    assert mean == pytest.approx(fmean(values))
    assert math.sqrt(variance) == pytest.approx(stdev(values), abs=1e-7 * max(values))


@pytest.mark.parametrize("values", [[], [1.0, math.nan], [math.inf]])
def test_what_cannot_be_summarised_is_refused(values: list[float]) -> None:
    with pytest.raises(ValueError, match="values"):
        summarize(values)


@pytest.mark.parametrize("confidence", [0.0, 1.0, 95.0])
def test_a_confidence_is_a_share(confidence: float) -> None:
    with pytest.raises(ValueError, match="confidence"):
        summarize([1.0, 2.0], confidence)


def test_geomean_of_ratios() -> None:
    summary = geomean([2.0, 0.5, 1.0])
    assert summary.center == pytest.approx(1.0)
    assert summary.low * summary.high == pytest.approx(1.0)
    assert summary.n == 3


@pytest.mark.parametrize("ratios", [[1.0, 0.0], [1.0, -2.0], []])
def test_geomean_needs_positive_ratios(ratios: list[float]) -> None:
    with pytest.raises(ValueError):
        geomean(ratios)


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1))
def test_the_median_of_finite_values_is_one_between_them(values: list[float]) -> None:
    middle = median(values)
    assert math.isfinite(middle)
    assert statistics.median_low(values) <= middle <= statistics.median_high(values)
