"""The self-checks on a real device: what is known about a kernel must come out of the timer."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import pytest

from regress.measure.backend import DeviceError, choose
from regress.measure.backend.cuda import CudaBackend
from regress.measure.calibration import calibrate
from regress.measure.loop import DeviceLoop, DeviceSamples, Starved
from regress.measure.memory import memory_of_call
from regress.measure.stopping import round_value
from regress.measure.wire import Protocol

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module")
def torch() -> Any:
    module = pytest.importorskip("torch")
    module.cuda.init()
    return module


@pytest.fixture(scope="module")
def device(torch: Any) -> CudaBackend:
    backend = choose("cuda")
    assert isinstance(backend, CudaBackend)
    calibrate(backend)
    return backend


def sampled(
    device: CudaBackend, call: Callable[[], object], reset: Callable[[], object] | None = None
) -> DeviceSamples:
    loop = DeviceLoop(call, device, reset)
    loop.warm_up(5.0)
    protocol = loop.propose(Protocol("gpu_time"))
    assert protocol is not None, "has no device time"
    found = loop.sample(protocol)
    assert found is not None
    return found


def profiled(torch: Any, call: Callable[[], object], calls: int = 20) -> float:
    """Kernel seconds of a call by the profiler, which times kernels in hardware."""
    from torch.profiler import ProfilerActivity, profile

    for _ in range(3):
        call()
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CUDA], acc_events=True) as found:
        for _ in range(calls):
            call()
        torch.cuda.synchronize()
    kernels = [event.device_time for event in found.events() if event.device_time > 0]
    return float(sum(kernels)) * 1e-6 / calls


def test_a_spin_of_a_millisecond_takes_a_millisecond(device: CudaBackend) -> None:
    found = sampled(device, lambda: device.spin(1e-3))
    assert round_value(found.device) == pytest.approx(1e-3, rel=0.01)
    clock = statistics.median(found.clocks_hz)
    assert 0.3e9 < clock < 3e9


def test_an_empty_call_takes_no_device_time(device: CudaBackend) -> None:
    block = DeviceLoop(lambda: None, device).block(20, 1)
    assert isinstance(block, DeviceSamples)
    assert block.device or block.invalid
    assert abs(statistics.median([*block.device, *[0.0] * block.invalid])) < 0.5e-6


def test_facts_name_the_device(device: CudaBackend) -> None:
    facts = device.facts()
    assert facts["gpu"]
    assert facts["gpu_uuid"].startswith("GPU-")
    assert float(facts["cuda"]) >= 11


@pytest.mark.parametrize("elements", [1 << 16, 1 << 20, 1 << 24, 1 << 26])
def test_device_time_agrees_with_the_profiler(torch: Any, device: CudaBackend, elements: int) -> None:
    x = torch.randn(elements, device="cuda")
    ours = round_value(sampled(device, lambda: x + x).device)
    assert ours == pytest.approx(profiled(torch, lambda: x + x), rel=0.03, abs=2e-6)


def test_a_hidden_item_leaves_no_device_time(torch: Any, device: CudaBackend) -> None:
    x = torch.randn(1 << 20, device="cuda")
    assert isinstance(DeviceLoop(lambda: x.sum().item(), device).block(10, 1), Starved)


def test_a_host_sleep_grows_host_time_alone(torch: Any, device: CudaBackend) -> None:
    x = torch.randn(1 << 22, device="cuda")

    def slow() -> object:
        end = time.perf_counter() + 30e-6
        while time.perf_counter() < end:
            pass
        return x + x

    plain, slowed = sampled(device, lambda: x + x), sampled(device, slow)
    assert round_value(slowed.device) == pytest.approx(round_value(plain.device), rel=0.03)
    assert round_value(slowed.host) - round_value(plain.host) > 20e-6


def test_an_operation_in_place_starts_from_reset_each_time(torch: Any, device: CudaBackend) -> None:
    x = torch.zeros(1 << 20, device="cuda")
    seen = torch.zeros((), device="cuda")

    def call() -> None:
        seen.copy_(x[0])
        x.add_(1.0)

    block = DeviceLoop(call, device, lambda: x.zero_()).block(10, 1)
    assert isinstance(block, DeviceSamples)
    assert seen.item() == 0.0
    assert x[0].item() == 1.0


def test_many_launches_a_call_are_timed_too(torch: Any, device: CudaBackend) -> None:
    x = torch.randn(1 << 20, device="cuda")

    def call() -> None:
        for _ in range(200):
            x.mul_(1.0)

    ours, kernels = round_value(sampled(device, call).device), profiled(torch, call, 3)
    assert kernels < ours < kernels + 200 * 2e-6, "the gaps between kernels count: about a microsecond each"


@pytest.mark.parametrize("microseconds", [12, 19, 21, 26])
def test_one_call_and_many_calls_a_window_agree(torch: Any, device: CudaBackend, microseconds: int) -> None:
    """Around the change from many calls to one, a case must not jump when it gets a little slower."""

    def call() -> None:
        device.spin(microseconds * 1e-6)

    loop = DeviceLoop(call, device)
    loop.warm_up(1.0)
    one, many = loop.sample(Protocol("gpu_time", calls=1)), loop.sample(Protocol("gpu_time", calls=10))
    assert one is not None
    assert many is not None
    assert round_value(many.device, calls=10) == pytest.approx(round_value(one.device), abs=1.5e-6)


def test_peak_memory_is_what_was_asked_for_and_repeats(torch: Any, device: CudaBackend) -> None:
    x = torch.randn(1 << 20, device="cuda")
    probe = device.memory()
    assert probe is not None
    found = {memory_of_call(lambda: (x + x) + x, device, probe)["peak_memory"].value for _ in range(3)}
    assert found == {2 * 4.0 * (1 << 20)}


def test_peak_memory_of_a_case_does_not_hold_another_cases(torch: Any, device: CudaBackend) -> None:
    probe = device.memory()
    assert probe is not None
    big = memory_of_call(lambda: torch.empty(1 << 28, device="cuda"), device, probe)["peak_memory"]
    small = memory_of_call(lambda: torch.empty(1 << 10, device="cuda"), device, probe)["peak_memory"]
    assert (big.value, small.value) == (4.0 * (1 << 28), 4.0 * (1 << 10))


def test_an_error_of_the_driver_has_a_name(device: CudaBackend) -> None:
    never_recorded = 5_000
    device.use_events(never_recorded + 2)
    with pytest.raises(DeviceError, match=r"CUDA_ERROR_\w+ \(.+\) from cuEventElapsedTime"):
        device.elapsed(never_recorded, never_recorded + 1)
