"""What one result says of a case: a point of each of its series, with what the points of a metric have in common."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import compress, repeat
from typing import Any, NamedTuple

from regress.compare.draft import DEVICE_METRICS
from regress.compare.evidence import Evidence
from regress.compare.rule import declared_threshold
from regress.history import NUMBERS, AsvTable, interval_of, is_number
from regress.model import (
    DECLARED_SAMPLING,
    FRAMEWORKS,
    HOST_IDENTITY,
    HOST_METRICS,
    PROTOCOL_IDENTITY,
    Benchmark,
    Better,
    Metric,
    Protocol,
    Round,
    Way,
    may_be_negative,
    metric_of,
)
from regress.trends.cards import Reading, readings_of

SPLITTING = ("driver", "power_limit_w", "clock_limit_hz", "cuda", *FRAMEWORKS)
"""Facts of a process that levels are not compared across."""


class About(NamedTuple):
    """What the points of a metric in one result share."""

    metric: Metric
    way: Way
    primary: bool
    threshold: float | None


Point = tuple[About, tuple[float, ...], tuple[float, float] | None, str]
"""One commit in one series: what it is about, its values and asv's interval, or the kind of failure that left none. A plain
tuple, as there are millions."""


def on_device(evidence: Evidence, benchmark: Benchmark | None) -> bool:
    return own_metric(evidence.good, benchmark) in DEVICE_METRICS or (benchmark is not None and benchmark.needs_device)


def asv_points(
    about: About, places: Sequence[int], results: Sequence[Any], lows: Sequence[Any], highs: Sequence[Any]
) -> dict[int, Point]:
    """The points of one case by place; a number that cannot be a measurement counts as a failure."""
    least = -sys.float_info.max if may_be_negative(about.metric.name) else 0
    good = [type(value) in NUMBERS and least <= value < math.inf for value in results]
    cells = zip(repeat(about), zip(results), map(interval_of, lows, highs), repeat(""))
    points: dict[int, Point] = dict(compress(zip(places, cells, strict=True), good))
    if not all(good):
        bad = (place for place, value, fine in zip(places, results, good, strict=True) if not fine and is_number(value))
        points.update((place, (about, (), None, "error")) for place in bad)
    return points


def table_about(table: AsvTable, metric: str, better: Better | None) -> About:
    way, primary = way_of(table.protocol, {}, table.benchmark), metric == table.benchmark.metric
    return _about(metric, table.columns[metric].unit, way, table.benchmark, better, primary=primary)


def points_of(
    place: int, evidence: Evidence, way: Way, benchmark: Benchmark | None, better: Better | None
) -> Iterator[tuple[Point, tuple[str, ...], list[Reading]]]:
    """By metric, with the run that each value is of, and which card has read which of them."""
    own = own_metric(evidence.good, benchmark)
    for name in sorted(evidence.metrics()):
        values = evidence.values_of(name, every_round=name == own)
        if values is None or len(values.units) != 1:
            continue
        (unit,) = values.units
        own_way = _as_metric(name, way)
        about = _about(name, unit, own_way, benchmark, better, primary=name == own, exact=values.exact)
        if values.failure is None:
            yield (about, values.values, None, ""), values.runs, readings_of(place, about.way, values)
        else:
            yield (about, (), None, values.failure.kind), (), []


def _about(
    name: str,
    unit: str,
    way: Way,
    benchmark: Benchmark | None,
    better: Better | None,
    *,
    primary: bool,
    exact: bool = False,
) -> About:
    metric = metric_of(name, unit, better)
    threshold = declared_threshold(benchmark)[0] if primary else None
    return About(replace(metric, exact=exact), (*way, ("unit", unit)), primary, threshold)


def own_metric(rounds: Sequence[Round], benchmark: Benchmark | None) -> str:
    """The metric the case is about."""
    protocols = [round.protocol for round in rounds if round.protocol is not None]
    return protocols[-1].metric if protocols else benchmark.metric if benchmark is not None else ""


def failed_metric(name: str, benchmark: Benchmark | None, better: Better | None) -> Metric | None:
    """The metric of that name, where nothing was measured that would tell its unit."""
    return metric_of(name, benchmark.unit if benchmark is not None else "", better) if name else None


def _as_metric(name: str, way: Way) -> Way:
    """What of a way bears on the metric."""
    return way if name in HOST_METRICS else tuple(part for part in way if part[0] not in HOST_IDENTITY)


def way_of(
    protocol: Protocol | None, facts: Mapping[str, Any], benchmark: Benchmark | None, further: Sequence[str] = ()
) -> Way:
    """What is known of how something was measured. The fields `further` count only if set: levels from before they existed
    stay whole."""
    known: dict[str, object] = {}
    if benchmark is not None:
        known["version"] = benchmark.version
        known.update((name, benchmark.declared[name]) for name in DECLARED_SAMPLING if name in benchmark.declared)
    if protocol is not None:
        known.update((name, getattr(protocol, name)) for name in PROTOCOL_IDENTITY)
        known.update((name, value) for name in further if (value := getattr(protocol, name)))
    known.update((name, facts[name]) for name in SPLITTING if name in facts)
    return tuple((name, str(value)) for name, value in known.items())
