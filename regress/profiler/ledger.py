"""The way of an entry, from the first of its events to the sums.

    begin    an event into the current stream                                   (timeline)
    end      another one; the entry is `ended`
    harvest  events that have passed give the span: the entry is `waiting`      (every few entries, or when asked)
             the trace has got that far: it has a breakdown, and is added up    (trace, totals)

Nothing of it waits for the device. What is kept does not grow with the number of entries: events are used again, totals are
sums, and of the entries the last ones are kept.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable

from regress.measure.backend import Backend, DeviceBackend, DeviceError, choose
from regress.profiler.memory import Memory
from regress.profiler.running import Running
from regress.profiler.timeline import EventClock, TimedAnchor
from regress.profiler.totals import OperationTotals
from regress.profiler.trace import DeviceTrace, Kernels
from regress.profiles import Operation

CLOSING_S = 2e-3
"""How long a summary waits for the trace to catch up, where the device is done; switching off does too."""
HARVEST = 16
"""Entries that are ended before they are looked after."""
MOST_WAITING = 20_000
"""Entries that wait for the trace. Where it does not come, they go without a breakdown."""

FAULTS = (DeviceError, RuntimeError)
"""What a device that fails is answered with, by the driver and by frameworks."""
NO_KERNELS: Kernels = {}


class _Threads(threading.local):
    def __init__(self) -> None:
        self.stack: list[Running] = []
        self.name = threading.current_thread().name


class Ledger:
    """All entries of a profiler. Every method may be called on any thread."""

    def __init__(self, backend: Backend | None, device_id: int, breakdown: bool, memory: bool, keep: int) -> None:
        self.backend = backend or Backend()
        self._found, self._device_id = backend is not None, device_id
        self._with_breakdown, self._with_memory = breakdown, memory
        self.opened = False
        self.timeline: EventClock | None = None
        self.trace: DeviceTrace | None = None
        self.memory: Memory | None = None
        self.why_no_breakdown = "nothing was profiled"
        self.lock = threading.RLock()
        self.threads = _Threads()
        self.now: Callable[[], float] = time.perf_counter
        self.kept: deque[Running] = deque(maxlen=keep)
        self._running: list[Running] = []
        self.clear()
        # Another thread may hold the lock at that moment, and the device is of no use to a child.
        forked = weakref.WeakMethod(self._forked)
        os.register_at_fork(after_in_child=lambda: (method := forked()) is not None and method())

    def clear(self) -> None:
        """Forget all entries; those that are open are finished."""
        self.operations: dict[str, OperationTotals] = {}
        self._ended: deque[Running] = deque()
        self._waiting: deque[Running] = deque()
        self.kept.clear()
        self.counted = self.lost = 0
        self.started_at, self.epoch_s, self.shift_s = time.time(), self.now(), 0.0
        self._last_s = self.epoch_s

    def _forked(self) -> None:
        """In a child process: what the parent has profiled is the parent's, and there is only the host's time."""
        self.lock = threading.RLock()
        self.timeline = self.trace = self.memory = None
        self.why_no_breakdown = "a forked process cannot use the device"
        self._running.clear()
        self.threads.stack.clear()
        self.clear()

    @property
    def pending(self) -> int:
        """Entries that are closed and not counted yet."""
        return len(self._ended) + len(self._waiting)

    def switch(self, on: bool) -> None:
        """Trace from now on, or no more. What the device has not done by then has no breakdown."""
        with self.lock:
            if self.timeline is None or self.trace is None:
                return
            if on:
                self.why_no_breakdown = self.trace.start()
            else:
                self.catch_up(CLOSING_S)
                self.trace.stop()
            if self.timeline is not None:
                self.timeline.traced = on and not self.why_no_breakdown

    # -- entries ---------------------------------------------------------------------------------------------------------

    def begin(self, entry: Running) -> None:
        """Open an entry; `with` does it."""
        here = self.threads
        stack = here.stack
        entry.parent = stack[-1] if stack else None
        entry.depth, entry.thread = len(stack), here.name
        stack.append(entry)
        with self.lock:
            if not self.opened:
                self._open()
            timeline = self.timeline
            if timeline is not None and entry.on_device:
                try:
                    with timeline.backend.here():
                        if self.memory is not None:
                            self.memory.begin(entry)
                        entry.mark = timeline.begin(self._last_s)
                    entry.backend = timeline.framework or timeline.backend.name
                except FAULTS as error:
                    self._give_up(error, entry)
            self._running.append(entry)
        entry.start_s = self.now()

    def end(self, entry: Running) -> None:
        """Close an entry; `with` does it."""
        now_s = self.now()
        entry.host_s = now_s - entry.start_s
        stack = self.threads.stack
        if stack and stack[-1] is entry:
            stack.pop()
        elif entry in stack:  # a coroutine may be left in another order, and on another thread, than it was entered
            stack.remove(entry)
        with self.lock:
            self._last_s = now_s
            if self._running and self._running[-1] is entry:
                self._running.pop()
            elif entry in self._running:  # not in a child that was forked within the entry
                self._running.remove(entry)
            timeline = self.timeline
            if timeline is not None and entry.on_device:
                try:
                    with timeline.backend.here():
                        if entry.mark is not None and not timeline.end(entry.mark):
                            entry.mark = None
                        if self.memory is not None:
                            self.memory.end(entry)
                except FAULTS as error:
                    self._give_up(error, entry)
            self._ended.append(entry)
            if len(self._ended) % HARVEST == 0:
                self._harvest()

    def _open(self) -> None:
        """Find the device, when the first entry is made."""
        self.opened = True
        if not self._found:
            self.backend = _device(self._device_id)
        if type(self.backend).now is not Backend.now:
            self.now = self.backend.now
        self.epoch_s = self._last_s = self.now()
        if not isinstance(self.backend, DeviceBackend):
            self.why_no_breakdown = "there is no device"
            return
        self.timeline = EventClock(self.backend, self.now)
        self.memory = Memory(self.backend) if self._with_memory else None
        self.why_no_breakdown = "it was not asked for"
        if self._with_breakdown:
            self.trace = DeviceTrace(self.backend.tracer())
            self.why_no_breakdown = self.trace.start()
            self.timeline.traced = not self.why_no_breakdown

    def _give_up(self, error: Exception, *entries: Running) -> None:
        """A device that fails ends the device times, and never the program."""
        for entry in (*self._ended, *self._waiting, *self._running, *entries):
            entry.mark = None
        self.timeline = self.memory = None
        self.why_no_breakdown = f"the device failed: {error}"

    # -- what has passed -------------------------------------------------------------------------------------------------

    def _harvest(self, flush: bool = False) -> None:
        """Count what the device is done with. Entries are counted in the order in which they ended, children first."""
        try:
            self._move_on(flush)
        except FAULTS as error:
            self._give_up(error)
        if self.timeline is None:
            self._waiting.extend(self._ended)
            self._ended.clear()
            self._count()

    def _move_on(self, flush: bool) -> None:
        timeline, trace = self.timeline, self.trace
        if timeline is None:
            return
        with timeline.backend.unheard():
            for entry in self._running:
                if entry.mark is not None:
                    timeline.begun(entry.mark)
            self._read(timeline)
        known = trace is not None and trace.collect(timeline.timed, flush or bool(timeline.timed))
        if known:
            self._note_levels()
        self._count()
        if known and trace is not None:
            trace.forget(self._oldest())

    def _read(self, timeline: EventClock) -> None:
        """Read the times of what has passed. Where the newest entry has, so have all before it on its stream."""
        newest = self._ended[-1].mark if self._ended else None
        sure = newest.stream if newest is not None and timeline.reached(newest) else None
        while self._ended:
            mark = self._ended[0].mark
            if mark is not None and not ((mark.stream == sure or timeline.reached(mark)) and timeline.read(mark)):
                return
            self._waiting.append(self._ended.popleft())

    def _note_levels(self) -> None:
        """Of entries that go on: the sums at their beginning, so that the trace before it can be forgotten."""
        assert self.trace is not None
        for entry in (*self._running, *self._ended):
            mark = entry.mark
            if (
                mark is not None
                and entry.level is None
                and mark.start_s is not None
                and self.trace.covers(mark.start_s)
            ):
                entry.level = self.trace.level(mark.start_s)

    def _oldest(self) -> float:
        """Nothing before that time will be asked about."""
        oldest = self.now() + 1.0
        for entry in (*self._running, *self._ended, *self._waiting):
            mark = entry.mark
            if mark is None or entry.level is not None:
                continue
            oldest = min(oldest, mark.start_s if mark.start_s is not None else mark.anchor.time_s or mark.anchor.made_s)
        return oldest

    def _count(self) -> None:
        """Add up what the trace has got as far as, and what it has no part in."""
        trace = self.trace
        tracing = self.timeline is not None and self.timeline.traced
        while self._waiting:
            entry = self._waiting[0]
            mark, known = entry.mark, None
            if mark is not None and mark.traced and trace is not None:
                assert mark.start_s is not None
                assert mark.span_s is not None
                if trace.covers(mark.start_s + mark.span_s):
                    known = trace if trace.knows(mark.start_s) else None
                elif tracing and len(self._waiting) <= MOST_WAITING:
                    return
            self._waiting.popleft()
            self._add(entry, known)

    def _add(self, entry: Running, trace: DeviceTrace | None) -> None:
        self.counted += 1
        mark, kernels = entry.mark, NO_KERNELS
        entry.done()
        if mark is None:
            self.lost += entry.on_device and self.backend.has_device
        else:
            assert mark.start_s is not None
            # The device does not begin before it is told to: the first anchor was passed later than it was made.
            if entry.start_s - mark.start_s > self.shift_s:
                self.shift_s = entry.start_s - mark.start_s
            if trace is not None:
                done, kernels = trace.between(mark.start_s, mark.start_s + entry.duration_s, entry.level)
                entry.broken_down(done)
        totals = self.operations.get(entry.operation)
        if totals is None:
            totals = self.operations[entry.operation] = OperationTotals(entry.operation, entry.device, entry.backend)
        totals.add(entry, kernels)
        self.kept.append(entry)

    # -- for who asks ----------------------------------------------------------------------------------------------------

    def summary(self) -> list[Operation]:
        """The totals as they stand, the most time first."""
        own_s = sum(totals.self_s for totals in self.operations.values())
        operations = [totals.operation_of(own_s) for totals in self.operations.values()]
        return sorted(operations, key=lambda operation: -operation.self_s)

    def catch_up(self, seconds: float, wait: bool = False) -> None:
        """Count what can be counted now; all of it, where the device is waited for. The trace is given so long to catch up."""
        with self.lock:
            try:
                self._harvest()
                if self.timeline is not None and (self._waiting or (wait and self._ended)):
                    with self.timeline.backend.here():
                        anchor = self.timeline.closing_anchor(self.now())
                        if wait:
                            self.timeline.backend.synchronize()
                    self._settle(anchor, seconds)
                    if wait and self._waiting:
                        self._go_without()
            except FAULTS as error:
                self._give_up(error)
            self._harvest()

    def _settle(self, anchor: TimedAnchor | None, seconds: float) -> None:
        """Let the trace get as far as the anchor."""
        until_s = self.now() + seconds
        while anchor is not None and self.timeline is not None and self.now() < until_s:
            done = self.timeline.has_time(anchor)
            self._harvest(flush=done)
            if done and not self._waiting:
                return

    def _go_without(self) -> None:
        """Count what the device is done with and the trace has not told until now, without a breakdown, and start the trace
        again: another profiler of the process has taken it over."""
        assert self.timeline is not None
        assert self.trace is not None
        while self._waiting:
            self._add(self._waiting.popleft(), None)
        self.timeline.timed.clear()
        self.why_no_breakdown = self.trace.again()
        self.timeline.traced = not self.why_no_breakdown
        self.timeline.renew()


def _device(device_id: int) -> Backend:
    """The CUDA device of that number, or what else there is; the host alone where it cannot be used."""
    try:
        if device_id == 0:
            return choose("auto")
        from regress.measure.backend.cuda import CudaBackend  # late: the driver is looked for when it is needed

        return CudaBackend(device_id)
    except DeviceError as error:
        backend = Backend()
        backend.why_no_device = str(error)
        return backend
