"""The data of the HTML report's pages: the nouns, and how they are made from a project's history. `report.html` writes them.

    PageSite    the whole report: an index, and a Leaf for each benchmark, made on demand
    PageIndex   all that is known without opening a benchmark
    PageRow     one case and metric in one place, as the overview lists it
    PageValues  the measurements of each row, loaded on demand
    Event       one change of level, seen in one or many cases and places
    PageShift   events of many benchmarks that are one: probably the machine, or a return to an earlier level
    Leaf        one benchmark: a Shard for its page, and its Part of the index
    Line        one Series as its page draws it
    Account     the cause of a difference between two commits, with everything that was kept
    Told        the cause of a change, in a sentence, and the Account behind it
    Sides       the implementations of one benchmark side by side, at one commit in one place

A place is a machine, a device and an environment; values of different places are never averaged. `PageIndex.commits` are the
commits with results, in the order of the graph. A value of type `At` is an index into them; in a Shard, into the Shard's own
commits, so that a commit without results of a benchmark leaves its Shard unchanged. The scripts use the same names. Frequent
objects (PageRow, Level, Event, PageBroken) are written as lists of values, and PageIndex.fields has their names.

Only `regress report` imports the modules that make them:

    branch      the commits of the report: those with results, tags, commits to blame
    lines       one Series as a chart draws it, with the interval of each value
    rows        one Series as the overview lists it: its status
    events      change points that are one event, in several cases and places; and events of many benchmarks that are one
    accounts    the causes of a benchmark's changes
    broken      what fails, and since when
    implementations  the fastest at each size, at the newest commit and at releases
    leaves      a benchmark at a time: its Shard and its Part of the index
    contents    the index: all Parts, put together
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from regress.model import Explained, Samples

STATUSES = {
    "failed": ("✕", "worse"),
    "regressed": ("▲", "worse"),
    "tentative": ("△", "unsure"),
    "changed": ("◆", "moved"),
    "acknowledged": ("✓", ""),
    "relapsed": ("↪", "moved"),
    "improved": ("▼", "better"),
    "recovered": ("↩", ""),
    "undecided": ("?", ""),
    "gone": ("–", ""),
    "new": ("+", ""),
    "incomparable": ("≠", "unsure"),
    "skipped": ("–", ""),
    "unchanged": ("", ""),
    "open": ("▲", "worse"),
    "confirmed": ("", ""),
}
"""The states of rows, cases and events, the worst first, each with its sign and tone: never a colour alone."""

At = int
"""Index of a commit."""

Where = tuple[str, str, str]
"""Machine, device and environment."""

SHA_DIGITS = 12
"""Of a commit's hash."""


@dataclass(frozen=True)
class PageCommit:
    sha: str
    subject: str
    author: str
    date: float
    """Seconds since the epoch."""
    tags: tuple[str, ...] = ()


@dataclass(frozen=True)
class PagePlace:
    """Where a series was measured. `label` is the shortest text that tells the places of the report apart."""

    id: str
    label: str
    machine: str
    device: str
    gpu: str
    environment: str
    cards: tuple[str, ...] = ()
    """If several cards of a kind have measured: each of them and its ratio to the mean card, in words."""


class Level(NamedTuple):
    """The commits between two changes, from `first` to `last`. Levels of different `way` cannot be compared."""

    first: At
    last: At
    value: float
    way: int
    against: str = ""
    """Its verdict against each earlier level, a letter each: the first of the Verdict's word, "x" for incomparable."""


class RowValues(NamedTuple):
    """The values of a row, in units of 1/`per`; their commits are those of PageValues.columns[`column`]."""

    column: int
    per: int
    values: tuple[int, ...]


class PageRow(NamedTuple):
    """One case and metric in one place; if `cases` is more than one, the worst of that many cases."""

    benchmark: int
    params: str
    metric: str
    unit: str
    better: str
    place: int
    gates: bool
    status: str
    """A Verdict's word, `tentative`, `acknowledged` or `recovered`."""
    why: str
    """Why it is undecided or acknowledged."""
    latest: float | None
    at: At
    """The commit of the latest value."""
    since: float | None
    """Ratio of the latest value to the one at the reference, or last before it; None where the two cannot be compared."""
    doubt: str
    """Why that ratio says nothing: one of the two is far off the level of the values around it."""
    change: float | None
    """Ratio of the last open regression, or else of the last large change."""
    changed: At | None
    noise: float | None
    """Spread of the values around their level: 0.02 is about 2 %."""
    spark: str
    """The history from its first level to its latest value, a letter a step: SPARK_LETTERS, lowest first; a space for a
    failure, a dash for no result."""
    levels: tuple[Level, ...]
    off: tuple[At, ...]
    """Commits whose own value lies off its level by more than noise and what counts."""
    lacks: int = 0
    """How many more results it needs before a change can be told from noise."""
    measured: RowValues | None = None
    """None in the index: the values are in PageValues."""
    cases: int = 1


