"""Bisections as a noisy machine would give them, and how often `bisect` is wrong about them.

    python -m tests.bisections                 right, builds, pairs and confidence of a few kinds of lines
    python -m tests.bisections --plain         the same of plain halving with a sequential test a probe

A pair is a round of the probe and one of the good end; rounds scatter around their level, some are far off. The code that
decides is the real one: the steps of both ends, the search, and the rule of a check on what was found.
"""

from __future__ import annotations

import argparse
import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from regress.compare.bisection import MOST_PAIRS, SURE, CandidateRange, Search
from regress.compare.ends import SHARE, EndsSteps, differences, judged, kind_of, pairs_of, verifying_rounds
from regress.model import Benchmark, Case, Measured, Protocol, Round, Settings, Verdict

OUTLIER_SD = 0.3
CASE, TIME_S = Case("ops.cudatime_f"), 100e-6


@dataclass(frozen=True)
class Model:
    """A line of `count` commits of which `first` is slower by `step`, and perhaps others by `further`; as logarithms."""

    count: int
    first: int
    step: float
    round_sd: float
    further: Mapping[int, float] = field(default_factory=dict)
    outliers: float = 0.0
    """Share of rounds that are far off."""

    def level(self, candidate: int) -> float:
        changes = {**self.further, self.first: self.step}
        return sum(size for at, size in changes.items() if candidate >= at)

    def round(self, level: float, dice: random.Random) -> float:
        far = abs(dice.gauss(0, OUTLIER_SD)) if dice.random() < self.outliers else 0.0
        return level + dice.gauss(0, self.round_sd) + far

    def pairs(self, good: int, bad: int, count: int, dice: random.Random) -> list[float]:
        levels = self.level(bad), self.level(good)
        return [self.round(levels[0], dice) - self.round(levels[1], dice) for _ in range(count)]

    def ends(self, dice: random.Random) -> tuple[float, ...]:
        """The pairs of both ends, by the steps of `bisect`; those where no change was seen are asked for again."""
        while True:
            rounds, steps = Rounds(), EndsSteps(Settings())
            while (batch := steps.next(rounds)) is not None:
                for order in range(batch.first, batch.first + batch.rounds[CASE]):
                    rounds.add(order, self.round(self.level(-1), dice), self.round(self.level(self.count - 1), dice))
            comparison = steps.comparison(rounds)
            if comparison is not None and kind_of(comparison) == "noisy":
                return tuple(differences(pairs_of(rounds.rounds, "gpu_time"), "noisy"))

    def verified(self, good: int, bad: int, count: int, sought: float, dice: random.Random) -> tuple[list[float], bool]:
        """Pairs of both ends of a range, and whether the rule of a check sees the step there."""
        rounds = Rounds()
        for order in range(count):
            rounds.add(order, self.round(self.level(good), dice), self.round(self.level(bad), dice))
        (comparison,) = judged(rounds, Settings(), math.expm1(abs(sought) * SHARE))
        verdict = Verdict.REGRESSED if self.step > 0 else Verdict.IMPROVED
        return differences(pairs_of(rounds.rounds, "gpu_time"), "noisy"), comparison.verdict is verdict


@dataclass
class Rounds:
    """Rounds of one case on two commits, as they are measured."""

    rounds: list[Round] = field(default_factory=list)

    @property
    def cases(self) -> dict[str, list[Case]]:
        return {"base": [CASE], "head": [CASE]}

    @property
    def benchmarks(self) -> dict[str, dict[str, Benchmark]]:
        own = {CASE.name: Benchmark(CASE.name, "time", "seconds", [], [], "1", metric="gpu_time", needs_device=True)}
        return {"base": own, "head": own}

    def add(self, order: int, base: float, head: float) -> None:
        """A round of each, by the logarithm of its value."""
        for side, level in (("base", base), ("head", head)):
            value = TIME_S * math.exp(level)
            measured = {"gpu_time": Measured(value, [value], unit="s")}
            self.rounds.append(Round(CASE.name, [], side, order, protocol=Protocol("gpu_time"), values=measured))


@dataclass
class Tally:
    """What came of so many runs."""

    runs: int = 0
    right: int = 0
    wrong_and_sure: int = 0
    """Wrong, and called so sure."""
    confirmed: int = 0
    """Named and confirmed, right or wrong."""
    wrong_and_confirmed: int = 0
    builds: int = 0
    pairs: int = 0
    most_builds: int = 0
    confidence: float = 0.0
    """Sum of what was claimed."""


def searched(model: Model, seed: int, weights: Sequence[float] = ()) -> Search:
    dice = random.Random(seed)
    ends = model.ends(dice)
    return _searched(model, Search(model.count, sum(ends) / len(ends), ends, weights=tuple(weights)), dice)


