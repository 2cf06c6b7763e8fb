"""Traces what a CUDA device did, through the activity interface of CUPTI.

CUPTI writes a record of every kernel, copy and fill into buffers of ours, and returns a buffer when everything in it is over.
Only the first fields of a record are read, whose places have not changed since CUDA 11; the kinds and offsets are those of
cupti_activity.h. Nothing waits: the two callbacks only pass buffers on, and whoever collects reads them.

One program may trace at a time: a profiler that starts later takes the buffers over, and nothing arrives here until `start` is
called again. It also leaves its settings behind: torch's profiler gives CUPTI its own clock, the processor's counter, and
times are in its ticks from then on. So whenever tracing starts, the clock is compared with the host's.
"""

from __future__ import annotations

import atexit
import ctypes
import functools
import math
import os
import re
import struct
import threading
import time
from collections import deque
from typing import Any, Deque, Dict, Iterator, List, NamedTuple, Optional, Tuple
from weakref import WeakSet

from .base import Activity, Tracer
from .cupti import load

BUFFER_BYTES = 1 << 18
"""Some thousand records: small enough to come back soon."""
MOST_FREE = 4
MOST_UNREAD = 128
"""Buffers kept until somebody collects: about 150,000 records. Later ones are lost."""
MOST_KEPT = 150_000
"""Records kept for a tracer that does not collect while others do."""
MOST_PERIODS = 16
"""Spans in which a tracer was on and for which records may still arrive."""
KERNEL_NAME = 104
"""Offset of the pointer to a kernel's name."""
COPY_KIND, WITHIN_DEVICE = 4, 8
"""Offset of a copy's direction, and CUPTI_ACTIVITY_MEMCPY_KIND_DTOD."""
FORCED = 1
"""CUPTI_ACTIVITY_FLAG_FLUSH_FORCED"""

HELD_S, LONGER_S = 2e-3, 50e-3
"""How long the clocks are compared, and again if CUPTI's is not in nanoseconds."""
LOOKS = 5
NANOSECONDS = 0.05
"""A clock that seems to differ by less than this from one tick a nanosecond is one of nanoseconds."""

Requested = ctypes.CFUNCTYPE(
    None, ctypes.POINTER(ctypes.c_void_p), ctypes.POINTER(ctypes.c_size_t), ctypes.POINTER(ctypes.c_size_t)
)
Completed = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t)


class _Layout(NamedTuple):
    """Offsets of the fields of a kind of record: bytes, start, end and device. A kernel has no bytes."""

    kind: str
    fields: struct.Struct


LAYOUTS = {
    1: _Layout("copy", struct.Struct("=8xQQQI")),
    2: _Layout("fill", struct.Struct("=8xQQQI")),
    10: _Layout("kernel", struct.Struct("=8xQQQ8xI")),
    22: _Layout("copy", struct.Struct("=8xQQQI")),
}
"""By CUPTI_ACTIVITY_KIND_: MEMCPY, MEMSET, CONCURRENT_KERNEL, MEMCPY2 (from device to device)."""


class _Clock(NamedTuple):
    """How CUPTI's times become seconds of `time.perf_counter()`: a moment on both, and what a tick is."""

    ticks: int
    seconds: float
    tick_s: float

    def time_s(self, ticks: int) -> float:
        return self.seconds + (ticks - self.ticks) * self.tick_s


class CuptiTracer(Tracer):
    """For one device of this process; times are those of `time.perf_counter()`, to a few microseconds. Of two tracers of a
    device, the one started last gets its records."""

    def __init__(self, device: int, activities: Optional[Activities] = None) -> None:
        super().__init__()
        self.device = device
        self.on = False
        self.superseded = False
        """Whether another tracer of the device was started in between."""
        self._activities = activities or of_process()
        self._found: List[Activity] = []
        self._periods: List[Tuple[float, float]] = []
        """When it was on, the newest last; work that began then is reported."""

    def start(self) -> str:
        return "" if self.on else self._activities.start(self)

    def again(self) -> str:
        if self.superseded:
            return "another profiler of the process traces the device"
        return super().again()

    def stop(self) -> None:
        if self.on:
            self._activities.stop(self)

    def collect(self, flush: bool = False) -> List[Activity]:
        with self._activities.lock:
            self._activities.collect(self, flush)
            arrived, self._found = self._found, []
        return arrived

    # -- for the activities ----------------------------------------------------------------------------------------------

    def begin(self, at_s: float) -> None:
        self.on, self.superseded = True, False
        self._periods = [*self._periods[1 - MOST_PERIODS :], (at_s, math.inf)]

    def end(self, at_s: float) -> None:
        if self.on:
            self.on = False
            self._periods[-1] = self._periods[-1][0], at_s

    def take(self, activities: List[Activity]) -> None:
        """Keep what began while this was on."""
        for start_s, end_s in self._periods:
            self._found += [activity for activity in activities if start_s <= activity.start_s <= end_s]

    def bound(self) -> None:
        """Drop what nobody collects."""
        if len(self._found) > MOST_KEPT:
            self._found, self.overrun = [], True


