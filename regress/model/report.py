"""What a command gives to a renderer: Report, and the rows of its sections that have no other home."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from regress.errors import Exit, State
from regress.measure.wire import SuiteProblem
from regress.model.acknowledgement import Reviewed
from regress.model.bisection import Bisection
from regress.model.comparison import Comparison, Fineness, SelfCheck
from regress.model.explanation import Explained, Explanation
from regress.model.implementations import Implementations
from regress.model.kernels import Metered
from regress.model.measurement import Case, Durations, Machine, Measurement, Side
from regress.model.profile import CallProfile
from regress.model.series import AnchorCheck, Breakage, Changed, Shift
from regress.model.settings import Setting
from regress.profiles import Profile


@dataclass(frozen=True)
class Listed:
    """One case as `list` prints it; `cost_s` is what a round took when it was last measured."""

    case: Case
    metric: str
    needs_device: bool
    tags: tuple[str, ...] = ()
    cost_s: float | None = None
    gpus: int = 1
    """How many devices it needs, if any."""
    ranks: int = 1
    """How many processes visit it together."""


@dataclass(frozen=True)
class Check:
    """One line of `doctor` or `init`: what was examined, what was found, and what to do about it."""

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
    """Duration of the build, now or, if known, when it was done."""
    log: str = ""
    """File with the output of all builds of the commit; empty if there is none."""
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
class Report:
    """Everything a renderer needs, computed already. Sections that a command does not have are empty.

    `exit_codes` are all that hold, the process exits with the first. `state` is the word of the last line: that code's, or
    FOUND where a commit was looked for; empty for commands that judge nothing.
    """

    command: str
    exit_codes: tuple[Exit, ...] = (Exit.PASSED,)
    state: State = ""
    base: Side | None = None
    head: Side | None = None
    machine: Machine | None = None
    device: str = ""
    """One line about the device: GPU, driver, framework versions, clock."""
    imported: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By side: the files that the project's packages were imported from, a file each, named from the folder of the side."""
    across: str = ""
    """Which two places are compared with each other, in words, where these are no two commits of one."""
    plan: str = ""
    comparisons: tuple[Comparison, ...] = ()
    measurements: tuple[Measurement, ...] = ()
    durations: Durations | None = None
    """Where the time has gone, where somebody asked."""
    implementations: tuple[Implementations, ...] = ()
    """Of the benchmarks that have the implementation as a parameter."""
    changes: tuple[Changed, ...] = ()
    """Over many commits, the oldest first."""
    shifts: tuple[Shift, ...] = ()
    """Which of these changes are one event, the oldest first."""
    breakages: tuple[Breakage, ...] = ()
    """What stopped giving numbers, the oldest first."""
    anchors: tuple[AnchorCheck, ...] = ()
    """Commits measured again in a sweep."""
    drift: tuple[Comparison, ...] = ()
    """The recorded history's newest results against the release `drift_since`: what all steps since then add up to."""
    drift_since: str = ""
    questions: tuple[tuple[str, str], ...] = ()
    """Of a gate: what it asks, and what came of it: a word of `state`, or "not known"."""
    bisection: Bisection | None = None
    bisected: tuple[tuple[Bisection, str], ...] = ()
    """What a sweep has bisected, and what came of each in words."""
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
    """Cases that were profiled; of two that are compared with each other the base first."""
    profiled_difference: Explanation | None = None
    """Between the two."""
    metered: tuple[Metered, ...] = ()
    """Cases whose kernels were measured one by one."""
    profile: Profile | None = None
    """What was profiled; in a comparison, the head."""
    explained: tuple[Explained, ...] = ()
    """What differences of the comparisons come from, the largest first."""
    counts: dict[str, int] = field(default_factory=dict)
    """Cases by verdict. A case counts once, with the most serious of its gating metrics."""
    acknowledged: dict[str, int] = field(default_factory=dict)
    """How many of these are acknowledged, and no alarm."""
    remark: str = ""
    """The last line's text instead of the counts if nothing had to be judged: "nothing affected"."""
    cases: int = 0
    covered: tuple[int, int] | None = None
    """Cases that are decided, of those that were to be compared, where some were not reached or most are undecided."""
    geomean: tuple[float, float, float, int] | None = None
    """Geometric mean of the gating time ratios with its 95 % interval, and over how many cases."""
    noise_floor: tuple[float, float, str] | None = None
    """Median and largest of `noise`, and the case that has the largest."""
    min_detectable: float | None = None
    """Median of `min_detectable`, as a relative change."""
    finer: tuple[int, float] | None = None
    """If there were few rounds: the usual number a side, and the median with that number."""
    aa: SelfCheck | None = None
    """The A/A check that the report is about."""
    fineness: tuple[Fineness, ...] = ()
    """What it has found of each case, the noisiest first."""
    last_aa: SelfCheck | None = None
    """The last A/A check on this device, if it covers some of these cases."""
    problems: tuple[SuiteProblem, ...] = ()
    error: Stopped | None = None
    """Where this is all that there is to report."""
    warnings: tuple[str, ...] = ()
    suggestions: tuple[tuple[str, str], ...] = ()
    """Pairs of a word and a command to run next: ("again", "regress check 3f2c1ab 9d41e77 -b softmax")."""
    notify: str = ""
    """The command to run because something is new."""
    policy: dict[str, Any] = field(default_factory=dict)
    options: tuple[str, ...] = ()
    """Further words for the command that measures a case again, besides sides and case: "--suite", "own"."""
    quick: bool = False
    """Whether each case was only tried once, which is not recorded."""
    recorded: str = ""
    """Where the results were written."""
    overhead: tuple[float, float] | None = None
    """Seconds to start a round's process, and of overhead a case."""
    duration_s: float = 0.0

    @property
    def exit_code(self) -> Exit:
        return self.exit_codes[0]

    @property
    def strict(self) -> bool:
        return bool(self.policy.get("strict"))
