"""Kernels one by one, as Nsight Compute measures them."""

from __future__ import annotations

from dataclasses import dataclass

from regress.measure.wire import Failure
from regress.model.measurement import Case
from regress.model.profile import Bound


@dataclass(frozen=True)
class KernelMetrics:
    """What Nsight Compute measured of one launch. Shares are of what the device has (0.5 is half); None if not collected.

    The profiler runs every kernel alone and several times over, with cold caches: durations are not those of a program."""

    kernel: str
    grid: tuple[int, int, int] | None = None
    block: tuple[int, int, int] | None = None
    duration_s: float | None = None
    achieved_occupancy: float | None = None
    theoretical_occupancy: float | None = None
    memory_throughput: float | None = None
    """The busiest part of the memory system, caches too, as a share of its peak."""
    dram_throughput: float | None = None
    dram_bytes_s: float | None = None
    compute_throughput: float | None = None
    """The busiest pipe of the multiprocessors, as a share of its peak."""
    tensor_use: float | None = None
    """Of the tensor cores' peak."""
    l1_hit_rate: float | None = None
    l2_hit_rate: float | None = None
    registers: int | None = None
    """A thread."""
    shared_bytes: int | None = None
    """A block, static and dynamic."""
    waves: float | None = None
    """Blocks of the grid over those that the device holds at once."""
    device: str = ""
    """Name of the GPU, if the table has it."""


@dataclass(frozen=True)
class MeteredKernel:
    """The launches of one kernel with one grid and block: their sum in a call, and what limits them."""

    label: str
    """The name without template arguments and parameters; with them where several are called so, and the grid if need be."""
    launches: float
    """Per call, like the seconds; in all if it is not of a case."""
    seconds: float
    share: float | None
    """Share of the time of all kernels; None if no time was collected."""
    bound: Bound
    metrics: KernelMetrics
    """The mean of its launches, each weighted by its time."""


@dataclass(frozen=True)
class Metered:
    """The kernels of a case's calls, or of an export, as Nsight Compute measured each alone; the one that takes longest first.

    Without kernels there is a failure."""

    case: Case
    calls: int = 0
    """How many calls were profiled; zero for an export, which may be of anything."""
    kernels: tuple[MeteredKernel, ...] = ()
    table: str = ""
    """The file of the CSV."""
    report: str = ""
    """The file that Nsight Compute opens; empty of an export."""
    flags: tuple[str, ...] = ()
    failure: Failure | None = None

    @property
    def is_empty(self) -> bool:
        return not self.kernels

    @property
    def seconds(self) -> float:
        return sum(kernel.seconds for kernel in self.kernels)
