"""Two sides against each other, and a side against itself: verdicts, and how fine they can be."""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass

from regress.errors import Exit
from regress.measure.wire import Failure
from regress.model.acknowledgement import Acknowledgement
from regress.model.measurement import Case, Metric, Samples, Throughput
from regress.stats.summary import Summary


@dataclass(frozen=True)
class VerdictTraits:
    """The traits of a verdict, for everything that reads it."""

    severity: int
    """Of several metrics of a case the lowest counts: an undecided one outweighs an improved one."""
    mark: str
    """The sign before a row; it shows the verdict without colour."""
    color: str = ""
    claims: bool = False
    """Something changed."""
    compared: bool = False
    """It rests on numbers of both sides; a run without any, and without a failure on head, compared nothing."""
    tells: bool = True
    """Whether the head is worse is known."""
    of_case: bool = False
    """It is on a case rather than on a metric: one row a case says it."""
    listed: bool = False
    """Its section is a list of reasons, not a table of numbers."""
    gating_only: bool = False
    """A metric that does not gate is shown only if verbose, and is marked."""
    leads: bool = False
    """A comment shows its section open."""
    quiet: bool = False
    """Not worth a mention if it is acknowledged."""
    skips: bool = False
    """JUnit reports it as skipped if it fails nothing."""


class Verdict(str, enum.Enum):
    """The words for an outcome, the same in every output, in the order of importance to a reader."""

    REGRESSED = "regressed"
    FAILED = "failed"
    IMPROVED = "improved"
    UNDECIDED = "undecided"
    CHANGED = "changed"
    INCOMPARABLE = "incomparable"
    NEW = "new"
    GONE = "gone"
    SKIPPED = "skipped"
    UNCHANGED = "unchanged"

    @property
    def traits(self) -> VerdictTraits:
        return _TRAITS[self]

    @property
    def look(self) -> tuple[str, str]:
        """Its mark and colour."""
        return self.traits.mark, self.traits.color

    @property
    def decided(self) -> bool:
        """Both sides gave numbers, which show whether the head is worse."""
        return self.traits.compared and self.traits.tells

    def __str__(self) -> str:
        return self.value


_TRAITS = {
    Verdict.REGRESSED: VerdictTraits(0, "+", "bold red", claims=True, compared=True, leads=True),
    Verdict.FAILED: VerdictTraits(1, "!", "bold red", listed=True, leads=True, skips=True),
    Verdict.IMPROVED: VerdictTraits(5, "-", "green", claims=True, compared=True, gating_only=True, leads=True),
    Verdict.UNDECIDED: VerdictTraits(2, "?", "yellow", compared=True, tells=False, gating_only=True, skips=True),
    Verdict.CHANGED: VerdictTraits(3, "~", "cyan", claims=True, compared=True, tells=False),
    Verdict.INCOMPARABLE: VerdictTraits(4, "~", "yellow", tells=False, of_case=True, skips=True),
    Verdict.NEW: VerdictTraits(7, "*", "cyan", of_case=True),
    Verdict.GONE: VerdictTraits(6, "x", "cyan", tells=False, of_case=True, skips=True),
    Verdict.SKIPPED: VerdictTraits(8, "/", "dim", of_case=True, listed=True, quiet=True, skips=True),
    Verdict.UNCHANGED: VerdictTraits(9, "=", compared=True, gating_only=True, quiet=True),
}

NEGATIVE = "a negative value has no ratio, so a change of it is not judged"
"""Why a comparison of a negative value is `incomparable`, and a series whose newest value is negative undecided."""


@dataclass(frozen=True)
class Pairs:
    """What the comparison of two sides rests on that took windows in turn: the differences of logarithms, one a pair."""

    n: int
    """Independent draws: pairs, or, if the sides share no zygote, the mean of each origin's pairs."""
    spread: float
    """Standard deviation of the differences, but for stray ones: 0.01 is about 1 % from pair to pair."""
    error: float
    """Standard error of one difference by its own windows, in the median."""


