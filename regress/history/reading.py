"""Reads rows of asv's files as tables, if there is no sidecar.

asv keeps the samples of a benchmark but not which process took which, so a result of asv is one round, and says so. Its
protocol has harness 0, asv's own way of measuring: such values are comparable with each other, but not with ours.
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
"""The types of numbers in asv's files; bool does not count."""
FAILED = Failure("error", "failed (recorded without a reason)")
SKIPPED = Failure("skipped", "skipped (recorded without a reason)")

Params = tuple[str, ...]
Axes = tuple[tuple[str, ...], ...]
"""The values of each parameter."""
Interval = tuple[float, float]


class AsvRow(NamedTuple):
    """A row of asv's file. Lists have one item a case, or fewer; None among `results` means failed, NaN skipped or not
    measured."""

    axes: Axes
    version: str
    results: Sequence[Any] | None
    started_ms: float | None = None
    duration_s: float | None = None
    lows: Sequence[Any] | None = None
    highs: Sequence[Any] | None = None
    samples: Sequence[Any] | None = None
    numbers: Sequence[Any] | None = None
    """Calls that a sample spans."""

    @classmethod
    def of(cls, row: Row) -> AsvRow:
        names = ("result", "started_at", "duration", "stats_ci_99_a", "stats_ci_99_b", "samples", "stats_number")
        return cls(tuple(map(tuple, axes_of(row))), row.get("version") or "", *(row.get(name) for name in names))


class Column(NamedTuple):
    """One metric of a benchmark, as asv recorded it: an item a row, which has an item a case."""

    unit: str
    results: Sequence[Sequence[Any]]
    lows: Sequence[Sequence[Any]]
    highs: Sequence[Sequence[Any]]
    samples: Sequence[Sequence[Any]]
    numbers: Sequence[Sequence[Any]]


class AsvTable(NamedTuple):
    """What asv recorded of a benchmark as it was defined once, a row a commit. `benchmark.metric` is the metric that its cases
    are about."""

    benchmark: Benchmark
    cases: tuple[Params, ...]
    columns: Mapping[str, Column]
    """By metric; the first is the one under the benchmark's own name."""
    started_at: Sequence[float]
    durations_s: Sequence[float]

    @property
    def protocol(self) -> Protocol:
        return Protocol(self.benchmark.metric, harness=ASV_HARNESS)

    def failures(self) -> Iterator[tuple[int, int, Failure]]:
        """Which cases in which rows have no value in any metric, and why."""
        own, *others = (column.results for column in self.columns.values())
        for case, results in enumerate(zip(*own, strict=True)):
            without = [row for row, value in enumerate(results) if not (type(value) in NUMBERS and value == value)]
            for row in without:
                if not any(is_number(other[row][case]) for other in others):
                    yield case, row, failure_of(results[row])

    def without(self, covered: Collection[Params]) -> AsvTable | None:
        """The rest of a single row, without the cases in `covered`. Cases without asv's value were not measured there."""
        nothing = {case for case, _, _ in self.failures()}
        left = [at for at, case in enumerate(self.cases) if case not in covered and at not in nothing]
        columns = {
            metric: Column(column.unit, *([[row[at] for at in left] for row in part] for part in column[1:]))
            for metric, column in self.columns.items()
        }
        return self._replace(cases=tuple(self.cases[at] for at in left), columns=columns) if left else None

    def rounds(self) -> Iterator[Round]:
        """One round a case and row."""
        failures = {(case, row): failure for case, row, failure in self.failures()}
        for row, (started_at, duration_s) in enumerate(zip(self.started_at, self.durations_s, strict=True)):
            for at, case in enumerate(self.cases):
                values = {}
                protocol = self.protocol
                for metric, column in self.columns.items():
                    value, number = column.results[row][at], column.numbers[row][at]
                    if is_number(value):
                        values[metric] = Measured(value, list(column.samples[row][at] or [value]), column.unit)
                    if metric == protocol.metric and type(number) is int and number > 0:
                        protocol = replace(protocol, calls=number)
                yield Round(
                    name=self.benchmark.name,
                    params=list(case),
                    side="",
                    order=0,
                    started_at=started_at,
                    duration_s=duration_s,
                    protocol=protocol,
                    values=values,
                    failure=failures.get((at, row)),
                    flags=[ASV_FLAG],
                )


def failure_of(result: Any) -> Failure:
    """What a cell without a number says."""
    if result is None:
        return FAILED
    if result != result:
        return SKIPPED
    return Failure("error", f"the recorded value is not a number: {str(result)[:100]}")


