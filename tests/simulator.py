"""Rounds as a machine would give them, and how often the code that decides is wrong about them.

    python -m tests.simulator                 the error rates of `check`, in steps and with fixed rounds, and of asv's rule
    python -m tests.simulator --cases 200     many noisy cases in one run, some of them slower
    python -m tests.simulator --modes         two modes 13 % apart: false claims, with and without looking for modes
    python -m tests.simulator --pairs 0.012   sides that take windows in turn, whose pairs scatter by that
    python -m tests.simulator --extreme       what looks ten times as far from unchanged as what counts, and what becomes of it

A round's value is the median of its samples. Samples scatter by 1 % and depend on the one before (0.5); one of a hundred is an
outlier, half as long again. Rounds scatter around the true time of their side by `round_sd`, as processes do. The differences
of pairs scatter by `pair_sd`, and one of a hundred by five times as much; both sides of a pair share the mood of their core.
"""

from __future__ import annotations

import argparse
import math
import statistics
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple
from unittest.mock import patch

import numpy as np

from regress.compare import compare, testing
from regress.compare.confirming import EXTREME, LOOKS, far_off
from regress.compare.steps import CONFIRMING, CheckSteps
from regress.model import (
    Against,
    Batch,
    Benchmark,
    Case,
    Comparison,
    Measured,
    Protocol,
    Round,
    Settings,
    Spread,
    Verdict,
)

SAMPLES = 20
SAMPLE_SD, FOLLOWS, OUTLIERS, OUTLIER = 0.01, 0.5, 0.01, 1.5
TIME_S = 100e-6


@dataclass(frozen=True)
class Noise:
    """How rounds scatter."""

    round_sd: float = 0.015
    samples: int = SAMPLES
    modes: tuple[float, ...] = (1.0,)
    """Factors of which each round draws one: the levels of a bimodal case."""
    drift: float = 0.0
    """Relative change of both sides from one round to the next."""
    pair_sd: float = 0.0
    """Standard deviation of the differences of pairs; 0: the sides do not take windows in turn."""


class Machine:
    """Gives round values of a case whose true time is known."""

    def __init__(self, seed: int, noise: Noise = Noise()) -> None:
        self._random = np.random.default_rng(seed)
        self._noise = noise
        self._measured = 0
        self.takes_turns = noise.pair_sd > 0

    def round_value(self, true_s: float, noise: Noise | None = None) -> float:
        noise = noise or self._noise
        return float(np.median(self.samples(true_s, noise.samples, noise)))

    def difference(self, noise: Noise | None = None) -> float:
        """Of the logarithms of a pair, beyond that of the true times."""
        noise, random = noise or self._noise, self._random
        sd = noise.pair_sd * (5 if random.random() < OUTLIERS else 1)
        return float(random.normal(0.0, sd))

    def samples(self, true_s: float, count: int, noise: Noise | None = None) -> list[float]:
        """Of one round."""
        noise, random = noise or self._noise, self._random
        level = true_s * random.choice(noise.modes) * np.exp(random.normal(0.0, noise.round_sd))
        level *= (1 + noise.drift) ** self._measured
        self._measured += 1
        draws = random.normal(0.0, SAMPLE_SD, count)
        for index in range(1, count):
            draws[index] = FOLLOWS * draws[index - 1] + np.sqrt(1 - FOLLOWS**2) * draws[index]
        factors = np.exp(draws) * np.where(random.random(count) < OUTLIERS, OUTLIER, 1.0)
        return [float(row) for row in level * factors]


