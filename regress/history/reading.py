"""Rows of asv's file as results, where there is no sidecar.

asv keeps the samples of a benchmark and drops which process took which, so a result of asv is one round, and says so. Its
protocol has harness 0, asv's own way of measuring: such a value is not comparable with one of ours, but is with its like.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, TypeGuard

from regress.history.names import benchmark_of, further_version, our_unit
from regress.history.results_file import Row, axes_of
from regress.model import METRICS, Benchmark, Failure, Measured, Protocol, Round

ASV_FLAG = "recorded by asv: round boundaries are unknown"
ASV_HARNESS = 0
NUMBERS = (float, int)
"""The types of numbers in asv's files: a bool is none."""
FAILED = Failure("error", "failed (recorded without a reason)")
SKIPPED = Failure("skipped", "skipped (recorded without a reason)")

Params = tuple[str, ...]
Interval = tuple[float, float]


class Column(NamedTuple):
    """One metric of a benchmark, as asv recorded it: an item a case. `results`: None is failed or not measured, NaN skipped."""

    unit: str
    results: Sequence[Any]
    lows: Sequence[Any]
    highs: Sequence[Any]
    samples: Sequence[Any]

    def intervals(self) -> list[Interval | None]:
        """asv's 99 % intervals; None where it has none, or one without ends because it took a single sample."""
        return [
            (low, high) if type(low) in NUMBERS and type(high) in NUMBERS and -math.inf < low <= high < math.inf else None
            for low, high in zip(self.lows, self.highs, strict=True)
        ]


class AsvResult(NamedTuple):
    """What asv recorded of a benchmark at a commit. `benchmark.metric` is the metric that its cases are about."""

    benchmark: Benchmark
    cases: tuple[Params, ...]
    columns: Mapping[str, Column]
    """By metric; the first is the one under the benchmark's own name."""
    started_at: float
    duration_s: float

    @property
    def protocol(self) -> Protocol:
        return Protocol(self.benchmark.metric, harness=ASV_HARNESS)

    def failures(self) -> list[tuple[int, Failure]]:
        """Which cases have no value in any metric, and why."""
        own, *others = (column.results for column in self.columns.values())
        return [
            (index, failure_of(value))
            for index, value in enumerate(own)
            if not (type(value) in NUMBERS and value == value) and not any(is_number(each[index]) for each in others)
        ]

    def without(self, covered: Collection[Params]) -> AsvResult | None:
        """What is left beside the cases in `covered`. Nobody measured there what asv has no value for."""
        nothing = {index for index, failure in self.failures() if failure.kind != "skipped"}
        left = [index for index, case in enumerate(self.cases) if case not in covered and index not in nothing]
        columns = {
            metric: Column(each.unit, *([part[index] for index in left] for part in each[1:]))
            for metric, each in self.columns.items()
        }
        return self._replace(cases=tuple(self.cases[index] for index in left), columns=columns) if left else None

    def rounds(self) -> Iterator[Round]:
        """One round a case."""
        failures = dict(self.failures())
        for index, case in enumerate(self.cases):
            values = {}
            for metric, column in self.columns.items():
                value = column.results[index]
                if is_number(value):
                    values[metric] = Measured(value, list(column.samples[index] or [value]), column.unit)
            yield Round(
                name=self.benchmark.name,
                params=list(case),
                side="",
                order=0,
                started_at=self.started_at,
                duration_s=self.duration_s,
                protocol=self.protocol,
                values=values,
                failure=failures.get(index),
                flags=[ASV_FLAG],
            )


def failure_of(result: Any) -> Failure:
    """What a cell without a number says."""
    if result is None:
        return FAILED
    if result != result:
        return SKIPPED
    return Failure("error", f"the recorded value is no number: {str(result)[:100]}")


def is_number(value: Any) -> TypeGuard[float]:
    return type(value) in NUMBERS and value == value


# -- rows to results -----------------------------------------------------------------------------------------------------


