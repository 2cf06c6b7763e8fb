"""The device's measuring loop: device time behind a full queue.

A spin kernel occupies the stream while the host enqueues a whole block: for each sample a start event, the calls, an end event.
The device then works through the block without ever waiting for the host, so the time between two events is the device's own.
That the queue really stayed full is proven after the last record: if the spin has ended by then, the block is starved and its
times are thrown away. The spin is doubled (and the block halved, in case the queue was full to its limit) and the block tried
again; a function that starves every block waits for the device itself and has no device time.

Lanes. The level of a kernel depends on the hardware queue its stream is served by: on an H100, layer_norm of 4096 x 4096 takes
65 us on some streams of a process and 74 us on others, and small kernels differ by 5 %. A process draws its default stream's
queue anew, so a round takes its samples on several streams in turn, and its value is the mean over them.
"""

from __future__ import annotations

import gc
import itertools
import math
import statistics
from dataclasses import dataclass, field, replace
from typing import Callable, ContextManager, List, Optional, Sequence, Tuple

from .backend import DeviceBackend, DeviceError
from .growth import growth
from .stopping import FEWEST, FEWEST_LONG, LONG_CALL_S, centred, enough, lane_value, valid
from .wire import Protocol

Call = Callable[[], object]

ONE_CALL_FROM_S = 20e-6
"""From here up a window is one call."""
WINDOW_S = 200e-6
"""Below it, a window has as many calls as fill this."""
LAUNCHES_A_BLOCK = 500
LAUNCH_S = 2.5e-6
"""Least host time of a kernel launch: a call that takes the host h seconds launches at most h / LAUNCH_S kernels."""
BLOCK_SAMPLES = 24
TRIES = 4
STARVED_BLOCKS = 3
SPARE = 2.0
"""The spin is this much longer than the host is expected to need for the block."""
LONGEST_SPIN_S = 2.0
WAITED = 0.8
"""A window of at least this share of the spin was spent waiting for it."""
AROUND_CALLS_S = 10e-6
"""Least host time of a sample beside its calls: two records."""
WARM_CALLS = 3
WARM_AGREE = 0.02
LANES = 8
LANE_TOLERANCE = 0.25
"""A lane whose time differs from the current stream's by more than this does not hold all of the call's work."""
ESCAPE_TRIES = 5
ESCAPED_S = 20e-6
ESCAPED_SHARE = 0.02
SHORTEST_CONTROL_S = 50e-6
AHEAD_S = 50e-6
AHEAD_SHARE = 0.5
"""Wider than for what is left behind: the latencies of an empty queue are in it."""
ESCAPES = "works on a stream that it does not name in streams(): no device time"


@dataclass(frozen=True)
class Starved:
    """The queue ran dry in every try: the function synchronizes or waits for the host."""

    spin_s: float


@dataclass
class DeviceSamples:
    """Seconds a call: on the device, and of the host while the device was blocked."""

    device: List[float] = field(default_factory=list)
    host: List[float] = field(default_factory=list)
    lanes: List[int] = field(default_factory=list)
    """The lane of each device sample."""
    invalid: int = 0
    retried: int = 0
    clocks_hz: List[float] = field(default_factory=list)

    def value(self, step_s: float = 0.0, calls: int = 1) -> float:
        """The device time of the round: the mean over the lanes."""
        return lane_value(self.device, self.lanes, step_s, calls)

    def add(self, block: DeviceSamples, lane: int) -> None:
        self.device += block.device
        self.lanes += [lane] * len(block.device)
        self.host += block.host
        self.invalid += block.invalid
        self.retried += block.retried
        self.clocks_hz += block.clocks_hz


