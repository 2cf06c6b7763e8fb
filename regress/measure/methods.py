"""How each kind of benchmark is measured: on the device, by the host's clock, in a child process, or as a number."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from typing import Any, Callable, Dict, List, Optional

from .backend import Backend, DeviceBackend
from .bench_types import device_reset
from .loop import CPU_WINDOW_S, WALL_SAMPLES, DeviceLoop, cpu_calls, wall_samples, warm_cpu, window_s
from .memory import peak_of_call, peak_rss
from .runner import first_attr, wall_timer
from .stopping import FEWEST_LONG, enough, round_value, valid
from .wire import SYNCHRONIZES, Measured, Protocol, Task

Call = Callable[[], object]

CPU_WARMUP_S = 0.1
"""asv's own default for CPython."""
WALL_BUDGET_S = 1.0
"""Wall time beside a device time stops after this, with 3 windows at least."""
PATIENCE = 0.8
"""No sample is begun that may not end within this share of the case's timeout."""


@dataclass
class Visited:
    """What a visit found, before it is put into a message."""

    protocol: Protocol
    values: Dict[str, Measured] = field(default_factory=dict)
    facts: Dict[str, Any] = field(default_factory=dict)
    flags: List[str] = field(default_factory=list)


def on_device(benchmark: Any, call: Call, task: Task, backend: DeviceBackend) -> Visited:
    """Device time, host time of the same pass, wall time beside it, and peak memory where the task asks for it."""
    reset = device_reset(benchmark._attr_sources, benchmark._build_params())
    loop = DeviceLoop(call, backend, reset)
    protocol = task.protocol or quick(declared(Protocol("gpu_time"), benchmark), task)
    flags = [] if loop.warm_up(protocol.warmup_s) or task.quick else ["unstable warm-up"]
    if task.protocol is None:
        settled = loop.propose(protocol)
        if settled is None:
            return Visited(protocol, flags=[*flags, SYNCHRONIZES])
        number = int(first_attr(benchmark._attr_sources, "number", 0))
        return Visited(replace(settled, calls=number) if number else settled, flags=flags)
    visited = Visited(protocol, flags=flags)
    found = loop.sample(protocol)
    if found is None:
        flags.append(SYNCHRONIZES)
    elif not found.device:
        flags.append(f"no device work was seen: all {found.invalid} event times are invalid")
    else:
        value = round_value(found.device, backend.clock_step_s, protocol.calls)
        visited.values["gpu_time"] = Measured(value, found.device, invalid=found.invalid)
        visited.values["host_time"] = Measured(round_value(found.host), found.host)
        visited.facts["clock_step_s"] = backend.clock_step_s
        visited.facts["spins_repeated"] = found.retried
        if found.clocks_hz:
            visited.facts["sm_clock_hz"] = sorted(found.clocks_hz)[len(found.clocks_hz) // 2]
    wall = wall_samples(call, backend, protocol.wall_calls, reset, lambda samples: _enough_wall(samples, protocol))
    visited.values["wall_time"] = Measured(round_value(wall), wall)
    probe = backend.memory() if task.memory else None
    if probe is not None:
        visited.values["peak_memory"] = peak_of_call(call, backend, probe, reset)
    return visited


def on_host(benchmark: Any, call: Call, task: Task, backend: Backend) -> Visited:
    """`time_*`: wall time in windows of at least a millisecond."""
    started = time.perf_counter()
    before = benchmark.redo_setup if benchmark.number == 1 and benchmark._setups else None
    protocol = task.protocol or quick(_host_protocol(benchmark, call, before, backend), task)
    if task.protocol is None:
        return Visited(protocol)
    warm_cpu(call, backend, protocol.calls, protocol.warmup_s, before)
    clock = backend if benchmark.timer is wall_timer else _CustomClock(benchmark.timer)

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
    return Visited(protocol, {"wall_time": measured})


def _host_protocol(benchmark: Any, call: Call, before: Optional[Call], backend: Backend) -> Protocol:
    protocol = declared(Protocol("wall_time", setup_each=before is not None, warmup_s=CPU_WARMUP_S), benchmark)
    if benchmark.number:
        window_s(call, backend, 1, before)
        return replace(protocol, calls=int(benchmark.number))
    return replace(protocol, calls=cpu_calls(call, backend, CPU_WINDOW_S))


def in_child(benchmark: Any, task: Task) -> Visited:
    """`timeraw_*`: asv_runner times a statement in a Python process of its own, one process a sample."""
    started = time.perf_counter()
    asked = declared(Protocol("wall_time", samples_min=3, samples_max=5), benchmark)
    protocol = task.protocol or quick(replace(asked, calls=max(1, int(benchmark.number))), task)
    timer = benchmark._get_timer(*benchmark._build_params())
    samples: List[float] = []
    while len(samples) < (1 if task.protocol is None else protocol.samples_max):
        samples.append(timer.timeit(protocol.calls) / protocol.calls)
        spent_s = time.perf_counter() - started
        if spent_s + spent_s / len(samples) > PATIENCE * task.timeout_s:
            break
    return Visited(protocol, {"wall_time": Measured(round_value(samples), samples)})


def as_number(benchmark: Any, call: Call, task: Task, metric: str) -> Visited:
    """`track_*`, `mem_*` and `peakmem_*`: what the function returns, or what its process needed."""
    protocol = task.protocol or Protocol(metric)
    if metric == "peak_rss":
        call()
        value: Any = peak_rss()
    else:
        value = benchmark.do_run()
    if isinstance(value, bool) or not hasattr(value, "__float__"):
        raise TypeError(f"a {benchmark.type} benchmark has to return a number, not {type(value).__name__}")
    number, unit = float(value), benchmark.unit if metric == "value" else "B"
    exact = first_attr([benchmark.func, *benchmark._attr_sources], "exact", None) is True
    return Visited(protocol, {metric: Measured(number, [number], unit=unit, exact=exact)})


def quick(protocol: Protocol, task: Task) -> Protocol:
    """The protocol, cut down to one sample where the task asks for it."""
    return replace(protocol, samples_min=1, samples_max=1, warmup_s=0.0) if task.quick else protocol


def declared(protocol: Protocol, benchmark: Any) -> Protocol:
    """The protocol with asv's `repeat` (a count, or fewest, most and seconds) and `warmup_time` honoured."""
    sources = benchmark._attr_sources
    warmup_s = first_attr(sources, "warmup_time", -1)
    if warmup_s >= 0:
        protocol = replace(protocol, warmup_s=float(warmup_s))
    repeat = first_attr(sources, "repeat", 0)
    if isinstance(repeat, (tuple, list)):
        fewest, most, seconds = repeat
        return replace(protocol, samples_min=int(fewest), samples_max=int(most), window_budget_s=float(seconds))
    if repeat:
        return replace(protocol, samples_min=int(repeat), samples_max=int(repeat), window_budget_s=ENDLESS_S)
    return protocol


ENDLESS_S = 1e9
"""No budget: the count alone decides. Not infinite, because JSON has no word for that."""


class _CustomClock(Backend):
    """A benchmark's own `timer` attribute in place of the host clock."""

    def __init__(self, timer: Callable[[], float]) -> None:
        self._timer = timer

    def now(self) -> float:
        return self._timer()


def _enough_wall(samples: List[float], protocol: Protocol) -> bool:
    fewest = min(WALL_SAMPLES, protocol.samples_max)
    return len(samples) >= fewest or (len(samples) >= FEWEST_LONG and sum(samples) >= WALL_BUDGET_S)
