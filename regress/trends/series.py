"""Recorded rounds of many commits to Series: one for each case and metric on one machine, kind of device and environment."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from regress.compare.circumstances import conditions
from regress.compare.evidence import Evidence
from regress.compare.rule import better_of
from regress.history import AsvTable, Recorded
from regress.model import (
    HOST_IDENTITY,
    Benchmark,
    Case,
    Conditions,
    Corrected,
    Metric,
    Round,
    Series,
    Settings,
    Way,
)
from regress.stats.summary import median
from regress.trends.cards import Kind, Reading, cards_of, kind_of
from regress.trends.correction import Link, corrected, links_of
from regress.trends.points import (
    SPLITTING,
    About,
    Point,
    asv_points,
    failed_metric,
    on_device,
    own_metric,
    points_of,
    table_about,
    way_of,
)

FACTS = ("gpu", "gpu_uuid", "installed", "throttled", "sm_clock_hz", "foreign_processes", *SPLITTING)
"""Facts of a round that a series is made of, by which rounds of a commit are pooled, or that speak against a change."""


@dataclass(frozen=True, order=True)
class _Where:
    """What makes points one series, but for the metric."""

    machine: str
    environment: str
    device: str
    case: Case


@dataclass
class _Case:
    """The results of a case in one place: points by metric and commit, and at which commits all of it failed."""

    points: defaultdict[str, dict[int, Point]] = field(default_factory=lambda: defaultdict(dict))
    failures: dict[int, str] = field(default_factory=dict)
    conditions: dict[int, Conditions] = field(default_factory=dict)
    runs: defaultdict[str, dict[int, tuple[str, ...]]] = field(default_factory=lambda: defaultdict(dict))
    """By metric and commit: which run of regress each value is of."""
    links: dict[str, list[Link]] = field(default_factory=dict)
    """By metric: what is known of its commits against others with which they took windows in turn."""
    readings: dict[str, list[Reading]] = field(default_factory=dict)
    """By metric: what each card has read, in whatever way."""
    about: tuple[int, Metric | None] = (-1, None)
    """The metric that the case is about by its last failed result, and the place of that commit."""

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
    recordings = [((place,), result) for place, (_, recorded) in enumerate(history) for result in recorded]
    return series_from(recordings, tuple(sha for sha, _ in history), settings)


def series_from(
    recordings: Iterable[tuple[Sequence[int], Recorded]],
    commits: tuple[str, ...],
    settings: Settings,
) -> tuple[Series, ...]:
    """The same of what is recorded with the places of its commits, of which a table of asv's may have many."""
    cases = _Cases(settings)
    for places, recorded in recordings:
        if recorded.rounds:
            cases.take_rounds(places[0], recorded)
        for table in recorded.asv:
            cases.take_table(places, recorded, table)
    return tuple(
        _series(where, metric, points, failures, commits, case)
        for where, case in sorted(_attributed(cases.cases).items())
        for metric, points, failures in _lines(case)
    )


