from __future__ import annotations

import math
import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regress.compare import compare
from regress.model import Round, Verdict

from .rounds import MIB, NOISY, QUIET, SETTINGS, broken, one, rounds, scaled

MIRROR = {
    Verdict.REGRESSED: Verdict.IMPROVED,
    Verdict.IMPROVED: Verdict.REGRESSED,
    Verdict.NEW: Verdict.GONE,
    Verdict.GONE: Verdict.NEW,
}

sides = st.lists(
    st.one_of(
        st.just([]),
        st.sampled_from(["error", "skipped"]).map(broken),
        st.builds(
            lambda center, factors, memory, unit: rounds(
                gpu_time=scaled(center, factors),
                wall_time=scaled(2 * center, factors),
                peak_memory=[memory] * 2,
                value=scaled(10.0, factors),
                exact={"peak_memory"},
            ),
            st.sampled_from([1e-6, 100e-6, 104e-6, 110e-6, 150e-6]),
            st.sampled_from([QUIET, NOISY, QUIET[:1], QUIET[:2]]),
            st.sampled_from([0.0, 512.0, MIB, 1.05 * MIB, 3 * MIB]),
            st.just(""),
        ),
        st.lists(st.sampled_from([0.0, 1e-4, 2e-4, math.nan]), min_size=1, max_size=5).map(
            lambda values: rounds(gpu_time=values, wall_time=scaled(1e-3)[: len(values)])
        ),
        st.just(rounds(wall_time=scaled(1e-3))),
    ),
    min_size=3,
    max_size=3,
)


def named(sides: list[list[Round]]) -> list[Round]:
    """The rounds of several cases, by position."""
    return [replace(record, name=f"ops.case_{index}") for index, case in enumerate(sides) for record in case]


@given(sides, sides)
def test_swapping_the_sides_mirrors_the_verdicts(base: list[list[Round]], head: list[list[Round]]) -> None:
    there = compare(named(base), named(head), None, SETTINGS)
    back = compare(named(head), named(base), None, SETTINGS)
    assert len(there) == len(back)
    for one_way, other_way in zip(there, back, strict=True):
        assert (one_way.case, one_way.metric.name, one_way.gates) == (
            other_way.case,
            other_way.metric.name,
            other_way.gates,
        )
        one_sided = {one_way.verdict, other_way.verdict} & {Verdict.NEW, Verdict.GONE}
        if one_sided and (one_way.head_failure or one_way.base_failure or other_way.head_failure):
            continue  # what fails and exists on head only has failed; on base only it is gone
        assert other_way.verdict is MIRROR.get(one_way.verdict, one_way.verdict)
        assert other_way.p_adjusted == pytest.approx(one_way.p_adjusted, nan_ok=True)
        if one_way.ratio:
            assert other_way.ratio == pytest.approx(1 / one_way.ratio)
        assert (one_way.base, one_way.head) == (other_way.head, other_way.base)


@given(sides, sides, st.randoms(use_true_random=False))
def test_the_order_of_the_rounds_does_not_matter(
    base: list[list[Round]], head: list[list[Round]], shuffler: random.Random
) -> None:
    first = compare(named(base), named(head), None, SETTINGS)
    mixed_base, mixed_head = named(base), named(head)
    shuffler.shuffle(mixed_base)
    shuffler.shuffle(mixed_head)
    assert compare(mixed_base, mixed_head, None, SETTINGS) == first


@given(sides, sides)
def test_adjusting_makes_no_p_smaller(base: list[list[Round]], head: list[list[Round]]) -> None:
    for comparison in compare(named(base), named(head), None, SETTINGS):
        assert (comparison.p is None) == (comparison.p_adjusted is None)
        assert comparison.p is None or comparison.p_adjusted is None or comparison.p <= comparison.p_adjusted


@given(st.floats(0.02, 0.3), st.floats(0.0, 0.3), st.floats(0.8, 1.25))
def test_a_larger_threshold_never_finds_a_regression_that_a_smaller_one_does_not(
    threshold: float, more: float, factor: float
) -> None:
    base, head = rounds(gpu_time=scaled(1e-3)), rounds(gpu_time=scaled(factor * 1e-3))
    small = one(base, head, settings=replace(SETTINGS, time_threshold=threshold))
    large = one(base, head, settings=replace(SETTINGS, time_threshold=threshold + more))
    if large.verdict is Verdict.REGRESSED:
        assert small.verdict is Verdict.REGRESSED
    if small.verdict is Verdict.UNCHANGED:
        assert large.verdict is Verdict.UNCHANGED


def test_nothing_to_compare_is_nothing() -> None:
    assert compare([], [], None, SETTINGS) == ()
