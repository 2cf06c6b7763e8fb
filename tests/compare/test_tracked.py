from __future__ import annotations

import math
import random
from dataclasses import replace

import pytest

from regress.compare import compare
from regress.model import NEGATIVE, Round, Verdict, direction_of

from .rounds import SETTINGS, benchmark, one, rounds, scaled, tracked


def test_higher_is_better_mirrors_the_verdict() -> None:
    slow, fast = tracked(scaled(500.0), "GFLOP/s"), tracked(scaled(600.0), "GFLOP/s")
    assert one(slow, fast).verdict is Verdict.IMPROVED
    assert one(fast, slow).verdict is Verdict.REGRESSED
    assert one(slow, slow).verdict is Verdict.UNCHANGED


def test_what_moved_in_an_unknown_direction_has_changed() -> None:
    assert one(tracked(scaled(500.0)), tracked(scaled(600.0))).verdict is Verdict.CHANGED
    assert one(tracked(scaled(600.0)), tracked(scaled(500.0))).verdict is Verdict.CHANGED
    assert one(tracked([0.0] * 3), tracked([5.0] * 3)).verdict is Verdict.CHANGED


def test_the_declared_direction_counts() -> None:
    declared = benchmark("ops.track_x", metric="value", declared={"better": "lower"})
    assert one(tracked(scaled(500.0)), tracked(scaled(600.0)), declared).verdict is Verdict.REGRESSED


def test_one_value_is_one_value() -> None:
    comparison = one(tracked([0.91], "s"), tracked([1.35], "s"))
    assert comparison.verdict is Verdict.UNDECIDED
    assert comparison.reasons == ("n = 1 on the base and the head",)
    assert comparison.ratio == pytest.approx(1.35 / 0.91)
    assert (comparison.p, comparison.low, comparison.noise) == (None, None, None)


def test_a_number_tracked_in_setup_cache_is_one_value_however_many_rounds_repeat_it() -> None:
    declared = benchmark("ops.track_x", metric="value", setup_cache_key="ops:5")
    comparison = one(tracked([0.91] * 5, "s"), tracked([1.35] * 5, "s"), declared)
    assert comparison.verdict is Verdict.UNDECIDED
    shared = "all rounds of a side share the value of one setup_cache; declare exact = True if it repeats exactly"
    assert comparison.reasons == ("n = 1 on the base and the head", shared)
    assert comparison.base is not None
    assert comparison.base.n == 1
    varied = one(tracked(scaled(0.91), "s"), tracked(scaled(1.35), "s"), declared)
    assert varied.verdict is Verdict.REGRESSED


def test_two_equal_whole_numbers_are_no_proof_that_there_is_no_noise() -> None:
    """Sixty numbers that are 9 or 10 by chance, twice a side, and real ones that differ by more than rounding can."""
    dice = random.Random(1)
    base, head = (
        [
            replace(round, params=[str(at)])
            for at in range(60)
            for round in tracked([9.0 + dice.randrange(2) for _ in "ab"])
        ]
        for _ in ("base", "head")
    )
    comparisons = compare(base, head, None, SETTINGS)
    assert {comparison.verdict for comparison in comparisons} <= {Verdict.UNDECIDED, Verdict.UNCHANGED}
    assert one(tracked([9.0] * 2), tracked([9.0] * 2)).verdict is Verdict.UNCHANGED
    assert one(tracked([9.0] * 2), tracked([10.0] * 2)).verdict is Verdict.UNDECIDED
    assert one(tracked([9.0] * 5), tracked([10.0] * 5)).verdict is Verdict.CHANGED
    assert one(tracked([900.0] * 2), tracked([1000.0] * 2)).verdict is Verdict.CHANGED
    assert one(tracked([0.9] * 2), tracked([1.0] * 2)).verdict is Verdict.CHANGED, "no whole number repeats by rounding"


def test_a_tracked_number_that_says_it_is_exact_needs_no_second_round() -> None:
    assert one(tracked([100.0], "s", exact=True), tracked([120.0], "s", exact=True)).verdict is Verdict.REGRESSED


@pytest.mark.parametrize(
    ("base", "head", "verdict", "reason"),
    [
        ([0.0] * 5, [0.0] * 5, Verdict.UNCHANGED, "zero on both sides"),
        ([0.0] * 5, [5.0, 5.1, 4.9, 5.0, 5.0], Verdict.REGRESSED, "from zero"),
        ([5.0, 5.1, 4.9, 5.0, 5.0], [0.0] * 5, Verdict.IMPROVED, "to zero"),
        ([0.0] * 5, [0.0, 0.0, 5.0, 0.0, 0.0], Verdict.UNDECIDED, "from zero, but not significant (spread 224 %)"),
        ([0.0], [5.0], Verdict.UNDECIDED, "from zero, n = 1"),
        ([0.0, 1.0, 2.0], [3.0, 4.0, 5.0], Verdict.UNDECIDED, "zero in some rounds: there is no ratio"),
    ],
)
def test_zeros_have_no_ratio(base: list[float], head: list[float], verdict: Verdict, reason: str) -> None:
    comparison = one(tracked(base, "s"), tracked(head, "s"))
    assert (comparison.verdict, comparison.reasons, comparison.ratio) == (verdict, (reason,), None)


