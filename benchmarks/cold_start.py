"""The first call against the later ones: eager, compiled, and as a CUDA graph."""

from __future__ import annotations

from collections.abc import Callable

import torch

from .common import needs_compiler, randn


def layers(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """Eight small layers: sixteen launches, whose device work is shorter than launching them."""
    for _ in range(8):
        x = torch.relu(x @ weight)
    return x


class Captured:
    """A function as a CUDA graph: captured in the first call, replayed in every call. It always works on the same tensors."""

    def __init__(self, function: Callable[..., torch.Tensor], *inputs: torch.Tensor) -> None:
        self._function, self._inputs = function, inputs
        self._graph: torch.cuda.CUDAGraph | None = None

    def __call__(self) -> torch.Tensor:
        if self._graph is None:
            self._graph = self._capture()
        self._graph.replay()
        return self._result

    def _capture(self) -> torch.cuda.CUDAGraph:
        """Libraries set themselves up when they are first called, which must not be captured: hence a call before, on a stream
        that is not the default one, as torch's documentation asks for."""
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            self._function(*self._inputs)
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self._result = self._function(*self._inputs)
        return graph


def prepared(implementation: str) -> Callable[[], torch.Tensor]:
    """The layers on inputs of their own. Nothing is compiled or captured before the first call."""
    if implementation == "compiled":
        needs_compiler()
    x, weight = randn(256, 256), randn(256, 256) / 16
    if implementation == "graph":
        return Captured(layers, x, weight)
    function = torch.compile(layers) if implementation == "compiled" else layers
    return lambda: function(x, weight)


class Cold:
    """Seconds to the first result, in a fresh process with empty compile caches."""

    params = [["eager", "compiled", "graph"]]
    param_names = ["implementation"]
    tags = ("cold",)

    def setup(self, implementation: str) -> None:
        self.call = prepared(implementation)

    def cudacold_first(self, implementation: str) -> torch.Tensor:
        return self.call()


class Warm:
    """The same once everything is there; what was paid for above is earned here."""

    params = [["eager", "compiled", "graph"]]
    param_names = ["implementation"]
    tags = ("core", "warm")

    def setup(self, implementation: str) -> None:
        self.call = prepared(implementation)

    def cudatime_layers(self, implementation: str) -> torch.Tensor:
        return self.call()
