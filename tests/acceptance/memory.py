"""Requested bytes: two fresh processes have to give the same figures to the byte."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from regress.model import METRICS, Round

from . import bench
from .table import Row, Table

METRICS_OF_MEMORY = tuple(name for name, metric in METRICS.items() if metric.kind == "memory" and metric.exact)


def run(scratch: Path) -> list[Table]:
    folder = bench.ROOT / "benchmarks"
    names = [benchmark.name for benchmark in bench.suite_of(scratch, folder) if benchmark.metric == "gpu_time"]
    measured = bench.measured(scratch, folder, names, 2, quick=True, memory_rounds=2)
    return [table(measured.rounds)]


def table(rounds: Sequence[Round]) -> Table:
    """A row for each metric of memory that any round has."""
    rows = []
    for metric in METRICS_OF_MEMORY:
        by_case = bench.values(
            [round for round in rounds if metric in round.values and round.values[metric].exact], metric
        )
        twice = {case: values for case, values in by_case.items() if len(values) > 1}
        if not twice:
            continue
        differing = {str(case): values for case, values in twice.items() if len(set(values)) > 1}
        cells = (metric.replace("_", " "), str(len(twice)), str(len(differing)), ", ".join(differing))
        rows.append(Row(cells, not differing, {"cases": len(twice), "differing": differing}))
    columns = ("metric", "cases", "differ", "which")
    return Table("Requested bytes in two processes", columns, tuple(rows), bench.failures(rounds))
