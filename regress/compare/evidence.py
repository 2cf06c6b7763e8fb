"""The rounds of one case on one side, without failed rounds and impossible values: what a test may use.

A session is a run of regress, which each round names. Another session may be another hour, job or boot, or another host of the
same name, and rounds of one session do not show how far apart sessions are. So if a run measured both sides, its rounds are
compared by themselves. Otherwise all rounds of a session are one value, and a side with a single session claims no change.
"""

from __future__ import annotations

import math
import statistics
import typing
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from regress.model import (
    SET_UP_EACH,
    SYNCHRONIZES,
    Failure,
    Measured,
    Protocol,
    Round,
    Samples,
    ends_of,
    may_be_negative,
)
from regress.stats.summary import median
from regress.text.wording import counted

CLOCK_STEP = "clock_step_s"
"""Key of Round.facts: the step of the clock that timed the case's own metric, in seconds a window."""


@dataclass(frozen=True)
class Values:
    """The values of one metric on one side, one a round, fit for a test unless `failure` says why not."""

    values: tuple[float, ...]
    runs: tuple[str, ...]
    """The run of regress that recorded each; empty where nothing says."""
    cards: tuple[str, ...]
    """The UUID of the device that each was measured on; empty where nothing says."""
    units: frozenset[str]
    exact: bool
    """Every round calls its value exact; they may still differ."""
    failure: Failure | None
    notes: tuple[str, ...]
    """What was left out, in words."""


@dataclass(frozen=True)
class Evidence:
    """The rounds of one case on one side. `failure` is set when too few of them are good to speak for the case."""

    side: str
    rounds: tuple[Round, ...]
    good: tuple[Round, ...]
    good_share: float
    failure: Failure | None
    notes: tuple[str, ...]

    @classmethod
    def of(cls, side: str, rounds: Iterable[Round], good_share: float) -> Evidence:
        """Take the failed rounds out. `good_share` is the least share of rounds that have to be good."""
        ordered = tuple(sorted(rounds, key=lambda round: (round.order, round.started_at, round.process)))
        good = tuple(round for round in ordered if round.failure is None)
        # A round that was skipped says less than one that broke.
        failures = sorted(
            (round.failure for round in ordered if round.failure), key=lambda failure: failure.kind == "skipped"
        )
        if not failures:
            return cls(side, ordered, good, good_share, None, ())
        note = f"{failures[0].kind} in {len(failures)} of {counted(len(ordered), 'round')} on the {side}: {failures[0].message}"
        enough = _share(good, ordered) >= good_share
        return cls(side, ordered, good, good_share, None if enough else failures[0], (note,))

    def has(self, metric: str) -> bool:
        """Whether enough of the good rounds have the metric, whether its value is usable or not."""
        return _share([round for round in self.good if metric in round.values], self.good) >= self.good_share

    def metrics(self) -> set[str]:
        """Every metric that any good round has."""
        return {name for round in self.good for name in round.values}

    def flags(self) -> list[str]:
        """The doubts of the good rounds, or of the failed ones if there are no others; each once, with how many share it."""
        told = self.good or self.rounds
        counts = Counter(flag for round in told for flag in dict.fromkeys(round.flags) if flag != SYNCHRONIZES)
        return [f"{flag} ({n} of {counted(len(told), 'round')} on the {self.side})" for flag, n in counts.items()]

    def ways(self) -> list[str]:
        """What is unusual about how the case was measured, in words."""
        return (
            [SET_UP_EACH]
            if any(round.protocol is not None and round.protocol.setup_each for round in self.good)
            else []
        )

    def clock_step_s(self) -> float:
        """The coarsest step of the clock behind the case's own metric, a call; 0.0 where no round knows it."""
        return max((_clock_step_s(round) for round in self.good), default=0.0)

    def samples_of(self, metric: str) -> Samples | None:
        """What the samples of a time are in the good rounds; None where no round has several."""
        sampled = [
            (round, ends) for round in self.good if metric in round.values and (ends := ends_of(round.values[metric]))
        ]
        if not sampled:
            return None
        every = [ends for _, ends in sampled]
        return Samples(
            n=sum(ends.n for ends in every),
            calls=min(_calls(round.protocol, metric) for round, _ in sampled),
            low=min(ends.low for ends in every),
            p95=median([ends.p95 for ends in every]),
            high=max(ends.high for ends in every),
        )

    def values_of(self, metric: str, *, every_round: bool) -> Values | None:
        """The metric's values in order of the rounds; None if no round has it and none has to.

        NaN, infinite and impossible negative values are left out and noted, and missing ones if `every_round` has to have it.
        Under the good share the values have failed: `skipped` if all that is wrong is NaN, which is how a benchmark says that
        there is no number, else `error`.
        """
        asked = [round for round in self.good if every_round or metric in round.values]
        if not asked:
            return None
        measured = [round.values.get(metric) for round in asked]
        good = [
            (round, value)
            for round, value in zip(asked, measured, strict=True)
            if value is not None and not _fault(metric, value)
        ]
        faults = Counter(fault for value in measured if (fault := _fault(metric, value)))
        words = [f"{fault} {metric} in {n} of {counted(len(asked), 'round')}" for fault, n in sorted(faults.items())]
        notes = [f"{word} on the {self.side}" for word in words]
        if invalid := sum(value.invalid for value in measured if value is not None):
            notes.append(f"{invalid} invalid samples of {metric} on the {self.side}")
        failure = None
        if _share(good, asked) < self.good_share:
            failure = Failure("skipped" if set(faults) == {"NaN"} else "error", "; ".join(words))
        present = [value for value in measured if value is not None]
        return Values(
            values=tuple(value.value for _, value in good),
            runs=tuple(round.run for round, _ in good),
            cards=tuple(str(round.facts.get("gpu_uuid", "")) for round, _ in good),
            units=frozenset(value.unit for value in present),
            exact=bool(present) and all(value.exact for value in present),
            failure=failure,
            notes=tuple(notes),
        )


