"""Blocks: device time behind a full queue.

A spin kernel occupies the stream while the host enqueues a whole block: for each sample a start event, the calls, an end event.
The device then works through the block without ever waiting for the host, so the time between two events is the device's own.
That the queue really stayed full is proven after the last record: if the spin has ended by then, the block is starved and its
times are thrown away. The spin is doubled (and the block halved, in case the queue was full to its limit) and the block tried
again; a function that starves every block waits for the device itself and has no device time.
"""

from __future__ import annotations

import gc
import itertools
import math
import statistics
from dataclasses import dataclass, field
from typing import Callable, List, Optional, Sequence, Tuple

from .backend import DeviceBackend
from .stopping import lane_value, valid

Call = Callable[[], object]

LAUNCHES_A_BLOCK = 500
LAUNCH_S = 2.5e-6
"""Least host time of a kernel launch: a call that takes the host h seconds launches at most h / LAUNCH_S kernels."""
TRIES = 4
STARVED_BLOCKS = 3
SPARE = 2.0
"""The spin is this much longer than the host is expected to need for the block."""
LONGEST_SPIN_S = 2.0
WAITED = 0.8
"""A window of at least this share of the spin was spent waiting for it."""
AROUND_CALLS_S = 10e-6
"""Least host time of a sample in addition to its calls: two records."""


@dataclass(frozen=True)
class Starved:
    """The queue ran dry in every try: the function synchronizes or waits for the host."""

    spin_s: float


@dataclass
class DeviceSamples:
    """Seconds a call on the device."""

    device: List[float] = field(default_factory=list)
    lanes: List[int] = field(default_factory=list)
    """The lane of each device sample."""
    invalid: int = 0
    retried: int = 0
    clocks_hz: List[float] = field(default_factory=list)
    cut: bool = False
    """Whether sampling ended early because a block could no longer be kept full."""
    trend: Optional[float] = None
    """Logarithm of the last samples over the first ones on the same stream."""

    def value(self, step_s: float = 0.0, calls: int = 1) -> float:
        """The device time of the round: the mean over the lanes."""
        return lane_value(self.device, self.lanes, step_s, calls)

    def add(self, block: DeviceSamples, lane: int) -> None:
        self.device += block.device
        self.lanes += [lane] * len(block.device)
        self.invalid += block.invalid
        self.retried += block.retried
        self.clocks_hz += block.clocks_hz


class Blocks:
    """Takes blocks of samples of one call on the current stream.

    `reset` restores the inputs before each sample, outside the window; `cold` empties the caches there. `prepare` may take
    long and wait for the device: it runs before the queue is filled, so a block then has one sample. `streams` are handles of
    further streams that the call uses.
    """

    def __init__(
        self,
        call: Call,
        backend: DeviceBackend,
        reset: Optional[Call] = None,
        *,
        prepare: Optional[Call] = None,
        streams: Sequence[int] = (),
        cold: bool = False,
    ) -> None:
        self._call, self._backend, self._reset = call, backend, reset
        self._prepare, self._streams, self._cold = prepare, streams, cold
        self._host_call_s = 0.0
        """What a call costs the host; a running estimate that sizes the spin."""
        self._around_s = AROUND_CALLS_S
        """The host's cost of a sample in addition to its calls."""
        self._wall_call_s = 0.0
        """What a call takes until the device has done it; bounds a block by the budget of its windows."""
        self._waits = False
        """The call was seen to wait for the device; there is no use in trying again."""

    def ready(self) -> None:
        """Put things as the call wants to find them."""
        if self._prepare is not None:
            self._prepare()
        if self._reset is not None:
            self._reset()

    def once(self) -> float:
        self.ready()
        before = self._backend.now()
        self._call()
        return self._backend.now() - before

    def full_block(self, samples: int, calls: int) -> DeviceSamples | Starved:
        """A block, with patience for a host that is slow for a while; none for a call that waits for the device."""
        for _ in range(STARVED_BLOCKS):
            block = self.block(samples, calls)
            if self._waits or not isinstance(block, Starved):
                break
        return block

    def block(self, samples: int, calls: int) -> DeviceSamples | Starved:
        """One block of at most `samples` samples of `calls` calls each, repeated if the queue ran dry."""
        spin_s = 0.0
        starved: List[Tuple[float, float]] = []
        for tried in range(0 if self._waits else TRIES):
            sample_s = calls * self._host_call_s + self._around_s
            fit = min(LAUNCHES_A_BLOCK / (calls * self.launches()), LONGEST_SPIN_S / (SPARE * sample_s))
            samples = 1 if self._prepare is not None else max(1, min(samples, int(fit)))
            spin_s = max(SPARE * samples * sample_s + 100e-6, 2 * spin_s)
            block = self._collected(samples, calls, spin_s)
            if isinstance(block, DeviceSamples):
                block.retried = tried
                return block
            starved.append((spin_s, block))
            if waits_for_the_spin(starved):
                self._waits = True
                break
            samples = max(1, samples // 2)
        return Starved(spin_s)

    def _collected(self, samples: int, calls: int, spin_s: float) -> DeviceSamples | float:
        """One try, with garbage collected before it and not within."""
        gc.collect()
        collecting = gc.isenabled()
        gc.disable()
        try:
            return self._try(samples, calls, spin_s)
        finally:
            if collecting:
                gc.enable()

    def _try(self, samples: int, calls: int, spin_s: float) -> DeviceSamples | float:
        """One try; where the queue ran dry, the host's seconds for the first window."""
        backend = self._backend
        gate = 2 * samples
        backend.use_events(gate + 1)
        host: List[float] = []
        if self._prepare is not None:
            self._prepare()
        backend.synchronize()
        backend.hold_stream()
        backend.ranks.meet("a block")
        backend.spin(spin_s)
        backend.record(gate)
        if backend.ranks.several:
            self._call_untimed()
        start = backend.now()
        for index in range(samples):
            if self._reset is not None:
                self._reset()
            if self._cold:
                backend.flush()
            host.append(self.window(2 * index, 2 * index + 1, calls))
            # Ranks enqueue the block to its end: the others count on it.
            if index == 0 and not backend.ranks.several and backend.passed(gate):
                backend.synchronize()
                return host[0] * calls
        taken_s = backend.now() - start
        ran_dry = backend.passed(gate)
        backend.synchronize()
        around_s = (taken_s - calls * sum(host)) / samples
        times = [
            (backend.elapsed(2 * index, 2 * index + 1) - backend.window_overhead_s) / calls for index in range(samples)
        ]
        starved, first_s, self._host_call_s, around_s, *times = backend.ranks.most(
            "the end of a block", ran_dry, host[0], statistics.median(host), around_s, *times
        )
        self._around_s = max(AROUND_CALLS_S, around_s)
        if starved:
            return first_s * calls
        good = [time for time in times if valid(time)]
        return DeviceSamples(good, [0] * len(good), len(times) - len(good), 0, backend.clocks_hz())

    def _call_untimed(self) -> None:
        """Enqueue a call that is no sample: the spins of the ranks do not end at one moment, and with this call they meet."""
        if self._reset is not None:
            self._reset()
        self._call()

    def window(self, start: int, end: int, calls: int) -> float:
        """Enqueue one window between two events; the host's seconds a call."""
        backend, call = self._backend, self._call
        backend.record(start)
        if self._streams:
            backend.fork(start, self._streams)
        before = backend.now()
        for _ in itertools.repeat(None, calls):
            call()
        taken_s = backend.now() - before
        if self._streams:
            backend.join(self._streams)
        backend.record(end)
        return taken_s / calls

    def launches(self) -> int:
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