SPARK_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


@dataclass(frozen=True)
class Told:
    """The cause of a change: a sentence, and where to find the rest."""

    at: int
    """Index in Shard.accounts."""
    text: str
    confidence: str
    """Empty where no cause is recognized."""
    base: str
    """What was explained, by PageCommit.sha."""
    head: str
    wider: bool
    """Whether there are commits in between that are not to blame."""
    params: str = ""
    """Of the case that was explained, if it is another one."""
    where: str = ""
    """The machine and environment of the explanation, as far as they differ."""


class Event(NamedTuple):
    """One change of level of one metric of a benchmark: change points in one direction whose blamed ranges overlap.

    `ratio`, `low`, `high`, `before` and `after` are those of the case `params` in `place`, where the change is largest;
    `least` and `most` are the smallest and the largest ratio of all.
    """

    benchmark: int
    params: str
    metric: str
    unit: str
    place: int
    moved: str
    state: str
    """open, tentative, acknowledged, relapsed, recovered, gone or, where it is no regression, confirmed."""
    large: bool
    gates: bool
    threshold: float
    first: At
    good: At
    last: At
    """The newest commit that may be to blame."""
    suspects: tuple[PageCommit | int, ...]
    """The newest of the `suspects_n` commits that may be to blame; in the index, their numbers in PageIndex.suspects."""
    suspects_n: int
    ratio: float | None
    low: float | None
    high: float | None
    least: float | None
    most: float | None
    before: float
    after: float
    cases: int
    of_cases: int
    """Cases of the benchmark that have the metric."""
    places: tuple[int, ...]
    of_places: tuple[int, ...]
    """The places that have results on both sides of the change."""
    recovered_by: At | None
    commands: Mapping[str, str]
    """What to run next, by a word for the button."""
    reasons: tuple[str, ...] = ()
    """What suggests that the machine changed and not the code, for the case `params`."""
    acknowledged: tuple[str, str] | None = None
    """The acknowledgement in words, and its link, which may be empty."""
    told: Told | None = None
    held: tuple[int, ...] = ()
    """Places where nothing took it back; if it is open, the places where it is."""
    stood: tuple[int, ...] = ()
    """Places with enough results on both sides in which it did not move."""
    undoes: tuple[At, At] | None = None
    """The good and the last commit of the change that it took back."""
    note: str = ""
    """How the way it is measured changed at the same commit."""
    shift: int | None = None
    """Its index in PageIndex.shifts."""


class PageBroken(NamedTuple):
    """A case that has no value at its newest commit in a place, or had none at some commits before. It stands for `cases` that
    failed in the same way at the same commits."""

    benchmark: int
    params: str
    place: int
    kind: str
    first: At
    last: At
    commits: int
    open: bool
    """Whether it fails at the newest commit that it was run at."""
    cases: int = 1
    message: str = ""
    where: str = ""
    good: At | None = None
    """The newest commit with a value, if the case stopped giving numbers and nobody has acknowledged that."""


@dataclass(frozen=True)
class PageShift:
    """Events of many unrelated benchmarks that are one, in a place: see regress.model.Shift."""

    place: int
    good: At
    last: At
    benchmarks: int
    suspect: str
    """The likely cause if other places did not move, the machine or the environment; else empty."""
    reasons: tuple[str, ...]


@dataclass(frozen=True)
class PageEntry:
    """A benchmark in the index. `file` is its Shard's in the folder of the report."""

    name: str
    file: str


@dataclass(frozen=True)
class Part:
    """What the index has of one benchmark. Until the index is put together, `benchmark` is 0, and `place` is an index into
    its own `places`."""

    entry: PageEntry
    places: tuple[Where, ...]
    columns: tuple[tuple[At, ...], ...] = ()
    """The commits at which its rows have values."""
    rows: tuple[PageRow, ...] = ()
    events: tuple[Event, ...] = ()
    broken: tuple[PageBroken, ...] = ()
    read: tuple[tuple[str, str, Mapping[str, float]], ...] = ()
    """What several cards measured: see regress.trends.cards.Read."""


