"""The nouns of the program, and Settings with every default. This docstring is the glossary; outputs use these words.

    Case        one benchmark with one parameter combination; `str()` is asv's `name(p1, p2)`
    Metric      what a number is: gpu_time, host_time, wall_time, peak_memory, ..., its unit, and which direction is better
    Side        what is measured: a commit, or the working tree, in an environment
    Protocol    how a case is measured; fixed once a case, the same for every round of both sides
    Round       one visit to one case on one side; its process takes part in no other (asv's word; a "launch" is a kernel's)
    Summary     centre, interval and spread of the round values of one side
    Comparison  one case and metric, base against head, with a verdict and its reasons
    Verdict     regressed, improved, unchanged, undecided, failed, new, gone, skipped, changed, incomparable
    Series      one case and metric on one machine, device and environment over commits
    ChangePoint a change of level in a series: first commit at the new level, what may be to blame, ratio, state
    Anchor      a commit that was measured again: if it moved, the machine did
    AnchorCheck  what an anchor shows: which of its values are no longer what they were when it was recorded
    Acknowledgement  an entry of the acknowledgement file: a change that was seen and, until further notice, is no alarm
    KernelDiff  a kernel before and after: launches and seconds a call, and how the two were matched
    Explanation where the difference between two profiles went: kernels, copies, idle time
    Explained   a comparison with its explanation: the difference as measured, and as profiles of both sides show it
    KeptExplanation  an Explained of two commits as it is kept beside results, without traces
    Totals      where the time of a profiled call went: device busy, idle, launches, copies, waiting
    CallProfile a profiled case: totals, operators, kernels, gaps, and what holds it back
    Bound       what holds a kernel back: memory, arithmetic, launches, latency
    Metered     kernels one by one as Nsight Compute measured them: how near each came to what the device can do
    Bisection   the search for the commit that did it: probes, the commit or the range, how sure
    Probe       one commit that was measured in a bisection, against the good end
    Check       one line of `doctor` or `init`
    SelfCheck   a side against itself ("A/A"): what is claimed there is a false alarm
    Implementations  one operation done in several ways, side by side: a Standing for each combination of the other parameters
    Standing    the implementations at one combination: which is the fastest, or that no difference is shown
    Stretch     sizes next to each other at which the answer is the same; where it changes is a crossover
    Report      everything a renderer needs, computed already

"Significant" means beyond noise, "large" means beyond the threshold: two questions, two words. A ratio is head/base. A time
is seconds and a memory is bytes, always. The unit of replication is the round, never the sample.
"""

from __future__ import annotations

import enum
import statistics
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from regress.measure.wire import (
    DECLARED_SAMPLING,
    PROTOCOL_IDENTITY,
    SYNCHRONIZES,
    Benchmark,
    Failure,
    Measured,
    Protocol,
    Round,
    SuiteProblem,
)
from regress.profiles import Profile
from regress.stats.summary import Summary

__all__ = [
    "DECLARED_SAMPLING",
    "METRICS",
    "PROTOCOL_IDENTITY",
    "SYNCHRONIZES",
    "THRESHOLD_KINDS",
    "Acknowledgement",
    "Anchor",
    "AnchorCheck",
    "ApiUse",
    "Benchmark",
    "Bisection",
    "Bottleneck",
    "Bound",
    "Built",
    "CallProfile",
    "Case",
    "Cause",
    "ChangePoint",
    "Changed",
    "Check",
    "Commit",
    "Comparison",
    "Confidence",
    "Contender",
    "Contrast",
    "Crossover",
    "DiffKind",
    "Explained",
    "Explanation",
    "Failure",
    "Fineness",
    "Gap",
    "Implementations",
    "KeptExplanation",
    "KernelDiff",
    "KernelMetrics",
    "KernelUse",
    "Lane",
    "Listed",
    "Machine",
    "Matched",
    "Measured",
    "Measurement",
    "MemoryUse",
    "Merged",
    "Metered",
    "MeteredKernel",
    "Metric",
    "Move",
    "OperatorUse",
    "PartUse",
    "Probe",
    "ProfiledSide",
    "Protocol",
    "Report",
    "Reviewed",
    "Round",
    "SelfCheck",
    "Series",
    "Settings",
    "Side",
    "Span",
    "Standing",
    "Stopped",
    "Stretch",
    "SuiteProblem",
    "Summary",
    "Throughput",
    "Totals",
    "Verdict",
    "Way",
    "declared_words",
    "metric_of",
    "old_names",
]


# -- what is measured ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, order=True)
class Case:
    """One benchmark with one parameter combination. `params` are asv's strings (the repr of each value)."""

    name: str
    params: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.name}({', '.join(self.params)})" if self.params else self.name


Better = Literal["lower", "higher", "unknown"]


@dataclass(frozen=True)
class Metric:
    """What a number is. `kind` chooses threshold and floor; `suffix` is appended to the benchmark's name in asv's files."""

    name: str
    unit: str
    kind: Literal["time", "host", "memory", "count", "tracked"]
    better: Better = "lower"
    exact: bool = False


METRICS = {
    metric.name: metric
    for metric in (
        Metric("gpu_time", "s", "time"),
        Metric("host_time", "s", "host"),
        Metric("wall_time", "s", "time"),
        Metric("cold_time", "s", "time"),
        Metric("compile_time", "s", "time"),
        Metric("peak_memory", "B", "memory", exact=True),
        Metric("output_memory", "B", "memory", exact=True),
        Metric("left_memory", "B", "memory", exact=True),
        Metric("peak_rss", "B", "memory"),
        Metric("object_size", "B", "memory"),
        Metric("launches", "count", "count", exact=True),
        Metric("synchronizations", "count", "count", exact=True),
        Metric("copies", "count", "count", exact=True),
        Metric("recompiles", "count", "count", exact=True),
        Metric("graph_breaks", "count", "count", exact=True),
        Metric("allocations", "count", "count", exact=True),
    )
}
"""The metrics with a meaning of their own; `value`, the metric of a `track_*`, takes unit and direction from the benchmark."""

