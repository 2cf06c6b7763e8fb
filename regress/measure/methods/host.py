"""`time_*`, and what blocks the host by nature: windows by the host's clock."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any, Callable, List, Optional

from .. import counters
from ..backend import Backend, DeviceBackend
from ..bench_types import ready
from ..runner import first_attr, wall_timer
from ..stopping import enough, round_value, valid
from ..windows import CPU_WINDOW_S, cpu_calls, wall_samples, warm_cpu, window_s
from ..wire import Measured, Protocol, Task
from .common import Call, Visited, declared, probe_memory, quick

CPU_WARMUP_S = 0.1
"""asv's own default for CPython."""
PATIENCE = 0.8
"""No sample is begun that may not end within this share of the case's timeout."""
LAUNCH_ONLY = "measures the launch only: device work was left behind (declare cuda = True on it)"


def on_host(benchmark: Any, call: Call, task: Task, backend: Backend) -> Visited:
    """`time_*`, and what blocks the host by nature (`clock = "wall"`): wall time in windows of at least a millisecond."""
    started = time.perf_counter()
    number = int(first_attr(benchmark._attr_sources, "number", 0))
    before = ready(benchmark)
    protocol = task.protocol or quick(_host_protocol(benchmark, call, number, before, backend), task)
    if task.protocol is None:
        return Visited(protocol, counters.count(call, backend, before).values if backend.has_device else {})
    warm_cpu(call, backend, protocol.calls, protocol.warmup_s, before)
    timer = first_attr(benchmark._attr_sources, "timer", wall_timer)
    clock = backend if timer is wall_timer else _CustomClock(timer)

    def stop(samples: List[float]) -> bool:
        # By the host's clock, whatever clock the benchmark reads: its limits are limits on waiting.
        spent_s = time.perf_counter() - started
        longest_s = spent_s / len(samples)
        return enough(samples, protocol) or spent_s + longest_s > PATIENCE * task.timeout_s

    samples = wall_samples(call, clock, protocol.calls, before, stop)
    good = [sample for sample in samples if valid(sample)]
    if not good:
        raise RuntimeError("the clock did not move during any sample")
    measured = Measured(round_value(good), good, invalid=len(samples) - len(good))
    visited = Visited(protocol, {"wall_time": measured}, flags=_left_behind(call, before, backend))
    if first_attr(benchmark._attr_sources, "clock", "") == "wall":
        probe_memory(call, task, backend, before, visited)
    return visited


def _left_behind(call: Call, before: Optional[Call], backend: Backend) -> List[str]:
    """The flag of a call that returns while the device is still at work on it."""
    if not isinstance(backend, DeviceBackend):
        return []
    if before is not None:
        before()
    backend.synchronize()
    call()
    behind = not backend.idle()
    backend.synchronize()
    return [LAUNCH_ONLY] if behind else []


def _host_protocol(benchmark: Any, call: Call, number: int, before: Optional[Call], backend: Backend) -> Protocol:
    protocol = declared(Protocol("wall_time", setup_each=before is not None, warmup_s=CPU_WARMUP_S), benchmark)
    if number or before is not None:
        window_s(call, backend, 1, before)
        return replace(protocol, calls=number or 1)
    return replace(protocol, calls=cpu_calls(call, backend, CPU_WINDOW_S))


class _CustomClock(Backend):
    """A benchmark's own `timer` attribute in place of the host clock."""

    def __init__(self, timer: Callable[[], float]) -> None:
        self._timer = timer

    def now(self) -> float:
        return self._timer()
