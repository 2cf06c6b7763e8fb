"""The device's measuring loop: warm-up, protocol, lanes, and samples until there are enough.

Lanes. The level of a kernel depends on the hardware queue its stream is served by: on an H100, layer_norm of 4096 x 4096 takes
65 us on some streams of a process and 74 us on others, and small kernels differ by 5 %. A process draws its default stream's
queue again, so a round takes its samples on several streams in turn, and its value is the mean over them.
"""

from __future__ import annotations

import itertools
import math
import statistics
import sys
from collections import deque
from dataclasses import replace
from typing import Any, ContextManager, Deque, List, Optional, Sequence, Tuple

from .backend import DeviceError
from .blocks import LAUNCHES_A_BLOCK, Blocks, DeviceSamples, Starved
from .stopping import FEWEST, FEWEST_LONG, LONG_CALL_S, centred, enough
from .windows import SHORT_WINDOW_S, WARM_AGREE, LaunchWindows
from .wire import Protocol

ONE_CALL_FROM_S = 20e-6
"""From here up a window is one call."""
WINDOW_S = 200e-6
"""Below it, a window has as many calls as fill this."""
MOST_BEHIND_S = 1e-3
"""Device work of a window of host time, which has to be waited for."""
LAUNCHES_SPARE = 1.25
"""How long the device is kept busy during a window of host time; if that is too short, launches may merely find it idle."""
BLOCK_SAMPLES = 24
WARM_CALLS = 3
WARM_BLOCKS = 4
"""A block is compared with as many before it. With the one before it alone, a call of two levels never settles: on an H200 the
windows of a small matmul alternate between 3.3 and 3.5 us in step with the blocks."""
LANES = 8
LANE_TOLERANCE = 0.25
"""A lane whose time differs from the current stream's by more than this does not hold all of the call's work."""
ESCAPE_TRIES = 5
ESCAPED_S = 20e-6
ESCAPED_SHARE = 0.02
SHORTEST_CONTROL_S = 50e-6
AHEAD_S = 50e-6
AHEAD_SHARE = 0.5
"""Wider than for leftovers, because it includes the latencies of an empty queue."""
ESCAPES = "works on a stream that it does not name in streams(): no device time"


