"""What the steps since a release add up to: the newest results of each series against those of the release.

Where the release was measured again beside a newer commit, those two are compared, which no change of machine, driver or
framework disturbs. Else it is what was recorded of both, if that was measured alike; a few commits at each end then, as the
rounds of one are few, but none from beyond a change point.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain

from regress.compare.draft import ALSO_GATING
from regress.model import Anchor, Comparison, Series, Settings, Verdict
from regress.stats.summary import summarize
from regress.stats.welch import Welch, welch
from regress.trends.anchors import Again, Key, anchors_of, key_of
from regress.trends.changes import changes_of, series_rule
from regress.trends.gating import gating

WINDOW = 3
"""At most this many commits at each end, where both are as recorded: as many as a step of a history has."""


def drifts(
    every: Sequence[Series], release: str, again: Mapping[Key, Sequence[Again]], settings: Settings
) -> tuple[list[Comparison], int]:
    """The drift of each series of a benchmark that gates, and of how many nobody can tell it.

    `release` is a full hash among the commits of the series, whose last commit is the one that is judged; its newest result,
    or the nearest before it, speaks. `again` is what was measured again of the benchmark.
    """
    found: list[Comparison] = []
    unknown = 0
    for series in every:
        if gating(series, every) is not None or not any(series.rounds):
            continue
        drifted = _measured_again(series, release, again, settings) or _recorded(series, release, settings)
        if drifted is None:
            unknown += 1
        else:
            found.append(drifted)
    return found, unknown


def _measured_again(
    series: Series, release: str, again: Mapping[Key, Sequence[Again]], settings: Settings
) -> Comparison | None:
    """By the newest of the commits that the release was measured again beside."""
    place = {sha: at for at, (sha, _) in enumerate(_results(series))}
    own = [
        each
        for each in anchors_of(series, again.get(key_of(series), ()))
        if each.commit == release and each.now and place.get(each.beside, -1) > place[release]
    ]
    if not own:
        return None
    newest = max(own, key=lambda each: place[each.beside])
    found = drift(series, newest, settings)
    return replace(found, reasons=(*found.reasons, f"measured again beside {newest.beside[:8]}"))


def _recorded(series: Series, release: str, settings: Settings) -> Comparison | None:
    """By what was recorded; None where the release has no result, nothing newer has, or they were not measured alike."""
    start = series.commits.index(release)
    measured = [index for index, rounds in enumerate(series.rounds) if rounds]
    last = measured[-1]
    first = next((index for index in measured if series.at[index] == start), None)
    if first is None or first == last or series.ways[first] != series.ways[last]:
        return None
    alike = series.by_way[series.ways[last]]
    steps = {series.commits.index(each.first) for each in changes_of(series, settings)}
    base, head = (_level(series, alike, end, steps) for end in (first, last))
    head = [each for each in head if each > first]
    before, after = (tuple(chain.from_iterable(series.curve_rounds[each] for each in end)) for end in (base, head))
    found = _judged(series, before, after, settings)
    words = " and ".join(f"{len(end)} commit{'s' * (len(end) > 1)}" for end in (base, head))
    return replace(found, reasons=(*found.reasons, f"as recorded of {words}"))


def _level(series: Series, alike: Sequence[int], end: int, steps: set[int]) -> list[int]:
    """The item of the columns at `end` and those before it that are at its level, but for a step that is too small to be
    found."""
    own: list[int] = []
    for index in reversed([each for each in alike if each <= end]):
        own.append(index)
        if len(own) == WINDOW or series.at[index] in steps:
            break
    return own


def drift(series: Series, anchor: Anchor, settings: Settings) -> Comparison:
    """The commit that the anchor was measured again beside, against the anchor: what all steps since have added up to.

    The rule is that of a check; p is not adjusted. Raises ValueError where that commit has no result.
    """
    head = next((rounds for sha, rounds in _results(series) if sha == anchor.beside), ())
    if not anchor.now or not head:
        raise ValueError(f"no results of {anchor.beside} or of its anchor")
    return _judged(series, anchor.now, head, settings)


def _results(series: Series) -> Iterator[tuple[str, tuple[float, ...]]]:
    """The commits with values, and these."""
    return ((series.commits[at], rounds) for at, rounds in zip(series.at, series.rounds, strict=True) if rounds)


def _judged(series: Series, base: Sequence[float], head: Sequence[float], settings: Settings) -> Comparison:
    """The verdict on these round values, by the rule of a check."""
    rule = series_rule(series, settings)
    sides = summarize(base, settings.confidence), summarize(head, settings.confidence)
    comparison = Comparison(
        series.case,
        series.metric,
        Verdict.UNDECIDED,
        base=sides[0],
        head=sides[1],
        gates=series.primary or series.metric.name in ALSO_GATING,
        threshold=rule.threshold,
    )
    exact = series.metric.exact and len(set(base)) == len(set(head)) == 1
    if min(*base, *head) <= 0:
        verdict, reason = rule.decide_zero(*sides, exact=exact)
        return replace(comparison, verdict=verdict, reasons=tuple(filter(None, [reason])), exact=exact)
    if exact:
        ratio = head[0] / base[0]
        found = Welch(ratio, ratio, ratio)
    else:
        found = welch(base, head, settings.confidence)
    if found.low is None or found.high is None:
        return replace(comparison, reasons=("n = 1",), ratio=found.ratio)
    verdict, reason = rule.decide(
        found.ratio,
        found.low,
        found.high,
        significant=exact or (found.p is not None and found.p < settings.alpha),
        level=math.sqrt(sides[0].center) * math.sqrt(sides[1].center),
        spread=max(side.spread for side in sides),
    )
    reasons = tuple(filter(None, [reason]))
    done = replace(comparison, verdict=verdict, reasons=reasons, p=found.p, exact=exact)
    return replace(done, ratio=found.ratio, low=found.low, high=found.high)