def _calls(protocol: Protocol | None, metric: str) -> int:
    """How many calls a sample has."""
    if protocol is None:
        return 1
    beside = {"host_time": protocol.host_calls, "wall_time": protocol.wall_calls}
    return protocol.calls if metric == protocol.metric else beside.get(metric, 1)


def _fault(metric: str, measured: Measured | None) -> str:
    """What is wrong with a round's value of the metric; empty for a good one."""
    if measured is None:
        return "no"
    if math.isnan(measured.value):
        return "NaN"
    if math.isinf(measured.value):
        return "infinite"
    return "negative" if measured.value < 0 and not may_be_negative(metric) else ""


def _share(part: Sequence[object], whole: Sequence[object]) -> float:
    return len(part) / len(whole) if whole else 0.0


def _clock_step_s(round_: Round) -> float:
    step = round_.facts.get(CLOCK_STEP, 0.0)
    if round_.protocol is None or not isinstance(step, (int, float)) or not 0 < step < math.inf:
        return 0.0
    return step / max(1, round_.protocol.calls)


class Draws(NamedTuple):
    """The values of both sides that can be tested."""

    base: tuple[float, ...]
    head: tuple[float, ...]
    sessions: tuple[int, int] | None = None
    """How many each side is from, where none has enough of both."""
    note: str = ""


class SessionValues(typing.Protocol):
    """Round values of a side, and the session that each was recorded in; empty where nothing says."""

    @property
    def values(self) -> tuple[float, ...]: ...

    @property
    def runs(self) -> tuple[str, ...]: ...


def draws_of(base: SessionValues, head: SessionValues) -> Draws:
    """The draws of two sides. New rounds and results of asv name no session: then every value is a draw."""
    if not all((*base.runs, *head.runs)):
        return Draws(base.values, head.values)
    both = Counter(base.runs) & Counter(head.runs)
    if shared := [run for run, rounds in both.items() if rounds > 1]:  # one round of each shows no spread
        run = max(shared, key=lambda candidate: (both[candidate], candidate))  # of equals the newest
        own = _of(base, run), _of(head, run)
        left = len(base.values) + len(head.values) - sum(map(len, own))
        return Draws(*own, note=f"{left} rounds of other sessions left out: one session has both sides" if left else "")
    sessions = len(set(base.runs)), len(set(head.runs))
    return Draws(_by_session(base), _by_session(head), sessions, _words(*sessions))


def on_one_card(base: Sequence[Round], head: Sequence[Round]) -> tuple[Sequence[Round], Sequence[Round]]:
    """The rounds of a case; if the sides were on different cards, those of the run and card with the most of both. Cards of one
    kind differ more than sessions do."""
    if {card for _, card in map(_job, base)} == {card for _, card in map(_job, head)}:
        return base, head
    both = Counter(map(_job, base)) & Counter(map(_job, head))
    shared = [job for job, rounds in both.items() if all(job) and rounds > 1]
    if not shared:
        return base, head
    job = max(shared, key=lambda candidate: (both[candidate], candidate))
    return [round for round in base if _job(round) == job], [round for round in head if _job(round) == job]


def _job(round_: Round) -> tuple[str, str]:
    return round_.run, str(round_.facts.get("gpu_uuid", ""))


def _of(values: SessionValues, run: str) -> tuple[float, ...]:
    return tuple(value for value, its in zip(values.values, values.runs, strict=True) if its == run)


def _by_session(values: SessionValues) -> tuple[float, ...]:
    """One value a session; all values if there is only one session."""
    by_run: dict[str, list[float]] = {}
    for value, run in zip(values.values, values.runs, strict=True):
        by_run.setdefault(run, []).append(value)
    return tuple(map(statistics.median, by_run.values())) if len(by_run) > 1 else values.values


def _words(base: int, head: int) -> str:
    if base > 1 and head > 1:
        return f"of {base} and {head} sessions, each one value"
    if base == head:
        return "each side was measured in one session, not in the same: sessions may differ for other reasons"
    side, many = ("base", head) if base == 1 else ("head", base)
    return f"the {side} was measured in one session, the other side in {many}: sessions may differ for other reasons"
