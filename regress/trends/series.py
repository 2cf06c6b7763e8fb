"""Recorded rounds of many commits to Series: one for each case and metric on one machine, kind of device and environment."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import compress, repeat
from typing import Any, NamedTuple

from regress.compare.circumstances import conditions
from regress.compare.draft import DEVICE_METRICS
from regress.compare.evidence import Evidence
from regress.compare.rule import better_of, declared_threshold
from regress.history import NUMBERS, AsvTable, Recorded, interval_of, is_number
from regress.model import (
    DECLARED_SAMPLING,
    FRAMEWORKS,
    HOST_IDENTITY,
    HOST_METRICS,
    PROTOCOL_IDENTITY,
    Benchmark,
    Better,
    Case,
    Conditions,
    Corrected,
    Metric,
    Protocol,
    Round,
    Series,
    Settings,
    Way,
    metric_of,
)
from regress.stats.summary import median
from regress.trends.cards import Kind, Reading, cards_of, kind_of, readings_of
from regress.trends.correction import Link, corrected, links_of

SPLITTING = ("driver", "power_limit_w", "clock_limit_hz", "cuda", *FRAMEWORKS)
"""Facts of a process that levels are not compared across."""
FACTS = ("gpu", "gpu_uuid", "installed", "throttled", "sm_clock_hz", "foreign_processes", *SPLITTING)
"""Facts of a round that a series is made of, by which rounds of a commit are pooled, or that speak against a change."""


@dataclass(frozen=True, order=True)
class _Where:
    """What makes points one series, but for the metric."""

    machine: str
    environment: str
    device: str
    case: Case


class _About(NamedTuple):
    """What the points of a metric in one result share."""

    metric: Metric
    way: Way
    primary: bool
    threshold: float | None


_Point = tuple[_About, tuple[float, ...], tuple[float, float] | None, str]
"""One commit in one series: what it is about, its values and asv's interval, or the kind of failure that left none. A plain
tuple, as there are millions."""


@dataclass
class _Case:
    """The results of a case in one place: points by metric and commit, and at which commits all of it failed."""

    points: defaultdict[str, dict[int, _Point]] = field(default_factory=lambda: defaultdict(dict))
    failures: dict[int, str] = field(default_factory=dict)
    conditions: dict[int, Conditions] = field(default_factory=dict)
    runs: defaultdict[str, dict[int, tuple[str, ...]]] = field(default_factory=lambda: defaultdict(dict))
    """By metric and commit: which run of regress each value is of."""
    links: dict[str, list[Link]] = field(default_factory=dict)
    """By metric: what is known of its commits against others with which they took windows in turn."""
    readings: dict[str, list[Reading]] = field(default_factory=dict)
    """By metric: what each card has read, in whatever way."""
    about: tuple[int, Metric | None] = (-1, None)
    """What the case is about, as far as the last failed result tells, and at which commit that was."""

    def fail(self, place: int, kind: str, about: Metric | None) -> None:
        self.failures[place] = kind
        if about is not None and place >= self.about[0]:
            self.about = place, about


def series_of(history: Sequence[tuple[str, Sequence[Recorded]]], settings: Settings) -> tuple[Series, ...]:
    """All series of a history: commits with what is recorded of each, the oldest first, also those without results.

    Cards of one model are one device, see `cards`. Failed rounds and impossible values are sorted out as in a check;
    a commit with too few good ones has a failure instead of values, in every series of the case. Of a commit that was
    measured in two ways, the later one counts. A case that has always failed is one series, of what it is about.
    """
    recordings = [((place,), each) for place, (_, recorded) in enumerate(history) for each in recorded]
    return series_from(recordings, tuple(sha for sha, _ in history), settings)


def series_from(
    recordings: Iterable[tuple[Sequence[int], Recorded]],
    commits: tuple[str, ...],
    settings: Settings,
) -> tuple[Series, ...]:
    """The same of what is recorded with the places of its commits, of which a table of asv's may have many."""
    found = _Cases(settings)
    for places, each in recordings:
        if each.rounds:
            found.take_rounds(places[0], each)
        for table in each.asv:
            found.take_table(places, each, table)
    return tuple(
        _series(where, metric, points, failures, commits, case)
        for where, case in sorted(_attributed(found.cases).items())
        for metric, points, failures in _lines(case)
    )


