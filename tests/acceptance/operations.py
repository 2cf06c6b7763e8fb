"""The operations that are timed in every way, as an ordinary suite for asv and for us; other tools take `call`.

asv runs `setup` before every sample, so it ends with a synchronize: what is timed is the operation alone.
"""

from __future__ import annotations

from typing import Any

import torch


class _Operation:
    """One operation: `setup` makes its inputs, `call` is what is timed."""

    title = ""
    rounds = 6

    def setup(self) -> None:
        self.x = self.inputs()
        torch.cuda.synchronize()

    def inputs(self) -> Any:
        raise NotImplementedError

    def call(self) -> torch.Tensor:
        raise NotImplementedError

    def cudatime_ours(self) -> torch.Tensor:
        return self.call()

    def time_plain(self) -> torch.Tensor:
        return self.call()

    def time_synchronized(self) -> None:
        self.call()
        torch.cuda.synchronize()


class Add64Mi(_Operation):
    title = "add (x + x), 64 Mi float32"

    def inputs(self) -> torch.Tensor:
        return torch.randn(1 << 26, device="cuda")

    def call(self) -> torch.Tensor:
        return self.x + self.x


class Sum64Mi(Add64Mi):
    title = "sum, 64 Mi float32"

    def call(self) -> torch.Tensor:
        return self.x.sum()


class LayerNorm(_Operation):
    title = "layer_norm 4096²"

    def inputs(self) -> torch.Tensor:
        return torch.randn(4096, 4096, device="cuda")

    def call(self) -> torch.Tensor:
        return torch.nn.functional.layer_norm(self.x, (4096,))


class Softmax(LayerNorm):
    title = "softmax 4096²"

    def call(self) -> torch.Tensor:
        return torch.softmax(self.x, dim=-1)


class Attention(_Operation):
    title = "sdpa (4,16,1024,64) bf16"

    def inputs(self) -> Any:
        return torch.randn(3, 4, 16, 1024, 64, device="cuda", dtype=torch.bfloat16).unbind()

    def call(self) -> torch.Tensor:
        return torch.nn.functional.scaled_dot_product_attention(*self.x)


class Matmul(_Operation):
    title = "matmul 1024² bf16"

    def inputs(self) -> torch.Tensor:
        return torch.randn(1024, 1024, device="cuda", dtype=torch.bfloat16)

    def call(self) -> torch.Tensor:
        return self.x @ self.x


class Add1Mi(Add64Mi):
    title = "add (x + x), 1 Mi float32"

    def inputs(self) -> torch.Tensor:
        return torch.randn(1 << 20, device="cuda")


OPERATIONS = (Add64Mi, Sum64Mi, LayerNorm, Softmax, Attention, Matmul, Add1Mi)
"""In the order of the table."""
