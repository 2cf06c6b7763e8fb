"""`time_*`, and calls that block the host: windows by the host's clock."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Callable, Optional

from .. import counters
from ..backend import Backend, DeviceBackend
from ..declared import number, ready, redone_setup, renew, sampling
from ..ranks import Ranks
from ..runner import first_attr, wall_timer
from ..seat import Seat
from ..stopping import PATIENCE
from ..windows import (
    SHORT_WINDOW_S,
    HostWindows,
    calls_of_window,
    cpu_calls,
    short_windows,
    timed,
    warm_cpu,
)
from ..wire import Protocol, Task
from .common import Call, Visited, by_the_host, probe_memory, quick

CPU_WARMUP_S, CPU_WINDOWS, CPU_MOST, CPU_BUDGET_S = 0.01, 8, 800, 0.04
"""After 10 ms of warm-up (asv: 100 ms) the first three windows took as long as the later ones, within 0.1 %. Longer than 40 ms
a side brings little: the spread of pairs is 2.5 % at 10 ms, 1.5 % at 40 and 1.2 % at 80."""
LAUNCH_ONLY = "leaves device work behind: asv times the launch only, here it was waited for (declare cuda = True on it)"


def on_host(benchmark: Any, call: Call, task: Task, backend: Backend, seat: Optional[Seat]) -> Visited:
    """`time_*`, and calls that block the host (`clock = "wall"`): wall time in short windows."""
    blocks = first_attr(benchmark._attr_sources, "clock", "") == "wall"
    before = ready(benchmark) if blocks else redone_setup(benchmark)
    if task.protocol is None:
        protocol = _host_protocol(benchmark, call, before, backend, task)
        return Visited(protocol, counters.count(call, backend, before).values if backend.has_device else {})
    protocol = task.protocol
    warm_cpu(call, backend, protocol.calls, protocol.warmup_s, before)
    timer = first_attr(benchmark._attr_sources, "timer", wall_timer)
    clock = backend if timer is wall_timer else _CustomClock(timer, backend.ranks)
    visited = Visited(protocol)
    renewed = (lambda: renew(benchmark)) if benchmark._setups and before is None and not backend.ranks.several else None
    calls, warm_calls, several_threads = protocol.calls, protocol.warm_calls, not protocol.pinned
    windows = HostWindows(call, clock, calls, warm_calls, before, "last", several_threads, renewed)
    by_the_host("wall_time", windows, visited, task, seat)
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


def _host_protocol(benchmark: Any, call: Call, before: Optional[Call], backend: Backend, task: Task) -> Protocol:
    default = Protocol(
        "wall_time",
        setup_each=redone_setup(benchmark) is not None,
        samples_min=CPU_WINDOWS,
        samples_max=CPU_MOST,
        window_budget_s=CPU_BUDGET_S,
        warmup_s=CPU_WARMUP_S,
    )
    protocol = quick(sampling(default, benchmark), task)
    declared = number(benchmark) or int(before is not None)
    calls = declared or cpu_calls(call, backend, SHORT_WINDOW_S)
    with HostWindows(call, backend, calls, 0, before) as windows:
        timing = timed(windows)
    calls = declared or calls_of_window(timing)
    limit_s, budget_s, fewest = PATIENCE * task.timeout_s / 2, protocol.window_budget_s, protocol.samples_min
    return replace(short_windows(protocol, timing, calls, limit_s, budget_s, fewest), calls=calls)


class _CustomClock(Backend):
    """A benchmark's own `timer` attribute instead of the host clock."""

    real_clock = False

    def __init__(self, timer: Callable[[], float], ranks: Ranks) -> None:
        self._timer, self.ranks = timer, ranks

    def now(self) -> float:
        return self._timer()
