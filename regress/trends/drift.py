"""Drift: what the steps since a release add up to, by the newest results of each series against those of the release.

If the release was measured again beside a newer commit, those two are compared: no change of machine, driver or framework
affects that. Otherwise the recorded results of both are compared, if they were measured alike: up to WINDOW commits at each
end, because one commit has few rounds, but none beyond a change point. Rounds of one session are not independent, see
`evidence`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from regress.compare.draft import ALSO_GATING
from regress.compare.evidence import Draws, draws_of
from regress.model import Anchor, Comparison, Series, Settings, Verdict
from regress.stats.summary import summarize
from regress.stats.ttests import Welch, welch
from regress.trends.anchors import Again, Key, anchors_of, key_of
from regress.trends.changes import changes_of, series_rule
from regress.trends.gating import gating

WINDOW = 3
"""Most commits at each end of recorded results: as many as a step of a history needs."""


def drifts(
    every: Sequence[Series], release: str, again: Mapping[Key, Sequence[Again]], settings: Settings
) -> tuple[list[Comparison], int]:
    """The drift of each series of a benchmark that gates, and for how many it is unknown.

    `release` is a full hash among the commits of the series, whose last commit is the one that is judged; its newest result,
    or the nearest before it, speaks. `again` is what was measured again of the benchmark.
    """
    comparisons: list[Comparison] = []
    unknown = 0
    for series in every:
        if gating(series, every) is not None or not any(series.rounds):
            continue
        drifted = _measured_again(series, release, again, settings) or _recorded(series, release, settings)
        if drifted is None:
            unknown += 1
        else:
            comparisons.append(drifted)
    return comparisons, unknown


def _measured_again(
    series: Series, release: str, again: Mapping[Key, Sequence[Again]], settings: Settings
) -> Comparison | None:
    """By the newest of the commits that the release was measured again beside."""
    place = {sha: index for index, sha in _results(series)}
    own = [
        anchor
        for anchor in anchors_of(series, again.get(key_of(series), ()))
        if anchor.commit == release and anchor.now and place.get(anchor.beside, -1) > place[release]
    ]
    if not own:
        return None
    newest = max(own, key=lambda anchor: place[anchor.beside])
    comparison = drift(series, newest, settings)
    return replace(comparison, reasons=(*comparison.reasons, f"measured again beside {newest.beside[:8]}"))


def _recorded(series: Series, release: str, settings: Settings) -> Comparison | None:
    """By what was recorded; None where the release has no result, nothing newer has, or they were not measured alike."""
    start = series.commits.index(release)
    measured = [index for index, rounds in enumerate(series.rounds) if rounds]
    first = next((index for index in measured if series.at[index] == start), None)
    last = max((index for own in series.by_way.values() for index in own), default=None)
    if first is None or last is None or first >= last or series.ways[first] != series.ways[last]:
        return None
    steps = {series.commits.index(point.first) for point in changes_of(series, settings)}
    base, head = (_level(series, end, steps) for end in (first, last))
    head = [index for index in head if index > first]
    comparison = _judged(series, _taken(series, base), _taken(series, head), settings)
    words = " and ".join(f"{len(end)} commit{'s' * (len(end) > 1)}" for end in (base, head))
    return replace(comparison, reasons=(*comparison.reasons, f"as recorded of {words}"))


def _level(series: Series, end: int, steps: set[int]) -> list[int]:
    """The item of the columns at `end` and those before it in the line that are at its level, but for a step that is too small
    to be found. What lies beside the line follows nothing."""
    own = [end]
    if series.at[end] in series.beside:
        return own
    before = [index for index in series.by_way[series.ways[end]] if index < end]
    while before and len(own) < WINDOW and series.at[own[-1]] not in steps:
        own.append(before.pop())
    return own


class Rounds(NamedTuple):
    """Round values, and the session of each."""

    values: tuple[float, ...]
    runs: tuple[str, ...]


def _taken(series: Series, own: Sequence[int]) -> Rounds:
    """The rounds of these items of the columns."""
    taken = [
        (value, run)
        for index in own
        for value, run in zip(series.curve_rounds[index], _runs(series, index), strict=True)
    ]
    return Rounds(*zip(*taken, strict=True))


def _runs(series: Series, index: int) -> tuple[str, ...]:
    return series.runs.get(series.at[index], ("",) * len(series.rounds[index]))


def drift(series: Series, anchor: Anchor, settings: Settings) -> Comparison:
    """The commit that the anchor was measured again beside, against the anchor: what all steps since have added up to.

    The rule is that of a check; p is not adjusted. Raises ValueError where that commit has no result.
    """
    head = next((index for index, sha in _results(series) if sha == anchor.beside), None)
    if not anchor.now or head is None:
        raise ValueError(f"no results of {anchor.beside} or of its anchor")
    base = Rounds(anchor.now, anchor.runs or ("",) * len(anchor.now))
    return _judged(series, base, _taken(series, [head]), settings)


def _results(series: Series) -> Iterator[tuple[int, str]]:
    """The items of the columns with values, and the commits that they are of."""
    return ((index, series.commits[at]) for index, at in enumerate(series.at) if series.rounds[index])


def _judged(series: Series, base: Rounds, head: Rounds, settings: Settings) -> Comparison:
    """The verdict on these rounds, by the rule of a check."""
    rule = series_rule(series, settings)
    exact = series.metric.exact and len(set(base.values)) == len(set(head.values)) == 1
    draws = Draws(base.values, head.values) if exact else draws_of(base, head)
    sides = summarize(draws.base, settings.confidence), summarize(draws.head, settings.confidence)
    comparison = Comparison(
        series.case,
        series.metric,
        Verdict.UNDECIDED,
        base=sides[0],
        head=sides[1],
        gates=series.primary or series.metric.name in ALSO_GATING,
        threshold=rule.threshold,
        exact=exact,
        sessions=draws.sessions,
    )
    if min(*draws.base, *draws.head) <= 0:
        verdict, reason = rule.decide_without_ratio(draws.base, draws.head, exact=exact, confidence=settings.confidence)
        return _settled(comparison, verdict, reason, draws.note)
    if exact:
        ratio = draws.head[0] / draws.base[0]
        test = Welch(ratio, ratio, ratio)
    else:
        test = welch(draws.base, draws.head, settings.confidence)
    if test.low is None or test.high is None:
        return _settled(replace(comparison, ratio=test.ratio), Verdict.UNDECIDED, "n = 1", draws.note)
    verdict, reason = rule.decide(
        test.ratio,
        test.low,
        test.high,
        significant=exact or (test.p is not None and test.p < settings.alpha),
        level=math.sqrt(sides[0].center) * math.sqrt(sides[1].center),
        spread=max(side.spread for side in sides),
    )
    done = replace(comparison, p=test.p, ratio=test.ratio, low=test.low, high=test.high)
    return _settled(done, verdict, reason, draws.note)


def _settled(comparison: Comparison, verdict: Verdict, *reasons: str) -> Comparison:
    """With its verdict, which is no claim where a side is of one session of its own."""
    doubted = comparison.alone and verdict.traits.claims
    return replace(
        comparison,
        verdict=Verdict.UNDECIDED if doubted else verdict,
        unconfirmed=doubted and verdict is Verdict.REGRESSED,
        reasons=tuple(filter(None, reasons)),
    )