_LOWER = {
    "s",
    "sec",
    "second",
    "seconds",
    "ms",
    "us",
    "µs",
    "ns",
    "b",
    "byte",
    "bytes",
    "kib",
    "mib",
    "gib",
    "kb",
    "mb",
    "gb",
}
_HIGHER = {
    "flop/s",
    "flops",
    "gflop/s",
    "gflops",
    "tflop/s",
    "tflops",
    "gb/s",
    "mb/s",
    "gib/s",
    "mib/s",
    "b/s",
    "it/s",
    "hz",
}


def metric_of(name: str, unit: str = "", better: str | None = None, exact: bool | None = None) -> Metric:
    """The metric of that name. For a tracked number, the direction is the declared one or is inferred from the unit."""
    known = METRICS.get(name)
    if known is not None:
        return known
    direction: Better = "unknown"
    if better in ("lower", "higher"):
        direction = better  # type: ignore[assignment]
    elif unit.lower() in _LOWER:
        direction = "lower"
    elif unit.lower() in _HIGHER or unit.lower().endswith("/s"):
        direction = "higher"
    return Metric(name, unit, "tracked", direction, bool(exact))


def declared_words(benchmark: Benchmark, name: str) -> tuple[str, ...]:
    """What a benchmark declares under that name (`tags`, `covers`, `was`): one string, or a list of them."""
    value = benchmark.declared.get(name, ())
    words = (value,) if isinstance(value, str) else value if isinstance(value, (list, tuple)) else ()
    return tuple(word for word in words if isinstance(word, str) and word)


def old_names(name: str, declared: Iterable[str]) -> Iterator[str]:
    """The names that `was` may mean: a benchmark's, or, declared on a class or a module, that class's or module's."""
    parts = name.split(".")
    for was in declared:
        yield was
        for start in range(1, len(parts)):
            yield ".".join([was, *parts[start:]])


@dataclass(frozen=True)
class Commit:
    """A commit. `date` is the committer's, in seconds since the epoch."""

    sha: str
    subject: str
    author: str
    date: float
    parents: tuple[str, ...] = ()

    @property
    def short(self) -> str:
        return self.sha[:8]


@dataclass(frozen=True)
class Side:
    """What is measured: `commit`, or with `dirty` the working tree on top of it, in the environment of that name."""

    name: str
    """base or head; in `run` it is head."""
    commit: Commit
    revision: str
    """As the user wrote it, or how it was chosen: "HEAD~1", "merge base with main"."""
    environment: str = ""
    dirty: bool = False
    beside: str = ""
    """Of an anchor: the full hash of the commit beside which this one is measured again. Such rounds are not its results."""

    @property
    def label(self) -> str:
        return self.commit.short + ("+changes" if self.dirty else "")

    @property
    def full_label(self) -> str:
        return self.commit.sha + ("+changes" if self.dirty else "")


@dataclass(frozen=True)
class Machine:
    """Where it was measured. `name` is the folder in results_dir; `facts` are asv's machine.json entries and ours."""

    name: str
    facts: dict[str, str] = field(default_factory=dict)


# -- what comes out ------------------------------------------------------------------------------------------------------


class Verdict(str, enum.Enum):
    """The words for an outcome; the same in every output."""

    REGRESSED = "regressed"
    IMPROVED = "improved"
    UNCHANGED = "unchanged"
    UNDECIDED = "undecided"
    FAILED = "failed"
    NEW = "new"
    GONE = "gone"
    SKIPPED = "skipped"
    CHANGED = "changed"
    INCOMPARABLE = "incomparable"

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True)
class Throughput:
    """Work a second of one case on one side, and its share of what the device does at most (0.5 is half); None where not
    known."""

    bytes_per_s: float | None = None
    flops_per_s: float | None = None
    share_of_copy: float | None = None
    share_of_matmul: float | None = None


AckKind = Literal["accepted", "noise", "quarantine"]
ACK_KINDS: tuple[AckKind, ...] = ("accepted", "noise", "quarantine")
NEXT_TAG, LIFTED = "next tag", "lifted"
"""Until when an acknowledgement acts, beside the name of a tag or a date."""


@dataclass(frozen=True)
class Acknowledgement:
    """An entry of the acknowledgement file: what cases do was seen by somebody, who says why it is no alarm."""

    pattern: str
    """Exact name of a benchmark or case, else a regular expression."""
    kind: AckKind
    """`accepted`: worse up to a level. `noise`: listed, but proof of nothing. `quarantine`: measured and listed apart."""
    reason: str
    metric: str = ""
    """Empty: all of them."""
    level: float | None = None
    """Of `accepted`: what the value may come to, as a ratio to the value at `since`."""
    value: float | None = None
    """Of `accepted`, where the value at `since` is zero and there is no ratio: what it may come to, in the metric's unit."""
    since: str = ""
    """A commit before the change."""
    seen: str = ""
    """A commit that has the change: of `accepted`, where its level was measured."""
    until: str = NEXT_TAG
    """NEXT_TAG, LIFTED (until the entry is removed), the name of a tag, or a date."""
    link: str = ""
    line: int = field(default=0, compare=False)
    """Where it begins in the file; 0 where that is not known."""

    @property
    def until_words(self) -> str:
        return {NEXT_TAG: "until the next tag", LIFTED: "until it is lifted"}.get(self.until, f"until {self.until}")

    @property
    def words(self) -> str:
        """ "accepted until v1.6: fused in #412"."""
        return f"{self.kind} {self.until_words}: {self.reason}"


@dataclass(frozen=True)
class Reviewed:
    """An acknowledgement as it stands for the head that is judged."""

    entry: Acknowledgement
    state: Literal["active", "expired", "unused"]
    why: str = ""
    """Since when it has expired, or why it is unused."""
    fix: str = ""


