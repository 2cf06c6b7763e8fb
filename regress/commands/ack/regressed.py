"""What is known to have regressed: by the last check on this machine, else by the recorded history."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from regress.history import last_verdicts
from regress.model import Changed, Verdict
from regress.session import Session
from regress.trends.events import events_on


@dataclass(frozen=True)
class Regressed:
    """A case that is slower, or uses more memory, at the commit `seen` than at `since`."""

    case: str
    metric: str
    since: str
    seen: str
    """Empty where what was measured is no commit."""
    ratio: float | None
    """None where the value was zero."""
    value: float

    @property
    def size(self) -> float:
        return abs(math.log(self.ratio)) if self.ratio else math.inf


def regressed(session: Session, cases: Collection[str], metric: str = "", since: str = "") -> list[Regressed]:
    """The regressions of these cases, in that metric or in any that gates, since that commit or any; the worst first."""
    for source in (_last_checked, _recorded):
        found = [
            each
            for each in source(session, cases)
            if metric in ("", each.metric) and (not since or each.since.startswith(since))
        ]
        if found:
            return sorted(found, key=lambda each: -each.size)
    return []


def _last_checked(session: Session, cases: Collection[str]) -> list[Regressed]:
    return [
        Regressed(case, metric, each.base, each.head, each.ratio, each.value)
        for (case, metric), each in last_verdicts(session.cache, session.machine.name).items()
        if case in cases and each.verdict is Verdict.REGRESSED
    ]


def _recorded(session: Session, cases: Collection[str]) -> list[Regressed]:
    """What is open in the recorded history of the checkout, on any machine."""
    names = {case.partition("(")[0] for case in cases}
    changes = events_on(session, session.repository.commits("HEAD"), names, machine=None).changes
    return [_of(each) for each in _last_of_each(changes) if str(each.case) in cases]


def _last_of_each(changes: Iterable[Changed]) -> Collection[Changed]:
    """Of each series the newest regression that is open."""
    found = {}
    for each in changes:
        if each.point.is_open:
            found[each.case, each.metric.name, each.machine, each.environment, each.device] = each
    return found.values()


def _of(changed: Changed) -> Regressed:
    point = changed.point
    return Regressed(str(changed.case), changed.metric.name, point.good, point.first, point.ratio, point.after)
