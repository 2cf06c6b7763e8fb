"""Windows by the host's clock: what a call takes, with or without a device, and how many calls a window needs.

Whatever disturbs the host's clock belongs to the core and to the moment: another process, another clock of the core, caches
that others have filled. So windows are short (0.3 ms), and sides that are compared take them in turn on one core (`seat`). A
window begins with the caches as the call itself leaves them: calls go before it that are not timed.
"""

from __future__ import annotations

import contextlib
import gc
import itertools
import math
import os
import statistics
import threading
import time
from dataclasses import dataclass, replace
from typing import Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence, Set

from .awaited import AwaitedCall
from .backend import Backend, DeviceBackend, DeviceError
from .wire import Protocol

Call = Callable[[], object]

SHORT_WINDOW_S = 0.3e-3
MOST_WINDOWS = 200
LONG_CALL_S, LONG_TAKE_S, LONG_WINDOWS = 50e-3, 0.4, 2
"""From so long a call, or setup and call, up, as many windows as this time has room for, but this many at least."""
WARM_CALLS = ((1e-3, 3), (5e-3, 1))
"""Up to so long a call, this many calls before a window; none before longer ones."""
SEVERAL_THREADS = 0.1
"""Of a thread's own seconds of a processor: what other threads have where several work for it."""
THREADS_CLOCK = 6
"""What makes a clock of a thread's number, as in pthread_getcpuclockid(3)."""
SEVERAL_WINDOW_S = 50e-6
KEPT_WAITING = 0.05
"""Of a window of several threads, what any of them may have been kept waiting for a core."""
FEWEST_UNDISTURBED = 6
"""Undisturbed windows that say more than all of them, if there are as many."""
LONGEST_REST_S, REST_STEP_S, RESTING = 20e-3, 200e-6, 0.5
"""How long a process waits for its threads to rest after a window, how often it looks, and from which share of such a step on
they have not."""
CALL_WINDOWS, CALL_BUDGET_S = 15, 50e-3
"""How a call is timed before anything is measured: the lower quartile of this many windows, or of what fits this time."""
WARM_AGREE = 0.02
YOUNGEST = 0
"""The generation that calls since the last collection have made: cheap to collect, whatever the setup has made before."""
MOST_CALLS = 1_000_000
LEAST_S = 1e-9
"""No call is taken to be shorter; a clock of the author's may stand still."""
LONG_FIRST_CALL_S = 0.5
"""A first call from here up is taken at its word; calling it again only to count would cost too much."""


class Window(NamedTuple):
    """Seconds a call."""

    wall_s: float
    net_s: float
    """Less those for which the thread was ready and others had its core; see `Preemptions`."""


class Preemptions:
    """For how long this thread was ready to run, and others had its core; with `all_threads`, any thread of this process.
    Nothing is known where the system does not tell; Linux does."""

    def __init__(self, all_threads: bool = False) -> None:
        self._all_threads = all_threads
        self._fds: Dict[str, int] = {}
        self._look()

    def close(self) -> None:
        while self._fds:
            os.close(self._fds.popitem()[1])

    def mark(self) -> Sequence[int]:
        """What `net_s` counts from."""
        self._look()
        return (self._waited_ns(), time.thread_time_ns()) if self._fds else ()

    def net_s(self, mark: Sequence[int], wall_s: float) -> float:
        """What is left of `wall_s` that have passed since the mark. NaN where any of several threads was kept waiting: the
        others may have waited for it, or not.

        The core may also have been taken before the clock was read, or after: what one thread has computed was not taken from
        it."""
        if not mark:
            return wall_s
        waited_s = (self._waited_ns() - mark[0]) * 1e-9
        if self._all_threads:
            return wall_s if waited_s <= KEPT_WAITING * wall_s else math.nan
        computed_s = (time.thread_time_ns() - mark[1]) * 1e-9
        return wall_s - min(waited_s, max(0.0, wall_s - computed_s))

    def _look(self) -> None:
        """Open what tells of each thread: of this one once, of all of them whenever there are others."""
        if not self._all_threads and self._fds:
            return
        with contextlib.suppress(OSError):
            threads = os.listdir("/proc/self/task") if self._all_threads else [str(threading.get_native_id())]
            for name in threads:
                if name not in self._fds:
                    self._fds[name] = os.open(f"/proc/self/task/{name}/schedstat", os.O_RDONLY | os.O_CLOEXEC)

    def _waited_ns(self) -> int:
        waited_ns = 0
        for fd in self._fds.values():
            with contextlib.suppress(OSError):  # it has ended
                _, waited, _ = os.pread(fd, 64, 0).split()
                waited_ns += int(waited)
        return waited_ns

    def rest(self) -> None:
        """Wait until no thread of this process computes or wants to: a pool goes on looking for work for some milliseconds."""
        until = time.perf_counter() + LONGEST_REST_S
        before_s = others_s() + self._waited_ns() * 1e-9
        while self._fds and time.perf_counter() < until:
            time.sleep(REST_STEP_S)
            now_s = others_s() + self._waited_ns() * 1e-9
            if now_s - before_s <= RESTING * REST_STEP_S:
                return
            before_s = now_s


