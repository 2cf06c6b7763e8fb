"""Embedding: rows of a large table, gathered by index."""

from __future__ import annotations

import torch
from torch.nn import functional

from . import common

tags = ("embedding",)


class Lookup:
    """`bytes` are the rows, read and written, and the indices; rows that come up twice are counted twice."""

    params = [[2048, 32768]]
    param_names = ["tokens"]
    tags = ("core", "embedding")
    vocabulary, width = 32_000, 1024

    def setup(self, tokens: int) -> None:
        self.table = common.randn(self.vocabulary, self.width)
        self.index = torch.randint(self.vocabulary, (tokens,), device=common.DEVICE)

    def bytes(self, tokens: int) -> int:
        return tokens * (2 * self.width * common.itemsize("float32") + common.itemsize("int64"))

    def cudatime_lookup(self, tokens: int) -> torch.Tensor:
        return functional.embedding(self.index, self.table)
