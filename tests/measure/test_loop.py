"""The loops on the scripted device: what a real one does is known there to the nanosecond."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pytest

from regress.measure.backend import DeviceError
from regress.measure.backend.fake import FIRST_LANE, WINDOW_S, FakeBackend
from regress.measure.blocks import DeviceSamples, Starved, waits_for_the_spin
from regress.measure.calibration import calibrate
from regress.measure.loop import LANES, WARM_CALLS, DeviceLoop, calls_for
from regress.measure.stopping import round_value
from regress.measure.windows import cpu_calls, wall_samples, warm_cpu
from regress.measure.wire import Protocol


@pytest.fixture
def device() -> FakeBackend:
    return FakeBackend()


def sampled(
    device: FakeBackend, call: Callable[[], object], reset: Callable[[], object] | None = None
) -> DeviceSamples:
    return both(device, call, reset)[0]


def both(
    device: FakeBackend, call: Callable[[], object], reset: Callable[[], object] | None = None
) -> tuple[DeviceSamples, float]:
    """The samples of a call on the device, and its host time."""
    loop = DeviceLoop(call, device, reset)
    assert loop.warm_up(5.0)
    protocol = loop.propose(Protocol("gpu_time"))
    assert protocol is not None
    samples = loop.sample(protocol)
    assert samples is not None
    with loop.launches_of(protocol) as windows:
        return samples, round_value([windows.take().wall_s for _ in range(9)])


@pytest.mark.parametrize("kernel_s", [3e-6, 15e-6, 20e-6, 25e-6, 1e-3])
def test_device_time_is_the_kernels_own(device: FakeBackend, kernel_s: float) -> None:
    """Also where the launch takes longer than the kernel, and on either side of the change from many calls to one."""
    samples, host_s = both(device, lambda: device.kernel("k", kernel_s))
    assert round_value(samples.device) == pytest.approx(kernel_s, rel=0.015)
    assert host_s == pytest.approx(4e-6, rel=0.15)


def test_host_work_is_seen_in_host_time_alone(device: FakeBackend) -> None:
    def call() -> None:
        device.host(20e-6)
        device.kernel("k", 10e-6)

    samples, host_s = both(device, call)
    assert round_value(samples.device) == pytest.approx(10e-6, rel=0.015)
    assert host_s == pytest.approx(24e-6, rel=0.15)


def test_a_call_that_synchronizes_has_no_device_time(device: FakeBackend) -> None:
    def call() -> None:
        device.kernel("k", 10e-6)
        device.synchronize()

    loop = DeviceLoop(call, device)
    assert loop.warm_up(5.0), "there is nothing to wait for"
    assert isinstance(loop.block(20, 1), Starved)
    assert loop.propose(Protocol("gpu_time")) is None
    assert loop.sample(Protocol("gpu_time")) is None


def test_a_spin_that_was_too_short_is_doubled(device: FakeBackend) -> None:
    """The first call was cheap for the host, later ones are not: the first spin ends too early, the second does not."""
    calls = 0

    def call() -> None:
        nonlocal calls
        calls += 1
        device.host(1e-6 if calls <= 4 else 300e-6)
        device.kernel("k", 50e-6)

    loop = DeviceLoop(call, device)
    loop.warm_up(0.0)
    block = loop.block(20, 1)
    assert isinstance(block, DeviceSamples)
    assert block.retried > 0
    assert round_value(block.device) == pytest.approx(50e-6, rel=0.015)


def test_reset_runs_before_each_sample_and_is_not_timed(device: FakeBackend) -> None:
    order = []

    def reset() -> None:
        order.append("reset")
        device.kernel("fill", 500e-6)

    def call() -> None:
        order.append("call")
        device.kernel("k", 50e-6)

    block = DeviceLoop(call, device, reset).block(5, 1)
    assert isinstance(block, DeviceSamples)
    assert order[-10:] == ["reset", "call"] * 5
    assert round_value(block.device) == pytest.approx(50e-6, rel=0.015)


def test_a_negative_event_time_is_counted_and_not_stored(device: FakeBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    right = device.elapsed

    def elapsed(start: int, end: int) -> float:
        return -1.0 if start == 4 else right(start, end)

    monkeypatch.setattr(device, "elapsed", elapsed)
    block = DeviceLoop(lambda: device.kernel("k", 50e-6), device).block(10, 1)
    assert isinstance(block, DeviceSamples)
    assert block.invalid == 1
    assert len(block.device) == 9
    assert min(block.device) > 0


@pytest.mark.parametrize(
    ("call_s", "launches", "calls"),
    [(20e-6, 1, 1), (19.9e-6, 1, 11), (2.5e-6, 4, 80), (2.5e-6, 10, 50), (1e-6, 600, 1), (0.0, 1, 500)],
)
def test_calls_a_window(call_s: float, launches: int, calls: int) -> None:
    assert calls_for(call_s, launches) == calls


def test_a_block_never_holds_more_than_500_launches(device: FakeBackend) -> None:
    def call() -> None:
        for _ in range(100):
            device.kernel("k", 2e-6)

    samples = sampled(device, call)
    assert round_value(samples.device) == pytest.approx(200e-6, rel=0.02)
    loop = DeviceLoop(call, device)
    loop.warm_up(0.0)
    block = loop.block(20, 1)
    assert isinstance(block, DeviceSamples)
    assert len(block.device) <= 5


def test_a_warm_up_that_never_settles_is_told(device: FakeBackend) -> None:
    cost = 1e-3

    def call() -> None:
        nonlocal cost
        cost *= 1.05
        device.kernel("k", cost)

    assert not DeviceLoop(call, device).warm_up(0.05)


def test_a_call_of_two_levels_is_warm(device: FakeBackend) -> None:
    """Its blocks alternate, so none ever agrees with the one before it."""
    calls = 0

    def call() -> None:
        nonlocal calls
        calls += 1
        device.kernel("k", 50e-6 if calls // WARM_CALLS % 2 else 54e-6)

    assert DeviceLoop(call, device).warm_up(5.0)
    assert calls < 10 * WARM_CALLS


def test_host_windows_hold_enough_calls_and_wait_for_the_device(device: FakeBackend) -> None:
    def call() -> None:
        device.host(10e-6)
        device.kernel("k", 30e-6)

    calls = cpu_calls(call, device, 1e-3)
    assert 25 <= calls <= 45
    (sample,) = wall_samples(call, device, calls, None, lambda samples: True)
    assert sample == pytest.approx(30e-6, rel=0.1), "the device is the slower of the two"
    assert warm_cpu(call, device, calls, 1.0)


def test_what_runs_before_a_window_is_not_timed(device: FakeBackend) -> None:
    samples = wall_samples(
        lambda: device.host(10e-6), device, 1, lambda: device.host(1.0), lambda samples: len(samples) == 3
    )
    assert max(samples) < 50e-6


@pytest.mark.parametrize("record_s", [2e-6, 50e-6, 500e-6])
def test_an_empty_window_reads_the_same_however_slow_the_host_is(
    device: FakeBackend, monkeypatch: pytest.MonkeyPatch, record_s: float
) -> None:
    """With a spin that is too short the host's time between two records would be subtracted from every device time."""
    right = device.record

    def record(event: int) -> None:
        device.host_s += record_s
        right(event)

    monkeypatch.setattr(device, "record", record)
    device.window_overhead_s = 0.0
    calibrate(device)
    assert device.window_overhead_s == pytest.approx(WINDOW_S)