@dataclass(frozen=True)
class Change:
    """A change point as a chart marks it."""

    first: At
    good: At
    last: At
    ratio: float | None
    low: float | None
    high: float | None
    before: float
    after: float
    moved: str
    state: str
    large: bool
    reasons: tuple[str, ...] = ()
    """What makes it a change of the machine and not of the code."""
    told: Told | None = None


@dataclass(frozen=True)
class Account:
    """The explanation of a difference of one case between two commits."""

    params: str
    metric: str
    machine: str
    environment: str
    base: PageCommit
    head: PageCommit
    date: float
    """When it was explained, in seconds since the epoch."""
    found: Explained
    """A page has it in words, see report.html.account."""


@dataclass(frozen=True)
class Line:
    """One series. Columns of equal length: `at`, `values`, `lows`, `highs`, `rounds`; whole numbers, as there are many."""

    params: tuple[str, ...]
    metric: str
    unit: str
    better: str
    exact: bool
    primary: bool
    place: str
    """Id of the Place."""
    threshold: float
    noise: float | None
    at: tuple[At, ...] | int
    """In a Shard the index in its `columns`, which lines share."""
    per: int
    """The columns below are in units of 1/`per`."""
    values: tuple[int, ...]
    """Corrected for the machine if known."""
    lows: tuple[int, ...]
    """How far below the value."""
    highs: tuple[int, ...]
    """How far above it."""
    rounds: tuple[tuple[int, ...] | int, ...] | int
    """The round values, relative to the value; or how many there are, if all are equal or too many to keep; one number if
    every value has as many."""
    levels: tuple[Level, ...]
    changes: tuple[Change, ...]
    failures: Mapping[str, tuple[At, ...]]
    """The commits with a failure instead of a value, by kind."""
    ticks: tuple[tuple[At, str], ...]
    """Where it began to be measured differently, in words: "driver 570 → 580"."""
    read: tuple[int, ...] = ()
    """A column too: the raw values, if any was corrected."""
    cards: tuple[str, ...] = ()
    """What measured its values: a card, or several that measured the same commit; empty if unknown."""
    card: tuple[int, ...] = ()
    """A column too, if there are several: the index in `cards`."""
    samples: Samples | None = None
    """Of its newest value."""


@dataclass(frozen=True)
class PageTime:
    """One implementation at one combination of the other parameters; without a value it has a failure, or has no time."""

    params: str
    """Of the case."""
    value: float | None
    low: float | None
    high: float | None
    """Ends of the 95 % interval."""
    rounds: int
    ratio: float | None
    """To the smallest value; None for the smallest itself."""
    failure: str


@dataclass(frozen=True)
class Combination:
    """The implementations at one combination of the other parameters."""

    params: tuple[str, ...]
    size: float | None
    """The parameter of the size as a number."""
    outcome: str
    """fastest, no difference shown, alone, or nothing measured."""
    leaders: tuple[str, ...]
    """Those that cannot be told from the fastest, which comes first."""
    reasons: tuple[str, ...]
    times: tuple[PageTime | None, ...]
    """In the order of the names."""


@dataclass(frozen=True)
class Sides:
    """The implementations of a benchmark side by side, at one commit in one place."""

    place: str
    """Id of the Place."""
    commit: At
    metric: str
    unit: str
    names: tuple[str, ...]
    param_names: tuple[str, ...]
    """Of the other parameters."""
    size: int | None
    """Which of them is the size."""
    combinations: tuple[Combination, ...]
    crossovers: tuple[tuple[tuple[str, ...], str], ...]
    """In words, by the parameters that are neither."""


@dataclass(frozen=True)
class Shard:
    """All that the page of one benchmark shows."""

    name: str
    param_names: tuple[str, ...]
    code: str
    commits: tuple[str, ...]
    """Those that it has results of, by PageCommit.sha."""
    columns: tuple[tuple[At, ...], ...]
    """Where lines have values."""
    lines: tuple[Line, ...]
    accounts: tuple[Account, ...] = ()
    """Of its cases, the newest commit first."""
    sides: tuple[Sides, ...] = ()
    """Of each place the newest commit first, then releases; empty if there are no implementations to compare."""


