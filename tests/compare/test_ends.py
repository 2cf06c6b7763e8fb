"""Whether two ends differ, in what, and for how long they are looked at."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

import pytest

from regress.compare.bisection import CandidateRange, Search
from regress.compare.ends import (
    LOOKS,
    MOST_ROUNDS,
    EndsSteps,
    Pair,
    contrast,
    differences,
    judged,
    kind_of,
    pairs_of,
    verifying_rounds,
)
from regress.model import Benchmark, Case, Comparison, Failure, Measured, Protocol, Round, Settings, Verdict

CASE = Case("ops.cudatime_add")
MIB = 1024.0 * 1024
Values = Callable[[int], dict[str, float]]


class Found:
    """Rounds of one case on both ends, as they are measured."""

    def __init__(self, declared: dict[str, object] | None = None) -> None:
        self.rounds: list[Round] = []
        self.cases = {"base": [CASE], "head": [CASE]}
        benchmark = Benchmark(CASE.name, "time", "seconds", [], [], "1", metric="gpu_time", needs_device=True)
        benchmark.declared.update(declared or {})
        self.benchmarks = {"base": {CASE.name: benchmark}, "head": {CASE.name: benchmark}}

    def add(self, side: str, order: int, values: dict[str, float], failure: Failure | None = None) -> None:
        units = {"peak_memory": "B"}
        measured = {
            name: Measured(value, [value], unit=units.get(name, "s"), exact=name == "peak_memory")
            for name, value in values.items()
        }
        protocol = Protocol("gpu_time") if failure is None else None
        self.rounds.append(
            Round(
                CASE.name, [], side, order, failure=failure, protocol=protocol, values=measured if not failure else {}
            )
        )


def noisy(ratio: float, sd: float, seed: int = 1) -> tuple[Values, Values]:
    dice = random.Random(seed)

    def side(factor: float) -> Values:
        return lambda order: {"gpu_time": 1e-4 * factor * math.exp(dice.gauss(0, sd))}

    return side(1.0), side(ratio)


def looked(
    base: Values, head: Values, so_far: Found | None = None, metric: str = ""
) -> tuple[Comparison | None, Found, int]:
    """What the ends come to, and how many rounds a side that took."""
    so_far, steps, rounds = so_far or Found(), EndsSteps(Settings(), metric), 0
    while (batch := steps.next(so_far)) is not None:
        assert batch.first == rounds
        rounds += batch.rounds[CASE]
        for order in range(batch.first, rounds):
            so_far.add("base", order, base(order))
            so_far.add("head", order, head(order))
    return steps.comparison(so_far), so_far, rounds


@pytest.mark.parametrize(
    ("ratio", "verdict"), [(1.1, Verdict.REGRESSED), (0.9, Verdict.IMPROVED), (1.03, Verdict.REGRESSED)]
)
def test_a_change_is_seen_at_the_first_look(ratio: float, verdict: Verdict) -> None:
    comparison, so_far, rounds = looked(*noisy(ratio, 0.005))
    assert comparison is not None
    assert (comparison.verdict, kind_of(comparison), rounds) == (verdict, "noisy", LOOKS[0])
    assert len(differences(pairs_of(so_far.rounds, "gpu_time"), "noisy")) == LOOKS[0]
    told = contrast(comparison)
    assert told.ratio == pytest.approx(ratio, rel=0.01)
    assert told.rounds == LOOKS[0]


def test_no_change_ends_at_the_first_look_where_it_is_quiet() -> None:
    comparison, _, rounds = looked(*noisy(1.0, 0.003))
    assert comparison is not None
    assert (comparison.verdict, kind_of(comparison), rounds) == (Verdict.UNCHANGED, None, LOOKS[0])


def test_what_is_noisy_is_looked_at_for_longer() -> None:
    _, _, rounds = looked(*noisy(1.05, 0.03))
    assert rounds == MOST_ROUNDS
    comparison, _, rounds = looked(*noisy(1.0, 0.05))
    assert comparison is not None
    assert (kind_of(comparison), rounds) == (None, MOST_ROUNDS)


def test_a_false_change_is_rare() -> None:
    seen = [looked(*noisy(1.0, 0.03, seed))[0] for seed in range(100)]
    assert sum(activity is not None and kind_of(activity) is not None for activity in seen) <= 5


def test_a_declared_threshold_is_for_checks() -> None:
    comparison, *_ = looked(*noisy(1.05, 0.005), so_far=Found({"threshold": 0.2}))
    assert comparison is not None
    assert comparison.verdict is Verdict.REGRESSED


def both(time: float, memory: float) -> Values:
    dice = random.Random(memory)
    return lambda order: {
        "gpu_time": time * math.exp(dice.gauss(0, 0.003)),
        **({"peak_memory": memory} if order < 2 else {}),
    }


def test_the_worst_that_gates_unless_another_is_named() -> None:
    base, head = both(1e-4, 64 * MIB), both(1.05e-4, 96 * MIB)
    comparison, so_far, _ = looked(base, head)
    assert comparison is not None
    assert (comparison.metric.name, kind_of(comparison)) == ("peak_memory", "exact")
    assert EndsSteps(Settings()).others(so_far) == ["gpu_time regressed too (--metric gpu_time)"]
    named, so_far, _ = looked(base, head, metric="gpu_time")
    assert named is not None
    assert (named.metric.name, kind_of(named)) == ("gpu_time", "noisy")
    better, *_ = looked(base, both(1.05e-4, 16 * MIB))
    assert better is not None
    assert better.metric.name == "gpu_time", "what became worse goes before what became better, however much"
    assert looked(base, head, metric="nothing")[0] is None


@pytest.mark.parametrize(("fails_on", "kind"), [(("head",), "failing"), (("base", "head"), None)])
def test_a_case_that_fails_on_the_bad_end_alone_can_be_looked_for(fails_on: tuple[str, ...], kind: str | None) -> None:
    so_far, steps = Found(), EndsSteps(Settings())
    assert steps.next(so_far) is not None
    for side in ("base", "head"):
        failure = Failure("error", "ValueError: no") if side in fails_on else None
        so_far.add(side, 0, {"gpu_time": 1e-4}, failure)
    assert steps.next(so_far) is None, "more rounds would say no more"
    comparison = steps.comparison(so_far)
    assert comparison is not None
    assert kind_of(comparison) == kind
    assert "ValueError: no" in contrast(comparison).reasons


def test_differences() -> None:
    pairs = [Pair(1.0, 2.0), Pair(0.0, 2.0)]
    assert differences(pairs, "noisy") == [math.log(2.0)]
    assert differences(pairs, "exact", 2.0) == [0.5, 1.0]
    assert differences([Pair(0.0, 1.0), Pair(0.0, 0.0)], "failing") == [1.0, 0.0]


def test_pairs_are_of_rounds_that_both_sides_have() -> None:
    so_far = Found()
    for side, order in (("base", 0), ("base", 1), ("head", 1), ("head", 2), ("base", 3)):
        so_far.add(side, order, {"gpu_time": 1.0 + order})
    so_far.add("head", 3, {}, Failure("error", "no"))
    assert pairs_of(so_far.rounds, "gpu_time") == [Pair(2.0, 2.0)]
    assert pairs_of(so_far.rounds, "host_time") == []


def test_more_noise_and_a_second_time_take_more_rounds() -> None:
    assert verifying_rounds(0.01, 0.1) == verifying_rounds(0.01, -0.1) == 6
    assert 6 < verifying_rounds(0.07, 0.1) < verifying_rounds(0.08, 0.1) < verifying_rounds(0.08, 0.1, again=1)
    assert verifying_rounds(1.0, 0.1) == MOST_ROUNDS


def test_what_is_verified_once_more() -> None:
    search = Search(2, 0.1, (0.1, 0.09, 0.11)).with_pairs(0, [0.0, 0.01, 0.0, 0.01])
    place = CandidateRange(0, 1)
    assert search.to_verify() == (place, 0)
    search = search.verified(place, [0.1, 0.02, 0.2])
    assert search.to_verify() == (place, 1)
    assert search.verified(place, [0.1, 0.02, 0.2]).to_verify() is None


def test_a_quarter_of_the_step_is_enough_to_confirm_it() -> None:
    base, head = noisy(1.04, 0.004)
    so_far = Found()
    for order in range(6):
        so_far.add("base", order, base(order))
        so_far.add("head", order, head(order))
    verdicts = [judged(so_far, Settings(), least)[0].verdict for least in (0.02, 0.1)]
    assert verdicts[0] is Verdict.REGRESSED
    assert verdicts[1] is not Verdict.REGRESSED
