"""torch's events as a timer, on a stand-in for torch whose device and host share a virtual clock; and against the driver's."""

from __future__ import annotations

import contextlib
import ctypes
import importlib.util
import sys
from collections.abc import Callable, Iterator
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from regress.measure.backend import Backend, DeviceError, choose, torch_events
from regress.measure.backend.cuda import CudaBackend
from regress.measure.backend.torch_events import LONG_SPIN_S, TorchBackend, built_for
from regress.measure.blocks import DeviceSamples, Starved
from regress.measure.calibration import calibrate
from regress.measure.existing import QuietCall
from regress.measure.failures import failure_of
from regress.measure.loop import LANES, DeviceLoop
from regress.measure.stopping import round_value
from regress.measure.wire import Protocol

ROCM = "cuda: Optional[str] = None\nhip: Optional[str] = '6.4.43482'\n"
CUDA = "cuda = '13.0'\nhip = None\n"
CPU = "cuda: Optional[str] = None\nhip: Optional[str] = None\n"
LAUNCH_S, EVENT_S, SYNCHRONIZE_S, CLOCK_S = 4e-6, 10e-6, 10e-6, 50e-9
L2_BYTES = 4 << 20


class Stream:
    def __init__(self, torch: Torch, handle: int) -> None:
        self._torch, self.cuda_stream = torch, handle
        torch.busy_until.setdefault(handle, 0.0)

    def wait_event(self, event: Event) -> None:
        self._torch.append(self.cuda_stream, 0.0, not_before=event.at)

    def query(self) -> bool:
        return self._torch.busy_until[self.cuda_stream] <= self._torch.host_s

    def synchronize(self) -> None:
        self._torch.wait(self._torch.busy_until[self.cuda_stream])


class Event:
    def __init__(self, torch: Torch) -> None:
        self._torch, self.at = torch, -1.0

    def record(self, stream: Stream | None = None) -> None:
        self._torch.host_s += EVENT_S
        self.at = self._torch.append((stream or self._torch.current).cuda_stream, 0.0)

    def query(self) -> bool:
        self._torch.host_s += 1e-6
        return self.at <= self._torch.host_s

    def elapsed_time(self, end: Event) -> float:
        if min(self.at, end.at) < 0:
            raise RuntimeError("Both events must be recorded before calculating elapsed time.")
        return (end.at - self.at) * 1e3


class Torch(ModuleType):
    """Just enough of torch. The device works through each stream in order while the host goes on."""

    def __init__(self, folder: Path, cycles_hz: float = 1.9e9) -> None:
        super().__init__("torch")
        self.__spec__ = ModuleSpec("torch", None, is_package=True)
        self.__spec__.submodule_search_locations = [str(folder)]
        self.host_s = 0.0
        self.busy_until: dict[int, float] = {}
        self.current = Stream(self, 0)
        self.error = ""
        self.flushed: list[tuple[int, int]] = []
        """(bytes, stream) of every tensor that was filled."""
        self._cycles_hz = cycles_hz
        self._C, self.uint8 = SimpleNamespace(), "uint8"
        self.version = SimpleNamespace(hip="6.4.43482")
        self.cuda = ModuleType("torch.cuda")
        self.cuda.__dict__.update(
            is_available=lambda: True,
            is_initialized=lambda: True,
            memory_stats=dict,
            synchronize=self._synchronize,
            current_stream=lambda device=None: self.current,
            Stream=lambda: Stream(self, len(self.busy_until)),
            ExternalStream=lambda handle, device=None: Stream(self, handle),
            Event=lambda enable_timing=False: Event(self),
            stream=lambda stream: Current(self, stream),
            get_device_properties=lambda device: SimpleNamespace(
                name="AMD Instinct MI300X", uuid="6134-3662", L2_cache_size=L2_BYTES
            ),
            _sleep=self._sleep,
        )

    def kernel(self, seconds: float, stream: Stream | None = None) -> None:
        self.host_s += LAUNCH_S
        self.append((stream or self.current).cuda_stream, seconds)

    def append(self, handle: int, seconds: float, not_before: float = 0.0) -> float:
        self.busy_until[handle] = max(self.busy_until[handle], self.host_s, not_before) + seconds
        return self.busy_until[handle]

    def wait(self, until_s: float) -> None:
        self.host_s = max(self.host_s, until_s) + SYNCHRONIZE_S

    def empty(self, size: int, dtype: str, device: str) -> Any:
        assert (dtype, device) == ("uint8", "cuda:0")

        def zero() -> None:
            self.flushed.append((size, self.current.cuda_stream))
            self.kernel(2e-6)

        return SimpleNamespace(zero_=zero)

    def _synchronize(self) -> None:
        if self.error:
            raise RuntimeError(self.error)
        self.wait(max(self.busy_until.values()))

    def _sleep(self, cycles: int) -> None:
        self.kernel(cycles / self._cycles_hz)


