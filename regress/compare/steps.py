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
from dataclasses import replace
from typing import NamedTuple

from regress.compare.budget import Budget, CaseProgress, CaseState, looks
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
from regress.model import Batch, Case, Comparison, Round, Settings, Spread, Verdict

QUIET_LOOK, QUIET = 3, 0.1
"""Rounds a side after which a case is looked at first whose spread is so small a part of the time threshold: the 95 % interval
of three pairs reaches 2.5 of their spreads, that of two would reach nine."""
KNOWN = 6
"""Degrees of freedom from which on a remembered spread is believed."""
CONFIRMING = LOOKS[-1]
"""Rounds from this number on confirm."""


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
    have seen of cases, by `str` of the case: it says when a case is looked at first, and nothing about its verdict.
    """

    def __init__(
        self,
        settings: Settings,
        clock: Callable[[], float],
        remembered: Mapping[str, Spread] | None = None,
        gpus: int = 1,
    ) -> None:
        self._settings, self._remembered = settings, remembered or {}
        self._budget = Budget(settings.budget_s, clock, gpus)
        self._cases: dict[Case, CaseProgress] | None = None
        self._suites = Suites({})
        self._confirmed = False
        self._asked: dict[CaseProgress, int] = {}
        """Rounds a side that the cases of the last batch have by now."""

    @property
    def end_s(self) -> float:
        """When measuring ends, by the clock."""
        return self._budget.end_s

    # -- what to measure -------------------------------------------------------------------------------------------------

    def next(self, measured: CheckMeasured) -> Batch | None:
        """What to measure now; None where nothing is left that could be decided in time."""
        cases = self._begun(measured)
        self._look(measured, cases)
        return (
            self._next_look(cases.values(), first=True)
            or self._next_visits(cases.values())
            or self._next_look(cases.values())
            or self._confirmation(cases.values())
        )

    def _next_look(self, cases: Collection[CaseProgress], *, first: bool = False) -> Batch | None:
        """Rounds of those with the fewest until they are looked at; `first`: of those alone that were visited only."""
        self._budget.estimate(cases)
        waiting = [case for case in cases if case.state is CaseState.OPEN and case.visited]
        for rounds in sorted({case.rounds for case in waiting if not (first and case.rounds)}):
            alike = [case for case in waiting if case.rounds == rounds]
            asked = {case: case.next_look for case in self._budget.affordable(alike, cases)}
            asked = asked or dict.fromkeys(self._budget.tried(cases), 1)
            if asked:
                self._asked = asked
                self._budget.asked()
                return _batch(asked, rounds)
            for case in alike:
                case.state = CaseState.DONE
        return None

    def _next_visits(self, cases: Collection[CaseProgress]) -> Batch | None:
        """Unmeasured visits, to all that had none, for a part of the time that is left."""
        names = dict.fromkeys((name for case in cases if not case.visited for name in case.names), 0)
        visits_s = self._budget.visits_s(cases) if names else 0.0
        return Batch(names, visits_s=visits_s) if visits_s else None

    def _confirmation(self, cases: Collection[CaseProgress]) -> Batch | None:
        suspects = [case for case in cases if case.state is CaseState.SUSPECT]
        if not suspects or self._confirmed:
            return None
        self._confirmed = True
        chosen = self._budget.confirmable(suspects)
        rounds_of = {name: case.confirming for case in chosen for name in case.names}
        title = f"confirming {len(chosen)} case{'s' * (len(chosen) > 1)}"
        return Batch(rounds_of, CONFIRMING, title, afresh=True) if chosen else None

    def _begun(self, measured: CheckMeasured) -> dict[Case, CaseProgress]:
        """How far each case is, by its name on head."""
        if self._cases is None:
            self._budget.started()
            self._suites = Suites.of(measured.benchmarks.get("head", {}), measured.benchmarks.get("base"))
            names = names_of_cases(measured, self._suites)
            self._cases = {case: self._progress(case, own) for case, own in names.items()}
        for progress in self._cases.values():
            if not progress.visited and all(name in measured.costs for name in progress.names):
                self._budget.visited(progress, sum(measured.costs[name] for name in progress.names))
        return self._cases

    def _progress(self, case: Case, names: Collection[Case]) -> CaseProgress:
        critical = is_critical(case, self._suites.definition(case), self._settings)
        return CaseProgress(case, frozenset(names), critical, QUIET_LOOK if self._is_quiet(case) else LOOKS[0])

    def _is_quiet(self, case: Case) -> bool:
        known = self._remembered.get(str(case))
        small = QUIET * math.log1p(self._settings.time_threshold)
        return known is not None and known.freedom >= KNOWN and known.sd <= small

    def _look(self, so_far: CheckMeasured, cases: Mapping[Case, CaseProgress]) -> None:
        """Look at the cases that were to be measured since the last time."""
        asked, self._asked = self._asked, {}
        rounds_of = {case: (base, head) for case, base, head in self._pairs(so_far.rounds) if cases.get(case) in asked}
        self._budget.measured(asked, rounds_of)
        tested: dict[Case, list[Comparison]] = {}
        for comparison in self._compared([round for sides in rounds_of.values() for side in sides for round in side]):
            if comparison.p is not None:
                tested.setdefault(comparison.case, []).append(comparison)
        for progress, rounds in asked.items():
            progress.rounds = rounds
            base, head = rounds_of.get(progress.case, ((), ()))
            if rounds >= progress.first_look or not (base and head):
                self._settle(progress, tested.get(progress.case, ()))

    def _settle(self, progress: CaseProgress, tested: Sequence[Comparison]) -> None:
        unsettled = [
            comparison for comparison in tested if comparison.gates and comparison.verdict is not Verdict.UNCHANGED
        ]
        suspects = [comparison for comparison in unsettled if is_suspicious(comparison)]
        if suspects:
            progress.state, progress.confirming = CaseState.SUSPECT, max(map(confirming_rounds, suspects))
            progress.far = max(map(far_off, suspects))
        elif not unsettled or progress.rounds >= LOOKS[-1]:
            progress.matters = False
            if progress.rounds < BESIDE and any(map(is_soon_decided, tested)):
                return
            listed = [comparison for comparison in tested if not comparison.gates and is_worth_confirming(comparison)]
            progress.state = CaseState.SUSPECT if listed else CaseState.DONE
            progress.confirming = max(
                (FEWEST_PAIRS if comparison.pairs else FEWEST for comparison in listed), default=0
            )

    # -- what it came to -------------------------------------------------------------------------------------------------

    def verdicts(self, measured: CheckMeasured) -> tuple[Comparison, ...]:
        """Every case and metric: on the rounds that confirm where there are some, else on those of the screening, which claim
        nothing. Ordered as `compare` does."""
        cases = self._begun(measured)
        screening, confirming = self._split(measured.rounds)
        judged = self._compared(confirming)
        level = self._settings.alpha / (1 + len({comparison.case for comparison in judged}))
        done = [confirmed(comparison) for comparison in judged]
        done += [screened(comparison, level, self._settings) for comparison in self._compared(screening)]
        longer = {case for case, progress in cases.items() if progress.visited and not progress.rounds}
        done = [*reached(done), *not_reached(cases, self._suites, self._settings, done, longer)]
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
        cases = self._begun(measured)
        self._look(measured, cases)
        return Short(unreached, len(cases), self._budget.whole_s(cases.values()))

    # -- rounds ----------------------------------------------------------------------------------------------------------

    def _pairs(self, rounds: Iterable[Round]) -> list[tuple[Case, list[Round], list[Round]]]:
        rounds = list(rounds)
        base, head = ([round for round in rounds if round.side == side] for side in ("base", "head"))
        return self._suites.pair(base, head)

    def _compared(self, rounds: Sequence[Round]) -> tuple[Comparison, ...]:
        base, head = ([round for round in rounds if round.side == side] for side in ("base", "head"))
        suites = self._suites
        return compare(base, head, suites.head, self._settings, suites.base_given)


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


def _batch(asked: Mapping[CaseProgress, int], rounds: int) -> Batch:
    """From this many rounds a side to those of the next look."""
    title = f"look {looks(rounds) + 1} of {len(LOOKS)}, {len(asked)} undecided" if rounds else "measuring"
    return Batch({name: look - rounds for case, look in asked.items() for name in case.names}, rounds, title)
