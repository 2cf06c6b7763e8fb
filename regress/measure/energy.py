"""Energy of a call: what the device's own counter counts while calls keep it busy.

The counter moves in steps, some ten a second, so calls go on for a second, and count from a step to a later one. The power that
the device draws in any case is in it: a call that leaves it half idle pays for the idle half too.
"""

from __future__ import annotations

import itertools
from typing import Callable, List, NamedTuple, Optional

from .backend import DeviceBackend

Call = Callable[[], object]

WINDOW_S = 1.0
"""Between the two steps of the counter that a value counts from and to, at least."""
BATCH_S = 5e-3
"""Device work between two readings: so much is not known of when a step came."""
MOST_CALLS = 10_000
"""Of a batch."""
SETTLING_S = 0.2
"""Before the first step that counts: the power follows the work by some of its readings."""


class _Reading(NamedTuple):
    calls: int
    at_s: float
    joules: float


def energy_of_call(call: Call, device: DeviceBackend, limit_s: float) -> Optional[float]:
    """Joules a call, of calls one after the other on a busy device; None where the device does not count them, or its counter
    did not move twice in `limit_s` seconds."""
    if device.energy_j() is None:
        return None
    calls = _calls_of_batch(call, device)
    steps: List[_Reading] = []
    began_s, done = device.now(), 0
    last_j = None
    device.hold_stream()
    device.use_events(2)
    for batch in itertools.count():
        for _ in range(calls):
            call()
        device.record(batch % 2)
        if batch:  # one batch is always enqueued while the one before it is waited for
            while not device.passed(1 - batch % 2):
                pass
            done += calls
        now_s, joules = device.now(), device.energy_j()
        if joules is not None and last_j is not None and joules != last_j and now_s - began_s >= SETTLING_S:
            steps.append(_Reading(done, now_s, joules))
        last_j = joules
        if (steps and steps[-1].at_s - steps[0].at_s >= WINDOW_S) or now_s - began_s > limit_s:
            break
    device.synchronize()
    if len(steps) < 2 or steps[-1].calls == steps[0].calls:
        return None
    return (steps[-1].joules - steps[0].joules) / (steps[-1].calls - steps[0].calls)


def _calls_of_batch(call: Call, device: DeviceBackend) -> int:
    """Calls that keep the device busy for a batch."""
    calls = 1
    while True:
        start_s = device.now()
        for _ in range(calls):
            call()
        device.synchronize()
        if device.now() - start_s >= BATCH_S / 2 or calls >= MOST_CALLS:
            return calls
        calls *= 2
