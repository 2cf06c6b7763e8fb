"""`cudatime_*`, and `time_*` under the device protocol: device time, host time of the same pass, and wall time."""

from __future__ import annotations

import contextlib
import statistics
from dataclasses import replace
from typing import Any, Callable, Dict, Iterator, Optional, Tuple

from .. import counters
from ..backend import Backend, DeviceBackend
from ..backend.nvml import DeviceWatch
from ..blocks import DeviceSamples
from ..declared import device_loop, device_protocol, number, ready, wants_energy
from ..energy import energy_of_call
from ..existing import QuietCall
from ..loop import DeviceLoop
from ..seat import Seat
from ..stopping import PATIENCE
from ..windows import HostWindows, calls_of_window, short_windows, timed
from ..wire import SYNCHRONIZES, Measured, Task
from .common import Call, Visited, by_the_host, probe_memory, quick

BESIDE_S, BESIDE_WINDOWS = 16e-3, 8
"""What windows of wall time take, which gate nothing as those of host time do, and the fewest of them."""
SLOWED_TRIES = 4
COOLING_S = 2.0
"""Pause before repeating a measurement that was taken during thermal throttling."""


def on_device(benchmark: Any, call: Call, task: Task, backend: DeviceBackend, seat: Optional[Seat]) -> Visited:
    """Device time, host time and wall time, and memory if the task asks for it."""
    protocol = task.protocol or quick(device_protocol(benchmark), task)
    visited = Visited(protocol)
    compiled = counters.CompileWatch()
    compiled.start()
    with _quiet(benchmark, call, backend, visited) as calm:
        loop = device_loop(benchmark, calm, backend)
        if not loop.warm_up(protocol.warmup_s) and protocol.warmup_s:
            visited.flags.append("unstable warm-up")
        if task.protocol is None:
            _propose(benchmark, loop, visited)
        elif _time(loop, visited, backend):
            by_the_host("host_time", loop.launches_of(protocol), visited, task, seat)
    before = ready(benchmark)
    if task.protocol is None:
        _propose_wall(call, before, visited, task, backend)
        counted = counters.count(call, backend, before)
        visited.values = {**counted.values, **compiled.stop()}
        return visited
    wall = HostWindows(call, backend, protocol.wall_calls, protocol.warm_calls, before, "each", not protocol.pinned)
    by_the_host("wall_time", wall, visited, task, seat)
    probe_memory(call, task, backend, before, visited)
    if wants_energy(benchmark) and not task.quick:
        _energy(call, before, visited, task, backend)
    return visited


def _energy(call: Call, before: Optional[Call], visited: Visited, task: Task, backend: DeviceBackend) -> None:
    """Energy of a call, or the flag that says why there is none."""
    if before is not None or backend.ranks.several:
        why = "its input is made again before each sample" if before is not None else "it works in several processes"
        visited.flags.append(f"no energy: {why}")
        return
    joules = energy_of_call(call, backend, PATIENCE * task.timeout_s / 4)
    if joules is None:
        visited.flags.append("no energy: the device does not count it, or not while this was called")
        return
    visited.values["energy"] = Measured(joules, [joules], unit="J")


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


def _propose_wall(call: Call, before: Optional[Call], visited: Visited, task: Task, backend: DeviceBackend) -> None:
    """Let the call say how windows of the host's clock are to be taken."""
    with HostWindows(call, backend, 1, 0, before, waits="each") as windows:
        timing = timed(windows)
    protocol = replace(visited.protocol, wall_calls=1 if before is not None else calls_of_window(timing))
    limit_s = PATIENCE * task.timeout_s / 4
    visited.protocol = short_windows(protocol, timing, protocol.wall_calls, limit_s, BESIDE_S, BESIDE_WINDOWS)


def _time(loop: DeviceLoop, visited: Visited, backend: DeviceBackend) -> bool:
    """Device time, or the flag that says why it is missing."""
    protocol = visited.protocol
    samples, state = _unslowed(lambda: loop.sample(protocol), backend)
    visited.facts.update(state)
    if samples is None:
        visited.flags.append(SYNCHRONIZES)
        return False
    doubt = loop.doubt(samples, protocol)
    if doubt:
        visited.flags.append(doubt)
        return False
    value = samples.value(backend.clock_step_s, protocol.calls)
    visited.values["gpu_time"] = Measured(value, samples.device, invalid=samples.invalid)
    visited.facts["clock_step_s"] = backend.clock_step_s
    visited.facts["spins_repeated"] = samples.retried
    visited.facts["lanes"] = lanes = len(set(samples.lanes))
    if lanes < min(protocol.lanes, len(samples.device)):
        why = "the host became too slow to fill the queue" if samples.cut else "another framework came into use"
        visited.flags.append(f"measured on {lanes} of {protocol.lanes} lanes: {why}")
    if samples.trend is not None:
        visited.facts["trend"] = samples.trend
    if samples.clocks_hz:
        visited.facts["sm_clock_hz"] = statistics.median_low(samples.clocks_hz)
    return True


def _unslowed(
    sample: Callable[[], Optional[DeviceSamples]], backend: Backend
) -> Tuple[Optional[DeviceSamples], Dict[str, Any]]:
    """Samples that were taken while nothing slowed the device down, or the last try's, with the state of the device."""
    watch = DeviceWatch(backend.device_state)
    for left in reversed(range(SLOWED_TRIES)):
        watch.before()
        samples = sample()
        state = watch.after()
        if not left or not backend.ranks.any("the device's state", bool(state.get("throttled"))):
            break
        backend.pause(COOLING_S)
    return samples, {key: value for key, value in state.items() if value or key not in ("throttled", "power_capped")}