def is_number(value: Any) -> TypeGuard[float]:
    return type(value) in NUMBERS and value == value


def interval_of(low: Any, high: Any) -> Interval | None:
    """asv's 99 % interval; None if missing, or unbounded because of a single sample."""
    known = type(low) in NUMBERS and type(high) in NUMBERS and -math.inf < low <= high < math.inf
    return (low, high) if known else None


# -- rows to tables ------------------------------------------------------------------------------------------------------


class TableReader:
    """Makes tables of rows; `entries` are those of benchmarks.json. What many rows share is made once."""

    def __init__(self, entries: Mapping[str, Mapping[str, Any]]) -> None:
        self._entries = entries
        self._benchmarks: dict[tuple[str, str, str, Axes], Benchmark] = {}
        self._cases: dict[Axes, tuple[Params, ...]] = {}

    def read(self, rows: Mapping[str, AsvRow]) -> Iterator[AsvTable]:
        """The results of each benchmark at one commit. Names of further metrics are folded into those of their benchmark."""
        further = further_rows({name: row.version for name, row in rows.items()})
        known = {name for metrics in further.values() for name in metrics.values()}
        for name, row in rows.items():
            if name not in known:
                yield self.table(
                    name, [row], {metric: [rows[entry]] for metric, entry in further.get(name, {}).items()}
                )

    def table(self, name: str, rows: Sequence[AsvRow], further: Mapping[str, Sequence[AsvRow]]) -> AsvTable:
        """The results in these rows, and in those of further metrics; all of one name have the same parameters and version."""
        # A `time_*` that was measured under the device protocol keeps its wall time under its own name, and is about the other.
        about = "gpu_time" if "gpu_time" in further else ""
        axes, version, *_ = rows[0]
        key = (name, version, about, axes)
        benchmark = self._benchmarks.get(key)
        if benchmark is None:
            benchmark = self._benchmarks[key] = self._benchmark(*key)
        own = self._benchmark(name, version, "", axes).metric if about else benchmark.metric
        cases = self._product(axes)
        columns = {own: _column(rows, benchmark, own, len(cases))}
        for metric, others in further.items():
            columns[metric] = _aligned(others, benchmark, metric, cases, self._product(others[0].axes))
        started_at = [row.started_ms / 1000 if row.started_ms else 0.0 for row in rows]
        return AsvTable(benchmark, cases, columns, started_at, [row.duration_s or 0.0 for row in rows])

    def _benchmark(self, name: str, version: str, about: str, axes: Axes) -> Benchmark:
        benchmark = benchmark_of(name, self._entries.get(name, {}), version, [list(axis) for axis in axes])
        return replace(benchmark, metric=about, needs_device=True) if about else benchmark

    def _product(self, axes: Axes) -> tuple[Params, ...]:
        cases = self._cases.get(axes)
        if cases is None:
            cases = self._cases[axes] = tuple(itertools.product(*axes))
        return cases


def further_rows(versions: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """By benchmark and metric, the names of rows of further metrics. Their version, made from the benchmark's, proves it."""
    further: dict[str, dict[str, str]] = {}
    for name, version in versions.items():
        base, _, metric = name.rpartition(".")
        if base in versions and version == further_version(versions[base], metric):
            further.setdefault(base, {})[metric] = name
    return further


def _column(rows: Sequence[AsvRow], benchmark: Benchmark, metric: str, length: int) -> Column:
    unit = METRICS[metric].unit if metric in METRICS else our_unit(benchmark.unit)
    columns = zip(*[(row.results, row.lows, row.highs, row.samples, row.numbers) for row in rows], strict=True)
    empty = (None,) * length
    return Column(
        unit,
        *(
            [empty if row is None else row if len(row) == length else [*row, *empty][:length] for row in column]
            for column in columns
        ),
    )


def _aligned(
    rows: Sequence[AsvRow], benchmark: Benchmark, metric: str, cases: tuple[Params, ...], own: tuple[Params, ...]
) -> Column:
    """The column of a further metric in the order of `cases`, if its rows have the cases `own`."""
    column = _column(rows, benchmark, metric, len(own))
    if own == cases:
        return column
    places = {case: place for place, case in enumerate(own)}
    order = [places.get(case) for case in cases]
    return Column(
        column.unit,
        *([[None if at is None else row[at] for at in order] for row in part] for part in column[1:]),
    )
