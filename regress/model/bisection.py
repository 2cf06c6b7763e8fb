"""The search for the commit that did it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from regress.model.comparison import Verdict
from regress.model.measurement import Case, Commit, Metric


@dataclass(frozen=True)
class Contrast:
    """How far two commits are apart in one metric of a case, measured in turn."""

    metric: Metric
    verdict: Verdict
    before: float | None = None
    after: float | None = None
    ratio: float | None = None
    """after/before, with its 95 % interval; None if a side has no value, or the first is zero."""
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
    """`between`: it has a part of the change. `unclear`: undecided. `skipped`: it cannot be measured."""
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
    """The search for the commit between `good` and `bad` that made the change. Steps not reached are None or empty."""

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
