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
from typing import Callable, List, Optional

from .backend import Backend, DeviceBackend
from .stopping import enough, valid
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
WARM_CALLS = 3
WARM_AGREE = 0.02
WALL_SAMPLES = 10


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

    def warm_up(self, limit_s: float) -> bool:
        """Call until the first call's compilation and the clocks are over: at least 3 calls, and until two blocks in a row
        agree within 2 %. False when that did not happen within `limit_s`."""
        backend = self._backend
        self._call()
        backend.synchronize()
        start = backend.now()
        for _ in range(WARM_CALLS):
            before = backend.now()
            self._call()
            self._host_call_s = backend.now() - before
            backend.synchronize()
        previous = 0.0
        while backend.now() - start < limit_s:
            block = self.block(WARM_CALLS, 1)
            if isinstance(block, Starved):
                return True  # nothing to settle: it will be timed by the host's clock
            level = statistics.median(block.device) if block.device else 0.0
            if previous and abs(level - previous) <= WARM_AGREE * previous:
                return True
            previous = level
        return False

    def propose(self, protocol: Protocol) -> Optional[Protocol]:
        """The protocol with the calls a window that suit this call; None where the call has no device time."""
        block = self.block(BLOCK_SAMPLES, 1)
        if isinstance(block, Starved) or not block.device:
            return None
        return replace(protocol, calls=calls_for(statistics.median(block.device), self._launches()))

    def sample(self, protocol: Protocol, attempts: int = 50) -> Optional[DeviceSamples]:
        """Blocks until there are enough samples; None where the queue cannot be kept full."""
        found = DeviceSamples()
        for _ in range(attempts):
            block = self.block(BLOCK_SAMPLES, protocol.calls)
            if isinstance(block, Starved):
                return None
            found.device += block.device
            found.host += block.host
            found.invalid += block.invalid
            found.retried += block.retried
            found.clocks_hz += block.clocks_hz
            if enough(found.device, protocol):
                break
        return found

    def block(self, samples: int, calls: int) -> DeviceSamples | Starved:
        """One block of at most so many samples of `calls` calls each, tried again when the queue ran dry."""
        samples = max(1, min(samples, int(LAUNCHES_A_BLOCK / (calls * self._launches()))))
        spin_s = 0.0
        for tried in range(TRIES):
            needed_s = samples * (calls * self._host_call_s + 10e-6)
            spin_s = max(1.5 * needed_s + 100e-6, 2 * spin_s)
            gc.collect()
            block = self._try(samples, calls, spin_s)
            if block is not None:
                block.retried = tried
                return block
            samples = max(1, samples // 2)
        return Starved(spin_s)

    def _try(self, samples: int, calls: int, spin_s: float) -> Optional[DeviceSamples]:
        backend, call, reset = self._backend, self._call, self._reset
        gate = 2 * samples
        backend.use_events(gate + 1)
        host = []
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
        starved = backend.passed(gate)
        backend.synchronize()
        self._host_call_s = statistics.median(host)
        if starved:
            return None
        times = [
            (backend.elapsed(2 * index, 2 * index + 1) - backend.window_overhead_s) / calls for index in range(samples)
        ]
        good = [time for time in times if valid(time)]
        return DeviceSamples(good, host, len(times) - len(good), 0, backend.clocks_hz())

    def _launches(self) -> int:
        return max(1, math.ceil(self._host_call_s / LAUNCH_S))


def calls_for(call_s: float, launches: int) -> int:
    """Calls a window for a call of that device time: one from 20 us up, below as many as last 200 us, 500 launches at most."""
    if call_s >= ONE_CALL_FROM_S:
        return 1
    return max(1, min(math.ceil(WINDOW_S / max(call_s, 1e-7)), LAUNCHES_A_BLOCK // launches))


def wall_samples(
    call: Call, backend: Backend, calls: int, before: Optional[Call], stop: Callable[[List[float]], bool]
) -> List[float]:
    """Seconds a call by the host's clock, in windows of `calls` calls, each begun and ended with a synchronized device.

    `before` runs ahead of every window. Garbage is collected between windows, not inside.
    """
    samples: List[float] = []
    collecting = gc.isenabled()
    gc.disable()
    try:
        while True:
            if before is not None:
                before()
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


def cpu_calls(call: Call, backend: Backend, window_s: float, before: Optional[Call] = None) -> int:
    """Calls that fill a window of `window_s` by the host's clock; warms the call up on the way."""
    calls = 1
    while True:
        (taken,) = wall_samples(call, backend, calls, before, lambda samples: True)
        total = taken * calls
        if total >= window_s or calls >= 1_000_000:
            return calls
        growth = 10.0 if total <= 0 else min(10.0, max(1.2, 1.1 * window_s / total))
        calls = max(calls + 1, int(calls * growth))


def warm_cpu(call: Call, backend: Backend, calls: int, limit_s: float, before: Optional[Call] = None) -> bool:
    """Windows until two in a row agree within 2 %, or for `limit_s`. True when they agreed."""
    start, previous = backend.now(), 0.0
    while backend.now() - start < limit_s:
        (taken,) = wall_samples(call, backend, calls, before, lambda samples: True)
        if previous and abs(taken - previous) <= WARM_AGREE * previous:
            return True
        previous = taken
    return False
