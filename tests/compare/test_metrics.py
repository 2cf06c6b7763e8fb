from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from regress.compare import compare
from regress.compare.evidence import Evidence
from regress.model import SYNCHRONIZES, Measured, Samples, Verdict, ends_of

from .rounds import MIB, SETTINGS, benchmark, by_metric, known, one, rounds, scaled

# -- which metric gates ------------------------------------------------------------------------------------------------


def test_wall_time_beside_gpu_time_does_not_gate() -> None:
    base = rounds(gpu_time=scaled(100e-6), wall_time=scaled(150e-6))
    head = rounds(gpu_time=scaled(100e-6), wall_time=scaled(300e-6))
    comparisons = by_metric(compare(base, head, None, SETTINGS))
    assert (comparisons["wall_time"].verdict, comparisons["wall_time"].gates) == (Verdict.REGRESSED, False)
    assert comparisons["gpu_time"].verdict is Verdict.UNCHANGED


def test_a_head_that_became_synchronous_is_compared_on_wall_time() -> None:
    base = rounds(gpu_time=scaled(100e-6), host_time=scaled(10e-6), wall_time=scaled(150e-6))
    head = rounds(wall_time=scaled(300e-6), flags=[SYNCHRONIZES])
    (there,) = compare(base, head, None, SETTINGS)
    assert (there.metric.name, there.verdict, there.gates) == ("wall_time", Verdict.REGRESSED, True)
    assert there.reasons == ("became synchronous: gpu_time exists only on the base",)
    (back,) = compare(head, base, None, SETTINGS)
    assert (back.metric.name, back.verdict) == ("wall_time", Verdict.IMPROVED)
    assert back.reasons == ("no longer synchronous: gpu_time exists only on the head",)


def test_a_head_that_lost_its_device_time_otherwise_did_not_become_synchronous() -> None:
    base = rounds(gpu_time=scaled(100e-6), wall_time=scaled(150e-6))
    head = rounds(wall_time=scaled(300e-6), flags=["works on a stream that it does not name"])
    (comparison,) = compare(base, head, None, SETTINGS)
    assert comparison.reasons[0] == "gpu_time exists only on the base"
    assert comparison.reasons[1].startswith("works on a stream that it does not name")


def test_a_device_time_in_few_rounds_is_none() -> None:
    base = rounds(gpu_time=scaled(100e-6), wall_time=scaled(150e-6))
    head = rounds(gpu_time=scaled(100e-6)[:2], wall_time=scaled(150e-6))
    assert [comparison.metric.name for comparison in compare(base, head, None, SETTINGS)] == ["wall_time"]


def test_without_any_device_time_wall_time_gates() -> None:
    side = rounds(wall_time=scaled(150e-6))
    (comparison,) = compare(side, side, None, SETTINGS)
    assert (comparison.metric.name, comparison.gates) == ("wall_time", True)
    assert comparison.reasons == ("gpu_time exists on neither side",)


@pytest.mark.parametrize("metric", ["wall_time", "peak_rss", "object_size", "value"])
def test_the_metric_that_a_case_is_about_gates(metric: str) -> None:
    values: dict[str, Any] = {metric: scaled(10.0)}
    side = rounds(metric=metric, **values)
    assert one(side, side).gates


def test_memory_of_one_side_only_is_incomparable_and_said() -> None:
    base = rounds(gpu_time=scaled(1e-3), peak_memory=[MIB] * 2, launches=[3.0], exact={"peak_memory"})
    comparisons = by_metric(compare(base, rounds(gpu_time=scaled(1e-3)), None, SETTINGS))
    assert set(comparisons) == {"gpu_time", "peak_memory"}
    assert comparisons["peak_memory"].verdict is Verdict.INCOMPARABLE
    assert comparisons["peak_memory"].reasons == ("peak_memory exists only on the base",)


def test_a_case_without_its_own_metric_has_failed() -> None:
    comparison = one(
        rounds(metric="wall_time", wall_time=scaled(1.0)), rounds(metric="wall_time", host_time=scaled(1.0))
    )
    assert comparison.verdict is Verdict.FAILED
    assert comparison.head_failure is not None
    assert comparison.head_failure.message == "no wall_time in 5 of 5 rounds"


# -- what a benchmark declares -----------------------------------------------------------------------------------------


def test_a_declared_threshold_is_about_the_metric_of_the_case() -> None:
    defined = benchmark(declared={"threshold": 0.25})
    sides = [
        rounds(gpu_time=scaled(time), peak_memory=[memory] * 2, exact={"peak_memory"})
        for time, memory in ((1e-3, 10 * MIB), (1.2e-3, 12 * MIB))
    ]
    comparisons = by_metric(compare(sides[0], sides[1], known(defined), SETTINGS))
    assert (comparisons["gpu_time"].verdict, comparisons["gpu_time"].threshold) == (Verdict.UNCHANGED, 0.25)
    assert (comparisons["peak_memory"].verdict, comparisons["peak_memory"].threshold) == (Verdict.REGRESSED, 0.10)


@pytest.mark.parametrize("threshold", ["5 %", -0.1, True, math.nan, [0.1]])
def test_a_threshold_that_is_none_is_said(threshold: object) -> None:
    side = rounds(gpu_time=scaled(1e-3))
    comparison = one(side, side, benchmark(declared={"threshold": threshold}))
    assert comparison.threshold == 0.05
    assert comparison.reasons[0].startswith(f"the declared threshold {threshold!r} is not a relative change")


