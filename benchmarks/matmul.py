"""Matrix products, with the floating point operations of each."""

from __future__ import annotations

import torch
from torch.nn import functional

from .common import randn

tags = ("matmul",)


class Square:
    params = [[128, 1024, 4096], ["float32", "float16", "bfloat16"]]
    param_names = ["n", "dtype"]
    tags = ("core", "matmul")

    def setup(self, n: int, dtype: str) -> None:
        self.a, self.b = randn(n, n, dtype=dtype), randn(n, n, dtype=dtype)

    def flops(self, n: int, dtype: str) -> int:
        return 2 * n**3

    def cudatime_matmul(self, n: int, dtype: str) -> torch.Tensor:
        return self.a @ self.b


class Batched:
    """Products of 32x32 matrices: a single one is nothing but its launch, a batch shares one."""

    params = [[1, 64, 4096], [32]]
    param_names = ["batch", "n"]

    def setup(self, batch: int, n: int) -> None:
        self.a, self.b = randn(batch, n, n), randn(batch, n, n)

    def flops(self, batch: int, n: int) -> int:
        return 2 * batch * n**3

    def cudatime_bmm(self, batch: int, n: int) -> torch.Tensor:
        return torch.bmm(self.a, self.b)


class Linear:
    """A layer with bias, four times as wide as its input."""

    params = [[4096], ["float32", "bfloat16"]]
    param_names = ["tokens", "dtype"]
    width = 1024

    def setup(self, tokens: int, dtype: str) -> None:
        self.x = randn(tokens, self.width, dtype=dtype)
        self.weight, self.bias = randn(4 * self.width, self.width, dtype=dtype), randn(4 * self.width, dtype=dtype)

    def flops(self, tokens: int, dtype: str) -> int:
        return 2 * tokens * self.width * 4 * self.width

    def cudatime_forward(self, tokens: int, dtype: str) -> torch.Tensor:
        return functional.linear(self.x, self.weight, self.bias)
