"""Common tensor operations. `cudatime_*` needs a CUDA device and is skipped without one; `time_*` runs on the CPU."""

from __future__ import annotations

import torch

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}


class Elementwise:
    """Bound by memory bandwidth: 1 Mi elements fit into a GPU's L2 cache, 64 Mi do not."""

    params = [[1 << 20, 1 << 26], ["float32", "bfloat16"]]
    param_names = ["elements", "dtype"]

    def setup(self, elements: int, dtype: str) -> None:
        self.x = torch.randn(elements, device="cuda", dtype=DTYPES[dtype])

    def cudatime_add(self, elements: int, dtype: str) -> torch.Tensor:
        return self.x + self.x

    def cudatime_gelu(self, elements: int, dtype: str) -> torch.Tensor:
        return torch.nn.functional.gelu(self.x)

    def cudatime_sum(self, elements: int, dtype: str) -> torch.Tensor:
        return self.x.sum()


class Matmul:
    params = [[128, 1024, 4096], ["float32", "bfloat16"]]
    param_names = ["n", "dtype"]

    def setup(self, n: int, dtype: str) -> None:
        self.a = torch.randn(n, n, device="cuda", dtype=DTYPES[dtype])

    def cudatime_square(self, n: int, dtype: str) -> torch.Tensor:
        return self.a @ self.a


class Rows:
    """Reductions along rows, as in a transformer."""

    params = [[1024, 4096], ["float32", "bfloat16"]]
    param_names = ["n", "dtype"]

    def setup(self, n: int, dtype: str) -> None:
        self.x = torch.randn(n, n, device="cuda", dtype=DTYPES[dtype])

    def cudatime_softmax(self, n: int, dtype: str) -> torch.Tensor:
        return torch.softmax(self.x, dim=-1)

    def cudatime_layer_norm(self, n: int, dtype: str) -> torch.Tensor:
        return torch.nn.functional.layer_norm(self.x, (n,))


class Attention:
    params = [[512, 1024, 2048]]
    param_names = ["tokens"]

    def setup(self, tokens: int) -> None:
        self.q, self.k, self.v = torch.randn(3, 4, 16, tokens, 64, device="cuda", dtype=torch.bfloat16)

    def cudatime_sdpa(self, tokens: int) -> torch.Tensor:
        return torch.nn.functional.scaled_dot_product_attention(self.q, self.k, self.v)


class Cpu:
    """The same kinds of operation where there is no GPU, at sizes that take microseconds to a few milliseconds."""

    def setup(self) -> None:
        self.x = torch.randn(1 << 18)
        self.a = torch.randn(256, 256)

    def time_add(self) -> torch.Tensor:
        return self.x + self.x

    def time_sum(self) -> torch.Tensor:
        return self.x.sum()

    def time_softmax(self) -> torch.Tensor:
        return torch.softmax(self.a, dim=-1)

    def time_matmul(self) -> torch.Tensor:
        return self.a @ self.a