@dataclass(frozen=True)
class Comparison:
    """One case and metric, base against head.

    `ratio` is head/base with its 95 % interval `low`, `high`; None where one side has no number or base is zero. `p` is
    Welch's two-sided p on the logarithms of the round values, `p_adjusted` the same after Holm over the run; both None for
    exact metrics. `min_detectable` is the smallest regression (as a ratio) this comparison could have called one.
    """

    case: Case
    metric: Metric
    verdict: Verdict
    reasons: tuple[str, ...] = ()
    base: Summary | None = None
    head: Summary | None = None
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    p: float | None = None
    p_adjusted: float | None = None
    gates: bool = True
    """Whether a regression of it fails the check."""
    exact: bool = False
    threshold: float = 0.05
    counts_from: float | None = None
    """Smallest relative change that counts here: the threshold, or what makes up the floor where that is more."""
    noise: float | None = None
    """Smallest change that would have been significant, as a relative change (0.006 is 0.6 %)."""
    min_detectable: float | None = None
    critical: bool = False
    base_failure: Failure | None = None
    head_failure: Failure | None = None
    base_throughput: Throughput | None = None
    head_throughput: Throughput | None = None
    acknowledged: Acknowledgement | None = None
    """The acknowledgement that keeps it from being an alarm. The verdict is what it is."""

    @property
    def alarms(self) -> bool:
        """Whether its verdict counts for the exit code."""
        return self.gates and self.acknowledged is None

    @property
    def fails_on_head(self) -> bool:
        """What is skipped there does not fail; what only the base skips did not work there either."""
        failure = self.head_failure
        return self.verdict is Verdict.FAILED and failure is not None and failure.kind != "skipped"

    def exit_code(self, strict: bool = False) -> int:
        """What it alone makes of a check: 1 regressed, 3 fails on head, 4 undecided where that counts, else 0.

        `strict` adds what fails on both sides to 3, and every undecided case to 4.
        """
        if not self.alarms:
            return 0
        if self.verdict is Verdict.REGRESSED:
            return 1
        if self.fails_on_head and (strict or self.base_failure is None):
            return 3
        return 4 if self.verdict is Verdict.UNDECIDED and (strict or self.critical) else 0


Way = tuple[tuple[str, str], ...]
"""How a point of a series was measured, as names and values: version of the benchmark, declared sampling, protocol, driver,
frameworks. What was measured in unlike ways is never put into one level."""


@dataclass(frozen=True)
class Series:
    """One case and metric on one machine, device and environment over commits, the oldest first: columns of equal length, an
    item a commit with a result."""

    case: Case
    metric: Metric
    machine: str
    device: str
    """UUID of the GPU, or its model where cards of a model are one series; empty where nothing is known."""
    environment: str
    commits: tuple[str, ...]
    """Full hashes of all that were asked for, also of commits without a result."""
    at: tuple[int, ...]
    """The places among `commits` that the columns are about."""
    rounds: tuple[tuple[float, ...], ...]
    """The round values of each; empty where there is no value."""
    ways: tuple[Way, ...]
    intervals: tuple[tuple[float, float] | None, ...]
    """What asv recorded as the interval of a value whose rounds are unknown; None elsewhere."""
    failures: tuple[str, ...]
    """The kind of failure ("error", "skipped", ...) where there is no value because of one; empty elsewhere."""
    primary: bool = True
    """Whether it is the metric that the case is about."""
    threshold: float | None = None
    """What the benchmark declares as large."""

    def __post_init__(self) -> None:
        columns = (self.at, self.rounds, self.ways, self.intervals, self.failures)
        if len({len(column) for column in columns}) > 1:
            raise ValueError("the columns of a series have one length")

    @cached_property
    def values(self) -> tuple[float | None, ...]:
        """The median of the round values of each; None where there is no value."""
        return tuple((each[0] if len(each) == 1 else statistics.median(each)) if each else None for each in self.rounds)

    @cached_property
    def by_way(self) -> dict[Way, list[int]]:
        """Which items of the columns have values that were measured in that way."""
        found: dict[Way, list[int]] = {}
        before: Way | None = None
        own: list[int] = []
        for index, (way, rounds) in enumerate(zip(self.ways, self.rounds, strict=True)):
            if rounds:
                if way is not before:  # most are the very object: a long key is not hashed again
                    before, own = way, found.setdefault(way, [])
                own.append(index)
        return found


@dataclass(frozen=True)
class ChangePoint:
    """A change of level in a series. `before` and `after` are the levels, `ratio` is after/before with its 95 % interval.

    `ratio`, `low` and `high` are None from or to zero; for exact metrics the interval is the ratio itself.
    """

    first: str
    """The first commit at the new level, as far as can be told."""
    blamed: tuple[str, ...]
    """The commits that may be to blame, the oldest first; `first` is one of them."""
    good: str
    """The newest measured commit that is none of them: bisect between it and the last one blamed."""
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
    state: Literal["tentative", "confirmed", "recovered"]
    """`tentative`: the last commits only, and too few to tell it from a stray result: measure again. `recovered`: an
    improvement that took an earlier regression back."""
    way: Way
    recovered_by: str = ""
    """The first commit of the improvement that took this regression back."""
    reasons: tuple[str, ...] = ()
    acknowledged: Acknowledgement | None = None

    @property
    def is_open(self) -> bool:
        """Whether it is a regression that counts, is sure, and has neither been taken back nor acknowledged."""
        worse = self.moved is Verdict.REGRESSED and self.large
        return worse and self.state == "confirmed" and not self.recovered_by and self.acknowledged is None


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
    """Whether this report raises the alarm: in a sweep, because nobody could have known of it before."""


