"""Devices behind one interface: `choose` gives the one to measure on."""

from __future__ import annotations

from .base import Backend, DeviceBackend, DeviceError, MemoryProbe

__all__ = ["KINDS", "Backend", "DeviceBackend", "DeviceError", "MemoryProbe", "choose"]

KINDS = ("auto", "cuda", "cpu", "fake")


def choose(kind: str, seed: int = 0, side: str = "") -> Backend:
    """The backend of that kind; `auto` is cuda where a CUDA device answers, else cpu, with the reason kept."""
    if kind == "fake":
        from .fake import FakeBackend

        fake = FakeBackend(seed, side)
        fake.install()
        return fake
    if kind == "cpu":
        return Backend()
    from .cuda import CudaBackend

    try:
        return CudaBackend()
    except DeviceError as error:
        if kind == "cuda":
            raise
        backend = Backend()
        backend.why_no_device = str(error)
        return backend
