"""Recorded rounds of many commits to Series: one for each case and metric on one machine, device and environment."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

from regress.compare.evidence import Evidence
from regress.compare.rule import declared_threshold
from regress.history import NUMBERS, AsvResult, Recorded, is_number
from regress.model import (
    DECLARED_SAMPLING,
    PROTOCOL_IDENTITY,
    Benchmark,
    Case,
    Metric,
    Protocol,
    Round,
    Series,
    Settings,
    Way,
    metric_of,
)

SPLITTING = ("driver", "cuda", "torch", "cupy", "jax", "triton", "numpy")
"""Facts of a process that levels are not compared across."""
FACTS = ("gpu", "gpu_uuid", *SPLITTING)
"""Facts of a round that a series is made of."""


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


class _Point(NamedTuple):
    """One commit in one series: its values, or the kind of failure that left none."""

    about: _About
    values: tuple[float, ...]
    interval: tuple[float, float] | None = None
    failure: str = ""


@dataclass
class _Case:
    """The results of a case in one place: points by metric and commit, and at which commits all of it failed."""

    points: defaultdict[str, dict[int, _Point]] = field(default_factory=lambda: defaultdict(dict))
    failures: dict[int, str] = field(default_factory=dict)
    about: Metric | None = None
    """What the case is about, as far as a failed result tells."""


def series_of(
    history: Sequence[tuple[str, Sequence[Recorded]]], settings: Settings, by: Literal["uuid", "model"] = "uuid"
) -> tuple[Series, ...]:
    """All series of a history: commits with what is recorded of each, the oldest first, also those without results.

    `by` says whether two cards of one model are two devices. Failed rounds and impossible values are sorted out as in a check;
    a commit with too few good ones has a failure in place of values, in every series of the case. Of a commit that was
    measured in two ways, the later one counts. A case that has always failed is one series, of what it is about.
    """
    found = _Cases(settings, "gpu_uuid" if by == "uuid" else "gpu")
    for place, (_, recorded) in enumerate(history):
        for each in recorded:
            found.take_rounds(place, each)
            for result in each.asv:
                found.take_asv(place, each, result)
    commits = tuple(sha for sha, _ in history)
    return tuple(
        _series(where, metric, points, failures, commits)
        for where, case in sorted(_attributed(found.cases).items())
        for metric, points, failures in _lines(case)
    )


class _Cases:
    """Sorts results of one commit after the other into the cases they are of."""

    def __init__(self, settings: Settings, device_fact: str) -> None:
        self.cases: dict[_Where, _Case] = {}
        self._good_rounds, self._device_fact = settings.good_rounds, device_fact
        self._rows: dict[tuple[Any, ...], tuple[Sequence[Any], list[_Case]]] = {}
        self._abouts: dict[tuple[int, str], tuple[AsvResult, _About]] = {}

    def take_rounds(self, place: int, recorded: Recorded) -> None:
        groups: dict[_Where, dict[Way, list[Round]]] = {}
        for each in recorded.rounds:
            case, device = Case(each.name, tuple(each.params)), str(each.facts.get(self._device_fact, ""))
            ways = groups.setdefault(_Where(recorded.machine.name, recorded.environment, device, case), {})
            way = _way(each.protocol, each.facts, recorded.benchmarks.get(each.name))
            ways[way] = [*ways.pop(way, []), each]  # the way measured last stands last
        for where, ways in groups.items():
            way, rounds = list(ways.items())[-1]
            evidence = Evidence.of("head", rounds, self._good_rounds)
            benchmark = recorded.benchmarks.get(where.case.name)
            case_found = self.cases.setdefault(where, _Case())
            if evidence.failure is None:
                for point in _points(evidence, way, benchmark):
                    case_found.points[point.about.metric.name][place] = point
            else:
                case_found.failures[place] = evidence.failure.kind
                case_found.about = _failed_metric(_own(evidence.rounds, benchmark), benchmark) or case_found.about

    def take_asv(self, place: int, recorded: Recorded, result: AsvResult) -> None:
        """The same of what only asv recorded: there may be millions of cells, so nothing is made of a cell but its point."""
        cases = self._row(recorded, result)
        for metric, column in result.columns.items():
            about = self._asv_about(result, metric)
            for case, value, interval in zip(cases, column.results, column.intervals(), strict=True):
                if type(value) in NUMBERS and 0 <= value < math.inf:
                    case.points[metric][place] = _Point(about, (value,), interval)
                elif is_number(value):
                    case.points[metric][place] = _Point(about, (), None, "error")
        for index, failure in result.failures():
            cases[index].failures[place] = failure.kind
            cases[index].about = self._asv_about(result, result.benchmark.metric).metric

    def _asv_about(self, result: AsvResult, metric: str) -> _About:
        """Made once for all results of one definition."""
        key = (id(result.benchmark), metric)
        if key not in self._abouts:
            way = _way(result.protocol, {}, result.benchmark)
            primary = metric == result.benchmark.metric
            about = _about(metric, result.columns[metric].unit, way, result.benchmark, primary=primary)
            self._abouts[key] = (result, about)  # with the result, so that no other definition gets its id
        return self._abouts[key][1]

    def _row(self, recorded: Recorded, result: AsvResult) -> list[_Case]:
        """The cases of the result, in its order; looked up once for all commits that have the same."""
        key = (recorded.machine.name, recorded.environment, result.benchmark.name, id(result.cases))
        if key not in self._rows:
            every = (Case(result.benchmark.name, params) for params in result.cases)
            places = [_Where(recorded.machine.name, recorded.environment, "", case) for case in every]
            found = [self.cases.setdefault(where, _Case()) for where in places]
            self._rows[key] = (result.cases, found)  # with the cases, so that no others get their id
        return self._rows[key][1]


def _points(evidence: Evidence, way: Way, benchmark: Benchmark | None) -> Iterator[_Point]:
    own = _own(evidence.good, benchmark)
    for name in sorted(evidence.metrics()):
        values = evidence.values_of(name, every_round=name == own)
        if values is None or len(values.units) != 1:
            continue
        (unit,) = values.units
        about = _about(name, unit, way, benchmark, primary=name == own, exact=values.exact)
        if values.failure is None:
            yield _Point(about, values.values)
        else:
            yield _Point(about, (), None, values.failure.kind)


def _about(
    name: str, unit: str, way: Way, benchmark: Benchmark | None, *, primary: bool, exact: bool = False
) -> _About:
    better = benchmark.declared.get("better") if benchmark is not None else None
    metric = metric_of(name, unit, better if isinstance(better, str) else None)
    threshold = declared_threshold(benchmark)[0] if primary else None
    return _About(replace(metric, exact=exact), (*way, ("unit", unit)), primary, threshold)


def _own(rounds: Sequence[Round], benchmark: Benchmark | None) -> str:
    """The metric the case is about."""
    protocols = [each.protocol for each in rounds if each.protocol is not None]
    return protocols[-1].metric if protocols else benchmark.metric if benchmark is not None else ""


def _failed_metric(name: str, benchmark: Benchmark | None) -> Metric | None:
    """The metric of that name, where nothing was measured that would tell its unit."""
    return metric_of(name, benchmark.unit if benchmark is not None else "") if name else None


def _way(protocol: Protocol | None, facts: Mapping[str, Any], benchmark: Benchmark | None) -> Way:
    """How something was measured, as far as it is known."""
    known: dict[str, object] = {}
    if benchmark is not None:
        known["version"] = benchmark.version
        known.update((name, benchmark.declared[name]) for name in DECLARED_SAMPLING if name in benchmark.declared)
    if protocol is not None:
        known.update((name, getattr(protocol, name)) for name in PROTOCOL_IDENTITY)
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
    """What each series of the case is about, its points, and at which commits there is a failure in place of one."""
    if not case.points and case.about is not None:
        yield _About(case.about, (), True, None), {}, case.failures
    for _, points in sorted(case.points.items()):
        measured = [place for place, point in points.items() if not point.failure]
        newest = points[max(measured or points)].about
        abouts = {id(points[place].about): points[place].about for place in measured}
        exact = bool(abouts) and all(each.metric.exact for each in abouts.values())
        failed = {place: each.failure for place, each in points.items() if each.failure}
        yield newest._replace(metric=replace(newest.metric, exact=exact)), points, {**case.failures, **failed}


def _series(
    where: _Where, about: _About, points: Mapping[int, _Point], failures: Mapping[int, str], commits: tuple[str, ...]
) -> Series:
    failed = {place: _Point(about, (), None, kind) for place, kind in failures.items()}
    valued = {place: point for place, point in points.items() if point.values}
    columns = sorted({**failed, **valued}.items())
    return Series(
        case=where.case,
        metric=about.metric,
        machine=where.machine,
        device=where.device,
        environment=where.environment,
        commits=commits,
        at=tuple(place for place, _ in columns),
        rounds=tuple(point.values for _, point in columns),
        ways=tuple(point.about.way if point.values else () for _, point in columns),
        intervals=tuple(point.interval for _, point in columns),
        failures=tuple(point.failure for _, point in columns),
        primary=about.primary,
        threshold=about.threshold,
    )
