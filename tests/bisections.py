"""Bisections as a noisy machine would give them, and how often the search is wrong about them.

    python -m tests.bisections                 right, builds, pairs and confidence of a few kinds of lines
    python -m tests.bisections --plain         the same of plain halving with a sequential test a probe

A pair is a round of the probe and one of the good end; rounds scatter around their level, some are far off. What is sure is
verified with pairs of its own, as `regress bisect` does. The verdict of a check, which comes on top there, is left out here.
"""

from __future__ import annotations

import argparse
import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from regress.compare.bisection import MOST, SURE, Search
from regress.compare.ends import LOOKS, verifying_rounds

OUTLIER_SD = 0.3


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
        """The pairs of both ends, as many as it takes to know the step to a fifth."""
        pairs: list[float] = []
        for look in LOOKS:
            pairs += self.pairs(-1, self.count - 1, look - len(pairs), dice)
            mean = sum(pairs) / look
            error = math.sqrt(sum((each - mean) ** 2 for each in pairs) / (look - 1) / look)
            if abs(mean) >= 5 * error:
                break
        return tuple(pairs)


@dataclass
class Tally:
    """What came of so many runs."""

    runs: int = 0
    right: int = 0
    wrong_and_sure: int = 0
    unsure: int = 0
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


def tally(model: Model, runs: int, seed: int) -> Tally:
    """Runs with the step at any place, each searched until it is sure, verified, and searched again where that refutes it."""
    dice, found = random.Random(seed), Tally()
    for _ in range(runs):
        own = Model(model.count, dice.randrange(model.count), model.step, model.round_sd, outliers=model.outliers)
        ends = own.ends(dice)
        search = _searched(own, Search(own.count, sum(ends) / len(ends), ends), dice)
        for _ in range(3):
            place = search.best()[0] if search.is_sure else search.likely()
            if place in [each for each, _ in search.verifying]:
                break
            rounds = verifying_rounds(search.sd[0], search.sought)
            search = search.verified(place, own.pairs(place.good, place.bad, rounds, dice))
            search = _searched(own, search, dice)
        place, sure = search.best()
        _count(found, place.bad == own.first, sure, len(search.measured), sum(map(len, search.measured.values())))
    return found


def plain(model: Model, runs: int, seed: int) -> Tally:
    """The same by halving, with a sequential test of normal values for each probe: what is passed is never looked at again."""
    dice, found = random.Random(seed), Tally()
    bound = math.log(1 / 0.01 - 1)
    for _ in range(runs):
        own = Model(model.count, dice.randrange(model.count), model.step, model.round_sd, outliers=model.outliers)
        ends = own.ends(dice)
        size = sum(ends) / len(ends)
        variance = sum((each - size) ** 2 for each in ends) / (len(ends) - 1)
        low, high, builds, pairs = -1, own.count - 1, 0, 0
        while high - low > 1:
            middle, says, here = (low + high) // 2, 0.0, 0
            while (abs(says) < bound and here < MOST) or here < 2:
                (value,) = own.pairs(-1, middle, 1, dice)
                says += max(-3.0, min(3.0, (value - size / 2) * size / variance))
                here += 1
            low, high = (low, middle) if says > 0 else (middle, high)
            builds, pairs = builds + 1, pairs + here
        _count(found, high == own.first, 0.99**builds, builds, pairs)
    return found


def _count(found: Tally, right: bool, sure: float, builds: int, pairs: int) -> None:
    found.runs += 1
    found.right += right
    found.wrong_and_sure += not right and sure >= SURE
    found.unsure += sure < SURE
    found.builds += builds
    found.pairs += pairs
    found.most_builds = max(found.most_builds, builds)
    found.confidence += sure


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--commits", type=int, default=64)
    parser.add_argument("--plain", action="store_true")
    chosen = parser.parse_args(arguments)
    how = plain if chosen.plain else tally
    print(f"{'':34}{'right':>8}{'claimed':>9}{'wrong, sure':>13}{'unsure':>8}{'builds':>8}{'most':>6}{'pairs':>8}")
    for step, sd, outliers in (
        (0.05, 0.021 / math.sqrt(2), 0.0),
        (0.1, 0.01, 0.0),
        (0.1, 0.03, 0.0),
        (0.1, 0.03, 0.02),
        (0.05, 0.03, 0.0),
        (0.2, 0.003, 0.0),
    ):
        found = how(Model(chosen.commits, 0, math.log1p(step), sd, outliers=outliers), chosen.runs, chosen.seed)
        runs = found.runs
        words = f"+{step:.0%}, round sd {sd:.1%}" + (f", {outliers:.0%} outliers" if outliers else "")
        print(
            f"{words:34}{found.right / runs:8.2%}{found.confidence / runs:9.2%}{found.wrong_and_sure:13}{found.unsure:8}"
            f"{found.builds / runs:8.2f}{found.most_builds:6}{found.pairs / runs:8.1f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
