"""How far fresh processes differ: the coefficient of variation of each core operation, and its median by class."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path

from regress.model import Benchmark, Case, declared_words
from regress.units import format_percent, format_time

from . import bench, limits
from .table import Row, Table, variation


def run(scratch: Path) -> list[Table]:
    folder = bench.ROOT / "benchmarks"
    core = [benchmark.name for benchmark in bench.suite_of(scratch, folder) if is_core(benchmark)]
    measured = bench.measured(scratch, folder, core, limits.PROCESSES)
    return tables(
        bench.values(measured.rounds, "gpu_time"),
        bench.values(measured.rounds, "host_time"),
        bench.failures(measured.rounds),
    )


def is_core(benchmark: Benchmark) -> bool:
    """Whether a benchmark of device time is tagged `core`."""
    return benchmark.metric == "gpu_time" and "core" in declared_words(benchmark, "tags")


def tables(
    gpu: Mapping[Case, Sequence[float]], host: Mapping[Case, Sequence[float]], notes: tuple[str, ...] = ()
) -> list[Table]:
    """The table by class and the one by case, from the values of each process."""
    gpu = {case: values for case, values in gpu.items() if len(values) > 1}
    by_class: dict[str, list[Case]] = {}
    for case in sorted(gpu, key=lambda case: -statistics.median(gpu[case])):
        by_class.setdefault(limits.class_of(statistics.median(gpu[case])).title, []).append(case)
    classes = tuple(
        _class_row(length, by_class[length.title], gpu, host) for length in limits.CLASSES if length.title in by_class
    )
    cases = tuple(_case_row(case, gpu[case], host.get(case, ())) for cases in by_class.values() for case in cases)
    processes = max((len(values) for values in gpu.values()), default=0)
    return [
        Table(
            f"Spread between {processes} processes, by duration",
            ("device time", "cases", "gpu time, median", "limit", "largest", "host time, median"),
            classes,
            notes,
        ),
        Table("Spread by operation", ("operation", "gpu time", "spread", "host time", "spread", "processes"), cases),
    ]


def _class_row(
    length: limits.Class,
    cases: Sequence[Case],
    gpu: Mapping[Case, Sequence[float]],
    host: Mapping[Case, Sequence[float]],
) -> Row:
    spreads = {case: variation(gpu[case]) for case in cases}
    median, worst = statistics.median(spreads.values()), max(spreads, key=lambda case: spreads[case])
    of_host = [variation(host[case]) for case in cases if len(host.get(case, ())) > 1]
    host_median = statistics.median(of_host) if of_host else None
    reached = median <= length.spread
    aim = "" if length.required else f"aim, {'reached' if reached else 'missed'}: "
    cells = (
        length.title,
        str(len(cases)),
        format_percent(median),
        f"{aim}{format_percent(length.spread)}",
        f"{format_percent(spreads[worst])} ({worst})",
        format_percent(host_median),
    )
    figures = {"gpu_time": median, "limit": length.spread, "required": length.required, "host_time": host_median}
    return Row(cells, reached if length.required else None, figures)


def _case_row(case: Case, gpu: Sequence[float], host: Sequence[float]) -> Row:
    cells = (
        str(case),
        format_time(statistics.median(gpu)),
        format_percent(variation(gpu)),
        format_time(statistics.median(host)) if host else "",
        format_percent(variation(host)) if host else "",
        str(len(gpu)),
    )
    return Row(cells, None, {"gpu_time": list(gpu), "host_time": list(host)})
