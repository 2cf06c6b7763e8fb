from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regress.measure.wire import Benchmark, Failure, Proposal, Protocol
from regress.model import SYNCHRONIZES, Case
from regress.run import plan


def benchmark(name: str, *params: list[str]) -> Benchmark:
    return Benchmark(name, "time", "seconds", list(params), [], "v", "wall_time", False)


SUITE = [benchmark("a.Soft.time_x", ["1", "2"], ["'f'"]), benchmark("a.Soft.time_xx"), benchmark("b.time_y")]


@pytest.mark.parametrize(
    ("patterns", "cases"),
    [
        ((), ["a.Soft.time_x(1, 'f')", "a.Soft.time_x(2, 'f')", "a.Soft.time_xx", "b.time_y"]),
        (("a.Soft.time_x",), ["a.Soft.time_x(1, 'f')", "a.Soft.time_x(2, 'f')"]),
        (("a.Soft.time_x(2, 'f')",), ["a.Soft.time_x(2, 'f')"]),
        (("Soft",), ["a.Soft.time_x(1, 'f')", "a.Soft.time_x(2, 'f')", "a.Soft.time_xx"]),
        (("time_y$", r"x\(1"), ["a.Soft.time_x(1, 'f')", "b.time_y"]),
        (("nothing",), []),
    ],
)
def test_an_exact_name_selects_itself_and_anything_else_is_searched(
    patterns: tuple[str, ...], cases: list[str]
) -> None:
    assert [str(case) for case in plan.select(SUITE, patterns)] == cases


def test_a_pattern_that_is_neither_is_an_error() -> None:
    with pytest.raises(re.error):
        plan.select(SUITE, ["("])


def test_sides_alternate_so_that_drift_hits_both() -> None:
    order = plan.alternate(["base", "head"], 4)
    assert [side[0] for side, _ in order] == list("bhhbbhhb")
    assert [index for _, index in order] == [0, 0, 1, 1, 2, 2, 3, 3]


@given(st.integers(1, 24).map(lambda half: 2 * half))
def test_a_linear_drift_cancels_over_an_even_number_of_rounds(rounds: int) -> None:
    positions = [(position, side) for position, (side, _) in enumerate(plan.alternate(["base", "head"], rounds))]
    assert sum(position if side == "base" else -position for position, side in positions) == 0


def offer(side: str, calls: int, *flags: str, failure: Failure | None = None) -> Proposal:
    protocol = None if failure else Protocol("gpu_time", calls=calls)
    return Proposal("b", [], side, protocol, failure, flags=list(flags))


def test_the_base_decides_how_both_are_measured() -> None:
    settled = plan.settle({"base": offer("base", 40), "head": offer("head", 1)})
    assert settled == Protocol("gpu_time", calls=40)


def test_a_base_that_synchronizes_leaves_it_to_the_head() -> None:
    settled = plan.settle({"base": offer("base", 1, SYNCHRONIZES), "head": offer("head", 40)})
    assert settled == Protocol("gpu_time", calls=40)
    both = {side: offer(side, 1, SYNCHRONIZES) for side in ("base", "head")}
    assert plan.settle(both) == Protocol("gpu_time", calls=1)


def test_a_side_that_fails_has_no_say() -> None:
    broken = Failure("error", "no")
    assert plan.settle({"base": offer("base", 40, failure=broken), "head": offer("head", 3)}) == Protocol(
        "gpu_time", calls=3
    )
    assert plan.settle({"base": offer("base", 40, failure=broken)}) is None


def test_a_case_is_given_up_when_it_can_no_longer_have_enough_good_rounds() -> None:
    assert not plan.hopeless(1, planned=5, good_share=0.8)
    assert plan.hopeless(2, planned=5, good_share=0.8)
    assert plan.hopeless(1, planned=1, good_share=0.8)


def test_a_timeout_is_the_benchmarks_own_or_the_suites() -> None:
    assert plan.timeout_of(SUITE[0], 60.0) == 60.0
    assert plan.timeout_of(Benchmark("b", "time", "s", [], [], "v", "wall_time", False, timeout_s=5.0), 60.0) == 5.0


def test_a_case_is_named_as_asv_names_it() -> None:
    assert str(Case("a.b", ("1", "'x'"))) == "a.b(1, 'x')"
    assert str(Case("a.b")) == "a.b"
