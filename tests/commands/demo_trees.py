"""A program that runs every case of a demo's suite in each of the given folders: `demo_trees.py scripted|torch FOLDER...`

Prints a JSON list with a dict for each folder. `scripted`: case -> metric -> cost, on a device that only counts. `torch`:
case -> largest difference to the result in the first folder, over its largest number; all sizes are cut to 64.
"""

from __future__ import annotations

import importlib
import inspect
import itertools
import json
import sys
import types
from collections.abc import Iterator
from typing import Any

LAUNCH_S = 4e-6
SYNCHRONIZE_S = 10e-6
LARGEST = 64


class Case:
    """One method of a suite's class with one combination of parameters."""

    def __init__(self, module: str, suite: Any, method: str, values: tuple[Any, ...]) -> None:
        self.name = f"{module}.{type(suite).__name__}.{method}({', '.join(map(repr, values))})"
        self._suite, self._method, self._values = suite, method, values

    def setup(self) -> None:
        self._suite.setup(*self._values)

    def call(self) -> Any:
        return getattr(self._suite, self._method)(*self._values)


def cases(folder: str) -> Iterator[Case]:
    """The cases of the suite in `folder`, which is imported anew together with its library."""
    for name in [name for name in sys.modules if name.split(".")[0] in ("benchmarks", "tinynn")]:
        del sys.modules[name]
    sys.path[0] = folder
    importlib.invalidate_caches()
    for part in ("blocks", "ops", "optim"):
        module = importlib.import_module(f"benchmarks.{part}")
        assert str(module.__file__).startswith(folder), module.__file__
        kinds: list[Any] = [kind for _, kind in inspect.getmembers(module, inspect.isclass)]
        for kind in kinds:
            lists = kind.params if isinstance(kind.params[0], list) else [kind.params]
            for method in (name for name in vars(kind) if name.startswith("cudatime_")):
                for values in itertools.product(*lists):
                    yield Case(part, kind(), method, values)


class Counting(types.ModuleType):
    """`regress_scripted` as a ledger. The host runs ahead of the device until it synchronizes."""

    def __init__(self) -> None:
        super().__init__("regress_scripted")
        self.bytes = 0
        self.begin()

    def begin(self) -> None:
        self.host_s = self.busy_s = self.device_s = 0.0
        self.held = self.peak = self.bytes
        self.synchronized = False

    def kernel(self, name: str, seconds: float) -> None:
        self.host(LAUNCH_S)
        self.busy_s += seconds
        self.device_s = max(self.device_s, self.host_s) + seconds

    def host(self, seconds: float) -> None:
        self.host_s += seconds

    def synchronize(self) -> None:
        self.synchronized = True
        self.host_s = max(self.host_s, self.device_s) + SYNCHRONIZE_S

    def alloc(self, nbytes: int) -> object:
        return Memory(self, nbytes)

    def costs(self) -> dict[str, float]:
        """What a call cost since `begin`. What waits for the device has wall time only, as in the real loop."""
        memory = {"peak_memory": float(self.peak - self.held)}
        if self.synchronized:
            return {"wall_time": max(self.host_s, self.device_s), **memory}
        wall = {"wall_time": max(self.host_s, self.device_s)}
        return {"gpu_time": self.busy_s, "host_time": self.host_s, **wall, **memory}


class Memory:
    """Device memory that is freed with this object."""

    def __init__(self, device: Counting, nbytes: int) -> None:
        self._device, self._nbytes = device, nbytes
        device.bytes += nbytes
        device.peak = max(device.peak, device.bytes)

    def __del__(self) -> None:
        self._device.bytes -= self._nbytes


def costs_of(folder: str, device: Counting) -> dict[str, dict[str, float]]:
    costs = {}
    for case in cases(folder):
        case.setup()
        device.begin()
        case.call()
        costs[case.name] = device.costs()
    return costs


def results_of(folder: str) -> dict[str, Any]:
    """The numbers that each case gives, from the same seed, as one flat tensor in float64."""
    import torch

    results = {}
    for case in cases(folder):
        cut_sizes(sys.modules["tinynn"])
        torch.manual_seed(0)
        case.setup()
        output = case.call()
        parts = output if isinstance(output, list) else [output]
        results[case.name] = torch.cat([part.double().flatten() for part in parts])
    return results


def cut_sizes(library: Any) -> None:
    """Let the library make small tensors only: the suite's sizes are for a GPU."""
    randn, randint = library.tensor.randn, library.tensor.randint
    library.randn = lambda *shape, **options: randn(*(min(size, LARGEST) for size in shape), **options)
    library.randint = lambda *sizes: randint(*(min(size, LARGEST) for size in sizes))


def main(kind: str, folders: list[str]) -> list[dict[str, Any]]:
    if kind == "scripted":
        device = Counting()
        sys.modules["regress_scripted"] = device
        return [costs_of(folder, device) for folder in folders]
    results = [results_of(folder) for folder in folders]
    first = results[0]
    return [
        {name: float((got - first[name]).abs().max() / first[name].abs().max()) for name, got in result.items()}
        for result in results
    ]


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], sys.argv[2:])))
