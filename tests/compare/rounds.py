"""Rounds, benchmarks and comparisons for tests, in few words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from regress.compare import compare
from regress.model import Benchmark, Comparison, Failure, Measured, Protocol, Round, Settings

SETTINGS = Settings()
QUIET = (1.0, 1.002, 0.998, 1.001, 0.999)
"""Factors of five rounds that differ by 0.2 %."""
NOISY = (1.0, 1.2, 0.85, 1.1, 0.9)
MIB = 1024.0 * 1024

Values = Mapping[str, Sequence[float]]


def rounds(
    name: str = "ops.cudatime_add",
    params: Sequence[str] = (),
    metric: str = "gpu_time",
    exact: frozenset[str] | set[str] = frozenset(),
    unit: str = "",
    protocol: Mapping[str, Any] | None = None,
    flags: Sequence[str] = (),
    **values: Sequence[float],
) -> list[Round]:
    """One round for each value of the longest sequence; shorter sequences are metrics of the first rounds only."""
    units = {"peak_memory": "B", "peak_rss": "B", "launches": "count", "value": unit or "score"}
    return [
        Round(
            name,
            list(params),
            side="",
            order=order,
            protocol=Protocol(metric, **(protocol or {})),
            flags=list(flags),
            values={
                key: Measured(series[order], [series[order]], unit=unit or units.get(key, "s"), exact=key in exact)
                for key, series in values.items()
                if order < len(series)
            },
        )
        for order in range(max(map(len, values.values())))
    ]


def scaled(center: float, factors: Sequence[float] = QUIET) -> list[float]:
    return [center * factor for factor in factors]


def broken(kind: str = "error", count: int = 5, **options: Any) -> list[Round]:
    failure = Failure(kind, "ValueError: no such kernel", "ops.py:12")
    return [replace(round, values={}, failure=failure) for round in rounds(gpu_time=[0.0] * count, **options)]


def benchmark(name: str = "ops.cudatime_add", **changes: Any) -> Benchmark:
    fields = {"params": [], "param_names": [], "version": "1", "metric": "gpu_time", **changes}
    return Benchmark(name, "time", "seconds", needs_device=True, **fields)


def known(*benchmarks: Benchmark) -> dict[str, Benchmark]:
    return {benchmark.name: benchmark for benchmark in benchmarks}


def one(base: Sequence[Round], head: Sequence[Round], *defined: Benchmark, settings: Settings = SETTINGS) -> Comparison:
    """The only comparison of these rounds."""
    (comparison,) = compare(base, head, known(*defined) or None, settings)
    return comparison


def by_metric(comparisons: Sequence[Comparison]) -> dict[str, Comparison]:
    assert len({comparison.metric.name for comparison in comparisons}) == len(comparisons)
    return {comparison.metric.name: comparison for comparison in comparisons}


def tracked(values: Sequence[float], unit: str = "score", exact: bool = False) -> list[Round]:
    return rounds("ops.track_x", metric="value", unit=unit, exact={"value"} if exact else set(), value=values)
