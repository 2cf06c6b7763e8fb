from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regress.stats.segmentation import segment

LEAST = 3


def levels(draw: np.random.Generator, lengths: list[int], jump: float, noise: float = 1.0) -> Any:
    """Values around levels that differ by `jump` or more from one to the next."""
    signs = draw.choice([-1, 1], len(lengths))
    heights = np.cumsum(signs * jump * (1 + draw.random(len(lengths))))
    return np.repeat(heights, lengths) + noise * draw.normal(size=sum(lengths))


def optimal(values: Any, penalty: float, least: int) -> list[int]:
    """Optimal partitioning as the paper has it: the best last segment of every prefix, over all places."""
    n = len(values)
    best, came_from = [0.0] + [math.inf] * n, [0] * (n + 1)
    for end in range(least, n + 1):
        for start in range(end - least + 1):
            part = values[start:end]
            cost = best[start] + float(((part - part.mean()) ** 2).sum()) + penalty
            if cost < best[end]:
                best[end], came_from[end] = cost, start
    starts, end = [], came_from[n]
    while end > 0:
        starts.append(end)
        end = came_from[end]
    return starts[::-1]


def cost(values: Any, starts: list[int], penalty: float) -> float:
    ends = [0, *starts, len(values)]
    parts = [values[low:high] for low, high in itertools.pairwise(ends)]
    return sum(float(((part - part.mean()) ** 2).sum()) + penalty for part in parts)


seeds = st.integers(0, 2**32 - 1)
lengths = st.lists(st.integers(6, 25), min_size=1, max_size=5)


@settings(deadline=None)
@given(seeds, lengths, st.floats(0, 8))
def test_costs_hardly_more_than_the_best_of_all_segmentations(seed: int, sizes: list[int], jump: float) -> None:
    values = levels(np.random.default_rng(seed), sizes, jump)
    penalty = 10 * math.log(len(values))
    places, best = segment(values, penalty, LEAST), optimal(values, penalty, LEAST)
    assert cost(values, best, penalty) <= cost(values, places, penalty) + 1e-6
    assert cost(values, places, penalty) <= cost(values, best, penalty) + 0.5 * penalty


@settings(deadline=None)
@given(seeds, st.lists(st.integers(12, 30), min_size=1, max_size=5))
def test_is_the_best_of_all_segmentations_where_levels_are_clear(seed: int, sizes: list[int]) -> None:
    values = levels(np.random.default_rng(seed), sizes, 6.0)
    penalty = 10 * math.log(len(values))
    assert segment(values, penalty, LEAST) == optimal(values, penalty, LEAST)


@given(seeds, lengths, st.floats(0, 8))
def test_reversing_mirrors(seed: int, sizes: list[int], jump: float) -> None:
    values = levels(np.random.default_rng(seed), sizes, jump)
    mirrored = [len(values) - start for start in segment(values[::-1].copy(), 20.0, LEAST)]
    assert mirrored[::-1] == segment(values, 20.0, LEAST)


@given(seeds, lengths, st.integers(2, 6))
def test_every_segment_has_its_least_length(seed: int, sizes: list[int], least: int) -> None:
    values = levels(np.random.default_rng(seed), sizes, 3.0)
    ends = [0, *segment(values, 1.0, least), len(values)]
    assert len(ends) == 2 or min(np.diff(ends)) >= least


def test_a_level_of_the_least_length_is_found() -> None:
    values = np.array([0.0] * 20 + [9.0] * 3 + [0.0] * 20)
    assert segment(values, 1.0, 3) == [20, 23]
    assert segment(values, 1.0, 4) != [20, 23]


@pytest.mark.parametrize("n", [1, 5, 6, 100])
def test_one_level_is_one_segment(n: int) -> None:
    assert segment(np.full(n, 4.2), 1e-9, 3) == []