@dataclass(frozen=True)
class Anchor:
    """A commit that was measured again, in the same case and metric, beside the results of `beside`."""

    commit: str
    beside: str
    then: tuple[float, ...]
    """Its round values of the time when it was new."""
    now: tuple[float, ...]


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
    """How a commit that was measured again in a sweep stands to when it was recorded, in the values that raise alarms."""

    commit: Commit
    beside: Commit
    label: str
    """Its tag, where it has one."""
    recorded_at: float | None
    """When it was measured first."""
    cases: int
    """Those that were measured both times."""
    within: float | None
    """The largest relative change of any value; None where nothing could be compared."""
    moved: tuple[Move, ...] = ()
    """What has moved as far as a single value can tell: significantly, and by `change_threshold` or more. Of many some do by
    chance."""
    together: tuple[float, float, float, int] | None = None
    """Geometric mean of the ratios of its times with its interval, and of how many cases; None where it is no drift."""
    drifted: bool = False
    """Whether the machine is another one by now, beyond what chance does in so many values."""


@dataclass(frozen=True)
class Contrast:
    """How far two commits are apart in one metric of a case, measured in turn."""

    metric: Metric
    verdict: Verdict
    before: float | None = None
    after: float | None = None
    ratio: float | None = None
    """after/before, with its 95 % interval; None where a side has no value, or the first is zero."""
    low: float | None = None
    high: float | None = None
    exact: bool = False
    rounds: int = 0
    """A side."""
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True)
class Probe:
    """One commit that was measured in a bisection, in turn with the good end. `ratio` is commit/good with its 95 % interval."""

    commit: Commit
    state: Literal["good", "bad", "between", "unclear", "skipped"]
    """`between`: it has a part of the change. `unclear`: not told apart. `skipped`: it cannot be measured."""
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    pairs: int = 0
    """Rounds a side."""
    left: int = 0
    """How many commits could have done it, after this probe."""
    reason: str = ""
    """Why it was skipped."""


@dataclass(frozen=True)
class Bisection:
    """The search for the commit between `good` and `bad` that did it. What was not reached is None or empty."""

    case: Case
    good: Commit
    bad: Commit
    candidates: int
    """Commits of the line between the ends, the bad one among them."""
    change: Contrast | None = None
    """Between the ends."""
    probes: tuple[Probe, ...] = ()
    """In the order they were measured in."""
    found: tuple[Commit, ...] = ()
    """The commit that did it, or those that may have, the oldest first."""
    parent: Commit | None = None
    """What the last of `found` was measured against to confirm it: the newest commit before it that can be."""
    step: Contrast | None = None
    """Between the two, in fresh rounds."""
    confirmed: bool = False
    confidence: float | None = None
    """Probability that the commit that did it is among `found`."""
    merges: tuple[Commit, ...] = ()
    """Merges that brought the change along, the outermost first; the search went on in what they merged."""
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True)
class Fineness:
    """How fine one metric of a case was measured in an A/A check. What is exact has neither spread nor noise."""

    case: Case
    metric: Metric
    verdict: Verdict
    rounds: int
    """A side, all that were needed."""
    spread: float | None
    """Standard deviation of the logarithms of round values, both sides taken together."""
    noise: float | None
    min_detectable: float | None
    """Smallest regression that could have been confirmed, as a relative change."""


@dataclass(frozen=True)
class SelfCheck:
    """An A/A check, a side against itself, summed up. Every change that it claims is a false alarm."""

    date: float
    """Seconds since the epoch."""
    commit: str
    """Label of the side."""
    cases: tuple[str, ...]
    false_alarms: int
    undecided: int
    unchanged: int
    noise_floor: float | None
    """Median over the cases; a relative change, as the next one."""
    min_detectable: float | None


@dataclass(frozen=True)
class Spread:
    """How much round values of a case scatter: standard deviation of their logarithms, estimated with so many degrees of
    freedom."""

    sd: float
    freedom: int


@dataclass(frozen=True)
class Batch:
    """What is measured next: of each case so many rounds a side, numbered from `first`."""

    rounds: Mapping[Case, int]
    first: int = 0
    title: str = "measuring"
    afresh: bool = False
    """From processes that are started anew on both sides, which change places."""


@dataclass(frozen=True)
class Measurement:
    """One case and metric of one side, as `run` prints it."""

    case: Case
    metric: Metric
    summary: Summary | None
    failure: Failure | None = None
    flags: tuple[str, ...] = ()
    primary: bool = True
    """The metric the case is about; others are shown with -v."""
    throughput: Throughput | None = None


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
    """Its time over the smallest one, with its 95 % interval; None of the smallest itself, and where there is no test."""
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
    """Those that are not told apart from the smallest time, which is the first of them; what stands alone is the fastest."""
    reasons: tuple[str, ...] = ()
    """What speaks against telling some of them apart, whatever their times."""

    @property
    def outcome(self) -> Outcome:
        if not self.leaders:
            return "nothing measured"
        if len(self.leaders) > 1:
            return "no difference shown"
        return "fastest" if sum(each.summary is not None for each in self.contenders) > 1 else "alone"

    @property
    def fastest(self) -> str:
        """Empty where none is shown to be."""
        return self.leaders[0] if self.outcome == "fastest" else ""

    @property
    def next(self) -> Contender | None:
        """The one with the smallest time but the first."""
        timed = sorted((each.summary.center, at) for at, each in enumerate(self.contenders) if each.summary is not None)
        return self.contenders[timed[1][1]] if len(timed) > 1 else None


@dataclass(frozen=True)
class Stretch:
    """Sizes next to each other with the same outcome, from `first` to `last`, as parameters."""

    outcome: Outcome
    names: tuple[str, ...]
    """Of the implementations that it is about, in the suite's order: the fastest, or those that are not told apart."""
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
    """The parameter whose values are numbers; empty where there is none with several values."""
    crossovers: tuple[Crossover, ...] = ()
    """Empty without a size."""

    @property
    def rest_names(self) -> tuple[str, ...]:
        """Of the parameters that are neither the implementation nor the size."""
        return tuple(each for each in self.param_names if each != self.size)


@dataclass(frozen=True)
class Listed:
    """One case as `list` prints it; `cost_s` is what a round took when it was last measured."""

    case: Case
    metric: str
    needs_device: bool
    tags: tuple[str, ...] = ()
    cost_s: float | None = None


