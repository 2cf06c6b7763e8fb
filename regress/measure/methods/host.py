"""`time_*`, and what blocks the host by nature: windows by the host's clock."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any, Callable, List, Optional

from .. import counters
from ..backend import Backend, DeviceBackend
from ..declared import number, ready, redone_setup, sampling
from ..runner import first_attr, wall_timer
from ..stopping import enough, round_value, valid
from ..windows import CPU_WINDOW_S, cpu_calls, wall_samples, warm_cpu, window_s
from ..wire import Measured, Protocol, Task
from .common import PATIENCE, Call, Visited, probe_memory, quick

CPU_WARMUP_S, CPU_SAMPLES, CPU_BUDGET_S = 0.01, 10, 0.02
"""Host times differ from process to process far more than within one: of 200 small functions on a shared machine the values of
five rounds varied by 20.8 % with five windows each and by 19.9 % with eighty. The time goes into rounds instead. After 10 ms of
warm-up (asv: 100 ms) the first three windows took as long as the later ones, within 0.1 %."""
LAUNCH_ONLY = "leaves device work behind: asv times the launch only, here it was waited for (declare cuda = True on it)"


def on_host(benchmark: Any, call: Call, task: Task, backend: Backend) -> Visited:
    """`time_*`, and what blocks the host by nature (`clock = "wall"`): wall time in windows of at least a millisecond."""
    started = time.perf_counter()
    blocks = first_attr(benchmark._attr_sources, "clock", "") == "wall"
    before = ready(benchmark) if blocks else redone_setup(benchmark)
    protocol = task.protocol or quick(_host_protocol(benchmark, call, before, backend), task)
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
    visited = Visited(protocol, {"wall_time": measured})
    if blocks:
        probe_memory(call, task, backend, before, visited)
    elif _leaves_work(call, before, backend):
        visited.flags.append(LAUNCH_ONLY)
    return visited


def _leaves_work(call: Call, before: Optional[Call], backend: Backend) -> bool:
    """Whether the call returns while the device is still at work on it."""
    if not isinstance(backend, DeviceBackend):
        return False
    if before is not None:
        before()
    backend.synchronize()
    call()
    behind = not backend.idle()
    backend.synchronize()
    return behind


def _host_protocol(benchmark: Any, call: Call, before: Optional[Call], backend: Backend) -> Protocol:
    setup_each = redone_setup(benchmark) is not None
    default = Protocol(
        "wall_time",
        setup_each=setup_each,
        samples_min=CPU_SAMPLES,
        window_budget_s=CPU_BUDGET_S,
        warmup_s=CPU_WARMUP_S,
    )
    protocol = sampling(default, benchmark)
    if number(benchmark) or before is not None:
        window_s(call, backend, 1, before)
        return replace(protocol, calls=number(benchmark) or 1)
    return replace(protocol, calls=cpu_calls(call, backend, CPU_WINDOW_S))


class _CustomClock(Backend):
    """A benchmark's own `timer` attribute in place of the host clock."""

    def __init__(self, timer: Callable[[], float]) -> None:
        self._timer = timer

    def now(self) -> float:
        return self._timer()