@dataclass(frozen=True)
class Comparison:
    """One case and metric, base against head.

    `p` is Welch's two-sided p on the logarithms of the round values, or Student's on the differences of `pairs`; `p_adjusted`
    the same after Holm over the run; both None for exact metrics.
    """

    case: Case
    metric: Metric
    verdict: Verdict
    reasons: tuple[str, ...] = ()
    base: Summary | None = None
    head: Summary | None = None
    ratio: float | None = None
    """head/base with its 95 % interval; None if one side has no number or base is zero."""
    low: float | None = None
    high: float | None = None
    p: float | None = None
    p_adjusted: float | None = None
    gates: bool = True
    """Whether a regression of it fails the check."""
    exact: bool = False
    """Compared without a test."""
    threshold: float = 0.05
    """Relative change from which on a change is large."""
    counts_from: float | None = None
    """Smallest relative change that counts here: the threshold, or the floor if that is larger."""
    noise: float | None = None
    """Smallest change that would have been significant, as a relative change (0.006 is 0.6 %)."""
    min_detectable: float | None = None
    """Smallest regression, as a ratio, that it could have called one."""
    critical: bool = False
    unreached: bool = False
    """There was no time to measure it on both sides."""
    unconfirmed: bool = False
    """It looked regressed but could not be confirmed, for lack of time or of recorded sessions. It is undecided, and
    counts."""
    pairs: Pairs | None = None
    """Where the sides took windows in turn."""
    sessions: tuple[int, int] | None = None
    """For recorded results: how many sessions of the machine each side is from, if no session has enough rounds of both. Each
    is one value then, unless a side has only one."""
    base_failure: Failure | None = None
    head_failure: Failure | None = None
    base_throughput: Throughput | None = None
    head_throughput: Throughput | None = None
    base_samples: Samples | None = None
    head_samples: Samples | None = None
    acknowledged: Acknowledgement | None = None
    """The acknowledgement that keeps it from being an alarm. The verdict is what it is."""

    @property
    def spread(self) -> float:
        """Standard deviation of the logarithms of round values, both sides taken together; of pairs, what their differences
        would have it be."""
        if self.pairs is not None:
            return self.pairs.spread / math.sqrt(2)
        sides = [summary.spread for summary in (self.base, self.head) if summary is not None]
        return math.sqrt(sum(spread * spread for spread in sides) / len(sides))

    @property
    def alone(self) -> bool:
        """Whether one side was recorded in a single session: then no change is claimed, whatever its rounds say."""
        return self.sessions is not None and 1 in self.sessions

    @property
    def alarms(self) -> bool:
        """Whether its verdict counts for the exit code."""
        return self.gates and self.acknowledged is None

    @property
    def fails_on_head(self) -> bool:
        """A case skipped there does not fail; one that only the base skips did not work there either."""
        failure = self.head_failure
        return self.verdict is Verdict.FAILED and failure is not None and failure.kind != "skipped"

    def exit_code(self, strict: bool = False) -> Exit:
        """The exit code of a check with only this case: 1 regressed, 3 fails on head, 4 undecided where a decision is
        required, else 0.

        `strict` adds failures on both sides to 3, and every undecided case to 4. A critical case must be shown not to be
        worse: it gives 3 or 4 if it fails on both sides, is undecided, or the head gave no number or none that can be judged.
        A case that looked worse but could not be confirmed gives 4, too.
        """
        if not self.alarms:
            return Exit.PASSED
        if self.verdict is Verdict.REGRESSED:
            return Exit.REGRESSED
        if self.fails_on_head and (strict or self.critical or self.base_failure is None):
            return Exit.FAILED
        if self.critical and (self.head_failure is not None or not self.verdict.traits.tells):
            return Exit.UNDECIDED
        counts = self.verdict is Verdict.UNDECIDED and (strict or self.unconfirmed)
        return Exit.UNDECIDED if counts else Exit.PASSED


@dataclass(frozen=True)
class Fineness:
    """The precision of one metric of a case in an A/A check. An exact metric has neither spread nor noise."""

    case: Case
    metric: Metric
    verdict: Verdict
    rounds: int
    """A side, all that were needed."""
    spread: float | None
    """Standard deviation of the logarithms of round values, both sides taken together; of pairs, that of their differences."""
    noise: float | None
    """Smallest relative change that would have been significant."""
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
