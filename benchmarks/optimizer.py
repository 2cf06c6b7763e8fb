"""A step of an optimizer over many tensors."""

from __future__ import annotations

import torch

from .common import itemsize, randn

tags = ("core", "optimizer")


class AdamW:
    """16 tensors of 1 Mi elements.

    Needs no `reset`: the weights change at every step, but the kernels and what they read and write do not depend on them.
    """

    params = [["foreach", "fused"]]
    param_names = ["implementation"]
    tensors, rows = 16, 1024

    def setup(self, implementation: str) -> None:
        weights = [randn(self.rows, self.rows).requires_grad_() for _ in range(self.tensors)]
        for weight in weights:
            weight.grad = torch.randn_like(weight)
        self.optimizer = torch.optim.AdamW(weights, **{implementation: True})

    def bytes(self, implementation: str) -> int:
        """Weight, gradient and two moments read, weight and moments written."""
        return 7 * self.tensors * self.rows**2 * itemsize("float32")

    def cudatime_step(self, implementation: str) -> None:
        self.optimizer.step()
