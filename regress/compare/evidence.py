"""What the rounds of one case say on one side: failed rounds and values that are no values are sorted out before any test."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from regress.model import SET_UP_EACH, SYNCHRONIZES, Failure, Measured, Protocol, Round, Samples, ends_of
from regress.stats.summary import median

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
        ordered = tuple(sorted(rounds, key=lambda each: (each.order, each.started_at, each.process)))
        good = tuple(each for each in ordered if each.failure is None)
        # A round that was skipped says less than one that broke.
        failures = sorted((each.failure for each in ordered if each.failure), key=lambda each: each.kind == "skipped")
        if not failures:
            return cls(side, ordered, good, good_share, None, ())
        note = f"{failures[0].kind} in {len(failures)} of {_rounds(ordered)} on the {side}: {failures[0].message}"
        enough = _share(good, ordered) >= good_share
        return cls(side, ordered, good, good_share, None if enough else failures[0], (note,))

    def has(self, metric: str) -> bool:
        """Whether enough of the good rounds have the metric, be its value good or not."""
        return _share([each for each in self.good if metric in each.values], self.good) >= self.good_share

    def metrics(self) -> set[str]:
        """Every metric that any good round has."""
        return {name for each in self.good for name in each.values}

    def flags(self) -> list[str]:
        """The doubts of the good rounds, or of the failed ones if there are no others; each once, with how many share it."""
        told = self.good or self.rounds
        counts = Counter(flag for each in told for flag in dict.fromkeys(each.flags) if flag != SYNCHRONIZES)
        return [f"{flag} ({n} of {_rounds(told)} on the {self.side})" for flag, n in counts.items()]

    def ways(self) -> list[str]:
        """What is unusual about how the case was measured, in words."""
        return (
            [SET_UP_EACH] if any(each.protocol is not None and each.protocol.setup_each for each in self.good) else []
        )

    def clock_step_s(self) -> float:
        """The coarsest step of the clock behind the case's own metric, a call; 0.0 where no round knows it."""
        return max((_clock_step_s(each) for each in self.good), default=0.0)

    def samples_of(self, metric: str) -> Samples | None:
        """What the samples of a time are in the good rounds; None where no round has several."""
        found = [(each, ends) for each in self.good if metric in each.values and (ends := ends_of(each.values[metric]))]
        if not found:
            return None
        every = [ends for _, ends in found]
        return Samples(
            n=sum(each.n for each in every),
            calls=min(_calls(each.protocol, metric) for each, _ in found),
            low=min(each.low for each in every),
            p95=median([each.p95 for each in every]),
            high=max(each.high for each in every),
        )

    def values_of(self, metric: str, *, every_round: bool) -> Values | None:
        """The metric's values in order of the rounds; None where no round has it and none has to.

        NaN, infinite and negative values are left out and said, a missing one too if `every_round` has to have it. Under
        the good share the values have failed: `skipped` if all that is wrong is NaN, which is how a benchmark says that
        there is no number, else `error`.
        """
        asked = [each for each in self.good if every_round or metric in each.values]
        if not asked:
            return None
        measured = [each.values.get(metric) for each in asked]
        good = [
            (each, value)
            for each, value in zip(asked, measured, strict=True)
            if value is not None and not _fault(value)
        ]
        faults = Counter(fault for each in measured if (fault := _fault(each)))
        words = [f"{fault} {metric} in {n} of {_rounds(asked)}" for fault, n in sorted(faults.items())]
        notes = [f"{each} on the {self.side}" for each in words]
        if invalid := sum(each.invalid for each in measured if each is not None):
            notes.append(f"{invalid} invalid samples of {metric} on the {self.side}")
        failure = None
        if _share(good, asked) < self.good_share:
            failure = Failure("skipped" if set(faults) == {"NaN"} else "error", "; ".join(words))
        present = [each for each in measured if each is not None]
        return Values(
            values=tuple(value.value for _, value in good),
            runs=tuple(each.run for each, _ in good),
            cards=tuple(str(each.facts.get("gpu_uuid", "")) for each, _ in good),
            units=frozenset(each.unit for each in present),
            exact=bool(present) and all(each.exact for each in present),
            failure=failure,
            notes=tuple(notes),
        )


def _calls(protocol: Protocol | None, metric: str) -> int:
    """Calls a sample."""
    if protocol is None:
        return 1
    beside = {"host_time": protocol.host_calls, "wall_time": protocol.wall_calls}
    return protocol.calls if metric == protocol.metric else beside.get(metric, 1)


def _fault(measured: Measured | None) -> str:
    """What is wrong with a round's value; empty for a good one."""
    if measured is None:
        return "no"
    if math.isnan(measured.value):
        return "NaN"
    if math.isinf(measured.value):
        return "infinite"
    return "negative" if measured.value < 0 else ""


def _share(part: Sequence[object], whole: Sequence[object]) -> float:
    return len(part) / len(whole) if whole else 0.0


def _rounds(rounds: Sequence[object]) -> str:
    return f"{len(rounds)} round" + ("s" if len(rounds) != 1 else "")


def _clock_step_s(round_: Round) -> float:
    step = round_.facts.get(CLOCK_STEP, 0.0)
    if round_.protocol is None or not isinstance(step, (int, float)) or not 0 < step < math.inf:
        return 0.0
    return step / max(1, round_.protocol.calls)
