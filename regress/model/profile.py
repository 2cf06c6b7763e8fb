"""A case under a profiler: where the time of a call went, and its bottleneck."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from regress.measure.wire import Failure
from regress.model.measurement import Case, Throughput


@dataclass(frozen=True)
class KernelUse:
    """The launches of one kernel in one call; also used for one kind of copy."""

    name: str
    """As the profiler spells it, with template arguments."""
    launches: float
    """A call, as all the sums here."""
    seconds: float
    """On the device."""
    host_s: float = 0.0
    """Inside the API calls that launched it."""
    bytes: float = 0.0
    """Copied or set; zero for a kernel."""
    grid: tuple[int, int, int] | None = None
    """Of its longest launch, as the rest."""
    block: tuple[int, int, int] | None = None
    registers: int | None = None
    shared_bytes: int | None = None
    occupancy: float | None = None
    """A share, as the profiler estimates it or has measured it."""
    operators: tuple[str, ...] = ()
    """The operators that it was first launched in, the outermost first."""
    shapes: str = ""
    dtypes: str = ""
    """Of the arguments of the outermost one."""
    short: str = ""
    """The name without template arguments and parameters."""

    @property
    def label(self) -> str:
        return self.short or self.name

    @property
    def bytes_s(self) -> float | None:
        """Bytes a second of a way of copying; None of a kernel."""
        return self.bytes / self.seconds if self.bytes and self.seconds > 0 else None


@dataclass(frozen=True)
class Bound:
    """What limits a kernel or a call, how close it is to that limit (0.5 is half), and what to try."""

    kind: Literal["memory-bound", "compute-bound", "launch-bound", "latency-bound", "unknown"]
    share: float | None
    why: str
    advice: str


@dataclass(frozen=True)
class Totals:
    """Where the time of a call went. Host and device work side by side: their times do not add up to the span."""

    span_s: float
    """From the start on the host until the device is done. Zero where only sums are known: then idle and overlap are too."""
    device_busy_s: float
    """With a kernel, a copy or a memset running, side by side or not."""
    idle_s: float
    """The rest of the span."""
    kernels_s: float
    copies_s: float
    host_busy_s: float
    """In operators and API calls, without waiting for the device. What runs between them is not recorded."""
    waiting_s: float
    """The host was waiting for the device."""
    overlap_s: float
    """Host and device were busy at the same time."""
    profiler_s: float
    """The profiler itself was at work; this is in the other times too."""
    launches: float
    copies: float
    synchronizations: float


@dataclass(frozen=True)
class OperatorUse:
    """One operator's times in a call. Times without "own" include the operators inside it."""

    name: str
    calls: float
    host_s: float
    own_host_s: float
    device_s: float
    own_device_s: float
    launches: float


@dataclass(frozen=True)
class ApiUse:
    """One function of CUDA's runtime or driver in a call, on the host."""

    name: str
    calls: float
    seconds: float


@dataclass(frozen=True)
class Gap:
    """A time in which the device had nothing to do."""

    start_s: float
    duration_s: float
    after: str
    """The work that ended there; empty at the start."""
    before: str
    """The work that ended the gap; empty at the end."""
    host: str
    """What the host did for most of it: an operator, an API call; empty if neither."""


@dataclass(frozen=True)
class MemoryUse:
    """What the allocator of the device did over the whole timeline."""

    peak_bytes: int
    """The most that was allocated at a time."""
    allocated_bytes: int
    """Asked for in all."""
    left_bytes: int
    """More than at the start; negative where less."""


@dataclass(frozen=True)
class Bottleneck:
    """What takes the largest share of the span: a kernel, copying, or the device's waiting; without a device, an operator."""

    kind: Literal["kernel", "copies", "idle", "operator"]
    name: str
    share: float


@dataclass(frozen=True)
class PartUse:
    """A part of a call that the program marked (record_function, an NVTX range)."""

    name: str
    uses: float
    host_s: float
    device_s: float
    """Of the work that was asked for in it."""
    launches: float


@dataclass(frozen=True)
class CallProfile:
    """Where the time of a case's calls goes, as a profiler saw it. Without totals there is a failure, or nothing was seen."""

    case: Case
    call_s: float = 0.0
    """A call without the profiler, in the same process; zero if it was not timed."""
    calls: int = 0
    """How many were profiled."""
    trace: str = ""
    """The path of the Chrome trace."""
    component: str = ""
    """The part of a whole that the case is, if its benchmark has a parameter of that name."""
    share: float | None = None
    """Share of the sum of all components, by device time; by the span without a device."""
    host_s: float = 0.0
    """Host time of a call: until it has requested all work, including any waits."""
    idle_s: float = 0.0
    """Time the device was idle, in a call without the profiler, which hardly changes the busy time but does change the idle
    time. From the profiled calls if none was timed without."""
    totals: Totals | None = None
    parts: tuple[PartUse, ...] = ()
    operators: tuple[OperatorUse, ...] = ()
    kernels: tuple[KernelUse, ...] = ()
    copies: tuple[KernelUse, ...] = ()
    api_calls: tuple[ApiUse, ...] = ()
    gaps: tuple[Gap, ...] = ()
    memory: MemoryUse | None = None
    bottleneck: Bottleneck | None = None
    bound: Bound | None = None
    """None without device work."""
    throughput: Throughput | None = None
    """The declared work over the time in which the device was busy."""
    on_device: bool = False
    """Whether work of a device was recorded."""
    flags: tuple[str, ...] = ()
    failure: Failure | None = None

    @property
    def is_empty(self) -> bool:
        return self.totals is None

    def label(self, name: str) -> str:
        """A kernel's name for people."""
        return next((kernel.label for kernel in (*self.kernels, *self.copies) if kernel.name == name), name)
