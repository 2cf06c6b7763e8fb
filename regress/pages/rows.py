"""One Series as the overview lists it: its status, its newest value, and its history in a few letters."""

from __future__ import annotations

import math
from bisect import bisect_right

from regress.compare.circumstances import is_of_modes
from regress.model import NEGATIVE, Verdict
from regress.pages import SPARK_LETTERS, STATUSES, Level, PageRow
from regress.pages.lines import Levelled, measured_of, rounded
from regress.stats.summary import median
from regress.text.wording import counted
from regress.trends.changes import lacking, why_tentative
from regress.units import format_change

SPARK_STEPS = 60
LISTED_KINDS = ("time", "host", "memory", "tracked")
"""Metrics of other kinds are listed only if they have changed."""


def row_of(curve: Levelled, place: int, reference: int, threshold: float, column: int = 0, lost: str = "") -> PageRow:
    """The row; `lost` says since when its case has values of other metrics only."""
    series, latest = curve.series, curve.latest
    status, why = ("gone", lost) if lost else status_of(curve, threshold)
    since, doubt = _since(curve, reference)
    large = [point for point in curve.changes if point.large and not point.is_passing]
    last = next(reversed([point for point in large if point.is_open] or large), None)
    return PageRow(
        benchmark=0,
        params=", ".join(series.case.params),
        metric=series.metric.name,
        unit=series.metric.unit,
        better=series.metric.better,
        gates=curve.gates,
        place=place,
        status=status,
        why=why,
        latest=curve.values[-1],
        at=latest,
        since=since,
        doubt=doubt,
        change=None if last is None else last.ratio,
        changed=None if last is None else curve.at[last.first],
        noise=curve.noise,
        spark=_spark(curve, threshold),
        levels=curve.levels,
        off=curve.off,
        lacks=lacking(series),
        measured=measured_of(curve, column),
    )


def listed(row: PageRow, kind: str) -> bool:
    return row.gates or kind in LISTED_KINDS or row.status not in ("unchanged", "undecided")


def rank(status: str) -> int:
    """Sorts statuses, the worst first."""
    return list(STATUSES).index(status)


def severity(row: PageRow) -> tuple[int, float]:
    """Sorts rows, the worst first."""
    return rank(row.status), -abs(math.log(row.change)) if row.change and row.change > 0 else 0.0


def status_of(curve: Levelled, threshold: float) -> tuple[str, str]:
    """The status of a series and, if it is undecided, the reason."""
    series = curve.series
    if newest := series.failures[-1]:
        return "failed", newest  # it gave a number before, and skipped or not it gives none any more
    large = [point for point in curve.changes if point.large and not point.is_passing]
    if any(point.is_open for point in large):
        return "regressed", ""
    known = next(
        (point.acknowledged for point in reversed(large) if point.acknowledged and not point.recovered_by), None
    )
    if large and large[-1].state == "tentative" and large[-1].acknowledged is None:
        return "tentative", f"{why_tentative(large[-1])}: measure again"
    if known is not None:
        return "acknowledged", known.words
    if large:
        last = large[-1]
        if last.moved is Verdict.CHANGED:
            return "changed", ""
        if last.state == "relapsed" and not last.recovered_by:
            return last.state, ""
        return ("recovered" if last.state == "recovered" or last.recovered_by else "improved"), ""
    doubted = [
        point for point in curve.changes if point.reasons and point.ratio and abs(math.log(point.ratio)) > threshold
    ]
    if doubted:
        return "undecided", "; ".join(doubted[-1].reasons)
    if curve.values[-1] < 0:
        return "undecided", NEGATIVE
    if lacks := lacking(series):
        alike = len(series.by_way[series.ways[-1]])
        return "undecided", f"{counted(alike, 'result')} to compare; it takes {alike + lacks}"
    if moded := next((point for point in reversed(curve.changes) if any(map(is_of_modes, point.reasons))), None):
        return "undecided", next(filter(is_of_modes, moded.reasons))
    if curve.noise is not None and curve.noise > threshold:
        return "undecided", "the values scatter by more than the threshold"
    return "unchanged", ""


def _since(curve: Levelled, reference: int) -> tuple[float | None, str]:
    """Ratio of the newest value to the one at the reference or last before it, and why that ratio means nothing."""
    now, then = curve.level_at(curve.latest), curve.level_at(reference)
    at = bisect_right(curve.measured, reference) - 1
    if curve.latest <= reference or now is None or then is None or now.way != then.way:
        return None, ""
    if curve.values[at] <= 0 or curve.values[-1] < 0:
        return None, ""
    ends = (("the latest value", -1, now), ("the value then", at, then))
    doubts = [_stray(word, curve.values[k], level) for word, k, level in ends if curve.measured[k] in curve.off]
    return rounded(curve.values[-1] / curve.values[at], 5), "; ".join(doubts)


def _stray(word: str, value: float, level: Level) -> str:
    ratio = value / level.value if level.value else math.inf
    return f"{word} is {format_change(ratio)} off its level"


def _spark(curve: Levelled, threshold: float) -> str:
    """A letter a step from the first level to the latest value: where the median of the step lies between the lowest and the
    highest one. The span is at least as wide as the threshold, so that noise looks like noise."""
    series, first = curve.series, curve.levels[0].first
    long = curve.latest + 1 - first
    steps = min(SPARK_STEPS, long)
    ends = [first + round(index * long / steps) for index in range(1, steps + 1)]
    groups: list[list[float]] = [[] for _ in ends]
    for at, measured in zip(curve.measured, curve.values, strict=True):
        groups[bisect_right(ends, at)].append(measured)
    medians = [median(group) if group else None for group in groups]
    missing = ["-"] * steps
    for at, kind in zip(series.at, series.failures, strict=True):
        if kind and first <= at <= curve.latest:
            missing[bisect_right(ends, at)] = " "
    present = [value for value in medians if value is not None]
    low, high = min(present), max(present)
    middle = low / 2 + high / 2  # the sum may be too large for a float
    span = max(high - low, threshold * abs(middle))
    letters = []
    for value, without in zip(medians, missing, strict=True):
        share = 0.5 if value is None or not span else 0.5 + (value - middle) / span
        letters.append(without if value is None else SPARK_LETTERS[round(share * (len(SPARK_LETTERS) - 1))])
    return "".join(letters)
