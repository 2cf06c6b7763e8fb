"""The scripted device: code under test states its costs, a virtual clock adds them up.

Code reaches it as the module `regress_scripted` (the worker installs it when the device is `fake`):

    import regress_scripted
    buffer = regress_scripted.alloc(4096)          # device memory, freed when the object is dropped
    regress_scripted.kernel("softmax", 27.4e-6)    # enqueue device work
    regress_scripted.copy(4096, 3e-6)              # enqueue a copy between host and device
    regress_scripted.host(5e-6)                    # Python work
    regress_scripted.synchronize()                 # the host waits for the device
    regress_scripted.wait_for(7)                   # the current stream waits for stream 7
    regress_scripted.idle()                        # whether the current stream has nothing left to do
    regress_scripted.hold_back("hw_thermal", 2)    # the next two readings of the device's state give that reason
    regress_scripted.company(812)                  # from now on another process computes on the device
    regress_scripted.lose_context(3)               # the third synchronize from now finds the context lost

A scripted host has four identical devices; CUDA_VISIBLE_DEVICES chooses one by its UUID.

The device runs its queue in order while the host goes on, as a CUDA stream does; a stream that runs dry waits for the host.
Costs vary from round to round and from sample to sample by a noise that depends on the seed, the side, the case and the index
of the round only, so that a run repeats exactly. What the host's clock reads varies mostly with the round, for both sides
alike.
"""

from __future__ import annotations

import contextlib
import math
import os
import random
import sys
import types
from typing import Any, Callable, ContextManager, Dict, Iterator, List, Optional, Sequence

from .base import (
    MARKER,
    Activity,
    Calls,
    DeviceBackend,
    DeviceError,
    MemoryProbe,
    ReckonedMemory,
    Tracer,
)
from .nvml import Foreign
from .recording import Profiler, ScriptedProfiler

LAUNCH_S = 4e-6
RECORD_S = 2e-6
QUERY_S = 1e-6
SYNCHRONIZE_S = 10e-6
CALL_S = 50e-9
"""Cost of reading the host clock, so virtual time always advances."""
WINDOW_S = 1.25e-6
FLUSH_S = 40e-6
FIRST_LANE = 1000
"""Numbers of streams from here up are lanes."""
CLOCK_HZ = 1.98e9
IDLE_W, BUSY_W, ENERGY_STEP_S = 100.0, 500.0, 0.02
"""Power, and how often what it comes to is counted."""

UUIDS = ("scripted", "scripted-1", "scripted-2", "scripted-3")

ROUND_SD = 0.003
"""Standard deviation of a round's level."""
SAMPLE_SD = 0.002
HOST_SD, OWN_HOST_SD = 0.03, 0.004
"""The same for the host's clock: the state of the core, shared by both sides of a round, and each process's own part."""


class Buffer:
    """Scripted device memory; dropping the object frees it."""

    def __init__(self, probe: ScriptedMemory, nbytes: int) -> None:
        self._probe, self.nbytes = probe, nbytes
        probe.change(nbytes)

    def __del__(self) -> None:
        self._probe.change(-self.nbytes)


class ScriptedMemory(ReckonedMemory):
    name = "scripted"
    profiler: Optional[ScriptedProfiler] = None

    def change(self, nbytes: int) -> None:
        super().change(nbytes)
        if self.profiler is not None:
            self.profiler.changed(nbytes, self._current)


TRACE_EPOCH_S, TRACE_RATE = 5000.0, 1 + 20e-6
"""The trace has a separate clock, which starts elsewhere and drifts, as on real devices."""


class ScriptedTracer(Tracer):
    """What the scripted device did, reported once it is over."""

    def __init__(self, backend: FakeBackend) -> None:
        super().__init__()
        self._backend, self._on = backend, False
        self._seen: List[Activity] = []

    def start(self) -> str:
        self._on = True
        return ""

    def stop(self) -> None:
        self._on = False

    def saw(self, kind: str, name: str, start_s: float, end_s: float, nbytes: int) -> None:
        if self._on:
            start_s, end_s = (TRACE_EPOCH_S + TRACE_RATE * at_s for at_s in (start_s, end_s))
            self._seen.append(Activity(kind, name, start_s, end_s, nbytes))

    def collect(self, flush: bool = False) -> List[Activity]:
        now = TRACE_EPOCH_S + TRACE_RATE * self._backend.host_s
        over = sorted(
            (activity for activity in self._seen if activity.end_s <= now), key=lambda activity: activity.end_s
        )
        self._seen = [activity for activity in self._seen if activity.end_s > now]
        return over


