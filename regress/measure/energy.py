"""Energy of a call: the power that the device's own counter tells while calls keep it busy, times the time of a call.

The counter moves in steps (ten a second on an H200), and reading it takes milliseconds. So calls are enqueued well ahead, the
counter is read while the device works, and the power is that from one step to another one, a second later. What the device
draws in any case is in it: a call that leaves it half idle pays for the idle half too.
"""

from __future__ import annotations

from collections import deque
from typing import Callable, Deque, List, Optional, Tuple

from .backend import DeviceBackend

Call = Callable[[], object]

WINDOW_S = 1.0
"""Between the two steps of the counter that the power is taken from, at least."""
BATCH_S, AHEAD = 20e-3, 3
"""Device work that is enqueued at once, and how many such batches there are ahead."""
MOST_CALLS = 10_000
"""Of a batch."""
PAUSE_S = 1e-3
"""Between two readings, while enough is enqueued."""
SETTLING_S = 0.3
"""Before the first step that counts: the power follows the work by some readings."""


def energy_of_call(call: Call, device: DeviceBackend, limit_s: float) -> Optional[float]:
    """Joules a call, of calls one after the other on a busy device; None if the device does not count them, or its counter
    did not move twice in `limit_s` seconds."""
    before_j = device.energy_j()
    if before_j is None:
        return None
    calls = _calls_of_batch(call, device)
    steps: List[Tuple[float, float]] = []  # when, and joules
    ends: List[float] = []  # of batches since the first step
    pending: Deque[int] = deque()
    device.hold_stream()
    device.use_events(AHEAD)
    begun, began_s = 0, device.now()
    while True:
        if len(pending) < AHEAD:
            for _ in range(calls):
                call()
            device.record(begun % AHEAD)
            pending.append(begun % AHEAD)
            begun += 1
        else:
            device.pause(PAUSE_S)
        joules, now_s = device.energy_j(), device.now()
        while pending and device.passed(pending[0]):
            pending.popleft()
            if steps:
                ends.append(now_s)
        if joules is not None and joules != before_j and now_s - began_s >= SETTLING_S:
            steps.append((now_s, joules))
        before_j = joules
        long_enough = len(ends) >= 2 and now_s - steps[0][0] >= WINDOW_S and now_s == steps[-1][0]
        if long_enough or now_s - began_s > limit_s:
            break
    device.synchronize()
    if len(steps) < 2 or len(ends) < 2:
        return None
    (start_s, start_j), (end_s, end_j) = steps[0], steps[-1]
    call_s = (ends[-1] - ends[0]) / (len(ends) - 1) / calls
    return (end_j - start_j) / (end_s - start_s) * call_s


def _calls_of_batch(call: Call, device: DeviceBackend) -> int:
    """Calls that keep the device busy for a batch."""
    calls = 1
    device.synchronize()  # earlier work is not counted
    while True:
        start_s = device.now()
        for _ in range(calls):
            call()
        device.synchronize()
        if device.now() - start_s >= BATCH_S / 2 or calls >= MOST_CALLS:
            return calls
        calls *= 2
