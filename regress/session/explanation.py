"""Where differences come from: cases profiled on both sides, each in processes of its own, and what their profiles say.

Whether a difference is real, a profile cannot tell: it is one process, and the profiler slows down the host. That is settled
before, without one. Both sides are profiled in turn, several times, and the profiles with the median time of a call explained.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from regress.errors import RegressError, StoreError
from regress.measure.wire import CALL_MARK, CALLS_SKIPPED
from regress.model import (
    Cause,
    Commit,
    Comparison,
    Explained,
    Explanation,
    Lane,
    ProfiledSide,
    Span,
    Verdict,
)
from regress.run.execute import Job, JobResult, Watcher
from regress.run.profiled import profiled
from regress.session import Session
from regress.traces import chrome
from regress.traces.kernels import explain
from regress.traces.timeline import TimedEvent, Timeline, between
from regress.units import format_pair, format_time

TRACES = 3
"""Profiles a side: the median of fewer says nothing of their range."""
MOST_EXPLAINED = 5
"""Regressions that a check explains: each costs six processes."""
SHOWN_CALLS = 3
"""Calls of a profile whose timeline is kept for people."""
SHOWN = 0.5
"""Of a measured difference, what a profile has to show, or its cause is doubtful."""

Choose = Callable[[Sequence[Comparison]], list[Comparison]]
"""Which comparisons are explained."""
Keep = Callable[[Explained], None]
"""Keeps what a difference comes from. Raises StoreError."""


@dataclass(frozen=True)
class SideTrace:
    """One profile of one side: where its trace is, and the calls in it."""

    trace: Path
    timeline: Timeline

    @property
    def call_s(self) -> float:
        return self.timeline.span_s / self.timeline.calls


class Explaining:
    """What explains the differences of a check; `explained` holds what is done, also after Ctrl-C, and each was given to `keep`
    then. Why that failed stands in `unkept`."""

    def __init__(self, session: Session, job: Job, measured: JobResult, watcher: Watcher, keep: Keep) -> None:
        self._session, self._job, self._measured, self._watcher = session, job, measured, watcher
        self._keep = keep
        base, head = (side.side for side in job.sides)
        self.folder = session.cache / "explained" / f"{base.label}-{head.label}"
        self.files = session.changed(base, head)
        self.commits: tuple[Commit, ...] = tuple(
            session.repository.commits(f"{base.commit.sha}..{head.commit.sha}", session.own_paths)
        )
        self.explained: list[Explained] = []
        self.unkept: dict[str, None] = {}
        self.interrupted = False

    def explain(self, comparisons: Sequence[Comparison]) -> None:
        """Profile and explain each of them."""
        if not comparisons:
            return
        self._watcher.start(len(comparisons) * 2 * TRACES, "profiling")
        try:
            with self._session.devices.held(self._watcher):
                for comparison in comparisons:
                    explained = self._explained(comparison)
                    self.explained.append(explained)
                    self._try_to_keep(explained)
        except KeyboardInterrupt:
            self.interrupted = True

    def _try_to_keep(self, explained: Explained) -> None:
        """The verdicts do not hang on it."""
        try:
            self._keep(explained)
        except StoreError as error:
            self.unkept[error.cause] = None

    def _explained(self, compared: Comparison) -> Explained:
        explained = Explained(compared, None, files=self.files, commits=self.commits)
        try:
            base, head = self._profiles(compared)
        except RegressError as error:
            return replace(explained, warnings=(error.cause,))
        middle = [statistics.median_low(sorted(profile.call_s for profile in side)) for side in (base, head)]
        before, after = (
            next(profile for profile in side if profile.call_s == call_s)
            for side, call_s in zip((base, head), middle, strict=True)
        )
        explanation = explain(before.timeline, after.timeline, self._session.config.settings.time_threshold)
        explained = replace(
            explained,
            explanation=explanation,
            base=_side(base, before),
            head=_side(head, after),
            warnings=explanation.warnings,
        )
        return doubted(explained, base, head)

    def _profiles(self, compared: Comparison) -> tuple[list[SideTrace], list[SideTrace]]:
        """Those of base and of head, taken in turn. Raises RegressError where one cannot be taken."""
        taken: tuple[list[SideTrace], list[SideTrace]] = [], []
        for index in range(TRACES):
            for prepared, profiles in zip(self._job.sides, taken, strict=True):
                name = prepared.side.name
                benchmark = self._measured.benchmarks.get(name, {}).get(compared.case.name)
                if benchmark is None:
                    raise RegressError(f"it has another name on {name}")
                folder = self.folder / f"{name}-{index + 1}"
                profile = profiled(prepared, self._job, benchmark, compared.case, folder)
                if profile.trace is None:
                    why = profile.failure.message if profile.failure is not None else ""
                    raise RegressError(f"it cannot be profiled on {name}", why=why)
                timeline = between(chrome.read(profile.trace), CALL_MARK, CALLS_SKIPPED)
                profiles.append(SideTrace(profile.trace, timeline))
                self._watcher.advance(f"{name} {compared.case}")
        return taken


def _side(profiles: Sequence[SideTrace], chosen: SideTrace) -> ProfiledSide:
    return ProfiledSide(
        calls_s=tuple(profile.call_s for profile in profiles),
        traces=tuple(str(profile.trace) for profile in profiles),
        timeline=_spans(chosen.timeline),
    )


def _spans(timeline: Timeline) -> tuple[Span, ...]:
    """The first calls of a timeline, for people: outermost operators and waiting, and the kernels and copies they asked for."""
    marks = sorted((span for span in timeline.ranges if span.name == CALL_MARK), key=lambda span: span.start_s)
    start_s, end_s = marks[0].start_s, marks[:SHOWN_CALLS][-1].end_s
    asked = {call.correlation for call in timeline.api_calls if start_s <= call.start_s <= end_s}
    host: list[TimedEvent] = [operator for operator in timeline.operators if len(operator.path) == 1]
    host += timeline.syncs
    lanes: dict[Lane, Iterable[TimedEvent]] = {
        "host": (event for event in host if start_s <= event.start_s <= end_s),
        "kernels": (launch for launch in timeline.launches if launch.correlation in asked),
        "copies": (copy for copy in timeline.copies if copy.correlation in asked),
    }
    return tuple(
        Span(lane, event.name, event.start_s - start_s, event.duration_s)
        for lane, events in lanes.items()
        for event in events
    )


# -- doubts --------------------------------------------------------------------------------------------------------------


def doubted(explained: Explained, base: Sequence[SideTrace], head: Sequence[SideTrace]) -> Explained:
    """With what speaks against the explanation; a cause of a difference that the profiles do not show has low confidence."""
    explanation = explained.explanation
    assert explanation is not None
    doubt = _hidden(explained, explanation, base, head)
    if doubt:
        explanation = replace(explanation, causes=tuple(_lowered(cause) for cause in explanation.causes))
    doubts = [*_unlike("base", base), *_unlike("head", head), *([doubt] if doubt else [])]
    return replace(explained, explanation=explanation, warnings=(*explained.warnings, *doubts), shown=not doubt)


def _hidden(
    explained: Explained, explanation: Explanation, base: Sequence[SideTrace], head: Sequence[SideTrace]
) -> str:
    """Why the profiles do not show the measured difference; empty where they do.

    A time of the device has to be in what the device does: in its kernels and copies, or in the number of them. Any other has
    to be in the calls, whose time under a profiler varies from process to process: so the sides may not overlap.
    """
    measured_s = explained.measured_s
    if not measured_s:
        return ""
    device_s = explanation.kernels_s + explanation.copies_s
    if device_s / measured_s >= SHOWN:
        return ""
    if explained.comparison.metric.name == "gpu_time":
        before, after = explanation.launches
        if (after - before) * measured_s > 0:
            return ""
        return (
            f"the profiles show {format_time(device_s)} of the measured {format_time(measured_s)} in kernels and copies"
        )
    if explanation.difference_s / measured_s < SHOWN:
        return f"the profiles show {format_time(explanation.difference_s)} of the measured {format_time(measured_s)}"
    lower, upper = (base, head) if measured_s > 0 else (head, base)
    if lower and upper and max(profile.call_s for profile in lower) >= min(profile.call_s for profile in upper):
        return f"the calls take {_range(base)} in the profiles of the base, and {_range(head)} in those of the head"
    return ""


def _range(profiles: Sequence[SideTrace]) -> str:
    return " to ".join(
        format_pair(min(profile.call_s for profile in profiles), max(profile.call_s for profile in profiles), "s")
    )


def _lowered(cause: Cause) -> Cause:
    return replace(cause, confidence="low")


def _unlike(side: str, profiles: Sequence[SideTrace]) -> list[str]:
    """Where the profiles of one side do not have the same kernels."""
    kernels = {frozenset(launch.name for launch in profile.timeline.launches) for profile in profiles}
    return [f"the profiles of the {side} do not have the same kernels"] if len(kernels) > 1 else []


# -- which ---------------------------------------------------------------------------------------------------------------


def can_explain(comparison: Comparison) -> bool:
    """Whether it is a time that changed: a profile tells of nothing else."""
    return comparison.verdict in (Verdict.REGRESSED, Verdict.IMPROVED) and comparison.metric.kind in ("time", "host")


def farthest(comparisons: Sequence[Comparison]) -> list[Comparison]:
    """The one that changed most, what gates before the rest and what regressed before what improved; empty where none did."""
    candidates = [comparison for comparison in comparisons if can_explain(comparison)]
    return sorted(
        candidates,
        key=lambda comparison: (not comparison.gates, comparison.verdict is not Verdict.REGRESSED, -_moved(comparison)),
    )[:1]


def regressions(comparisons: Sequence[Comparison]) -> list[Comparison]:
    """Of each benchmark the worst case that makes the check fail, the worst benchmark first."""
    worst: dict[str, Comparison] = {}
    for comparison in sorted(comparisons, key=lambda other: -_moved(other)):
        if comparison.alarms and comparison.verdict is Verdict.REGRESSED and can_explain(comparison):
            worst.setdefault(comparison.case.name, comparison)
    return list(worst.values())


def _moved(comparison: Comparison) -> float:
    return abs(math.log(comparison.ratio)) if comparison.ratio else 0.0
