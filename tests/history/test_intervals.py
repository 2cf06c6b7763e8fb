from __future__ import annotations

import math

import pytest
from asv_runner.statistics import compute_stats
from hypothesis import given
from hypothesis import strategies as st

from regress.history.cells import median_interval, quantile

values = st.lists(st.floats(1e-6, 1e3), min_size=1, max_size=40)


@given(values)
def test_median_and_quartiles_are_those_of_asv(sample: list[float]) -> None:
    center, stats = compute_stats(sample, 1)
    ordered = sorted(sample)
    quartiles = [quantile(ordered, q) for q in (0.25, 0.5, 0.75)]
    assert quartiles == pytest.approx([stats["q_25"], center, stats["q_75"]], rel=1e-12)


@given(values)
def test_the_interval_is_that_of_asv(sample: list[float]) -> None:
    _, stats = compute_stats(sample, 1)
    low, high = median_interval(sorted(sample))
    size = max(sample)
    if len(sample) == 1:
        assert (low, high) == (-math.inf, math.inf) == (stats["ci_99_a"], stats["ci_99_b"])
    else:
        assert low == pytest.approx(stats["ci_99_a"], rel=1e-6, abs=1e-6 * size)
        assert high == pytest.approx(stats["ci_99_b"], rel=1e-6, abs=1e-6 * size)


@pytest.mark.parametrize("n", [2, 5, 7, 8, 9, 30])
def test_equal_values_have_an_interval_without_width(n: int) -> None:
    assert median_interval([0.5] * n) == (0.5, 0.5)


@given(st.lists(st.floats(-1e3, 1e3), min_size=2, max_size=12), st.floats(0.5, 1e6))
def test_the_interval_scales_and_mirrors_with_the_values(sample: list[float], factor: float) -> None:
    low, high = median_interval(sorted(sample))
    mirrored = median_interval(sorted(-factor * value for value in sample))
    tolerance = 1e-9 * factor * (high - low + max(map(abs, sample)) + 1e-300)
    assert mirrored == pytest.approx((-factor * high, -factor * low), rel=1e-9, abs=tolerance)


@pytest.mark.parametrize("unit", [5e-324, 1e-310, 1e-200, 1e200, 8e307])
def test_intervals_reach_as_far_as_floats(unit: float) -> None:
    low, high = median_interval([unit, unit * 1.5, unit * 2])
    assert low <= unit <= unit * 2 <= high
    assert median_interval([unit, unit, unit]) == (unit, unit)
    assert not math.isnan(sum(median_interval([-unit, 0.0, 5e-324, unit])))