class _ScriptedLane:
    """While it is open, another stream is the current one."""

    def __init__(self, backend: FakeBackend, stream: int) -> None:
        self._backend, self._stream = backend, stream

    def __enter__(self) -> None:
        self._before = self._backend.use_stream(self._stream)

    def __exit__(self, *_: object) -> None:
        self._backend.use_stream(self._before)


class FakeBackend(DeviceBackend):
    """A device with a virtual clock. Times are seconds of virtual time; no real time passes."""

    name = "fake"
    real_clock = False
    window_overhead_s = WINDOW_S
    clock_step_s = 1e-9

    def __init__(self, seed: int = 0, side: str = "") -> None:
        self.seed, self.side = seed, side
        self.host_s = 0.0
        self._stream = 0
        self._busy_until: Dict[int, float] = {0: 0.0}
        """By stream: when its queue will be finished."""
        self._work_s = 0.0
        """Of all that was enqueued so far."""
        self._energy_j, self._energy_due_s = 0.0, 0.0
        self._flushed = False
        self._events: List[float] = []
        self.probe = ScriptedMemory()
        self._random = random.Random(seed)
        self._level = self._host_level = 1.0
        self._spun = False
        self._calls = Calls()
        self._reasons: List[str] = []
        self._others: List[Foreign] = []
        self._until_lost = 0
        self._lost = False
        self._tracer = ScriptedTracer(self)
        self._profiler = ScriptedProfiler(self, "scripted device")
        self.probe.profiler = self._profiler
        self.begin_case("", -1)

    def begin_case(self, name: str, order: int) -> None:
        # The side is part of the key: two sides with one noise would agree better than any real device.
        self._random = random.Random(f"{self.seed}/{self.side}/{name}/{order}")
        self._level = self._random.lognormvariate(0.0, ROUND_SD)
        own = self._random.normalvariate(0.0, 1.0)
        mood = own if order < 0 else random.Random(f"{self.seed}/{name}/{order}").normalvariate(0.0, 1.0)
        self._host_level = math.exp(HOST_SD * mood + (OWN_HOST_SD * own if order >= 0 else 0.0))

    # -- what code under test calls --------------------------------------------------------------------------------------

    def kernel(self, name: str, seconds: float, stream: Optional[int] = None, cold: float = 0.0) -> None:
        """Enqueue device work that takes `seconds` plus noise, and `cold` more if the caches are empty.

        `stream` is the number of a stream other than the current one. `name` is for readers of a trace.
        """
        self._calls.launches += 1
        self._calls.kernels.setdefault(name)
        seconds += cold if self._flushed else 0.0
        self._flushed = False
        self._enqueue("kernel", name, self._noisy(seconds), stream)

    def copy(self, nbytes: int, seconds: float, stream: Optional[int] = None) -> None:
        """Enqueue a copy of `nbytes` bytes between host and device that takes `seconds` plus noise."""
        self._calls.copies += 1
        self._enqueue("copy", "copy", self._noisy(seconds), stream, nbytes)

    def _noisy(self, seconds: float) -> float:
        return seconds * self._level * self._random.lognormvariate(0.0, SAMPLE_SD)

    def host(self, seconds: float) -> None:
        """Let the host work for `seconds`."""
        start_s = self.host_s
        self.host_s += seconds * self._host_level
        self._profiler.hosted(start_s)

    def alloc(self, nbytes: int) -> Buffer:
        """Device memory of `nbytes` bytes."""
        return Buffer(self.probe, nbytes)

    def wait_for(self, stream: int) -> None:
        """Make the current stream wait for what another one holds now."""
        self.join([stream])

    def hold_back(self, reason: str, readings: int) -> None:
        """Let the next `readings` of the device's state give that reason for slow clocks."""
        self._reasons += [reason] * readings

    def company(self, pid: int) -> None:
        """Let another process compute on the device from now on."""
        self._others.append(Foreign(pid, "other", 1 << 30))

    def processes(self, ours: Optional[int] = None) -> List[Foreign]:
        return list(self._others)

    def lose_context(self, synchronizes: int) -> None:
        """Make the context fail at the `synchronizes`-th `synchronize` from now, as after an illegal access."""
        self._until_lost = synchronizes

    def synchronize(self) -> None:
        if self._until_lost:
            self._until_lost -= 1
            self._lost = self._until_lost == 0
        if self._lost:
            raise DeviceError("an illegal memory access was encountered", sticky=True)
        self._calls.synchronizations += 1
        start_s = self.host_s
        self.host_s = max(self.host_s, *self._busy_until.values()) + SYNCHRONIZE_S * self._host_level
        self._profiler.waited(start_s)

    # -- what the measuring loop calls -----------------------------------------------------------------------------------

    def now(self) -> float:
        self.host_s += CALL_S
        return self.host_s

    def lanes(self, count: int) -> List[ContextManager[object]]:
        return [_ScriptedLane(self, FIRST_LANE + number if number else 0) for number in range(count)]

    def use_stream(self, stream: int) -> int:
        """Make a stream the current one; the one before is returned."""
        before, self._stream = self._stream, stream
        self._busy_until.setdefault(stream, 0.0)
        return before

    def stream_handle(self, stream: Any) -> int:
        if isinstance(stream, bool) or not isinstance(stream, int):
            return super().stream_handle(stream)
        return stream

    def fork(self, event: int, streams: Sequence[int]) -> None:
        for stream in streams:
            self._busy_until[stream] = max(self._busy_until.get(stream, 0.0), self._events[event])

    def join(self, streams: Sequence[int]) -> None:
        last = max(self._busy_until.get(stream, 0.0) for stream in streams)
        self._busy_until[self._stream] = max(self._busy_until[self._stream], last)

    def flush(self) -> None:
        self._enqueue("fill", "flush", FLUSH_S)
        self._flushed = True

    def idle(self) -> bool:
        return self._busy_until[self._stream] <= self.now()

    def pause(self, seconds: float) -> None:
        self.host_s += seconds

    def use_events(self, count: int) -> None:
        self._events.extend([0.0] * (count - len(self._events)))

    def record(self, event: int) -> None:
        self.host_s += RECORD_S
        self._events[event] = self._append(WINDOW_S / 2, self._stream)

    def elapsed(self, start: int, end: int) -> float:
        return self._events[end] - self._events[start] + WINDOW_S / 2

    def passed(self, event: int) -> bool:
        self.host_s += QUERY_S
        return self._events[event] <= self.host_s

    def spin(self, seconds: float) -> None:
        self._spun = True
        self._enqueue("kernel", MARKER, seconds)

    def tracer(self) -> Tracer:
        return self._tracer

    def profiler(self) -> Profiler:
        return self._profiler

    def stream_reader(self) -> Callable[[], int]:
        return lambda: self._stream

    def frameworks(self) -> List[str]:
        return ["scripted"]

    def clocks_hz(self) -> List[float]:
        spun, self._spun = self._spun, False
        return [CLOCK_HZ] if spun else []

    def memory(self) -> Optional[MemoryProbe]:
        return self.probe

    @contextlib.contextmanager
    def counting(self) -> Iterator[Calls]:
        self._calls = Calls()
        try:
            yield self._calls
        finally:
            self._calls = Calls()  # what is called from here on is not counted there

    def device_state(self) -> Dict[str, Any]:
        return {"temperature_c": 40, "power_w": 100.0, "reasons": [self._reasons.pop(0)] if self._reasons else []}

    def energy_j(self) -> Optional[float]:
        if self.host_s >= self._energy_due_s:
            done_s = self._work_s - max(0.0, max(self._busy_until.values()) - self.host_s)
            self._energy_j = IDLE_W * self.host_s + (BUSY_W - IDLE_W) * done_s
            self._energy_due_s = self.host_s + ENERGY_STEP_S
        return self._energy_j

    def facts(self) -> Dict[str, Any]:
        visible = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")
        own = visible[self.ranks.number % len(visible)]
        return {"gpu": "scripted device", "gpu_uuid": own if own in UUIDS else UUIDS[0], "scripted": True}

    def _enqueue(self, kind: str, name: str, seconds: float, stream: Optional[int] = None, nbytes: int = 0) -> None:
        asked_s, stream = self.host_s, self._stream if stream is None else stream
        self.host_s += LAUNCH_S * self._host_level
        end_s = self._append(seconds, stream)
        self._tracer.saw(kind, name, end_s - seconds, end_s, nbytes)
        self._profiler.worked(kind, name, asked_s, end_s - seconds, end_s, stream, nbytes)

    def _append(self, seconds: float, stream: int) -> float:
        """Put device work into a stream; returns when it will be done."""
        self._busy_until[stream] = max(self._busy_until.get(stream, 0.0), self.host_s) + seconds
        self._work_s += seconds
        return self._busy_until[stream]

    def install(self) -> None:
        """Offer the device to the code under test as the module `regress_scripted`."""
        module = types.ModuleType("regress_scripted", __doc__)
        for name in (
            "kernel",
            "copy",
            "host",
            "alloc",
            "synchronize",
            "wait_for",
            "idle",
            "hold_back",
            "company",
            "lose_context",
        ):
            setattr(module, name, getattr(self, name))
        sys.modules["regress_scripted"] = module
