"""One case over many commits: changes of level, and the machine that may have moved in the meantime."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, NamedTuple

from regress.measure.wire import Failure
from regress.model.acknowledgement import Acknowledgement
from regress.model.comparison import Verdict
from regress.model.measurement import Case, Commit, Metric
from regress.stats.summary import median

Way = tuple[tuple[str, str], ...]
"""How a point of a series was measured, as names and values: version of the benchmark, declared sampling, protocol, driver,
frameworks. Points measured differently are never in one level."""


@dataclass(frozen=True)
class Conditions:
    """What the device was like while some rounds were taken."""

    rounds: int
    slowed: int = 0
    """Rounds in which it slowed itself down."""
    reasons: tuple[str, ...] = ()
    """Why it did."""
    clocks_hz: tuple[float, ...] = ()
    """SM clocks of the rounds that know it."""
    company: tuple[str, ...] = ()
    """Other processes that computed on it, in words, each as it was seen last."""


class Corrected(NamedTuple):
    """A value, corrected for who measured it, and the standard error of its logarithm against those of what it is compared with
    directly."""

    value: float
    error: float


@dataclass(frozen=True)
class Series:
    """One case and metric on one machine, kind of device and environment over commits, the oldest first: columns of equal
    length, an item a commit with a result."""

    case: Case
    metric: Metric
    machine: str
    device: str
    """The model of the GPU, whichever card it is; empty if unknown."""
    environment: str
    commits: tuple[str, ...]
    """Full hashes of all that were asked for, also of commits without a result."""
    at: tuple[int, ...]
    """The places among `commits` that the columns are about."""
    rounds: tuple[tuple[float, ...], ...]
    """The round values of each; empty without a value."""
    ways: tuple[Way, ...]
    intervals: tuple[tuple[float, float] | None, ...]
    """What asv recorded as the interval of a value whose rounds are unknown; None elsewhere."""
    failures: tuple[str, ...]
    """The kind of failure ("error", "skipped", ...) that left no value; otherwise empty."""
    primary: bool = True
    """Whether it is the metric that the case is about."""
    threshold: float | None = None
    """What the benchmark declares as large."""
    conditions: Mapping[int, Conditions] = field(default_factory=dict, compare=False)
    """By place: the state of the device, if it affects the values."""
    runs: Mapping[int, tuple[str, ...]] = field(default_factory=dict, compare=False)
    """By place: the run of regress, which is a session of the machine, that recorded each round; empty if nothing says."""
    corrected: Mapping[int, Corrected] = field(default_factory=dict, compare=False)
    """By place: the value corrected for who measured it. If windows in turn with other commits allow it, their ratio of the
    commit to the newest commit they link it with, times the raw value of that one. If several cards have read the series, what
    the mean one of them would have read."""
    cards: Mapping[int, tuple[str, ...]] = field(default_factory=dict, compare=False)
    """By place: the UUIDs of the cards that measured the value; one is empty if unknown."""
    factors: Mapping[str, float] = field(default_factory=dict, compare=False)
    """By card, if commits link several: its readings over those of the mean card."""

    beside: frozenset[int] = field(default=frozenset(), compare=False)
    """Places of commits beside the main line: no level continues from or to them."""

    def __post_init__(self) -> None:
        columns = (self.at, self.rounds, self.ways, self.intervals, self.failures)
        if len({len(column) for column in columns}) > 1:
            raise ValueError("the columns of a series have one length")

    @cached_property
    def values(self) -> tuple[float | None, ...]:
        """The median of the round values of each; None without a value."""
        return tuple((rounds[0] if len(rounds) == 1 else median(rounds)) if rounds else None for rounds in self.rounds)

    @cached_property
    def curve(self) -> tuple[float | None, ...]:
        """The values, corrected where possible."""
        if not self.corrected:
            return self.values
        known = self.corrected
        return tuple(known[at].value if at in known else value for at, value in zip(self.at, self.values, strict=True))

    @cached_property
    def curve_rounds(self) -> tuple[tuple[float, ...], ...]:
        """The round values, moved with the value of their commit where that is corrected."""
        if not self.corrected:
            return self.rounds
        moved = zip(self.rounds, self.values, self.curve, strict=True)
        return tuple(
            tuple(round * value / read for round in rounds) if value and read else rounds
            for rounds, read, value in moved
        )

    @cached_property
    def by_way(self) -> dict[Way, list[int]]:
        """Which items of the columns have values measured in that way. Those beside the line are left out unless there are no
        others."""
        ways: dict[Way, list[int]] = {}
        before: Way | None = None
        own: list[int] = []
        for index, (way, rounds) in enumerate(zip(self.ways, self.rounds, strict=True)):
            if rounds:
                if way is not before:  # most are the very object: a long key is not hashed again
                    before, own = way, ways.setdefault(way, [])
                own.append(index)
        if self.beside:
            return {
                way: [place for place in own if self.at[place] not in self.beside] or own for way, own in ways.items()
            }
        return ways


@dataclass(frozen=True)
class ChangePoint:
    """A change of level in a series. `before` and `after` are the levels, `ratio` is after/before with its 95 % interval.

    `ratio`, `low` and `high` are None from or to zero; for exact metrics the interval is the ratio itself.
    """

    first: str
    """The most likely first commit at the new level."""
    blamed: tuple[str, ...]
    """The commits that may be responsible, the oldest first; `first` is one of them."""
    good: str
    """The newest measured commit before them: bisect between it and the last one blamed."""
    before: float
    after: float
    ratio: float | None
    low: float | None
    high: float | None
    moved: Verdict
    """Which way: regressed or improved, or changed where the better direction is unknown; large or not."""
    large: bool
    """Beyond `threshold`, and by more than the floor: only then it is worth an alert."""
    threshold: float
    state: Literal["tentative", "confirmed", "recovered", "relapsed"]
    """`tentative`: only the last commits, too few to tell it from a stray result; measure again. `recovered`: an improvement
    that took an earlier regression back, or one of two changes up and down around two stray values, which has `recovered_by`
    too. `relapsed`: a regression that ends a short improvement, so most of the recent results were no better."""
    way: Way
    recovered_by: str = ""
    """The first commit of the improvement that took this regression back."""
    undoes: str = ""
    """The first commit of an earlier change that it took back, whichever way that went: it is at the level of before again."""
    reasons: tuple[str, ...] = ()
    acknowledged: Acknowledgement | None = None

    @property
    def is_passing(self) -> bool:
        """Whether it went, or came back, after two values: nothing of it is left."""
        return self.state == "recovered" and bool(self.recovered_by)

    @property
    def is_open(self) -> bool:
        """Whether it is a regression that counts, is sure, and has neither been taken back nor acknowledged."""
        worse = self.moved is Verdict.REGRESSED and self.large
        return worse and self.state == "confirmed" and not self.recovered_by and self.acknowledged is None


@dataclass(frozen=True)
class Confirmation:
    """The result of measuring two commits in turn: a change is confirmed or, with the verdict `unchanged`, refuted. `ratio` is
    head over base."""

    base: str
    """Full hash."""
    head: str
    verdict: Verdict
    ratio: float | None
    command: str
    date: float
    """When, in seconds since the epoch."""


@dataclass(frozen=True)
class Changed:
    """A change point with the series it is in, for people."""

    case: Case
    metric: Metric
    machine: str
    environment: str
    device: str
    point: ChangePoint
    blamed: tuple[Commit, ...]
    """The commits of `point.blamed`."""
    new: bool = False
    """Whether this report raises the alarm: in a sweep, because it was unknown before."""


@dataclass(frozen=True)
class Shift:
    """Changes of many unrelated benchmarks at one commit, if none of them moved elsewhere, or all returned to an earlier
    level: one event, because it says more about the machine than about the commit."""

    machine: str
    environment: str
    device: str
    good: str
    """The newest measured commit before the change."""
    blamed: tuple[Commit, ...]
    """The commits that may be responsible for all of them, the oldest first."""
    changes: tuple[Changed, ...]
    """The largest first."""
    reasons: tuple[str, ...]
    """What speaks for another cause than the commit, in words."""

    @property
    def benchmarks(self) -> tuple[str, ...]:
        """Their names."""
        return tuple(dict.fromkeys(change.case.name for change in self.changes))

    @property
    def new(self) -> bool:
        """Whether this report raises the alarm for any of it."""
        return any(change.new for change in self.changes)


def outside(changes: Iterable[Changed], shifts: Iterable[Shift]) -> list[Changed]:
    """The changes that are separate events."""
    shifted = {id(change) for shift in shifts for change in shift.changes}
    return [change for change in changes if id(change) not in shifted]


@dataclass(frozen=True)
class Breakage:
    """A case that stopped giving numbers, in one place: an event, like a regression."""

    case: Case
    machine: str
    environment: str
    device: str
    failure: Failure
    """At the first commit without a number; its message is empty if only asv has recorded it."""
    good: str
    """The newest commit with a number."""
    blamed: tuple[Commit, ...]
    """The commits that may be responsible, the oldest first; the last one is the first measured commit without a number."""
    new: bool = False
    """Whether this report raises the alarm, because it was unknown before."""
    acknowledged: Acknowledgement | None = None

    @property
    def first(self) -> Commit:
        return self.blamed[-1]


@dataclass(frozen=True)
class Anchor:
    """A commit measured again, in the same case and metric, beside the results of `beside`."""

    commit: str
    beside: str
    then: tuple[float, ...]
    """Its round values of the time when it was new."""
    now: tuple[float, ...]
    runs: tuple[str, ...] = ()
    """The run of regress that recorded each of these."""


@dataclass(frozen=True)
class Move:
    """A value of an anchor that is not what it was: the code is the same, so the machine is not."""

    case: Case
    metric: Metric
    ratio: float
    """Now to when it was recorded."""
    p: float


@dataclass(frozen=True)
class AnchorCheck:
    """How a commit that a sweep measured again compares with its earlier record, in the values that raise alarms."""

    commit: Commit
    beside: Commit
    label: str
    """Its tag, if it has one."""
    recorded_at: float | None
    """When it was measured first."""
    cases: int
    """Those that were measured both times."""
    within: float | None
    """The largest relative change of any value; None if nothing could be compared."""
    moved: tuple[Move, ...] = ()
    """Values that moved significantly by themselves, and by `change_threshold` or more. Among many, some do by chance."""
    together: tuple[float, float, float, int] | None = None
    """Geometric mean of the ratios of its times with its interval, and the number of cases; None if it is not a drift."""
    drifted: bool = False
    """Whether the machine has changed, beyond chance among that number of values."""
