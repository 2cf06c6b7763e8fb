from __future__ import annotations

import math
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regress.measure.stopping import enough, round_value, valid
from regress.measure.wire import Protocol

SHORT = Protocol("gpu_time")


def test_twenty_tight_samples_are_enough() -> None:
    assert not enough([10e-6] * 19, SHORT)
    assert enough([10e-6] * 20, SHORT)


def test_wide_samples_are_taken_until_the_median_is_known_to_half_a_percent() -> None:
    wide = [10e-6 * (1 + 0.05 * (-1) ** i) for i in range(20)]
    assert not enough(wide, SHORT)
    assert enough(wide * 10, SHORT), "200 are the most"


def test_a_tenth_of_a_second_ends_sampling_but_not_below_five() -> None:
    assert not enough([0.06, 0.05, 0.06, 0.06], SHORT)
    assert enough([0.06, 0.05, 0.06, 0.06, 0.05], SHORT)
    assert enough([0.6, 0.6, 0.6], SHORT), "three where a call takes over half a second"
    assert not enough([0.6, 0.6], SHORT)


def test_a_declared_count_is_kept_to() -> None:
    three = Protocol("wall_time", samples_min=3, samples_max=3)
    assert not enough([0.2, 0.2], three)
    assert enough([0.2, 0.9, 0.4], three)


def test_windows_count_with_all_their_calls() -> None:
    assert enough([0.001 + 0.0005 * (i % 2) for i in range(6)], Protocol("gpu_time", calls=20))


def test_no_samples_are_never_enough() -> None:
    assert not enough([], SHORT)


def test_the_value_is_the_median_and_on_a_coarse_clock_a_trimmed_mean() -> None:
    assert round_value([1.0, 2.0, 10.0], step_s=0.001) == 2.0
    coarse = [4e-6, 4e-6, 5e-6, 5e-6, 5e-6]
    assert round_value(coarse, step_s=1e-6) == pytest.approx((4e-6 + 5e-6 + 5e-6) / 3)
    assert round_value(coarse, step_s=1e-6, calls=10) == 5e-6, "ten calls a window: fine enough"


@given(st.lists(st.floats(1e-7, 1.0), min_size=1, max_size=50))
def test_the_value_lies_among_the_samples(samples: list[float]) -> None:
    for step in (0.0, 1e-3):
        value = round_value(samples, step)
        assert min(samples) * (1 - 1e-12) <= value <= max(samples) * (1 + 1e-12)
    assert round_value(samples) == statistics.median(samples)


@pytest.mark.parametrize("sample", [-1e-6, 0.0, math.nan, math.inf])
def test_an_impossible_time_is_invalid(sample: float) -> None:
    assert not valid(sample)
