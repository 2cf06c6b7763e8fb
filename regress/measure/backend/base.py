"""What a measuring loop needs of a device and a clock; one class a kind of device.

The loop enqueues work and records events; it never asks which library does the work. A backend without a device (`cpu`)
offers the host clock alone.
"""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass, field
from typing import Any, Callable, ContextManager, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from ..ranks import ALONE, Ranks
from .frameworks import make_lanes
from .nvml import Foreign
from .recording import Profiler, TorchProfiler


class DeviceError(RuntimeError):
    """The device or its driver answered with an error. `sticky`: the context is lost, and only a new process can continue."""

    def __init__(self, message: str, sticky: bool = False) -> None:
        super().__init__(message)
        self.sticky = sticky


class MemoryProbe:
    """Reads the memory that an allocator handed out, in requested bytes, relative to when it was opened."""

    name = ""
    exact = True
    """The same code gives the same bytes; False if other things move the reading too."""

    def __enter__(self) -> MemoryProbe:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def current(self) -> int:
        """Bytes requested and not yet given back."""
        raise NotImplementedError

    def release(self) -> None:
        """Release cached blocks, so the next case is not served from another's leftovers."""

    def reset_peak(self) -> None:
        raise NotImplementedError

    def peak(self) -> int:
        """Largest value of `current` since `reset_peak`."""
        raise NotImplementedError

    def levels(self) -> Tuple[int, int]:
        """`current` and `peak`, from one reading if the allocator reports them together."""
        return self.current(), self.peak()

    def allocations(self) -> Optional[int]:
        """Allocations so far, or None if they are not counted."""
        return None


class ReckonedMemory(MemoryProbe):
    """Memory summed up from what an allocator reports for every block."""

    def __init__(self) -> None:
        self._current = self._peak = self._allocations = 0

    def change(self, nbytes: int) -> None:
        """`nbytes` were allocated, or freed if negative."""
        self._current += nbytes
        self._allocations += nbytes > 0
        self._peak = max(self._peak, self._current)

    def current(self) -> int:
        return self._current

    def reset_peak(self) -> None:
        self._peak = self._current

    def peak(self) -> int:
        return self._peak

    def allocations(self) -> int:
        return self._allocations


@dataclass
class Calls:
    """What the device was asked to do while it was counted; `unavailable` says why that is not known."""

    launches: int = 0
    synchronizations: int = 0
    copies: int = 0
    kernels: Dict[str, None] = field(default_factory=dict)
    """Names of the kernels, each once, in the order of their first launch."""
    unavailable: str = ""


MARKER = "regress_spin"
"""Name of the spin kernel in a trace."""


class Activity(NamedTuple):
    """A stretch of time in which the device did one thing, in seconds of the tracer's own clock."""

    kind: str
    """kernel, copy (between host and device, or between devices), or fill (memory set or copied within the device)."""
    name: str
    start_s: float
    end_s: float
    nbytes: int = 0


class Tracer:
    """Reports afterwards what the device did. It does not wait: work that is not over yet is reported the next time.

    This one reports nothing, for the given reason.
    """

    def __init__(self, unavailable: str = "") -> None:
        self._unavailable = unavailable
        self.overrun = False
        """Records were lost because more arrived than are kept. The reader resets it."""

    def start(self) -> str:
        """Start tracing; returns the reason if that is impossible."""
        return self._unavailable

    def again(self) -> str:
        """Start again if records have stopped arriving; returns the reason if that is impossible."""
        self.stop()
        return self.start()

    def stop(self) -> None:
        """Stop tracing. Earlier records can still be collected."""

    def collect(self, flush: bool = False) -> List[Activity]:
        """Records not collected yet, ordered by their end on each stream; `flush` asks for buffered ones too."""
        return []


class Backend:
    """Only the host clock. `has_device` is False, and `gpu_time` is not available for the reason in `why_no_device`."""

    name = "cpu"
    has_device = False
    why_no_device = "the device is set to cpu"
    real_clock = True
    """Whether `now` is real time; otherwise nothing can take the core from it."""
    ranks: Ranks = ALONE
    """The processes that measure together with this one, for decisions about the next call."""

    def now(self) -> float:
        """Host clock in seconds; only differences mean anything."""
        return time.perf_counter()

    def facts(self) -> Dict[str, Any]:
        """What should be known about this device to compare values later."""
        return {}

    def synchronize(self) -> None:
        """Wait until the device has done everything. Raises DeviceError if earlier work failed."""

    def pause(self, seconds: float) -> None:
        """Do nothing for that long."""
        time.sleep(seconds)

    def begin_case(self, name: str, order: int) -> None:
        """Called before each case; the scripted device draws its noise from it."""

    def memory(self) -> Optional[MemoryProbe]:
        """The probe of the allocator in use, or None if none can be read."""
        return None

    def counting(self) -> ContextManager[Calls]:
        """Count what the device is asked to do while this is open; the counts are there when it is closed."""
        return _uncounted("there is no device")

    def device_state(self) -> Dict[str, Any]:
        """Temperature, power and throttling reasons right now, for a `DeviceWatch`; empty if unknown."""
        return {}

    def processes(self, ours: Optional[int] = None) -> List[Foreign]:
        """Other processes that compute on the device, without those that descend from the process `ours`."""
        return []

    def profiler(self) -> Profiler:
        """A profiler for one recording. Raises NoProfiler."""
        return TorchProfiler()

    def taken_share(self) -> float:
        """Share of the device's memory in use by anybody; 0 if unknown."""
        return 0.0


