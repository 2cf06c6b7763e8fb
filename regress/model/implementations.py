"""One operation implemented in several ways: the fastest at each size, and where that changes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from regress.measure.wire import Failure
from regress.model.measurement import Case, Metric
from regress.stats.summary import Summary

Outcome = Literal["fastest", "no difference shown", "alone", "nothing measured"]


@dataclass(frozen=True)
class Contender:
    """One implementation at one combination of the other parameters. Without a summary there is a failure, or it was not
    measured."""

    name: str
    case: Case
    summary: Summary | None = None
    failure: Failure | None = None
    ratio: float | None = None
    """Its time over the smallest one, with its 95 % interval; None for the smallest itself, and without a test."""
    low: float | None = None
    high: float | None = None
    p_adjusted: float | None = None
    """Welch's two-sided p against the smallest, after Holm over all such tests of its benchmark."""


@dataclass(frozen=True)
class Standing:
    """The implementations at one combination of the other parameters."""

    params: tuple[str, ...]
    """Of the other parameters."""
    contenders: tuple[Contender, ...]
    """In the suite's order."""
    leaders: tuple[str, ...] = ()
    """Those not told apart from the smallest time, which is the first of them; a single one is the fastest."""
    reasons: tuple[str, ...] = ()
    """What speaks against telling some of them apart, whatever their times."""

    @property
    def outcome(self) -> Outcome:
        if not self.leaders:
            return "nothing measured"
        if len(self.leaders) > 1:
            return "no difference shown"
        return "fastest" if sum(contender.summary is not None for contender in self.contenders) > 1 else "alone"

    @property
    def fastest(self) -> str:
        """Empty if none is shown to be the fastest."""
        return self.leaders[0] if self.outcome == "fastest" else ""

    @property
    def next(self) -> Contender | None:
        """The one with the smallest time but the first."""
        timed = sorted(
            (contender.summary.center, at)
            for at, contender in enumerate(self.contenders)
            if contender.summary is not None
        )
        return self.contenders[timed[1][1]] if len(timed) > 1 else None


@dataclass(frozen=True)
class Stretch:
    """Sizes next to each other with the same outcome, from `first` to `last`, as parameters."""

    outcome: Outcome
    names: tuple[str, ...]
    """The implementations in question, in the suite's order: the fastest, or those not told apart."""
    first: str
    last: str


@dataclass(frozen=True)
class Crossover:
    """Which implementation is the fastest along the size, at one combination of the parameters that are left."""

    params: tuple[str, ...]
    stretches: tuple[Stretch, ...]
    """By size, the smallest first; every size is in one of them."""
    words: str
    """ "triton up to 512, torch from 1024"."""


@dataclass(frozen=True)
class Implementations:
    """The implementations of one benchmark side by side, in one metric."""

    name: str
    metric: Metric
    names: tuple[str, ...]
    """Of the implementations, in the suite's order."""
    param_names: tuple[str, ...]
    """Of the other parameters."""
    standings: tuple[Standing, ...]
    """In the suite's order."""
    size: str = ""
    """The parameter with numeric values; empty if none has several values."""
    crossovers: tuple[Crossover, ...] = ()
    """Empty without a size."""

    @property
    def rest_names(self) -> tuple[str, ...]:
        """Of the parameters that are neither the implementation nor the size."""
        return tuple(name for name in self.param_names if name != self.size)
