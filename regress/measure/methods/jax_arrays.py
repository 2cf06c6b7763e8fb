"""JAX: its streams cannot be named, and its results are promises, so a call is timed until every output is there."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any, List, Optional

from ..backend import Backend
from ..declared import device_protocol, number, ready
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
from ..wire import SYNCHRONIZES, Protocol, Task
from .common import Call, Visited, by_the_host, quick

JAX_S, JAX_WINDOWS = 40e-3, 8
WALL_ONLY = "JAX exposes no stream: wall time instead of device time"
"""The flag of a round that was measured this way."""


def is_jax(benchmark: Any, call: Call) -> bool:
    """Whether the call returns arrays of JAX. It is called to find out, but only where JAX is loaded."""
    jax: Any = sys.modules.get("jax")
    if jax is None:
        return False
    before = ready(benchmark)
    if before is not None:
        before()
    return any(isinstance(leaf, jax.Array) for leaf in jax.tree_util.tree_leaves(call()))


class JaxCall:
    """A call that keeps its outputs until they are waited for."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self._pending: List[object] = []

    def __call__(self) -> object:
        output = self._call()
        self._pending.append(output)
        return output

    def finish(self) -> None:
        """Wait for every output since the last time. Waiting for the last one is not enough, because calls may overlap."""
        jax: Any = sys.modules["jax"]
        pending, self._pending = self._pending, []
        jax.block_until_ready(pending)


class JaxClock(Backend):
    """The host clock, with waiting for the outputs of a `JaxCall` as its synchronize."""

    def __init__(self, call: JaxCall) -> None:
        self._call = call

    def synchronize(self) -> None:
        self._call.finish()


def on_jax(benchmark: Any, call: Call, task: Task, seat: Optional[Seat]) -> Visited:
    """Wall time until every output is there, and the host's time to hand a call over."""
    before = ready(benchmark)
    kept = JaxCall(call)
    clock = JaxClock(kept)
    if task.protocol is None:
        return Visited(_jax_protocol(benchmark, kept, clock, before, task), flags=[SYNCHRONIZES])
    protocol = task.protocol
    warm_cpu(kept, clock, protocol.calls, protocol.warmup_s, before)
    visited = Visited(protocol, flags=[SYNCHRONIZES, WALL_ONLY])
    # A queue of several calls would make one of them wait for another.
    host = HostWindows(kept, clock, 1, protocol.warm_calls, before, "", not protocol.pinned)
    by_the_host("host_time", host, visited, task, seat)
    wall = HostWindows(kept, clock, protocol.wall_calls, protocol.warm_calls, before, "last", not protocol.pinned)
    by_the_host("wall_time", wall, visited, task, seat)
    return visited


def _jax_protocol(benchmark: Any, kept: JaxCall, clock: JaxClock, before: Optional[Call], task: Task) -> Protocol:
    protocol = quick(device_protocol(benchmark), task)
    declared = number(benchmark) or int(before is not None)
    with HostWindows(kept, clock, declared or cpu_calls(kept, clock, SHORT_WINDOW_S), 0, before) as windows:
        timing = timed(windows)
    calls = declared or calls_of_window(timing)
    protocol = replace(protocol, calls=calls, wall_calls=calls)
    return short_windows(protocol, timing, calls, PATIENCE * task.timeout_s / 4, JAX_S, JAX_WINDOWS)
