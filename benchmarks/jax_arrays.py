"""JAX. It compiles in `setup`, so that only calls are timed. Skipped where it is not installed."""

from __future__ import annotations

import os
from typing import Any
from unittest.mock import patch

from .common import package

tags = ("libraries",)


def load() -> Any:
    """JAX, kept from taking most of the device's memory at once: other cases of this process need some."""
    with patch.dict(os.environ, {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}):
        jax = package("jax")
        jax.default_backend()  # looks for devices, and reads the variable
    return jax


class Device:
    """Results are promises, returned as they are: the harness waits for them by the host's clock, as JAX names no stream."""

    params = [[256, 1024, 4096]]
    param_names = ["n"]

    def setup(self, n: int) -> None:
        jax = load()
        if jax.default_backend() != "gpu":
            raise NotImplementedError(f"JAX finds no GPU here, only: {jax.default_backend()}")
        self.x = jax.random.normal(jax.random.key(0), (n, n))
        self.matmul = jax.jit(jax.numpy.matmul).lower(self.x, self.x).compile()

    def flops(self, n: int) -> int:
        return 2 * n**3

    def cudatime_matmul(self, n: int) -> object:
        return self.matmul(self.x, self.x)


class Anywhere:
    """On whatever JAX finds, as an ordinary `time_*`: it has to wait for its result itself."""

    params = [[256, 1024]]
    param_names = ["n"]

    def setup(self, n: int) -> None:
        self.jax = load()
        self.x = self.jax.random.normal(self.jax.random.key(0), (n, n))
        self.softmax = self.jax.jit(self.jax.nn.softmax).lower(self.x).compile()

    def time_softmax(self, n: int) -> object:
        return self.jax.block_until_ready(self.softmax(self.x))