def others_s() -> float:
    """Seconds of a processor that the other threads of this process have had.

    The time of a thread that runs is brought up to date when it is asked for, else at the core's next tick, up to 4 ms later;
    the process's own clock asks none of the others. So each is asked first.
    """
    with contextlib.suppress(OSError):
        for name in os.listdir("/proc/self/task"):
            with contextlib.suppress(OSError):  # it has ended
                time.clock_gettime(~int(name) << 3 | THREADS_CLOCK)
    return time.process_time() - time.thread_time()


def least_disturbed(wall_s: Sequence[float], net_s: Sequence[float]) -> List[float]:
    """Of windows that several threads work in, those in which none of them was kept waiting; the fastest quarter of all where
    there are hardly any. Seconds a call."""
    undisturbed_s = [net for net in net_s if net > 0]
    if len(undisturbed_s) >= FEWEST_UNDISTURBED:
        return undisturbed_s
    fastest_s = sorted(wall for wall in wall_s if wall > 0)
    return fastest_s[: max(FEWEST_UNDISTURBED, len(fastest_s) // 4)]


class HostWindows:
    """Takes short windows of a call by the host's clock. Use it as a context manager.

    `before` runs ahead of every window, and of each call that goes before one. `waits` says what is waited for within a window:
    every call ("each"), its end ("last"), or nothing. `renewed` is tried once where a window fails: calls may have used up what
    was set up for them.
    """

    def __init__(
        self,
        call: Call,
        clock: Backend,
        calls: int,
        warm_calls: int = 0,
        before: Optional[Call] = None,
        waits: str = "last",
        several_threads: bool = False,
        renewed: Optional[Call] = None,
    ) -> None:
        self._call, self.clock, self._before, self._waits = call, clock, before, waits
        self._renewed = renewed
        self.calls, self._warm_calls = calls, warm_calls
        self._preemptions = Preemptions(several_threads) if clock.real_clock else None
        self._several_threads = several_threads

    def __enter__(self) -> HostWindows:
        return self

    def __exit__(self, *_: object) -> None:
        if self._preemptions is not None:
            self._preemptions.close()

    @property
    def knows_preemption(self) -> bool:
        """Whether the system says when others had the core."""
        return self._preemptions is not None and bool(self._preemptions.mark())

    def take(self) -> Window:
        """One window. What earlier ones have left in cycles is collected before; collecting by the clock is for the caller to
        keep out (`undisturbed`)."""
        gc.collect(YOUNGEST)
        try:
            return self._taken()
        except DeviceError:
            raise
        except Exception:
            if self._renewed is None:
                raise
            self._renewed()
            return self._taken()

    def _taken(self) -> Window:
        ranks = self.clock.ranks
        for _ in range(max(self._warm_calls, ranks.several)):  # a call before the window, with which the ranks meet
            self._ready()
            self._call()
        self._ready()
        self.clock.synchronize()
        self._begin()
        call = self._call
        window = call.enter(self._awaited(call)) if isinstance(call, AwaitedCall) else self._window()
        self.clock.synchronize()
        return Window(*ranks.most("a window", *window))

    def rest(self) -> None:
        """Wait until others can have their windows: until no thread of the call is still at work."""
        if self._several_threads and self._preemptions is not None:
            self._preemptions.rest()

    def _ready(self) -> None:
        if self._before is not None:
            self._before()

    def _begin(self) -> None:
        """What comes between waiting for the device and the window."""

    def _window(self) -> Window:
        preemptions, clock = self._preemptions, self.clock
        mark = preemptions.mark() if preemptions is not None else ()
        start = clock.now()
        self._timed()
        return self._over(mark, clock.now() - start)

    async def _awaited(self, call: AwaitedCall) -> Window:
        """The same within the loop of the call."""
        preemptions, clock, once = self._preemptions, self.clock, call.once
        mark = preemptions.mark() if preemptions is not None else ()
        start = clock.now()
        for _ in itertools.repeat(None, self.calls):
            await once()
            if self._waits == "each":
                clock.synchronize()
        if self._waits == "last":
            clock.synchronize()
        return self._over(mark, clock.now() - start)

    def _over(self, mark: Sequence[int], wall_s: float) -> Window:
        net_s = self._preemptions.net_s(mark, wall_s) if self._preemptions is not None else wall_s
        return Window(wall_s / self.calls, net_s / self.calls)

    def _timed(self) -> None:
        call, synchronize = self._call, self.clock.synchronize
        if self._waits == "each":
            for _ in itertools.repeat(None, self.calls):
                call()
                synchronize()
            return
        for _ in itertools.repeat(None, self.calls):
            call()
        if self._waits:
            synchronize()


class LaunchWindows(HostWindows):
    """Takes windows of the host's time to enqueue a call, while a spin of `spin_s` keeps the device from having any part in
    it. Of the calls before a window, `behind` are enqueued behind the spin too: what waits for the device finds the host's
    caches cold afterwards."""

    def __init__(
        self,
        call: Call,
        device: DeviceBackend,
        calls: int,
        warm_calls: int,
        before: Optional[Call],
        spin_s: float,
        several_threads: bool,
        behind: int = 0,
    ) -> None:
        super().__init__(call, device, calls, warm_calls - behind, before, waits="", several_threads=several_threads)
        self._device, self._spin_s, self._behind = device, spin_s, behind

    def _begin(self) -> None:
        self._device.hold_stream()
        self._device.spin(self._spin_s)
        for _ in range(self._behind):
            self._call()


# -- how many ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Timed:
    """What was found of a call before it is measured."""

    call_s: float
    window_s: float
    """Of a window with one call, and what runs ahead of it."""
    threads: bool
    """Whether several threads work for it."""


def timed(windows: HostWindows) -> Timed:
    """What a call and a window take undisturbed: the lower quartiles of some."""
    now, began = windows.clock.now, windows.clock.now()
    own_s, of_others_s = time.thread_time(), others_s()
    calls: List[float] = []
    takes: List[float] = []
    ranks = windows.clock.ranks
    while len(calls) < CALL_WINDOWS and (not calls or ranks.longest("timing", now() - began) < CALL_BUDGET_S):
        start = now()
        calls.append(windows.take().wall_s)
        takes.append(ranks.longest("timing", now() - start))
    own_s, of_others_s = time.thread_time() - own_s, others_s() - of_others_s
    threads = ranks.any("its threads", several_threads(own_s, of_others_s))
    quiet = 0 if threads else len(calls) // 4  # few windows of several threads are not disturbed
    call_s, take_s = (max(sorted(seconds)[quiet], LEAST_S) for seconds in (calls, takes))
    return Timed(call_s, max(take_s - (windows.calls - 1) * call_s, call_s), threads)


def several_threads(own_s: float, of_others_s: float) -> bool:
    """Whether several threads work for calls, by the seconds of a processor that this one has had for them, and the others."""
    return of_others_s > SEVERAL_THREADS * own_s


def calls_of_window(timing: Timed) -> int:
    """Calls that fill a short window. One that several threads work in is shorter: it counts only if none of them was kept
    waiting."""
    length_s = SEVERAL_WINDOW_S if timing.threads else SHORT_WINDOW_S
    return max(1, min(MOST_CALLS, round(length_s / timing.call_s)))


def warm_calls_for(call_s: float) -> int:
    """Calls ahead of a window of calls that take so long."""
    return next((calls for limit_s, calls in WARM_CALLS if call_s <= limit_s), 0)


def short_windows(
    protocol: Protocol, timing: Timed, calls: int, timeout_s: float, budget_s: float, fewest: int
) -> Protocol:
    """The protocol with as many windows of this many calls as the budget has room for, within what the author declares of
    samples; an even number, because an order and its reverse belong together. None takes longer than `timeout_s` together."""
    warm_calls = 0 if protocol.setup_each else warm_calls_for(timing.call_s)
    window_s = timing.window_s + (calls + warm_calls - 1) * timing.call_s
    fewest = min(fewest, protocol.samples_max)
    if max(timing.call_s, timing.window_s) > LONG_CALL_S:
        budget_s, fewest = max(budget_s, LONG_TAKE_S), min(LONG_WINDOWS, fewest)
    most = max(1, min(MOST_WINDOWS, protocol.samples_max, int(timeout_s / window_s)))
    fit = min(most, max(fewest, int(min(budget_s / window_s, most))))
    return replace(
        protocol,
        short_windows=True,
        warm_calls=warm_calls,
        windows=fit + fit % 2 if fit < most else fit,
        pinned=not timing.threads,
    )


# -- where ---------------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def undisturbed(pinned: bool, rank: int = 0) -> Iterator[None]:
    """Let this thread run on one core, the last one that it may use, and let no garbage be collected meanwhile. Each rank has a
    core of its own, as far as there are some."""
    collecting, before = gc.isenabled(), _processors() if pinned else set()
    gc.collect()
    gc.disable()
    try:
        if len(before) > 1:
            _keep_to({sorted(before)[-1 - rank % len(before)]})
        yield
    finally:
        if len(before) > 1:
            _keep_to(before)
        if collecting:
            gc.enable()


def _processors() -> Set[int]:
    return set(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else set()


def _keep_to(processors: Set[int]) -> None:
    with contextlib.suppress(OSError):  # some sandboxes forbid it; then the system puts it where it likes
        os.sched_setaffinity(0, processors)


# -- how well they agree here --------------------------------------------------------------------------------------------

TRIALS = 10


class Agreement(NamedTuple):
    """How far apart one and the same loop reads on this machine: standard deviations of the logarithm of a ratio."""

    in_turn: float
    """Of windows in turn, as many as a pair has of each side."""
    apart: float
    """Of as many windows one after the other."""
    core: Optional[int]
    """The one it was kept to; None if that cannot be."""
    knows_preemption: bool
    """Whether the system says when others had the core."""


def agreement(clock: Backend) -> Agreement:
    """Try it, for about a second."""
    windows_a_side = 64
    with undisturbed(pinned=True), HostWindows(_loop, clock, 1) as windows:
        core = next(iter(_processors())) if len(_processors()) == 1 else None
        windows.calls = calls_of_window(timed(windows))
        in_turn, apart = [], []
        for _ in range(TRIALS):
            logs = [math.log(max(windows.take().net_s, LEAST_S)) for _ in range(2 * windows_a_side)]
            in_turn.append(statistics.median(one - other for one, other in zip(logs[::2], logs[1::2])))
            apart.append(statistics.median(logs[windows_a_side:]) - statistics.median(logs[:windows_a_side]))
        return Agreement(_size(in_turn), _size(apart), core, windows.knows_preemption)


def _loop() -> int:
    return sum(number * number for number in range(200))


def _size(differences: Sequence[float]) -> float:
    """Their standard deviation around none."""
    return math.sqrt(sum(difference * difference for difference in differences) / len(differences))


# -- windows until there are enough --------------------------------------------------------------------------------------


def wall_samples(
    call: Call, backend: Backend, calls: int, before: Optional[Call], stop: Callable[[List[float]], bool]
) -> List[float]:
    """Seconds a call by the host's clock, in windows of `calls` calls, each begun and ended with a synchronized device.

    `before` runs ahead of every window. Garbage is collected between windows, not inside; `stop` says after each window
    whether there are enough.
    """
    samples: List[float] = []
    collecting = gc.isenabled()
    gc.disable()
    try:
        while True:
            if before is not None:
                before()
            if collecting:
                gc.collect()
            backend.synchronize()
            start = backend.now()
            for _ in itertools.repeat(None, calls):
                call()
            backend.synchronize()
            samples.append((backend.now() - start) / calls)
            if stop(samples):
                return samples
    finally:
        if collecting:
            gc.enable()


def window_s(call: Call, backend: Backend, calls: int, before: Optional[Call] = None) -> float:
    """Seconds of one window of this many calls, by the host's clock; of ranks, of the slowest."""
    taken_s = wall_samples(call, backend, calls, before, lambda samples: True)[0] * calls
    return backend.ranks.longest("a window", taken_s)


def cpu_calls(call: Call, backend: Backend, least_s: float) -> int:
    """Calls that fill a window of `least_s` by the host's clock; warms the call up on the way.

    The first call is left out, and a count stands only when a second window confirms it: a lazy import or one preemption
    would otherwise decide how the case is measured for good. A first call of half a second is not called again.
    """
    calls, first = 1, window_s(call, backend, 1)
    if first >= LONG_FIRST_CALL_S:
        return 1
    while True:
        taken = window_s(call, backend, calls)
        if least_s <= taken < LONG_CALL_S:  # a preemption is shorter
            taken = min(taken, window_s(call, backend, calls))
        if taken >= least_s or calls >= MOST_CALLS:
            return calls
        growth = 10.0 if taken <= 0 else min(10.0, max(1.2, 1.1 * least_s / taken))
        calls = max(calls + 1, int(calls * growth))


def warm_cpu(call: Call, backend: Backend, calls: int, limit_s: float, before: Optional[Call] = None) -> bool:
    """Windows until two in a row agree within 2 %, or for `limit_s`. True when they agreed."""
    start, previous = backend.now(), 0.0
    while backend.ranks.longest("warming up", backend.now() - start) < limit_s:
        taken = window_s(call, backend, calls, before)
        if previous and abs(taken - previous) <= WARM_AGREE * previous:
            return True
        previous = taken
    return False
