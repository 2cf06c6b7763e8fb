"""What a measuring loop needs of a device and a clock; one class a kind of device.

The loop enqueues work and records events; it never asks which library does the work. A backend without a device (`cpu`)
offers the host clock alone.
"""

from __future__ import annotations

import time
from typing import Any, Dict, List, Optional


class DeviceError(RuntimeError):
    """The device or its driver answered with an error. `sticky`: the context is lost, only a new process can go on."""

    def __init__(self, message: str, sticky: bool = False) -> None:
        super().__init__(message)
        self.sticky = sticky


class MemoryProbe:
    """Reads the memory that an allocator handed out, in requested bytes."""

    name = ""

    def current(self) -> int:
        """Bytes requested and not yet given back."""
        raise NotImplementedError

    def release(self) -> None:
        """Give cached blocks back, so that what comes next is not served from another case's leftovers."""

    def reset_peak(self) -> None:
        raise NotImplementedError

    def peak(self) -> int:
        """Largest value of `current` since `reset_peak`."""
        raise NotImplementedError


class Backend:
    """The host clock alone. `has_device` is False: `gpu_time` is not to be had, the reason stands in `why_no_device`."""

    name = "cpu"
    has_device = False
    why_no_device = "the device is set to cpu"

    def now(self) -> float:
        """Host clock in seconds; only differences mean anything."""
        return time.perf_counter()

    def facts(self) -> Dict[str, Any]:
        """What should be known about this device to compare values later."""
        return {}

    def synchronize(self) -> None:
        """Wait until the device has done everything. Raises DeviceError where earlier work failed."""

    def begin_case(self, name: str, order: int) -> None:
        """Called before each case; the scripted device draws its noise from it."""

    def memory(self) -> Optional[MemoryProbe]:
        """The probe of the allocator in use, or None where none can be read."""
        return None


class DeviceBackend(Backend):
    """A device whose work is timed with events on the current stream."""

    has_device = True
    why_no_device = ""
    window_overhead_s = 0.0
    """Median time between two events with nothing between them; subtracted from every window. Set by `loop.calibrate`."""
    clock_step_s = 0.0
    """Smallest difference of two event times."""

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
