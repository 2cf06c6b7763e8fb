"""What an entry of GPUProfiler costs the program, against a bare loop. Needs a CUDA device and torch.

    python benchmarks/versus/profiler_cost.py

The host's cost is taken on a loop that is bound by the host (tiny kernels), the device's on one whose operations take 1 ms
each. Each figure is the least of several repetitions, for what disturbs can only add.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from typing import Any

import torch

from regress.measure.backend.cuda import CudaBackend
from regress.profiler import GPUProfiler

ENTRIES = 5_000
LONG_ENTRIES = 300
REPEAT = 7


def seconds(loop: Callable[[], None]) -> float:
    """Of the loop and of waiting for what it has enqueued, the least of several times."""
    times = []
    for _ in range(REPEAT):
        torch.cuda.synchronize()
        start = time.perf_counter()
        loop()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
    return min(times)


def looped(call: Callable[[], object], entries: int, context: Callable[[], Any] | None) -> Callable[[], None]:
    """The call in a loop, bare or with a context around each."""

    def bare() -> None:
        for _ in range(entries):
            call()

    def inside() -> None:
        for _ in range(entries):
            with context():  # type: ignore[misc]
                call()

    return bare if context is None else inside


def host_cost(call: Callable[[], object]) -> None:
    bare = seconds(looped(call, ENTRIES, None))
    print(f"bare loop{'':34}{bare / ENTRIES * 1e6:8.2f} us a call")
    ways: list[tuple[str, dict[str, Any]]] = [
        ("disabled", {"enabled": False}),
        ("span alone", {"breakdown": False, "memory": False}),
        ("span and memory", {"breakdown": False}),
        ("span and breakdown", {"memory": False}),
        ("everything", {}),
    ]
    null = seconds(looped(call, ENTRIES, contextlib.nullcontext))
    print(f"{'contextlib.nullcontext()':30}{(null - bare) / ENTRIES * 1e6:+9.2f} us an entry")
    for name, options in ways:
        profiler = GPUProfiler(**options)
        took = seconds(looped(call, ENTRIES, lambda profiler=profiler: profiler.profile("op")))  # type: ignore[misc]
        print(f"{name:30}{(took - bare) / ENTRIES * 1e6:+9.2f} us an entry")
        profiler.disable()


def device_cost() -> None:
    spin = CudaBackend()
    spin.hold_stream()
    bare = seconds(looped(lambda: spin.spin(1e-3), LONG_ENTRIES, None))
    profiler = GPUProfiler()
    took = seconds(looped(lambda: spin.spin(1e-3), LONG_ENTRIES, lambda: profiler.profile("op")))
    print(f"operations of 1 ms: {bare / LONG_ENTRIES * 1e3:.4f} ms bare, {took / LONG_ENTRIES * 1e3:.4f} ms profiled")
    print(f"{(took / bare - 1) * 100:+.2f} % of a device-bound loop")
    profiler.disable()


def main() -> None:
    print(torch.cuda.get_device_name(), "torch", torch.__version__)
    tiny = torch.ones(16, device="cuda")
    print("\non a loop of tiny kernels (x + 1)")
    host_cost(lambda: tiny + 1)
    print("\non a loop of nothing")
    host_cost(lambda: None)
    print()
    device_cost()


if __name__ == "__main__":
    main()
