"""What pairs of commits that a command has measured in turn say of the changes in a history.

A history has seen the newest results of a change only, or has seen it over several cards; a pair has seen both sides of it in
one job, in fresh rounds.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

from regress.model import ChangePoint, Confirmation, Series, Verdict


def with_confirmations(
    found: Sequence[ChangePoint], series: Series, known: Sequence[Confirmation]
) -> tuple[ChangePoint, ...]:
    """The change points, with what pairs of commits that were measured in turn say of them.

    A pair that moved the same way within the range that may be to blame leaves what lies between its commits, if it has most of
    the change. On the sides of a tentative one, with no other change point between them, it confirms it, and one that did not
    move says that there is none: it is not large then.
    """
    place = {sha: at for at, sha in enumerate(series.commits)}
    starts = [0, *(place[each.first] for each in found), len(place)]
    done = list(found)
    for at, point in enumerate(found, 1):
        low, high = place[point.good], place[point.blamed[-1]]
        told: list[tuple[int, float, Confirmation]] = []
        for each in known:
            base, head = place.get(each.base, -1), place.get(each.head, -1)
            inside = low <= base < head <= high and head - base < high - low and _has_most_of(point, each)
            around = starts[at - 1] <= base <= low and high <= head < starts[at + 1] and point.state == "tentative"
            alike = each.verdict is point.moved and (inside or around)
            if alike or (each.verdict is Verdict.UNCHANGED and around):
                told.append((base - head, each.date, each))
        if told:
            nearest = max(told, key=lambda each: each[:2])[2]
            done[at - 1] = _told(point, nearest, series.commits, place)
    return tuple(done)


def _told(point: ChangePoint, by: Confirmation, commits: Sequence[str], place: Mapping[str, int]) -> ChangePoint:
    if by.verdict is Verdict.UNCHANGED:
        return replace(point, large=False, reasons=(*point.reasons, f"not confirmed in turn: {_words(by)}"))
    low, high = max(place[point.good], place[by.base]), min(place[point.blamed[-1]], place[by.head])
    return replace(
        point,
        first=commits[min(max(place[point.first], low + 1), high)],
        good=commits[low],
        blamed=tuple(commits[low + 1 : high + 1]),
        state="confirmed" if point.state == "tentative" else point.state,
        reasons=(*point.reasons, f"confirmed by {_words(by)}"),
    )


def _has_most_of(point: ChangePoint, each: Confirmation) -> bool:
    if not point.ratio or not each.ratio:
        return point.ratio == each.ratio
    return abs(math.log(each.ratio)) >= abs(math.log(point.ratio)) / 2


def _words(each: Confirmation) -> str:
    day = time.strftime("%Y-%m-%d", time.localtime(each.date))
    size = f", {100 * (each.ratio - 1):+.1f} %" if each.ratio is not None else ""
    return f"{each.command} of {each.base[:8]} {each.head[:8]} on {day}{size}"