@pytest.mark.parametrize(
    ("bad", "verdict", "message"),
    [
        (math.nan, Verdict.SKIPPED, "NaN value in 5 of 5 rounds"),
        (math.inf, Verdict.FAILED, "infinite value in 5 of 5 rounds"),
    ],
)
def test_values_that_are_none(bad: float, verdict: Verdict, message: str) -> None:
    comparison = one(tracked(scaled(1.0), "s"), tracked([bad] * 5, "s"))
    assert comparison.verdict is verdict
    assert comparison.head_failure is not None
    assert comparison.head_failure.message == message
    assert comparison.base_failure is None
    assert (comparison.ratio, comparison.head) == (None, None)
    some = one(tracked(scaled(1.0), "s"), tracked([*scaled(1.0)[:4], bad], "s"))
    assert some.verdict is Verdict.UNCHANGED
    assert some.head is not None
    assert some.head.n == 4
    assert some.reasons == (message.replace("in 5 of", "in 1 of") + " on the head",)


@pytest.mark.parametrize("exact", [False, True])
def test_negative_values_are_numbers_without_a_ratio(exact: bool) -> None:
    """A log-likelihood or a score below zero is no failure; nothing is claimed of how far it moved."""

    def side(value: float) -> list[Round]:
        return tracked([value] * 5 if exact else [value - 0.1 * at for at in range(5)], "score", exact=exact)

    for base, head in ((-1.0, -2.0), (1.0, -2.0), (-2.0, 1.0), (0.0, -2.0)):
        comparison = one(side(base), side(head))
        assert (comparison.verdict, comparison.reasons, comparison.ratio) == (Verdict.INCOMPARABLE, (NEGATIVE,), None)
        assert comparison.base is not None or exact
        assert (comparison.base_failure, comparison.head_failure) == (None, None)
    same = one(tracked([-3.0] * 5, "score", exact=exact), tracked([-3.0] * 5, "score", exact=exact))
    assert (same.verdict, same.reasons) == (Verdict.UNCHANGED, ("the same negative value",))


def test_a_negative_time_is_no_time() -> None:
    comparison = one(rounds(gpu_time=[1e-3] * 5), rounds(gpu_time=[-1e-3] * 5))
    assert comparison.verdict is Verdict.FAILED
    assert comparison.head_failure is not None
    assert comparison.head_failure.message == "negative gpu_time in 5 of 5 rounds"


def test_too_few_values_are_none() -> None:
    comparison = one(tracked(scaled(1.0), "s"), tracked([1.0, 1.0, 1.0, math.inf, math.nan], "s"))
    assert comparison.verdict is Verdict.FAILED
    assert comparison.head_failure is not None
    assert comparison.head_failure.message == "NaN value in 1 of 5 rounds; infinite value in 1 of 5 rounds"


def test_identical_rounds_are_said_to_be_so() -> None:
    comparison = one(rounds(gpu_time=[100e-6] * 2), rounds(gpu_time=[110e-6] * 2))
    assert comparison.verdict is Verdict.REGRESSED
    assert comparison.reasons == ("all rounds of a side gave the same value",)


def test_ties_of_a_coarse_clock_claim_nothing() -> None:
    """One step of 32 us: less than the two that a clock can tell apart for certain."""

    def coarse(value: float, calls: int) -> list[Round]:
        timed = rounds(gpu_time=[value] * 5, protocol={"calls": calls})
        return [replace(round, facts={"clock_step_s": 32e-6}) for round in timed]

    comparison = one(coarse(320e-6, 1), coarse(352e-6, 1))
    assert comparison.verdict is Verdict.UNDECIDED
    assert comparison.reasons[0].startswith("difference under two steps of the clock, 64 us")
    assert one(coarse(320e-6, 10), coarse(352e-6, 10)).verdict is Verdict.REGRESSED


def test_units_that_differ_are_refused() -> None:
    comparison = one(tracked(scaled(1.0), "ms"), tracked(scaled(1000.0), "us"))
    assert comparison.verdict is Verdict.INCOMPARABLE
    assert comparison.reasons == ("different unit: ms on the base, us on the head",)


@pytest.mark.parametrize(
    ("better", "units"),
    [
        (
            "lower",
            ["s", "Seconds", "ms", "µs", "ms/frame", "s / step", "us per call", "runtime (s)", "time [ms]", "MB"],
        ),
        (
            "higher",
            ["GFLOP/s", "gflopss", "fps", "frames/s", "images per second", "req/min", "rate (1/s)", "MHz", "it/s"],
        ),
        ("unknown", ["", "score", "%", "s/s", "MB/frame", "frames/epoch", "objects", "ops"]),
    ],
)
def test_the_direction_follows_from_a_time_or_a_rate(better: str, units: list[str]) -> None:
    assert {unit: direction_of(unit) for unit in units} == dict.fromkeys(units, better)


def test_the_settings_say_the_direction_of_what_does_not_say_it_itself() -> None:
    slow, fast = tracked(scaled(500.0), "score"), tracked(scaled(600.0), "score")
    says = replace(SETTINGS, better={"^ops": "lower", "track": "higher"})
    assert one(slow, fast, settings=says).verdict is Verdict.IMPROVED, "the last pattern counts"
    declared = benchmark("ops.track_x", metric="value", declared={"better": "lower"})
    assert one(slow, fast, declared, settings=says).verdict is Verdict.REGRESSED


@pytest.mark.parametrize("size", [5e-324, 1e-310, 1e-160, 1e160, 1e306])
@pytest.mark.parametrize("unit", ["s", "B", "items"])
def test_numbers_at_the_ends_of_what_a_float_holds_are_judged_too(size: float, unit: str) -> None:
    same = tracked([size] * 5, unit)
    assert one(same, same).verdict is Verdict.UNCHANGED
    assert one(tracked([size] * 5, unit), tracked([size * 3] * 5, unit)).verdict is not Verdict.FAILED
    assert one(tracked(scaled(size), unit), tracked(scaled(2 * size), unit)).verdict is not Verdict.FAILED