@dataclass(frozen=True)
class Check:
    """One line of `doctor` or `init`: what was looked at, what was found, and what to do about it."""

    name: str
    state: Literal["ok", "warn", "fail"]
    found: str
    fix: str = ""


@dataclass(frozen=True)
class Built:
    """One side as `build` left it: built now, reused from before, ready because there is nothing to build, or failed."""

    side: Side
    state: Literal["built", "reused", "ready", "failed"]
    seconds: float = 0.0
    """What the build took, now or, where that is known, when it was done."""
    log: str = ""
    """File with all that the builds of the commit have printed; empty where there is none."""
    reason: str = ""
    """Why it does not build."""
    fix: str = ""


@dataclass(frozen=True)
class Merged:
    """What `merge` took from one folder of results."""

    folder: str
    machines: tuple[str, ...]
    commits: int
    added: int
    """Rounds that were not there yet; a case that asv has measured counts as one."""
    known: int
    """Rounds that were there already."""


@dataclass(frozen=True)
class Stopped:
    """Why a command ended without measuring or reading anything: what was seen, the cause, and the fix."""

    what: str
    why: str = ""
    fix: str = ""


@dataclass(frozen=True)
class KernelUse:
    """What the launches of one kernel come to in one call of what was profiled; in the same words, one way of copying."""

    name: str
    """As the profiler spells it, with template arguments."""
    launches: float
    """A call, as all the sums here."""
    seconds: float
    """On the device."""
    host_s: float = 0.0
    """Inside the API calls that launched it."""
    bytes: float = 0.0
    """Copied or set; zero for a kernel."""
    grid: tuple[int, int, int] | None = None
    """Of its longest launch, as the rest."""
    block: tuple[int, int, int] | None = None
    registers: int | None = None
    shared_bytes: int | None = None
    occupancy: float | None = None
    """A share, as the profiler estimates it or has measured it."""
    operators: tuple[str, ...] = ()
    """The operators that it was first launched in, the outermost first."""
    shapes: str = ""
    dtypes: str = ""
    """Of the arguments of the outermost one."""
    short: str = ""
    """The name without template arguments and parameters."""

    @property
    def label(self) -> str:
        return self.short or self.name

    @property
    def bytes_s(self) -> float | None:
        """Bytes a second of a way of copying; None of a kernel."""
        return self.bytes / self.seconds if self.bytes and self.seconds > 0 else None


Matched = Literal["name", "template", "operator", "position", "nothing"]
"""How a kernel was found again: by its whole name; by the name without template arguments; by the operator and shapes that it
was launched for; by its place between others that did match."""
DiffKind = Literal["new", "gone", "replaced", "slower", "faster", "more launches", "fewer launches", "same"]
Confidence = Literal["high", "medium", "low"]


@dataclass(frozen=True)
class KernelDiff:
    """One kernel, or one way of copying, on both sides, and how the two were matched; None where a side has none."""

    base: KernelUse | None
    head: KernelUse | None
    matched: Matched
    kind: DiffKind

    @property
    def difference_s(self) -> float:
        """Seconds a call that the head takes more."""
        return (self.head.seconds if self.head else 0.0) - (self.base.seconds if self.base else 0.0)


@dataclass(frozen=True)
class Cause:
    """What a difference most likely comes from, in a sentence; `kind` is one word for it."""

    kind: str
    text: str
    confidence: Confidence


@dataclass(frozen=True)
class Explanation:
    """Where the difference between two profiles of the same case went, in seconds a call.

    `base_s` and `head_s` are the whole calls, from their start on the host until the device is done. The four parts make up
    `difference_s`: what ran side by side with something else counts in full in its part, and is taken out as unexplained."""

    base_s: float
    head_s: float
    kernels_s: float
    copies_s: float
    """Memsets too."""
    idle_s: float
    """The device had nothing to do."""
    kernels: tuple[KernelDiff, ...] = ()
    """The largest difference first, whichever way it goes."""
    copies: tuple[KernelDiff, ...] = ()
    syncs: tuple[float, float] = (0.0, 0.0)
    """Times a call that the host waited for the device, before and after."""
    launches: tuple[float, float] = (0.0, 0.0)
    """Kernels, copies and memsets a call, before and after."""
    causes: tuple[Cause, ...] = ()
    """The likeliest first; empty where nothing changed, or nothing is recognized."""
    warnings: tuple[str, ...] = ()

    @property
    def difference_s(self) -> float:
        return self.head_s - self.base_s

    @property
    def unexplained_s(self) -> float:
        return self.difference_s - (self.kernels_s + self.copies_s + self.idle_s)


Lane = Literal["host", "kernels", "copies"]


@dataclass(frozen=True)
class Span:
    """Something on the timeline of a profile, in seconds from its start."""

    lane: Lane
    name: str
    start_s: float
    duration_s: float


@dataclass(frozen=True)
class ProfiledSide:
    """The profiles of one side: seconds a call of each, the files of their traces, and the timeline of the one explained."""

    calls_s: tuple[float, ...]
    traces: tuple[str, ...]
    timeline: tuple[Span, ...] = ()


