"""What became of the changes of a series: confirmed in turn, gone after two values, taken back, or lost again.

A history has seen the newest results of a change only, or has seen it over several cards; a pair of commits that a command has
measured in turn has seen both sides of it in one job, in fresh rounds.
"""

from __future__ import annotations

import math
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from regress.compare.rule import Rule
from regress.model import ChangePoint, Confirmation, Series, Verdict

RECENT = 20
"""Results before a regression: if half of them were no better than its level, the improvement in between was a short one."""


def with_confirmations(
    points: Sequence[ChangePoint], series: Series, known: Sequence[Confirmation]
) -> tuple[ChangePoint, ...]:
    """The change points, with what pairs of commits that were measured in turn say of them.

    A pair that moved the same way within the range that may be to blame leaves what lies between its commits, if it has most of
    the change. On the sides of a tentative one, with no other change point between them, it confirms it, and one that did not
    move says that there is none: it is not large then.
    """
    place = {sha: at for at, sha in enumerate(series.commits)}
    starts = [0, *(place[point.first] for point in points), len(place)]
    done = list(points)
    for at, point in enumerate(points, 1):
        low, high = place[point.good], place[point.blamed[-1]]
        told: list[tuple[int, float, Confirmation]] = []
        for confirmation in known:
            base, head = place.get(confirmation.base, -1), place.get(confirmation.head, -1)
            inside = low <= base < head <= high and head - base < high - low and _has_most_of(point, confirmation)
            around = starts[at - 1] <= base <= low and high <= head < starts[at + 1] and point.state == "tentative"
            alike = confirmation.verdict is point.moved and (inside or around)
            if alike or (confirmation.verdict is Verdict.UNCHANGED and around):
                told.append((base - head, confirmation.date, confirmation))
        if told:
            nearest = max(told, key=lambda candidate: candidate[:2])[2]
            done[at - 1] = _told(point, nearest, series.commits, place)
    return tuple(done)


def _told(point: ChangePoint, by: Confirmation, commits: Sequence[str], place: Mapping[str, int]) -> ChangePoint:
    if by.verdict is Verdict.UNCHANGED:
        return replace(point, large=False, reasons=(*point.reasons, f"not confirmed side by side: {_words(by)}"))
    low, high = max(place[point.good], place[by.base]), min(place[point.blamed[-1]], place[by.head])
    return replace(
        point,
        first=commits[min(max(place[point.first], low + 1), high)],
        good=commits[low],
        blamed=tuple(commits[low + 1 : high + 1]),
        state="confirmed" if point.state == "tentative" else point.state,
        reasons=(*point.reasons, f"confirmed by {_words(by)}"),
    )


def _has_most_of(point: ChangePoint, confirmation: Confirmation) -> bool:
    if not point.ratio or not confirmation.ratio:
        return point.ratio == confirmation.ratio
    return abs(math.log(confirmation.ratio)) >= abs(math.log(point.ratio)) / 2


def _words(confirmation: Confirmation) -> str:
    day = time.strftime("%Y-%m-%d", time.localtime(confirmation.date))
    size = f", {100 * (confirmation.ratio - 1):+.1f} %" if confirmation.ratio is not None else ""
    return f"{confirmation.command} {confirmation.base[:8]} {confirmation.head[:8]} on {day}{size}"


def passed(points: list[ChangePoint], starts: Sequence[int]) -> list[ChangePoint]:
    """With what went and came back after two values: neither is open, whichever way it went."""
    for at in starts:
        back = points[at + 1].first
        for index in (at, at + 1):
            points[index] = replace(points[index], state="recovered", recovered_by=back)
    return points


def recovered(points: list[ChangePoint], ended: Collection[int], rule: Rule) -> list[ChangePoint]:
    """With what took what back: an improvement, any regression before it that it undid by more than half, to a level that
    is not large above the one before. What is tentative takes nothing back yet, and what `ended` soon never did."""
    done = list(points)
    for index, better in enumerate(points):
        if better.moved is not Verdict.IMPROVED or better.state == "tentative" or index in ended:
            continue
        for earlier, worse in enumerate(done[:index]):
            if worse.moved is Verdict.REGRESSED and not worse.recovered_by and _took_back(better, worse, rule):
                done[earlier] = replace(worse, recovered_by=better.first)
                done[index] = replace(better, state="recovered")
    return done


def relapsed(
    points: Sequence[ChangePoint], starts: Sequence[int], released: Sequence[int], rule: Rule
) -> tuple[list[ChangePoint], set[int]]:
    """With the regressions that end a short improvement, none of which was `released`; and the places of what they end among
    the changes. `starts` and `released` are places among the results."""
    done, ended = list(points), set[int]()
    for index, worse in enumerate(points):
        if worse.moved is not Verdict.REGRESSED or worse.state != "confirmed" or not worse.large:
            continue
        start, recent = starts[index], starts[index] - RECENT
        spans = zip([0, *starts], starts, points[: index + 1], strict=False)
        ends = [(begin, end) for begin, end, point in spans if not _is_better(point.before, worse, rule)]
        first = ends[-1][1] if ends else 0
        known = sum(max(0, end - max(begin, recent)) for begin, end in ends)
        if 2 * known >= RECENT and not any(first <= at < start for at in released):
            done[index] = replace(worse, state="relapsed")
            ended.update(at for at in range(index) if starts[at] >= first)
    return done, ended


def _is_better(level: float, worse: ChangePoint, rule: Rule) -> bool:
    """Whether the level is better than the one that a regression led to."""
    return rule.moved(worse.after > level) is Verdict.REGRESSED and not _alike(worse.after, level, rule)


def undoing(points: list[ChangePoint], rule: Rule) -> list[ChangePoint]:
    """With the last large change before each large one that went the other way, from the level that it is at again."""
    done = list(points)
    large = [point for point in points if point.large]
    for index, change in enumerate(points):
        for earlier in reversed(large[: large.index(change)] if change.large else ()):
            opposite = (earlier.after > earlier.before) != (change.after > change.before)
            if opposite and _alike(change.after, earlier.before, rule):
                done[index] = replace(change, undoes=earlier.first)
                break
    return done


def _alike(level: float, other: float, rule: Rule) -> bool:
    """Whether the two are one level: what lies between them does not count."""
    if level <= 0 or other <= 0:
        return abs(level - other) <= rule.floor
    return not rule.counts(level / other, math.sqrt(level) * math.sqrt(other))


def _took_back(better: ChangePoint, worse: ChangePoint, rule: Rule) -> bool:
    up = math.copysign(1.0, worse.after - worse.before)
    left, undone = up * (better.after - worse.before), up * (worse.after - better.after)
    if left <= 0:
        return True
    if undone <= left:
        return False
    return left < rule.floor or (worse.before > 0 and not rule.large(better.after / worse.before))