@dataclass(frozen=True)
class Leaf:
    """One benchmark. If `seen` or `stamp` is what it was, so is the result of `make`."""

    name: str
    file: str
    seen: str
    """A word for the files that its results are in."""
    stamp: Callable[[], str]
    """A word for what these say, the same in another checkout; it has to read them."""
    make: Callable[[], tuple[Shard, Part]]


@dataclass(frozen=True)
class Aa:
    """The last A/A check of a machine."""

    machine: str
    date: float
    commit: str
    cases: int
    false_alarms: int
    undecided: int
    noise_floor: float | None
    min_detectable: float | None


@dataclass(frozen=True)
class PageOverall:
    """Times at the newest commit against the reference, in one place: the geometric mean over the `n` that can be judged."""

    place: int
    ratio: float
    n: int


@dataclass(frozen=True)
class Freshness:
    """How far the results are behind the branch."""

    unmeasured: int
    """Commits after the newest one that has results."""
    oldest: float | None
    """When the first of these was made."""


@dataclass(frozen=True)
class Release:
    """A release, and the newest measured commit that is in it and in the branch."""

    name: str
    at: At
    measured: bool
    """Whether that commit is the release itself and not an earlier one."""
    tagged: bool
    """Whether it was tagged there, and not on a branch of its own."""


@dataclass(frozen=True)
class Lost:
    """Results that are not in the report, because their files could not be used."""

    files: int
    of: int
    """All files, with those that could."""
    newer: int
    """Those of commits after the newest one in the report."""
    matters: bool
    """Whether a reader has to know before anything else."""


@dataclass(frozen=True)
class PageIndex:
    """The first script that is loaded. What has the type `At` counts in `commits`."""

    fields: Mapping[str, tuple[str, ...]]
    project: str
    generated: float
    version: str
    commit_url: str
    address: str
    """Where the report is published, with a slash at its end; empty if unknown."""
    branch: str
    thresholds: Mapping[str, float]
    commits: tuple[PageCommit, ...]
    places: tuple[PagePlace, ...]
    results: tuple[int, ...]
    """The most results that any series has in each place."""
    machines: tuple[tuple[str, Mapping[str, Any]], ...]
    entries: tuple[PageEntry, ...]
    rows: tuple[PageRow, ...]
    counts: tuple[Mapping[str, int], ...]
    """Of each place, how many cases have which status: a case counts once, by the worst of its metrics that gate."""
    young: tuple[int, ...]
    """For each place, how many undecided cases have too few results to be judged."""
    fewest: int
    """Results that it takes to tell a change from noise."""
    events: tuple[Event, ...]
    shifts: tuple[PageShift, ...]
    broken: tuple[PageBroken, ...]
    left_out: int
    """How many old events and failures are not listed."""
    suspects: tuple[PageCommit, ...]
    reference: At
    """What the newest values are compared with: the newest commit of the last release that has results, else the first one."""
    release: str
    """The tag of that release; empty if there is none."""
    releases: tuple[Release, ...]
    overall: tuple[PageOverall, ...]
    freshness: Freshness
    aa: tuple[Aa, ...]
    strays: tuple[tuple[str, int], ...]
    """Commits with results that are not on the branch, and in how many files."""
    skipped: tuple[tuple[str, int, str, str], ...]
    """Files that could not be used, one a folder and reason: path, how many, why, fix."""
    lost: Lost

    @property
    def open(self) -> tuple[Event, ...]:
        """The regressions that are open, all places together, as the overview counts them."""
        return tuple(event for event in self.events if event.gates and event.large and event.state == "open")

    @property
    def told(self) -> bool:
        """Whether any measured case can be judged."""
        counted = {status for count in self.counts for status, cases in count.items() if cases}
        return not counted <= {"undecided", "failed", "gone"}

    @property
    def stopped(self) -> tuple[PageBroken, ...]:
        """What gave numbers and gives none any more, the newest first; of a case in several places the earliest."""
        stopped = [case for case in self.broken if case.open and case.good is not None]
        stopped.sort(key=lambda case: -case.first)
        return tuple({(case.benchmark, case.params): case for case in stopped}.values())


@dataclass(frozen=True)
class PageValues:
    """What was measured of the rows of an Index, in their order."""

    columns: tuple[tuple[At, ...], ...]
    rows: tuple[RowValues | None, ...]


@dataclass(frozen=True)
class PageSite:
    """A whole report. `index` puts the parts together, in the order of `leaves`."""

    leaves: tuple[Leaf, ...]
    index: Callable[[Sequence[Part]], tuple[PageIndex, PageValues]]
