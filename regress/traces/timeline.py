"""What happened on host and device while some calls ran: the nouns that readers make, and that totals are made of."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Literal, TypeVar

from regress.traces.intervals import Within

Size3 = tuple[int, int, int]
CopyKind = Literal[
    "host to device", "device to host", "device to device", "host to host", "peer to peer", "memset", "other"
]
TO_HOST: CopyKind = "device to host"


@dataclass(frozen=True, slots=True)
class TimedEvent:
    """Something that took time."""

    name: str
    start_s: float
    duration_s: float

    @property
    def end_s(self) -> float:
        return self.start_s + self.duration_s


@dataclass(frozen=True, slots=True)
class DeviceWork(TimedEvent):
    """Something that the device did because the host asked for it."""

    device: int = 0
    stream: int = 0
    correlation: int | None = None
    """Ties it to the ApiCall that asked for it; the kernels of a CUDA graph share one."""
    operators: tuple[str, ...] = ()
    """The operators that requested it, the outermost first; empty if no operators were recorded."""
    shapes: str = ""
    """Shapes of the outermost operator's arguments, as they were recorded."""
    dtypes: str = ""
    """Types of the arguments that have a shape."""


@dataclass(frozen=True, slots=True)
class Launch(DeviceWork):
    """One launch of a kernel, as it ran on the device."""

    grid: Size3 | None = None
    block: Size3 | None = None
    registers: int | None = None
    """A thread."""
    shared_bytes: int | None = None
    """A block, static and dynamic."""
    occupancy: float | None = None
    """Estimated share of the possible warps (0.5 is half); None if the profiler has no estimate."""


@dataclass(frozen=True, slots=True)
class Copy(DeviceWork):
    """One copy of memory, or one memset."""

    kind: CopyKind = "other"
    bytes: int = 0


@dataclass(frozen=True, slots=True)
class HostEvent(TimedEvent):
    """Something that a thread of the host did."""

    thread: int = 0


@dataclass(frozen=True, slots=True)
class ApiCall(HostEvent):
    """A call into the CUDA runtime or driver; names without the version that some profilers append."""

    correlation: int | None = None


@dataclass(frozen=True, slots=True)
class Sync(HostEvent):
    """The host waiting for the device."""

    operators: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Operator(HostEvent):
    """An operator of the framework, on the host. `path` are the operators around it and itself, the outermost first."""

    path: tuple[str, ...] = ()
    shapes: str = ""
    dtypes: str = ""


@dataclass(frozen=True, slots=True)
class MarkedRange(HostEvent):
    """What the program itself marked: an annotation of torch.profiler, an NVTX range."""


@dataclass(frozen=True, slots=True)
class Allocation:
    """A change of the allocator's books; `bytes` is negative where memory was given back."""

    at_s: float
    bytes: int
    allocated_bytes: int
    """In all, afterwards."""
    reserved_bytes: int = 0
    on_device: bool = True


@dataclass(frozen=True)
class Timeline:
    """Everything recorded between `start_s` and `end_s`, while the host made `calls` calls and the device worked them off.

    Each column is in the order of its start. `gaps_in_record` says what the file lacks, in words."""

    start_s: float
    end_s: float
    calls: int = 1
    launches: tuple[Launch, ...] = ()
    copies: tuple[Copy, ...] = ()
    syncs: tuple[Sync, ...] = ()
    api_calls: tuple[ApiCall, ...] = ()
    operators: tuple[Operator, ...] = ()
    ranges: tuple[MarkedRange, ...] = ()
    allocations: tuple[Allocation, ...] = ()
    overheads: tuple[HostEvent, ...] = ()
    """The profiler's own work: requesting buffers, writing them out. It is included in the times of the work it delayed."""
    device: str = ""
    """Name of the device that did the work, if recorded."""
    gaps_in_record: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.calls < 1:
            raise ValueError("a timeline is of at least one call")

    @property
    def span_s(self) -> float:
        return self.end_s - self.start_s

    @property
    def work(self) -> Iterator[DeviceWork]:
        yield from self.launches
        yield from self.copies


# -- what waits ----------------------------------------------------------------------------------------------------------

_SYNC = re.compile(
    r"(cuda(Stream|Device|Event|Thread)Synchronize|cu(Stream|Ctx|Event)Synchronize|cudaMemcpy|cudaMemcpy2D)"
)
_VERSION = re.compile(r"(_v\d+|_ptsz|_ptds)+$")


def plain_api_name(name: str) -> str:
    """The name of an API function without the suffix of its version: `cudaLaunchKernel_v7000` -> `cudaLaunchKernel`."""
    return _VERSION.sub("", name)


def is_sync(api_name: str) -> bool:
    """Whether the API function returns only when the device is done; a copy that is not asynchronous does."""
    return _SYNC.fullmatch(api_name) is not None


# -- one range of it -----------------------------------------------------------------------------------------------------

E = TypeVar("E", bound=TimedEvent)


def when_asked(timeline: Timeline) -> Callable[[DeviceWork], float]:
    """Takes work of the device and returns when the host requested it or, if that was not recorded, when it started."""
    asked = {call.correlation: call.start_s for call in timeline.api_calls if call.correlation is not None}

    def asked_s(work: DeviceWork) -> float:
        asked_at = None if work.correlation is None else asked.get(work.correlation)
        return work.start_s if asked_at is None else asked_at

    return asked_s


def between(timeline: Timeline, mark: str, skip: int = 0) -> Timeline:
    """The part of a timeline that the ranges of that name cover, one call each, with the work requested in them.

    `skip` leaves out that many calls at the start, in which profilers request their buffers. The part starts when the device
    has finished earlier work, or has begun work for these calls. Work whose API call was not recorded counts by its own start.
    Raises KeyError if no such range is left.
    """
    marks = sorted((span for span in timeline.ranges if span.name == mark), key=lambda span: span.start_s)[skip:]
    if not marks:
        raise KeyError(mark)
    first_s, last_s = marks[0].start_s, max(span.end_s for span in marks)
    inside = Within((span.start_s, span.end_s) for span in marks)
    asked_s = when_asked(timeline)

    def of_host(events: tuple[E, ...]) -> tuple[E, ...]:
        return tuple(event for event in events if event.start_s in inside)

    launches = tuple(launch for launch in timeline.launches if asked_s(launch) in inside)
    copies = tuple(copy for copy in timeline.copies if asked_s(copy) in inside)
    before_s = max((piece.end_s for piece in timeline.work if asked_s(piece) < first_s), default=first_s)
    first_work_s = min((piece.start_s for piece in (*launches, *copies)), default=first_s)
    return replace(
        timeline,
        start_s=max(first_s, min(before_s, first_work_s)),
        end_s=max([last_s, *(launch.end_s for launch in launches), *(copy.end_s for copy in copies)]),
        calls=len(marks),
        launches=launches,
        copies=copies,
        syncs=of_host(timeline.syncs),
        api_calls=of_host(timeline.api_calls),
        operators=of_host(timeline.operators),
        ranges=of_host(timeline.ranges),
        allocations=tuple(allocation for allocation in timeline.allocations if allocation.at_s in inside),
        overheads=of_host(timeline.overheads),
    )
