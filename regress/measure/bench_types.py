"""The benchmark types this package adds to asv's: `cudatime_*` (also `CudaTime*`), timed on the device, and `cudacold_*`.

The same class serves two hosts. Our worker reads what a benchmark declares and runs its own loops; an unmodified asv, which
finds the type through the plugin package, calls `run`.

`load` gives a worker all types.
"""

from __future__ import annotations

import copy
import math
import re
from dataclasses import replace
from typing import Any, Dict, List, Union

from .awaited import awaiting
from .backend import DeviceBackend, choose
from .calibration import calibrate
from .declared import bound, device_loop, device_protocol, number, ready
from .runner import Benchmark, benchmarks, first_attr
from .stopping import centred


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
        with awaiting(self):
            before = ready(self)
            if before is not None:
                before()
            bound(self)()  # opens the framework's context before ours is asked for
            calibrate(backend)
            return self._samples(backend)

    def _samples(self, backend: DeviceBackend) -> Dict[str, Any]:
        """Samples of this process, and how many calls each has."""
        call, protocol = bound(self), device_protocol(self)
        loop = device_loop(self, call, backend)
        loop.warm_up(protocol.warmup_s)
        settled = loop.propose(protocol)
        if settled is not None and number(self):
            settled = replace(settled, calls=number(self))
        samples = loop.sample(settled) if settled is not None else None
        if settled is None or samples is None:
            raise RuntimeError(f"{self.name} waits for the device, so it has no device time: measure it as time_*")
        why = loop.doubt(samples, settled)
        if why:
            raise RuntimeError(f"{self.name} {why}")
        # asv takes the median of all samples; brought to the level of all lanes, that is the value of a round.
        return {"samples": centred(samples.device, samples.lanes), "number": settled.calls}


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

        value = self.func(*params)
        size: Any = asizeof.asizeof
        return int(size([value, copy.copy(value)]) - size([value, value]))


def load() -> List[Any]:
    """Make asv_runner find benchmarks by its own types and ours, and by no others."""
    benchmarks.benchmark_types[:] = [*export_as_benchmark, SizeBenchmark, *benchmarks.benchmark_types]
    return list(benchmarks.benchmark_types)


export_as_benchmark = [CudaTimeBenchmark, CudaColdBenchmark]
