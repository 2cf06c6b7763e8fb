"""Two profiles of a case against each other: which kernels, copies and waits a difference comes from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from regress.model.comparison import Comparison
from regress.model.measurement import Case, Commit
from regress.model.profile import KernelUse

Matched = Literal["name", "template", "operator", "position", "nothing"]
"""How a kernel was found again: by its whole name; by the name without template arguments; by the operator and shapes that it
was launched for; by its place between others that did match."""
DiffKind = Literal["new", "gone", "replaced", "slower", "faster", "more launches", "fewer launches", "same"]
Confidence = Literal["high", "medium", "low"]


@dataclass(frozen=True)
class KernelDiff:
    """One kernel, or one way of copying, on both sides, and how the two were matched; None if a side has none."""

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
    """The most likely first; empty if nothing changed or no cause is recognized."""
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
    """Of the profiles whose calls took the median time of their side; None if the case could not be profiled."""
    base: ProfiledSide | None = None
    head: ProfiledSide | None = None
    files: tuple[str, ...] = ()
    """What differs between the sides."""
    commits: tuple[Commit, ...] = ()
    """After the base, up to the head; the oldest first."""
    warnings: tuple[str, ...] = ()
    """What speaks against the explanation, or why there is none."""
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
        """The parts of the difference, in seconds a call; empty without an explanation.

        A device time is measured with the launches waiting in the queue, so the host, which a profiler slows down, does not
        affect it: whatever kernels and copies do not account for is gaps between launches, and what a profile does not show.
        Other times include the device waiting for the host, as the profiles have it.
        """
        explanation = self.explanation
        if explanation is None:
            return {}
        work = {"kernels": explanation.kernels_s, "copies": explanation.copies_s}
        if self.comparison.metric.name == "gpu_time" and self.whole_s is not None:
            return {**work, "the rest": self.whole_s - sum(work.values())}
        return {**work, "idle": explanation.idle_s, "unexplained": explanation.unexplained_s}


@dataclass(frozen=True)
class KeptExplanation:
    """The cause of a difference between two commits, as kept beside results: the kernels that changed, without traces."""

    base: str
    """Full hash, as that of the head."""
    head: str
    machine: str
    environment: str
    date: float
    """When it was explained, in seconds since the epoch."""
    found: Explained
