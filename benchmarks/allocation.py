"""Device memory taken and given back. The device does no work and the host waits for the driver: the host's clock times it."""

from __future__ import annotations

import torch

from . import common

tags = ("allocation",)
clock = "wall"


def block(size: int) -> torch.Tensor:
    """Memory of that many bytes from torch's caching allocator."""
    return torch.empty(size, dtype=torch.uint8, device=common.DEVICE)


class Allocate:
    """From the driver: the cache is emptied before every sample."""

    params = [[1 << 20, 1 << 26, 1 << 30]]
    param_names = ["size"]

    def reset(self, size: int) -> None:
        torch.cuda.empty_cache()

    def cudatime_allocate(self, size: int) -> torch.Tensor:
        return block(size)


class Release:
    """Back to the driver."""

    params = [[1 << 20, 1 << 26, 1 << 30]]
    param_names = ["size"]

    def setup(self, size: int) -> None:
        self.block: torch.Tensor | None = None

    def reset(self, size: int) -> None:
        self.block = block(size)

    def cudatime_release(self, size: int) -> None:
        self.block = None
        torch.cuda.empty_cache()


class Reuse:
    """From the cache and back into it, as nearly every tensor of a program."""

    params = [[1 << 20, 1 << 30]]
    param_names = ["size"]

    def cudatime_reuse(self, size: int) -> torch.Tensor:
        return block(size)
