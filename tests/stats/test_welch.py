from __future__ import annotations

import math
import random

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from regress.stats.ttests import Welch, min_detectable, smallest_significant, welch

positive = st.floats(1e-6, 1e6)
samples = st.lists(positive, min_size=2, max_size=10)


def logs(values: list[float]) -> list[float]:
    return [math.log(value) for value in values]


def varies(values: list[float]) -> bool:
    return max(values) > 1.001 * min(values)


@given(samples, samples, st.sampled_from([0.8, 0.95, 0.99]))
def test_agrees_with_scipy_on_logarithms(base: list[float], head: list[float], confidence: float) -> None:
    assume(varies(base) and varies(head))
    expected = stats.ttest_ind(logs(head), logs(base), equal_var=False)
    interval = expected.confidence_interval(confidence)
    test = welch(base, head, confidence)
    assert test.low is not None
    assert test.high is not None
    assert test.p == pytest.approx(expected.pvalue, rel=1e-6, abs=1e-12)
    assert test.df == pytest.approx(expected.df)
    assert math.log(test.ratio) == pytest.approx(sum(logs(head)) / len(head) - sum(logs(base)) / len(base), abs=1e-9)
    # The interval of two values each can reach beyond what a float holds.
    assert test.low == pytest.approx(math.exp(interval.low) if interval.low > -700 else 0.0, rel=1e-6, abs=1e-300)
    assert test.high == pytest.approx(math.exp(interval.high) if interval.high < 709 else math.inf, rel=1e-6)


@given(samples, samples, st.floats(0, 1))
def test_swapping_the_sides_inverts_the_ratio_and_leaves_p(base: list[float], head: list[float], step: float) -> None:
    there, back = welch(base, head, step=step), welch(head, base, step=step)
    assert back.ratio == pytest.approx(1 / there.ratio)
    assert there.low is not None
    assert back.high is not None
    assert there.low * back.high == pytest.approx(1.0) or (there.low, back.high) == (0.0, math.inf)
    assert back.p == pytest.approx(there.p)
    assert back.noise == pytest.approx(there.noise)


@given(samples, samples, st.randoms(use_true_random=False))
def test_order_does_not_matter(base: list[float], head: list[float], shuffler: random.Random) -> None:
    shuffled = list(base)
    shuffler.shuffle(shuffled)
    assert welch(shuffled, head) == welch(base, head)


@given(samples, samples, st.floats(1e-6, 1e6), st.floats(0, 1))
def test_scaling_both_sides_and_the_step_changes_nothing(
    base: list[float], head: list[float], factor: float, step: float
) -> None:
    assume(varies(base) and varies(head))
    test = welch(base, head, step=step)
    scaled = welch([factor * value for value in base], [factor * value for value in head], step=factor * step)
    assert scaled.ratio == pytest.approx(test.ratio, rel=1e-6)
    assert scaled.p == pytest.approx(test.p, rel=1e-6)
    assert scaled.df == pytest.approx(test.df, rel=1e-6)


@given(samples, samples)
def test_p_below_alpha_says_the_same_as_one_outside_the_interval(base: list[float], head: list[float]) -> None:
    test = welch(base, head, 0.95)
    assert test.low is not None
    assert test.high is not None
    assert test.p is not None
    assume(abs(test.p - 0.05) > 1e-9)
    assert (test.p < 0.05) == (not test.low <= 1 <= test.high)


def test_one_value_on_a_side_is_a_ratio_and_no_test() -> None:
    test = welch([1.0], [2.0, 2.1])
    assert test == Welch(test.ratio)
    assert test.ratio == pytest.approx(2.0494, abs=1e-4)
    assert welch([1.0, 1.1], [2.0]).p is None
    assert welch([1.0], [2.0]).low is None


@given(positive, st.integers(2, 8))
def test_equal_constants_are_no_difference(value: float, n: int) -> None:
    test = welch([value] * n, [value] * (n + 1))
    assert (test.ratio, test.low, test.high, test.p, test.noise) == (1.0, 1.0, 1.0, 1.0, 0.0)


def test_different_constants_are_the_limit_of_a_vanishing_spread() -> None:
    test = welch([1.0, 1.0], [1.2, 1.2, 1.2])
    assert (test.p, test.standard_error, test.df) == (0.0, 0.0, 3.0)
    assert test.low == test.high == test.ratio == pytest.approx(1.2)
    nearly = welch([1.0, 1.0 + 1e-9], [1.2, 1.2, 1.2 + 1e-9])
    assert nearly.p == pytest.approx(0.0, abs=1e-6)