class _Cases:
    """Sorts results into the cases they are of."""

    def __init__(self, settings: Settings) -> None:
        self.cases: dict[_Where, _Case] = {}
        self._settings = settings

    def take_rounds(self, place: int, recorded: Recorded) -> None:
        groups: dict[_Where, dict[Way, list[Round]]] = {}
        for each in recorded.rounds:
            case, device = Case(each.name, tuple(each.params)), str(each.facts.get("gpu", ""))
            ways = groups.setdefault(_Where(recorded.machine.name, recorded.environment, device, case), {})
            way = _way(each.protocol, each.facts, recorded.benchmarks.get(each.name), HOST_IDENTITY)
            ways[way] = [*ways.pop(way, []), each]  # the way measured last stands last
        for where, ways in groups.items():
            benchmark = recorded.benchmarks.get(where.case.name)
            for way, rounds in ways.items():
                last = way is next(reversed(ways))
                self._take_way(place, where, way, rounds, benchmark, last=last)

    def _take_way(
        self, place: int, where: _Where, way: Way, rounds: Sequence[Round], benchmark: Benchmark | None, *, last: bool
    ) -> None:
        """The rounds of a case that were measured in one way. What is not the last of its commit tells of cards alone."""
        evidence = Evidence.of("head", rounds, self._settings.good_rounds)
        better = better_of(where.case.name, benchmark, self._settings)
        case = self.cases.setdefault(where, _Case())
        if evidence.failure is None:
            if last and _on_device(evidence, benchmark):
                case.conditions[place] = conditions(evidence.good)
            for point, runs, readings in _points(place, evidence, way, benchmark, better):
                metric = point[0].metric.name
                case.readings.setdefault(metric, []).extend(readings)
                if last:
                    case.points[metric][place] = point
                    case.runs[metric][place] = runs
            for metric, links in links_of(place, evidence.good).items() if last else ():
                case.links.setdefault(metric, []).extend(links)
        elif last:
            case.fail(place, evidence.failure.kind, _failed_metric(_own(evidence.rounds, benchmark), benchmark, better))

    def take_table(self, places: Sequence[int], recorded: Recorded, table: AsvTable) -> None:
        """The same of what only asv recorded: there may be millions of cells, so nothing is made of a cell but its point."""
        wheres = [
            _Where(recorded.machine.name, recorded.environment, "", Case(table.benchmark.name, params))
            for params in table.cases
        ]
        cases = [self.cases.setdefault(where, _Case()) for where in wheres]
        better = better_of(table.benchmark.name, table.benchmark, self._settings)
        for metric, column in table.columns.items():
            about, by_case = _table_about(table, metric, better), (zip(*part, strict=True) for part in column[1:4])
            for case, *cells in zip(cases, *by_case, strict=True):
                if points := _asv_points(about, places, *cells):
                    case.points[metric].update(points)
                    for place in case.runs.get(metric, {}).keys() & points.keys():
                        del case.runs[metric][place]
        about = _table_about(table, table.benchmark.metric, better)
        for index, row, failure in table.failures():
            cases[index].fail(places[row], failure.kind, about.metric)


def _on_device(evidence: Evidence, benchmark: Benchmark | None) -> bool:
    return _own(evidence.good, benchmark) in DEVICE_METRICS or (benchmark is not None and benchmark.needs_device)


def _asv_points(
    about: _About, places: Sequence[int], results: Sequence[Any], lows: Sequence[Any], highs: Sequence[Any]
) -> dict[int, _Point]:
    """The points of one case by place; a number that is none to measure has failed."""
    good = [type(value) in NUMBERS and 0 <= value < math.inf for value in results]
    cells = zip(repeat(about), zip(results), map(interval_of, lows, highs), repeat(""))
    points: dict[int, _Point] = dict(compress(zip(places, cells, strict=True), good))
    if not all(good):
        bad = (place for place, value, fine in zip(places, results, good, strict=True) if not fine and is_number(value))
        points.update((place, (about, (), None, "error")) for place in bad)
    return points


def _table_about(table: AsvTable, metric: str, better: Better | None) -> _About:
    way, primary = _way(table.protocol, {}, table.benchmark), metric == table.benchmark.metric
    return _about(metric, table.columns[metric].unit, way, table.benchmark, better, primary=primary)


def _points(
    place: int, evidence: Evidence, way: Way, benchmark: Benchmark | None, better: Better | None
) -> Iterator[tuple[_Point, tuple[str, ...], list[Reading]]]:
    """By metric, with the run that each value is of, and which card has read which of them."""
    own = _own(evidence.good, benchmark)
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
) -> _About:
    metric = metric_of(name, unit, better)
    threshold = declared_threshold(benchmark)[0] if primary else None
    return _About(replace(metric, exact=exact), (*way, ("unit", unit)), primary, threshold)


def _own(rounds: Sequence[Round], benchmark: Benchmark | None) -> str:
    """The metric the case is about."""
    protocols = [each.protocol for each in rounds if each.protocol is not None]
    return protocols[-1].metric if protocols else benchmark.metric if benchmark is not None else ""


