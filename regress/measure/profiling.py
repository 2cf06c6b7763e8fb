"""Calls of a case that is set up, first timed as they are, then under a profiler."""

from __future__ import annotations

from typing import Any

from .backend import Backend, NoProfiler
from .declared import bound, ready
from .methods.jax_arrays import JaxCall, JaxClock, is_jax
from .windows import wall_samples, warm_cpu
from .wire import CALL_MARK, CALLS_SKIPPED, Record, Recorded

WARM_CALLS = 3
WARM_S = 2.0
BUDGET_S = 10.0
"""No more calls are profiled than take this long without the profiler."""
FEWEST_CALLS = 3
BETWEEN = "setup or reset runs between the calls: it is in the span, and in the idle time"


def record(benchmark: Any, backend: Backend, asked: Record) -> Recorded:
    """Warm up, time calls without the profiler, profile as many, and write the trace. Raises NoProfiler."""
    if hasattr(benchmark, "_timeraw_env"):
        raise NoProfiler("its code runs in processes that it starts itself")
    call: Any = bound(benchmark)
    before = ready(benchmark)
    clock, profiler = backend, backend.profiler()
    if is_jax(benchmark, call):
        call = JaxCall(call)
        clock = JaxClock(call)
    for _ in range(WARM_CALLS):
        wall_samples(call, clock, 1, before, lambda samples: True)
    warm_cpu(call, clock, 1, WARM_S, before)
    (once_s,) = wall_samples(call, clock, 1, before, lambda samples: True)
    calls = max(min(asked.calls, FEWEST_CALLS), min(asked.calls, int(BUDGET_S / max(once_s, 1e-9))))
    if before is None:
        (seconds,) = wall_samples(call, clock, calls, None, lambda samples: True)
    else:
        samples = wall_samples(call, clock, 1, before, lambda samples: len(samples) >= calls)
        seconds = sum(samples) / len(samples)
    with profiler:
        for _ in range(CALLS_SKIPPED + calls):
            if before is not None:
                before()
                clock.synchronize()
            with profiler.marked(CALL_MARK):
                call()
        clock.synchronize()
    profiler.write(asked.trace)
    return Recorded(calls, seconds, flags=[BETWEEN] if before is not None else [])
