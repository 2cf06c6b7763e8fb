"""Sides that took windows in turn: the differences of their pairs decide, however the values of the rounds scatter."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from regress.compare import compare
from regress.model import Against, Comparison, Protocol, Round, Settings, Verdict

from .rounds import NOISY, SETTINGS, benchmark, by_metric, known, one, rounds, scaled

SPREAD = (0.004, -0.003, 0.0, 0.005, -0.006, 0.001)


def pair_rounds(
    ratio: float,
    spread: Sequence[float] = SPREAD,
    metric: str = "wall_time",
    error: float = 0.003,
    common: bool = True,
    origins: int = 2,
    **more: Any,
) -> tuple[list[Round], list[Round]]:
    """Rounds of both sides whose values scatter by 13 %, and whose pairs scatter as `spread` says."""
    own = "gpu_time" if "gpu_time" in more else metric
    values: dict[str, Any] = {
        metric: scaled(100e-6, [NOISY[index % len(NOISY)] for index in range(len(spread))]),
        **more,
    }
    base, head = ([replace(round, side=side) for round in rounds(metric=own, **values)] for side in ("base", "head"))
    logs = [math.log(ratio) + difference for difference in spread]
    return base, [
        replace(round, against=[Against(metric, "base", "a" * 40, log, error, 60, f"z{index % origins}", common)])
        for index, (round, log) in enumerate(zip(head, logs, strict=True))
    ]


def judged(ratio: float, settings: Settings = SETTINGS, **how: Any) -> Comparison:
    return one(*pair_rounds(ratio, **how), settings=settings)


@pytest.mark.parametrize(
    ("ratio", "verdict"),
    [
        (1.0, Verdict.UNCHANGED),
        (1.03, Verdict.UNCHANGED),
        (1.07, Verdict.REGRESSED),
        (0.93, Verdict.IMPROVED),
    ],
)
def test_the_pairs_decide(ratio: float, verdict: Verdict) -> None:
    comparison = judged(ratio)
    assert comparison.verdict is verdict
    assert comparison.ratio == pytest.approx(ratio, rel=1e-3)
    assert comparison.pairs is not None
    assert (comparison.pairs.n, comparison.pairs.error) == (6, 0.003)
    assert comparison.spread == pytest.approx(comparison.pairs.spread / math.sqrt(2)), (
        "what formulas for two sides expect"
    )


def test_without_pairs_the_same_values_decide_nothing() -> None:
    base, head = pair_rounds(1.07)
    comparison = one(base, [replace(round, against=[]) for round in head])
    assert (comparison.verdict, comparison.pairs) == (Verdict.UNDECIDED, None)


def test_pairs_are_claimed_at_a_level_of_their_own() -> None:
    """Four pairs at t = 4.1 (p = 0.026) would be a claim at 5 %."""
    spread = (0.025, -0.025, 0.03, -0.028)
    assert judged(1.06, spread=spread).verdict is Verdict.UNDECIDED
    comparison = judged(1.06, spread=spread, settings=replace(SETTINGS, paired_alpha=0.05))
    assert comparison.p is not None
    assert 0.01 < comparison.p < 0.05
    assert comparison.verdict is Verdict.REGRESSED


def test_pairs_whose_own_windows_tell_little_claim_nothing() -> None:
    comparison = judged(1.12, error=0.03)
    assert comparison.verdict is Verdict.UNDECIDED
    assert "a pair is known to ±3 % only" in comparison.reasons
    assert judged(1.12, error=0.02).verdict is Verdict.REGRESSED


def test_what_several_threads_work_for_is_claimed_from_a_quarter_up() -> None:
    for ratio, verdict in ((1.12, Verdict.UNDECIDED), (1.0, Verdict.UNCHANGED), (1.4, Verdict.REGRESSED)):
        base, head = pair_rounds(ratio)
        base, head = (
            [replace(round, protocol=Protocol("wall_time", pinned=False)) for round in side] for side in (base, head)
        )
        comparison = one(base, head)
        assert comparison.verdict is verdict
        assert any("several threads" in reason for reason in comparison.reasons) is (ratio < 1.25)


def test_where_the_sides_share_no_zygote_each_origin_is_one_draw() -> None:
    """Six pairs of three origins, two of which lie 4 % apart for good: as six draws they would be a claim."""
    spread = (0.02, 0.021, -0.02, 0.019, 0.02, -0.021)
    comparison = judged(1.06, spread=spread, common=False, origins=3)
    assert comparison.pairs is not None
    assert comparison.pairs.n == 3
    assert comparison.verdict is Verdict.UNDECIDED
    assert judged(1.06, spread=spread, origins=3).pairs is not None
    (alone,) = {judged(1.0, common=False, origins=1).reasons[0]}
    assert alone == "all pairs come from one origin"


def test_rounds_without_a_partner_are_left_out_and_too_many_of_them_leave_no_pairs() -> None:
    base, head = pair_rounds(1.07)
    without = [replace(head[0], against=[]), *head[1:]]
    comparison = one(base, without)
    assert comparison.pairs is not None
    assert comparison.pairs.n == 5
    several = [replace(round, against=[]) for round in head[:2]] + head[2:]
    assert one(base, several).pairs is None


def test_host_time_is_held_to_5_percent_in_turn_and_to_20_apart() -> None:
    base, head = pair_rounds(1.08, metric="host_time", gpu_time=scaled(50e-6, [1.0] * 6))
    comparison = by_metric(compare(base, head, known(benchmark()), SETTINGS))["host_time"]
    assert (comparison.verdict, comparison.threshold, comparison.gates) == (Verdict.REGRESSED, 0.05, False)
    apart = by_metric(compare(base, [replace(round, against=[]) for round in head], known(benchmark()), SETTINGS))
    assert apart["host_time"].threshold == 0.20


@pytest.mark.parametrize(
    ("declared", "settings"),
    [({"gates": ["host_time"]}, SETTINGS), ({}, replace(SETTINGS, gates={r"ops\.": ("host_time",)}))],
    ids=["benchmark", "configuration"],
)
def test_host_time_gates_where_that_is_wanted(declared: dict[str, object], settings: Settings) -> None:
    base, head = pair_rounds(1.08, metric="host_time", gpu_time=scaled(50e-6, [1.0] * 6))
    comparison = by_metric(compare(base, head, known(benchmark(declared=declared)), settings))["host_time"]
    assert (comparison.gates, comparison.exit_code()) == (True, 1)


def test_windows_of_another_kind_are_no_measurement_of_the_same() -> None:
    base, head = pair_rounds(1.0)
    head = [replace(round, protocol=Protocol("wall_time", short_windows=True)) for round in head]
    comparison = one(base, head)
    assert comparison.verdict is Verdict.INCOMPARABLE
    assert comparison.reasons[0].startswith("different protocol (short_windows)")


def test_device_time_is_compared_whatever_windows_the_host_had() -> None:
    base, head = pair_rounds(1.0, gpu_time=scaled(50e-6, [1.0] * 6))
    head = [replace(round, protocol=Protocol("gpu_time", short_windows=True)) for round in head]
    comparisons = by_metric(compare(base, head, known(benchmark()), SETTINGS))
    assert comparisons["gpu_time"].verdict is Verdict.UNCHANGED
    assert comparisons["wall_time"].verdict is Verdict.INCOMPARABLE
