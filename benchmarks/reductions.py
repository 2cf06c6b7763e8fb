"""Reductions: of everything, along rows as in a transformer, and along either axis of a matrix."""

from __future__ import annotations

import torch
from torch.nn import functional

from .common import itemsize, randn

tags = ("reductions",)


class Reduce:
    """Of all elements to one number, which stays on the device."""

    params = [[1 << 20, 1 << 26]]
    param_names = ["elements"]
    tags = ("core", "reductions")

    def setup(self, elements: int) -> None:
        self.x = randn(elements)

    def bytes(self, elements: int) -> int:
        return elements * itemsize("float32")

    def cudatime_sum(self, elements: int) -> torch.Tensor:
        return self.x.sum()

    def cudatime_mean(self, elements: int) -> torch.Tensor:
        return self.x.mean()


class Rows:
    """Each row of a square matrix by itself."""

    params = [[1024, 4096]]
    param_names = ["n"]
    tags = ("core", "reductions")

    def setup(self, n: int) -> None:
        self.x = randn(n, n)

    def bytes(self, n: int) -> int:
        return 2 * n * n * itemsize("float32")

    def cudatime_softmax(self, n: int) -> torch.Tensor:
        return torch.softmax(self.x, dim=-1)

    def cudatime_layer_norm(self, n: int) -> torch.Tensor:
        return functional.layer_norm(self.x, (n,))


class HalfRows:
    """The same in 16 bits: half the bytes, and the sums are still taken in float32."""

    params = [[4096], ["float16", "bfloat16"]]
    param_names = ["n", "dtype"]

    def setup(self, n: int, dtype: str) -> None:
        self.x = randn(n, n, dtype=dtype)

    def bytes(self, n: int, dtype: str) -> int:
        return 2 * n * n * itemsize(dtype)

    def cudatime_softmax(self, n: int, dtype: str) -> torch.Tensor:
        return torch.softmax(self.x, dim=-1)

    def cudatime_layer_norm(self, n: int, dtype: str) -> torch.Tensor:
        return functional.layer_norm(self.x, (n,))


class Axes:
    """The same sum along contiguous memory and across it."""

    params = [[0, 1], [4096]]
    param_names = ["dim", "n"]

    def setup(self, dim: int, n: int) -> None:
        self.x = randn(n, n)

    def bytes(self, dim: int, n: int) -> int:
        return (n * n + n) * itemsize("float32")

    def cudatime_sum(self, dim: int, n: int) -> torch.Tensor:
        return self.x.sum(dim)
