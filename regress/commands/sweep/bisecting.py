"""What is new in a sweep and may be due to several commits, bisected one after the other."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from regress.commands.bisect import bisect
from regress.commands.sweep.confirming import size_of
from regress.errors import Exit, RegressError
from regress.model import Bisection, Case, Commit, outside
from regress.run.execute import Watcher
from regress.session import Request
from regress.trends.events import Events, by_event, by_history


class Wanted(NamedTuple):
    """One bisection; without a metric it is of a case that stopped giving numbers."""

    case: Case
    good: str
    last: str
    metric: str = ""


class Bisected(NamedTuple):
    """What came of all bisections."""

    bisections: tuple[tuple[Bisection, str], ...] = ()
    """Each, and what it found in words."""
    warnings: tuple[str, ...] = ()
    interrupted: bool = False


def bisect_new(
    request: Request,
    events: Events,
    histories: Sequence[Sequence[Commit]],
    watcher: Watcher,
    *,
    environment: str,
    end_s: float,
) -> Bisected:
    """Bisect until `end_s` of the monotonic clock, what hurts most first. What cannot be bisected is a warning."""
    plain = replace(request, patterns=(), tags=(), affected=False)
    bisections: list[tuple[Bisection, str]] = []
    warnings: list[str] = []
    for case, good, last, metric in wanted(events, histories):
        left_s = end_s - time.monotonic()
        if left_s <= 0:
            break
        watcher.note(f"bisecting {case} between {good[:8]} and {last[:8]}")
        try:
            report = bisect(
                plain, str(case), good, last, watcher, metric=metric, environment=environment, budget_s=left_s
            )
        except RegressError as error:
            warnings.append(f"{case} could not be bisected: {error.what}" + (f": {error.why}" if error.why else ""))
            continue
        if report.bisection is not None and report.bisection.change is not None:
            bisections.append((report.bisection, report.remark))
        warnings += report.warnings
        if Exit.INTERRUPTED in report.exit_codes:
            return Bisected(tuple(bisections), tuple(warnings), interrupted=True)
    return Bisected(tuple(bisections), tuple(warnings))


def wanted(events: Events, histories: Sequence[Sequence[Commit]]) -> Iterator[Wanted]:
    """One for each event that is new: regressions, what stopped giving numbers, then what is tentative; of several cases the
    one that moved most. What many benchmarks did at once says too little of a commit."""
    new = [change for change in outside(events.changes, events.shifts) if change.new and change.point.large]
    largest = [
        max(event, key=size_of) for history, own in by_history(new, histories) for event in by_event(own, history)
    ]
    largest.sort(key=size_of, reverse=True)
    ranged = [change for change in largest if len(change.blamed) > 1]
    for change in ranged:
        if change.point.is_open:
            yield Wanted(change.case, change.point.good, change.blamed[-1].sha, change.metric.name)
    firsts = {
        (breakage.case.name, breakage.blamed): breakage for breakage in reversed(events.breakages) if breakage.new
    }
    for broken in reversed(firsts.values()):
        if len(broken.blamed) > 1:
            yield Wanted(broken.case, broken.good, broken.first.sha)
    for change in ranged:
        if change.point.state == "tentative" and change.point.acknowledged is None:
            yield Wanted(change.case, change.point.good, change.blamed[-1].sha, change.metric.name)
