"""Copies between host and device. `bytes` are what crosses the bus."""

from __future__ import annotations

import torch

from .common import itemsize, randn

tags = ("transfers",)


class Pinned:
    """From and to page-locked memory: the device copies on its own, and the host goes on."""

    params = [[1 << 20, 1 << 26]]
    param_names = ["elements"]
    tags = ("core", "transfers")

    def setup(self, elements: int) -> None:
        self.here = torch.ones(elements, pin_memory=True)
        self.there = randn(elements)

    def bytes(self, elements: int) -> int:
        return elements * itemsize("float32")

    def cudatime_to_device(self, elements: int) -> torch.Tensor:
        return self.there.copy_(self.here, non_blocking=True)

    def cudatime_to_host(self, elements: int) -> torch.Tensor:
        return self.here.copy_(self.there, non_blocking=True)


class Pageable:
    """From and to ordinary memory: the host waits for the copy, so only its own clock can time it."""

    params = [[1 << 10, 1 << 20, 1 << 26]]
    param_names = ["elements"]
    clock = "wall"

    def setup(self, elements: int) -> None:
        self.here = torch.ones(elements)
        self.there = randn(elements)

    def bytes(self, elements: int) -> int:
        return elements * itemsize("float32")

    def cudatime_to_device(self, elements: int) -> torch.Tensor:
        return self.there.copy_(self.here)

    def cudatime_to_host(self, elements: int) -> torch.Tensor:
        return self.here.copy_(self.there)