def test_a_host_that_can_never_keep_up_is_an_error(device: FakeBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    right = device.record

    def record(event: int) -> None:
        device.host_s += 0.1
        right(event)

    monkeypatch.setattr(device, "record", record)
    with pytest.raises(DeviceError, match="too slow"):
        calibrate(device)


@pytest.mark.parametrize(
    ("tries", "waits"),
    [
        ([(1e-3, 1.02e-3), (2e-3, 2.02e-3)], True),
        ([(1e-3, 6.0e-3), (2e-3, 7.0e-3)], True),
        ([(1e-3, 1.5e-3)], False),
        ([(1e-3, 1.5e-3), (2e-3, 1.5e-3)], False),
        ([(1e-3, 1.0e-3), (2e-3, 4.0e-3)], False),
        ([(1e-3, 0.2e-3), (2e-3, 0.2e-3)], False),
        ([(1e-3, 3e-3), (2e-3, 2.1e-3), (4e-3, 4.1e-3)], True),
    ],
)
def test_a_window_waits_where_it_grows_with_the_spin(tries: list[tuple[float, float]], waits: bool) -> None:
    assert waits_for_the_spin(tries) is waits


@pytest.mark.slow
def test_a_host_that_is_slow_now_and_then_is_not_taken_for_waiting(device: FakeBackend) -> None:
    """One call in seven takes the host forty times as long, as when the processor was given to somebody else."""
    calls = 0

    def call() -> None:
        nonlocal calls
        calls += 1
        device.host(10e-3 if calls % 7 == 0 else 250e-6)
        device.kernel("k", 60e-6)

    samples = sampled(device, call)
    assert len(samples.device) >= 5
    assert round_value(samples.device) == pytest.approx(60e-6, rel=0.02)


def test_a_call_that_waits_is_found_out_quickly(device: FakeBackend) -> None:
    """Also a long one: the spins must not grow with what the call waited for the last of them."""

    def call() -> None:
        device.kernel("k", 0.5)
        device.synchronize()

    loop = DeviceLoop(call, device)
    start = device.host_s
    assert loop.warm_up(5.0)
    assert loop.propose(Protocol("gpu_time")) is None
    assert loop.sample(Protocol("gpu_time")) is None
    assert device.host_s - start < 15


# -- lanes, streams, caches ----------------------------------------------------------------------------------------------


class TwoLevels(FakeBackend):
    """Streams are served by hardware queues of two speeds, and which one the default stream gets is drawn by the process."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.slow_first = seed % 2

    def _append(self, seconds: float, stream: int) -> float:
        slow = (max(stream - FIRST_LANE, 0) + self.slow_first) % 2
        return super()._append(seconds * (1.09 if slow and seconds < 1e-3 else 1.0), stream)


def test_lanes_average_over_the_levels_of_the_queues() -> None:
    """Two processes whose default streams have unlike queues agree, as a single lane does not."""
    single, several = [], []
    for seed in (0, 1):
        device = TwoLevels(seed)
        loop = DeviceLoop(partial(device.kernel, "k", 60e-6), device)
        loop.warm_up(1.0)
        protocol = loop.propose(Protocol("gpu_time"))
        assert protocol is not None
        assert protocol.lanes == LANES
        samples, alone = loop.sample(protocol), loop.sample(replace(protocol, lanes=1))
        assert samples is not None
        assert alone is not None
        assert len(samples.device) == 3 * LANES
        assert sorted(set(samples.lanes)) == list(range(LANES))
        several.append(samples.value())
        single.append(alone.value())
    assert single[1] / single[0] == pytest.approx(1.09, rel=0.015)
    assert several[1] / several[0] == pytest.approx(1.0, rel=0.012)


def test_lanes_that_a_slow_host_has_cut_are_kept_and_known_as_cut(
    device: FakeBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop = DeviceLoop(partial(device.kernel, "k", 60e-6), device)
    loop.warm_up(1.0)
    protocol = loop.propose(Protocol("gpu_time"))
    assert protocol is not None
    full, taken = loop.full_block, iter(range(100))
    monkeypatch.setattr(loop, "full_block", lambda *of: full(*of) if next(taken) < 6 else Starved(1.0))
    samples = loop.sample(protocol)
    assert samples is not None
    assert samples.cut
    assert sorted(set(samples.lanes)) == list(range(6))
    assert samples.value() == pytest.approx(60e-6, rel=0.015)


def test_a_call_that_keeps_to_its_own_stream_gets_one_lane(device: FakeBackend) -> None:
    """On another current stream its work would run beside the spin, and the window would be empty."""
    loop = DeviceLoop(lambda: device.kernel("k", 60e-6, stream=0), device)
    loop.warm_up(1.0)
    protocol = loop.propose(Protocol("gpu_time"))
    assert protocol is not None
    assert protocol.lanes == 1
    samples = loop.sample(protocol)
    assert samples is not None
    assert samples.value() == pytest.approx(60e-6, rel=0.015)


def test_a_call_that_fails_on_another_stream_gets_one_lane(device: FakeBackend) -> None:
    def call() -> None:
        if device.use_stream(device._stream) != 0:
            raise RuntimeError("expected all tensors on one stream")
        device.kernel("k", 60e-6)

    loop = DeviceLoop(call, device)
    loop.warm_up(1.0)
    protocol = loop.propose(Protocol("gpu_time"))
    assert protocol is not None
    assert protocol.lanes == 1


def test_long_calls_get_as_many_lanes_as_their_budget_allows(device: FakeBackend) -> None:
    loop = DeviceLoop(lambda: device.kernel("k", 30e-3), device)
    loop.warm_up(1.0)
    protocol = loop.propose(Protocol("gpu_time"))
    assert protocol is not None
    assert protocol.lanes == 3


def test_work_on_a_side_stream_escapes_unless_it_is_declared(device: FakeBackend) -> None:
    def call() -> None:
        device.kernel("main", 50e-6)
        device.kernel("side", 200e-6, stream=7)

    calibrate(device)
    assert DeviceLoop(call, device).escapes()
    declared = DeviceLoop(call, device, streams=[7])
    assert not declared.escapes()
    block = declared.block(10, 1)
    assert isinstance(block, DeviceSamples)
    assert round_value(block.device) == pytest.approx(200e-6, rel=0.015), "both run at once, the longer one counts"


def test_a_call_without_side_streams_does_not_escape(device: FakeBackend) -> None:
    calibrate(device)
    assert not DeviceLoop(lambda: device.kernel("k", 50e-6), device).escapes()


def test_cold_caches_are_emptied_before_each_sample_outside_the_window(device: FakeBackend) -> None:
    def call() -> None:
        device.kernel("k", 50e-6, cold=30e-6)

    hot, cold = DeviceLoop(call, device).block(10, 1), DeviceLoop(call, device, cold=True).block(10, 1)
    assert isinstance(hot, DeviceSamples)
    assert isinstance(cold, DeviceSamples)
    assert round_value(hot.device) == pytest.approx(50e-6, rel=0.015)
    assert round_value(cold.device) == pytest.approx(80e-6, rel=0.015)


def test_short_calls_with_cold_caches_are_timed_one_by_one(device: FakeBackend) -> None:
    loop = DeviceLoop(lambda: device.kernel("k", 5e-6), device, cold=True)
    loop.warm_up(1.0)
    protocol = loop.propose(Protocol("gpu_time", cache="cold"))
    assert protocol is not None
    assert protocol.calls == 1


def test_what_prepares_a_sample_may_wait_for_the_device(device: FakeBackend) -> None:
    order = []

    def prepare() -> None:
        order.append("prepare")
        device.kernel("fill", 500e-6)
        device.synchronize()

    def call() -> None:
        order.append("call")
        device.kernel("k", 50e-6)

    loop = DeviceLoop(call, device, prepare=prepare)
    loop.warm_up(1.0)
    protocol = loop.propose(Protocol("gpu_time"))
    assert protocol is not None
    order.clear()
    samples = loop.sample(protocol)
    assert samples is not None
    assert samples.value() == pytest.approx(50e-6, rel=0.015)
    assert order == ["prepare", "call"] * (len(order) // 2)


def test_warm_up_goes_on_while_something_is_compiled(device: FakeBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two equal windows prove nothing while each call compiles something else."""
    compiled = 0

    def growth() -> tuple[int, ...]:
        nonlocal compiled
        compiled += compiled < 6
        return (compiled,)

    monkeypatch.setattr("regress.measure.loop.growth", growth)
    calls = 0

    def call() -> None:
        nonlocal calls
        calls += 1
        device.kernel("k", 50e-6)

    assert DeviceLoop(call, device).warm_up(5.0)
    assert compiled == 6
    assert calls >= 3 * 6


@pytest.mark.parametrize("growth", [0.001, -0.001, 0.0])
@pytest.mark.parametrize("kernel_s", [60e-6, 30e-3, 600e-3])
def test_a_call_that_drifts_within_a_round_is_told_by_the_lane_that_is_measured_twice(
    device: FakeBackend, kernel_s: float, growth: float
) -> None:
    """On many lanes, on a few, and on one; lanes themselves are of two levels on many devices."""
    calls = iter(range(10_000))

    def call() -> None:
        device.kernel("k", kernel_s * (1 + growth * next(calls)))

    loop = DeviceLoop(call, device)
    loop.warm_up(1.0)
    protocol = loop.propose(Protocol("gpu_time"))
    assert protocol is not None
    several = kernel_s < 1e-3
    samples = loop.sample(replace(protocol, window_budget_s=100.0 if not several else 0.1))
    assert samples is not None
    assert samples.trend is not None
    taken = len(samples.device) if several else 3 * len(samples.device) // 4
    assert samples.trend == pytest.approx(growth * taken, rel=0.2, abs=0.012)
