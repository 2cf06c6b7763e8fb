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

    found: tuple[tuple[Bisection, str], ...] = ()
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
    found: list[tuple[Bisection, str]] = []
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
            found.append((report.bisection, report.remark))
        warnings += report.warnings
        if Exit.INTERRUPTED in report.exit_codes:
            return Bisected(tuple(found), tuple(warnings), interrupted=True)
    return Bisected(tuple(found), tuple(warnings))


def wanted(events: Events, histories: Sequence[Sequence[Commit]]) -> Iterator[Wanted]:
    """One for each event that is new: regressions, what stopped giving numbers, then what is tentative; of several cases the
    one that moved most. What many benchmarks did at once says too little of a commit."""
    new = [each for each in outside(events.changes, events.shifts) if each.new and each.point.large]
    largest = [max(each, key=size_of) for history, own in by_history(new, histories) for each in by_event(own, history)]
    largest.sort(key=size_of, reverse=True)
    ranged = [each for each in largest if len(each.blamed) > 1]
    for each in ranged:
        if each.point.is_open:
            yield Wanted(each.case, each.point.good, each.blamed[-1].sha, each.metric.name)
    firsts = {(each.case.name, each.blamed): each for each in reversed(events.breakages) if each.new}
    for broken in reversed(firsts.values()):
        if len(broken.blamed) > 1:
            yield Wanted(broken.case, broken.good, broken.first.sha)
    for each in ranged:
        if each.point.state == "tentative" and each.point.acknowledged is None:
            yield Wanted(each.case, each.point.good, each.blamed[-1].sha, each.metric.name)
