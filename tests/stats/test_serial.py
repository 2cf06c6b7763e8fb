"""Rounds that follow each other are told from rounds that do not."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regress.stats.serial import FEWEST, autocorrelation, follows


def draws(seed: int, count: int, correlation: float) -> list[float]:
    random = np.random.default_rng(seed)
    values = [random.normal()]
    for _ in range(count - 1):
        values.append(correlation * values[-1] + math.sqrt(1 - correlation**2) * random.normal())
    return [1e-5 * math.exp(0.01 * float(value)) for value in values]


def test_it_is_the_correlation_of_neighbours() -> None:
    values = draws(3, 400, 0.7)
    logs = np.log(values)
    assert autocorrelation(values) == pytest.approx(np.corrcoef(logs[:-1], logs[1:])[0, 1], abs=0.01)
    assert autocorrelation(values) == pytest.approx(0.7, abs=0.1)
    assert autocorrelation([1.0, 2.0] * 8) == pytest.approx(-15 / 16)


def test_a_difference_between_the_sides_is_no_following() -> None:
    base, head = draws(1, 12, 0.0), [1.5 * draw for draw in draws(2, 12, 0.0)]
    assert follows(base, head) is None
    assert follows([*base, *head]) is not None, "taken as one side it would be"


def test_independent_rounds_are_hardly_ever_said_to_follow() -> None:
    correlations = [follows(draws(seed, 10, 0.0), draws(seed + 5000, 10, 0.0)) for seed in range(2000)]
    assert sum(correlation is not None for correlation in correlations) <= 10
    correlations = [follows(draws(seed, 24, 0.9), draws(seed + 5000, 24, 0.9)) for seed in range(200)]
    assert sum(correlation is not None for correlation in correlations) > 150


@pytest.mark.parametrize("values", [[1.0] * 20, [1.0] * 4 + [2.0] * (FEWEST - 5), [0.0, *[1.0, 2.0] * 8]])
def test_where_nothing_can_be_said_nothing_is(values: list[float]) -> None:
    assert autocorrelation(values) is None
    assert autocorrelation(draws(1, 20, 0.5), values) is None
    assert follows(values) is None


@given(
    st.lists(st.floats(1e-9, 1e3), min_size=FEWEST, max_size=30).filter(lambda drawn: max(drawn) > 1.01 * min(drawn)),
    st.floats(1e-3, 1e3),
)
def test_scale_and_the_order_of_sides_do_not_matter(values: list[float], factor: float) -> None:
    other = draws(9, 10, 0.3)
    one = autocorrelation(values, other)
    assert one is not None
    assert -1 <= one <= 1
    assert autocorrelation(other, values) == pytest.approx(one)
    assert autocorrelation([factor * value for value in values], other) == pytest.approx(one, abs=1e-6)
