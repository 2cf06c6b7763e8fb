"""The measuring loops: device time behind a full queue, and host time in windows.

Device time. A spin kernel occupies the stream while the host enqueues a whole block: for each sample a start event, the calls,
an end event. The device then works through the block without ever waiting for the host, so the time between two events is the
device's own. That the queue really stayed full is proven after the last record: if the spin has ended by then, the block is
starved and its times are thrown away. The spin is doubled (and the block halved, in case the queue was full to its limit) and
the block tried again; a function that starves every block waits for the device itself and has no device time.
"""

from __future__ import annotations

import gc
import itertools
import math
import statistics
from dataclasses import dataclass, field, replace
from typing import Callable, List, Optional, Sequence, Tuple

from .backend import Backend, DeviceBackend, DeviceError
from .stopping import FEWEST, enough, valid
from .wire import Protocol

Call = Callable[[], object]

ONE_CALL_FROM_S = 20e-6
"""From here up a window is one call."""
WINDOW_S = 200e-6
"""Below it, a window has as many calls as fill this."""
CPU_WINDOW_S = 1e-3
LAUNCHES_A_BLOCK = 500
LAUNCH_S = 2.5e-6
"""Least host time of a kernel launch: a call that takes the host h seconds launches at most h / LAUNCH_S kernels."""
BLOCK_SAMPLES = 20
TRIES = 4
STARVED_BLOCKS = 3
SPARE = 2.0
"""The spin is this much longer than the host is expected to need for the block."""
LONGEST_SPIN_S = 2.0
WAITED = 0.8
"""A window of at least this share of the spin was spent waiting for it."""
CALIBRATION_WINDOWS = 64
CLOCKS_UP_S = 0.1
LEAST_STEP_S = 1e-12
"""Smaller differences are rounding, not steps of a clock."""
WARM_CALLS = 3
WARM_AGREE = 0.02
WALL_SAMPLES = 10
MOST_CALLS = 1_000_000
LONG_FIRST_CALL_S = 0.5
"""A first call from here up is taken at its word; calling it again only to count would cost too much."""


@dataclass(frozen=True)
class Starved:
    """The queue ran dry in every try: the function synchronizes or waits for the host."""

    spin_s: float


@dataclass
class DeviceSamples:
    """Seconds a call: on the device, and of the host while the device was blocked."""

    device: List[float] = field(default_factory=list)
    host: List[float] = field(default_factory=list)
    invalid: int = 0
    retried: int = 0
    clocks_hz: List[float] = field(default_factory=list)


