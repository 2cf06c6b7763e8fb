"""One Series as a chart draws it: values with their intervals, levels between changes, and where something was different."""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from regress.commands.report.spans import spans_of
from regress.compare.gating import that_gate
from regress.compare.rule import CLAIMS, Rule
from regress.model import ChangePoint, Series
from regress.pages import Change, Level, Line
from regress.stats.summary import summarize

KEPT_ROUNDS = 100_000
"""Round values that a benchmark keeps for its page; of what is beyond, only how many there were."""
_WORDS = {"gpu_uuid": "device"}
_HIDDEN = frozenset({"version", "unit"})


@dataclass(frozen=True)
class Levelled:
    """A Series with its change points and what follows from both; indices are those of its commits."""

    series: Series
    changes: tuple[ChangePoint, ...]
    at: Mapping[str, int]
    values: tuple[float | None, ...]
    levels: tuple[Level, ...]
    noise: float | None
    speaks: frozenset[str] | None = None
    """The commits at which a change of it is one of its case: None for all, empty for none."""

    @property
    def gates(self) -> bool:
        """Whether a check of the case would fail for it, or would have at some commit."""
        return self.speaks is None or bool(self.speaks)

    def gates_at(self, change: ChangePoint) -> bool:
        return bool(that_gate([change], self.speaks))

    @cached_property
    def measured(self) -> list[int]:
        return [index for index, value in enumerate(self.values) if value is not None]

    @property
    def latest(self) -> int:
        return self.measured[-1]

    def level_at(self, index: int) -> Level | None:
        """The level that the series is on at a commit: of those that have begun, the one that began last."""
        begun = [each for each in self.levels if each.first <= index]
        return max(begun, key=lambda each: each.first) if begun else None


def levelled(
    series: Series,
    changes: Sequence[ChangePoint],
    at: Mapping[str, int],
    rule: Rule,
    speaks: frozenset[str] | None = None,
) -> Levelled:
    values = tuple(statistics.median(each) if each else None for each in series.rounds)
    ways = list(dict.fromkeys(way for way, each in zip(series.ways, series.rounds, strict=True) if each))
    levels = []
    for number, way in enumerate(ways):
        own = [index for index, other in enumerate(series.ways) if other == way and values[index] is not None]
        starts = [at[each.first] for each in changes if each.way == way]
        for low, high in itertools.pairwise([0, *starts, len(values)]):
            inside = [index for index in own if low <= index < high]
            if inside:
                middle = statistics.median([values[index] or 0.0 for index in inside])
                levels.append(Level(inside[0], inside[-1], _digits(middle, 6), number))
    levels.sort(key=lambda each: each.first)
    judged = [
        each._replace(against="".join(_against(each, other, rule) for other in levels[:index]))
        for index, each in enumerate(levels)
    ]
    return Levelled(series, tuple(changes), at, values, tuple(judged), _noise(series, values, levels), speaks)


def _against(level: Level, before: Level, rule: Rule) -> str:
    """The first letter of the verdict on a level against another; "x" where the two were measured in unlike ways."""
    if level.way != before.way:
        return "x"
    if level.value > 0 and before.value > 0:
        ratio, between = level.value / before.value, math.sqrt(level.value) * math.sqrt(before.value)
        verdict, _ = rule.decide(ratio, ratio, ratio, significant=True, level=between, spread=0.0)
    else:
        verdict, _ = rule.decide_zero(summarize([before.value]), summarize([level.value]), exact=True)
    return str(verdict)[0] if verdict in CLAIMS else "u"


def _noise(series: Series, values: Sequence[float | None], levels: Sequence[Level]) -> float | None:
    """Spread of the values around their level, from the median of the distances; None where one value is all there is."""
    apart = []
    for level in levels:
        inside = [value for value in values[level.first : level.last + 1] if value is not None]
        if len(inside) > 1 and level.value > 0:
            apart += [abs(math.log(value / level.value)) for value in inside if value > 0]
    if not apart:
        return 0.0 if series.metric.exact else None
    return _digits(1.4826 * statistics.median(apart), 3)


# -- as data of a page ---------------------------------------------------------------------------------------------------


def line_of(found: Levelled, place: str, threshold: float, kept: int) -> Line:
    """The Line, with the round values of the last `kept` commits; indices are those of the series, see `leaves`."""
    series, measured = found.series, found.measured
    spans = spans_of(series, measured)
    detailed = set(measured[-kept:] if kept else ())
    return Line(
        params=series.case.params,
        metric=series.metric.name,
        unit=series.metric.unit,
        better=series.metric.better,
        exact=series.metric.exact,
        primary=series.primary,
        place=place,
        threshold=threshold,
        noise=found.noise,
        at=tuple(measured),
        values=tuple(_digits(found.values[index] or 0.0, 5) for index in measured),
        lows=tuple(_digits(low, 5) for low, _ in spans),
        highs=tuple(_digits(high, 5) for _, high in spans),
        rounds=tuple(_rounds(series.rounds[index], index in detailed) for index in measured),
        levels=found.levels,
        changes=tuple(change_of(each, found.at) for each in found.changes),
        failures=tuple((index, kind) for index, kind in enumerate(series.failures) if kind),
        ticks=tuple(_ticks(series)),
    )


def change_of(each: ChangePoint, at: Mapping[str, int]) -> Change:
    ratios = [None if ratio is None else _digits(ratio, 5) for ratio in (each.ratio, each.low, each.high)]
    return Change(
        first=at[each.first],
        good=at[each.good],
        last=at[each.blamed[-1]],
        ratio=ratios[0],
        low=ratios[1],
        high=ratios[2],
        before=_digits(each.before, 6),
        after=_digits(each.after, 6),
        moved=str(each.moved),
        state="recovered" if each.recovered_by else "acknowledged" if each.acknowledged else each.state,
        large=each.large,
    )


def _rounds(rounds: tuple[float, ...], detailed: bool) -> tuple[float, ...] | int:
    if not detailed or len(set(rounds)) < 2:
        return len(rounds)
    return tuple(_digits(each, 5) for each in rounds)


def _ticks(series: Series) -> list[tuple[int, str]]:
    """Where it began to be measured in another way, in words."""
    found = []
    measured = [index for index, each in enumerate(series.rounds) if each]
    for before, after in itertools.pairwise(measured):
        if series.ways[before] != series.ways[after]:
            found.append((after, _difference(dict(series.ways[before]), dict(series.ways[after]))))
    return found


def _difference(before: Mapping[str, str], after: Mapping[str, str]) -> str:
    words = [
        f"{_WORDS.get(name, name)} {before.get(name, '-')} → {after.get(name, '-')}"
        for name in dict.fromkeys([*before, *after])
        if name not in _HIDDEN and before.get(name) != after.get(name)
    ]
    if before.get("version") != after.get("version"):
        words.insert(0, "the benchmark was changed")
    return ", ".join(words) or "measured in another way"


def _digits(value: float, digits: int) -> float:
    """The value to so many digits, as a page needs no more; whole numbers (bytes, counts) as they are."""
    return float(f"{value:.{digits}g}") if math.isfinite(value) and value != int(value) else value
