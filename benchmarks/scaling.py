"""How time grows with size, against a reference: NumPy on the CPU, and double precision on the same device."""

from __future__ import annotations

import operator
import statistics
import time

import numpy as np
import torch

from .common import Call, event_seconds, needs_gpu, randn

tags = ("scaling",)

OPERATIONS = {"add": operator.add, "matmul": operator.matmul}
"""The same function for tensors and for arrays."""


def host_seconds(call: Call, calls: int = 5) -> float:
    """Median seconds of a call by the host's clock, after one to warm up."""
    times = []
    for _ in range(calls + 1):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return statistics.median(times[1:])


class Speedup:
    """NumPy's time over the GPU's, for n x n matrices: below some size the GPU is the slower one."""

    device = "cuda"
    params = [["add", "matmul"], [32, 128, 1024]]
    param_names = ["operation", "n"]
    unit = "ratio"
    better = "higher"

    def setup(self, operation: str, n: int) -> None:
        needs_gpu()
        self.operate = OPERATIONS[operation]
        self.x = randn(n, n)
        self.reference: np.ndarray = self.x.cpu().numpy()

    def track_speedup(self, operation: str, n: int) -> float:
        event_seconds(lambda: self.operate(self.x, self.x))  # warm it up
        measured_s = event_seconds(lambda: self.operate(self.x, self.x))
        return host_seconds(lambda: self.operate(self.reference, self.reference)) / measured_s


class Precision:
    """Data center GPUs do float64 at half the rate of float32 or better, others at a thirty-second."""

    params = [["float32", "float64"], [512, 1024, 2048, 4096]]
    param_names = ["dtype", "n"]

    def setup(self, dtype: str, n: int) -> None:
        self.a, self.b = randn(n, n, dtype=dtype), randn(n, n, dtype=dtype)

    def flops(self, dtype: str, n: int) -> int:
        return 2 * n**3

    def cudatime_matmul(self, dtype: str, n: int) -> torch.Tensor:
        return self.a @ self.b