class DeviceLoop:
    """Times one call on a device. `reset` puts the inputs back before each sample, outside the window."""

    def __init__(self, call: Call, backend: DeviceBackend, reset: Optional[Call] = None) -> None:
        self._call, self._backend, self._reset = call, backend, reset
        self._host_call_s = 0.0
        """What a call costs the host; a running estimate that sizes the spin."""
        self._waits = False
        """The call was seen to wait for the device; there is no use in trying again."""

    def warm_up(self, limit_s: float) -> bool:
        """Call until the first call's compilation and the clocks are over: at least 3 calls, and until two blocks in a row
        agree within 2 %. False when that did not happen within `limit_s`."""
        backend = self._backend
        self._once()
        backend.synchronize()
        start = backend.now()
        for _ in range(WARM_CALLS):
            self._host_call_s = self._once()
            backend.synchronize()
        previous = 0.0
        while backend.now() - start < limit_s:
            block = self.block(WARM_CALLS, 1)
            if self._waits:
                return True  # nothing to settle: it will be timed by the host's clock
            if isinstance(block, Starved):
                continue
            level = statistics.median(block.device) if block.device else 0.0
            if previous and abs(level - previous) <= WARM_AGREE * previous:
                return True
            previous = level
        return False

    def _once(self) -> float:
        if self._reset is not None:
            self._reset()
        before = self._backend.now()
        self._call()
        return self._backend.now() - before

    def propose(self, protocol: Protocol) -> Optional[Protocol]:
        """The protocol with the calls a window that suit this call; None where the call waits for the device."""
        block = self._full_block(BLOCK_SAMPLES, 1)
        if isinstance(block, Starved):
            return None
        if self._reset is not None or not block.device:
            return protocol  # inputs are put back for one call only
        return replace(protocol, calls=calls_for(statistics.median(block.device), self._launches()))

    def sample(self, protocol: Protocol, attempts: int = 50) -> Optional[DeviceSamples]:
        """Blocks until there are enough samples; None where the queue cannot be kept full."""
        found = DeviceSamples()
        for _ in range(attempts):
            block = self._full_block(min(BLOCK_SAMPLES, protocol.samples_max), protocol.calls)
            if isinstance(block, Starved):
                # A host that became too slow half way takes nothing from the blocks that were full.
                return found if len(found.device) >= FEWEST else None
            found.device += block.device
            found.host += block.host
            found.invalid += block.invalid
            found.retried += block.retried
            found.clocks_hz += block.clocks_hz
            if enough(found.device, protocol) or found.invalid >= protocol.samples_max:
                break
        return found

    def _full_block(self, samples: int, calls: int) -> DeviceSamples | Starved:
        """A block, with patience for a host that is slow for a while; none for a call that waits for the device."""
        for _ in range(STARVED_BLOCKS):
            block = self.block(samples, calls)
            if self._waits or not isinstance(block, Starved):
                break
        return block

    def block(self, samples: int, calls: int) -> DeviceSamples | Starved:
        """One block of at most so many samples of `calls` calls each, tried again when the queue ran dry."""
        spin_s = 0.0
        starved: List[Tuple[float, float]] = []
        for tried in range(0 if self._waits else TRIES):
            sample_s = calls * self._host_call_s + 10e-6
            fit = min(LAUNCHES_A_BLOCK / (calls * self._launches()), LONGEST_SPIN_S / (SPARE * sample_s))
            samples = max(1, min(samples, int(fit)))
            spin_s = max(SPARE * samples * sample_s + 100e-6, 2 * spin_s)
            gc.collect()
            found = self._try(samples, calls, spin_s)
            if isinstance(found, DeviceSamples):
                found.retried = tried
                return found
            starved.append((spin_s, found))
            if waits_for_the_spin(starved):
                self._waits = True
                break
            samples = max(1, samples // 2)
        return Starved(spin_s)

    def _try(self, samples: int, calls: int, spin_s: float) -> DeviceSamples | float:
        """One try; where the queue ran dry, the host's seconds for the first window."""
        backend, call, reset = self._backend, self._call, self._reset
        gate = 2 * samples
        backend.use_events(gate + 1)
        host: List[float] = []
        backend.synchronize()
        backend.spin(spin_s)
        backend.record(gate)
        for index in range(samples):
            if reset is not None:
                reset()
            backend.record(2 * index)
            before = backend.now()
            for _ in itertools.repeat(None, calls):
                call()
            host.append((backend.now() - before) / calls)
            backend.record(2 * index + 1)
            if index == 0 and backend.passed(gate):
                backend.synchronize()
                return host[0] * calls
        starved = backend.passed(gate)
        backend.synchronize()
        self._host_call_s = statistics.median(host)
        if starved:
            return host[0] * calls
        times = [
            (backend.elapsed(2 * index, 2 * index + 1) - backend.window_overhead_s) / calls for index in range(samples)
        ]
        good = [time for time in times if valid(time)]
        return DeviceSamples(good, host, len(times) - len(good), 0, backend.clocks_hz())

    def _launches(self) -> int:
        return max(1, math.ceil(self._host_call_s / LAUNCH_S))


def waits_for_the_spin(starved: Sequence[Tuple[float, float]]) -> bool:
    """Whether a call waits for the device, from (seconds of the spin, host's seconds of the window behind it) of starved tries.

    A window that waits is longer by just as much as the spin is. A host that is merely slow, or was for a moment, is not.
    """
    pairs = zip(starved, starved[1:])
    return any(
        window >= WAITED * spin and abs((window - earlier) - (spin - shorter)) <= (1 - WAITED) * (spin - shorter)
        for (shorter, earlier), (spin, window) in pairs
    )


def calibrate(backend: DeviceBackend) -> None:
    """Measure what an empty window reads and the clock's step, and bring the device's clocks up. Once a process.

    Behind a spin and with the same proof as a block: where the queue ran dry, an empty window reads the host's time between
    two records, and every device time of the process would be too short by that. Raises DeviceError where no try was full.
    """
    gate = 2 * CALIBRATION_WINDOWS
    backend.use_events(gate + 1)
    backend.spin(CLOCKS_UP_S)
    backend.synchronize()
    spin_s = 1e-3
    while spin_s <= LONGEST_SPIN_S:
        backend.spin(spin_s)
        backend.record(gate)
        for index in range(CALIBRATION_WINDOWS):
            backend.record(2 * index)
            backend.record(2 * index + 1)
        full = not backend.passed(gate)
        backend.synchronize()
        if full:
            windows = sorted(backend.elapsed(2 * index, 2 * index + 1) for index in range(CALIBRATION_WINDOWS))
            steps = [later - earlier for earlier, later in zip(windows, windows[1:]) if later - earlier > LEAST_STEP_S]
            backend.window_overhead_s = statistics.median(windows)
            backend.clock_step_s = min(steps, default=backend.clock_step_s)
            backend.clocks_hz()
            return
        spin_s *= 2
    raise DeviceError("the host is too slow to keep the device's queue full, even for empty windows")


def calls_for(call_s: float, launches: int) -> int:
    """Calls a window for a call of that device time: one from 20 us up, below as many as last 200 us, 500 launches at most."""
    if call_s >= ONE_CALL_FROM_S:
        return 1
    return max(1, min(math.ceil(WINDOW_S / max(call_s, 1e-7)), LAUNCHES_A_BLOCK // launches))


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
    """Seconds of one window of so many calls, by the host's clock."""
    return wall_samples(call, backend, calls, before, lambda samples: True)[0] * calls


def cpu_calls(call: Call, backend: Backend, least_s: float) -> int:
    """Calls that fill a window of `least_s` by the host's clock; warms the call up on the way.

    The first call is left out, and a count stands only when a second window confirms it: a lazy import or one preemption
    would otherwise decide how the case is measured for good. A call that fills the window by itself is not called again.
    """
    calls, first = 1, window_s(call, backend, 1)
    if first >= LONG_FIRST_CALL_S:
        return 1
    while True:
        taken = window_s(call, backend, calls)
        if taken >= least_s:
            taken = min(taken, window_s(call, backend, calls))
        if taken >= least_s or calls >= MOST_CALLS:
            return calls
        growth = 10.0 if taken <= 0 else min(10.0, max(1.2, 1.1 * least_s / taken))
        calls = max(calls + 1, int(calls * growth))


def warm_cpu(call: Call, backend: Backend, calls: int, limit_s: float, before: Optional[Call] = None) -> bool:
    """Windows until two in a row agree within 2 %, or for `limit_s`. True when they agreed."""
    start, previous = backend.now(), 0.0
    while backend.now() - start < limit_s:
        taken = window_s(call, backend, calls, before)
        if previous and abs(taken - previous) <= WARM_AGREE * previous:
            return True
        previous = taken
    return False
