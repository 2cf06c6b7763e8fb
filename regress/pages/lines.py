"""One Series as a chart draws it: values with their intervals, levels between changes, and where something was different.

Two rounds say little about their spread: their interval is as wide as they happen to lie apart. If a commit has fewer than OWN
rounds, the spread is pooled over the whole series: that of rounds around the mean of their commit. The interval of a corrected
value comes from its pairs.
"""

from __future__ import annotations

import itertools
import math
import statistics
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from regress.compare.rule import Rule
from regress.model import ChangePoint, Corrected, Series, Verdict
from regress.pages import Change, Level, Line, RowValues
from regress.stats.summary import critical_t, mean_and_variance, median, summarize
from regress.trends.gating import that_gate

KEPT_ROUNDS = 100_000
"""Round values that a benchmark keeps for its page; of older rounds only their number is kept."""
OFF = 4.0
"""Standard deviations of noise between a value and its level, beyond which the value is off its level."""
DIGITS = 5
"""Least number of digits of a value."""
MOST_DIGITS = 15
"""Digits of a float."""
_WORDS = {"gpu_uuid": "device", "power_limit_w": "power limit (W)", "clock_limit_hz": "clock limit (Hz)"}
_HIDDEN = frozenset({"version", "unit"})


@dataclass(frozen=True)
class Levelled:
    """A Series with its change points and what follows from both; indices are those of its commits."""

    series: Series
    changes: tuple[ChangePoint, ...]
    at: Mapping[str, int]
    measured: tuple[int, ...]
    """The commits with a value."""
    values: tuple[float, ...]
    """Their values, corrected for the machine if known."""
    levels: tuple[Level, ...]
    noise: float | None
    off: tuple[int, ...]
    """The commits whose value is off its level by more than noise and the threshold."""
    speaks: frozenset[str] | None = None
    """The commits at which a change counts for its case: None for all, empty for none."""

    @property
    def gates(self) -> bool:
        """Whether it can fail a check of its case, or could at some commit."""
        return self.speaks is None or bool(self.speaks)

    def gates_at(self, change: ChangePoint) -> bool:
        return bool(that_gate([change], self.speaks))

    @property
    def latest(self) -> int:
        return self.measured[-1]

    def level_at(self, index: int) -> Level | None:
        """The level of the series at a commit: the last one that has begun."""
        return next((level for level in reversed(self.levels) if level.first <= index), None)


def levelled(
    series: Series,
    changes: Sequence[ChangePoint],
    at: Mapping[str, int],
    rule: Rule,
    speaks: frozenset[str] | None = None,
) -> Levelled:
    levels: list[Level] = []
    inside: list[dict[int, float]] = []
    for number, (way, own) in enumerate(series.by_way.items()):
        places = [series.at[index] for index in own]
        values = [value for index in own if (value := series.curve[index]) is not None]
        starts = [bisect_left(places, at[point.first]) for point in changes if point.way == way]
        for low, high in itertools.pairwise([0, *starts, len(own)]):
            inside.append(dict(zip(places[low:high], values[low:high], strict=True)))
            levels.append(Level(places[low], places[high - 1], rounded(median([*inside[-1].values()]), 6), number))
    noise = _noise(series, levels, [[*values.values()] for values in inside])
    off = _off(levels, inside, math.log1p(rule.threshold), noise or 0.0)
    levels.sort(key=lambda level: level.first)
    judged = tuple(
        level._replace(against="".join(_against(level, other, rule) for other in levels[:index]))
        for index, level in enumerate(levels)
    )
    valued = [(place, value) for place, value in zip(series.at, series.curve, strict=True) if value is not None]
    measured, present = zip(*valued, strict=True)
    return Levelled(series, tuple(changes), at, measured, present, judged, noise, off, speaks)


def _against(level: Level, before: Level, rule: Rule) -> str:
    """The first letter of the verdict on a level against an earlier one; "x" if they were measured in different ways."""
    if level.way != before.way:
        return "x"
    if level.value > 0 and before.value > 0:
        ratio, between = level.value / before.value, math.sqrt(level.value) * math.sqrt(before.value)
        verdict, _ = rule.decide(ratio, ratio, ratio, significant=True, level=between, spread=0.0)
    else:
        verdict, _ = rule.decide_without_ratio([before.value], [level.value], exact=True)
    if verdict is Verdict.INCOMPARABLE:
        return "x"
    return str(verdict)[0] if verdict.traits.claims else "u"


