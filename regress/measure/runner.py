"""The door to asv_runner: imported here, once, without what it would drag in.

asv_runner imports every installed plugin at once. That could be an installed copy of this very package, whose code would then
stand in for the one under test, so no distributions are shown to it. Its module of `mem_*` imports pympler and with it numpy
into every process, so pympler is hidden from it; `bench_types` has that type instead.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import sys
from types import ModuleType

HIDDEN = ("pympler", "pympler.asizeof")


def _import() -> ModuleType:
    shown = importlib.metadata.distributions
    loaded = {name: sys.modules[name] for name in HIDDEN if name in sys.modules}
    sys.modules.update(dict.fromkeys(HIDDEN))  # type: ignore[arg-type]
    importlib.metadata.distributions = lambda **_: iter(())
    try:
        return importlib.import_module("asv_runner.benchmarks")
    finally:
        importlib.metadata.distributions = shown
        for name in HIDDEN:
            del sys.modules[name]
        sys.modules.update(loaded)


# Under an unmodified asv this finds the package half imported, as it is about to list our types: nothing is done then.
benchmarks = _import()

from asv_runner.benchmarks._base import Benchmark, _get_first_attr  # noqa: E402
from asv_runner.benchmarks.peakmem import PeakMemBenchmark  # noqa: E402
from asv_runner.benchmarks.time import TimeBenchmark, wall_timer  # noqa: E402

first_attr = _get_first_attr

__all__ = ["Benchmark", "PeakMemBenchmark", "TimeBenchmark", "benchmarks", "first_attr", "wall_timer"]
