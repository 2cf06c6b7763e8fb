"""Two modes on both sides are called so, and a shift of how often each came up is never claimed (V4)."""

from __future__ import annotations

from unittest.mock import patch

import pytest

from regress.compare import testing
from regress.model import Verdict
from tests.compare.rounds import one, rounds
from tests.simulator import Noise, rates

LOW = (1.0, 1.003, 0.998, 1.002, 0.999, 1.001, 1.004, 0.997)
CLAIMS = ("regressed", "improved")


def mixed(upper: int, level: float = 1.13, center: float = 1e-3) -> list[float]:
    """Values of eight rounds, so many of them at the upper level."""
    return [center * factor * (level if at < upper else 1.0) for at, factor in enumerate(LOW)]


@pytest.mark.parametrize(("base", "head", "verdict"), [(1, 7, Verdict.REGRESSED), (7, 1, Verdict.IMPROVED)])
def test_a_shift_of_modes_is_not_claimed(base: int, head: int, verdict: Verdict) -> None:
    sides = rounds(gpu_time=mixed(base)), rounds(gpu_time=mixed(head))
    comparison = one(*sides)
    assert comparison.verdict is Verdict.UNDECIDED
    said = f"the upper one in {base} of 8 rounds on the base, {head} of 8 on the head"
    assert comparison.reasons == (f"bimodal: two levels 13 % apart, {said}",)
    with patch.object(testing, "two_modes", lambda *_: None):
        assert one(*sides).verdict is verdict, "or there would have been nothing to forbid"


def test_a_change_within_the_levels_is_claimed_if_the_whole_moved_the_same_way() -> None:
    slower = one(rounds(gpu_time=mixed(1, 1.5)), rounds(gpu_time=mixed(7, 1.5, 1.1e-3)))
    assert slower.verdict is Verdict.REGRESSED
    assert slower.reasons[-1].startswith("bimodal")
    faster = one(rounds(gpu_time=mixed(1, 1.5)), rounds(gpu_time=mixed(7, 1.5, 0.92e-3)))
    assert faster.verdict is Verdict.UNDECIDED, "slower by the mixture, faster within the levels"
    assert faster.reasons[-1].startswith("bimodal")


def test_an_unclaimed_case_is_called_bimodal_too() -> None:
    comparison = one(rounds(gpu_time=mixed(3, 1.5)), rounds(gpu_time=mixed(3, 1.5)))
    assert comparison.verdict is Verdict.UNDECIDED
    assert comparison.reasons[-1].startswith("bimodal: two levels 50 % apart")


def test_one_level_a_side_is_a_change() -> None:
    comparison = one(rounds(gpu_time=mixed(0)), rounds(gpu_time=mixed(8)))
    assert (comparison.verdict, comparison.reasons) == (Verdict.REGRESSED, ())


def test_levels_that_differ_by_less_than_counts_are_not_told() -> None:
    assert one(rounds(gpu_time=mixed(2, 1.04)), rounds(gpu_time=mixed(6, 1.04))).reasons == ()
    tiny = one(rounds(gpu_time=mixed(2, center=1e-6)), rounds(gpu_time=mixed(6, center=1e-6)))
    assert not any("bimodal" in reason for reason in tiny.reasons), "130 ns are under the floor"


def test_fewer_false_claims_and_no_less_power() -> None:
    modes = Noise(modes=(1.0, 1.13))
    verdicts, _ = rates(1.0, 200, modes, seed=2, fixed=10)
    with patch.object(testing, "two_modes", lambda *_: None):
        before, _ = rates(1.0, 200, modes, seed=2, fixed=10)
    assert sum(before[claim] for claim in CLAIMS) >= 8
    assert sum(verdicts[claim] for claim in CLAIMS) <= 2
    assert rates(1.1, 60, Noise(), seed=2)[0] == {"regressed": 60}
