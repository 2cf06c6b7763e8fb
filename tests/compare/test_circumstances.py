"""Clocks, throttling and other processes forbid a claim (U8, U10); counters explain a change."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from regress.compare import compare
from regress.model import SYNCHRONIZES, Comparison, Measured, Round, Verdict

from .rounds import MIB, SETTINGS, benchmark, by_metric, known, one, rounds, scaled

BASE = rounds(gpu_time=scaled(1e-3))
SLOWER, FASTER = rounds(gpu_time=scaled(1.3e-3)), rounds(gpu_time=scaled(0.7e-3))


def under(side: Sequence[Round], count: int | None = None, **facts: Any) -> list[Round]:
    """The rounds with these facts; `count`: only the first so many."""
    last = len(side) if count is None else count
    return [replace(round, facts={**round.facts, **facts}) if at < last else round for at, round in enumerate(side)]


def claimed(comparison: Comparison) -> bool:
    return comparison.verdict in (Verdict.REGRESSED, Verdict.IMPROVED)


# -- clocks --------------------------------------------------------------------------------------------------------------


def test_other_clocks_are_not_claimed_as_code() -> None:
    reason = "SM clock 1980 MHz on the base, 1755 MHz on the head (12 % apart)"
    for head in (SLOWER, FASTER):
        assert claimed(one(BASE, head))
        comparison = one(under(BASE, sm_clock_hz=1980e6), under(head, sm_clock_hz=1755e6))
        assert (comparison.verdict, comparison.reasons) == (Verdict.UNDECIDED, (reason,))
        assert comparison.ratio is not None
    same = one(under(BASE, sm_clock_hz=1980e6), under(BASE, sm_clock_hz=1755e6))
    assert (same.verdict, same.reasons) == (Verdict.UNCHANGED, (reason,))


@pytest.mark.parametrize(
    ("clock_hz", "tolerance", "free"), [(1961e6, 0.01, True), (1959e6, 0.01, False), (1755e6, 0.2, True)]
)
def test_clocks_may_differ_by_the_tolerance(clock_hz: float, tolerance: float, free: bool) -> None:
    settings = replace(SETTINGS, clock_tolerance=tolerance)
    comparison = one(under(BASE, sm_clock_hz=1980e6), under(SLOWER, sm_clock_hz=clock_hz), settings=settings)
    assert claimed(comparison) is free


def test_the_median_clock_counts_and_an_unknown_one_does_not() -> None:
    one_slow_round = under(under(SLOWER, sm_clock_hz=1980e6), 1, sm_clock_hz=900e6)
    assert claimed(one(under(BASE, sm_clock_hz=1980e6), one_slow_round))
    assert claimed(one(under(BASE, sm_clock_hz=1980e6), SLOWER))
    for odd in (0.0, float("nan"), None, "1980"):
        assert claimed(one(under(BASE, sm_clock_hz=1980e6), under(SLOWER, sm_clock_hz=odd)))


# -- throttling ----------------------------------------------------------------------------------------------------------


def test_a_side_that_was_throttled_in_too_many_rounds() -> None:
    assert claimed(one(BASE, under(SLOWER, 1, throttled=["hw_thermal"])))
    comparison = one(BASE, under(under(SLOWER, 3, throttled=["hw_thermal"]), 1, throttled=["hw_slowdown"]))
    assert comparison.verdict is Verdict.UNDECIDED
    assert comparison.reasons == ("throttled (hw_slowdown, hw_thermal) in 3 of 5 rounds on the head",)
    assert one(under(BASE, 2, throttled=["sw_thermal"]), FASTER).reasons == (
        "throttled (sw_thermal) in 2 of 5 rounds on the base",
    )
    strict = replace(SETTINGS, good_rounds=1.0)
    assert not claimed(one(BASE, under(SLOWER, 1, throttled=["hw_thermal"]), settings=strict))


def test_a_power_cap_alone_is_no_reason() -> None:
    comparison = one(under(BASE, power_capped=True, throttled=[]), under(SLOWER, power_capped=True, throttled=[]))
    assert (comparison.verdict, comparison.reasons) == (Verdict.REGRESSED, ())


# -- other processes -----------------------------------------------------------------------------------------------------


def test_another_process_on_the_device_is_named() -> None:
    for base, head in ((BASE, under(SLOWER, 1, foreign_processes=["pid 812 (python), 4.1 GiB"])),
                       (under(BASE, 1, foreign_processes=["pid 812 (python), 4.1 GiB"]), SLOWER)):  # fmt: skip
        comparison = one(base, head)
        assert comparison.verdict is Verdict.UNDECIDED
        assert comparison.reasons == ("another process computed on the device: pid 812 (python), 4.1 GiB",)
    assert claimed(one(under(BASE, foreign_processes=[]), under(SLOWER, foreign_processes=[])))


def test_a_process_that_grows_is_one_process() -> None:
    head = under(
        under(SLOWER, foreign_processes=["pid 9 (b), 2 GiB", "pid 8 (a), 3 GiB"]),
        2,
        foreign_processes=["pid 9 (b), 1 GiB"],
    )
    assert one(BASE, head).reasons == ("2 other processes computed on the device: pid 8 (a), 3 GiB; pid 9 (b), 2 GiB",)


# -- which metrics -------------------------------------------------------------------------------------------------------


def test_bytes_and_host_time_are_claimed_all_the_same() -> None:
    base = rounds(
        gpu_time=scaled(1e-3),
        host_time=scaled(1e-5),
        wall_time=scaled(2e-3),
        peak_memory=[MIB] * 2,
        exact={"peak_memory"},
    )
    head = rounds(
        gpu_time=scaled(2e-3),
        host_time=scaled(3e-5),
        wall_time=scaled(3e-3),
        peak_memory=[2 * MIB] * 2,
        exact={"peak_memory"},
    )
    comparisons = by_metric(compare(base, under(head, foreign_processes=["pid 1 (x), 1 GiB"]), None, SETTINGS))
    assert {name: str(benchmark.verdict) for name, benchmark in comparisons.items()} == {
        "gpu_time": "undecided",
        "wall_time": "undecided",
        "host_time": "regressed",
        "peak_memory": "regressed",
    }


def test_a_case_of_the_cpu_is_not_disturbed_by_the_device() -> None:
    base, head = (rounds("ops.time_sum", metric="wall_time", wall_time=scaled(center)) for center in (1e-3, 1.5e-3))
    assert claimed(one(base, under(head, foreign_processes=["pid 1 (x), 1 GiB"], gpu_uuid="GPU-b")))
    on_device = known(benchmark("ops.time_sum", metric="wall_time"))
    (comparison,) = compare(base, under(head, foreign_processes=["pid 1 (x), 1 GiB"]), on_device, SETTINGS)
    assert comparison.verdict is Verdict.UNDECIDED, "a case with clock = 'wall' waits for the device"


def test_what_became_synchronous_is_doubted_too() -> None:
    """V10 on a device that is not alone: the reason is named, and nothing is claimed."""
    base = rounds(gpu_time=scaled(1e-3), wall_time=scaled(1e-3))
    head = rounds(wall_time=scaled(2e-3), flags=[SYNCHRONIZES])
    alone = one(base, head)
    assert (alone.verdict, alone.metric.name) == (Verdict.REGRESSED, "wall_time")
    comparison = one(base, under(head, foreign_processes=["pid 1 (x), 1 GiB"]))
    assert comparison.verdict is Verdict.UNDECIDED
    assert comparison.reasons[0] == "became synchronous: gpu_time exists only on the base"
    assert "another process" in comparison.reasons[1]


def test_a_device_that_is_another_one_is_incomparable() -> None:
    base, head = under(BASE, gpu_uuid="GPU-a"), under(SLOWER, gpu_uuid="GPU-b")
    comparison = one(base, head)
    assert (comparison.verdict, comparison.ratio) == (Verdict.INCOMPARABLE, None)
    assert comparison.reasons == ("different device: GPU-a on the base, GPU-b on the head",)
    assert claimed(one(base, under(SLOWER, gpu_uuid="GPU-a")))
    assert claimed(one(base, SLOWER)), "where one side does not know, there is no difference to see"
    mixed = under(under(SLOWER, gpu_uuid="GPU-a"), 2, gpu_uuid="GPU-b")
    assert one(base, mixed).reasons == ("different device: GPU-a on the base, GPU-a and GPU-b on the head",)


# -- counters ------------------------------------------------------------------------------------------------------------

COUNTERS = frozenset({"launches", "synchronizations", "recompiles", "graph_breaks", "allocations"})


def counted(gpu_s: float, **counts: float) -> list[Round]:
    """Rounds of which the first has the counters too."""
    side = rounds(gpu_time=scaled(gpu_s))
    values = {name: Measured(value, [value], unit="count", exact=True) for name, value in counts.items()}
    return [replace(side[0], values={**side[0].values, **values}), *side[1:]]


def test_counters_that_differ_are_reasons_and_gate_nothing() -> None:
    base = counted(1e-3, launches=12, synchronizations=0, graph_breaks=1, allocations=7)
    head = counted(1.2e-3, launches=14, synchronizations=1, graph_breaks=1, allocations=6)
    comparisons = by_metric(compare(base, head, None, SETTINGS))
    assert comparisons["gpu_time"].reasons == (
        "kernel launches 12 -> 14 a call",
        "synchronizations 0 -> 1 a call",
        "allocations 7 -> 6 a call",
    )
    assert {name: str(comparisons[name].verdict) for name in COUNTERS & comparisons.keys()} == {
        "launches": "regressed",
        "synchronizations": "regressed",
        "graph_breaks": "unchanged",
        "allocations": "improved",
    }
    assert not any(comparisons[name].gates for name in COUNTERS & comparisons.keys())
    assert all(comparisons[name].exact for name in COUNTERS & comparisons.keys())


def test_one_more_of_a_million_is_a_change() -> None:
    comparisons = by_metric(
        compare(counted(1e-3, launches=1_000_000), counted(1e-3, launches=1_000_001), None, SETTINGS)
    )
    assert comparisons["launches"].verdict is Verdict.REGRESSED
    assert comparisons["gpu_time"].verdict is Verdict.UNCHANGED
    assert comparisons["gpu_time"].reasons == ("kernel launches 1000000 -> 1000001 a call",)


def test_a_counter_of_one_side_or_one_that_varies_explains_nothing() -> None:
    assert one(counted(1e-3, launches=12), rounds(gpu_time=scaled(1e-3))).reasons == ()
    torn = rounds(gpu_time=scaled(1e-3), exact=COUNTERS, launches=[12, 13])
    comparisons = by_metric(compare(torn, counted(1e-3, launches=14), None, SETTINGS))
    assert comparisons["gpu_time"].reasons == ()
    assert "differ between rounds of base" in comparisons["launches"].reasons[-1]


def test_rounds_that_follow_each_other_are_said_to_drift() -> None:
    slow = [1e-3 * (1 + 0.02 * math.sin(at / 4)) for at in range(24)]
    comparison = one(rounds(gpu_time=slow), rounds(gpu_time=slow))
    assert comparison.reasons[-1] == "drifting: a round is like the one before it (autocorrelation 0.96)"
    mixed = slow[::2] + slow[1::2][::-1]
    shuffled = [mixed[(7 * at) % 24] for at in range(24)]
    assert not any("drifting" in reason for reason in one(rounds(gpu_time=shuffled), rounds(gpu_time=shuffled)).reasons)


# -- within a round ------------------------------------------------------------------------------------------------------


def trending(*trends: object) -> str:
    """The reason that a comparison gets whose rounds have these trends, the base's first."""
    base, head = (
        [replace(round, facts={"trend": own}) for round, own in zip(BASE, part, strict=False)]
        for part in (trends[: len(trends) // 2], trends[len(trends) // 2 :])
    )
    return "; ".join(one(base, head).reasons)


def test_samples_that_drift_within_a_round_are_told_and_change_no_verdict() -> None:
    told = "drifting within a round: its last samples are +2 % off its first"
    assert trending(*(0.02, 0.021, 0.019, 0.018) * 2) == told
    assert trending(*(-0.02, -0.021, -0.019, -0.018) * 2).startswith(
        "drifting within a round: its last samples are -1.9 %"
    )
    assert one(under(BASE, trend=0.02), under(SLOWER, trend=0.02)).verdict is Verdict.REGRESSED
    assert trending(*(0.009, 0.0091) * 4) == "", "it is little"
    assert trending(*(0.2, -0.15, 0.1, -0.05) * 2) == "", "it may be chance"
    assert trending(*(0.02, 0.021) * 2) == "", "they are few"
    assert trending(*("0.02", None, math.nan, math.inf) * 2) == ""
