"""Exports as rounds: a run of a program is one round of each of its operations, whatever its number of entries.

Entries of one process share allocator, code layout and clocks, so they are samples, not rounds. The value of a round is the
median of its entries' times. Entries of one operation with different details (`size=1024`) are different cases.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence

from regress.model import Benchmark, Measured, Protocol, Round
from regress.profiles import Profile, Variant

METRICS = {"gpu": "gpu_time", "cpu": "wall_time"}


def rounds_of(side: str, exports: Sequence[Profile]) -> list[Round]:
    """The rounds of a side, one an export and case."""
    return [
        _round(side, order, export, variant)
        for order, export in enumerate(exports)
        for variant in export.variants
        if variant.durations_s
    ]


def benchmarks_of(exports: Iterable[Profile]) -> dict[str, Benchmark]:
    """The operations as a store knows benchmarks: by name, with the details of all exports as parameters."""
    by_name: dict[str, list[Variant]] = {}
    for export in exports:
        for variant in export.variants:
            by_name.setdefault(variant.operation, []).append(variant)
    return {name: _benchmark(name, variants) for name, variants in by_name.items()}


def _benchmark(name: str, variants: Sequence[Variant]) -> Benchmark:
    metric = METRICS[variants[0].device]
    values = dict.fromkeys(_param(variant) for variant in variants)
    params, names = ([list(values)], ["details"]) if any(values) else ([], [])
    return Benchmark(
        name=name,
        type="time",
        unit="seconds",
        params=params,
        param_names=names,
        version=f"profiled {metric}",
        metric=metric,
        needs_device=metric == "gpu_time",
    )


def _param(variant: Variant) -> str:
    return ", ".join(f"{key}={_word(value)}" for key, value in variant.details.items())


def _word(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _round(side: str, order: int, export: Profile, variant: Variant) -> Round:
    metric, on_device = METRICS[variant.device], variant.device == "gpu"
    values = {metric: _measured(variant.durations_s)}
    if on_device:
        values["host_time"] = _measured(variant.hosts_s)
    if variant.peak_bytes is not None:
        values["peak_memory"] = Measured(float(variant.peak_bytes), [float(variant.peak_bytes)], "B")
    param = _param(variant)
    return Round(
        name=variant.operation,
        params=[param] if param else [],
        side=side,
        order=order,
        process=export.process,
        started_at=export.started_at,
        duration_s=export.duration_s,
        protocol=Protocol(metric),
        values=values,
        facts=dict(export.facts),
    )


def _measured(samples: Sequence[float]) -> Measured:
    return Measured(statistics.median(samples), list(samples))
