"""One Series as the overview lists it: its status, its newest value, and its history in a few letters."""

from __future__ import annotations

import math
from bisect import bisect_right

from regress.compare.circumstances import is_bimodal
from regress.model import Verdict
from regress.pages import SPARK_LETTERS, STATUSES, Level, PageRow
from regress.pages.lines import Levelled, measured_of
from regress.stats.summary import median
from regress.text.wording import counted
from regress.trends.changes import lacking, why_tentative
from regress.units import format_change

SPARK_STEPS = 60
LISTED_KINDS = ("time", "host", "memory", "tracked")
"""Metrics of other kinds are listed only if they have changed."""


def row_of(found: Levelled, place: int, reference: int, threshold: float, column: int = 0, lost: str = "") -> PageRow:
    """The row; `lost` says since when its case has values of other metrics only."""
    series, latest = found.series, found.latest
    status, why = ("gone", lost) if lost else status_of(found, threshold)
    since, doubt = _since(found, reference)
    large = [each for each in found.changes if each.large and not each.is_passing]
    last = next(reversed([each for each in large if each.is_open] or large), None)
    return PageRow(
        benchmark=0,
        params=", ".join(series.case.params),
        metric=series.metric.name,
        unit=series.metric.unit,
        better=series.metric.better,
        gates=found.gates,
        place=place,
        status=status,
        why=why,
        latest=found.values[-1],
        at=latest,
        since=since,
        doubt=doubt,
        change=None if last is None else last.ratio,
        changed=None if last is None else found.at[last.first],
        noise=found.noise,
        spark=_spark(found, threshold),
        levels=found.levels,
        off=found.off,
        lacks=lacking(series),
        measured=measured_of(found, column),
    )


def listed(row: PageRow, kind: str) -> bool:
    return row.gates or kind in LISTED_KINDS or row.status not in ("unchanged", "undecided")


def rank(status: str) -> int:
    """Sorts statuses, the worst first."""
    return list(STATUSES).index(status)


def severity(row: PageRow) -> tuple[int, float]:
    """Sorts rows, the worst first."""
    return rank(row.status), -abs(math.log(row.change)) if row.change and row.change > 0 else 0.0


def status_of(found: Levelled, threshold: float) -> tuple[str, str]:
    """The status of a series and, if it is undecided, the reason."""
    series = found.series
    if newest := series.failures[-1]:
        return "failed", newest  # it gave a number before, and skipped or not it gives none any more
    large = [each for each in found.changes if each.large and not each.is_passing]
    if any(each.is_open for each in large):
        return "regressed", ""
    known = next((each.acknowledged for each in reversed(large) if each.acknowledged and not each.recovered_by), None)
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
    doubted = [each for each in found.changes if each.reasons and each.ratio and abs(math.log(each.ratio)) > threshold]
    if doubted:
        return "undecided", "; ".join(doubted[-1].reasons)
    if lacks := lacking(series):
        alike = len(series.by_way[series.ways[-1]])
        return "undecided", f"{counted(alike, 'result')} to compare; it takes {alike + lacks}"
    if moded := next((each for each in reversed(found.changes) if any(map(is_bimodal, each.reasons))), None):
        return "undecided", next(filter(is_bimodal, moded.reasons))
    if found.noise is not None and found.noise > threshold:
        return "undecided", "the values scatter by more than the threshold"
    return "unchanged", ""


def _since(found: Levelled, reference: int) -> tuple[float | None, str]:
    """Ratio of the newest value to the one at the reference or last before it, and why that ratio means nothing."""
    now, then = found.level_at(found.latest), found.level_at(reference)
    at = bisect_right(found.measured, reference) - 1
    if found.latest <= reference or now is None or then is None or now.way != then.way or not found.values[at] > 0:
        return None, ""
    ends = (("the latest value", -1, now), ("the value then", at, then))
    doubts = [_stray(word, found.values[k], level) for word, k, level in ends if found.measured[k] in found.off]
    return float(f"{found.values[-1] / found.values[at]:.5g}"), "; ".join(doubts)


def _stray(word: str, value: float, level: Level) -> str:
    ratio = value / level.value if level.value else math.inf
    return f"{word} is {format_change(ratio)} off its level"


def _spark(found: Levelled, threshold: float) -> str:
    """A letter a step from the first level to the latest value: where the median of the step lies between the lowest and the
    highest one. The span is at least as wide as the threshold, so that noise looks like noise."""
    series, first = found.series, found.levels[0].first
    long = found.latest + 1 - first
    steps = min(SPARK_STEPS, long)
    ends = [first + round(index * long / steps) for index in range(1, steps + 1)]
    groups: list[list[float]] = [[] for _ in ends]
    for at, measured in zip(found.measured, found.values, strict=True):
        groups[bisect_right(ends, at)].append(measured)
    medians = [median(group) if group else None for group in groups]
    missing = ["-"] * steps
    for at, kind in zip(series.at, series.failures, strict=True):
        if kind and first <= at <= found.latest:
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
