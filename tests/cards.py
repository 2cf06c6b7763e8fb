"""Histories on several cards of a kind as a machine would give them, and what the code that decides finds in them.

    python -m tests.cards [TRIALS]        a step of 5 % over cards that differ by 3 %, found at its commit; and what else is

What a job reads of a commit is the commit's true time, times what the card adds, what the job adds, and how the card reacts to
just that code.
"""

from __future__ import annotations

import math
import random
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from regress.history import Recorded
from regress.model import Machine, Round, Series, Settings
from regress.trends import changes_of, series_of
from tests.compare.rounds import benchmark, known, rounds

Groups = Sequence[tuple[int, Sequence[int]]]
"""Which card measures which commits in a job."""
History = list[tuple[str, list[Recorded]]]

TIME_S, ROUNDS = 1e-3, 2
CARD_SD, STEP = 0.03, 1.05


@dataclass
class Kind:
    """Cards of one kind, and what each adds, as logarithms."""

    chance: random.Random
    cards: Sequence[float]
    job_sd: float = 0.003
    round_sd: float = 0.005
    reacts_sd: float = 0.004

    def history(self, times: Sequence[float], groups: Groups, **more: Any) -> History:
        """The rounds of each commit, whose time is a factor, in each job that measures it; `more` of `rounds`."""
        histories: list[list[Round]] = [[] for _ in times]
        reacts: dict[tuple[int, float], float] = {}
        for job, (card, places) in enumerate(groups):
            level = self.cards[card] + self.chance.gauss(0, self.job_sd)
            for at in places:
                own = level + reacts.setdefault((card, times[at]), self.chance.gauss(0, self.reacts_sd))
                read = [TIME_S * times[at] * math.exp(own + self.chance.gauss(0, self.round_sd)) for _ in range(ROUNDS)]
                histories[at] += _rounds(read, f"job {job}", f"GPU-{card}", **more)
        return [(sha(at), [_recorded(sha(at), own)] if own else []) for at, own in enumerate(histories)]


def sha(at: int) -> str:
    return f"{at:040x}"


def _rounds(read: list[float], run: str, card: str, driver: str = "570", **more: Any) -> list[Round]:
    facts = {"gpu": "H100", "gpu_uuid": card, "driver": driver}
    return [replace(round, run=run, facts=facts) for round in rounds(gpu_time=read, **more)]


def _recorded(commit: str, own: Sequence[Round]) -> Recorded:
    return Recorded(commit, Machine("box"), "py", tuple(own), known(benchmark()), Path("file"))


def gpu_time(history: History) -> Series:
    """Its only series of that metric."""
    (series,) = (one_series for one_series in series_of(history, Settings()) if one_series.metric.name == "gpu_time")
    return series


def spread(commits: int, size: int, card_of: Callable[[int], int], anchor: int = 0) -> Groups:
    """Every k-th commit is a group, and the anchor is in each."""
    count = -(-commits // size)
    return [(card_of(job), sorted({*range(job, commits, count), anchor})) for job in range(count)]


def steps(factors: Mapping[int, float], commits: int) -> list[float]:
    """The time of each commit: from each of these places on it is that factor of the one before."""
    return [math.prod(factor for start, factor in factors.items() if start <= at) for at in range(commits)]


def trial(seed: int, commits: int, cards: int, step: float, **noise: float) -> tuple[Series, int]:
    """A history of groups of eight, spread over the cards, and where its step is."""
    chance = random.Random(seed)
    at = chance.randrange(20, commits - 20)
    kind = Kind(chance, [chance.gauss(0, CARD_SD) for _ in range(cards)], **noise)
    return gpu_time(kind.history(steps({at: step}, commits), spread(commits, 8, lambda _: chance.randrange(cards)))), at


def places(series: Series) -> list[int]:
    """Where it changes."""
    return [int(point.first, 16) for point in changes_of(series, Settings())]


def main(trials: int) -> None:
    print(f"{'commits 200, cards 8':36}{'at the commit':>16}{'others, of 1,000':>20}{'without a step':>18}")
    for words, noise in (
        ("rounds 0.5 %, jobs 0.3 %", {}),
        ("rounds 1.5 %", {"round_sd": 0.015}),
        ("jobs of a card vary by 1.5 %", {"job_sd": 0.015}),
        ("cards react unlike, 1.5 %", {"reacts_sd": 0.015}),
    ):
        for corrected in (False, True):
            hits, others, none = 0, 0, 0
            for seed in range(trials):
                (series, at), (level, _) = trial(seed, 200, 8, STEP, **noise), trial(seed, 200, 8, 1.0, **noise)
                if not corrected:
                    series, level = (replace(one_series, corrected={}, factors={}) for one_series in (series, level))
                changes = places(series)
                hits, others, none = (
                    hits + (at in changes),
                    others + len(changes) - (at in changes),
                    none + len(places(level)),
                )
            of = 1000 / trials / 200
            how = f"{words}, {'corrected' if corrected else 'as read'}"
            print(f"{how:36}{hits / trials:16.0%}{others * of:20.2f}{none * of:18.2f}", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 60)