def test_critical_is_carried_along() -> None:
    side = rounds(gpu_time=scaled(1e-3))
    assert one(side, side, benchmark(declared={"critical": True})).critical
    assert not one(side, side, benchmark()).critical


def test_thresholds_come_from_the_settings() -> None:
    base, head = rounds(gpu_time=scaled(1e-3)), rounds(gpu_time=scaled(1.07e-3))
    assert one(base, head, settings=replace(SETTINGS, time_threshold=0.10)).verdict is Verdict.UNCHANGED
    assert one(base, head, settings=replace(SETTINGS, time_floor_s=1e-3)).verdict is Verdict.UNCHANGED
    assert one(base, head, settings=replace(SETTINGS, alpha=1e-12)).verdict is Verdict.UNDECIDED


BY_PATTERN = {
    "ops": {"time": 0.3},
    r"ops\.cudatime_add\(1": {"gpu_time": 0.02, "peak_memory": 0.5},
    "nothing": {"time": 0.9},
    "ops.*": {"host_time": 0.4},
}


@pytest.mark.parametrize(
    ("name", "params", "expected"),
    [
        ("ops.cudatime_add", ("1",), {"gpu_time": 0.02, "wall_time": 0.3, "peak_memory": 0.5, "host_time": 0.4}),
        ("ops.cudatime_add", ("2",), {"gpu_time": 0.3, "wall_time": 0.3, "peak_memory": 0.1, "host_time": 0.4}),
        ("my.ops", (), {"gpu_time": 0.05, "wall_time": 0.05, "peak_memory": 0.1, "host_time": 0.2}),
    ],
)
def test_the_last_pattern_that_has_the_metric_counts(
    name: str, params: tuple[str, ...], expected: dict[str, float]
) -> None:
    times = scaled(1e-3)
    side = rounds(name, params, gpu_time=times, wall_time=times, host_time=times, peak_memory=[MIB] * 5)
    comparisons = compare(side, side, None, replace(SETTINGS, thresholds=BY_PATTERN))
    assert {comparison.metric.name: comparison.threshold for comparison in comparisons} == expected


def test_a_pattern_decides_and_a_declared_threshold_wins_over_it() -> None:
    base, head = rounds(gpu_time=scaled(1e-3)), rounds(gpu_time=scaled(1.08e-3))
    settings = replace(SETTINGS, thresholds={"ops": {"gpu_time": 0.2}})
    assert one(base, head).verdict is Verdict.REGRESSED
    assert one(base, head, settings=settings).verdict is Verdict.UNCHANGED
    comparison = one(base, head, benchmark(declared={"threshold": 0.06}), settings=settings)
    assert (comparison.verdict, comparison.threshold) == (Verdict.REGRESSED, 0.06)


def test_a_cold_start_gates_by_the_threshold_of_times_and_what_compiling_costs_does_not() -> None:
    base, head = (
        rounds("m.cudacold_f", metric="cold_time", cold_time=scaled(center), compile_time=scaled(center / 2))
        for center in (8.0, 9.0)
    )
    comparisons = by_metric(compare(base, head, known(benchmark("m.cudacold_f", metric="cold_time")), SETTINGS))
    assert {
        name: (str(benchmark.verdict), benchmark.gates, benchmark.threshold) for name, benchmark in comparisons.items()
    } == {
        "cold_time": ("regressed", True, 0.05),
        "compile_time": ("regressed", False, 0.05),
    }


def test_a_time_of_asvs_under_the_device_protocol_is_about_its_device_time() -> None:
    base, head = (
        rounds("m.time_f", gpu_time=scaled(center), host_time=scaled(1e-5), wall_time=scaled(2e-3))
        for center in (1e-3, 2e-3)
    )
    comparisons = by_metric(compare(base, head, known(benchmark("m.time_f", metric="gpu_time")), SETTINGS))
    assert {name: (str(benchmark.verdict), benchmark.gates) for name, benchmark in comparisons.items()} == {
        "gpu_time": ("regressed", True),
        "host_time": ("unchanged", False),
        "wall_time": ("unchanged", False),
    }


def test_the_samples_of_a_time_have_their_ends_whether_at_hand_or_kept() -> None:
    """p95 is that of a round, in the median: a round that was disturbed does not speak for the others."""
    taken = rounds(gpu_time=[1.0, 1.0, 1.0], peak_memory=[5.0, 5.0, 5.0], protocol={"calls": 14})
    every = [[float(at + first) for at in range(1, 101)] for first in (0, 10, 500)]
    own = [
        replace(round, values={**round.values, "gpu_time": Measured(1.0, samples)})
        for round, samples in zip(taken, every, strict=True)
    ]
    (time,) = [comparison for comparison in compare(own, own, None, SETTINGS) if comparison.metric.name == "gpu_time"]
    expected = Samples(n=300, calls=14, low=1.0, p95=105.0, high=600.0)
    assert (time.base_samples, time.head_samples) == (expected, expected)
    kept = [
        replace(round, values={"gpu_time": replace(value, samples=[], ends=ends_of(value))})
        for round in own
        for value in [round.values["gpu_time"]]
    ]
    assert Evidence.of("head", kept, 0.8).samples_of("gpu_time") == expected
    assert Evidence.of("head", taken, 0.8).samples_of("gpu_time") is None, "one sample a round"
    assert Evidence.of("head", own, 0.8).samples_of("peak_memory") is None