@dataclass
class Check:
    """One check of cases whose true ratios are known, as `execute` would measure it."""

    ratios: Mapping[Case, float]
    machine: Machine
    settings: Settings = field(default_factory=Settings)
    cost_s: float = 0.1
    """Seconds that a visit takes."""
    time_s: float = TIME_S
    critical: Collection[str] = ()
    """Names of benchmarks that are declared so."""
    noise: Mapping[Case, Noise] = field(default_factory=dict)
    """Of cases that are not as noisy as the machine."""
    remembered: Mapping[str, Spread] = field(default_factory=dict)
    gpus: int = 1
    """How many measure at once, with equal parts of the cases."""
    visit_s: float | None = None
    """Seconds that an unmeasured visit takes; None: what any takes."""
    longer: Mapping[Case, float] = field(default_factory=dict)
    """Of cases that take longer than others: seconds of a visit."""
    now_s: float = 0.0
    rounds: list[Round] = field(default_factory=list)
    costs: dict[Case, float] = field(default_factory=dict)

    @property
    def metric(self) -> str:
        return "wall_time" if self.machine.takes_turns else "gpu_time"

    @property
    def benchmarks(self) -> dict[str, dict[str, Benchmark]]:
        own = {
            case.name: Benchmark(
                case.name,
                "time",
                "seconds",
                [],
                [],
                "1",
                metric=self.metric,
                needs_device=not self.machine.takes_turns,
                declared={"critical": True} if case.name in self.critical else {},
            )
            for case in self.ratios
        }
        return {"base": own, "head": own}

    @property
    def cases(self) -> dict[str, list[Case]]:
        return {"base": list(self.ratios), "head": list(self.ratios)}

    def visit(self, batch: Batch) -> None:
        """The unmeasured visits of what is new, until their time is over."""
        until_s = self.now_s + batch.visits_s
        for case in (case for case in batch.rounds if case not in self.costs):
            each_s = 2 * (self.longer.get(case, self.cost_s) if self.visit_s is None else self.visit_s)
            self.costs[case] = each_s
            self.now_s += each_s / self.gpus
            if self.now_s > until_s:
                break

    def measure(self, case: Case, side: str, order: int) -> None:
        true_s = self.time_s * (self.ratios[case] if side == "head" else 1.0)
        value = self.machine.round_value(true_s, self.noise.get(case))
        metric, against, cost_s = self.metric, [], self.longer.get(case, self.cost_s)
        if self.machine.takes_turns and side == "head":
            difference = math.log(self.ratios[case]) + self.machine.difference(self.noise.get(case))
            against = [Against(metric, "base", "", difference, 0.003, 60, f"z{order % 2}")]
        measured, protocol = {metric: Measured(value, [value], unit="s")}, Protocol(metric)
        self.rounds.append(
            Round(case.name, [], side, order, duration_s=cost_s, protocol=protocol, values=measured, against=against)
        )
        self.now_s += cost_s / self.gpus

    def in_steps(self, steps: CheckSteps | None = None) -> tuple[Comparison, ...]:
        steps = steps or CheckSteps(self.settings, lambda: self.now_s, self.remembered, self.gpus)
        while self.now_s < steps.end_s and (batch := steps.next(self)) is not None:
            self.visit(batch)
            for order in range(batch.first, batch.first + max(batch.rounds.values())):
                for side in ("base", "head"):
                    for case in (case for case, rounds in batch.rounds.items() if order < batch.first + rounds):
                        self.measure(case, side, order)
        return steps.verdicts(self)

    def fixed(self, rounds: int) -> tuple[Comparison, ...]:
        for order in range(rounds):
            for side in ("base", "head"):
                for case in self.ratios:
                    self.measure(case, side, order)
        base, head = ([round for round in self.rounds if round.side == side] for side in ("base", "head"))
        return compare(base, head, self.benchmarks["head"], self.settings)


def asv(machine: Machine, ratio: float, factor: float) -> str:
    """What asv's comparison says of two rounds of five samples a side: its default `repeat` and `rounds`."""
    from asv.commands.compare import _is_result_better
    from asv_runner.statistics import compute_stats

    sides = []
    for true_s in (TIME_S, TIME_S * ratio):
        samples = [value for _ in range(2) for value in machine.samples(true_s, 5)]
        center, stats = compute_stats(samples, 1)
        sides.append((center, (stats, samples)))
    (base, base_stats), (head, head_stats) = sides
    if _is_result_better(base, head, base_stats, head_stats, factor):
        return "regressed"
    return "improved" if _is_result_better(head, base, head_stats, base_stats, factor) else "unchanged"