@dataclass(frozen=True)
class Explained:
    """A difference that was measured without a profiler, and what profiles of both sides say that it comes from."""

    comparison: Comparison
    explanation: Explanation | None
    """Of the profiles whose calls took the median time of their side; None where the case could not be profiled."""
    base: ProfiledSide | None = None
    head: ProfiledSide | None = None
    files: tuple[str, ...] = ()
    """What differs between the sides."""
    commits: tuple[Commit, ...] = ()
    """After the base, up to the head; the oldest first."""
    warnings: tuple[str, ...] = ()
    """What speaks against the explanation; or why there is none."""
    shown: bool = True
    """Whether the profiles show the measured difference too."""

    @property
    def case(self) -> Case:
        return self.comparison.case

    @property
    def measured_s(self) -> float | None:
        """What the head takes more, without a profiler."""
        base, head = self.comparison.base, self.comparison.head
        return head.center - base.center if base and head else None

    @property
    def whole_s(self) -> float | None:
        """What `parts` adds up to: a measured time of the device, else the difference of the profiles."""
        if self.comparison.metric.name == "gpu_time":
            return self.measured_s
        return self.explanation.difference_s if self.explanation is not None else None

    @property
    def parts(self) -> dict[str, float]:
        """What the difference is made of, in seconds a call; empty where there is no explanation.

        A time of the device is measured with the launches waiting in its queue, so the host that a profiler slows down has no
        part in it: what the kernels and copies do not make up is the gaps between launches, and what a profile does not show.
        Of other times the device's waiting for the host is a part, as the profiles have it.
        """
        found = self.explanation
        if found is None:
            return {}
        work = {"kernels": found.kernels_s, "copies": found.copies_s}
        if self.comparison.metric.name == "gpu_time" and self.whole_s is not None:
            return {**work, "the rest": self.whole_s - sum(work.values())}
        return {**work, "idle": found.idle_s, "unexplained": found.unexplained_s}


@dataclass(frozen=True)
class KeptExplanation:
    """What the difference of two commits comes from, as it is kept beside results: the kernels that changed, and no trace."""

    base: str
    """Full hash, as that of the head."""
    head: str
    machine: str
    environment: str
    date: float
    """When it was explained, in seconds since the epoch."""
    found: Explained


@dataclass(frozen=True)
class Bound:
    """What holds a kernel or a call back, how close it is to that limit (0.5 is half), and what to try."""

    kind: Literal["memory-bound", "compute-bound", "launch-bound", "latency-bound", "unknown"]
    share: float | None
    why: str
    advice: str


@dataclass(frozen=True)
class Totals:
    """Where the time of a call went. Host and device work side by side: their times do not add up to the span."""

    span_s: float
    """From the start on the host until the device is done. Zero where only sums are known: then idle and overlap are too."""
    device_busy_s: float
    """With a kernel, a copy or a memset running, side by side or not."""
    idle_s: float
    """The rest of the span."""
    kernels_s: float
    copies_s: float
    host_busy_s: float
    """In operators and API calls, without waiting for the device. What runs between them is not recorded."""
    waiting_s: float
    """The host was waiting for the device."""
    overlap_s: float
    """Host and device were busy at the same time."""
    profiler_s: float
    """The profiler itself was at work; this is in the other times too."""
    launches: float
    copies: float
    synchronizations: float


@dataclass(frozen=True)
class OperatorUse:
    """What one operator comes to in a call. Times without "own" include the operators inside it."""

    name: str
    calls: float
    host_s: float
    own_host_s: float
    device_s: float
    own_device_s: float
    launches: float


@dataclass(frozen=True)
class ApiUse:
    """What one function of CUDA's runtime or driver comes to in a call, on the host."""

    name: str
    calls: float
    seconds: float


@dataclass(frozen=True)
class Gap:
    """A time in which the device had nothing to do."""

    start_s: float
    duration_s: float
    after: str
    """The work that ended there; empty at the start."""
    before: str
    """The work that ended the gap; empty at the end."""
    host: str
    """What the host did for most of it: an operator, an API call; empty where it was in neither."""


@dataclass(frozen=True)
class MemoryUse:
    """What the allocator of the device did over the whole timeline."""

    peak_bytes: int
    """The most that was allocated at a time."""
    allocated_bytes: int
    """Asked for in all."""
    left_bytes: int
    """More than at the start; negative where less."""


@dataclass(frozen=True)
class Bottleneck:
    """What takes the largest share of the span: a kernel, copying, or the device's waiting; without a device, an operator."""

    kind: Literal["kernel", "copies", "idle", "operator"]
    name: str
    share: float


@dataclass(frozen=True)
class PartUse:
    """What a part of a call comes to that the program itself marked (record_function, an NVTX range)."""

    name: str
    uses: float
    host_s: float
    device_s: float
    """Of the work that was asked for in it."""
    launches: float


@dataclass(frozen=True)
class CallProfile:
    """Where the time of a case's calls goes, as a profiler saw it. Without totals there is a failure, or nothing was seen."""

    case: Case
    call_s: float = 0.0
    """A call without the profiler, in the same process; zero where it was not timed."""
    calls: int = 0
    """How many were profiled."""
    trace: str = ""
    """Where the Chrome trace is kept."""
    component: str = ""
    """Which part of a whole the case is, where its benchmark has a parameter of that name."""
    share: float | None = None
    """Of the whole that the components make up, by device time; by the span where there is no device."""
    host_s: float = 0.0
    """The host's part of a call: until it has asked for all the work, and has waited where it waits."""
    idle_s: float = 0.0
    """The device was not busy, in a call without the profiler: the busy time is nearly the same with it, the idle time is not.
    Of the profiled calls where none was timed."""
    totals: Totals | None = None
    parts: tuple[PartUse, ...] = ()
    operators: tuple[OperatorUse, ...] = ()
    kernels: tuple[KernelUse, ...] = ()
    copies: tuple[KernelUse, ...] = ()
    api_calls: tuple[ApiUse, ...] = ()
    gaps: tuple[Gap, ...] = ()
    memory: MemoryUse | None = None
    bottleneck: Bottleneck | None = None
    bound: Bound | None = None
    """None without device work."""
    throughput: Throughput | None = None
    """The declared work over the time in which the device was busy."""
    on_device: bool = False
    """Whether work of a device was recorded."""
    flags: tuple[str, ...] = ()
    failure: Failure | None = None

    def label(self, name: str) -> str:
        """A kernel's name for people."""
        return next((each.label for each in (*self.kernels, *self.copies) if each.name == name), name)


