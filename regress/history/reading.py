"""Rows of asv's file to rounds, where there is no sidecar.

asv keeps the samples of a benchmark and drops which process took which, so a result of asv is one round, and says so. Its
protocol has harness 0, asv's own way of measuring: such a value is not comparable with one of ours, but is with its like.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeGuard

from regress.history.names import benchmark_of, further_version, our_unit
from regress.history.results_file import Cell, Row, axes_of, cells_of
from regress.model import METRICS, Benchmark, Case, Failure, Measured, Protocol, Round

ASV_FLAG = "recorded by asv: round boundaries are unknown"
ASV_HARNESS = 0


@dataclass
class RowsRead:
    """One round for each case of each row, the benchmarks they are of, and asv's intervals by case and metric."""

    rounds: list[Round] = field(default_factory=list)
    benchmarks: dict[str, Benchmark] = field(default_factory=dict)
    intervals: dict[Case, dict[str, tuple[float, float]]] = field(default_factory=dict)


def read_rows(
    rows: Mapping[str, Row],
    entries: Mapping[str, Mapping[str, Any]],
    covered: Mapping[str, Collection[tuple[str, ...]]],
) -> RowsRead:
    """What the rows say. `entries` are those of benchmarks.json.

    Names of further metrics are folded into the round of their benchmark. A case in `covered` is left out, and of a covered
    benchmark also what asv has no value for: nobody measured that.
    """
    further = _further(rows)
    known = {name for metrics in further.values() for name in metrics.values()}
    read = RowsRead()
    for name, row in rows.items():
        if name in known:
            continue
        benchmark = benchmark_of(name, entries.get(name, {}), row.get("version"), axes_of(row))
        metrics = {benchmark.metric: row, **{metric: rows[other] for metric, other in further.get(name, {}).items()}}
        # A `time_*` that was measured under the device protocol keeps its wall time under its own name, and is about the other.
        about = "gpu_time" if "gpu_time" in metrics else benchmark.metric
        taken = False
        for each, intervals in _rounds(benchmark, metrics, about):
            case = Case(name, tuple(each.params))
            if name not in covered or (case.params not in covered[name] and _has_outcome(each)):
                read.rounds.append(each)
                if intervals:
                    read.intervals[case] = intervals
                taken = True
        if taken:
            needs_device = benchmark.needs_device or about == "gpu_time"
            read.benchmarks[name] = replace(benchmark, metric=about, needs_device=needs_device)
    return read


def _further(rows: Mapping[str, Row]) -> dict[str, dict[str, str]]:
    """By benchmark and metric, the names of rows of further metrics. Their version, made from the benchmark's, proves it."""
    further: dict[str, dict[str, str]] = {}
    for name, row in rows.items():
        base, _, metric = name.rpartition(".")
        if base in rows and row.get("version") == further_version(rows[base].get("version") or "", metric):
            further.setdefault(base, {})[metric] = name
    return further


def _rounds(
    benchmark: Benchmark, rows: Mapping[str, Row], about: str
) -> Iterator[tuple[Round, dict[str, tuple[float, float]]]]:
    own = rows[benchmark.metric]
    columns = {metric: cells_of(row) for metric, row in rows.items()}
    started_ms, duration_s = own.get("started_at"), own.get("duration")
    for params, cell in columns[benchmark.metric].items():
        cells = {metric: cells[params] for metric, cells in columns.items() if params in cells}
        values = {
            metric: _measured(each, benchmark, metric) for metric, each in cells.items() if _is_number(each.result)
        }
        found = Round(
            name=benchmark.name,
            params=list(params),
            side="",
            order=0,
            started_at=started_ms / 1000 if started_ms else 0.0,
            duration_s=duration_s or 0.0,
            protocol=Protocol(about, harness=ASV_HARNESS),
            values=values,
            failure=None if values else _failure(cell),
            flags=[ASV_FLAG],
        )
        intervals = {metric: _interval(cells[metric]) for metric in values}
        yield found, {metric: interval for metric, interval in intervals.items() if interval is not None}


def _measured(cell: Cell, benchmark: Benchmark, metric: str) -> Measured:
    unit = METRICS[metric].unit if metric in METRICS else our_unit(benchmark.unit)
    assert cell.result is not None
    return Measured(cell.result, list(cell.samples or [cell.result]), unit)


def _interval(cell: Cell) -> tuple[float, float] | None:
    """asv's interval; None where it has none, or one without ends because it took a single sample."""
    low, high = ((cell.stats or {}).get(end) for end in ("ci_99_a", "ci_99_b"))
    if not _is_number(low) or not _is_number(high) or math.inf in (-low, high):
        return None
    return low, high


def _is_number(value: Any) -> TypeGuard[float]:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value == value


def _failure(cell: Cell) -> Failure:
    if cell.result is None:
        return Failure("error", "failed (recorded without a reason)")
    if cell.result != cell.result:
        return Failure("skipped", "skipped (recorded without a reason)")
    return Failure("error", f"the recorded value is no number: {str(cell.result)[:100]}")


def _has_outcome(round: Round) -> bool:
    return round.failure is None or round.failure.kind == "skipped"