def rates(
    ratio: float, repetitions: int, noise: Noise, seed: int, fixed: int = 0, remembered: Spread | None = None
) -> tuple[Counter[str], float]:
    """How often a case of that true ratio gets each verdict, and the mean rounds a side that were measured. `remembered` is
    what the past is said to have seen of it."""
    counts: Counter[str] = Counter()
    case, measured = Case("ops.cudatime_add"), 0
    known = {str(case): remembered} if remembered is not None else {}
    machine = Machine(seed, noise)
    for _ in range(repetitions):
        check = Check({case: ratio}, machine, remembered=known)
        (comparison,) = check.fixed(fixed) if fixed else check.in_steps()
        counts[str(comparison.verdict)] += 1
        measured += len(check.rounds)
    return counts, measured / 2 / repetitions


def many(
    cases: int, slower: int, ratio: float, repetitions: int, noise: Noise, seed: int
) -> list[tuple[int, int, int]]:
    """Of each run: how many of the slower cases were found, how many others were claimed, how many are undecided."""
    every_case = []
    machine = Machine(seed, noise)
    for _ in range(repetitions):
        ratios = {Case(f"ops.cudatime_{index}"): ratio if index < slower else 1.0 for index in range(cases)}
        verdicts = Check(ratios, machine, replace(Settings(), budget_s=1e9)).in_steps()
        claimed = [other for other in verdicts if other.verdict in (Verdict.REGRESSED, Verdict.IMPROVED)]
        right = sum(ratios[comparison.case] != 1.0 for comparison in claimed)
        undecided = sum(other.verdict is Verdict.UNDECIDED for other in verdicts)
        every_case.append((right, len(claimed) - right, undecided))
    return every_case


def bimodal(shares: Sequence[float], repetitions: int, noise: Noise, seed: int) -> None:
    """Print how often an unchanged case is claimed whose rounds are 13 % slower in such a share of them, and what looking for
    modes costs where there are none."""
    print(f"{'claimed':44}{'without':>10}{'with':>10}")
    rows = [(f"no change, {share:.0%} of rounds +13 %", 1.0, share) for share in shares]
    for words, ratio, share in [*rows, ("+10 %, one mode", 1.1, 0.0), ("+10 %, 30% of rounds +13 %", 1.1, 0.3)]:
        upper = round(20 * share)
        modes = replace(noise, modes=(1.0,) * (20 - upper) + (1.13,) * upper)
        for how, fixed in (("in steps", 0), ("6 rounds", 6), ("10 rounds", 10)):
            verdicts = rates(ratio, repetitions, modes, seed, fixed)[0]
            with patch.object(testing, "two_modes", lambda *_: None):
                without = rates(ratio, repetitions, modes, seed, fixed)[0]
            claims = [(row["regressed"] + row["improved"]) / repetitions for row in (without, verdicts)]
            print(f"{words + ', ' + how:44}" + "".join(f"{claim:10.2%}" for claim in claims), flush=True)


class Looked(NamedTuple):
    """What became of one case in a check."""

    far: float
    """How far from unchanged it was after the first look, in changes that count."""
    few: bool
    """Whether it was taken for extreme, and confirmed by as many rounds as a first look takes."""
    claimed: bool


def looked_at(ratio: float, repetitions: int, noise: Noise, seed: int) -> list[Looked]:
    """A case of that true ratio, measured in steps so many times."""
    case, machine, looks = Case("ops.cudatime_add"), Machine(seed, noise), []
    for _ in range(repetitions):
        check = Check({case: ratio}, machine)
        (done,) = check.in_steps()
        base, head = (
            [round for round in check.rounds if round.side == side and round.order < LOOKS[0]]
            for side in ("base", "head")
        )
        (seen,) = compare(base, head, check.benchmarks["head"], check.settings)
        confirming = sum(round.side == "head" and round.order >= CONFIRMING for round in check.rounds)
        claimed = done.verdict in (Verdict.REGRESSED, Verdict.IMPROVED)
        looks.append(Looked(far_off(seen), confirming == LOOKS[0], claimed))
    return looks