def _noise(series: Series, levels: Sequence[Level], inside: Sequence[Sequence[float]]) -> float | None:
    """Spread of the values around their levels, from the median distance; None if no level has two values."""
    apart: list[float] = []
    for level, values in zip(levels, inside, strict=True):
        if len(values) > 1 and level.value > 0:
            apart += [abs(math.log(value / level.value)) for value in values if value > 0]
    if not apart:
        return 0.0 if series.metric.exact else None
    return rounded(1.4826 * statistics.median(apart), 3)


def _off(levels: Sequence[Level], inside: Sequence[Mapping[int, float]], least: float, noise: float) -> tuple[int, ...]:
    """The commits whose values are off their levels by more than `least` and noise."""
    border = max(least, OFF * noise)
    return tuple(
        sorted(
            at
            for level, values in zip(levels, inside, strict=True)
            for at, value in values.items()
            if (value > 0) != (level.value > 0) or (value > 0 and abs(math.log(value / level.value)) > border)
        )
    )


# -- as data of a page ---------------------------------------------------------------------------------------------------


def line_of(curve: Levelled, place: str, threshold: float, kept: int) -> Line:
    """The Line, with the round values of the last `kept` commits; indices are those of the series, see `leaves`."""
    series, measured = curve.series, curve.measured
    spans, rounds = spans_of(series), [of_commit for of_commit in series.curve_rounds if of_commit]
    read = tuple(value for value in series.values if value is not None) if series.corrected else ()
    measured_on = [", ".join(series.cards.get(place, ())) for place in measured]
    cards = {words: number for number, words in enumerate(dict.fromkeys(measured_on))}
    per = _per(curve.values, spans)
    values = [round(value * per) for value in curve.values]
    unkept = max(0, len(rounds) - kept)
    shown = [
        _rounds(of_commit, value, per, index >= unkept)
        for index, (of_commit, value) in enumerate(zip(rounds, values, strict=True))
    ]
    return Line(
        params=series.case.params,
        metric=series.metric.name,
        unit=series.metric.unit,
        better=series.metric.better,
        exact=series.metric.exact,
        primary=series.primary,
        place=place,
        threshold=threshold,
        noise=curve.noise,
        at=measured,
        per=per,
        values=tuple(values),
        lows=tuple(value - round(low * per) for value, (low, _) in zip(values, spans, strict=True)),
        highs=tuple(round(high * per) - value for value, (_, high) in zip(values, spans, strict=True)),
        rounds=shown[0] if isinstance(shown[0], int) and len(set(shown)) == 1 else tuple(shown),
        levels=curve.levels,
        changes=tuple(change_of(point, curve.at) for point in curve.changes),
        failures=_failures(series),
        ticks=tuple(_ticks(series)),
        read=tuple(round(value * per) for value in read),
        cards=tuple(cards),
        card=tuple(map(cards.__getitem__, measured_on)) if len(cards) > 1 else (),
    )


def measured_of(curve: Levelled, column: int) -> RowValues:
    """The values of the series as a row has them."""
    per = _per(curve.values, ())
    return RowValues(column, per, tuple(round(value * per) for value in curve.values))


def change_of(point: ChangePoint, at: Mapping[str, int]) -> Change:
    ratios = [None if ratio is None else rounded(ratio, 5) for ratio in (point.ratio, point.low, point.high)]
    return Change(
        first=at[point.first],
        good=at[point.good],
        last=at[point.blamed[-1]],
        ratio=ratios[0],
        low=ratios[1],
        high=ratios[2],
        before=rounded(point.before, 6),
        after=rounded(point.after, 6),
        moved=str(point.moved),
        state="recovered" if point.recovered_by else "acknowledged" if point.acknowledged else point.state,
        large=point.large,
        reasons=point.reasons,
    )


