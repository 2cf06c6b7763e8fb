"""Energy of a call, from a counter that moves in steps."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from regress.measure.backend.cuda import CudaBackend
from regress.measure.backend.fake import BUSY_W, ENERGY_STEP_S, IDLE_W, FakeBackend
from regress.measure.backend.nvml import Nvml
from regress.measure.energy import energy_of_call
from tests.measure.test_nvml import UUID, Library


@pytest.mark.parametrize("kernel_s", [50e-6, 1e-3, 30e-3])
def test_a_call_takes_the_power_of_the_device_for_its_time(kernel_s: float) -> None:
    device = FakeBackend()
    joules = energy_of_call(lambda: device.kernel("k", kernel_s), device, limit_s=30.0)
    assert joules == pytest.approx(BUSY_W * kernel_s, rel=0.02)


def test_work_that_is_still_to_be_done_is_none_of_a_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch of one short call would be over before the counter is read."""
    device = FakeBackend()
    device.kernel("earlier", 0.1)
    read = device.energy_j

    def slowly() -> float | None:
        device.pause(5e-3)
        return read()

    monkeypatch.setattr(device, "energy_j", slowly)
    joules = energy_of_call(lambda: device.kernel("k", 1e-3), device, limit_s=30.0)
    assert joules == pytest.approx(BUSY_W * 1e-3, rel=0.02)


def test_a_call_that_leaves_the_device_idle_pays_for_that_too() -> None:
    device = FakeBackend()

    def call() -> None:
        device.host(300e-6)
        device.kernel("k", 100e-6)

    joules = energy_of_call(call, device, limit_s=30.0)
    assert joules == pytest.approx(IDLE_W * 304e-6 + (BUSY_W - IDLE_W) * 100e-6, rel=0.1)


def test_a_counter_that_hardly_moves_or_is_not_there_gives_no_energy(monkeypatch: pytest.MonkeyPatch) -> None:
    device = FakeBackend()
    assert energy_of_call(lambda: device.kernel("k", 1e-3), device, limit_s=ENERGY_STEP_S) is None
    monkeypatch.setattr(device, "energy_j", lambda: None)
    assert energy_of_call(lambda: pytest.fail("it was called for nothing"), device, limit_s=30.0) is None


@pytest.mark.parametrize(("counted", "joules"), [(123_456, 123.456), (None, None)])
def test_the_library_counts_in_millijoules(counted: int | None, joules: float | None) -> None:
    assert Nvml(UUID, Library(energy_mj=counted)).energy_j() == joules


@pytest.mark.gpu
@pytest.mark.parametrize("operation", ["matmul", "add", "softmax"])
def test_energy_agrees_with_the_counter_read_by_hand(operation: str) -> None:
    """Before and after three seconds of calls, by NVIDIA's own binding."""
    torch: Any = pytest.importorskip("torch")
    pynvml: Any = pytest.importorskip("pynvml")
    x = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
    calls: dict[str, Callable[[], object]] = {
        "matmul": lambda: x @ x,
        "add": lambda: x + x,
        "softmax": lambda: torch.softmax(x, -1),
    }
    call = calls[operation]
    device = CudaBackend()
    pynvml.nvmlInit()
    handle = pynvml.nvmlDeviceGetHandleByUUID(device.facts()["gpu_uuid"])
    for _ in range(20):
        call()
    joules = energy_of_call(call, device, limit_s=10.0)
    done, start_s = 0, time.perf_counter()
    before_mj = pynvml.nvmlDeviceGetTotalEnergyConsumption(handle)
    while time.perf_counter() - start_s < 3:
        for _ in range(20):
            call()
        torch.cuda.synchronize()
        done += 20
    by_hand = (pynvml.nvmlDeviceGetTotalEnergyConsumption(handle) - before_mj) * 1e-3 / done
    assert joules is not None
    print(f"{operation}: {1e3 * joules:.2f} mJ, by hand {1e3 * by_hand:.2f} mJ a call")
    assert joules == pytest.approx(by_hand, rel=0.05)