class DeviceLoop(Blocks):
    """Times one call on a device: how it is to be measured, and by that, a round."""

    # -- before measuring ------------------------------------------------------------------------------------------------

    def warm_up(self, limit_s: float) -> bool:
        """Call until the first call's compilation and the clocks are over: at least 3 calls, and until a block agrees
        within 2 % with one of the four before it, with no memory taken from the device and nothing compiled in between. False
        when that did not happen within `limit_s`."""
        backend, ranks = self._backend, self._backend.ranks
        self.once()
        backend.synchronize()
        start = backend.now()
        walls: List[float] = []
        for _ in range(WARM_CALLS):
            before_s = backend.now()
            self._host_call_s = self.once()
            backend.synchronize()
            walls.append(backend.now() - before_s)
        self._host_call_s, *walls = ranks.most("the first calls", self._host_call_s, *walls)
        self._wall_call_s = min(walls)
        if self._wall_call_s > LONG_CALL_S:  # two blocks of it would take longer than they can tell
            return abs(walls[-1] - walls[-2]) <= WARM_AGREE * walls[-2]
        levels: Deque[float] = deque(maxlen=WARM_BLOCKS)
        grown = growth()
        while ranks.longest("warming up", backend.now() - start) < limit_s:
            block = self.block(WARM_CALLS, 1)
            if self._waits:
                return True  # nothing to settle: it will be timed by the host's clock
            before, grown = grown, growth()
            if isinstance(block, Starved):
                continue
            if ranks.any("what has grown", grown != before):
                levels.clear()
            if block.device:
                level = statistics.median(block.device)
                if any(abs(level - earlier) <= WARM_AGREE * earlier for earlier in levels):
                    return True
                levels.append(level)
        return False

    def propose(self, protocol: Protocol) -> Optional[Protocol]:
        """The protocol with the calls a window and the lanes that suit this call; None if it waits for the device."""
        block = self.full_block(self._affordable(protocol), 1)
        if isinstance(block, Starved):
            return None
        if not block.device:
            return protocol
        call_s = statistics.median(block.device)
        if self._reset is None and self._prepare is None:  # else all is ready for one call only
            protocol = replace(protocol, host_calls=host_calls_for(self._host_call_s, call_s, self.launches()))
            if not self._cold:
                protocol = replace(protocol, calls=calls_for(call_s, self.launches()))
        return replace(protocol, lanes=self._lanes_for(call_s, protocol))

    def launches_of(self, protocol: Protocol) -> LaunchWindows:
        """Windows of the host's time to enqueue the call."""
        before = self.ready if self._prepare is not None or self._reset is not None else None
        calls, warm_calls, several_threads = protocol.host_calls, protocol.warm_calls, not protocol.pinned
        # Each call may have to be made ready, or the ranks to meet: not behind one spin.
        alone = before is not None or self._backend.ranks.several
        behind = 0 if alone else max(0, min(warm_calls, LAUNCHES_A_BLOCK // self.launches() - calls))
        spin_s = LAUNCHES_SPARE * (behind + calls) * self._host_call_s + 50e-6
        return LaunchWindows(self._call, self._backend, calls, warm_calls, before, spin_s, several_threads, behind)

    def _lanes_for(self, call_s: float, protocol: Protocol) -> int:
        """Lanes for which one sample each fits the budget, if the call's work follows the current stream."""
        wanted = min(LANES, protocol.samples_min, int(protocol.window_budget_s / (call_s * protocol.calls)))
        lanes = self._backend.lanes(1 if self._backend.ranks.several else wanted)
        if wanted < 2 or len(lanes) < wanted or self._streams:
            return 1
        try:
            with lanes[-1]:
                self.once()
                escaped = self.escapes(protocol.calls, call_s)
                block = self.full_block(WARM_CALLS, protocol.calls)
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
            self.ready()
            backend.synchronize()
            backend.hold_stream()
            host_s = calls * self.window(0, 1, calls)
            left_s, window_s = self._left_after(1), backend.elapsed(0, 1)
            # What a synchronize takes after so much work that is in the stream for certain.
            backend.spin(max(window_s, SHORTEST_CONTROL_S))
            backend.record(1)
            left_s -= self._left_after(1)
            # Work that the stream waits for, but that did not wait for it, was over before the spin of a block was.
            ahead_s = window_s - host_s - calls * call_s
            late = left_s > max(ESCAPED_S, ESCAPED_SHARE * window_s)
            # Behind nothing, a rank that comes early waits for the others, which looks the same.
            early = not backend.ranks.several and ahead_s > max(AHEAD_S, AHEAD_SHARE * window_s)
            if not backend.ranks.any("whether work escapes", late or early):
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
        """Blocks on each lane in turn until there are enough samples; None if the queue cannot be kept full."""
        sampled, warm = DeviceSamples(), set()
        lanes = self._backend.lanes(protocol.lanes)
        while True:
            left = protocol.samples_max - len(sampled.device) - sampled.invalid
            share, rest = divmod(min(self._affordable(protocol), left), len(lanes))
            for lane, stream in enumerate(lanes):
                samples = share + (lane < rest)
                if not samples:
                    continue
                block = self._on(stream, samples, protocol.calls, first=len(lanes) > 1 and lane not in warm)
                warm.add(lane)
                if isinstance(block, Starved):
                    # A host that became too slow half way takes nothing from the blocks that were full.
                    sampled.cut = True
                    return sampled if len(sampled.device) >= FEWEST else None
                sampled.add(block, lane)
            taken = len(sampled.device) + sampled.invalid
            if taken >= protocol.samples_max or enough(centred(sampled.device, sampled.lanes), protocol):
                sampled.trend = self._trend(sampled, lanes, protocol.calls)
                return sampled

    def _trend(self, samples: DeviceSamples, lanes: Sequence[ContextManager[object]], calls: int) -> Optional[float]:
        """How far the call's level has moved since its first samples; None if unknown.

        Each lane is sampled at a different time, so a difference between lanes may be one of time: the first lane is measured
        once more, and those samples count for nothing else.
        """
        if len(lanes) == 1:
            ends = len(samples.device) // 4
            first, last = samples.device[:ends], samples.device[len(samples.device) - ends :]
        else:
            first = [
                seconds
                for seconds, _ in itertools.takewhile(lambda pair: not pair[1], zip(samples.device, samples.lanes))
            ]
            block = self._on(lanes[0], max(1, len(first)), calls, first=False)
            last = [] if isinstance(block, Starved) else block.device
        return math.log(statistics.median(last) / statistics.median(first)) if first and last else None

    def doubt(self, samples: DeviceSamples, protocol: Protocol) -> str:
        """Why the samples are no device time of the call, in words; empty if they are."""
        step_s, calls = self._backend.clock_step_s, protocol.calls
        if samples.invalid >= len(samples.device):
            return f"no device work was seen: {samples.invalid} event times are invalid"
        value_s = samples.value(step_s, calls)
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
                self.once()
                self._backend.synchronize()
            return self.full_block(samples, calls)


def calls_for(call_s: float, launches: int) -> int:
    """Calls a window for a call of that device time: one from 20 us up, below as many as last 200 us, 500 launches at most."""
    if call_s >= ONE_CALL_FROM_S:
        return 1
    return max(1, min(math.ceil(WINDOW_S / max(call_s, 1e-7)), LAUNCHES_A_BLOCK // launches))


def host_calls_for(host_s: float, device_s: float, launches: int) -> int:
    """Calls a window of host time, for a call of that host and device time: as many as make a short window, while the device
    works for no longer than a millisecond, and with 500 launches at most."""
    return max(
        1,
        min(
            round(SHORT_WINDOW_S / max(host_s, 1e-7)),
            int(MOST_BEHIND_S / max(device_s, 1e-7)),
            LAUNCHES_A_BLOCK // launches,
        ),
    )


def growth() -> Tuple[int, int]:
    """Counts that stand still once a call is warm: device allocations of torch's caching allocator, and graphs that
    torch.compile made. Asks only what is loaded."""
    torch: Any = sys.modules.get("torch")
    dynamo: Any = sys.modules.get("torch._dynamo.utils")
    in_use = torch is not None and torch.cuda.is_initialized()
    allocations = int(torch.cuda.memory_stats().get("num_device_alloc", 0)) if in_use else 0
    return allocations, int(dynamo.counters["stats"]["unique_graphs"]) if dynamo is not None else 0
