"""Our device time against the profiler's, which reads each kernel's start and end off the hardware's own clock.

Both are taken in one process, on one stream, with the queue kept full. In the trace a short spin before and after each call
says which kernels are the call's own, whatever a `reset` launches.
"""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from regress.measure.backend import DeviceBackend, DeviceError
from regress.measure.declared import device_loop, ready
from regress.measure.failures import last_line
from regress.measure.methods.jax_arrays import WALL_ONLY, is_jax
from regress.measure.state import forget_compilations, seed
from regress.measure.suite import Suite, choose_params
from regress.measure.wire import Benchmark, Protocol
from regress.model import Case
from regress.units import format_percent, format_time

from . import bench, limits
from .device import open_device
from .table import Row, Table

Call = Callable[[], object]

MARKER = "regress_spin"
CALLS = 20
KERNELS_A_TRACE = 400
"""More pending launches than this might fill the queue and block the host."""
FIRST_SPIN_S = 20e-3
TRIES = 6
WARMUP_S = 2.0


@dataclass(frozen=True)
class Kernel:
    """Work of the device as the profiler saw it; seconds on its clock."""

    name: str
    start_s: float
    end_s: float


def run(scratch: Path) -> list[Table]:
    device, torch = open_device()
    suite = Suite(str(bench.ROOT / "benchmarks"), {}, [str(bench.ROOT)])
    benchmarks, _ = suite.discover()
    rows, notes = [], []
    for case in cases(benchmarks):
        try:
            rows.append(_compared(suite, case, device, torch))
        except DeviceError as error:
            if error.sticky:
                raise
            notes.append(f"{case}: {error}")
        except Exception as error:  # one case that cannot be run takes nothing from the others
            notes.append(f"{case}: {last_line(error)}")
    return [table(rows, notes)]


def cases(benchmarks: Iterable[Benchmark]) -> Iterator[Case]:
    """The first and the last parameter combination of every benchmark of device time whose caches are hot."""
    for benchmark in benchmarks:
        if benchmark.metric == "gpu_time" and benchmark.declared.get("cache", "hot") == "hot":
            combinations = list(itertools.product(*benchmark.params))
            for params in dict.fromkeys((combinations[0], combinations[-1])):
                yield Case(benchmark.name, params)


def table(rows: Sequence[Row], notes: Sequence[str] = ()) -> Table:
    """The table, with how many of the operations with several kernels agree with the span as they do with a single kernel."""
    several = [row.figures for row in rows if row.figures["kernels"] > 1]
    close = [entry for entry in several if abs(entry["gpu_time"] - entry["span"]) <= limits.allowance_s(entry["span"])]
    said = f"{len(close)} of {len(several)} operations with several kernels agree with the span itself."
    columns = ("operation", "kernels", "gpu time", "kernels' time", "span", "gaps", "off by")
    return Table("Device time and the profiler's", columns, tuple(rows), (said, *notes))


def row(case: Case, ours_s: float, calls: Sequence[Sequence[Kernel]]) -> Row:
    """The line of a case, from its device time and the kernels of each traced call."""
    kernels = round(statistics.median(len(call) for call in calls))
    busy_s, span_s = (statistics.median(of(call) for call in calls) for of in (busy, span))
    nearest_s = min(max(ours_s, busy_s), span_s)
    cells = (
        str(case),
        str(kernels),
        format_time(ours_s),
        format_time(busy_s),
        format_time(span_s),
        format_percent((span_s - busy_s) / span_s),
        f"{(ours_s - nearest_s) * 1e6:+.2f} us",
    )
    figures = {"kernels": kernels, "gpu_time": ours_s, "busy": busy_s, "span": span_s}
    return Row(cells, limits.agrees(ours_s, busy_s, span_s), figures)