class DeviceBackend(Backend):
    """A device whose work is timed with events on the current stream."""

    has_device = True
    why_no_device = ""
    window_overhead_s = 0.0
    """Median time between two events with nothing between them; taken off every window. Set by `calibration.calibrate`."""
    clock_step_s = 0.0
    """Smallest difference of two event times."""
    _lanes: List[ContextManager[object]] = []  # noqa: RUF012  # replaced, never changed
    _lanes_of: Sequence[str] = ()

    def lanes(self, count: int) -> List[ContextManager[object]]:
        """At most `count` contexts; in each, another stream is the current one. The first may be the current stream itself.

        One if no framework in use can switch streams.
        """
        frameworks = self.frameworks()
        if len(self._lanes) < count or self._lanes_of != frameworks:
            # Kept for all cases: allocators hold memory for every stream that they have seen.
            self._lanes, self._lanes_of = make_lanes(count, frameworks), frameworks
        return self._lanes[:count]

    def hold_stream(self, handle: Optional[int] = None) -> None:
        """Look up the current stream, or take the one of that handle; events and spins go there until the next time."""

    def stream_reader(self) -> Callable[[], int]:
        """A function that reads the handle of the current stream, cheap enough to be called for every event."""
        return lambda: 0

    def frameworks(self) -> List[str]:
        """Names of the frameworks that are in use; the first one's stream is the current one."""
        return []

    def here(self) -> ContextManager[object]:
        """While it is open, this device is the current one of this thread; afterwards it is what it was."""
        return contextlib.nullcontext()

    def capturing(self) -> bool:
        """Whether work on the held stream is being captured as a graph instead of run."""
        return False

    def unheard(self) -> ContextManager[object]:
        """While it is open, this thread may ask after events although another one captures a graph."""
        return contextlib.nullcontext()

    def tracer(self) -> Tracer:
        """A tracer of this device."""
        return Tracer("this kind of device cannot be traced")

    def energy_j(self) -> Optional[float]:
        """Joules that the device has taken so far, from any beginning; None if it does not count them."""
        return None

    def limits(self) -> Dict[str, float]:
        """The hardware's peak: `memory_bytes_s`, `float32_flops_s`; unknown values are left out."""
        return {}

    def stream_handle(self, stream: Any) -> int:
        """The driver's handle of a framework's stream object. Raises TypeError for anything else."""
        raise TypeError(f"{type(stream).__name__} is not a stream of this device")

    def fork(self, event: int, streams: Sequence[int]) -> None:
        """Let the streams wait for the event, which was recorded in the current stream."""
        raise NotImplementedError

    def join(self, streams: Sequence[int]) -> None:
        """Let the current stream wait for what the streams hold by now."""
        raise NotImplementedError

    def flush(self) -> None:
        """Enqueue work that leaves nothing of earlier calls in the device's caches."""
        raise NotImplementedError

    def idle(self) -> bool:
        """Whether the current stream has nothing left to do; does not wait."""
        raise NotImplementedError

    def use_events(self, count: int) -> None:
        """Make sure that events 0 to count-1 exist."""
        raise NotImplementedError

    def record(self, event: int) -> None:
        """Put the event into the current stream."""
        raise NotImplementedError

    def elapsed(self, start: int, end: int) -> float:
        """Seconds between two events that have both passed."""
        raise NotImplementedError

    def passed(self, event: int) -> bool:
        """Whether the device has reached the event; does not wait."""
        raise NotImplementedError

    def spin(self, seconds: float) -> None:
        """Keep the current stream busy for that long without touching memory."""
        raise NotImplementedError

    def clocks_hz(self) -> List[float]:
        """SM clocks seen during the spins since the last call; needs a synchronized device."""
        return []

    def counting(self) -> ContextManager[Calls]:
        return _uncounted("this kind of device does not report its calls")


@contextlib.contextmanager
def _uncounted(why: str) -> Iterator[Calls]:
    yield Calls(unavailable=why)
