"""What the methods share: the result of a visit, the cut for a quick look, windows of the host's clock, the memory probe, and
how long a rank has worked itself."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field, replace
from typing import Any, Callable, Dict, List, Optional

from ..backend import Backend, DeviceBackend, Tracer
from ..memory import describe_output, memory_of_call
from ..seat import Seat
from ..stopping import PATIENCE, error_of_median, round_value, valid, windows_enough
from ..windows import HostWindows, Window, least_disturbed, undisturbed
from ..wire import Measured, Protocol, Task

Call = Callable[[], object]

OWN_CALLS = 5
"""Calls over which the own work of a rank is taken."""
COLLECTIVE = "nccl"
"""What the names of kernels have in them that wait for other ranks: "ncclDevKernel_AllReduce...", as the binary spells it."""


@dataclass
class Visited:
    """What a visit found, before it is put into a message."""

    protocol: Protocol
    values: Dict[str, Measured] = field(default_factory=dict)
    facts: Dict[str, Any] = field(default_factory=dict)
    flags: List[str] = field(default_factory=list)
    device_share: float = 0.0
    """Share of the device's memory that is taken after it."""


def quick(protocol: Protocol, task: Task) -> Protocol:
    """The protocol, cut down to one sample where the task asks for it."""
    return replace(protocol, samples_min=1, samples_max=1, warmup_s=0.0) if task.quick else protocol


def by_the_host(metric: str, windows: HostWindows, visited: Visited, task: Task, seat: Optional[Seat]) -> None:
    """Measure a metric of the host's clock in short windows, in turn with other processes if the task says so.

    Raises RuntimeError if the clock does not advance.
    """
    protocol = visited.protocol
    ranks = windows.clock.ranks
    with windows, undisturbed(protocol.pinned, ranks.number):
        if task.in_turn and seat is not None:
            taken = seat.windows(metric, windows)
        else:
            taken = _alone(windows, protocol, PATIENCE * task.timeout_s)
    good = [window.wall_s for window in taken if valid(window.wall_s)]
    if not good:
        raise RuntimeError("the clock did not move during any sample")
    invalid = len(taken) - len(good)
    if not protocol.pinned:
        good = least_disturbed(good, [window.net_s for window in taken])
    visited.values[metric] = Measured(round_value(good), good, invalid=invalid)


def _alone(windows: HostWindows, protocol: Protocol, limit_s: float) -> List[Window]:
    """Windows until their median is known precisely, or until the limit."""
    taken: List[Window] = []
    start = time.perf_counter()
    while True:
        for _ in range(protocol.windows):
            taken.append(windows.take())
            spent_s = windows.clock.ranks.longest("time spent", time.perf_counter() - start)
            if spent_s + spent_s / len(taken) > limit_s:
                return taken
        net = [math.log(window.net_s) for window in taken if valid(window.net_s)]
        if windows_enough(protocol, len(taken), protocol.windows, error_of_median(net)):
            return taken


def probe_memory(call: Call, task: Task, backend: Backend, reset: Optional[Call], visited: Visited) -> None:
    """Memory of a call and what it returns, where the task asks for it and the allocator in use can be read."""
    probe = backend.memory() if task.memory else None
    if backend.ranks.any("memory", probe is None) or probe is None:
        return
    visited.values.update(memory_of_call(call, backend, probe, reset))
    if reset is not None:
        reset()
    visited.facts["output"] = describe_output(call())
    probe.release()  # what one case keeps cached, the next one must not miss


def own_seconds(call: Call, backend: Backend, before: Optional[Call]) -> float:
    """Seconds a call for which this rank has worked itself, and not waited for others: those of its kernels but for the ones of
    collectives, where the device can be traced and has worked in such; else those for which its thread has had a processor.

    In the time of a call this does not show: a rank that is late makes the others wait, and all of them take as long."""
    tracer = backend.tracer() if isinstance(backend, DeviceBackend) else Tracer("there is no device")
    traced = not tracer.start()
    try:
        backend.ranks.meet("its own work")
        began_s = time.thread_time()
        for _ in range(OWN_CALLS):
            if before is not None:
                before()
            call()
        backend.synchronize()
        by_thread_s = (time.thread_time() - began_s) / OWN_CALLS
        seen = tracer.collect(flush=True) if traced else []
    finally:
        if traced:
            tracer.stop()
    if not backend.ranks.any("its own work", any(COLLECTIVE in activity.name for activity in seen)):
        return by_thread_s
    return sum(activity.end_s - activity.start_s for activity in seen if COLLECTIVE not in activity.name) / OWN_CALLS
