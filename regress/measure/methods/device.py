"""`cudatime_*`, and `time_*` under the device protocol: device time, host time of the same pass, wall time beside it."""

from __future__ import annotations

import contextlib
import statistics
from dataclasses import replace
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

from .. import counters
from ..backend import Backend, DeviceBackend
from ..backend.nvml import DeviceWatch
from ..blocks import DeviceSamples
from ..declared import device_loop, device_protocol, number, ready
from ..existing import QuietCall
from ..loop import DeviceLoop
from ..stopping import FEWEST_LONG, round_value
from ..windows import WALL_SAMPLES, wall_samples
from ..wire import SYNCHRONIZES, Measured, Protocol, Task
from .common import Call, Visited, probe_memory, quick

WALL_BUDGET_S = 1.0
"""Wall time beside a device time stops after this, with 3 windows at least."""
SLOWED_TRIES = 4
COOLING_S = 2.0
"""Pause before measuring again what was measured while the device protected itself from heat."""


def on_device(benchmark: Any, call: Call, task: Task, backend: DeviceBackend) -> Visited:
    """Device time, host time of the same pass, wall time beside it, and memory where the task asks for it."""
    protocol = task.protocol or quick(device_protocol(benchmark), task)
    visited = Visited(protocol)
    compiled = counters.CompileWatch()
    compiled.start()
    with _quiet(benchmark, call, backend, visited) as timed:
        loop = device_loop(benchmark, timed, backend)
        if not loop.warm_up(protocol.warmup_s) and protocol.warmup_s:
            visited.flags.append("unstable warm-up")
        if task.protocol is None:
            _propose(benchmark, loop, visited)
        else:
            _time(loop, visited, backend)
    before = ready(benchmark)
    if task.protocol is None:
        counted = counters.count(call, backend, before)
        visited.values = {**counted.values, **compiled.stop()}
        return visited
    wall = wall_samples(call, backend, protocol.wall_calls, before, lambda samples: _enough_wall(samples, protocol))
    visited.values["wall_time"] = Measured(round_value(wall), wall)
    probe_memory(call, task, backend, before, visited)
    return visited


@contextlib.contextmanager
def _quiet(benchmark: Any, call: Call, backend: DeviceBackend, visited: Visited) -> Iterator[Call]:
    """The call to time: of a `time_*`, one whose last synchronizes do nothing."""
    if not getattr(benchmark, "_device_protocol", False):
        yield call
        return
    with QuietCall(call, backend, ready(benchmark)) as quiet:
        visited.facts["synchronizes_left_out"] = len(quiet.left_out)
        visited.facts["synchronizes_kept"] = quiet.kept
        yield quiet


def _propose(benchmark: Any, loop: DeviceLoop, visited: Visited) -> None:
    """Let the call say how it is to be measured; a count that its author declares wins."""
    settled = loop.propose(visited.protocol)
    if settled is None:
        visited.flags.append(SYNCHRONIZES)
        return
    visited.protocol = replace(settled, calls=number(benchmark)) if number(benchmark) else settled


def _time(loop: DeviceLoop, visited: Visited, backend: DeviceBackend) -> None:
    """Device time and host time, or the flag that says why there is none."""
    protocol = visited.protocol
    found, state = _unslowed(lambda: loop.sample(protocol), backend)
    visited.facts.update(state)
    if found is None:
        visited.flags.append(SYNCHRONIZES)
        return
    doubt = loop.doubt(found, protocol)
    if doubt:
        visited.flags.append(doubt)
        return
    value = found.value(backend.clock_step_s, protocol.calls)
    visited.values["gpu_time"] = Measured(value, found.device, invalid=found.invalid)
    visited.values["host_time"] = Measured(round_value(found.host), found.host)
    visited.facts["clock_step_s"] = backend.clock_step_s
    visited.facts["spins_repeated"] = found.retried
    visited.facts["lanes"] = lanes = len(set(found.lanes))
    if lanes < min(protocol.lanes, len(found.device)):
        why = "the host became too slow to fill the queue" if found.cut else "another framework came into use"
        visited.flags.append(f"measured on {lanes} of {protocol.lanes} lanes: {why}")
    if found.clocks_hz:
        visited.facts["sm_clock_hz"] = statistics.median_low(found.clocks_hz)


def _unslowed(
    sample: Callable[[], Optional[DeviceSamples]], backend: Backend
) -> Tuple[Optional[DeviceSamples], Dict[str, Any]]:
    """Samples that were taken while nothing slowed the device down, or the last try's, with the state of the device."""
    watch = DeviceWatch(backend.device_state)
    for left in reversed(range(SLOWED_TRIES)):
        watch.before()
        found = sample()
        state = watch.after()
        if not state.get("throttled") or not left:
            break
        backend.pause(COOLING_S)
    return found, {key: value for key, value in state.items() if value or key not in ("throttled", "power_capped")}


def _enough_wall(samples: List[float], protocol: Protocol) -> bool:
    fewest = min(WALL_SAMPLES, protocol.samples_max)
    return len(samples) >= fewest or (len(samples) >= FEWEST_LONG and sum(samples) >= WALL_BUDGET_S)
