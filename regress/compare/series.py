"""Recorded rounds of many commits to Series: one for each case and metric on one machine, device and environment."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
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


@dataclass(frozen=True)
class _Line:
    """What makes points one series."""

    machine: str
    environment: str
    device: str
    case: Case
    metric: str


@dataclass(frozen=True)
class _Point:
    """One commit in one series."""

    values: tuple[float, ...]
    way: Way
    metric: Metric
    primary: bool
    threshold: float | None


def series_of(
    history: Sequence[tuple[str, Sequence[Recorded]]], settings: Settings, by: Literal["uuid", "model"] = "uuid"
) -> tuple[Series, ...]:
    """All series of a history: commits with what is recorded of each, the oldest first, also those without results.

    `by` says whether two cards of one model are two devices. Failed rounds and impossible values are sorted out as in a check;
    a commit with too few good ones has no value. Of a commit that was measured in two ways, the later one counts.
    """
    lines: dict[_Line, dict[int, _Point]] = {}
    for place, (_, recorded) in enumerate(history):
        for each in recorded:
            for line, point in _points(each, settings, "gpu_uuid" if by == "uuid" else "gpu"):
                lines.setdefault(line, {})[place] = point
    commits = tuple(sha for sha, _ in history)
    return tuple(
        _series(line, points, commits) for line, points in sorted(lines.items(), key=lambda item: _rank(item[0]))
    )


def _points(recorded: Recorded, settings: Settings, device_fact: str) -> Iterator[tuple[_Line, _Point]]:
    groups: dict[tuple[Case, str], dict[Way, list[Round]]] = {}
    for each in recorded.rounds:
        case, device = Case(each.name, tuple(each.params)), str(each.facts.get(device_fact, ""))
        ways = groups.setdefault((case, device), {})
        way = _way(each, recorded.benchmarks.get(each.name))
        ways[way] = [*ways.pop(way, []), each]  # the way measured last stands last
    for (case, device), ways in groups.items():
        way, rounds = list(ways.items())[-1]
        evidence = Evidence.of("head", rounds, settings.good_rounds)
        if evidence.failure is not None:
            continue
        benchmark = recorded.benchmarks.get(case.name)
        own = _own(evidence, benchmark)
        for name in sorted(evidence.metrics()):
            values = evidence.values_of(name, every_round=name == own)
            if values is not None and values.failure is None and len(values.units) == 1:
                line = _Line(recorded.machine.name, recorded.environment, device, case, name)
                yield line, _point(name, values, way, benchmark, primary=name == own)


def _point(name: str, values: Values, way: Way, benchmark: Benchmark | None, *, primary: bool) -> _Point:
    (unit,) = values.units
    better = benchmark.declared.get("better") if benchmark is not None else None
    metric = metric_of(name, unit, better if isinstance(better, str) else None)
    threshold = declared_threshold(benchmark)[0] if primary else None
    return _Point(values.values, (*way, ("unit", unit)), replace(metric, exact=values.exact), primary, threshold)


def _own(evidence: Evidence, benchmark: Benchmark | None) -> str:
    """The metric the case is about."""
    protocols = [each.protocol for each in evidence.good if each.protocol is not None]
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


def _series(line: _Line, points: dict[int, _Point], commits: tuple[str, ...]) -> Series:
    newest = points[max(points)]
    every = [points.get(place) for place in range(len(commits))]
    return Series(
        case=line.case,
        metric=replace(newest.metric, exact=all(each.metric.exact for each in points.values())),
        machine=line.machine,
        device=line.device,
        environment=line.environment,
        commits=commits,
        rounds=tuple(() if each is None else each.values for each in every),
        ways=tuple(() if each is None else each.way for each in every),
        primary=newest.primary,
        threshold=newest.threshold,
    )


def _rank(line: _Line) -> tuple[str, str, str, Case, str]:
    return line.machine, line.environment, line.device, line.case, line.metric