def _failed_metric(name: str, benchmark: Benchmark | None, better: Better | None) -> Metric | None:
    """The metric of that name, where nothing was measured that would tell its unit."""
    return metric_of(name, benchmark.unit if benchmark is not None else "", better) if name else None


def _as_metric(name: str, way: Way) -> Way:
    """What of a way bears on the metric."""
    return way if name in HOST_METRICS else tuple(each for each in way if each[0] not in HOST_IDENTITY)


def _way(
    protocol: Protocol | None, facts: Mapping[str, Any], benchmark: Benchmark | None, further: Sequence[str] = ()
) -> Way:
    """How something was measured, as far as it is known. Of the fields `further`, those count that are set: what was measured
    before there were any is what it was."""
    known: dict[str, object] = {}
    if benchmark is not None:
        known["version"] = benchmark.version
        known.update((name, benchmark.declared[name]) for name in DECLARED_SAMPLING if name in benchmark.declared)
    if protocol is not None:
        known.update((name, getattr(protocol, name)) for name in PROTOCOL_IDENTITY)
        known.update((name, value) for name in further if (value := getattr(protocol, name)))
    known.update((name, facts[name]) for name in SPLITTING if name in facts)
    return tuple((name, str(value)) for name, value in known.items())


# -- from cases to series ------------------------------------------------------------------------------------------------


def _attributed(cases: Mapping[_Where, _Case]) -> dict[_Where, _Case]:
    """The cases; failures of processes that did not come to name a device are of every device that the case has."""
    measured: dict[_Where, list[_Case]] = {}
    for where, case in cases.items():
        if where.device and case.points:
            measured.setdefault(replace(where, device=""), []).append(case)
    left = dict(cases)
    for where, others in measured.items():
        nowhere = cases.get(where)
        if nowhere is not None and not nowhere.points:
            for other in others:
                other.failures = {**nowhere.failures, **other.failures}
            del left[where]
    return left


def _lines(case: _Case) -> Iterator[tuple[_About, dict[int, _Point], dict[int, str]]]:
    """What each series of the case is about, its points, and at which commits there is a failure instead of one."""
    if not case.points and case.about[1] is not None:
        yield _About(case.about[1], (), True, None), {}, case.failures
    for _, points in sorted(case.points.items()):
        failed = {place: failure for place, (_, _, _, failure) in points.items() if failure}
        newest = points[max(points.keys() - failed.keys() or points)][0]
        abouts = {id(about): about for place, (about, *_) in points.items() if place not in failed}.values()
        exact = bool(abouts) and all(each.metric.exact for each in abouts)
        yield newest._replace(metric=replace(newest.metric, exact=exact)), points, {**case.failures, **failed}


def _series(
    where: _Where,
    about: _About,
    points: Mapping[int, _Point],
    failures: Mapping[int, str],
    commits: tuple[str, ...],
    case: _Case,
) -> Series:
    every: dict[int, _Point] = {place: (about, (), None, kind) for place, kind in failures.items()}
    every.update((place, point) for place, point in points.items() if point[1])
    at = sorted(every)
    abouts, rounds, intervals, kinds = zip(*map(every.__getitem__, at), strict=True) if at else ((), (), (), ())
    ways = {place: each.way if values else () for place, each, values in zip(at, abouts, rounds, strict=True)}
    links = case.links.get(about.metric.name, ())
    readings = case.readings.get(about.metric.name, ())
    several = not about.metric.exact and not links and len({each.card for each in readings}) > 1
    kind = kind_of(readings, ways) if several else Kind()
    return Series(
        case=where.case,
        metric=about.metric,
        machine=where.machine,
        device=where.device,
        environment=where.environment,
        commits=commits,
        at=tuple(at),
        rounds=rounds,
        ways=kind.ways(ways),
        intervals=intervals,
        failures=kinds,
        primary=about.primary,
        threshold=about.threshold,
        conditions=case.conditions if about.metric.kind == "time" else {},
        runs=case.runs.get(about.metric.name, {}),
        corrected=_paired(points, commits, links) if links else kind.corrected,
        cards=cards_of(readings, ways),
        factors=kind.factors,
    )


def _paired(points: Mapping[int, _Point], commits: tuple[str, ...], links: Sequence[Link]) -> dict[int, Corrected]:
    values = {place: value for place, (_, own, _, _) in points.items() if own and (value := median(own)) > 0}
    ways = {place: about.way for place, (about, *_) in points.items()}
    return corrected(links, values, ways, {sha: place for place, sha in enumerate(commits)})
