"""What is measured, and the result on one side: cases, metrics, commits, sides, machines, the next rounds.

regress.measure.wire has what the measuring process uses too (benchmarks, protocols, rounds, failures).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from regress.measure.wire import Benchmark, Ends, Failure, Measured, Proposal, Round, Task
from regress.stats.summary import Summary, percentile


@dataclass(frozen=True, order=True)
class Case:
    """One benchmark with one parameter combination. `params` are asv's strings (the repr of each value)."""

    name: str
    """Of the benchmark, without parameters."""
    params: tuple[str, ...] = ()

    @classmethod
    def of(cls, visit: Task | Proposal | Round) -> Case:
        """The case that is or was visited."""
        return cls(visit.name, tuple(visit.params))

    def __str__(self) -> str:
        return f"{self.name}({', '.join(self.params)})" if self.params else self.name


Better = Literal["lower", "higher", "unknown"]


@dataclass(frozen=True)
class Metric:
    """What a number is. `kind` chooses threshold and floor; `suffix` is appended to the benchmark's name in asv's files."""

    name: str
    """gpu_time, host_time, wall_time, cold_time, peak_memory, ..., or value for a tracked number."""
    unit: str
    """s, B, count, or the unit that a tracked number declares."""
    kind: Literal["time", "host", "memory", "count", "tracked"]
    better: Better = "lower"
    exact: bool = False


METRICS = {
    metric.name: metric
    for metric in (
        Metric("gpu_time", "s", "time"),
        Metric("host_time", "s", "host"),
        Metric("wall_time", "s", "time"),
        Metric("cpu_time", "s", "time"),
        Metric("cold_time", "s", "time"),
        Metric("compile_time", "s", "time"),
        Metric("peak_memory", "B", "memory", exact=True),
        Metric("output_memory", "B", "memory", exact=True),
        Metric("left_memory", "B", "memory", exact=True),
        Metric("peak_rss", "B", "memory"),
        Metric("object_size", "B", "memory"),
        Metric("energy", "J", "tracked"),
        Metric("launches", "count", "count", exact=True),
        Metric("synchronizations", "count", "count", exact=True),
        Metric("copies", "count", "count", exact=True),
        Metric("recompiles", "count", "count", exact=True),
        Metric("graph_breaks", "count", "count", exact=True),
        Metric("allocations", "count", "count", exact=True),
    )
}
"""The metrics with a fixed meaning; `value`, the metric of a `track_*`, takes unit and direction from the benchmark."""

_TIMES = frozenset(
    word + plural
    for word in (
        *(prefix + second for prefix in ("", "m", "u", "µ", "μ", "n") for second in ("s", "sec", "second")),
        *("millisecond", "microsecond", "nanosecond", "min", "minute", "h", "hr", "hour"),
    )
    for plural in ("", "s")
)
_SIZES = frozenset({"b", "byte", "bytes", "kib", "mib", "gib", "tib", "kb", "mb", "gb", "tb"})
_RATES = re.compile(r"[kmgtpe]?(hz|bps|flops|flopss|flopps)|[fiqrt]ps|iops")
_IN_BRACKETS = re.compile(r"[(\[]([^()\[\]]+)[)\]]\s*$")


def direction_of(unit: str) -> Better:
    """Which direction is better in that unit: a time is lower, alone or for each of something, and so is a size; a rate is
    higher. "runtime (s)" is in s."""
    inside = _IN_BRACKETS.search(unit)
    what, *per = re.split(r"\s*/\s*|\s+per\s+", (inside[1] if inside else unit).strip().lower(), maxsplit=1)
    if per:
        is_time, is_rate = what in _TIMES, per[0] in _TIMES
        return "unknown" if is_time == is_rate else "lower" if is_time else "higher"
    if what in _TIMES or what in _SIZES:
        return "lower"
    return "higher" if _RATES.fullmatch(what) else "unknown"


def may_be_negative(name: str) -> bool:
    """Whether a value of the metric can be negative: what a `track_*` returns can, a time, a size or a count cannot."""
    return name not in METRICS


