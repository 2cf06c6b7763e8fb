"""A check in steps: what is measured next, and the verdicts in the end.

Screening. All cases are looked at after 4 rounds a side (pairs, where the sides take windows in turn), and those that are not
decided again after 6, 10, 16 and 24; a case that is remembered as quiet is looked at after 3 already, by the same rule. A case
drops out once everything that gates is settled: unchanged, exact, or without numbers. Screening claims nothing: testing again
and again until something is significant would claim false changes.

Confirmation. A case whose estimate reaches 0.6 of the change that counts is measured again from processes started again, with
the sides in the other order, and judged on these rounds alone, with Holm's adjustment over the cases that are confirmed. How
many rounds that takes follows from its spread: at 1.4 times the threshold the estimate lies 2.4 standard errors above it. What
gates nothing keeps a case in the screening for ten pairs at most, and only if so few will decide it; it is claimed after a
confirmation only, too: the host has slow and fast processes, and a few of each on one side look like a change.

The budget bounds the time of all of it. The unmeasured visits get a part of what is left, then what was visited is looked at,
then others are visited: so a suite that is too long for it is covered from its front, where the most wanted cases are. What
would take longer than there is time is not begun, and the time that confirming takes is kept back: of what looks changed, and
of each case that is looked at, should it have changed. What is farthest from unchanged is confirmed first.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import NamedTuple

from regress.compare.confirming import (
    BESIDE,
    FEWEST,
    FEWEST_PAIRS,
    LOOKS,
    confirmed,
    confirming_rounds,
    far_off,
    is_soon_decided,
    is_suspicious,
    is_worth_confirming,
    screened,
)
from regress.compare.judge import compare
from regress.compare.pairing import Suites
from regress.compare.rule import is_critical
from regress.compare.unreached import CheckMeasured, names_of_cases, not_reached, reached
from regress.model import VISITING, Batch, Case, Comparison, Round, Settings, Spread, Verdict

QUIET_LOOK, QUIET = 3, 0.1
"""Rounds a side after which a case is looked at first whose spread is so small a part of the time threshold: the 95 % interval
of three pairs reaches 2.5 of their spreads, that of two would reach nine."""
KNOWN = 6
"""Degrees of freedom from which on a remembered spread is believed."""
CONFIRMING = LOOKS[-1]
"""Rounds from this number on confirm."""
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
        return LOOKS[_looks(self.rounds)] if self.rounds >= self.first_look else self.first_look

    @property
    def look_s(self) -> float:
        """Seconds until it is looked at next."""
        return (self.next_look - self.rounds) * self.cost_s


class Short(NamedTuple):
    """What there was no time for."""

    unreached: int
    """Cases that were not measured on both sides."""
    cases: int
    """All of them."""
    whole_s: float | None
    """Seconds in which all of them would be measured, as an estimate; None where nothing is known of what they take."""


class CheckSteps:
    """The steps of one check. `next` says what to measure until there is nothing left to be gained, `verdicts` sums up.

    The settings' `budget_s` counts from the construction, by `clock`; infinite for no bound. `remembered` is what past checks
    have seen of cases, by `str` of the case: it says when a case is looked at first, and nothing about its verdict. With
    several GPUs that measure at once a case is taken to cost its part of the time; what they wait for each other is among the
    costs of a round beside its cases.
    """

    def __init__(
        self,
        settings: Settings,
        clock: Callable[[], float],
        remembered: Mapping[str, Spread] | None = None,
        gpus: int = 1,
    ) -> None:
        self._settings, self._clock = settings, clock
        self._remembered, self._gpus = remembered or {}, max(gpus, 1)
        self._started_s = clock()
        self.end_s = self._started_s + settings.budget_s
        """When measuring ends, by the clock."""
        self._starting_s = 0.0
        """What it took until anything could be measured, which starting the processes again is taken to cost too."""
        self._standings: dict[Case, CaseProgress] | None = None
        self._suites = Suites({})
        self._confirmed = False
        self._asked: dict[Case, int] = {}
        """Rounds a side that the cases of the last batch have by now."""
        self._asked_at_s = self._started_s
        self._between_s = 0.0
        """What a round of both sides costs beside visiting its cases: processes that start, and open the device."""

    # -- what to measure -------------------------------------------------------------------------------------------------

    def next(self, measured: CheckMeasured) -> Batch | None:
        """What to measure now; None where nothing is left that could be decided in time."""
        standings = self._begun(measured)
        self._look(measured, standings)
        first = self._next_look(standings, first=True)
        return first or self._next_visits(standings) or self._next_look(standings) or self._confirmation(standings)

    def _next_look(self, standings: Mapping[Case, CaseProgress], *, first: bool = False) -> Batch | None:
        """Rounds of those with the fewest until they are looked at; `first`: of those alone that were visited only."""
        self._estimate(standings.values())
        waiting = [standing for standing in standings.values() if standing.state is CaseState.OPEN and standing.visited]
        for rounds in sorted({standing.rounds for standing in waiting if not (first and standing.rounds)}):
            alike = [standing for standing in waiting if standing.rounds == rounds]
            looks = {standing: standing.next_look for standing in self._affordable(alike, standings)}
            looks = looks or dict.fromkeys(self._tried(standings.values()), 1)
            if looks:
                self._asked = {standing.case: look for standing, look in looks.items()}
                self._asked_at_s = self._clock()
                return _batch(looks, rounds)
            for standing in alike:
                standing.state = CaseState.DONE
        return None

    def _next_visits(self, standings: Mapping[Case, CaseProgress]) -> Batch | None:
        """Unmeasured visits, to all that had none, for a part of the time that is left; None where one more case could not be
        looked at any more."""
        new = [standing for standing in standings.values() if not standing.visited]
        left_s = self._left_s() - self._confirming_s(_that_matter(standings.values()))
        looked_at = [standing for standing in standings.values() if standing.rounds]
        one_s = _mean(standing.visit_s + LOOKS[0] * standing.cost_s for standing in looked_at)
        if not new or left_s <= one_s:
            return None
        names = dict.fromkeys((name for standing in new for name in standing.names), 0)
        return Batch(names, visits_s=VISITING * left_s)

    def _confirmation(self, standings: Mapping[Case, CaseProgress]) -> Batch | None:
        suspects = [standing for standing in standings.values() if standing.state is CaseState.SUSPECT]
        if not suspects or self._confirmed:
            return None
        self._confirmed = True
        chosen = self._confirmable(suspects)
        rounds_of = {name: standing.confirming for standing in chosen for name in standing.names}
        title = f"confirming {len(chosen)} case{'s' * (len(chosen) > 1)}"
        return Batch(rounds_of, CONFIRMING, title, afresh=True) if chosen else None

    def _begun(self, measured: CheckMeasured) -> dict[Case, CaseProgress]:
        """The standing of each case, by its name on head."""
        if self._standings is None:
            self._starting_s = self._clock() - self._started_s
            self._suites = Suites.of(measured.benchmarks.get("head", {}), measured.benchmarks.get("base"))
            names = names_of_cases(measured, self._suites)
            self._standings = {case: self._standing(case, own) for case, own in names.items()}
        for standing in self._standings.values():
            if not standing.visited and all(name in measured.costs for name in standing.names):
                standing.visited = True
                standing.visit_s = standing.cost_s = sum(measured.costs[name] for name in standing.names) / self._gpus
        return self._standings

    def _standing(self, case: Case, names: Collection[Case]) -> CaseProgress:
        critical = is_critical(case, self._suites.definition(case), self._settings)
        return CaseProgress(case, frozenset(names), critical, QUIET_LOOK if self._is_quiet(case) else LOOKS[0])

    def _is_quiet(self, case: Case) -> bool:
        known = self._remembered.get(str(case))
        small = QUIET * math.log1p(self._settings.time_threshold)
        return known is not None and known.freedom >= KNOWN and known.sd <= small

    def _look(self, so_far: CheckMeasured, standings: Mapping[Case, CaseProgress]) -> None:
        """Look at the cases that were to be measured since the last time."""
        asked, self._asked = self._asked, {}
        spent_s, before = self._clock() - self._asked_at_s, {case: standings[case].rounds for case in asked}
        pairs = {case: (base, head) for case, base, head in self._pairs(so_far.rounds) if case in asked}
        measured = [round for sides in pairs.values() for side in sides for round in side]
        tested: dict[Case, list[Comparison]] = {}
        for comparison in self._compared(measured):
            if comparison.p is not None:
                tested.setdefault(comparison.case, []).append(comparison)
        for case, rounds in asked.items():
            standing = standings[case]
            base, head = pairs.get(case, ((), ()))
            taken = max(len(base), len(head))
            if taken:
                standing.cost_s = sum(round.duration_s for round in (*base, *head)) / taken / self._gpus
            standing.rounds = rounds
            if rounds >= standing.first_look or not (base and head):
                self._settle(standing, tested.get(case, ()))
            spent_s -= standing.cost_s * (rounds - before[case])
        if asked:
            self._between_s = max(0.0, spent_s / max(asked[case] - before[case] for case in asked))

    def _settle(self, standing: CaseProgress, tested: Sequence[Comparison]) -> None:
        unsettled = [
            comparison for comparison in tested if comparison.gates and comparison.verdict is not Verdict.UNCHANGED
        ]
        suspects = [comparison for comparison in unsettled if is_suspicious(comparison)]
        if suspects:
            standing.state, standing.confirming = CaseState.SUSPECT, max(map(confirming_rounds, suspects))
            standing.far = max(map(far_off, suspects))
        elif not unsettled or standing.rounds >= LOOKS[-1]:
            standing.matters = False
            if standing.rounds < BESIDE and any(map(is_soon_decided, tested)):
                return
            listed = [comparison for comparison in tested if not comparison.gates and is_worth_confirming(comparison)]
            standing.state = CaseState.SUSPECT if listed else CaseState.DONE
            standing.confirming = max(
                (FEWEST_PAIRS if comparison.pairs else FEWEST for comparison in listed), default=0
            )

    def _affordable(
        self, waiting: Sequence[CaseProgress], all_of_them: Mapping[Case, CaseProgress]
    ) -> list[CaseProgress]:
        """Those that there is time for until their next look, and to confirm it then, critical ones first; if there is no
        time to confirm another one, those that there is time to look at."""
        longest = max(standing.next_look - standing.rounds for standing in waiting)
        left_s = self._left_s() - self._confirming_s(_that_matter(all_of_them.values())) - longest * self._between_s
        ordered = sorted(waiting, key=lambda standing: (not standing.matters, not standing.critical))
        chosen = _that_fit(ordered, left_s, lambda standing: self._confirming_s([replace(standing, confirming=FEWEST)]))
        return chosen or _that_fit(ordered, left_s, lambda standing: 0.0)

    def _tried(self, standings: Collection[CaseProgress]) -> list[CaseProgress]:
        """While nothing was measured: a visited case, to be measured for a round. What its first calls take is no measure for
        the next ones."""
        if any(standing.rounds for standing in standings):
            return []
        return [standing for standing in standings if standing.visited and 2 * standing.cost_s <= self._left_s()][:1]

    def _confirmable(self, suspects: Sequence[CaseProgress]) -> list[CaseProgress]:
        left_s, chosen = self._left_s(), list[CaseProgress]()
        for suspect in sorted(suspects, key=lambda other: (not other.matters, not other.critical, -other.far)):
            if self._confirming_s([*chosen, suspect]) <= left_s:
                chosen.append(suspect)
        return chosen

    def _confirming_s(self, suspects: Sequence[CaseProgress]) -> float:
        """What confirming these takes."""
        if not suspects:
            return 0.0
        longest = max(standing.confirming for standing in suspects)
        return (
            self._starting_s
            + longest * self._between_s
            + sum(standing.confirming * standing.cost_s for standing in suspects)
        )

    def _left_s(self) -> float:
        return self.end_s - self._clock()

    def _estimate(self, standings: Collection[CaseProgress]) -> None:
        """Of what was visited only, take a round to cost what it does beside the visits if known."""
        looked_at = [standing for standing in standings if standing.rounds and standing.visit_s]
        if looked_at:
            share = sum(standing.cost_s for standing in looked_at) / sum(standing.visit_s for standing in looked_at)
            for standing in standings:
                if not standing.rounds:
                    standing.cost_s = share * standing.visit_s

    # -- what it came to -------------------------------------------------------------------------------------------------

    def verdicts(self, measured: CheckMeasured) -> tuple[Comparison, ...]:
        """Every case and metric: on the rounds that confirm where there are some, else on those of the screening, which claim
        nothing. Ordered as `compare` does."""
        standings = self._begun(measured)
        screening, confirming = self._split(measured.rounds)
        judged = self._compared(confirming)
        level = self._settings.alpha / (1 + len({comparison.case for comparison in judged}))
        done = [confirmed(comparison) for comparison in judged]
        done += [screened(comparison, level, self._settings) for comparison in self._compared(screening)]
        longer = {case for case, standing in standings.items() if standing.visited and not standing.rounds}
        done = [*reached(done), *not_reached(standings, self._suites, self._settings, done, longer)]
        order = {case: index for index, (case, *_) in enumerate(self._pairs(measured.rounds))}
        return tuple(sorted(done, key=lambda comparison: order.get(comparison.case, len(order))))

    def _split(self, rounds: Sequence[Round]) -> tuple[list[Round], list[Round]]:
        """The rounds that decide each case: those of the screening, or those that confirm where both sides have enough."""
        screened, confirmed = [], []
        for _, base, head in self._pairs(rounds):
            own = [[round for round in side if round.order >= CONFIRMING] for side in (base, head)]
            if all(len(side) >= LOOKS[0] for side in own):
                confirmed += [*_with_exact_values(own[0], base), *_with_exact_values(own[1], head)]
            else:
                screened += [round for round in (*base, *head) if round.order < CONFIRMING]
        return screened, confirmed

    def short(self, measured: CheckMeasured, judged: Sequence[Comparison]) -> Short | None:
        """What there was no time for, by the verdicts; None where all was reached, and what looked worse was confirmed."""
        unreached = sum(comparison.unreached for comparison in judged)
        if not unreached and not any(comparison.unconfirmed for comparison in judged):
            return None
        standings = self._begun(measured)
        self._look(measured, standings)
        self._estimate(standings.values())
        visited = [standing for standing in standings.values() if standing.visited]
        share = sum(standing.rounds > 0 for standing in visited) / len(standings)
        round_s, visit_s = (
            _mean(standing.cost_s for standing in visited),
            _mean(standing.visit_s for standing in visited),
        )
        one_s = self._starting_s + FEWEST * (round_s + self._between_s)
        confirming_s = self._confirming_s(_that_matter(standings.values())) / (share or 1.0)
        looks_s = LOOKS[0] * (len(standings) * round_s + self._between_s)
        whole_s = self._starting_s + len(standings) * visit_s + looks_s + max(one_s, confirming_s)
        return Short(unreached, len(standings), MARGIN * whole_s if visited else None)

    # -- rounds ----------------------------------------------------------------------------------------------------------

    def _pairs(self, rounds: Iterable[Round]) -> list[tuple[Case, list[Round], list[Round]]]:
        rounds = list(rounds)
        base, head = ([round for round in rounds if round.side == side] for side in ("base", "head"))
        return self._suites.pair(base, head)

    def _compared(self, rounds: Sequence[Round]) -> tuple[Comparison, ...]:
        base, head = ([round for round in rounds if round.side == side] for side in ("base", "head"))
        suites = self._suites
        return compare(base, head, suites.head, self._settings, suites.base_given)


def _that_matter(standings: Iterable[CaseProgress]) -> list[CaseProgress]:
    """Those that are to be confirmed in what gates."""
    return [standing for standing in standings if standing.state is CaseState.SUSPECT and standing.matters]


def _that_fit(
    standings: Iterable[CaseProgress], left_s: float, kept_back_s: Callable[[CaseProgress], float]
) -> list[CaseProgress]:
    """Those whose next looks fit into the time left, in this order; after each, what is kept back for it must still be left."""
    chosen = []
    for standing in standings:
        if standing.look_s + kept_back_s(standing) <= left_s:
            left_s -= standing.look_s
            chosen.append(standing)
    return chosen


def _mean(values: Iterable[float]) -> float:
    numbers = list(values)
    return math.fsum(numbers) / len(numbers) if numbers else 0.0


def _with_exact_values(confirming: Sequence[Round], all_rounds: Iterable[Round]) -> list[Round]:
    """The rounds that confirm, with what only the first rounds have: bytes and counters, which need no confirmation."""
    exact = [
        {name: value for name, value in round.values.items() if value.exact}
        for round in sorted(all_rounds, key=lambda round: round.order)
        if round.order < CONFIRMING and round.failure is None
    ]
    padded = exact + [{}] * len(confirming)
    return [
        replace(round, values={**values, **round.values}) for round, values in zip(confirming, padded, strict=False)
    ]


def _batch(looks: Mapping[CaseProgress, int], rounds: int) -> Batch:
    """From this many rounds a side to those of the next look."""
    title = f"look {_looks(rounds) + 1} of {len(LOOKS)}, {len(looks)} undecided" if rounds else "measuring"
    return Batch({name: look - rounds for standing, look in looks.items() for name in standing.names}, rounds, title)


def _looks(rounds: int) -> int:
    """How many looks are behind a case with this many rounds a side."""
    return sum(look <= rounds for look in LOOKS)
