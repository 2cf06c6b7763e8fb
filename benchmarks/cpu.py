"""The same kinds of operation on the CPU, at sizes that take microseconds to a few milliseconds, and plain Python."""

from __future__ import annotations

import random

import torch
from torch.nn import functional

tags = ("cpu",)


class Elementwise:
    params = [[1 << 10, 1 << 18]]
    param_names = ["elements"]

    def setup(self, elements: int) -> None:
        self.x = torch.randn(elements)

    def time_add(self, elements: int) -> torch.Tensor:
        return self.x + self.x

    def time_sum(self, elements: int) -> torch.Tensor:
        return self.x.sum()


class Rows:
    def setup(self) -> None:
        self.x = torch.randn(256, 256)

    def time_softmax(self) -> torch.Tensor:
        return torch.softmax(self.x, dim=-1)

    def time_layer_norm(self) -> torch.Tensor:
        return functional.layer_norm(self.x, (256,))

    def time_matmul(self) -> torch.Tensor:
        return self.x @ self.x


class Attention:
    def setup(self) -> None:
        self.q, self.k, self.v = torch.randn(3, 1, 4, 128, 64)

    def time_sdpa(self) -> torch.Tensor:
        return functional.scaled_dot_product_attention(self.q, self.k, self.v)


class Python:
    """No library at all."""

    def setup(self) -> None:
        self.values = [random.random() for _ in range(10_000)]

    def time_sort(self) -> list[float]:
        return sorted(self.values)
