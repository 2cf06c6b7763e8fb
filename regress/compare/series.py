"""Recorded rounds of many commits to Series: one for each case and metric on one machine, device and environment."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from regress.compare.evidence import Evidence, Values
from regress.compare.rule import declared_threshold
from regress.history import Recorded
from regress.model import (
    DECLARED_SAMPLING,
    PROTOCOL_IDENTITY,
    Benchmark,
    Case,
    Metric,
    Round,
    Series,
    Settings,
    Way,
    metric_of,
)

SPLITTING = ("driver", "cuda", "torch", "cupy", "jax", "triton", "numpy")
"""Facts of a process that levels are not compared across."""


@dataclass(frozen=True, order=True)
class _Where:
    """What makes points one series, but for the metric."""

    machine: str
    environment: str
    device: str
    case: Case


@dataclass(frozen=True)
class _Point:
    """One commit in one series: its values, or the kind of failure that left none."""

    values: tuple[float, ...]
    way: Way
    metric: Metric
    primary: bool
    threshold: float | None
    interval: tuple[float, float] | None
    failure: str = ""


@dataclass
class _Case:
    """The results of a case in one place: points by metric and commit, and at which commits all of it failed."""

    points: dict[str, dict[int, _Point]] = field(default_factory=dict)
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
    cases: dict[_Where, _Case] = {}
    for place, (_, recorded) in enumerate(history):
        for each in recorded:
            _take(cases, place, each, settings, "gpu_uuid" if by == "uuid" else "gpu")
    commits = tuple(sha for sha, _ in history)
    return tuple(
        _series(where, metric, points, failures, commits)
        for where, case in sorted(_attributed(cases).items())
        for metric, points, failures in _lines(case)
    )


def _take(cases: dict[_Where, _Case], place: int, recorded: Recorded, settings: Settings, device_fact: str) -> None:
    """Sort the rounds of one commit in."""
    groups: dict[_Where, dict[Way, list[Round]]] = {}
    for each in recorded.rounds:
        case, device = Case(each.name, tuple(each.params)), str(each.facts.get(device_fact, ""))
        ways = groups.setdefault(_Where(recorded.machine.name, recorded.environment, device, case), {})
        way = _way(each, recorded.benchmarks.get(each.name))
        ways[way] = [*ways.pop(way, []), each]  # the way measured last stands last
    for where, ways in groups.items():
        way, rounds = list(ways.items())[-1]
        evidence = Evidence.of("head", rounds, settings.good_rounds)
        benchmark = recorded.benchmarks.get(where.case.name)
        found = cases.setdefault(where, _Case())
        if evidence.failure is None:
            intervals = recorded.intervals.get(where.case, {})
            for point in _points(evidence, way, benchmark, intervals):
                found.points.setdefault(point.metric.name, {})[place] = point
        else:
            found.failures[place] = evidence.failure.kind
            about = _about(evidence.rounds, benchmark)
            found.about = metric_of(about, benchmark.unit if benchmark is not None else "") if about else found.about


def _points(
    evidence: Evidence, way: Way, benchmark: Benchmark | None, intervals: Mapping[str, tuple[float, float]]
) -> Iterator[_Point]:
    about = _about(evidence.good, benchmark)
    for name in sorted(evidence.metrics()):
        values = evidence.values_of(name, every_round=name == about)
        if values is not None and len(values.units) == 1:
            yield _point(name, values, way, benchmark, intervals.get(name), primary=name == about)


def _point(
    name: str,
    values: Values,
    way: Way,
    benchmark: Benchmark | None,
    interval: tuple[float, float] | None,
    *,
    primary: bool,
) -> _Point:
    (unit,) = values.units
    better = benchmark.declared.get("better") if benchmark is not None else None
    metric = metric_of(name, unit, better if isinstance(better, str) else None)
    failed = values.failure is not None
    return _Point(
        values=() if failed else values.values,
        way=() if failed else (*way, ("unit", unit)),
        metric=replace(metric, exact=values.exact),
        primary=primary,
        threshold=declared_threshold(benchmark)[0] if primary else None,
        interval=None if failed else interval,
        failure=values.failure.kind if values.failure is not None else "",
    )


def _about(rounds: Sequence[Round], benchmark: Benchmark | None) -> str:
    """The metric the case is about."""
    protocols = [each.protocol for each in rounds if each.protocol is not None]
    return protocols[-1].metric if protocols else benchmark.metric if benchmark is not None else ""


def _way(each: Round, benchmark: Benchmark | None) -> Way:
    """How a round was measured, as far as it is known."""
    known: dict[str, object] = {}
    if benchmark is not None:
        known["version"] = benchmark.version
        known.update((name, benchmark.declared[name]) for name in DECLARED_SAMPLING if name in benchmark.declared)
    if each.protocol is not None:
        known.update((name, getattr(each.protocol, name)) for name in PROTOCOL_IDENTITY)
    known.update((name, each.facts[name]) for name in SPLITTING if name in each.facts)
    return tuple((name, str(value)) for name, value in known.items())


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


def _lines(case: _Case) -> Iterator[tuple[Metric, dict[int, _Point], dict[int, str]]]:
    """Metric, points and failures of each series of the case."""
    if not case.points and case.about is not None:
        yield case.about, {}, case.failures
    for _, points in sorted(case.points.items()):
        good = [points[place] for place in sorted(points) if not points[place].failure]
        newest = good[-1] if good else points[max(points)]
        exact = all(each.metric.exact for each in good)
        failed = {place: each.failure for place, each in points.items() if each.failure}
        yield replace(newest.metric, exact=exact), points, {**case.failures, **failed}


def _series(
    where: _Where, metric: Metric, points: Mapping[int, _Point], failures: Mapping[int, str], commits: tuple[str, ...]
) -> Series:
    newest = points[max(points)] if points else None
    every = [points.get(place) for place in range(len(commits))]
    return Series(
        case=where.case,
        metric=metric,
        machine=where.machine,
        device=where.device,
        environment=where.environment,
        commits=commits,
        rounds=tuple(() if each is None else each.values for each in every),
        ways=tuple(() if each is None else each.way for each in every),
        intervals=tuple(None if each is None else each.interval for each in every),
        failures=tuple(
            "" if each is not None and each.values else failures.get(place, "") for place, each in enumerate(every)
        ),
        primary=newest is None or newest.primary,
        threshold=newest.threshold if newest is not None else None,
    )