class _Cases:
    """Sorts results into the cases they are of."""

    def __init__(self, settings: Settings) -> None:
        self.cases: dict[_Where, _Case] = {}
        self._settings = settings

    def take_rounds(self, place: int, recorded: Recorded) -> None:
        groups: dict[_Where, dict[Way, list[Round]]] = {}
        for round in recorded.rounds:
            case, device = Case(round.name, tuple(round.params)), str(round.facts.get("gpu", ""))
            ways = groups.setdefault(_Where(recorded.machine.name, recorded.environment, device, case), {})
            way = way_of(round.protocol, round.facts, recorded.benchmarks.get(round.name), HOST_IDENTITY)
            ways[way] = [*ways.pop(way, []), round]  # the way measured last stands last
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
            if last and on_device(evidence, benchmark):
                case.conditions[place] = conditions(evidence.good)
            for point, runs, readings in points_of(place, evidence, way, benchmark, better):
                metric = point[0].metric.name
                case.readings.setdefault(metric, []).extend(readings)
                if last:
                    case.points[metric][place] = point
                    case.runs[metric][place] = runs
            for metric, links in links_of(place, evidence.good).items() if last else ():
                case.links.setdefault(metric, []).extend(links)
        elif last:
            case.fail(
                place, evidence.failure.kind, failed_metric(own_metric(evidence.rounds, benchmark), benchmark, better)
            )

    def take_table(self, places: Sequence[int], recorded: Recorded, table: AsvTable) -> None:
        """The same of what only asv recorded: there may be millions of cells, so nothing is made of a cell but its point."""
        wheres = [
            _Where(recorded.machine.name, recorded.environment, "", Case(table.benchmark.name, params))
            for params in table.cases
        ]
        cases = [self.cases.setdefault(where, _Case()) for where in wheres]
        better = better_of(table.benchmark.name, table.benchmark, self._settings)
        for metric, column in table.columns.items():
            about, by_case = table_about(table, metric, better), (zip(*part, strict=True) for part in column[1:4])
            for case, *cells in zip(cases, *by_case, strict=True):
                if points := asv_points(about, places, *cells):
                    case.points[metric].update(points)
                    for place in case.runs.get(metric, {}).keys() & points.keys():
                        del case.runs[metric][place]
        about = table_about(table, table.benchmark.metric, better)
        for index, row, failure in table.failures():
            cases[index].fail(places[row], failure.kind, about.metric)


# -- from cases to series ------------------------------------------------------------------------------------------------


def _attributed(cases: Mapping[_Where, _Case]) -> dict[_Where, _Case]:
    """The cases; failures of processes that ended before they named a device count for every device of the case."""
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


def _lines(case: _Case) -> Iterator[tuple[About, dict[int, Point], dict[int, str]]]:
    """What each series of the case is about, its points, and at which commits there is a failure instead of one."""
    if not case.points and case.about[1] is not None:
        yield About(case.about[1], (), True, None), {}, case.failures
    for _, points in sorted(case.points.items()):
        failed = {place: failure for place, (_, _, _, failure) in points.items() if failure}
        newest = points[max(points.keys() - failed.keys() or points)][0]
        known = newest.metric.exact and len(failed) < len(points)
        exact = known and all(point[0].metric.exact for point in points.values() if not point[3])
        yield newest._replace(metric=replace(newest.metric, exact=exact)), points, {**case.failures, **failed}


def _series(
    where: _Where,
    about: About,
    points: Mapping[int, Point],
    failures: Mapping[int, str],
    commits: tuple[str, ...],
    case: _Case,
) -> Series:
    every: dict[int, Point] = {place: (about, (), None, kind) for place, kind in failures.items()}
    every.update((place, point) for place, point in points.items() if point[1])
    at = sorted(every)
    abouts, rounds, intervals, kinds = zip(*map(every.__getitem__, at), strict=True) if at else ((), (), (), ())
    ways = tuple(its.way if values else () for its, values in zip(abouts, rounds, strict=True))
    links = case.links.get(about.metric.name, ())
    readings = case.readings.get(about.metric.name, ())
    by_place = dict(zip(at, ways, strict=True)) if readings else {}
    several = not about.metric.exact and not links and len({reading.card for reading in readings}) > 1
    kind = kind_of(readings, by_place) if several else Kind()
    return Series(
        case=where.case,
        metric=about.metric,
        machine=where.machine,
        device=where.device,
        environment=where.environment,
        commits=commits,
        at=tuple(at),
        rounds=rounds,
        ways=kind.ways(by_place) if several else ways,
        intervals=intervals,
        failures=kinds,
        primary=about.primary,
        threshold=about.threshold,
        conditions=case.conditions if about.metric.kind == "time" else {},
        runs=case.runs.get(about.metric.name, {}),
        corrected=_paired(points, commits, links) if links else kind.corrected,
        cards=cards_of(readings, by_place),
        factors=kind.factors,
    )


def _paired(points: Mapping[int, Point], commits: tuple[str, ...], links: Sequence[Link]) -> dict[int, Corrected]:
    values = {place: value for place, (_, own, _, _) in points.items() if own and (value := median(own)) > 0}
    ways = {place: about.way for place, (about, *_) in points.items()}
    return corrected(links, values, ways, {sha: place for place, sha in enumerate(commits)})
