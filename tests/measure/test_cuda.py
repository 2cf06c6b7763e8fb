"""The self-checks on a real device: what is known about a kernel must come out of the timer."""

from __future__ import annotations

import contextlib
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from regress.measure.backend import DeviceError
from regress.measure.backend.cuda import CudaBackend
from regress.measure.blocks import DeviceSamples, Starved
from regress.measure.loop import LANES, DeviceLoop
from regress.measure.memory import memory_of_call
from regress.measure.stopping import round_value
from regress.measure.wire import Protocol

pytestmark = pytest.mark.gpu

BUSY_S = 20e-6


def sampled(device: CudaBackend, call: Callable[[], object], **how: Any) -> DeviceSamples:
    """A round of the call, measured as it proposes itself."""
    loop = DeviceLoop(call, device, **how)
    loop.warm_up(5.0)
    protocol = loop.propose(Protocol("gpu_time"))
    assert protocol is not None, "has no device time"
    samples = loop.sample(protocol)
    assert samples is not None
    assert loop.doubt(samples, protocol) == ""
    return samples


def host_times(device: CudaBackend, call: Callable[[], object]) -> list[float]:
    """Windows of the host's time to enqueue the call."""
    loop = DeviceLoop(call, device)
    loop.warm_up(5.0)
    protocol = loop.propose(Protocol("gpu_time"))
    assert protocol is not None, "has no device time"
    with loop.launches_of(replace(protocol, warm_calls=3)) as windows:
        return [windows.take().net_s for _ in range(20)]


def profiled(torch: Any, call: Callable[[], object], calls: int = 20) -> float:
    """Kernel seconds of a call by the profiler, which times kernels in hardware."""
    from torch.profiler import ProfilerActivity, profile

    for _ in range(3):
        call()
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CUDA], acc_events=True) as profiler:
        for _ in range(calls):
            call()
        torch.cuda.synchronize()
    kernels = [event.device_time for event in profiler.events() if event.device_time > 0]
    return float(sum(kernels)) * 1e-6 / calls


def test_a_spin_of_a_millisecond_takes_a_millisecond(device: CudaBackend) -> None:
    samples = sampled(device, lambda: device.spin(1e-3))
    assert round_value(samples.device) == pytest.approx(1e-3, rel=0.01)
    clock = statistics.median(samples.clocks_hz)
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


# -- attribution ---------------------------------------------------------------------------------------------------------


def busy(call: Callable[[], object]) -> Callable[[], object]:
    """The call, after the host was busy for a while."""

    def slowed() -> object:
        end = time.perf_counter() + BUSY_S
        while time.perf_counter() < end:
            pass
        return call()

    return slowed


def test_a_busy_host_raises_host_time_alone(torch: Any, device: CudaBackend) -> None:
    x = torch.randn(1 << 26, device="cuda")
    plain, slowed = sampled(device, lambda: x + x), sampled(device, busy(lambda: x + x))
    assert slowed.value() == pytest.approx(plain.value(), rel=0.01)
    # The fastest enqueueing of each: on a shared host others lie some microseconds above it, and so may all of a few.
    assert min(host_times(device, busy(lambda: x + x))) - min(host_times(device, lambda: x + x)) > 0.75 * BUSY_S


def test_a_kernel_7_percent_longer_raises_device_time_alone(torch: Any, device: CudaBackend) -> None:
    x = torch.randn(1 << 26, device="cuda")
    y = torch.randn(round(1.07 * (1 << 26)), device="cuda")
    short, long = sampled(device, lambda: x + x), sampled(device, lambda: y + y)
    assert 1.05 < long.value() / short.value() < 1.09
    before = min(host_times(device, lambda: x + x))  # the host may be disturbed; its quickest call is not
    assert min(host_times(device, lambda: y + y)) - before < max(0.2 * before, 2e-6)


# -- streams, lanes and caches -------------------------------------------------------------------------------------------


def protocol_of(loop: DeviceLoop) -> Protocol:
    loop.warm_up(1.0)
    protocol = loop.propose(Protocol("gpu_time"))
    assert protocol is not None
    return protocol


def test_a_plain_call_is_measured_on_all_lanes(torch: Any, device: CudaBackend) -> None:
    x = torch.randn(1 << 20, device="cuda")
    assert protocol_of(DeviceLoop(lambda: x + x, device)).lanes == LANES
    assert set(sampled(device, lambda: x + x).lanes) == set(range(LANES))


def test_a_call_with_a_stream_of_its_own_is_measured_there(torch: Any, device: CudaBackend) -> None:
    x, own = torch.randn(1 << 26, device="cuda"), torch.cuda.Stream()
    torch.cuda.synchronize()

    def call() -> object:
        with torch.cuda.stream(own):
            return x + x

    loop = DeviceLoop(call, device, streams=[device.stream_handle(own)])
    protocol = protocol_of(loop)
    assert protocol.lanes == 1
    samples = loop.sample(protocol)
    assert samples is not None
    assert loop.doubt(samples, protocol) == ""
    assert samples.value() == pytest.approx(sampled(device, lambda: x + x).value(), rel=0.05)


def test_a_call_with_a_stream_of_its_own_that_it_does_not_name_has_no_device_time(
    torch: Any, device: CudaBackend
) -> None:
    x, own = torch.randn(1 << 24, device="cuda"), torch.cuda.Stream()
    torch.cuda.synchronize()

    def call() -> object:
        with torch.cuda.stream(own):
            return x + x

    loop = DeviceLoop(call, device)
    protocol = protocol_of(loop)
    assert protocol.lanes == 1
    samples = loop.sample(protocol)
    assert samples is not None
    assert loop.doubt(samples, protocol)


