"""A stand-in for the CUDA driver."""

from __future__ import annotations

import ctypes
import threading
from typing import Any

import pytest


class Driver:
    """The few functions that every test asks for, with a current context for each thread."""

    def __init__(self, devices: int) -> None:
        self.devices = devices
        self.current = threading.local()

    def __getattr__(self, name: str) -> Any:
        return lambda *_: 0

    def cuInit(self, _flags: int) -> int:
        return 0

    def cuDeviceGetCount(self, count: Any) -> int:
        count._obj.value = self.devices
        return 0

    def cuDevicePrimaryCtxRetain(self, context: Any, _device: Any) -> int:
        context._obj.value = 111
        return 0

    def cuMemHostAlloc(self, out: Any, size: Any, _flags: int) -> int:
        self.memory = ctypes.create_string_buffer(size.value)
        out._obj.value = ctypes.addressof(self.memory)
        return 0

    def cuCtxGetCurrent(self, context: Any) -> int:
        context._obj.value = getattr(self.current, "value", None)
        return 0

    def cuCtxSetCurrent(self, context: Any) -> int:
        self.current.value = context.value
        return 0


def put(driver: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make it the machine's libcuda; there is no other library of NVIDIA's."""

    def library(name: str) -> Any:
        if name == "libcuda.so.1":
            return driver
        raise OSError(name)

    monkeypatch.setattr(ctypes, "CDLL", library)
