"""GPUProfiler: what a program calls. An entry is opened and closed on one thread; its times are read once the device has
passed it.

    begin    an event into the current stream                                   (timeline)
    end      another one; the entry is `ended`
    harvest  events that have passed give the span: the entry is `waiting`      (every few entries, or when asked)
             the trace has got that far: it has a breakdown, and is added up    (trace, totals)

Nothing of it waits for the device. What is kept does not grow with the number of entries: events are used again, totals are
sums, and of the entries the last `keep` are there for the timeline.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import os
import platform
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

from regress.measure.backend import Backend, DeviceBackend, DeviceError, choose
from regress.profiler.memory import Memory
from regress.profiler.running import Running
from regress.profiler.timeline import Anchor, Timeline
from regress.profiler.totals import Totals
from regress.profiler.trace import Trace
from regress.profiles import Bottleneck, Operation, Profile, write
from regress.profiling.bottlenecks import bottlenecks

KEEP = 10_000
HARVEST = 16
"""Entries that are ended before they are looked after."""
MOST_WAITING = 20_000
"""Entries that wait for the trace. Where it does not come, they go without a breakdown."""
CLOSING_S = 2e-3
"""How long a summary waits for the trace to catch up, where the device is done."""
SETTLING_S = 0.2
"""The same for an export, which waits for the device."""

Function = TypeVar("Function", bound=Callable[..., Any])


class _Threads(threading.local):
    def __init__(self) -> None:
        self.stack: list[Running] = []
        self.name = threading.current_thread().name


NO_KERNELS: dict[str, list[float]] = {}
OFF: contextlib.AbstractContextManager[None] = contextlib.nullcontext()


class GPUProfiler:
    """Times operations of the program it runs in, on the device and on the host.

    `device_id` is the number of the CUDA device among the visible ones. `breakdown` traces kernels and copies through CUPTI,
    so that an entry's span is told apart into busy, transfers and idle; `memory` reads the allocator, whose peak it sets back
    for that (what `torch.cuda.max_memory_allocated()` says is then about the last entry). `keep` is how many entries are kept
    one by one; totals are of all. `backend` takes the place of what is found.

    Without a CUDA device entries have the host's times. Where a stream is being captured as a graph, they have too.
    """

    def __init__(
        self,
        enabled: bool = True,
        device_id: int = 0,
        *,
        breakdown: bool = True,
        memory: bool = True,
        keep: int = KEEP,
        backend: Backend | None = None,
    ) -> None:
        self._enabled = enabled
        self._device_id, self._breakdown, self._with_memory = device_id, breakdown, memory
        self._backend = backend
        self._opened = self._has_device = False
        self._timeline: Timeline | None = None
        self._trace: Trace | None = None
        self._memory: Memory | None = None
        self._why_no_breakdown = "nothing was profiled"
        self._lock = threading.RLock()
        self._threads = _Threads()
        self._kept: deque[Running] = deque(maxlen=keep)
        self._clear()

    def _clear(self) -> None:
        self._operations: dict[str, Totals] = {}
        self._running: list[Running] = []
        self._ended: deque[Running] = deque()
        self._waiting: deque[Running] = deque()
        self._kept.clear()
        self._counted = self._lost = 0
        self._started_at, self._epoch_s = time.time(), self._backend.now() if self._opened and self._backend else 0.0
        self._shift_s = 0.0

    # -- what a program calls --------------------------------------------------------------------------------------------

    @property
    def enabled(self) -> bool:
        """Whether entries are made; can be set at any time. Those that are open are finished. What the device has not done when
        it is switched off has no breakdown."""
        return self._enabled

    @enabled.setter
    def enabled(self, on: bool) -> None:
        with self._lock:
            self._enabled = on
            if self._timeline is None or self._trace is None:
                return
            if on:
                self._why_no_breakdown = self._trace.start()
            else:
                self._catch_up()
                self._trace.stop()
            if self._timeline is not None:
                self._timeline.traced = on and not self._why_no_breakdown

    def enable(self) -> None:
        self.enabled = True

    def disable(self) -> None:
        self.enabled = False

    def profile(
        self, name: str, device: str = "gpu", **details: Any
    ) -> Running | contextlib.AbstractContextManager[None]:
        """A context; what is done inside is an entry of that name. `device` is gpu or cpu. `details` are kept with the entry;
        `bytes` and `flops` among them are its work, of which bandwidth and arithmetic are worked out."""
        if not self._enabled:
            return OFF
        return Running(self, name, device != "cpu", details)

    def profile_function(
        self, operation: str | None = None, device: str = "gpu", **details: Any
    ) -> Callable[[Function], Function]:
        """A decorator; every call of the function, a coroutine too, is an entry."""

        def decorate(function: Function) -> Function:
            name, on_device = operation or function.__qualname__, device != "cpu"
            if inspect.iscoroutinefunction(function):

                @functools.wraps(function)
                async def awaited(*args: Any, **kwargs: Any) -> Any:
                    with self.profile(name, device, **details):
                        return await function(*args, **kwargs)

                return cast(Function, awaited)

            @functools.wraps(function)
            def called(*args: Any, **kwargs: Any) -> Any:
                if not self._enabled:
                    return function(*args, **kwargs)
                with Running(self, name, on_device, details):
                    return function(*args, **kwargs)

            return cast(Function, called)

        return decorate

    def get_summary(self) -> dict[str, Operation]:
        """By operation the totals of all entries that the device is done with, the most time first. It waits for none."""
        with self._lock:
            self._catch_up()
            own_s = sum(each.self_s for each in self._operations.values())
            found = [each.operation_of(own_s) for each in self._operations.values()]
            return {each.operation: each for each in sorted(found, key=lambda each: -each.self_s)}

    def get_bottlenecks(self, top_n: int = 5) -> list[Bottleneck]:
        """The operations with the most time of their own, with what holds them back and what to try."""
        summary = self.get_summary()
        return list(bottlenecks(summary.values(), self._limits(), top_n))

    def print_summary(self) -> None:
        """Print a table of the operations."""
        from regress.report.profile import operation_lines  # late: a program that prints nothing does without
        from regress.report.style import Style

        summary = self.get_summary()
        lines = operation_lines(summary.values(), Style()) if summary else ["nothing was profiled"]
        if self.pending:
            lines.append(f"{self.pending} entries are not done on the device, and not counted")
        if self._why_no_breakdown and any(each.device != "cpu" for each in summary.values()):
            lines.append(f"busy, copies and idle are not known: {self._why_no_breakdown}")
        print("\n".join(lines))

    def print_bottlenecks(self, top_n: int = 5) -> None:
        """Print the largest operations with what holds them back and what to try."""
        from regress.report.profile import bottleneck_lines
        from regress.report.style import Style

        print("\n".join(bottleneck_lines(self.get_bottlenecks(top_n), Style()) or ["nothing was profiled"]))

    @property
    def pending(self) -> int:
        """Entries that are closed and not counted yet, because the device has not done them."""
        return len(self._ended) + len(self._waiting)

    def synchronize(self) -> None:
        """Wait until the device has done all entries that are closed, and count them."""
        with self._lock:
            if self._timeline is not None and self.pending:
                try:
                    anchor = self._timeline.closing_anchor(self._now())
                    self._timeline.backend.synchronize()
                    self._settle(anchor, SETTLING_S)
                except (DeviceError, RuntimeError) as error:
                    self._give_up(error)
            self._harvest()

    def export_json(self, path: str | os.PathLike[str]) -> Path:
        """Write everything as a document `regress.profile/1`, for `regress profile` and its page. Waits for what is pending."""
        self.synchronize()
        target = Path(path)
        with self._lock:
            write(self._profile(), target)
        return target

    def reset(self) -> None:
        """Forget all entries; those that are open or pending, too."""
        self.synchronize()
        with self._lock:
            open_now = list(self._running)
            self._clear()
            self._running = open_now

    # -- entries ---------------------------------------------------------------------------------------------------------

    def begin(self, entry: Running) -> None:
        """Open an entry; `with` does it."""
        here = self._threads
        entry.parent = here.stack[-1] if here.stack else None
        entry.depth, entry.thread = len(here.stack), here.name
        here.stack.append(entry)
        with self._lock:
            if not self._opened:
                self._open()
            if entry.on_device and self._timeline is not None:
                try:
                    if self._memory is not None:
                        self._memory.begin(entry)
                    entry.mark = self._timeline.begin(self._now())
                    entry.backend = self._timeline.framework or self._timeline.backend.name
                except (DeviceError, RuntimeError) as error:
                    self._give_up(error, entry)
            self._running.append(entry)
        entry.start_s = self._now()

    def end(self, entry: Running) -> None:
        """Close an entry; `with` does it."""
        entry.host_s = self._now() - entry.start_s
        stack = self._threads.stack
        if stack and stack[-1] is entry:
            stack.pop()
        elif entry in stack:  # a coroutine may be left in another order, and on another thread, than it was entered
            stack.remove(entry)
        with self._lock:
            if entry in self._running:
                self._running.remove(entry)
            try:
                if entry.mark is not None and self._timeline is not None and not self._timeline.end(entry.mark):
                    entry.mark = None
                if entry.backend and self._memory is not None:
                    entry.memory_bytes = self._memory.end(entry)
            except (DeviceError, RuntimeError) as error:
                self._give_up(error, entry)
            self._ended.append(entry)
            if len(self._ended) % HARVEST == 0:
                self._harvest()

    def _open(self) -> None:
        """Find the device, when the first entry is made."""
        self._opened = True
        if self._backend is None:
            from regress.measure.backend.cuda import CudaBackend  # late: the driver is looked for when it is needed

            try:
                self._backend = choose("auto") if self._device_id == 0 else CudaBackend(self._device_id)
            except DeviceError as error:
                self._backend = Backend()
                self._backend.why_no_device = str(error)
        self._epoch_s = self._backend.now()
        if not isinstance(self._backend, DeviceBackend):
            self._why_no_breakdown = "there is no device"
            return
        self._has_device = True
        self._timeline = Timeline(self._backend)
        self._memory = Memory(self._backend) if self._with_memory else None
        self._why_no_breakdown = "it was not asked for"
        if self._breakdown:
            self._trace = Trace(self._backend.tracer())
            self._why_no_breakdown = self._trace.start()
            self._timeline.traced = not self._why_no_breakdown

    def _now(self) -> float:
        return self._backend.now() if self._backend is not None else time.perf_counter()

    def _give_up(self, error: Exception, *entries: Running) -> None:
        """A device that fails ends the device times, and never the program."""
        for each in (*self._ended, *self._waiting, *self._running, *entries):
            each.mark = None
        self._timeline = self._memory = None
        self._why_no_breakdown = f"the device failed: {error}"

    # -- what has passed -------------------------------------------------------------------------------------------------

    def _harvest(self, flush: bool = False) -> None:
        """Count what the device is done with. Entries are counted in the order in which they ended, children first."""
        try:
            self._move_on(flush)
        except (DeviceError, RuntimeError) as error:
            self._give_up(error)
        if self._timeline is None:
            self._waiting.extend(self._ended)
            self._ended.clear()
            self._count()

    def _move_on(self, flush: bool) -> None:
        timeline, trace = self._timeline, self._trace
        if timeline is None:
            return
        with timeline.backend.unheard():
            for each in self._running:
                if each.mark is not None:
                    timeline.begun(each.mark)
            while self._ended and ((mark := self._ended[0].mark) is None or timeline.passed(mark)):
                self._waiting.append(self._ended.popleft())
        known = trace is not None and trace.collect(timeline.timed, flush or bool(timeline.timed))
        if known:
            self._note_levels()
        self._count()
        if known and trace is not None:
            trace.forget(self._oldest())

    def _note_levels(self) -> None:
        """Of entries that go on: the sums at their beginning, so that the trace before it can be forgotten."""
        assert self._trace is not None
        for each in (*self._running, *self._ended):
            mark = each.mark
            if (
                mark is not None
                and each.level is None
                and mark.start_s is not None
                and self._trace.covers(mark.start_s)
            ):
                each.level = self._trace.level(mark.start_s)

    def _oldest(self) -> float:
        """Nothing before that time will be asked about."""
        oldest = self._now() + 1.0
        for each in (*self._running, *self._ended, *self._waiting):
            mark = each.mark
            if mark is None or each.level is not None:
                continue
            oldest = min(oldest, mark.start_s if mark.start_s is not None else mark.anchor.time_s or mark.anchor.made_s)
        return oldest

    def _count(self) -> None:
        while self._waiting:
            entry = self._waiting[0]
            mark = entry.mark
            traced = mark is not None and mark.anchor.number > 0 and self._trace is not None
            if traced and mark is not None and self._trace is not None:
                assert mark.start_s is not None
                assert mark.span_s is not None
                if not self._trace.covers(mark.start_s + mark.span_s):
                    if len(self._waiting) <= MOST_WAITING and self._timeline is not None and self._timeline.traced:
                        return
                    traced = False
            self._waiting.popleft()
            self._add(entry, traced)

    def _add(self, entry: Running, traced: bool) -> None:
        self._counted += 1
        mark, kernels = entry.mark, NO_KERNELS
        entry.done()
        if mark is None:
            self._lost += entry.on_device and self._has_device
        else:
            assert mark.start_s is not None
            # The device does not begin before it is told to: the first anchor was passed later than it was made.
            if entry.start_s - mark.start_s > self._shift_s:
                self._shift_s = entry.start_s - mark.start_s
            if traced and self._trace is not None:
                kernels = self._break_down(entry, self._trace, mark.start_s, mark.start_s + entry.duration_s)
        totals = self._operations.get(entry.operation)
        if totals is None:
            totals = self._operations[entry.operation] = Totals(entry.operation, entry.device, entry.backend)
        totals.add(entry, kernels)
        self._kept.append(entry)

    def _break_down(self, entry: Running, trace: Trace, start_s: float, end_s: float) -> dict[str, list[float]]:
        """Where the span went; the kernels of it are returned."""
        begin, end = entry.level or trace.level(start_s), trace.level(end_s)
        busy_s, transfer_s = end.busy_s - begin.busy_s, end.transfer_s - begin.transfer_s
        idle_s = entry.duration_s - busy_s - transfer_s
        entry.busy_s, entry.transfer_s, entry.idle_s = busy_s, transfer_s, idle_s if idle_s > 0 else 0.0
        entry.copied_bytes = round(end.copied_bytes - begin.copied_bytes)
        return trace.kernels(start_s, end_s)

    # -- for who asks ----------------------------------------------------------------------------------------------------

    def _catch_up(self) -> None:
        """Count what can be counted now. Where only the trace is behind, it is given a moment."""
        self._harvest()
        if self._timeline is not None and self._waiting:
            try:
                self._settle(self._timeline.closing_anchor(self._now()), CLOSING_S)
            except (DeviceError, RuntimeError) as error:
                self._give_up(error)
                self._harvest()

    def _settle(self, anchor: Anchor | None, seconds: float) -> None:
        """Let the trace get as far as the anchor."""
        until_s = self._now() + seconds
        while anchor is not None and self._timeline is not None and self._now() < until_s:
            done = self._timeline.has_time(anchor)
            self._harvest(flush=done)
            if done and not self._waiting:
                return

    def _limits(self) -> dict[str, float]:
        if not self._opened or not isinstance(self._backend, DeviceBackend):
            return {}
        try:
            return self._backend.limits()
        except DeviceError:
            return {}

    def _profile(self) -> Profile:
        summary = self.get_summary()
        limits = self._limits()
        return Profile(
            started_at=self._started_at,
            duration_s=self._now() - self._epoch_s if self._opened else 0.0,
            process=os.getpid(),
            program=" ".join(sys.argv[:1]),
            machine=platform.node(),
            facts=self._facts(),
            limits=limits,
            entries_total=self._counted,
            entries_kept=len(self._kept),
            pending=self.pending,
            lost=self._lost,
            no_breakdown=self._why_no_breakdown,
            operations=tuple(summary.values()),
            variants=tuple(each for totals in self._operations.values() for each in totals.variants_of()),
            bottlenecks=bottlenecks(summary.values(), limits),
            entries=tuple(each.entry(self._epoch_s, self._shift_s) for each in self._kept),
        )

    def _facts(self) -> dict[str, Any]:
        facts: dict[str, Any] = {"python": platform.python_version()}
        for name in ("torch", "cupy"):
            version = getattr(sys.modules.get(name), "__version__", None)
            if version is not None:
                facts[name] = str(version)
                facts.setdefault("loaded", []).append(name)
        if self._opened and self._backend is not None:
            try:
                facts.update(self._backend.facts())
            except DeviceError as error:
                facts["no_device"] = str(error)
            if not self._backend.has_device:
                facts["no_device"] = self._backend.why_no_device
        return facts
