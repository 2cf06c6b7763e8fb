"""CuPy beside torch: two libraries on the same data. Skipped where CuPy is not installed."""

from __future__ import annotations

from .common import itemsize, package, randn

tags = ("libraries",)


class Libraries:
    """The implementation is a parameter, so every size says which is the fastest."""

    params = [["torch", "cupy"], [1 << 10, 1 << 20, 1 << 26]]
    param_names = ["implementation", "elements"]

    def setup(self, implementation: str, elements: int) -> None:
        library = package("cupy")  # torch alone would be no comparison
        self.x, self.y = randn(elements), randn(elements)
        if implementation == "cupy":
            self.x, self.y = library.asarray(self.x), library.asarray(self.y)

    def bytes(self, implementation: str, elements: int) -> int:
        return 3 * elements * itemsize("float32")

    def cudatime_add(self, implementation: str, elements: int) -> object:
        return self.x + self.y