class Activities:
    """CUPTI's activity interface, one for each process: records of a device go to the tracers of that device. `library` is the
    loaded library; tests bring one."""

    def __init__(self, library: Any = None) -> None:
        self._library = library
        self._registered = False
        self._tracers: WeakSet[CuptiTracer] = WeakSet()
        """All that were ever started: records from before a tracer was stopped may arrive later."""
        self.lock = threading.RLock()
        """The callbacks do not take it: CUPTI calls them whenever it likes."""
        self._overrun = False
        self._clock = _Clock(0, 0.0, 1e-9)
        self._free: List[Any] = []
        self._lent: Dict[int, Any] = {}
        """Address -> the buffer that CUPTI has."""
        self._full: Deque[Tuple[int, int, _Clock]] = deque()
        """Address and used bytes of buffers that came back, and by which clock their times are."""
        self._callbacks: Tuple[Any, ...] = ()
        """Kept, because CUPTI may call until the end."""

    def start(self, tracer: CuptiTracer) -> str:
        with self.lock:
            at_s = time.perf_counter()
            why = self._begin()
            if not why:
                for other in self._tracers:
                    if other is not tracer and other.on and other.device == tracer.device:
                        other.end(at_s)
                        other.superseded = True
                self._tracers.add(tracer)
                tracer.begin(at_s)
            return why

    def _begin(self) -> str:
        if self._library is None:
            self._library = load()
        if self._library is None:
            return "CUPTI was not found (libcupti.so is in the CUDA toolkit and in the wheel nvidia-cuda-cupti)"
        # Not sooner: this is made where CUDA is looked for, and where nothing is traced no machine code need be made for it.
        self._callbacks = self._callbacks or (Requested(self._lend), Completed(self._take_back))
        # Every time: a profiler that ends may leave CUPTI without callbacks, as torch's does.
        code = self._library.cuptiActivityRegisterCallbacks(*self._callbacks)
        if code:
            return f"CUPTI traces nothing: {self._reason(code)}"
        if not self._registered:
            self._registered = True
            # At the very end of the process nobody is there to be called back.
            atexit.register(self._disable)
        for kind in LAYOUTS:
            code = self._library.cuptiActivityEnable(kind)
            if code:
                self._disable()
                return f"CUPTI traces nothing (is a profiler attached?): {self._reason(code)}"
        self._clock = self._compared()
        return ""

    def stop(self, tracer: CuptiTracer) -> None:
        with self.lock:
            tracer.end(time.perf_counter())
            if not any(other.on for other in self._tracers):
                self._disable()

    def collect(self, collecting: CuptiTracer, flush: bool) -> None:
        """Pass the records that have arrived to the tracers, on behalf of one of them."""
        if flush and self._registered:
            self._library.cuptiActivityFlushAll(0)
        if self._overrun:
            self._overrun = False
            for tracer in self._tracers:
                tracer.overrun = True
        while self._full:
            address, used, clock = self._full.popleft()
            by_device: Dict[int, List[Activity]] = {}
            for device, activity in self._records(address, used, clock):
                by_device.setdefault(device, []).append(activity)
            for tracer in self._tracers:
                tracer.take(by_device.get(tracer.device, []))
                if tracer is not collecting:
                    tracer.bound()
            memory = self._lent.pop(address)
            if len(self._free) < MOST_FREE:
                self._free.append(memory)

    def _compared(self) -> _Clock:
        ticks, seconds = self._moment()
        tick_s = self._tick_since(ticks, seconds, HELD_S)
        if abs(tick_s / 1e-9 - 1) < NANOSECONDS:
            tick_s = 1e-9
        else:
            tick_s = self._tick_since(ticks, seconds, LONGER_S)
        return _Clock(ticks, seconds, tick_s)

    def _tick_since(self, ticks: int, seconds: float, wait_s: float) -> float:
        time.sleep(wait_s)
        now, now_s = self._moment()
        return (now_s - seconds) / max(1, now - ticks)

    def _moment(self) -> Tuple[int, float]:
        """CUPTI's time and ours, from the quickest reading of both."""
        looks, ticks = [], ctypes.c_uint64()
        for _ in range(LOOKS):
            before_s = time.perf_counter()
            self._library.cuptiGetTimestamp(ctypes.byref(ticks))
            after_s = time.perf_counter()
            looks.append((after_s - before_s, ticks.value, (before_s + after_s) / 2))
        _, at, seconds = min(looks)
        return at, seconds

    def _disable(self) -> None:
        for kind in LAYOUTS:
            self._library.cuptiActivityDisable(kind)
        # Not only what is complete: into a buffer that it keeps, CUPTI writes what a profiler that starts later asks for, and
        # gives it to that one, which does not know it.
        self._library.cuptiActivityFlushAll(FORCED)

    def _reason(self, code: int) -> str:
        text = ctypes.c_char_p()
        self._library.cuptiGetResultString(code, ctypes.byref(text))
        return (text.value or b"").decode(errors="replace") or f"error {code}"

    # -- buffers ---------------------------------------------------------------------------------------------------------

    def _lend(self, buffer: Any, size: Any, most: Any) -> None:
        if len(self._full) >= MOST_UNREAD:
            buffer[0], size[0], most[0] = None, 0, 0
            self._overrun = True
            return
        memory = self._free.pop() if self._free else (ctypes.c_uint64 * (BUFFER_BYTES // 8))()
        address = ctypes.addressof(memory)
        self._lent[address] = memory
        buffer[0], size[0], most[0] = address, BUFFER_BYTES, 0

    def _take_back(self, _context: object, _stream: int, address: int, _size: int, used: int) -> None:
        if address in self._lent:
            self._full.append((address, used, self._clock))

    def _records(self, address: int, used: int, clock: _Clock) -> Iterator[Tuple[int, Activity]]:
        """The records in a buffer, each with the number of its device."""
        if not used:
            return
        data = (ctypes.c_char * used).from_address(address)
        record, next_record = ctypes.c_void_p(), self._library.cuptiActivityGetNextRecord
        buffer, valid = ctypes.c_void_p(address), ctypes.c_size_t(used)
        while next_record(buffer, valid, ctypes.byref(record)) == 0 and record.value is not None:
            at = record.value - address
            (number,) = struct.unpack_from("=I", data, at)
            layout = LAYOUTS.get(number)
            if layout is None:
                continue
            nbytes, start, end, device = layout.fields.unpack_from(data, at)
            if not start or end < start:  # never finished
                continue
            kind = layout.kind
            if kind == "kernel":
                nbytes, name = 0, _name(ctypes.c_char_p.from_address(record.value + KERNEL_NAME).value or b"?")
            else:
                kind = "fill" if number == 1 and ord(data[at + COPY_KIND]) == WITHIN_DEVICE else kind
                name = kind
            yield device, Activity(kind, name, clock.time_s(start), clock.time_s(end), nbytes)


def of_process() -> Activities:
    """Those of this process."""
    return _OWN[0]


def _renew() -> None:
    _OWN[:] = [Activities()]


_OWN = [Activities()]
os.register_at_fork(after_in_child=_renew)  # a thread that is not there may hold the lock


@functools.lru_cache(maxsize=4096)
def _name(symbol: bytes) -> str:
    """A kernel's name without its parameters: `_ZN2at6native6kernelI...` -> `at::native::kernel`."""
    text = symbol.decode(errors="replace")
    match = re.match(r"_ZN?[KL]?(?=\d)", text)
    if match is None:
        return text.partition("<")[0].partition("(")[0] or text
    parts, at = [], match.end()
    while (size := re.match(r"\d+", text[at:])) is not None:
        at += size.end()
        parts.append(text[at : at + int(size.group())])
        at += int(size.group())
    return "::".join(part for part in parts if not part.startswith("_GLOBAL__N")) or text
