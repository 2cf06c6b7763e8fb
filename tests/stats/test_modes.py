from __future__ import annotations

import itertools
import math
import random
import statistics

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regress.stats.modes import CRITICAL, FALSE_POSITIVES, Modes, two_modes

logs = st.lists(st.integers(-300, 300).map(lambda number: number / 1000), min_size=4, max_size=9)
levels = st.lists(st.sampled_from([0.0, 0.001, 0.002, 0.12, 0.121, 0.123]), min_size=4, max_size=9)
sides = st.one_of(logs, levels)


def times(values: list[float]) -> list[float]:
    return [math.exp(value) for value in values]


def squares(values: list[float]) -> float:
    return sum((value - statistics.fmean(values)) ** 2 for value in values) if values else 0.0


def best_halves(values: list[float]) -> tuple[float, list[frozenset[int]]]:
    """The least sum of squares of any two clusters, by trying all of them, and the upper clusters that have it."""
    sums = {}
    for chosen in itertools.product((False, True), repeat=len(values)):
        upper = [value for value, up in zip(values, chosen, strict=True) if up]
        lower = [value for value, up in zip(values, chosen, strict=True) if not up]
        if upper and lower and min(upper) > max(lower):
            sums[frozenset(at for at, up in enumerate(chosen) if up)] = squares(upper) + squares(lower)
    least = min(sums.values(), default=math.inf)
    return least, [half for half, value in sums.items() if value <= least + 1e-12]


@given(
    st.lists(st.integers(-300, 300), min_size=8, max_size=10, unique=True), st.integers(4, 6), st.booleans(), st.data()
)
def test_agrees_with_trying_all_clusters(values: list[int], n: int, pulled: bool, data: st.DataObject) -> None:
    own = [value / 1000 for value in values]
    if pulled:
        own = [value / 20 + 0.5 * data.draw(st.booleans()) for value in own]
    base, head = own[:n], own[n:]
    if len(head) < 2:
        return
    least, uppers = best_halves(own)
    modes = two_modes(times(base), times(head))
    shared = [up for up in uppers if 0 < sum(at < n for at in up) < n and 0 < sum(at >= n for at in up) < len(own) - n]
    beyond = squares(base) + squares(head) - CRITICAL[len(own)] * least
    if abs(beyond) < 1e-9 or len(uppers) > 1:
        return
    assert (modes is not None) == (bool(shared) and beyond > 0)
    if modes is not None:
        assert modes.base_high == sum(at < n for at in shared[0])
        assert modes.head_high == sum(at >= n for at in shared[0])


def test_a_mixture_of_two_levels_is_taken_apart() -> None:
    base = [100.0, 101.0, 99.5, 113.0, 100.5, 100.2]
    head = [113.4, 112.8, 100.1, 113.1, 112.0, 113.9]
    modes = two_modes(base, head)
    assert modes is not None
    assert modes.apart == pytest.approx(1.13, rel=0.005)
    assert (modes.base_high, modes.base, modes.head_high, modes.head) == (1, 6, 5, 6)
    assert modes.ratio == pytest.approx(1.0, abs=0.005)


def test_what_is_left_at_equal_level_is_the_change() -> None:
    base = [1.0, 1.002, 1.501, 1.499, 1.0, 1.003]
    head = [value * 1.1 for value in [1.0, 1.5, 1.502, 1.498, 1.001, 1.5]]
    modes = two_modes(base, head)
    assert modes is not None
    assert modes.ratio == pytest.approx(1.1, rel=0.002)


def test_a_change_of_the_whole_side_is_none_of_levels() -> None:
    base = [100.0, 101.0, 99.5, 100.7, 100.5, 100.2]
    assert two_modes(base, [value * 1.13 for value in base]) is None
    assert two_modes([*base, 113.0], [value * 1.13 for value in base]) is None, "one outlier of the base"


def test_few_or_equal_values_have_no_modes() -> None:
    assert two_modes([1.0, 1.0, 2.0], [1.0, 2.0, 2.0, 2.0]) is None
    assert two_modes([1.0] * 6, [1.0] * 6) is None
    modes = two_modes([1.0, 1.0, 1.0, 2.0], [1.0, 2.0, 2.0, 2.0])
    assert modes == Modes(1.0, 2.0, 1, 4, 3, 4, 1.0)


@given(sides, sides)
def test_swapping_the_sides_mirrors_it(base: list[float], head: list[float]) -> None:
    there, back = two_modes(times(base), times(head)), two_modes(times(head), times(base))
    assert (there is None) == (back is None)
    if there is not None and back is not None:
        assert (there.base_high, there.head_high) == (back.head_high, back.base_high)
        assert there.ratio == pytest.approx(1 / back.ratio)


@given(sides, sides, st.sampled_from([1e-6, 0.5, 1024.0]), st.randoms(use_true_random=False))
def test_order_and_scale_do_not_matter(
    base: list[float], head: list[float], unit: float, shuffler: random.Random
) -> None:
    modes = two_modes(times(base), times(head))
    shuffled = times(base)
    shuffler.shuffle(shuffled)
    assert two_modes(shuffled, times(head)) == modes
    scaled = two_modes([series * 1024 for series in times(base)], [series * 1024 for series in times(head)])
    if modes is not None and scaled is not None:
        assert scaled.low == pytest.approx(1024 * modes.low)
        assert (scaled.base_high, scaled.head_high) == (modes.base_high, modes.head_high)


# -- calibration ---------------------------------------------------------------------------------------------------------


def statistics_of_noise(n: int, pairs: int, apart: float = 0.0) -> np.ndarray:
    """The statistic of so many pairs of normal sides, computed for all at once."""
    values = np.random.default_rng(n).normal(size=(pairs, n))
    values[:, n // 2 :] += apart
    around_sides = sum(part.var(axis=1) * part.shape[1] for part in np.split(values, [n // 2], axis=1))
    ordered = np.sort(values, axis=1)
    splits = [ordered[:, :size].var(axis=1) * size + ordered[:, size:].var(axis=1) * (n - size) for size in range(1, n)]
    return np.asarray(around_sides / np.min(splits, axis=0))


@pytest.mark.parametrize("n", CRITICAL)
def test_the_critical_values_are_those_of_noise(n: int) -> None:
    drawn = statistics_of_noise(n, 20_000)
    assert np.mean(drawn > CRITICAL[n]) == pytest.approx(FALSE_POSITIVES, abs=0.003)


@pytest.mark.parametrize("n", [12, 20, 48])
def test_sides_that_differ_are_called_bimodal_less_often_than_equal_ones(n: int) -> None:
    assert np.mean(statistics_of_noise(n, 20_000, apart=2.0) > CRITICAL[n]) < FALSE_POSITIVES / 10


@pytest.mark.parametrize("n", [4, 6, 12])
def test_noise_is_seldom_called_bimodal(n: int) -> None:
    random_ = np.random.default_rng(n)
    noise = [(times(list(random_.normal(0, 0.02, n))), times(list(random_.normal(0, 0.02, n)))) for _ in range(500)]
    assert sum(two_modes(*entry) is not None for entry in noise) <= 500 * FALSE_POSITIVES * 2
