"""A device that is used for a moment leaves the thread's current one as it was."""

from __future__ import annotations

import ctypes
import threading
from typing import Any

from regress.measure.backend.cuda import HERE, CudaBackend


class Driver:
    """The few functions that are asked, with a current context for each thread."""

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


def backend(devices: int, monkeypatch: Any) -> tuple[CudaBackend, Driver]:
    driver = Driver(devices)
    monkeypatch.setattr(ctypes, "CDLL", lambda _name: driver)
    return CudaBackend(), driver


def test_another_device_is_current_again_afterwards(monkeypatch: Any) -> None:
    device, driver = backend(2, monkeypatch)
    driver.current.value = 222
    for _ in range(2):
        with device.here():
            assert driver.current.value == 111
        assert driver.current.value == 222


def test_a_thread_without_a_context_gets_one(monkeypatch: Any) -> None:
    device, driver = backend(1, monkeypatch)
    with device.here():
        assert driver.current.value == 111
    assert driver.current.value == 111
    assert device.here() is HERE
    seen: list[Any] = []

    def work() -> None:
        with device.here():
            seen.append(driver.current.value)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [111]