SHORT_CYCLES, LONG_CYCLES = 20_000, 600_000
"""Of one thread block each, so that two beside one another do not share anything: about 10 and 300 us."""


def sleeping(torch: Any, cycles: int, side: Any = None, side_cycles: int = 0) -> Callable[[], None]:
    """A call that keeps the current stream busy, and a stream beside it."""

    def call() -> None:
        if side is not None:
            with torch.cuda.stream(side):
                torch.cuda._sleep(side_cycles)
        torch.cuda._sleep(cycles)

    return call


@pytest.mark.parametrize(
    ("main", "beside"), [(SHORT_CYCLES, LONG_CYCLES), (LONG_CYCLES, SHORT_CYCLES), (LONG_CYCLES, LONG_CYCLES)]
)
def test_with_a_declared_stream_it_is_the_longer_of_both(
    torch: Any, device: CudaBackend, main: int, beside: int
) -> None:
    side = torch.cuda.Stream()
    samples = sampled(device, sleeping(torch, main, side, beside), streams=[device.stream_handle(side)])
    alone = sampled(device, sleeping(torch, LONG_CYCLES))
    # Of the way to the other stream and back, a few microseconds each.
    assert samples.value() == pytest.approx(alone.value(), rel=0.03, abs=10e-6)


def test_work_that_a_call_leaves_behind_on_another_stream_is_noticed(torch: Any, device: CudaBackend) -> None:
    side = torch.cuda.Stream()
    call = sleeping(torch, SHORT_CYCLES, side, LONG_CYCLES)
    alone = sampled(device, sleeping(torch, SHORT_CYCLES)).value()
    assert DeviceLoop(call, device).escapes(1, alone)
    declared = [device.stream_handle(side)]
    both = sampled(device, call, streams=declared).value()
    assert not DeviceLoop(call, device, streams=declared).escapes(1, both)


def test_work_on_another_stream_that_is_over_first_changes_nothing(torch: Any, device: CudaBackend) -> None:
    call = sleeping(torch, LONG_CYCLES, torch.cuda.Stream(), SHORT_CYCLES)
    alone = sampled(device, sleeping(torch, LONG_CYCLES))
    assert sampled(device, call).value() == pytest.approx(alone.value(), rel=0.03)


def test_what_fits_the_cache_is_slower_from_a_cold_one(torch: Any, device: CudaBackend) -> None:
    x = torch.randn(1 << 22, device="cuda")
    if 4 * x.numel() > torch.cuda.get_device_properties(0).L2_cache_size:
        pytest.skip("16 MiB do not fit the L2 cache of this device")
    values = []
    for cold in (False, True):
        loop = DeviceLoop(lambda: x.sum(), device, cold=cold)
        loop.warm_up(5.0)
        samples = loop.sample(Protocol("gpu_time", calls=1))  # one call a window both times
        assert samples is not None
        values.append(samples.value())
    hot, cold_s = values
    assert cold_s > 1.2 * hot


# -- many, few and in place ----------------------------------------------------------------------------------------------


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
    peaks = {memory_of_call(lambda: (x + x) + x, device, probe)["peak_memory"].value for _ in range(3)}
    assert peaks == {2 * 4.0 * (1 << 20)}


def test_peak_memory_of_a_case_does_not_hold_another_cases(torch: Any, device: CudaBackend) -> None:
    probe = device.memory()
    assert probe is not None
    big = memory_of_call(lambda: torch.empty(1 << 28, device="cuda"), device, probe)["peak_memory"]
    small = memory_of_call(lambda: torch.empty(1 << 10, device="cuda"), device, probe)["peak_memory"]
    assert (big.value, small.value) == (4.0 * (1 << 28), 4.0 * (1 << 10))


def test_a_list_that_grows_is_a_leak(torch: Any, device: CudaBackend) -> None:
    probe, kept = device.memory(), []
    assert probe is not None
    memory = memory_of_call(lambda: kept.append(torch.empty(1 << 18, device="cuda")), device, probe)
    assert memory["left_memory"].value == 5 * 4.0 * (1 << 18)
    assert memory["output_memory"].value == 0


# -- the device's own word -----------------------------------------------------------------------------------------------


def test_the_state_of_the_device_has_a_temperature(device: CudaBackend) -> None:
    state = device.device_state()
    assert 5 < state["temperature_c"] < 110
    assert state["power_w"] > 0


COMPUTES = """
import os, sys, time
if os.fork():  # the one that goes on belongs to nobody
    os._exit(0)
os.setsid()
import torch
x = torch.randn(1024, 1024, device="cuda")
(x @ x).sum().item()
print(os.getpid(), flush=True)
sys.stdin.read()
"""


@contextlib.contextmanager
def another_process() -> Iterator[int]:
    """The id of a process that has computed on the device and holds memory there; it ends with the context."""
    with subprocess.Popen(
        [sys.executable, "-c", COMPUTES], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.wait()  # for the one that it left behind, nothing is
        line = process.stdout.readline()
        assert line, "the other process came to nothing"
        yield int(line)


def test_another_process_on_the_device_is_listed(device: CudaBackend) -> None:
    before = device.processes()
    with another_process() as pid:
        processes = device.processes()
    if len(processes) == len(before):
        pytest.skip("NVML does not list the processes of this device")
    # In a container the ids are the host's, and ours is not known there.
    assert all(process.unreliable for process in processes) or pid in {process.pid for process in processes}


def test_an_error_of_the_driver_has_a_name(device: CudaBackend) -> None:
    never_recorded = 5_000
    device.use_events(never_recorded + 2)
    with pytest.raises(DeviceError, match=r"CUDA_ERROR_\w+ \(.+\) from cuEventElapsedTime"):
        device.elapsed(never_recorded, never_recorded + 1)