@dataclass(frozen=True)
class KernelMetrics:
    """What Nsight Compute measured of one launch. Shares are of what the device has (0.5 is half); None where not collected.

    The profiler runs every kernel alone and several times over, with cold caches: durations are not those of a program."""

    kernel: str
    grid: tuple[int, int, int] | None = None
    block: tuple[int, int, int] | None = None
    duration_s: float | None = None
    achieved_occupancy: float | None = None
    theoretical_occupancy: float | None = None
    memory_throughput: float | None = None
    """The busiest part of the memory system, caches too, as a share of its peak."""
    dram_throughput: float | None = None
    dram_bytes_s: float | None = None
    compute_throughput: float | None = None
    """The busiest pipe of the multiprocessors, as a share of its peak."""
    tensor_use: float | None = None
    """Of the tensor cores' peak."""
    l1_hit_rate: float | None = None
    l2_hit_rate: float | None = None
    registers: int | None = None
    """A thread."""
    shared_bytes: int | None = None
    """A block, static and dynamic."""
    waves: float | None = None
    """Blocks of the grid over those that the device holds at a time."""
    device: str = ""
    """Name of the GPU, where the table has it."""


@dataclass(frozen=True)
class MeteredKernel:
    """The launches of one kernel with one grid and block: what they come to in a call, and what holds them back."""

    label: str
    """The name without template arguments and parameters; with them where several are called so, and the grid if need be."""
    launches: float
    """A call, as the seconds; in all, where it is no case's."""
    seconds: float
    share: float | None
    """Of the time of all kernels; None where no time was collected."""
    bound: Bound
    metrics: KernelMetrics
    """The mean of its launches, each weighted by its time."""


@dataclass(frozen=True)
class Metered:
    """The kernels of a case's calls, or of an export, as Nsight Compute measured each alone; the one that takes longest first.

    Without kernels there is a failure."""

    case: Case
    calls: int = 0
    """How many were profiled; zero of an export, which may be of anything."""
    kernels: tuple[MeteredKernel, ...] = ()
    table: str = ""
    """The file of the CSV."""
    report: str = ""
    """The file that Nsight Compute opens; empty of an export."""
    flags: tuple[str, ...] = ()
    failure: Failure | None = None

    @property
    def seconds(self) -> float:
        return sum(each.seconds for each in self.kernels)


@dataclass(frozen=True)
class Setting:
    """One effective setting as `config` prints it."""

    name: str
    value: Any
    source: str


@dataclass(frozen=True)
class Report:
    """Everything a renderer needs, computed already. Sections that a command does not have are empty.

    `state` is the word of the last line: PASS, FAIL, UNDECIDED, NOTHING (could not be measured), INTERRUPTED, ERROR (usage,
    configuration), or FOUND where a commit was looked for; empty for commands that judge nothing. `exit_codes` are all that
    hold, the process exits with the first.
    """

    command: str
    exit_codes: tuple[int, ...] = (0,)
    state: str = ""
    base: Side | None = None
    head: Side | None = None
    machine: Machine | None = None
    device: str = ""
    """One line about what was measured on: GPU, driver, framework versions, clock."""
    plan: str = ""
    comparisons: tuple[Comparison, ...] = ()
    measurements: tuple[Measurement, ...] = ()
    implementations: tuple[Implementations, ...] = ()
    """Of the benchmarks that have the implementation as a parameter."""
    changes: tuple[Changed, ...] = ()
    """Over many commits, the oldest first."""
    anchors: tuple[AnchorCheck, ...] = ()
    """What was measured again in a sweep."""
    drift: tuple[Comparison, ...] = ()
    """The recorded history's newest results against the release `drift_since`: what all steps since then add up to."""
    drift_since: str = ""
    bisection: Bisection | None = None
    listed: tuple[Listed, ...] = ()
    checks: tuple[Check, ...] = ()
    builds: tuple[Built, ...] = ()
    merged: tuple[Merged, ...] = ()
    acknowledgements: tuple[Reviewed, ...] = ()
    """What `ack` lists or has changed; in what judges, those that have expired or are unused."""
    block: tuple[str, str] | None = None
    """Where something is to be added to the configuration, and its lines."""
    settings: tuple[Setting, ...] = ()
    profiled: tuple[CallProfile, ...] = ()
    """Cases that were profiled; of two that are held against each other the base first."""
    profiled_difference: Explanation | None = None
    """Between the two."""
    metered: tuple[Metered, ...] = ()
    """Cases whose kernels were measured one by one."""
    profile: Profile | None = None
    """What was profiled; of a comparison the head."""
    explained: tuple[Explained, ...] = ()
    """What differences of the comparisons come from, the largest first."""
    counts: dict[str, int] = field(default_factory=dict)
    """Cases by verdict. A case counts once, with the most serious of its gating metrics."""
    acknowledged: dict[str, int] = field(default_factory=dict)
    """How many of these are acknowledged, and no alarm."""
    remark: str = ""
    """What the last line says in place of the counts where nothing had to be judged: "nothing affected"."""
    cases: int = 0
    geomean: tuple[float, float, float, int] | None = None
    """Geometric mean of the gating time ratios with its 95 % interval, and over how many cases."""
    noise_floor: tuple[float, float, str] | None = None
    """Median and largest of `noise`, and the case that has the largest."""
    min_detectable: float | None = None
    """Median of `min_detectable`, as a relative change."""
    aa: SelfCheck | None = None
    """The A/A check that the report is about."""
    fineness: tuple[Fineness, ...] = ()
    """What it has found of each case, the noisiest first."""
    last_aa: SelfCheck | None = None
    """The last one on the device of a check, where it was about some of its cases."""
    problems: tuple[SuiteProblem, ...] = ()
    error: Stopped | None = None
    """Where this is all that there is to report."""
    warnings: tuple[str, ...] = ()
    suggestions: tuple[tuple[str, str], ...] = ()
    """Pairs of a word and a command to run next: ("again", "regress check 3f2c1ab 9d41e77 -b softmax")."""
    policy: dict[str, Any] = field(default_factory=dict)
    options: tuple[str, ...] = ()
    """Words that the command to measure a case again needs beside the sides and the case: "--suite", "own"."""
    recorded: str = ""
    """Where the results were kept."""
    overhead: tuple[float, float] | None = None
    """Seconds from the start of a round's process until it can measure, and a case beside being measured."""
    duration_s: float = 0.0

    @property
    def exit_code(self) -> int:
        return self.exit_codes[0]

    @property
    def strict(self) -> bool:
        return bool(self.policy.get("strict"))


