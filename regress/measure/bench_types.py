"""The benchmark types this package adds to asv's: `cudatime_*` (also `CudaTime*`), timed on the device.

The same class serves two hosts. Our worker reads what a benchmark declares and runs its own loops; an unmodified asv, which
finds the type through the plugin package, calls `run`.

`load` gives a worker all types.
"""

from __future__ import annotations

import copy
import math
import re
from typing import Any, Dict, List, Union

from .backend import DeviceBackend, choose
from .loop import DeviceLoop, calibrate
from .runner import Benchmark, benchmarks, first_attr
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
        loop = DeviceLoop(lambda: self.func(*params), backend, device_reset(self._attr_sources, params))
        protocol = Protocol("gpu_time")
        self.func(*params)  # opens the framework's context before ours is asked for
        calibrate(backend)
        loop.warm_up(protocol.warmup_s)
        settled = loop.propose(protocol)
        found = loop.sample(settled) if settled is not None else None
        if settled is None or found is None:
            raise RuntimeError(f"{self.name} waits for the device, so it has no device time: measure it as time_*")
        return {"samples": found.device, "number": settled.calls}


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
    benchmarks.benchmark_types[:] = [CudaTimeBenchmark, SizeBenchmark, *benchmarks.benchmark_types]
    return list(benchmarks.benchmark_types)


def device_reset(attr_sources: Any, params: Any) -> Any:
    """The benchmark's `reset` bound to its parameters, or None."""
    reset = first_attr(attr_sources, "reset", None)
    return None if reset is None else (lambda: reset(*params))


export_as_benchmark = [CudaTimeBenchmark]
