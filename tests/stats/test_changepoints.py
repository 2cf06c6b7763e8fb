from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regress.stats.changepoints import REACH, changepoints

seeds = st.integers(0, 2**32 - 1)


def series(seed: int, *parts: tuple[int, float], noise: float = 0.01) -> list[float]:
    """Values with lognormal noise; of each part how many, and their level."""
    draw = np.random.default_rng(seed)
    return [level * math.exp(noise * draw.normal()) for n, level in parts for _ in range(n)]


def places(values: list[Any], effect: float = 0.02) -> list[int]:
    return [step.index for step in changepoints(values, effect)]


STEPS = ((40, 1.0), (25, 1.2), (30, 1.05))


@given(seeds, st.floats(1e-9, 1e9))
def test_scaling_all_values_leaves_the_steps(seed: int, factor: float) -> None:
    values = series(seed, *STEPS)
    there, scaled = changepoints(values), changepoints([factor * value for value in values])
    assert [step.index for step in there] == [40, 65]
    assert [(step.index, step.earliest, step.latest) for step in scaled] == [
        (step.index, step.earliest, step.latest) for step in there
    ]
    for one, other in zip(there, scaled, strict=True):
        assert (other.ratio, other.low, other.high) == pytest.approx((one.ratio, one.low, one.high))
        assert (other.before, other.after) == pytest.approx((factor * one.before, factor * one.after))


@given(seeds)
def test_reversing_mirrors_the_steps_and_inverts_the_ratios(seed: int) -> None:
    values = series(seed, *STEPS)
    there, back = changepoints(values), changepoints(values[::-1])[::-1]
    assert [len(values) - step.index for step in back] == [step.index for step in there]
    assert [len(values) - step.latest for step in back] == [step.earliest for step in there]
    assert [1 / step.ratio for step in back] == pytest.approx([step.ratio for step in there])
    assert [1 / step.high for step in back] == pytest.approx([step.low for step in there])


@given(st.integers(0, 120), st.floats(1e-12, 1e12))
def test_a_constant_series_has_none(n: int, value: float) -> None:
    assert changepoints([value] * n) == []


@given(seeds, st.integers(1, 300))
def test_values_far_before_a_step_do_not_move_it(seed: int, more: int) -> None:
    # Beyond REACH only the noise and the penalty know of them.
    values = series(seed, (REACH + 10, 1.0), (20, 1.06))
    before = series(seed + 1, (more, 1.0))
    (alone,), (among,) = changepoints(values), changepoints(before + values)
    assert abs(among.index - more - alone.index) <= 1
    assert among.ratio == pytest.approx(alone.ratio, rel=0.005)


@given(seeds, st.data())
def test_gaps_count_as_places_and_change_nothing_else(seed: int, data: st.DataObject) -> None:
    values: list[float | None] = list(series(seed, *STEPS))
    gap = st.sampled_from([None, math.nan, math.inf, 0.0, -1.0])
    expected = changepoints(values)
    marks = list(range(len(values)))
    for _ in range(data.draw(st.integers(0, 8))):
        at = data.draw(st.integers(0, len(values)))
        values.insert(at, data.draw(gap))
        marks.insert(at, -1)
    steps = changepoints(values)
    assert [marks[step.index] for step in steps] == [step.index for step in expected]
    assert [step.ratio for step in steps] == [step.ratio for step in expected]


def test_a_step_is_sized_with_its_interval() -> None:
    (step,) = changepoints(series(1, (60, 2e-5), (40, 2.2e-5), noise=0.005))
    assert (step.index, step.earliest, step.latest, step.brief) == (60, 60, 60, False)
    assert step.before == pytest.approx(2e-5, rel=0.003)
    assert step.after == pytest.approx(2.2e-5, rel=0.003)
    assert step.low < 1.1 < step.high
    assert step.high - step.low < 0.01


def test_the_interval_holds_the_true_ratio_and_the_range_the_true_place_as_often_as_they_say() -> None:
    steps = [step for seed in range(300) for step in changepoints(series(seed, (50, 1.0), (50, 1.06), noise=0.025))]
    assert len(steps) > 290
    assert sum(step.low <= 1.06 <= step.high for step in steps) / len(steps) > 0.88
    assert sum(step.earliest <= 50 <= step.latest for step in steps) / len(steps) > 0.93
    assert sum(step.index == 50 for step in steps) / len(steps) < 0.8  # so the range says something