def test_a_spread_on_one_side_only_has_the_degrees_of_freedom_of_that_side() -> None:
    test = welch([1.0, 1.0, 1.0], [1.1, 1.2, 1.3, 1.25])
    assert test.df == pytest.approx(3.0)


def test_ties_of_a_coarse_clock_are_no_certainty() -> None:
    """Values of 10 and 11 steps: without the step p would be 0."""
    step = 1e-6
    test = welch([10e-6] * 5, [11e-6] * 5, step=step)
    relative = [step / 10e-6, step / 11e-6]
    assert test.standard_error == pytest.approx(math.sqrt(sum(part**2 / 12 / 5 for part in relative)))
    assert test.p is not None
    assert test.p > 1e-5
    one_step = welch([1e-6] * 2, [2e-6] * 2, step=step)
    assert one_step.p is not None
    assert one_step.p > 0.05


def test_a_step_below_the_spread_changes_nothing() -> None:
    base, head = [1.0, 1.1, 0.9], [1.2, 1.0, 1.1]
    assert welch(base, head, step=1e-3) == welch(base, head)


@given(samples, samples, st.floats(0, 1e300))
def test_no_input_gives_what_is_no_number(base: list[float], head: list[float], step: float) -> None:
    test = welch(base, head, step=step)
    assert test.p is not None
    assert test.low is not None
    assert test.high is not None
    assert 0 <= test.p <= 1
    assert test.low <= test.ratio <= test.high


@pytest.mark.parametrize("values", [[], [0.0, 1.0], [-1.0, 1.0], [math.nan, 1.0], [math.inf, 1.0]])
def test_values_without_a_logarithm_are_refused(values: list[float]) -> None:
    with pytest.raises(ValueError, match="value"):
        welch(values, [1.0, 2.0])
    with pytest.raises(ValueError, match="value"):
        welch([1.0, 2.0], values)


def test_a_negative_step_is_refused() -> None:
    with pytest.raises(ValueError, match="clock step"):
        welch([1.0, 2.0], [1.0, 2.0], step=-1e-9)


def test_noise_is_the_change_that_would_just_have_been_significant() -> None:
    base, head = [1.0, 1.02, 0.99, 1.01], [1.01, 1.03, 0.98, 1.0]
    test = welch(base, head)
    assert test.noise is not None
    shift = (1 + test.noise) / test.ratio
    assert welch(base, [value * shift for value in head]).p == pytest.approx(0.05)


def test_a_stricter_level_needs_a_larger_change() -> None:
    assert smallest_significant(0.01, 8, 0.05 / 40) > smallest_significant(0.01, 8, 0.05) > 0.01


@given(st.floats(0, 0.2), st.floats(1, 50), st.floats(0.001, 0.5), st.floats(0, 0.5))
def test_min_detectable_lies_above_threshold_noise_and_floor(error: float, df: float, d: float, floor: float) -> None:
    ratio = min_detectable(error, df, d, floor=floor)
    assert ratio >= (1 + d) * (1 - 1e-12)
    assert ratio >= (1 + floor) * (1 - 1e-12)
    assert ratio >= 1 + smallest_significant(error, df, 0.05) - 1e-9
    if error > 1e-6:
        assert ratio > 1 + max(d, floor)


@pytest.mark.parametrize("spread", [0.01, 0.06])
def test_a_change_of_min_detectable_is_found_as_often_as_promised(spread: float) -> None:
    """Threshold above the noise (1 %) and noise above the threshold (6 %); the promise is a normal approximation."""
    rounds, d = 8, 0.05
    draw = random.Random(2)
    ratio = min_detectable(spread * math.sqrt(2 / rounds), 2 * rounds - 2, d)
    claims = 0
    for _ in range(400):
        base = [math.exp(draw.gauss(0, spread)) for _ in range(rounds)]
        head = [ratio * math.exp(draw.gauss(0, spread)) for _ in range(rounds)]
        test = welch(base, head)
        claims += test.p is not None and test.p < 0.05 and test.ratio > 1 + d
    assert 0.85 < claims / 400 < 0.95
