"""Elementwise operations. They are bound by memory bandwidth where they are large, and by their launch where they are small."""

from __future__ import annotations

import torch
from torch.nn import functional

from .common import compiled, itemsize, randn

tags = ("elementwise",)


class Add:
    """1 Ki elements are a bare launch, 1 Mi fit into the L2 cache of a large GPU, 64 Mi do not."""

    params = [[1 << 10, 1 << 20, 1 << 26]]
    param_names = ["elements"]
    tags = ("core", "elementwise")

    def setup(self, elements: int) -> None:
        self.x, self.y = randn(elements), randn(elements)

    def bytes(self, elements: int) -> int:
        return 3 * elements * itemsize("float32")

    def cudatime_add(self, elements: int) -> torch.Tensor:
        return self.x + self.y


class Arithmetic:
    """Small sizes by dtype."""

    params = [[1 << 10, 10 << 10, 100 << 10, 1 << 20], ["float32", "float16", "bfloat16"]]
    param_names = ["elements", "dtype"]

    def setup(self, elements: int, dtype: str) -> None:
        self.x, self.y = randn(elements, dtype=dtype), randn(elements, dtype=dtype)

    def bytes(self, elements: int, dtype: str) -> int:
        return 3 * elements * itemsize(dtype)

    def cudatime_mul(self, elements: int, dtype: str) -> torch.Tensor:
        return self.x * self.y

    def cudatime_div(self, elements: int, dtype: str) -> torch.Tensor:
        return self.x / self.y


class Activation:
    params = [[1 << 20, 1 << 26], ["float32", "bfloat16"]]
    param_names = ["elements", "dtype"]

    def setup(self, elements: int, dtype: str) -> None:
        self.x = randn(elements, dtype=dtype)

    def bytes(self, elements: int, dtype: str) -> int:
        return 2 * elements * itemsize(dtype)

    def cudatime_relu(self, elements: int, dtype: str) -> torch.Tensor:
        return torch.relu(self.x)

    def cudatime_gelu(self, elements: int, dtype: str) -> torch.Tensor:
        return functional.gelu(self.x)


class Create:
    """New tensors on the device, from the caching allocator: filled with a constant, and with random numbers."""

    params = [[1 << 10, 1 << 20, 1 << 26]]
    param_names = ["elements"]

    def setup(self, elements: int) -> None:
        self.like = randn(elements)

    def bytes(self, elements: int) -> int:
        return elements * itemsize("float32")

    def cudatime_zeros(self, elements: int) -> torch.Tensor:
        return torch.zeros_like(self.like)

    def cudatime_full(self, elements: int) -> torch.Tensor:
        return torch.full_like(self.like, 0.5)

    def cudatime_randn(self, elements: int) -> torch.Tensor:
        return torch.randn_like(self.like)


def mixed(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Six operations in a chain. Eager torch goes through memory for each, a compiler once for all."""
    return torch.relu(x * y + x) / (y.abs() + 1)


class Chain:
    """`bytes` are what has to move at least, so the throughput shows what fusing saves."""

    params = [["eager", "compiled"], [1 << 10, 1 << 20, 1 << 26]]
    param_names = ["implementation", "elements"]

    def setup(self, implementation: str, elements: int) -> None:
        self.mixed = compiled(mixed) if implementation == "compiled" else mixed
        self.x, self.y = randn(elements), randn(elements)

    def bytes(self, implementation: str, elements: int) -> int:
        return 3 * elements * itemsize("float32")

    def cudatime_mixed(self, implementation: str, elements: int) -> torch.Tensor:
        return self.mixed(self.x, self.y)
