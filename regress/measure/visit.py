"""One visit to one case: set up, time, probe memory, tear down; everything that happens becomes a Round or a Proposal."""

from __future__ import annotations

import gc
import os
import random
import sys
import time
from dataclasses import dataclass, replace
from typing import Any, Callable, Dict, List, Optional

from .backend import Backend, DeviceBackend, DeviceError
from .bench_types import CudaTimeBenchmark, device_reset
from .failures import failure_of
from .loop import CPU_WINDOW_S, WALL_SAMPLES, DeviceLoop, cpu_calls, wall_samples, warm_cpu
from .memory import peak_of_call, peak_rss
from .runner import first_attr
from .stopping import FEWEST_LONG, enough, round_value, valid
from .suite import METRICS, Suite, choose_params, load_cache
from .wire import SYNCHRONIZES, Failure, Measured, Proposal, Protocol, Round, Task

FRAMEWORKS = ("torch", "cupy", "jax", "triton", "numpy")

CPU_WARMUP_S = 0.1
"""asv's own default for CPython."""


WALL_BUDGET_S = 1.0
"""Wall time beside a device time stops after this, with 3 windows at least."""


class Skipped(Exception):
    """The case does not apply here; the message says why."""


@dataclass
class Visited:
    """What a visit found, before it is put into a message."""

    protocol: Optional[Protocol]
    values: Dict[str, Measured]
    facts: Dict[str, Any]
    flags: List[str]