class Reader:
    """Makes results of rows; `entries` are those of benchmarks.json. What many rows share is made once."""

    def __init__(self, entries: Mapping[str, Mapping[str, Any]]) -> None:
        self._entries = entries
        self._benchmarks: dict[tuple[str, str, str, tuple[Params, ...]], Benchmark] = {}
        self._cases: dict[tuple[Params, ...], tuple[Params, ...]] = {}

    def read(self, rows: Mapping[str, Row]) -> Iterator[AsvResult]:
        """The results of each benchmark. Names of further metrics are folded into those of their benchmark."""
        if len(rows) == 1:
            (only,) = rows.items()
            yield self._result(*only, {})
            return
        further = further_rows({name: row.get("version") for name, row in rows.items()})
        known = {name for metrics in further.values() for name in metrics.values()}
        for name, row in rows.items():
            if name not in known:
                yield self._result(name, row, {metric: rows[other] for metric, other in further.get(name, {}).items()})

    def _result(self, name: str, row: Row, further: Mapping[str, Row]) -> AsvResult:
        # A `time_*` that was measured under the device protocol keeps its wall time under its own name, and is about the other.
        about = "gpu_time" if "gpu_time" in further else ""
        axes = tuple(map(tuple, axes_of(row))) if row.get("params") else ()
        key = (name, row.get("version") or "", about, axes)
        found = self._benchmarks.get(key)
        if found is None:
            found = self._benchmarks[key] = self._benchmark(*key)
        own = self._own_metric(name, row, axes) if about else found.metric
        cases = self._product(axes)
        columns = {own: _column(row, found, own, len(cases))}
        for metric, other in further.items():
            columns[metric] = _aligned(other, found, metric, cases, self._product(tuple(map(tuple, axes_of(other)))))
        started_ms, duration_s = row.get("started_at"), row.get("duration")
        return AsvResult(found, cases, columns, started_ms / 1000 if started_ms else 0.0, duration_s or 0.0)

    def _benchmark(self, name: str, version: str, about: str, axes: tuple[Params, ...]) -> Benchmark:
        found = benchmark_of(name, self._entries.get(name, {}), version, [list(axis) for axis in axes])
        return replace(found, metric=about, needs_device=True) if about else found

    def _own_metric(self, name: str, row: Row, axes: tuple[Params, ...]) -> str:
        return self._benchmark(name, row.get("version") or "", "", axes).metric

    def _product(self, axes: tuple[Params, ...]) -> tuple[Params, ...]:
        found = self._cases.get(axes)
        if found is None:
            found = self._cases[axes] = tuple(itertools.product(*axes))
        return found


def further_rows(versions: Mapping[str, str | None]) -> dict[str, dict[str, str]]:
    """By benchmark and metric, the names of rows of further metrics. Their version, made from the benchmark's, proves it."""
    further: dict[str, dict[str, str]] = {}
    for name, version in versions.items():
        base, _, metric = name.rpartition(".")
        if base in versions and version == further_version(versions[base] or "", metric):
            further.setdefault(base, {})[metric] = name
    return further


def _column(row: Row, benchmark: Benchmark, metric: str, length: int) -> Column:
    unit = METRICS[metric].unit if metric in METRICS else our_unit(benchmark.unit)
    names = ("result", "stats_ci_99_a", "stats_ci_99_b", "samples")
    return Column(unit, *[_items(row.get(name), length) for name in names])


def _items(values: list[Any] | None, length: int) -> Sequence[Any]:
    """The values of a row's column, an item a case; what is short or missing leaves its place empty."""
    if values is None:
        return (None,) * length
    return values if len(values) == length else [*values[:length], *(None for _ in range(length - len(values)))]


def _aligned(row: Row, benchmark: Benchmark, metric: str, cases: tuple[Params, ...], own: tuple[Params, ...]) -> Column:
    """The column of a further metric in the order of `cases`, where its row has the cases `own`."""
    column = _column(row, benchmark, metric, len(own))
    if own == cases:
        return column
    places = {case: place for place, case in enumerate(own)}
    order = [places.get(case) for case in cases]
    return Column(column.unit, *([None if place is None else part[place] for place in order] for part in column[1:]))
