"""Launches as Nsight Compute measured them -> Metered: the kernels of a call, the one that takes longest first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import fsum
from typing import Any

from regress.model import Case, KernelMetrics, Metered, MeteredKernel
from regress.traces import bound
from regress.traces.names import labels

MEANS = (
    "achieved_occupancy",
    "theoretical_occupancy",
    "memory_throughput",
    "dram_throughput",
    "dram_bytes_s",
    "compute_throughput",
    "tensor_use",
    "l1_hit_rate",
    "l2_hit_rate",
    "waves",
)
"""The metrics of a kernel's launches that are averaged. The rest is the same for all of them."""


def metered(case: Case, launches: Iterable[KernelMetrics], calls: int = 0) -> Metered:
    """The sum of the launches of `calls` calls; for an export, if their number is unknown, in all.

    Launches of a kernel with another grid or block do other work, and count as a separate kernel.
    """
    groups: dict[tuple[object, ...], list[KernelMetrics]] = {}
    for launch in launches:
        key = (launch.kernel, launch.grid, launch.block, launch.registers, launch.shared_bytes)
        groups.setdefault(key, []).append(launch)
    whole_s = fsum(launch.duration_s or 0.0 for group in groups.values() for launch in group)
    told = _labels([group[0] for group in groups.values()])
    kernels = [_kernel(group, label, calls or 1, whole_s) for group, label in zip(groups.values(), told, strict=True)]
    kernels.sort(key=lambda kernel: (-kernel.seconds, kernel.label))
    return Metered(case, calls, tuple(kernels))


def _labels(kernels: Sequence[KernelMetrics]) -> list[str]:
    """As short as possible while unique; with the grid if one kernel is launched with several."""
    names, told = Counter(launch.kernel for launch in kernels), labels(launch.kernel for launch in kernels)
    return [told[launch.kernel] + (f" on {launch.grid}" if names[launch.kernel] > 1 else "") for launch in kernels]


def _kernel(group: Sequence[KernelMetrics], label: str, calls: int, whole_s: float) -> MeteredKernel:
    seconds = fsum(launch.duration_s or 0.0 for launch in group)
    timed = [launch.duration_s for launch in group if launch.duration_s is not None]
    means: dict[str, Any] = {name: _mean(group, name) for name in MEANS}
    metrics = replace(group[0], duration_s=fsum(timed) / len(timed) if timed else None, **means)
    return MeteredKernel(
        label=label,
        launches=len(group) / calls,
        seconds=seconds / calls,
        share=seconds / whole_s if whole_s > 0 else None,
        bound=bound.of_metrics(metrics),
        metrics=metrics,
    )


def _mean(group: Sequence[KernelMetrics], name: str) -> float | None:
    """By time: what a launch of twice the length did counts twice. Without times, all launches count alike."""
    known = [(getattr(launch, name), launch.duration_s or 0.0) for launch in group if getattr(launch, name) is not None]
    weights = fsum(weight for _, weight in known)
    if weights > 0:
        return fsum(value * weight for value, weight in known) / weights
    return fsum(value for value, _ in known) / len(known) if known else None


def devices(results: Iterable[Metered]) -> str:
    """Names of the GPUs that the kernels ran on."""
    return ", ".join(sorted({kernel.metrics.device for result in results for kernel in result.kernels} - {""}))
