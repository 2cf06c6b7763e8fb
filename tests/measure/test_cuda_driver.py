"""What is asked of the CUDA driver, by a stand-in for it in virtual time, in which a launch takes the host a microsecond."""

from __future__ import annotations

import ctypes
import sys
from typing import Any

import pytest

from regress.measure.backend import DeviceError
from regress.measure.backend.allocators import FreeMemory
from regress.measure.backend.cuda import CAPABILITY, L2_CACHE_SIZE, MULTIPROCESSORS, NOT_READY, CudaBackend
from regress.measure.blocks import DeviceSamples, Starved
from regress.measure.calibration import calibrate
from regress.measure.loop import DeviceLoop
from tests import libcuda
from tests.libcuda import put

US = 1e-6
LAUNCH_S = 1 * US
CLOCK_HZ = 1.98e9
FRAMEWORKS = ("torch", "cupy", "numba.cuda.cudadrv.driver", "warp", "jax")
"""Modules that would be asked for their stream or their memory."""
SIDE = 64
"""The handle of a stream."""
MIB = 1 << 20
FLUSH_BYTES_S = 1e12
ASSERTED, UNKNOWN_EVENT = 710, 400


class Driver(libcuda.Driver):
    """One device with streams that work at the same time. `failing` is the error of all that waits."""

    def __init__(self) -> None:
        super().__init__(devices=1)
        self.now_s, self.failing, self.clock_hz = 0.0, 0, CLOCK_HZ
        self.busy_until_s = {0: 0.0, SIDE: 0.0}
        self.events_s: list[float | None] = []
        self.filled: list[tuple[int, int]] = []
        """Bytes and stream of each fill."""

    def kernel(self, seconds: float, stream: int = 0) -> None:
        self.now_s += LAUNCH_S
        self.busy_until_s[stream] = max(self.busy_until_s[stream], self.now_s) + seconds

    def cuCtxSynchronize(self) -> int:
        self.now_s = max(self.now_s, *self.busy_until_s.values())
        return self.failing

    def cuLaunchKernel(self, *arguments: Any) -> int:
        *_, stream, values, _ = arguments
        nanoseconds, out = (ctypes.c_uint64.from_address(address).value for address in values)
        self.kernel(nanoseconds * 1e-9, stream.value or 0)
        (ctypes.c_uint64 * 2).from_address(out)[:] = [round(nanoseconds * 1e-9 * self.clock_hz), nanoseconds]
        return 0

    def cuEventCreate(self, event: Any, _flags: int) -> int:
        self.events_s.append(None)
        event._obj.value = len(self.events_s)
        return 0

    def cuEventRecord(self, event: Any, stream: Any) -> int:
        self.kernel(0.0, stream.value or 0)
        self.events_s[event.value - 1] = self.busy_until_s[stream.value or 0]
        return 0

    def cuEventQuery(self, event: Any) -> int:
        at_s = self.events_s[event.value - 1]
        return self.failing or (NOT_READY if at_s is not None and at_s > self.now_s else 0)

    def cuEventElapsedTime(self, milliseconds: Any, start: Any, end: Any) -> int:
        start_s, end_s = (self.events_s[event.value - 1] for event in (start, end))
        if start_s is None or end_s is None:
            return UNKNOWN_EVENT
        milliseconds._obj.value = (end_s - start_s) * 1e3
        return 0

    def cuStreamWaitEvent(self, stream: Any, event: Any, _flags: int) -> int:
        at_s = self.events_s[event.value - 1]
        self.busy_until_s[stream.value or 0] = max(self.busy_until_s[stream.value or 0], at_s or 0.0)
        return 0

    def cuStreamQuery(self, stream: Any) -> int:
        return NOT_READY if self.busy_until_s[stream.value or 0] > self.now_s else 0

    def cuMemsetD8Async(self, _address: Any, _value: Any, size: Any, stream: Any) -> int:
        self.filled.append((size.value, stream.value or 0))
        self.kernel(size.value / FLUSH_BYTES_S, stream.value or 0)
        return 0

    def cuMemGetInfo_v2(self, free: Any, total: Any) -> int:
        free._obj.value, total._obj.value = 60 * MIB, 80 * MIB
        return 0

    def cuDeviceGetAttribute(self, value: Any, number: int, _device: Any) -> int:
        value._obj.value = {L2_CACHE_SIZE: MIB, MULTIPROCESSORS: 10, CAPABILITY[0]: 9}.get(number, 0)
        return 0

    def cuGetErrorName(self, code: int, name: Any) -> int:
        name._obj.value = b"CUDA_ERROR_ASSERT" if code == ASSERTED else b"CUDA_ERROR_INVALID_HANDLE"
        return 0

    def cuGetErrorString(self, code: int, text: Any) -> int:
        text._obj.value = b"device-side assert triggered" if code == ASSERTED else b"invalid resource handle"
        return 0


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Driver:
    """The machine's libcuda; there is no other library of NVIDIA's, and no framework in use."""
    driver = Driver()
    for module in FRAMEWORKS:
        monkeypatch.delitem(sys.modules, module, raising=False)

    put(driver, monkeypatch)
    return driver