class DeviceLoop:
    """Times one call on a device.

    `reset` puts the inputs back before each sample, outside the window; `cold` empties the caches there. `prepare` may take its
    time and wait for the device: it runs before the queue is filled, so that a block has one sample. `streams` are handles of
    streams that the call works on beside the current one.
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
        """What a sample costs the host beside its calls."""
        self._wall_call_s = 0.0
        """What a call takes until the device has done it; bounds a block by the budget of its windows."""
        self._waits = False
        """The call was seen to wait for the device; there is no use in trying again."""

    # -- before measuring ------------------------------------------------------------------------------------------------

    def warm_up(self, limit_s: float) -> bool:
        """Call until the first call's compilation and the clocks are over: at least 3 calls, and until two blocks in a row
        agree within 2 % with no memory taken from the device and nothing compiled in between. False when that did not happen
        within `limit_s`."""
        backend = self._backend
        self._once()
        backend.synchronize()
        start = backend.now()
        walls: List[float] = []
        for _ in range(WARM_CALLS):
            before_s = backend.now()
            self._host_call_s = self._once()
            backend.synchronize()
            walls.append(backend.now() - before_s)
        self._wall_call_s = min(walls)
        if self._wall_call_s > LONG_CALL_S:  # two blocks of it would take longer than they can tell
            return abs(walls[-1] - walls[-2]) <= WARM_AGREE * walls[-2]
        previous, grown = 0.0, growth()
        while backend.now() - start < limit_s:
            block = self.block(WARM_CALLS, 1)
            if self._waits:
                return True  # nothing to settle: it will be timed by the host's clock
            before, grown = grown, growth()
            if isinstance(block, Starved):
                continue
            level = statistics.median(block.device) if block.device else 0.0
            if previous and grown == before and abs(level - previous) <= WARM_AGREE * previous:
                return True
            previous = level
        return False

    def _ready(self) -> None:
        """Put things as the call wants to find them."""
        if self._prepare is not None:
            self._prepare()
        if self._reset is not None:
            self._reset()

    def _once(self) -> float:
        self._ready()
        before = self._backend.now()
        self._call()
        return self._backend.now() - before

    def propose(self, protocol: Protocol) -> Optional[Protocol]:
        """The protocol with the calls a window and the lanes that suit this call; None where it waits for the device."""
        block = self._full_block(self._affordable(protocol), 1)
        if isinstance(block, Starved):
            return None
        if not block.device:
            return protocol
        call_s = statistics.median(block.device)
        if self._reset is None and self._prepare is None and not self._cold:  # else all is ready for one call only
            protocol = replace(protocol, calls=calls_for(call_s, self._launches()))
        return replace(protocol, lanes=self._lanes_for(call_s, protocol))

    def _lanes_for(self, call_s: float, protocol: Protocol) -> int:
        """Lanes that one sample each fits the budget of, where the call's work goes to the current stream, whichever it is."""
        wanted = min(LANES, protocol.samples_min, int(protocol.window_budget_s / (call_s * protocol.calls)))
        lanes = self._backend.lanes(wanted)
        if wanted < 2 or len(lanes) < wanted or self._streams:
            return 1
        try:
            with lanes[-1]:
                self._once()
                escaped = self.escapes(protocol.calls, call_s)
                block = self._full_block(WARM_CALLS, protocol.calls)
        except DeviceError:
            raise
        except Exception:  # a call that works on the stream of its inputs alone
            self._backend.synchronize()
            return 1
        if escaped or isinstance(block, Starved) or not block.device:
            self._waits = False
            return 1
        return wanted if abs(statistics.median(block.device) / call_s - 1) <= LANE_TOLERANCE else 1

    def escapes(self, calls: int = 1, call_s: float = math.inf) -> bool:
        """Whether the device works for the call elsewhere than on the current and the declared streams: it is still at work
        after they have passed, or they wait for more than the `call_s` seconds that a call takes behind a spin.

        The queue is left empty on purpose: work on another stream does not wait for a spin.
        """
        backend = self._backend
        backend.use_events(2)
        for _ in range(ESCAPE_TRIES):
            self._ready()
            backend.synchronize()
            backend.hold_stream()
            host_s = calls * self._window(0, 1, calls)
            left_s, window_s = self._left_after(1), backend.elapsed(0, 1)
            # What a synchronize takes after so much work that is in the stream for certain.
            backend.spin(max(window_s, SHORTEST_CONTROL_S))
            backend.record(1)
            left_s -= self._left_after(1)
            # Work that the stream waits for, but that did not wait for it, was over before the spin of a block was.
            ahead_s = window_s - host_s - calls * call_s
            late = left_s > max(ESCAPED_S, ESCAPED_SHARE * window_s)
            early = ahead_s > max(AHEAD_S, AHEAD_SHARE * window_s)
            if not late and not early:
                return False
        return True

    def _left_after(self, event: int) -> float:
        """Host seconds for which the device is at work after the event has passed."""
        backend = self._backend
        while not backend.passed(event):
            pass
        before = backend.now()
        backend.synchronize()
        return backend.now() - before

    # -- measuring -------------------------------------------------------------------------------------------------------

    def sample(self, protocol: Protocol) -> Optional[DeviceSamples]:
        """Blocks on each lane in turn until there are enough samples; None where the queue cannot be kept full."""
        found, warm = DeviceSamples(), set()
        lanes = self._backend.lanes(protocol.lanes)
        while True:
            left = protocol.samples_max - len(found.device) - found.invalid
            share, rest = divmod(min(self._affordable(protocol), left), len(lanes))
            for lane, stream in enumerate(lanes):
                samples = share + (lane < rest)
                if not samples:
                    continue
                block = self._on(stream, samples, protocol.calls, first=len(lanes) > 1 and lane not in warm)
                warm.add(lane)
                if isinstance(block, Starved):
                    # A host that became too slow half way takes nothing from the blocks that were full.
                    return found if len(found.device) >= FEWEST else None
                found.add(block, lane)
            taken = len(found.device) + found.invalid
            if taken >= protocol.samples_max or enough(centred(found.device, found.lanes), protocol):
                return found

    def doubt(self, found: DeviceSamples, protocol: Protocol) -> str:
        """Why the samples are no device time of the call, in words; empty where they are."""
        step_s, calls = self._backend.clock_step_s, protocol.calls
        if found.invalid >= len(found.device):
            return f"no device work was seen: {found.invalid} event times are invalid"
        value_s = found.value(step_s, calls)
        if value_s * calls < step_s:
            return "no device work was seen: the windows are as short as empty ones"
        return ESCAPES if self.escapes(calls, value_s) else ""

    def _affordable(self, protocol: Protocol) -> int:
        """Samples of a block whose windows stay within the budget, but never fewer than a round needs."""
        window_s = protocol.calls * self._wall_call_s
        fewest = min(FEWEST_LONG if window_s > LONG_CALL_S else FEWEST, protocol.samples_min)
        within = int(protocol.window_budget_s / window_s) if window_s > 0 else BLOCK_SAMPLES
        return max(fewest, min(BLOCK_SAMPLES, within, protocol.samples_max))

    def _on(self, stream: ContextManager[object], samples: int, calls: int, first: bool) -> DeviceSamples | Starved:
        """A block on that stream. Its first call there is apart: allocators and libraries keep something for each stream."""
        with stream:
            if first:
                self._once()
                self._backend.synchronize()
            return self._full_block(samples, calls)

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
            sample_s = calls * self._host_call_s + self._around_s
            fit = min(LAUNCHES_A_BLOCK / (calls * self._launches()), LONGEST_SPIN_S / (SPARE * sample_s))
            samples = 1 if self._prepare is not None else max(1, min(samples, int(fit)))
            spin_s = max(SPARE * samples * sample_s + 100e-6, 2 * spin_s)
            found = self._collected(samples, calls, spin_s)
            if isinstance(found, DeviceSamples):
                found.retried = tried
                return found
            starved.append((spin_s, found))
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
        backend.spin(spin_s)
        backend.record(gate)
        start = backend.now()
        for index in range(samples):
            if self._reset is not None:
                self._reset()
            if self._cold:
                backend.flush()
            host.append(self._window(2 * index, 2 * index + 1, calls))
            if index == 0 and backend.passed(gate):
                backend.synchronize()
                return host[0] * calls
        taken_s = backend.now() - start
        starved = backend.passed(gate)
        backend.synchronize()
        self._host_call_s = statistics.median(host)
        self._around_s = max(AROUND_CALLS_S, (taken_s - calls * sum(host)) / samples)
        if starved:
            return host[0] * calls
        times = [
            (backend.elapsed(2 * index, 2 * index + 1) - backend.window_overhead_s) / calls for index in range(samples)
        ]
        good = [time for time in times if valid(time)]
        return DeviceSamples(good, host, [0] * len(good), len(times) - len(good), 0, backend.clocks_hz())

    def _window(self, start: int, end: int, calls: int) -> float:
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


def calls_for(call_s: float, launches: int) -> int:
    """Calls a window for a call of that device time: one from 20 us up, below as many as last 200 us, 500 launches at most."""
    if call_s >= ONE_CALL_FROM_S:
        return 1
    return max(1, min(math.ceil(WINDOW_S / max(call_s, 1e-7)), LAUNCHES_A_BLOCK // launches))