def metric_of(name: str, unit: str = "", better: Better | None = None, exact: bool | None = None) -> Metric:
    """The metric of that name. For a tracked number, the direction is the declared one or is inferred from the unit."""
    return METRICS.get(name) or Metric(name, unit, "tracked", better or direction_of(unit), bool(exact))


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
    """The committer's, in seconds since the epoch."""
    parents: tuple[str, ...] = ()
    beside: bool = field(default=False, compare=False)
    """In a history: it is on a branch that was merged after the line of the history had moved on."""

    @property
    def short(self) -> str:
        return self.sha[:8]


@dataclass(frozen=True)
class Side:
    """What is measured: `commit`, or with `dirty` the working tree on top of it, in the named environment."""

    name: str
    """base or head; in `run` it is head."""
    commit: Commit
    revision: str
    """As the user wrote it, or how it was chosen: "HEAD~1", "merge base with main"."""
    environment: str = ""
    dirty: bool = False
    """Whether uncommitted changes are measured with it."""
    beside: str = ""
    """For an anchor: the full hash of the commit beside which this one is measured again. Such rounds are not its results."""

    @property
    def label(self) -> str:
        return self.commit.short + ("+changes" if self.dirty else "")

    @property
    def full_label(self) -> str:
        return self.commit.sha + ("+changes" if self.dirty else "")


@dataclass(frozen=True)
class Machine:
    """Where something was measured. `name` is the folder in results_dir; `facts` are asv's machine.json entries and ours."""

    name: str
    facts: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Throughput:
    """Work a second of one case on one side, and its share of what the device does at most (0.5 is half); None if not
    known."""

    bytes_per_s: float | None = None
    flops_per_s: float | None = None
    share_of_copy: float | None = None
    share_of_matmul: float | None = None


@dataclass(frozen=True)
class Measurement:
    """One case and metric of one side, as `run` prints it."""

    case: Case
    metric: Metric
    summary: Summary | None
    failure: Failure | None = None
    flags: tuple[str, ...] = ()
    """Doubts about the value, in words."""
    primary: bool = True
    """The metric the case is about; others are shown with -v."""
    throughput: Throughput | None = None
    samples: Samples | None = None


@dataclass(frozen=True)
class Samples:
    """What a time was in the single samples of all rounds, each of them the mean over `calls` calls in a row."""

    n: int
    calls: int
    low: float
    p95: float
    """The median over the rounds of what 95 of 100 samples of a round do not exceed."""
    high: float


def ends_of(measured: Measured) -> Ends | None:
    """The samples of a time, as far as known; None unless there are several."""
    samples = measured.samples
    if measured.unit != "s" or measured.exact or len(samples) < 2 or not all(map(math.isfinite, samples)):
        return measured.ends
    return Ends(len(samples), min(samples), percentile(samples, 0.95), max(samples))


@dataclass(frozen=True)
class Duration:
    """Where the time of a benchmark has gone, in seconds: all its cases, visits and rounds together."""

    name: str
    cases: int = 0
    setup_cache_s: float = 0.0
    """Of benchmarks that share one, it is the first one's."""
    setup_s: float = 0.0
    first_visits_s: float = 0.0
    """Without its setups, as in `rounds_s`."""
    rounds_s: float = 0.0

    @property
    def seconds(self) -> float:
        return self.setup_cache_s + self.setup_s + self.first_visits_s + self.rounds_s


@dataclass(frozen=True)
class Durations:
    """Where the time of a run has gone."""

    slowest: tuple[Duration, ...]
    """The benchmarks that took longest, the slowest first."""
    of: int
    """How many there are."""
    build_s: float
    beside_s: float
    """All else: processes that start and import the suite, the device that is opened."""


@dataclass(frozen=True)
class Spread:
    """How much the round values of a case scatter: the standard deviation of their logarithms, estimated with `freedom`
    degrees of freedom."""

    sd: float
    freedom: int


VISITING = 0.4
"""Of the time that is left, what unmeasured visits may take before what was visited is measured."""


@dataclass(frozen=True)
class Batch:
    """The next rounds: how many a side for each case, numbered from `first`. Cases not visited yet get their unmeasured visits
    first; with no rounds, only these."""

    rounds: Mapping[Case, int]
    first: int = 0
    title: str = "measuring"
    afresh: bool = False
    """In newly started processes on both sides, which swap places."""
    visits_s: float = math.inf
    """Seconds after which no further case gets its unmeasured visits."""
