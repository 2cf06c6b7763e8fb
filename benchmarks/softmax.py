"""Softmax of rows: torch's own kernel, what torch.compile makes of it, and one written by hand in Triton."""

from __future__ import annotations

import torch

from .common import compiled, itemsize, needs_compiler, randn

try:
    import triton
    import triton.language as tl
except ImportError:
    triton = None

tags = ("reductions", "libraries")

ROWS = 4096


if triton is not None:

    @triton.jit
    def row_kernel(x, y, columns, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
        """One program a row, which it holds in registers: every element is read once and written once."""
        row = tl.program_id(0)
        at = tl.arange(0, BLOCK)
        inside = at < columns
        values = tl.load(x + row * columns + at, mask=inside, other=-float("inf"))
        weights = tl.exp(values - tl.max(values, axis=0))
        tl.store(y + row * columns + at, weights / tl.sum(weights, axis=0), mask=inside)


def eager(x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x, dim=-1)


def by_hand(x: torch.Tensor) -> torch.Tensor:
    y = torch.empty_like(x)
    block = triton.next_power_of_2(x.shape[1])
    row_kernel[(x.shape[0],)](x, y, x.shape[1], BLOCK=block, num_warps=min(16, max(1, block // 256)))
    return y


class Implementations:
    """The same rows by each, from short ones, which launching and scheduling rule, to long ones, which memory does."""

    params = [["torch", "compiled", "triton"], [256, 1024, 4096, 16384]]
    param_names = ["implementation", "columns"]

    def setup(self, implementation: str, columns: int) -> None:
        if implementation == "triton" and triton is None:
            raise NotImplementedError("Triton is not installed")
        if implementation == "triton":
            needs_compiler()
        written = {"torch": eager, "triton": by_hand}
        self.softmax = compiled(eager) if implementation == "compiled" else written[implementation]
        self.x = randn(ROWS, columns)

    def bytes(self, implementation: str, columns: int) -> int:
        return 2 * ROWS * columns * itemsize("float32")

    def cudatime_forward(self, implementation: str, columns: int) -> torch.Tensor:
        return self.softmax(self.x)
