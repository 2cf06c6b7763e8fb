"""Forward and backward of a feed-forward block, apart."""

from __future__ import annotations

import torch
from torch import nn

from . import common

tags = ("core", "autograd")

WIDTH = 1024


def feed_forward() -> nn.Module:
    """Two layers with an activation between them, as in a transformer."""
    wide, narrow = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)
    return nn.Sequential(wide, nn.GELU(), narrow).to(common.DEVICE)


def product_flops(tokens: int) -> int:
    """Floating point operations of the two matrix products."""
    return 2 * 2 * tokens * WIDTH * 4 * WIDTH


class Forward:
    """With a graph recorded for the backward pass, which is dropped with the result."""

    params = [[2048]]
    param_names = ["tokens"]

    def setup(self, tokens: int) -> None:
        self.model, self.x = feed_forward(), common.randn(tokens, WIDTH).requires_grad_()

    def flops(self, tokens: int) -> int:
        return product_flops(tokens)

    def cudatime_forward(self, tokens: int) -> torch.Tensor:
        return self.model(self.x)


class Backward:
    """The graph is made once and kept; every product has two gradients."""

    params = [[2048]]
    param_names = ["tokens"]

    def setup(self, tokens: int) -> None:
        self.model, self.x = feed_forward(), common.randn(tokens, WIDTH).requires_grad_()
        self.y = self.model(self.x)
        self.slope = torch.ones_like(self.y)

    def reset(self, tokens: int) -> None:
        """Gradients that are there already would be added to: a further pass over memory, and another result every time."""
        for leaf in (self.x, *self.model.parameters()):
            leaf.grad = None

    def flops(self, tokens: int) -> int:
        return 2 * product_flops(tokens)

    def cudatime_backward(self, tokens: int) -> None:
        self.y.backward(self.slope, retain_graph=True)
