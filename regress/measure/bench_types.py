"""The benchmark types this package adds to asv's: `cudatime_*` (also `CudaTime*`), timed on the device, and `cudacold_*`.

The same class serves two hosts. Our worker reads what a benchmark declares and runs its own loops; an unmodified asv, which
finds the type through the plugin package, calls `run`.

`load` gives a worker all types.
"""

from __future__ import annotations

import copy
import math
import re
from typing import Any, Callable, Dict, List, Union

from .backend import DeviceBackend, choose
from .calibration import calibrate
from .loop import DeviceLoop
from .runner import Benchmark, benchmarks, first_attr
from .stopping import centred
from .wire import Protocol


class CudaTimeBenchmark(Benchmark):  # type: ignore[misc]
    """Device seconds of one call, launches and Python excluded."""

    name_regex = re.compile("^(CudaTime[A-Z_].+)|(cudatime_.+)$")

    def __init__(self, name: str, func: Any, attr_sources: Any) -> None:
        super().__init__(name, func, attr_sources)
        self.type = "time"
        self.unit = "seconds"
        self.rounds = int(first_attr(attr_sources, "rounds", 2))

    def run(self, *params: Any) -> Union[Dict[str, Any], float]:
        """What asv calls: samples of one process, or NaN (skipped) without a device. Tunables are read here, because asv sets
        its overrides late."""
        backend = choose("auto")
        if not isinstance(backend, DeviceBackend):
            print(f"asv: skipped: {self.name} needs a CUDA device: {backend.why_no_device}")
            return math.nan
        protocol = Protocol("gpu_time")
        self.func(*params)  # opens the framework's context before ours is asked for
        calibrate(backend)
        loop = declared_loop(self, lambda: self.func(*params), backend)
        loop.warm_up(protocol.warmup_s)
        settled = loop.propose(protocol)
        found = loop.sample(settled) if settled is not None else None
        if settled is None or found is None:
            raise RuntimeError(f"{self.name} waits for the device, so it has no device time: measure it as time_*")
        # asv takes the median of all samples; brought to the level of all lanes, that is the value of a round.
        return {"samples": centred(found.device, found.lanes), "number": settled.calls}


class CudaColdBenchmark(Benchmark):  # type: ignore[misc]
    """Seconds from a fresh process with fresh compile caches to the first result."""

    name_regex = re.compile("^(CudaCold[A-Z_].+)|(cudacold_.+)$")

    def __init__(self, name: str, func: Any, attr_sources: Any) -> None:
        super().__init__(name, func, attr_sources)
        self.type = "time"
        self.unit = "seconds"

    def run(self, *params: Any) -> float:
        """What asv calls, in a process that has imported the suite and may have warm caches: nothing is cold there."""
        print(f"asv: skipped: {self.name} needs a fresh process and fresh caches: regress run -b {self.name}")
        return math.nan


class SizeBenchmark(Benchmark):  # type: ignore[misc]
    """asv's `mem_*`: bytes of the object that the function returns."""

    name_regex = re.compile("^(Mem[A-Z_].+)|(mem_.+)$")

    def __init__(self, name: str, func: Any, attr_sources: Any) -> None:
        super().__init__(name, func, attr_sources)
        self.type = "memory"
        self.unit = "bytes"

    def run(self, *params: Any) -> int:
        """What a second copy of the object would add, as asv defines it: what both share does not count."""
        from pympler import asizeof

        found = self.func(*params)
        size: Any = asizeof.asizeof
        return int(size([found, copy.copy(found)]) - size([found, found]))


def load() -> List[Any]:
    """Make asv_runner find benchmarks by its own types and ours, and by no others."""
    benchmarks.benchmark_types[:] = [*export_as_benchmark, SizeBenchmark, *benchmarks.benchmark_types]
    return list(benchmarks.benchmark_types)


def device_reset(attr_sources: Any, params: Any) -> Any:
    """The benchmark's `reset` bound to its parameters, or None."""
    reset = first_attr(attr_sources, "reset", None)
    return None if reset is None else (lambda: reset(*params))


def declared_loop(benchmark: Any, call: Callable[[], object], backend: DeviceBackend) -> DeviceLoop:
    """The loop for a benchmark that is set up, with what it declares: `reset`, `streams`, `cache`, and setup before every
    sample for `number = 1`, as asv has it."""
    sources, params = benchmark._attr_sources, benchmark._build_params()
    streams = first_attr(sources, "streams", None)
    return DeviceLoop(
        call,
        backend,
        device_reset(sources, params),
        prepare=redone_setup(benchmark),
        streams=[backend.stream_handle(stream) for stream in streams(*params)] if streams is not None else (),
        cold=first_attr(sources, "cache", "hot") == "cold",
    )


def redone_setup(benchmark: Any) -> Any:
    """The benchmark's setup where it runs again before every sample, as asv has it for a declared `number = 1`; else None."""
    if int(first_attr(benchmark._attr_sources, "number", 0)) != 1 or not benchmark._setups:
        return None

    def again() -> None:  # asv_runner's own redo_setup does nothing the first time
        benchmark.do_teardown()
        benchmark.do_setup()

    return again


def ready(benchmark: Any) -> Any:
    """What has to run before a call of the benchmark so that it finds things as it wants to: setup, `reset`, or None."""
    setup, reset = redone_setup(benchmark), device_reset(benchmark._attr_sources, benchmark._build_params())
    if setup is None or reset is None:
        return setup or reset

    def both() -> None:
        setup()
        reset()

    return both


def declared_work(benchmark: Any) -> Dict[str, float]:
    """`bytes` and `flops` of one call, as far as the benchmark declares them, as a number or a function of its parameters."""
    sources, params = [benchmark.func, *benchmark._attr_sources], benchmark._build_params()
    found: Dict[str, float] = {}
    for name in ("bytes", "flops"):
        work = first_attr(sources, name, None)
        if work is not None:
            found[name] = float(work(*params) if callable(work) else work)
    return found


export_as_benchmark = [CudaTimeBenchmark, CudaColdBenchmark]
