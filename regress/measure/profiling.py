"""Calls of a case that is set up: timed, then under a profiler, or in the range that a tool from outside looks for."""

from __future__ import annotations

import contextlib
import ctypes
import sys
from typing import Any, Callable, Iterator, NamedTuple, Optional

from .backend import Backend, NoProfiler
from .declared import bound, ready
from .methods.jax_arrays import JaxCall, JaxClock, is_jax
from .windows import wall_samples, warm_cpu
from .wire import CALL_MARK, CALLS_SKIPPED, CaseRecorded, Record

WARM_CALLS = 3
WARM_S = 2.0
BUDGET_S = 10.0
"""No more calls are profiled than take this long without the profiler."""
FEWEST_CALLS = 3
BETWEEN = "setup or reset runs between the calls: it is in the span, and in the idle time"


class Warm(NamedTuple):
    """A benchmark's call, ready to be run."""

    call: Callable[[], object]
    before: Optional[Callable[[], object]]
    """What has to run ahead of each call."""
    clock: Backend
    """Waits for what the call has asked for."""

    def ready(self) -> None:
        if self.before is not None:
            self.before()
            self.clock.synchronize()


def warmed(benchmark: Any, backend: Backend) -> Warm:
    """The benchmark's call, after compilers and caches are done with it. Raises NoProfiler for code of other processes."""
    if hasattr(benchmark, "_timeraw_env"):
        raise NoProfiler("its code runs in processes that it starts itself")
    call: Any = bound(benchmark)
    before, clock = ready(benchmark), backend
    if is_jax(benchmark, call):
        call = JaxCall(call)
        clock = JaxClock(call)
    for _ in range(WARM_CALLS):
        wall_samples(call, clock, 1, before, lambda samples: True)
    warm_cpu(call, clock, 1, WARM_S, before)
    return Warm(call, before, clock)


def record(benchmark: Any, backend: Backend, asked: Record) -> CaseRecorded:
    """Warm up, time calls without the profiler, profile as many, and write the trace. Raises NoProfiler."""
    profiler = backend.profiler()
    warm = warmed(benchmark, backend)
    call, before, clock = warm
    (once_s,) = wall_samples(call, clock, 1, before, lambda samples: True)
    calls = max(min(asked.calls, FEWEST_CALLS), min(asked.calls, int(BUDGET_S / max(once_s, 1e-9))))
    if before is None:
        (seconds,) = wall_samples(call, clock, calls, None, lambda samples: True)
    else:
        samples = wall_samples(call, clock, 1, before, lambda samples: len(samples) >= calls)
        seconds = sum(samples) / len(samples)
    with profiler:
        for _ in range(CALLS_SKIPPED + calls):
            warm.ready()
            with profiler.marked(CALL_MARK):
                call()
        clock.synchronize()
    profiler.write(asked.trace)
    return CaseRecorded(calls, seconds, flags=[BETWEEN] if before is not None else [])


# -- for tools from outside ----------------------------------------------------------------------------------------------


def run_marked(benchmark: Any, backend: Backend, calls: int) -> float:
    """Warm up, then this many calls between cudaProfilerStart and cudaProfilerStop, each in an NVTX range; seconds a call."""
    warm = warmed(benchmark, backend)
    spent_s = 0.0
    with _profiler_range():
        for _ in range(calls):
            warm.ready()
            start = warm.clock.now()
            with _nvtx_range():
                warm.call()
            spent_s += warm.clock.now() - start
        start = warm.clock.now()
        warm.clock.synchronize()
        spent_s += warm.clock.now() - start
    return spent_s / calls


@contextlib.contextmanager
def _profiler_range() -> Iterator[None]:
    """What tools start and stop with; without a device nothing."""
    torch: Any = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        torch.cuda.profiler.start()
        yield
        torch.cuda.profiler.stop()
        return
    try:
        driver: Any = ctypes.CDLL("libcuda.so.1")
    except OSError:
        yield
        return
    driver.cuProfilerStart()  # an error means that there is no context: nothing to profile
    yield
    driver.cuProfilerStop()


@contextlib.contextmanager
def _nvtx_range() -> Iterator[None]:
    """A range around a call, by whichever library is loaded that can mark one."""
    torch: Any = sys.modules.get("torch")
    cupy: Any = sys.modules.get("cupy")
    if torch is not None and torch.cuda.is_available():
        torch.cuda.nvtx.range_push(CALL_MARK)
        yield
        torch.cuda.nvtx.range_pop()
    elif cupy is not None:
        cupy.cuda.nvtx.RangePush(CALL_MARK)
        yield
        cupy.cuda.nvtx.RangePop()
    else:
        yield