class Visitor:
    """Visits cases one after the other in this process."""

    def __init__(self, suite: Suite, backend: Backend, seed: int, home: str) -> None:
        self._suite, self._backend, self._seed, self._home = suite, backend, seed, home
        self._calibrated = self._frozen = False

    def propose(self, task: Task) -> Proposal:
        """The unmeasured visit: whether the case works here, and the protocol this side would measure it with."""
        start = time.perf_counter()
        found, failure = self._visit(task)
        seconds = time.perf_counter() - start
        protocol = found.protocol if found is not None else None
        return Proposal(task.name, task.params, task.side, protocol, failure, seconds, found.flags if found else [])

    def measure(self, task: Task) -> Round:
        """The measured visit, by the task's protocol."""
        started, start = time.time(), time.perf_counter()
        found, failure = self._visit(task)
        return Round(
            name=task.name,
            params=task.params,
            side=task.side,
            order=task.order,
            process=os.getpid(),
            started_at=started,
            duration_s=time.perf_counter() - start,
            protocol=task.protocol,
            values=found.values if found is not None else {},
            failure=failure,
            facts={**(found.facts if found is not None else {}), "loaded": loaded_frameworks()},
            flags=found.flags if found is not None else [],
        )

    def broken(self) -> Optional[DeviceError]:
        """The error after which this process can measure nothing more, or None."""
        try:
            if self._calibrated:
                self._backend.synchronize()
        except DeviceError as error:
            return error if error.sticky else None
        return None

    # -- one case --------------------------------------------------------------------------------------------------------

    def _visit(self, task: Task) -> tuple[Optional[Visited], Optional[Failure]]:
        try:
            benchmark = self._suite.get(task.name)
            self._freeze()
            choose_params(benchmark, task.params)
            os.chdir(task.cache_dir or self._home)
            load_cache(benchmark, task.cache_dir)
            self._begin(task)
            return self._run(benchmark, task), None
        except Skipped as skipped:
            return None, Failure("skipped", str(skipped))
        except BaseException as error:  # whatever a benchmark raises is data
            return None, failure_of(error, self._suite.places)
        finally:
            os.chdir(self._home)

    def _freeze(self) -> None:
        """Take what the imports made out of the collector's sight, once: with torch loaded a collection between two blocks
        would otherwise take longer than the block."""
        if not self._frozen:
            gc.collect()
            gc.freeze()
            self._frozen = True

    def _begin(self, task: Task) -> None:
        forget_compilations()
        seed_everything(self._seed)
        self._backend.begin_case(str(task.name) + repr(task.params), task.order)

    def _run(self, benchmark: Any, task: Task) -> Visited:
        on_device = isinstance(benchmark, CudaTimeBenchmark)
        if on_device and not self._backend.has_device:
            raise Skipped(f"needs a CUDA device: {self._backend.why_no_device}")
        if benchmark.do_setup():
            raise Skipped("skipped by its setup (NotImplementedError) or by skip_params")
        try:
            call = _bound(benchmark)
            if on_device:
                return self._on_device(benchmark, call, task)
            metric = METRICS.get(benchmark.type, "value")
            if metric == "wall_time":
                return self._on_host(benchmark, call, task)
            return self._tracked(benchmark, call, task, metric)
        finally:
            benchmark.do_teardown()
            if self._calibrated:
                self._backend.synchronize()  # an error of this case must not surface in the next

    def _on_device(self, benchmark: Any, call: Callable[[], object], task: Task) -> Visited:
        backend = self._backend
        assert isinstance(backend, DeviceBackend)
        if not self._calibrated:
            call()  # lets the framework open its context first
            backend.calibrate()
            self._calibrated = True
        loop = DeviceLoop(call, backend, device_reset(benchmark._attr_sources, benchmark._build_params()))
        protocol = task.protocol or quick(Protocol("gpu_time"), task)
        flags = [] if loop.warm_up(protocol.warmup_s) or task.quick else ["unstable warm-up"]
        if task.protocol is None:
            settled = loop.propose(protocol)
            return Visited(settled or protocol, {}, {}, flags if settled else [*flags, SYNCHRONIZES])
        values: Dict[str, Measured] = {}
        facts: Dict[str, Any] = {}
        found = loop.sample(protocol)
        if found is None:
            flags.append(SYNCHRONIZES)
        elif found.device:
            value = round_value(found.device, backend.clock_step_s, protocol.calls)
            values["gpu_time"] = Measured(value, found.device, invalid=found.invalid)
            values["host_time"] = Measured(round_value(found.host), found.host)
            facts["spins_repeated"] = found.retried
            facts["clock_step_s"] = backend.clock_step_s
            if found.clocks_hz:
                facts["sm_clock_hz"] = sorted(found.clocks_hz)[len(found.clocks_hz) // 2]
        wall = wall_samples(call, backend, protocol.wall_calls, None, lambda samples: _enough_wall(samples, protocol))
        values["wall_time"] = Measured(round_value(wall), wall)
        probe = backend.memory() if task.memory else None
        if probe is not None:
            values["peak_memory"] = peak_of_call(call, backend, probe)
        return Visited(protocol, values, facts, flags)

    def _on_host(self, benchmark: Any, call: Callable[[], object], task: Task) -> Visited:
        backend = self._backend
        if hasattr(benchmark, "_timeraw_env"):
            return self._in_child(benchmark, task)
        before = benchmark.redo_setup if benchmark.number == 1 and benchmark._setups else None
        protocol = task.protocol or quick(self._host_protocol(benchmark, call, before), task)
        if task.protocol is None:
            return Visited(protocol, {}, {}, [])
        timer = benchmark.timer
        if timer is not _default_timer():
            backend = _CustomClock(timer)
        warm_cpu(call, backend, protocol.calls, protocol.warmup_s, before)
        samples = wall_samples(call, backend, protocol.calls, before, lambda samples: enough(samples, protocol))
        good = [sample for sample in samples if valid(sample)]
        if not good:
            raise RuntimeError("the clock did not move during any sample")
        return Visited(protocol, {"wall_time": _measured(good, invalid=len(samples) - len(good))}, {}, [])

    def _host_protocol(self, benchmark: Any, call: Callable[[], object], before: Any) -> Protocol:
        warmup_s = CPU_WARMUP_S if benchmark.warmup_time < 0 else float(benchmark.warmup_time)
        protocol = Protocol("wall_time", setup_each=before is not None, warmup_s=warmup_s)
        if benchmark.number:
            call()
            protocol = replace(protocol, calls=int(benchmark.number))
        else:
            protocol = replace(protocol, calls=cpu_calls(call, self._backend, CPU_WINDOW_S))
        return declared_samples(protocol, benchmark.repeat)

    def _in_child(self, benchmark: Any, task: Task) -> Visited:
        """`timeraw_*`: asv_runner times a statement in a Python process of its own, one process a sample."""
        declared = declared_samples(Protocol("wall_time", samples_min=3, samples_max=5), benchmark.repeat)
        protocol = task.protocol or quick(replace(declared, calls=max(1, int(benchmark.number))), task)
        timer = benchmark._get_timer(*benchmark._build_params())
        count = 1 if task.protocol is None else protocol.samples_max
        samples = [timer.timeit(protocol.calls) / protocol.calls for _ in range(count)]
        return Visited(protocol, {"wall_time": _measured(samples)}, {}, [])

    def _tracked(self, benchmark: Any, call: Callable[[], object], task: Task, metric: str) -> Visited:
        protocol = task.protocol or Protocol(metric)
        if metric == "peak_rss":
            call()
            value: Any = peak_rss()
        else:
            value = benchmark.do_run()
        if isinstance(value, bool) or not hasattr(value, "__float__"):
            raise TypeError(f"a {benchmark.type} benchmark has to return a number, not {type(value).__name__}")
        number, unit = float(value), "B" if metric != "value" else benchmark.unit
        exact = bool(getattr(benchmark.func, "exact", False) or first_attr(benchmark._attr_sources, "exact", None))
        return Visited(protocol, {metric: Measured(number, [number], unit=unit, exact=exact)}, {}, [])


def quick(protocol: Protocol, task: Task) -> Protocol:
    """The protocol, cut down to one sample where the task asks for it."""
    return replace(protocol, samples_min=1, samples_max=1, warmup_s=0.0) if task.quick else protocol


def declared_samples(protocol: Protocol, repeat: Any) -> Protocol:
    """The protocol with asv's `repeat` honoured: a count, or (fewest, most, seconds)."""
    if isinstance(repeat, (tuple, list)) and len(repeat) == 3:
        fewest, most, seconds = repeat
        return replace(protocol, samples_min=int(fewest), samples_max=int(most), window_budget_s=float(seconds))
    if repeat:
        return replace(protocol, samples_min=int(repeat), samples_max=int(repeat))
    return protocol


def seed_everything(seed: int) -> None:
    """Seed alike in every round, whatever generators are loaded."""
    random.seed(seed)
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed(seed)
    torch = sys.modules.get("torch")
    if torch is not None and hasattr(torch, "manual_seed"):
        torch.manual_seed(seed)
    cupy = sys.modules.get("cupy")
    if cupy is not None:
        cupy.random.seed(seed)


def forget_compilations() -> None:
    """Start torch.compile afresh for each case: its limit of recompilations counts over all cases of the process, and a case
    that stays under it by itself would fail for what earlier ones compiled."""
    if "torch._dynamo" in sys.modules:
        sys.modules["torch"].compiler.reset()


def loaded_frameworks() -> List[str]:
    """The frameworks that this process has imported."""
    return [name for name in FRAMEWORKS if name in sys.modules]


class _CustomClock(Backend):
    """A benchmark's own `timer` attribute in place of the host clock."""

    def __init__(self, timer: Callable[[], float]) -> None:
        self._timer = timer

    def now(self) -> float:
        return self._timer()


def _bound(benchmark: Any) -> Callable[[], object]:
    params = benchmark._build_params()
    func = benchmark.func
    return (lambda: func(*params)) if params else func


def _measured(samples: List[float], invalid: int = 0) -> Measured:
    return Measured(round_value(samples), samples, invalid=invalid)


def _enough_wall(samples: List[float], protocol: Protocol) -> bool:
    fewest = min(WALL_SAMPLES, protocol.samples_max)
    return len(samples) >= fewest or (len(samples) >= FEWEST_LONG and sum(samples) >= WALL_BUDGET_S)


def _default_timer() -> Any:
    from asv_runner.benchmarks.time import wall_timer

    return wall_timer
