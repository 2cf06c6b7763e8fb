"""What a class around a tensor costs.

The ratio says whether: it is measured in one go, raw and wrapped in turn. Over sizes it says where: an overhead of the host
disappears behind the device's work as that grows, one of the device does not. The pair shows both in host and device time.
"""

from __future__ import annotations

from typing import TypeVar

import torch

from .common import needs_gpu, randn, ratio


class Wrapped:
    """A tensor in a class of its own that checks its operands, as array libraries built on torch do."""

    __slots__ = ("data",)

    def __init__(self, data: torch.Tensor) -> None:
        self.data = data

    def __add__(self, other: Wrapped) -> Wrapped:
        return Wrapped(self.data + self._alike(other))

    def __mul__(self, other: Wrapped) -> Wrapped:
        return Wrapped(self.data * self._alike(other))

    def _alike(self, other: Wrapped) -> torch.Tensor:
        if self.data.shape != other.data.shape or self.data.dtype != other.data.dtype:
            raise ValueError(f"shapes or dtypes differ: {self.data.shape}, {other.data.shape}")
        return other.data


Array = TypeVar("Array", torch.Tensor, Wrapped)


def chain(x: Array, y: Array) -> Array:
    return x * y + x


class Ratio:
    """Wrapped over raw: 1.0 is free."""

    device = "cuda"
    params = [[1 << 10, 10 << 10, 100 << 10, 1 << 20, 1 << 24]]
    param_names = ["elements"]
    tags = ("wrapper",)
    unit = "ratio"
    better = "lower"

    def setup(self, elements: int) -> None:
        needs_gpu()
        self.raw = randn(elements), randn(elements)
        self.wrapped = Wrapped(self.raw[0]), Wrapped(self.raw[1])

    def track_ratio(self, elements: int) -> float:
        return ratio(lambda: chain(*self.wrapped), lambda: chain(*self.raw))


class Pair:
    """The same two at a size where the host decides: equal on the device, apart in host time."""

    params = [["raw", "wrapped"], [1 << 10]]
    param_names = ["implementation", "elements"]
    tags = ("core", "wrapper")

    def setup(self, implementation: str, elements: int) -> None:
        raw = randn(elements), randn(elements)
        self.operands = raw if implementation == "raw" else (Wrapped(raw[0]), Wrapped(raw[1]))

    def cudatime_chain(self, implementation: str, elements: int) -> object:
        return chain(*self.operands)
