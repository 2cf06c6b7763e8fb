"""A device that is used for a moment leaves the thread's current one as it was."""

from __future__ import annotations

import threading
from typing import Any

from regress.measure.backend.cuda import HERE, CudaBackend
from tests.libcuda import Driver, put


def backend(devices: int, monkeypatch: Any) -> tuple[CudaBackend, Driver]:
    driver = Driver(devices)
    put(driver, monkeypatch)
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
