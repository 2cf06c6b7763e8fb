from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regress.stats.ttests import holm

ps = st.lists(st.floats(0, 1), max_size=12)


def rejected_step_by_step(values: list[float], alpha: float) -> set[int]:
    """Holm's procedure as it is described: from the smallest p on, stop at the first above alpha / (those left)."""
    rejected: set[int] = set()
    for index in sorted(range(len(values)), key=lambda place: values[place]):
        if values[index] * (len(values) - len(rejected)) > alpha:
            break
        rejected.add(index)
    return rejected


def test_the_known_example() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])


def test_one_test_needs_no_adjustment() -> None:
    assert holm([0.04]) == [0.04]
    assert holm([]) == []


@given(ps, st.floats(0.001, 0.999))
def test_agrees_with_the_procedure(values: list[float], alpha: float) -> None:
    assert {i for i, p in enumerate(holm(values)) if p <= alpha} == rejected_step_by_step(values, alpha)


@given(ps)
def test_adjusted_is_no_smaller_and_keeps_the_order(values: list[float]) -> None:
    adjusted = holm(values)
    assert all(p <= a <= 1 for p, a in zip(values, adjusted, strict=True))
    by_p = [a for _, a in sorted(zip(values, adjusted, strict=True))]
    assert by_p == sorted(by_p)


@given(ps)
def test_order_of_the_tests_does_not_matter(values: list[float]) -> None:
    assert holm(values[::-1]) == holm(values)[::-1]


@pytest.mark.parametrize("p", [-0.1, 1.1, float("nan")])
def test_what_is_no_p_is_refused(p: float) -> None:
    with pytest.raises(ValueError, match="p value"):
        holm([0.5, p])