def _per(values: Sequence[float], spans: Sequence[Span]) -> int:
    """See Line.per: such that the smallest value keeps DIGITS digits; whole numbers stay as they are."""
    if all(value == int(value) for value in itertools.chain(values, *spans)):
        return 1
    sizes = [abs(value) for value in values if value] or [1.0]
    digits = min(DIGITS - 1 - math.floor(math.log10(min(sizes))), MOST_DIGITS - math.floor(math.log10(max(sizes))))
    return int(10 ** min(max(0, digits), MOST_DIGITS))


def _rounds(rounds: tuple[float, ...], value: int, per: int, detailed: bool) -> tuple[int, ...] | int:
    if len(rounds) == 1 or not detailed or len(set(rounds)) == 1:
        return len(rounds)
    return tuple(round(of_round * per) - value for of_round in rounds)


def _failures(series: Series) -> dict[str, tuple[int, ...]]:
    kinds = dict.fromkeys(filter(None, series.failures))
    every = [*zip(series.at, series.failures, strict=True)] if kinds else []
    return {kind: tuple(place for place, failure in every if failure == kind) for kind in kinds}


def _ticks(series: Series) -> list[tuple[int, str]]:
    """The commits since which it is measured differently, and how, in words."""
    if len(series.by_way) < 2:
        return []
    ticks = []
    measured = [(at, way) for at, way, rounds in zip(series.at, series.ways, series.rounds, strict=True) if rounds]
    for (_, before), (at, after) in itertools.pairwise(measured):
        if before != after:
            ticks.append((at, _difference(dict(before), dict(after))))
    return ticks


def _difference(before: Mapping[str, str], after: Mapping[str, str]) -> str:
    words = [
        f"{_WORDS.get(name, name)} {before.get(name, '-')} → {after.get(name, '-')}"
        for name in dict.fromkeys([*before, *after])
        if name not in _HIDDEN and before.get(name) != after.get(name)
    ]
    if before.get("version") != after.get("version"):
        words.insert(0, "the benchmark was changed")
    return ", ".join(words) or "measured differently"


def rounded(value: float, digits: int) -> float:
    """The value with this many digits, which is all a page needs; whole numbers (bytes, counts) as they are."""
    return float(f"{value:.{digits}g}") if math.isfinite(value) and value != int(value) else value


OWN = 4
"""Rounds that suffice for an interval of their own."""
LEAST_DF = 4
"""Least degrees of freedom of a pooled spread."""
ALPHA = 0.05
NORMAL = 1.96
"""Standard errors from the value to either end of that interval, if the error is known."""

Span = tuple[float, float]


def spans_of(series: Series) -> list[Span]:
    """Ends of the 95 % interval of each value; if unknown, the smallest and the largest round."""
    pooled, corrected = _pooled(series), series.corrected
    return [
        _span_of(corrected[at]) if at in corrected else _span(rounds, interval, pooled)
        for at, rounds, interval in zip(series.at, series.rounds, series.intervals, strict=True)
        if rounds
    ]


def _span_of(corrected: Corrected) -> Span:
    reach = math.exp(NORMAL * corrected.error)
    return corrected.value / reach, corrected.value * reach


def _pooled(series: Series) -> float | None:
    """Half the interval of one round, in logarithms; None if too few commits have several rounds."""
    squares, df = 0.0, 0
    for rounds in series.rounds:
        if len(rounds) > 1 and min(rounds) > 0:
            _, variance = mean_and_variance([math.log(value) for value in rounds])
            squares, df = squares + variance * (len(rounds) - 1), df + len(rounds) - 1
    return critical_t(df, ALPHA) * math.sqrt(squares / df) if df >= LEAST_DF else None


def _span(rounds: Sequence[float], recorded: Span | None, pooled: float | None) -> Span:
    if recorded is not None:  # by asv, which keeps no rounds
        return recorded
    low, high = min(rounds), max(rounds)
    if len(rounds) >= OWN:
        summary = summarize(rounds)
        low, high = summary.low, summary.high
    elif pooled is not None and low > 0:
        center, _ = mean_and_variance([math.log(value) for value in rounds])
        half = pooled / math.sqrt(len(rounds))
        low, high = math.exp(center - half), math.exp(center + half)
    return (low, high) if math.isfinite(low) and math.isfinite(high) else (min(rounds), max(rounds))
