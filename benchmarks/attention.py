"""Attention: the parts of a layer one by one, and implementations of its middle side by side."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel

from .common import compiled, itemsize, randn

tags = ("attention",)

BATCH, HEADS, HEAD = 4, 16, 64
WIDTH = HEADS * HEAD


def scores(q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
    return q @ k.transpose(-2, -1) * HEAD**-0.5


def eager(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Written out: a matrix of tokens x tokens a head goes through memory three times."""
    return torch.softmax(scores(q, k), dim=-1) @ v


def sdpa(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Whatever torch thinks best for these shapes."""
    return functional.scaled_dot_product_attention(q, k, v)


def flash(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """torch's flash kernel, or RuntimeError."""
    with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
        return sdpa(q, k, v)


class Implementations:
    """The same attention at four levels of optimization."""

    params = [["eager", "compiled", "sdpa", "flash"], [512, 1024, 2048]]
    param_names = ["implementation", "tokens"]

    def setup(self, implementation: str, tokens: int) -> None:
        self.q, self.k, self.v = randn(3, BATCH, HEADS, tokens, HEAD, dtype="bfloat16")
        if implementation == "flash":
            self._needs_flash()
        written = {"eager": eager, "sdpa": sdpa, "flash": flash}
        self.attend = compiled(eager) if implementation == "compiled" else written[implementation]

    def flops(self, implementation: str, tokens: int) -> int:
        return 2 * 2 * BATCH * HEADS * tokens**2 * HEAD

    def cudatime_forward(self, implementation: str, tokens: int) -> torch.Tensor:
        return self.attend(self.q, self.k, self.v)

    def _needs_flash(self) -> None:
        try:
            # Few tokens, so that it cannot be memory that is missing.
            flash(*(row[:, :, :16] for row in (self.q, self.k, self.v)))
        except RuntimeError as error:
            raise NotImplementedError(f"no flash attention here: {error}") from error


class Components:
    """A layer's parts on their own, each with the inputs it would have in the layer."""

    params = [["qkv_projection", "scores", "softmax", "weighted_sum", "output_projection"], [1024]]
    param_names = ["component", "tokens"]
    tags = ("core", "attention")

    def setup(self, component: str, tokens: int) -> None:
        x = randn(BATCH, tokens, WIDTH, dtype="bfloat16")
        into, out = (randn(count * WIDTH, WIDTH, dtype="bfloat16") * WIDTH**-0.5 for count in (3, 1))
        heads = functional.linear(x, into).view(BATCH, tokens, 3, HEADS, HEAD).permute(2, 0, 3, 1, 4)
        q, k, v = heads.contiguous()  # or every product would copy them first
        rows = scores(q, k)
        weights = torch.softmax(rows, dim=-1)
        joined = (weights @ v).transpose(1, 2).reshape(BATCH, tokens, WIDTH)
        parts: dict[str, Callable[[], torch.Tensor]] = {
            "qkv_projection": lambda: functional.linear(x, into),
            "scores": lambda: scores(q, k),
            "softmax": lambda: torch.softmax(rows, dim=-1),
            "weighted_sum": lambda: weights @ v,
            "output_projection": lambda: functional.linear(joined, out),
        }
        self.part = parts[component]

    def flops(self, component: str, tokens: int) -> int:
        """Of the products; softmax is counted with five an element: maximum, difference, exponential, sum, quotient."""
        projection, product = 2 * BATCH * tokens * WIDTH**2, 2 * BATCH * HEADS * tokens**2 * HEAD
        return {
            "qkv_projection": 3 * projection,
            "scores": product,
            "softmax": 5 * BATCH * HEADS * tokens**2,
            "weighted_sum": product,
            "output_projection": projection,
        }[component]

    def bytes(self, component: str, tokens: int) -> int:
        """Every input once and the output once."""
        vectors, rows, square = BATCH * tokens * WIDTH, BATCH * HEADS * tokens**2, WIDTH**2
        elements = {
            "qkv_projection": vectors + 3 * square + 3 * vectors,
            "scores": 2 * vectors + rows,
            "softmax": 2 * rows,
            "weighted_sum": rows + 2 * vectors,
            "output_projection": vectors + square + vectors,
        }
        return elements[component] * itemsize("bfloat16")

    def cudatime_forward(self, component: str, tokens: int) -> torch.Tensor:
        return self.part()
