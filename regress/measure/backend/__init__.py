"""Devices behind one interface: `choose` gives the one to measure on."""

from __future__ import annotations

from typing import Optional

from .base import MARKER, Activity, Backend, DeviceBackend, DeviceError, MemoryProbe, Tracer
from .recording import NoProfiler

__all__ = [
    "MARKER",
    "Activity",
    "Backend",
    "DeviceBackend",
    "DeviceError",
    "MemoryProbe",
    "NoProfiler",
    "Tracer",
    "choose",
    "imported_by_suites",
]


def imported_by_suites(kind: str, seed: int = 0, side: str = "") -> Optional[Backend]:
    """The scripted device, which code under test imports, so it has to exist before the suite. None for all other devices,
    which must not be opened before a fork."""
    if kind != "fake":
        return None
    from .fake import FakeBackend

    fake = FakeBackend(seed, side)
    fake.install()
    return fake


def choose(kind: str, ordinal: int = 0) -> Backend:
    """The backend of that kind, for the visible device of that number; `auto` is cuda if a CUDA device answers, torch if torch
    drives an AMD device, else cpu, with the reasons kept. Raises DeviceError if the requested kind is not available."""
    if kind == "cpu":
        return Backend()
    from .cuda import CudaBackend
    from .torch_events import TorchBackend, amd_backend

    if kind != "auto":
        return TorchBackend() if kind == "torch" else CudaBackend(ordinal)
    reasons = []
    for device in (lambda: CudaBackend(ordinal), amd_backend):
        try:
            candidate = device()
        except DeviceError as error:
            reasons.append(str(error))
            continue
        if candidate is not None:
            return candidate
    backend = Backend()
    backend.why_no_device = "; ".join(reasons)
    return backend