@settings(max_examples=30)
@given(seeds, st.sampled_from([6, 12, 30, 200]), st.sampled_from([0.003, 0.05]))
def test_noise_alone_has_hardly_ever_a_step(seed: int, n: int, noise: float) -> None:
    draws = [changepoints(series(seed + k, (n, 1.0), noise=noise)) for k in range(5)]
    assert sum(map(len, draws)) <= 1


def test_drifting_noise_is_no_chain_of_steps() -> None:
    draw = np.random.default_rng(3)
    counts = []
    for _ in range(20):
        noise, level = [], 0.0
        for _ in range(300):
            level = 0.5 * level + 0.02 * draw.normal()
            noise.append(math.exp(level))
        counts.append(len(changepoints(noise)))
    assert sum(counts) <= 1


def test_noise_that_follows_itself_around_one_step_has_that_step_alone() -> None:
    """Each value takes half of its deviation from the one before it."""
    alone = 0
    for seed in range(20):
        draw, deviation, values = np.random.default_rng(seed), 0.0, []
        for place in range(120):
            deviation = 0.5 * deviation + math.sqrt(0.75) * 0.01 * draw.normal()
            values.append(1e-3 * (1.1 if place >= 60 else 1.0) * math.exp(deviation))
        steps = changepoints(values, 0.02)
        assert any(abs(step.index - 60) <= 2 for step in steps)
        alone += len(steps) == 1
    assert alone >= 19


def test_smaller_steps_than_asked_for_are_passed_over() -> None:
    values = series(4, (40, 1.0), (40, 1.03), noise=0.003)
    assert places(values, 0.02) == [40]
    assert places(values, 0.05) == []
    with pytest.raises(ValueError, match="above zero"):
        changepoints(values, 0.0)


def test_outliers_are_no_steps_and_hide_none() -> None:
    values = series(5, (50, 1.0), (50, 1.1), noise=0.005)
    for at, factor in ((10, 3.0), (11, 2.0), (30, 0.4), (45, 1.5), (70, 5.0)):
        values[at] *= factor
    (step,) = changepoints(values)
    assert step.index == 50
    assert step.ratio == pytest.approx(1.1, rel=0.005)


def test_up_and_down_again_are_two_steps() -> None:
    up, down = changepoints(series(6, (30, 1.0), (6, 1.15), (30, 1.0)))
    assert (up.index, down.index) == (30, 36)
    assert up.ratio * down.ratio == pytest.approx(1.0, rel=0.02)


@pytest.mark.parametrize(("tail", "brief"), [([1.3], True), ([1.3, 1.31], True), ([1.3, 1.31, 1.29], False)])
def test_a_level_is_brief_until_three_values_hold_it(tail: list[float], brief: bool) -> None:
    (step,) = changepoints([*series(7, (30, 1.0)), *tail])
    assert (step.index, step.brief) == (30, brief)
    assert step.ratio == pytest.approx(1.3, rel=0.02)


def test_of_two_last_values_on_both_sides_of_the_level_the_last_may_be_a_new_one() -> None:
    (step,) = changepoints([*series(8, (30, 1.0)), 1.3, 0.7])
    assert (step.index, step.brief) == (31, True)
    assert step.ratio == pytest.approx(0.7, rel=0.02)


def test_values_that_repeat_exactly_need_no_noise() -> None:
    values = [512.0] * 12 + [640.0] * 4 + [641.0] * 9
    (step,) = changepoints(values)
    assert (step.index, step.earliest, step.latest) == (12, 12, 12)
    assert step.ratio == pytest.approx(1.25, rel=0.003)


@pytest.mark.parametrize("values", [[], [1.0], [1.0, 2.0, 3.0], [None] * 9, [0.0] * 9])
def test_too_little_says_nothing(values: list[float | None]) -> None:
    assert changepoints(values) == []


@pytest.mark.parametrize(("before", "after"), [(3, 3), (4, 4), (3, 9), (6, 5)])
def test_a_clear_step_is_seen_in_a_short_series(before: int, after: int) -> None:
    """A few commits are all that there are at first, and a step in their middle must not pass for their noise."""
    runs = [places(series(seed, (before, 1.0), (after, 1.2), noise=0.003), 0.05) for seed in range(100)]
    assert runs.count([before]) == 100
    quiet = [places(series(seed, (before + after, 1.0), noise=0.01), 0.05) for seed in range(500)]
    assert quiet.count([]) == 500


def test_two_clear_steps_are_seen_in_a_short_series() -> None:
    runs = [places(series(seed, (4, 1.0), (4, 1.3), (4, 1.0), noise=0.003), 0.05) for seed in range(100)]
    assert runs.count([4, 8]) == 100