class Current:
    """`torch.cuda.stream`: a context that makes a stream the current one, and can be opened again."""

    def __init__(self, torch: Torch, stream: Stream) -> None:
        self._torch, self._stream = torch, stream

    def __enter__(self) -> None:
        self._before, self._torch.current = self._torch.current, self._stream

    def __exit__(self, *_: object) -> None:
        self._torch.current = self._before


class Timed(TorchBackend):
    """The backend on the virtual clock."""

    def __init__(self, torch: Torch) -> None:
        super().__init__()
        self._virtual = torch

    def now(self) -> float:
        self._virtual.host_s += CLOCK_S
        return self._virtual.host_s


Install = Callable[[str], Path]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Installs a torch whose version.py is that text, and unloads any other; gives its folder."""

    def put(version: str) -> Path:
        folder = tmp_path / "torch"
        folder.mkdir()
        (folder / "__init__.py").write_text("raise RuntimeError('imported')\n")
        (folder / "version.py").write_text(version)
        monkeypatch.delitem(sys.modules, "torch", raising=False)
        monkeypatch.syspath_prepend(tmp_path)
        return folder

    return put


@pytest.fixture
def virtual(install: Install, monkeypatch: pytest.MonkeyPatch) -> Torch:
    torch = Torch(install(ROCM))
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setitem(sys.modules, "torch.cuda", torch.cuda)
    return torch


@pytest.fixture
def timer(virtual: Torch) -> Timed:
    backend = Timed(virtual)
    calibrate(backend)
    return backend


def sampled(timer: Timed, call: Callable[[], object], **how: Any) -> DeviceSamples:
    loop = DeviceLoop(call, timer, **how)
    assert loop.warm_up(5.0)
    protocol = loop.propose(Protocol("gpu_time"))
    assert protocol is not None
    samples = loop.sample(protocol)
    assert samples is not None
    return samples


# -- where it is used ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("version", "expected"),
    [(ROCM, ("hip", "6.4.43482")), (CUDA, ("cuda", "13.0")), (CPU, ("", "")), ("", ("", ""))],
)
def test_what_torch_is_built_for_is_read_without_importing_it(
    install: Install, version: str, expected: tuple[str, str]
) -> None:
    install(version)
    assert built_for() == expected
    assert "torch" not in sys.modules


@pytest.fixture
def no_cuda(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(name: str) -> None:
        raise OSError(name)

    monkeypatch.setattr(ctypes, "CDLL", fails)


@pytest.fixture
def amd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "kfd").touch()
    monkeypatch.setattr(torch_events, "AMD_DEVICE", str(tmp_path / "kfd"))


@pytest.mark.usefixtures("no_cuda", "amd")
def test_an_amd_device_is_driven_by_torch(install: Install) -> None:
    install(ROCM)
    backend = choose("auto")
    assert (backend.name, backend.has_device) == ("torch", True)
    assert backend.facts() == {}
    assert "torch" not in sys.modules


@pytest.mark.usefixtures("no_cuda", "amd")
def test_an_amd_device_with_another_torch_is_no_device(install: Install) -> None:
    install(CUDA)
    backend = choose("auto")
    assert (type(backend), backend.has_device) == (Backend, False)
    assert backend.why_no_device.startswith(
        "no CUDA driver: libcuda.so.1 cannot be loaded; there is an AMD device, but"
    )


@pytest.mark.usefixtures("no_cuda")
def test_without_an_amd_device_torch_is_not_looked_for(
    install: Install, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(ROCM)
    monkeypatch.setattr(torch_events, "AMD_DEVICE", str(tmp_path / "none"))
    assert choose("auto").why_no_device == "no CUDA driver: libcuda.so.1 cannot be loaded"


def test_a_torch_for_the_cpu_cannot_be_asked_for(install: Install) -> None:
    install(CPU)
    with pytest.raises(DeviceError, match="built for the CPU only"):
        choose("torch")


def test_a_torch_that_is_not_installed_cannot_be_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(DeviceError, match="torch is not installed"):
        choose("torch")


def test_while_nothing_is_launched_torch_is_not_imported(install: Install) -> None:
    install(CUDA)
    backend = choose("torch")
    assert isinstance(backend, TorchBackend)
    backend.synchronize()
    assert backend.idle()
    assert (backend.memory(), backend.facts(), backend.clocks_hz()) == (None, {}, [])
    assert "torch" not in sys.modules
    with pytest.raises(DeviceError, match="imported"):
        backend.use_events(1)


def test_a_torch_that_sees_no_device_says_so(virtual: Torch) -> None:
    virtual.cuda.is_available = lambda: False  # type: ignore[attr-defined]
    with pytest.raises(DeviceError, match="torch sees no device"):
        Timed(virtual).spin(1e-3)


# -- timing --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cycles_hz", [100e6, 1.9e9])
def test_a_spin_takes_what_is_asked_for_however_fast_the_device_counts(install: Install, cycles_hz: float) -> None:
    torch = Torch(install(ROCM), cycles_hz)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "torch", torch)
        backend = Timed(torch)
        backend.use_events(1)
        assert LONG_SPIN_S <= torch.host_s < 10 * LONG_SPIN_S
        before = torch.host_s
        backend.spin(1e-3)
        assert torch.busy_until[0] - before == pytest.approx(1e-3, rel=0.01)


@pytest.mark.parametrize("kernel_s", [3e-6, 19e-6, 50e-6, 1e-3])
def test_device_time_is_the_kernels_own(virtual: Torch, timer: Timed, kernel_s: float) -> None:
    samples = sampled(timer, lambda: virtual.kernel(kernel_s))
    assert samples.value() == pytest.approx(kernel_s)
    assert set(samples.lanes) == set(range(LANES))
    assert samples.clocks_hz == []


def test_a_call_that_waits_has_no_device_time(virtual: Torch, timer: Timed) -> None:
    def call() -> None:
        virtual.kernel(50e-6)
        virtual.current.synchronize()

    assert isinstance(DeviceLoop(call, timer).block(10, 1), Starved)


def test_a_trailing_synchronize_can_be_left_out_and_ours_still_waits(virtual: Torch, timer: Timed) -> None:
    def call() -> None:
        virtual.kernel(50e-6)
        virtual.cuda.synchronize()

    with QuietCall(call, timer) as quiet:
        assert quiet.left_out == ["torch.cuda.synchronize"]
        virtual.kernel(1e-3)
        timer.synchronize()
        assert timer.idle()
        block = DeviceLoop(quiet, timer).block(10, 1)
    assert isinstance(block, DeviceSamples)
    assert round_value(block.device) == pytest.approx(50e-6)


def test_events_and_spins_go_to_the_stream_that_is_held(virtual: Torch, timer: Timed) -> None:
    side = Stream(virtual, 77)
    with Current(virtual, side):
        timer.hold_stream()
    timer.spin(1e-3)
    timer.record(0)
    assert timer.idle(), "the current stream has nothing to do"
    assert not timer.passed(0)
    with Current(virtual, side):
        assert not timer.idle()


@pytest.mark.parametrize(("main_s", "side_s"), [(50e-6, 200e-6), (200e-6, 50e-6)])
def test_declared_streams_belong_to_the_call(virtual: Torch, timer: Timed, main_s: float, side_s: float) -> None:
    side = Stream(virtual, 77)

    def call() -> None:
        virtual.kernel(main_s)
        virtual.kernel(side_s, side)

    samples = sampled(timer, call, streams=[timer.stream_handle(side)])
    assert samples.value() == pytest.approx(200e-6)
    assert not DeviceLoop(call, timer, streams=[timer.stream_handle(side)]).escapes(1, samples.value())
    assert DeviceLoop(call, timer).escapes(1, main_s) is (side_s > main_s)


def test_a_handle_is_a_stream_and_other_things_are_none(virtual: Torch, timer: Timed) -> None:
    assert (timer.stream_handle(Stream(virtual, 77)), timer.stream_handle(78)) == (77, 78)
    with pytest.raises(TypeError, match="str is not a stream of this device"):
        timer.stream_handle("stream")


def test_a_flush_writes_twice_the_cache_where_the_events_are(virtual: Torch, timer: Timed) -> None:
    samples = sampled(timer, lambda: virtual.kernel(50e-6), cold=True)
    assert samples.value() == pytest.approx(50e-6)
    assert {size for size, _ in virtual.flushed} == {2 * L2_BYTES}
    assert len({handle for _, handle in virtual.flushed}) == LANES


# -- facts and errors ----------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("virtual")
def test_facts_are_those_that_torch_has(timer: Timed) -> None:
    assert timer.facts() == {"gpu": "AMD Instinct MI300X", "gpu_uuid": "GPU-6134-3662", "hip": "6.4.43482"}


@contextlib.contextmanager
def failing(torch: Torch, words: str) -> Iterator[None]:
    torch.error = words
    yield
    torch.error = ""


@pytest.mark.parametrize(
    ("words", "sticky"),
    [
        ("CUDA error: an illegal memory access was encountered\nCUDA kernel errors might be reported later", True),
        ("HIP error: device-side assert triggered", True),
        ("HIP error: unspecified launch failure", True),
        ("HIP error: invalid argument", False),
    ],
)
def test_an_error_of_torch_is_one_of_the_device(virtual: Torch, timer: Timed, words: str, sticky: bool) -> None:
    with failing(virtual, words), pytest.raises(DeviceError) as caught:
        timer.synchronize()
    assert str(caught.value) == words.partition("\n")[0]
    assert caught.value.sticky is sticky
    timer.synchronize()


def test_out_of_memory_stays_out_of_memory(virtual: Torch, timer: Timed) -> None:
    with failing(virtual, "HIP out of memory. Tried to allocate 64.00 GiB."), pytest.raises(DeviceError) as caught:
        timer.synchronize()
    failure = failure_of(caught.value, [])
    assert failure.kind == "oom"
    assert "64.00 GiB" in failure.message


@pytest.mark.usefixtures("virtual")
def test_an_event_that_was_never_recorded_is_an_error(timer: Timed) -> None:
    timer.use_events(1001)
    with pytest.raises(DeviceError, match="must be recorded"):
        timer.elapsed(999, 1000)


# -- on a device ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def by_torch(torch: Any) -> TorchBackend:
    backend = choose("torch")
    assert isinstance(backend, TorchBackend)
    calibrate(backend)
    return backend


@pytest.mark.gpu
@pytest.mark.parametrize(("elements", "calls"), [(1 << 20, 40), (1 << 26, 1)])
def test_both_timers_agree(torch: Any, device: CudaBackend, by_torch: TorchBackend, elements: int, calls: int) -> None:
    x = torch.randn(elements, device="cuda")
    seconds = []
    for backend in (device, by_torch):
        loop = DeviceLoop(lambda: x + x, backend)
        loop.warm_up(5.0)
        # On one stream: streams differ from each other by more than the timers do.
        samples = loop.sample(Protocol("gpu_time", calls=calls))
        assert samples is not None
        seconds.append(samples.value())
    assert seconds[1] == pytest.approx(seconds[0], rel=0.03)


@pytest.mark.gpu
def test_a_hidden_item_leaves_neither_timer_a_device_time(
    torch: Any, device: CudaBackend, by_torch: TorchBackend
) -> None:
    x = torch.randn(1 << 20, device="cuda")
    for backend in (device, by_torch):
        assert isinstance(DeviceLoop(lambda: x.sum().item(), backend).block(10, 1), Starved)


@pytest.mark.gpu
def test_both_name_the_same_device(device: CudaBackend, by_torch: TorchBackend) -> None:
    ours, theirs = device.facts(), by_torch.facts()
    assert (ours["gpu"], ours["gpu_uuid"]) == (theirs["gpu"], theirs["gpu_uuid"])


@pytest.mark.gpu
def test_a_spin_of_torch_lasts_about_as_long_as_asked(torch: Any, device: CudaBackend, by_torch: TorchBackend) -> None:
    by_torch.hold_stream()
    block = DeviceLoop(lambda: by_torch.spin(1e-3), device).block(5, 1)
    assert isinstance(block, DeviceSamples)
    assert round_value(block.device) == pytest.approx(1e-3, rel=0.2), "it follows the clock, which is not fixed"
