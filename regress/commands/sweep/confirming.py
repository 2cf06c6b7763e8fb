"""What a history has seen over several cards, measured in turn: the commit and its predecessor, in one job."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from regress.commands.check import check
from regress.errors import Exit, RegressError, StoreError
from regress.history import keep_unchanged
from regress.model import Case, Changed, Report
from regress.run.execute import Watcher
from regress.session import Request, Session
from regress.text.wording import counted


class Confirmed(NamedTuple):
    """What came of all pairs."""

    pairs: int = 0
    """Those that were measured."""
    warnings: tuple[str, ...] = ()
    interrupted: bool = False


def confirm(
    request: Request, changes: Sequence[Changed], watcher: Watcher, *, environment: str, end_s: float
) -> Confirmed:
    """Measure the ends of what is tentative in turn until `end_s` of the monotonic clock, what moved most first. What a check
    says of them is kept for the history; what cannot be measured is a warning."""
    pairs, warnings = 0, list[str]()
    for (good, last), own in tentative(changes).items():
        if (left_s := end_s - time.monotonic()) <= 0:
            break
        watcher.note(f"{counted(len(own), 'change')} between {good[:8]} and {last[:8]}: measured in turn")
        try:
            cases = tuple(dict.fromkeys(str(change.case) for change in own))
            report = pair(request, cases, good, last, watcher, environment, left_s)
        except RegressError as error:
            warnings.append(f"{good[:8]} and {last[:8]} could not be measured in turn: {error.what}")
            continue
        pairs += 1
        keep_stood(Session(request), good, last, report, {(change.case, change.metric.name) for change in own})
        if Exit.INTERRUPTED in report.exit_codes:
            return Confirmed(pairs, tuple(warnings), interrupted=True)
    return Confirmed(pairs, tuple(warnings))


def tentative(changes: Sequence[Changed]) -> Mapping[tuple[str, str], list[Changed]]:
    """What is large and not sure, and nobody has acknowledged, by its ends: what moved most first."""
    by_ends: dict[tuple[str, str], list[Changed]] = {}
    for change in sorted(changes, key=size_of, reverse=True):
        if change.point.state == "tentative" and change.point.large and change.point.acknowledged is None:
            by_ends.setdefault((change.point.good, change.blamed[-1].sha), []).append(change)
    return by_ends


def pair(
    request: Request, cases: Sequence[str], good: str, last: str, watcher: Watcher, environment: str, left_s: float
) -> Report:
    """A check of these cases between both ends."""
    budget_s = min(left_s, Session(request).config.settings.budget_s)
    overrides = {**request.overrides, "budget_s": budget_s}
    about = replace(request, patterns=tuple(cases), tags=(), affected=False, overrides=overrides)
    return check(about, good, last, watcher, environments=(environment, environment))


def keep_stood(
    session: Session, good: str, last: str, report: Report, asked: Collection[tuple[Case, str]] | None = None
) -> None:
    """Keep that what was asked for (None: all) has not moved in turn; that it has, the check has kept."""
    results = [
        (comparison.case, comparison.metric, comparison.verdict, comparison.ratio)
        for comparison in report.comparisons
        if asked is None or (comparison.case, comparison.metric.name) in asked
    ]
    with contextlib.suppress(StoreError):
        keep_unchanged(session.cache, session.machine.name, "check", good, last, results)


def size_of(changed: Changed) -> float:
    """How much it moved, up or down."""
    return abs(math.log(changed.point.ratio)) if changed.point.ratio else math.inf
