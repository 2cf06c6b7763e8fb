"""How far the cases of a check are, what they cost, and which of them there is time for."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from regress.compare.confirming import FEWEST, LOOKS
from regress.model import VISITING, Case, Round

MARGIN = 1.5
"""Factor from the estimated time of a whole check to the budget that is suggested for it."""


class CaseState(Enum):
    OPEN = "open"
    SUSPECT = "suspect"
    """To be confirmed."""
    DONE = "done"
    """Settled, or not to be decided in time."""


@dataclass(eq=False)
class CaseProgress:
    """How far a case is."""

    case: Case
    names: frozenset[Case]
    """What the sides call it."""
    critical: bool
    first_look: int = LOOKS[0]
    """Rounds a side after which it is looked at first."""
    rounds: int = 0
    state: CaseState = CaseState.OPEN
    confirming: int = 0
    """Rounds a side that its confirmation takes."""
    matters: bool = True
    """Whether what is undecided, or to be confirmed, gates."""
    far: float = 0.0
    """How far what is to be confirmed is from unchanged, in changes that count."""
    visited: bool = False
    """Whether its unmeasured visits are over."""
    visit_s: float = 0.0
    """Seconds by which these make the check longer, both sides together."""
    cost_s: float = 0.0
    """The same of one round; taken for what the visits took until it was looked at."""

    @property
    def next_look(self) -> int:
        """Rounds a side after which it is looked at next."""
        return LOOKS[looks(self.rounds)] if self.rounds >= self.first_look else self.first_look

    @property
    def look_s(self) -> float:
        """Seconds until it is looked at next."""
        return (self.next_look - self.rounds) * self.cost_s


def looks(rounds: int) -> int:
    """How many looks are behind a case with this many rounds a side."""
    return sum(look <= rounds for look in LOOKS)


class Budget:
    """The time of one check, which begins when this is made, by `clock`; infinite seconds for no bound. With several GPUs that
    measure at once a case is taken to cost its part of the time; what they wait for each other is among the costs of a round
    beside its cases."""

    def __init__(self, seconds: float, clock: Callable[[], float], gpus: int) -> None:
        self._clock, self._gpus = clock, max(gpus, 1)
        self._started_s = clock()
        self.end_s = self._started_s + seconds
        """When measuring ends, by the clock."""
        self._starting_s = 0.0
        """What it took until anything could be measured, which starting the processes again is taken to cost too."""
        self._asked_at_s = self._started_s
        self._between_s = 0.0
        """What a round of both sides costs beside visiting its cases: processes that start, and open the device."""

    # -- what it has cost ------------------------------------------------------------------------------------------------

    def started(self) -> None:
        """From now on there is something to measure."""
        self._starting_s = self._clock() - self._started_s

    def visited(self, progress: CaseProgress, seconds: float) -> None:
        """The unmeasured visits of a case are over, which have taken so long."""
        progress.visited = True
        progress.visit_s = progress.cost_s = seconds / self._gpus

    def asked(self) -> None:
        """From now on rounds are measured."""
        self._asked_at_s = self._clock()

    def measured(
        self, asked: Mapping[CaseProgress, int], rounds: Mapping[Case, tuple[list[Round], list[Round]]]
    ) -> None:
        """They are; `asked` has how many rounds a side each case has by now, `rounds` all of base and head."""
        spent_s = self._clock() - self._asked_at_s
        for progress, by_now in asked.items():
            base, head = rounds.get(progress.case, ((), ()))
            taken = max(len(base), len(head))
            if taken:
                progress.cost_s = sum(round.duration_s for round in (*base, *head)) / taken / self._gpus
            spent_s -= progress.cost_s * (by_now - progress.rounds)
        if asked:
            more = max(by_now - progress.rounds for progress, by_now in asked.items())
            self._between_s = max(0.0, spent_s / more)

    # -- what there is time for ------------------------------------------------------------------------------------------

    def visits_s(self, cases: Collection[CaseProgress]) -> float:
        """Seconds for unmeasured visits, a part of what is left; 0 where one more case could not be looked at any more."""
        left_s = self._left_s() - self.confirming_s(that_matter(cases))
        one_s = _mean(progress.visit_s + LOOKS[0] * progress.cost_s for progress in cases if progress.rounds)
        return VISITING * left_s if left_s > one_s else 0.0

    def affordable(self, waiting: Sequence[CaseProgress], cases: Iterable[CaseProgress]) -> list[CaseProgress]:
        """Those that there is time for until their next look, and to confirm it then, critical ones first; if there is no time
        to confirm another one, those that there is time to look at."""
        longest = max(progress.next_look - progress.rounds for progress in waiting)
        left_s = self._left_s() - self.confirming_s(that_matter(cases)) - longest * self._between_s
        ordered = sorted(waiting, key=lambda progress: (not progress.matters, not progress.critical))
        chosen = _that_fit(ordered, left_s, lambda progress: self.confirming_s([replace(progress, confirming=FEWEST)]))
        return chosen or _that_fit(ordered, left_s, lambda progress: 0.0)

    def tried(self, cases: Collection[CaseProgress]) -> list[CaseProgress]:
        """While nothing was measured: a visited case, to be measured for a round. What its first calls take is no measure for
        the next ones."""
        if any(progress.rounds for progress in cases):
            return []
        return [progress for progress in cases if progress.visited and 2 * progress.cost_s <= self._left_s()][:1]

    def confirmable(self, suspects: Sequence[CaseProgress]) -> list[CaseProgress]:
        """Those of the suspects that there is time to confirm, the farthest from unchanged first."""
        left_s, chosen = self._left_s(), list[CaseProgress]()
        for suspect in sorted(suspects, key=lambda other: (not other.matters, not other.critical, -other.far)):
            if self.confirming_s([*chosen, suspect]) <= left_s:
                chosen.append(suspect)
        return chosen

    def confirming_s(self, suspects: Sequence[CaseProgress]) -> float:
        """What confirming these takes."""
        if not suspects:
            return 0.0
        longest = max(progress.confirming for progress in suspects)
        rounds_s = sum(progress.confirming * progress.cost_s for progress in suspects)
        return self._starting_s + longest * self._between_s + rounds_s

    def estimate(self, cases: Collection[CaseProgress]) -> None:
        """Of what was visited only, take a round to cost what it does beside the visits if known."""
        looked_at = [progress for progress in cases if progress.rounds and progress.visit_s]
        if looked_at:
            share = sum(progress.cost_s for progress in looked_at) / sum(progress.visit_s for progress in looked_at)
            for progress in cases:
                if not progress.rounds:
                    progress.cost_s = share * progress.visit_s

    def whole_s(self, cases: Collection[CaseProgress]) -> float | None:
        """Seconds in which all cases would be measured, as an estimate; None where nothing is known of what they take."""
        self.estimate(cases)
        visited = [progress for progress in cases if progress.visited]
        if not visited:
            return None
        share = sum(progress.rounds > 0 for progress in visited) / len(cases)
        round_s, visit_s = (
            _mean(progress.cost_s for progress in visited),
            _mean(progress.visit_s for progress in visited),
        )
        one_s = self._starting_s + FEWEST * (round_s + self._between_s)
        confirming_s = self.confirming_s(that_matter(cases)) / (share or 1.0)
        looks_s = LOOKS[0] * (len(cases) * round_s + self._between_s)
        return MARGIN * (self._starting_s + len(cases) * visit_s + looks_s + max(one_s, confirming_s))

    def _left_s(self) -> float:
        return self.end_s - self._clock()


def that_matter(cases: Iterable[CaseProgress]) -> list[CaseProgress]:
    """Those that are to be confirmed in what gates."""
    return [progress for progress in cases if progress.state is CaseState.SUSPECT and progress.matters]


def _that_fit(
    cases: Iterable[CaseProgress], left_s: float, kept_back_s: Callable[[CaseProgress], float]
) -> list[CaseProgress]:
    """Those whose next looks fit into the time left, in this order; after each, what is kept back for it must still be left."""
    chosen = []
    for progress in cases:
        if progress.look_s + kept_back_s(progress) <= left_s:
            left_s -= progress.look_s
            chosen.append(progress)
    return chosen


def _mean(values: Iterable[float]) -> float:
    numbers = list(values)
    return math.fsum(numbers) / len(numbers) if numbers else 0.0
