"""Windows by the host's clock: wall time of a call, with or without a device, and how many calls a window needs."""

from __future__ import annotations

import gc
import itertools
from typing import Callable, List, Optional

from .backend import Backend

Call = Callable[[], object]

CPU_WINDOW_S = 1e-3
WARM_AGREE = 0.02
WALL_SAMPLES = 10
MOST_CALLS = 1_000_000
LONG_FIRST_CALL_S = 0.5
"""A first call from here up is taken at its word; calling it again only to count would cost too much."""


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