def _searched(model: Model, search: Search, dice: random.Random) -> Search:
    while (ask := search.ask()) is not None:
        search = search.with_pairs(ask.candidate, model.pairs(-1, ask.candidate, ask.pairs, dice))
    return search


def bisected(model: Model, dice: random.Random) -> tuple[Search, CandidateRange, bool]:
    """Searched until it is sure, verified, and searched again where that refutes it: what was found, and if it is confirmed."""
    ends = model.ends(dice)
    search = _searched(model, Search(model.count, sum(ends) / len(ends), ends), dice)
    while (wanted := search.to_verify()) is not None:
        place, again = wanted
        rounds = verifying_rounds(search.sd[0], search.sought, again)
        pairs, seen = model.verified(place.good, place.bad, rounds, search.sought, dice)
        search = search.verified(place, pairs)
        if seen and search.mass(place) >= SURE:
            return search, place, True
        search = _searched(model, search, dice)
    return search, search.best()[0], False


def tally(model: Model, runs: int, seed: int) -> Tally:
    """Runs with the step at any place."""
    dice, counts = random.Random(seed), Tally()
    for _ in range(runs):
        own = Model(model.count, dice.randrange(model.count), model.step, model.round_sd, outliers=model.outliers)
        search, place, confirmed = bisected(own, dice)
        pairs = sum(map(len, search.measured.values()))
        _count(counts, place.bad == own.first, search.mass(place), len(search.measured), pairs)
        counts.confirmed += confirmed
        counts.wrong_and_confirmed += confirmed and not place.good < own.first <= place.bad
    return counts


def plain(model: Model, runs: int, seed: int) -> Tally:
    """The same by halving, with a sequential test of normal values for each probe: what is passed is never looked at again."""
    dice, counts = random.Random(seed), Tally()
    bound = math.log(1 / 0.01 - 1)
    for _ in range(runs):
        own = Model(model.count, dice.randrange(model.count), model.step, model.round_sd, outliers=model.outliers)
        ends = own.ends(dice)
        size = sum(ends) / len(ends)
        variance = sum((end - size) ** 2 for end in ends) / (len(ends) - 1)
        low, high, builds, pairs = -1, own.count - 1, 0, 0
        while high - low > 1:
            middle, says, here = (low + high) // 2, 0.0, 0
            while (abs(says) < bound and here < MOST_PAIRS) or here < 2:
                (value,) = own.pairs(-1, middle, 1, dice)
                says += max(-3.0, min(3.0, (value - size / 2) * size / variance))
                here += 1
            low, high = (low, middle) if says > 0 else (middle, high)
            builds, pairs = builds + 1, pairs + here
        _count(counts, high == own.first, 0.99**builds, builds, pairs)
    return counts


def _count(counts: Tally, right: bool, sure: float, builds: int, pairs: int) -> None:
    counts.runs += 1
    counts.right += right
    counts.wrong_and_sure += not right and sure >= SURE
    counts.builds += builds
    counts.pairs += pairs
    counts.most_builds = max(counts.most_builds, builds)
    counts.confidence += sure


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--commits", type=int, default=64)
    parser.add_argument("--plain", action="store_true")
    chosen = parser.parse_args(arguments)
    how = plain if chosen.plain else tally
    print(
        f"{'':34}{'right':>8}{'claimed':>9}{'wrong, sure':>13}{'confirmed':>11}{'wrong':>7}{'builds':>8}{'most':>6}{'pairs':>8}"
    )
    for step, sd, outliers in (
        (0.05, 0.021 / math.sqrt(2), 0.0),
        (0.1, 0.01, 0.0),
        (0.1, 0.03, 0.0),
        (0.1, 0.03, 0.02),
        (0.05, 0.03, 0.0),
        (0.2, 0.003, 0.0),
    ):
        counts = how(Model(chosen.commits, 0, math.log1p(step), sd, outliers=outliers), chosen.runs, chosen.seed)
        runs = counts.runs
        words = f"+{step:.0%}, round sd {sd:.1%}" + (f", {outliers:.0%} outliers" if outliers else "")
        figures = [f"{counts.right / runs:.2%}", f"{counts.confidence / runs:.2%}", str(counts.wrong_and_sure)]
        figures += [f"{counts.confirmed / runs:.2%}", str(counts.wrong_and_confirmed), f"{counts.builds / runs:.2f}"]
        figures += [str(counts.most_builds), f"{counts.pairs / runs:.1f}"]
        print(f"{words:34}" + "".join(f"{figure:>12}" for figure in figures), flush=True)


if __name__ == "__main__":
    main()
