"""Memory bandwidth of the device over sizes: copies within the caches and out of them."""

from __future__ import annotations

import torch

from .common import itemsize, randn

tags = ("bandwidth",)


class Copy:
    """The same input again and again: what fits into the L2 cache comes from there."""

    params = [[1 << 10, 1 << 14, 1 << 17, 1 << 20, 1 << 22, 1 << 24, 1 << 26, 1 << 28]]
    param_names = ["elements"]

    def setup(self, elements: int) -> None:
        self.x = randn(elements)
        self.y = torch.empty_like(self.x)

    def bytes(self, elements: int) -> int:
        return 2 * elements * itemsize("float32")

    def cudatime_copy(self, elements: int) -> torch.Tensor:
        return self.y.copy_(self.x)


class ColdCopy(Copy):
    """The sizes that fit, with a flushed cache before every sample: a series of its own."""

    params = [[1 << 17, 1 << 20, 1 << 22]]
    cache = "cold"


class Transpose:
    """Reads along memory or writes along it, not both."""

    params = [[1024, 8192]]
    param_names = ["n"]

    def setup(self, n: int) -> None:
        self.x = randn(n, n)
        self.y = torch.empty_like(self.x)

    def bytes(self, n: int) -> int:
        return 2 * n * n * itemsize("float32")

    def cudatime_copy(self, n: int) -> torch.Tensor:
        return self.y.copy_(self.x.t())
