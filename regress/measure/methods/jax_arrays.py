"""JAX: its streams cannot be named, and its results are promises, so a call is timed until every output is there."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any, List, Optional

from ..backend import Backend
from ..declared import device_protocol, number, ready
from ..stopping import enough, round_value
from ..windows import CPU_WINDOW_S, WALL_SAMPLES, cpu_calls, wall_samples, warm_cpu
from ..wire import SYNCHRONIZES, Measured, Task
from .common import Call, Visited, quick

WALL_ONLY = "JAX names no stream: wall time in place of device time"
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
        """Wait for every output since the last time. The last one is not enough: calls may run beside one another."""
        jax: Any = sys.modules["jax"]
        pending, self._pending = self._pending, []
        jax.block_until_ready(pending)


class JaxClock(Backend):
    """The host clock, with waiting for the outputs of a `JaxCall` as its synchronize."""

    def __init__(self, call: JaxCall) -> None:
        self._call = call

    def synchronize(self) -> None:
        self._call.finish()


def on_jax(benchmark: Any, call: Call, task: Task) -> Visited:
    """Wall time until every output is there, and the host's time to hand a call over."""
    before = ready(benchmark)
    kept = JaxCall(call)
    clock = JaxClock(kept)
    protocol = task.protocol or quick(device_protocol(benchmark), task)
    if task.protocol is None:
        calls = number(benchmark) or (1 if before is not None else cpu_calls(kept, clock, CPU_WINDOW_S))
        return Visited(replace(protocol, calls=calls, wall_calls=calls), flags=[SYNCHRONIZES])
    warm_cpu(kept, clock, protocol.calls, protocol.warmup_s, before)
    wall = wall_samples(kept, clock, protocol.calls, before, lambda samples: enough(samples, protocol))
    host = [_dispatch_s(kept, clock, before) for _ in range(min(WALL_SAMPLES, protocol.samples_max))]
    visited = Visited(protocol, flags=[SYNCHRONIZES, WALL_ONLY])
    visited.values = {"wall_time": Measured(round_value(wall), wall), "host_time": Measured(round_value(host), host)}
    return visited


def _dispatch_s(call: JaxCall, clock: JaxClock, before: Optional[Call]) -> float:
    if before is not None:
        before()
    start = clock.now()
    call()
    taken_s = clock.now() - start
    call.finish()
    return taken_s