def busy(kernels: Iterable[Kernel]) -> float:
    """Seconds in which at least one of the kernels ran."""
    total = until = 0.0
    for kernel in sorted(kernels, key=lambda work: work.start_s):
        total += max(0.0, kernel.end_s - max(until, kernel.start_s))
        until = max(until, kernel.end_s)
    return total


def span(kernels: Sequence[Kernel]) -> float:
    """Seconds from the first kernel's start to the last one's end."""
    return max(launch.end_s for launch in kernels) - min(launch.start_s for launch in kernels)


def calls_of(trace: Iterable[Kernel]) -> list[list[Kernel]]:
    """The kernels of each call of a trace: one marker keeps the queue full, then each call stands between two."""
    groups: list[list[Kernel]] = [[]]
    for kernel in sorted(trace, key=lambda work: work.start_s):
        if kernel.name == MARKER:
            groups.append([])
        else:
            groups[-1].append(kernel)
    return groups[
        2::2
    ]  # what came before the first marker, [what follows it, a call], [what follows, a call], ..., the rest


# -- one case ------------------------------------------------------------------------------------------------------------


def _compared(suite: Suite, case: Case, device: DeviceBackend, torch: Any) -> Row:
    benchmark = suite.get(case.name)
    choose_params(benchmark, list(case.params))
    forget_compilations()
    seed(0)
    if benchmark.do_setup():
        raise NotImplementedError("skipped by its setup")
    try:
        params = benchmark._build_params()

        def call() -> object:
            return benchmark.func(*params)

        if is_jax(benchmark, call):
            raise NotImplementedError(WALL_ONLY)
        loop = device_loop(benchmark, call, device)
        loop.warm_up(WARMUP_S)
        protocol = loop.propose(Protocol("gpu_time"))
        # On the current stream alone: the profiler is asked about the very kernels that are timed.
        samples = None if protocol is None else loop.sample(replace(protocol, lanes=1))
        if protocol is None or samples is None or not samples.device:
            raise RuntimeError("has no device time")
        return row(case, samples.value(device.clock_step_s, protocol.calls), _traced(call, benchmark, device, torch))
    finally:
        benchmark.do_teardown()
        device.synchronize()
        torch.cuda.empty_cache()


def _traced(call: Call, benchmark: Any, device: DeviceBackend, torch: Any) -> list[list[Kernel]]:
    """The kernels of each of a few calls. Raises RuntimeError where the queue ran dry whatever the spin."""
    reset = ready(benchmark)
    once = _trace(call, reset, 1, device, torch)
    kernels = sum(map(len, once)) + 2
    calls = max(1, min(CALLS, KERNELS_A_TRACE // kernels))
    per_call = [kernels for kernels in _trace(call, reset, calls, device, torch) if kernels]
    if not per_call:
        raise RuntimeError("launches nothing that the profiler sees")
    return per_call


def _trace(call: Call, reset: Call | None, calls: int, device: DeviceBackend, torch: Any) -> list[list[Kernel]]:
    """Trace so many calls behind a spin; with a longer one where it had ended before the last call was enqueued."""
    from torch.autograd import DeviceType
    from torch.profiler import ProfilerActivity, profile

    device.use_events(1)
    spin_s = FIRST_SPIN_S
    for _ in range(TRIES):
        torch.cuda.synchronize()
        with profile(activities=[ProfilerActivity.CUDA], acc_events=True) as profiler:
            device.hold_stream()
            device.spin(spin_s)
            device.record(0)
            for _ in range(calls):
                if reset is not None:
                    reset()
                device.spin(0.0)
                call()
                device.spin(0.0)
            full = not device.passed(0)
            torch.cuda.synchronize()
        if full:
            events = [event for event in profiler.events() if event.device_type == DeviceType.CUDA]
            trace = [Kernel(e.name, e.time_range.start * 1e-6, e.time_range.end * 1e-6) for e in events]
            return calls_of(trace)
        spin_s *= 2
    raise RuntimeError("the queue ran dry under the profiler")