@pytest.fixture
def device(driver: Driver) -> CudaBackend:
    return CudaBackend()


def test_nothing_is_opened_to_look(driver: Driver, device: CudaBackend) -> None:
    driver.failing = ASSERTED
    device.synchronize()
    assert device.idle()
    assert device.clocks_hz() == []
    assert device.taken_share() == 0.0
    assert device.memory() is None
    assert getattr(driver.current, "value", None) is None


def test_device_time_lies_between_events_behind_a_spin(driver: Driver, device: CudaBackend) -> None:
    calibrate(device)
    block = DeviceLoop(lambda: driver.kernel(50 * US), device).block(5, 1)
    assert isinstance(block, DeviceSamples)
    assert block.device == pytest.approx([50 * US] * 5, rel=1e-5)
    assert block.clocks_hz == pytest.approx([CLOCK_HZ])


def test_each_spin_tells_the_clock_of_its_time_once(driver: Driver, device: CudaBackend) -> None:
    for clock_hz in (1e9, 1.5e9):
        driver.clock_hz = clock_hz
        device.spin(1e-3)
    assert device.clocks_hz() == pytest.approx([1e9, 1.5e9])
    assert device.clocks_hz() == []


def test_a_call_that_waits_starves_the_queue(driver: Driver, device: CudaBackend) -> None:
    def call() -> None:
        driver.kernel(50 * US)
        driver.cuCtxSynchronize()

    assert isinstance(DeviceLoop(call, device).block(5, 1), Starved)


@pytest.mark.parametrize(("main_s", "side_s"), [(50 * US, 200 * US), (200 * US, 50 * US)])
def test_a_declared_stream_is_waited_for(driver: Driver, device: CudaBackend, main_s: float, side_s: float) -> None:
    def call() -> None:
        driver.kernel(main_s)
        driver.kernel(side_s, SIDE)

    block = DeviceLoop(call, device, streams=[device.stream_handle(SIDE)]).block(3, 1)
    assert isinstance(block, DeviceSamples)
    assert block.device == pytest.approx([200 * US] * 3, rel=1e-5)


def test_a_flush_writes_twice_the_cache_ahead_of_the_window(driver: Driver, device: CudaBackend) -> None:
    block = DeviceLoop(lambda: driver.kernel(50 * US), device, cold=True).block(3, 1)
    assert isinstance(block, DeviceSamples)
    assert block.device == pytest.approx([50 * US] * 3, rel=1e-5)
    assert driver.filled == [(2 * MIB, 0)] * 3


def test_work_that_is_not_over_is_seen(driver: Driver, device: CudaBackend) -> None:
    device.use_events(1)
    driver.kernel(50 * US)
    assert not device.idle()
    device.synchronize()
    assert device.idle()


def test_an_error_has_its_name_and_some_lose_the_context(driver: Driver, device: CudaBackend) -> None:
    device.use_events(2)
    with pytest.raises(DeviceError, match=r"^CUDA_ERROR_INVALID_HANDLE \(.+\) from cuEventElapsedTime$") as caught:
        device.elapsed(0, 1)
    assert not caught.value.sticky
    driver.failing = ASSERTED
    for ask in (device.synchronize, lambda: device.passed(0)):
        with pytest.raises(DeviceError, match="device-side assert triggered") as caught:
            ask()
        assert caught.value.sticky


def test_what_the_device_is_and_has(device: CudaBackend) -> None:
    device.use_events(1)
    assert device.architecture() == "9.0"
    assert device.limits() == {}, "a clock that the driver does not tell is no limit"
    assert device.taken_share() == 0.25
    assert isinstance(device.memory(), FreeMemory)
    assert device.energy_j() is None
    with device.counting() as calls:
        pass
    assert calls.unavailable.startswith("CUPTI was not found")