def extreme(repetitions: int, seed: int) -> None:
    """Print what becomes of unchanged cases, by how much they scatter, beside one that is twice as slow: how often they look
    extreme, come before it, are confirmed by few rounds, and are claimed."""
    print(
        f"{'no change, rounds scatter by':30}{'extreme':>10}{'before 2x':>10}{'few':>10}{'claimed':>10}{'2x found':>10}"
    )
    for words, scatters, pairs in (
        ("", (0.015, 0.05, 0.1, 0.2, 0.3, 0.5), False),
        (", pairs", (0.012, 0.1, 0.3), True),
    ):
        for scatter in scatters:
            noise = Noise(0.15, pair_sd=scatter) if pairs else Noise(scatter)
            same, twice = (looked_at(ratio, repetitions, noise, seed) for ratio in (1.0, 2.0))
            quiet = looked_at(2.0, repetitions, Noise(0.15, pair_sd=0.012) if pairs else Noise(), seed + 1)
            before = sum(one.far > other.far for one, other in zip(same, quiet, strict=True))
            shares = (sum(look.far >= EXTREME for look in same), before, sum(look.few for look in same))
            counts = (*shares, sum(look.claimed for look in same), sum(look.claimed for look in twice))
            print(
                f"{f'{scatter:.1%}{words}':30}" + "".join(f"{number / repetitions:10.2%}" for number in counts),
                flush=True,
            )


VERDICTS = ("regressed", "improved", "unchanged", "undecided")


def _line(words: str, counts: Mapping[str, int], rounds: float) -> str:
    total = sum(counts.values())
    return (
        f"{words:16}" + "".join(f"{counts.get(verdict, 0) / total:12.2%}" for verdict in VERDICTS) + f"{rounds:10.1f}"
    )


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=2000)
    parser.add_argument("--round-sd", type=float, default=0.015)
    parser.add_argument("--remembered-sd", type=float, help="the round sd that past checks are said to have seen")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cases", type=int, default=0, help="so many cases in a run, five of them 10 %% slower")
    parser.add_argument("--pairs", type=float, default=0.0, help="the sd of pairs, where windows are taken in turn")
    parser.add_argument("--extreme", action="store_true", help="what looks far from unchanged")
    parser.add_argument("--modes", action="store_true", help="two modes 13 %% apart")
    parser.add_argument("--changes", type=float, nargs="+", default=[0.0, 0.03, 0.05, 0.07, 0.10])
    chosen = parser.parse_args(arguments)
    noise = Noise(chosen.round_sd, pair_sd=chosen.pairs)
    if chosen.modes:
        bimodal((0.1, 0.2, 0.3, 0.4, 0.5), chosen.repetitions, noise, chosen.seed)
        return
    if chosen.extreme:
        extreme(chosen.repetitions, chosen.seed)
        return
    if chosen.cases:
        runs = many(chosen.cases, 5, 1.10, chosen.repetitions, noise, chosen.seed)
        right, wrong, undecided = zip(*runs, strict=True)
        print(f"{chosen.cases} cases, round sd {chosen.round_sd:.1%}, five of them +10 %, {chosen.repetitions} runs")
        print(
            f"found {statistics.mean(right):.2f} of 5; a false claim in {sum(map(bool, wrong)) / len(wrong):.2%} of runs;"
        )
        print(f"undecided {statistics.mean(undecided) / chosen.cases:.1%} of cases")
        return
    print(f"{'true change':16}" + "".join(f"{verdict:>12}" for verdict in VERDICTS) + f"{'rounds':>10}")
    known = Spread(chosen.remembered_sd, 60) if chosen.remembered_sd is not None else None
    for change in chosen.changes:
        outcome = rates(1 + change, chosen.repetitions, noise, chosen.seed, remembered=known)
        print(_line(f"{change:+.0%} in steps", *outcome), flush=True)
    if known is not None or chosen.pairs:
        return
    for change in chosen.changes:
        print(_line(f"{change:+.0%} fixed 5", *rates(1 + change, chosen.repetitions, noise, chosen.seed, fixed=5)))
    for factor in (1.10, 1.05):
        for change in chosen.changes:
            machine = Machine(chosen.seed, noise)
            counts = Counter(asv(machine, 1 + change, factor) for _ in range(chosen.repetitions))
            print(_line(f"{change:+.0%} asv {factor:.2f}", counts, 2.0))


if __name__ == "__main__":
    main()