# -- settings ------------------------------------------------------------------------------------------------------------


DEFAULT_ENVIRONMENT = "worktree"
EXISTING = "existing"
"""asv's type of an interpreter that is there already, in which asv installs nothing."""


@dataclass(frozen=True)
class Environment:
    """Where a side's code runs: which interpreter, with which variables, and the commit's own tree, a built wheel, or the
    commit installed by asv."""

    name: str = DEFAULT_ENVIRONMENT
    python: str = ""
    """Interpreter under test; empty: the one of the setting `python`."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """Environment variables of its processes, beside those that regress was started with."""
    wheel: str = ""
    """A wheel that is measured in place of the commit's tree: a path, from the folder of the configuration."""
    fetch: str = ""
    """A shell command that puts such a wheel into the folder $WHEELS, as `pip download` does; run once."""
    asv: str = ""
    """An environment of asv's: its type (`virtualenv`), type and Python (`virtualenv:3.12`), or its name in the matrix."""

    @property
    def installs(self) -> bool:
        """Whether each side is installed in an environment of its own, with what it requires."""
        return bool(self.asv) and not self.asv.startswith(EXISTING)


THRESHOLD_KINDS = ("time", "host", "memory")
"""Kinds of metrics that have a threshold each among the settings."""


@dataclass(frozen=True)
class Settings:
    """Every threshold and switch, with its default. The key `regress` of asv.conf.json sets them by these names.

    A threshold is a relative change (0.05 is 5 %), a time is in seconds, a size in bytes.
    """

    # deciding
    time_threshold: float = 0.05
    memory_threshold: float = 0.10
    host_threshold: float = 0.20
    change_threshold: float = 0.02
    """Smallest change of level that a history lists; what is worth an alert, the thresholds above say."""
    thresholds: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """Thresholds of their own: by a regular expression that a case's name begins with, and there by metric, or by kind
    (THRESHOLD_KINDS). The last expression that matches and has the metric counts."""
    critical: tuple[str, ...] = ()
    """Regular expressions that a case's name begins with: beside the benchmarks that say so themselves, these are critical."""
    gate_thresholds: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """What a release may lose against the one before it, as `thresholds` say it; they count after those, in `gate` only."""
    gate_release: str = ""
    """The release that `gate` holds the recorded history against; empty: the newest one before the head."""
    release_tags: str = r"(?:[\w./-]*[-_/](?=v?\d+\.))?v?\d+(?:\.\d+)*(?:[-._+]?[A-Za-z][\w.+-]*)?"
    """Which tags are releases: a regular expression of the whole name. The usual one takes v1, 2.4.0rc1 and jax-v0.4.30, and
    leaves out what services mark commits with, such as ciflow/inductor/12345."""
    alpha: float = 0.05
    confidence: float = 0.95
    time_floor_s: float = 0.2e-6
    host_floor_s: float = 2e-6
    memory_floor_bytes: int = 64 * 1024
    good_rounds: float = 0.8
    """Below this share of rounds that gave a value, the case has failed; below this share of rounds that were not throttled,
    nothing is claimed of it."""
    clock_tolerance: float = 0.01
    """Sides whose SM clocks differ by more than this, relatively, are not told apart by their times."""
    budget_s: float = 600.0
    """Seconds after which a check in steps measures nothing more; what is undecided then is reported so."""
    # measuring
    device: str = "auto"
    """auto, cuda, cpu, or fake (the scripted device)."""
    process: str = "auto"
    """How the process of a round begins: auto (forked from one that has imported the suite, where a trial shows that this
    works), or fresh (an interpreter of its own, which imports everything again)."""
    seed: int = 0
    cuda: tuple[str, ...] = ()
    """Regular expressions, searched in names: `time_*` benchmarks that are measured under the device protocol."""
    check_rounds: int = 0
    """Rounds a side of a check, for every case; 0: in steps, as many as each case needs."""
    run_rounds: int = 5
    sweep_rounds: int = 2
    memory_rounds: int = 2
    """Rounds a side that probe memory too."""
    discover_timeout_s: float = 120.0
    build_timeout_s: float = 1800.0
    # environment
    build: tuple[str, ...] = ()
    """Shell commands run once in each worktree before it is measured, e.g. "python setup.py build_ext --inplace"."""
    build_inputs: tuple[str, ...] = ()
    """Files that a build depends on, as `covers` names them: commits that agree in them share a build. Empty: all files."""
    build_cache_bytes: int = 10 * 2**30
    """How much is kept of what was built; the least recently used goes first."""
    worktrees: int = 20
    """How many worktrees are kept of each environment; the least recently used goes first."""
    package_dir: str = ""
    """Folder of the importable code inside the repository; found by itself for a flat and for a src/ layout."""
    python: str = ""
    """Interpreter under test; empty: the one that runs regress."""
    env_key: tuple[str, ...] = ("requirements*.txt", "environment*.yml", "uv.lock", "poetry.lock", "pdm.lock")
    """Files that say what the interpreter has to have installed; a pattern without a slash is a file's name in any folder."""
    environment: str = ""
    """The environment of sides for which none is named; empty: asv's where `environment_type` says one, else worktree."""
    environments: Mapping[str, Environment] = field(default_factory=dict)
    """Further environments by name, for `--base-env`, `--head-env` and `--env`."""
    # places
    machine: str = ""
    """Name of this machine in results_dir; empty: asv's own machine file, else the host's name."""
    cache_dir: str = ""
    lock_dir: str = ""
    """Folder of this node that all who measure on its GPUs share; empty: /tmp/regress-locks."""
    report_dir: str = "report"
    acks: str = "regress-acks.toml"
    """The acknowledgement file, from the folder of the configuration."""
