from __future__ import annotations

import ctypes
import sys
import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from regress.measure.backend import Backend, cupti
from regress.measure.backend.base import Calls, DeviceBackend
from regress.measure.backend.cupti import CallbackData, Cupti, meaning
from regress.measure.backend.fake import FakeBackend
from regress.measure.counters import CompileWatch, Counted, count

DRIVER, RUNTIME = 1, 2


class Library:
    """CUPTI's callback interface: tells its one subscriber of the calls that a test makes."""

    def __init__(self, subscribe: int = 0, enable: int = 0) -> None:
        self.results = {"subscribe": subscribe, "enable": enable}
        self.callback: Any = None
        self.domains: list[int] = []
        self._number = 0

    def cuptiSubscribe(self, subscriber: Any, callback: Any, user: None) -> int:
        if not self.results["subscribe"]:
            self.callback = callback
        return self.results["subscribe"]

    def cuptiEnableDomain(self, on: int, subscriber: Any, domain: int) -> int:
        self.domains.append(domain)
        return self.results["enable"]

    def cuptiUnsubscribe(self, subscriber: Any) -> int:
        self.callback = None
        return 0

    def cuptiGetResultString(self, code: int, text: Any) -> int:
        text._obj.value = b"CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED" if code == 39 else None
        return 0

    def call(
        self, domain: int, function: str, symbol: str | None = None, inside: Callable[[], object] | None = None
    ) -> None:
        """A function of the driver or the runtime is called; `inside` is what it calls itself."""
        self._number += 1
        data = CallbackData(
            callbackSite=0,
            functionName=function.encode(),
            symbolName=symbol.encode() if symbol is not None else None,
            correlationId=self._number,
        )
        for site in (0, 1):
            data.callbackSite = site
            if self.callback is not None:
                self.callback(None, domain, 0, ctypes.addressof(data))
            if site == 0 and inside is not None:
                inside()


# -- CUPTI ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "function, kinds",
    [
        ("cuLaunchKernel", "kernel"),
        ("cuLaunchKernelEx_ptsz", "kernel"),
        ("cuLaunchCooperativeKernel", "kernel"),
        ("cudaLaunchKernel_v7000", "kernel"),
        ("cudaLaunchKernelExC_ptsz_v11060", "kernel"),
        ("__cudaLaunchKernel_v13000", "kernel"),
        ("cuGraphLaunch_ptsz", "graph"),
        ("cudaGraphLaunch_v10000", "graph"),
        ("cuCtxSynchronize_v2", "synchronization"),
        ("cudaDeviceSynchronize_v3020", "synchronization"),
        ("cuStreamSynchronize_ptsz", "synchronization"),
        ("cuEventSynchronize", "synchronization"),
        ("cuMemcpyDtoH_v2", "copy synchronization"),
        ("cudaMemcpy_v3020", "copy synchronization"),
        ("cudaMemcpyFromSymbol_ptds_v7000", "copy synchronization"),
        ("cuMemcpyDtoHAsync_v2_ptsz", "copy"),
        ("cuMemcpyDtoD_v2", "copy"),
        ("cudaMemcpyPeer_v4000", "copy"),
        ("cudaMemcpyArrayToArray_v3020", "copy"),
        ("cuMemcpyBatchAsync_v2", "copy"),
        ("cuMemsetD32_v2", "copy"),
        ("cudaMemsetAsync_v3020", "copy"),
        ("cuLaunchHostFunc", ""),
        ("cuGraphAddMemcpyNode", ""),
        ("cudaGraphMemsetNodeSetParams_v10000", ""),
        ("cuStreamWaitEvent", ""),
        ("cudaGetLastError_v3020", ""),
        ("", ""),
    ],
)
def test_what_a_function_counts_as(function: str, kinds: str) -> None:
    assert meaning(function.encode()) == tuple(kinds.split())


def test_calls_of_driver_and_runtime_are_counted() -> None:
    library = Library()
    with Cupti(library).counting() as calls:
        library.call(DRIVER, "cuLaunchKernel", "add")
        library.call(RUNTIME, "cudaLaunchKernel", "mul")
        library.call(RUNTIME, "cudaLaunchKernel", "add")
        library.call(DRIVER, "cuMemcpyDtoHAsync_v2", "junk")
        library.call(RUNTIME, "cudaStreamSynchronize")
        library.call(RUNTIME, "cudaGetDevice")
        library.call(DRIVER, "cuGraphLaunch", "junk")
    library.call(DRIVER, "cuLaunchKernel", "late")
    assert calls == Calls(launches=4, synchronizations=1, copies=1, kernels={"add": None, "mul": None})
    assert library.domains == [DRIVER, RUNTIME]


def test_a_call_within_a_counted_call_is_the_same_call() -> None:
    library = Library()
    with Cupti(library).counting() as calls:
        library.call(RUNTIME, "cudaLaunchKernel", "add", lambda: library.call(DRIVER, "cuLaunchKernel", "add"))
        library.call(RUNTIME, "cudaMemcpy", None, lambda: library.call(DRIVER, "cuMemcpyHtoD_v2"))
        library.call(RUNTIME, "cudaLaunchSomethingNew", None, lambda: library.call(DRIVER, "cuLaunchKernelEx", "new"))
    assert calls == Calls(launches=2, synchronizations=1, copies=1, kernels={"add": None, "new": None})


def test_threads_are_told_apart() -> None:
    library = Library()

    def elsewhere() -> None:
        thread = threading.Thread(target=library.call, args=(DRIVER, "cuLaunchKernel", "backward"))
        thread.start()
        thread.join()

    with Cupti(library).counting() as calls:
        library.call(DRIVER, "cuStreamSynchronize", None, elsewhere)
    assert (calls.launches, calls.synchronizations) == (1, 1)


def test_each_time_is_counted_from_zero() -> None:
    library = Library()
    counter = Cupti(library)
    for _ in range(2):
        with counter.counting() as calls:
            library.call(DRIVER, "cuLaunchKernel", "add")
        assert calls.launches == 1


def test_an_error_gives_the_place_back() -> None:
    library = Library()
    with pytest.raises(ValueError), Cupti(library).counting():
        raise ValueError
    assert library.callback is None


@pytest.mark.parametrize(
    "library, why",
    [
        (Library(subscribe=39), "profiler attached?): CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED"),
        (Library(enable=7), "reports no calls: error 7"),
    ],
)
def test_where_it_cannot_be_done_the_reason_is_said(library: Library, why: str) -> None:
    with Cupti(library).counting() as calls:
        library.call(DRIVER, "cuLaunchKernel", "add")
    assert calls.unavailable.endswith(why)
    assert (calls.launches, library.callback) == (0, None)


def test_a_library_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cupti, "load", lambda: None)
    with Cupti().counting() as calls:
        pass
    assert calls.unavailable.startswith("CUPTI was not found")


def test_the_library_is_looked_for_in_wheels_and_toolkits(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    wheel = tmp_path / "site" / "nvidia" / "cu13" / "lib" / "libcupti.so.13"
    toolkit = tmp_path / "cuda" / "extras" / "CUPTI" / "lib64" / "libcupti.so"
    for path in (wheel, toolkit):
        path.parent.mkdir(parents=True)
        path.touch()
    monkeypatch.setattr(sys, "path", [str(tmp_path / "site"), ""])
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "cuda"))
    monkeypatch.delenv("CUDA_PATH", raising=False)
    assert cupti._installed() == [str(wheel), str(toolkit)]


def test_the_structure_has_the_librarys_layout() -> None:
    fields = {name: getattr(CallbackData, name).offset for name in ("functionName", "symbolName", "correlationId")}
    assert fields == {"functionName": 8, "symbolName": 32, "correlationId": 64}


# -- one call ------------------------------------------------------------------------------------------------------------


def numbers(counted: Counted) -> dict[str, float]:
    assert all((value.exact, value.unit) == (True, "count") for value in counted.values.values())
    return {name: value.value for name, value in counted.values.items()}


def test_one_call_on_the_scripted_device() -> None:
    device = FakeBackend()

    def call() -> object:
        device.kernel("softmax", 1e-6)
        device.kernel("add", 1e-6)
        device.kernel("softmax", 1e-6)
        device.synchronize()
        return device.alloc(10), device.alloc(20)

    call()
    counted = count(call, device)
    assert numbers(counted) == {"launches": 3, "synchronizations": 1, "copies": 0, "allocations": 2}
    assert (counted.kernels, counted.unavailable) == (["softmax", "add"], "")
    assert count(call, device) == counted


def test_reset_is_not_part_of_the_call() -> None:
    device = FakeBackend()
    counted = count(lambda: None, device, lambda: device.kernel("reset", 1e-6))
    assert numbers(counted) == {"launches": 0, "synchronizations": 0, "copies": 0, "allocations": 0}


def test_an_error_of_the_call_is_the_callers() -> None:
    device = FakeBackend()

    def fails() -> None:
        raise ValueError

    with pytest.raises(ValueError):
        count(fails, device)
    assert numbers(count(lambda: None, device))["launches"] == 0


@pytest.mark.parametrize(
    "backend, why",
    [(Backend(), "there is no device"), (DeviceBackend(), "this kind of device does not report its calls")],
)
def test_what_cannot_be_counted_is_left_out(backend: Backend, why: str) -> None:
    counted = count(lambda: None, backend)
    assert (counted.values, counted.kernels, counted.unavailable) == ({}, [], why)


# -- torch.compile -------------------------------------------------------------------------------------------------------


def compiled(frames: dict[int, int], breaks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    counters = {"graph_break": {"a": breaks}} if breaks else {}
    monkeypatch.setitem(
        sys.modules,
        "torch._dynamo.convert_frame",
        SimpleNamespace(FRAME_COMPILE_COUNTER=frames),
    )
    monkeypatch.setitem(sys.modules, "torch._dynamo.utils", SimpleNamespace(counters=counters))


def test_compilations_after_a_frames_first_are_recompilations(monkeypatch: pytest.MonkeyPatch) -> None:
    watch = CompileWatch()
    compiled({0: 1, 1: 4}, 2, monkeypatch)
    watch.start()
    assert watch.stop() == {}
    compiled({0: 3, 1: 4, 2: 1, 3: 2}, 7, monkeypatch)
    numbers = {name: value.value for name, value in watch.stop().items()}
    assert numbers == {"recompiles": 3, "graph_breaks": 5}


def test_without_the_compiler_there_is_nothing_to_count(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("torch._dynamo.convert_frame", "torch._dynamo.utils"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    watch = CompileWatch()
    watch.start()
    assert watch.stop() == {}


def test_real_compilations() -> None:
    torch = pytest.importorskip("torch")
    pytest.importorskip("torch._dynamo")

    def function(x: Any) -> Any:
        y = x + 1
        torch._dynamo.graph_break()
        return y * 2

    call = torch.compile(function, backend="eager")
    watch = CompileWatch()
    watch.start()
    call(torch.ones(3))
    first = {name: value.value for name, value in watch.stop().items()}
    call(torch.ones(4))  # another shape: both halves are compiled again
    second = {name: value.value for name, value in watch.stop().items()}
    assert first == {"recompiles": 0, "graph_breaks": 1}
    assert second == {"recompiles": 2, "graph_breaks": 2}


# -- a real device -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def torch() -> Any:
    module = pytest.importorskip("torch")
    module.cuda.init()
    return module


def counted_on_device(call: Callable[[], object]) -> Counted:
    from regress.measure.backend.cuda import CudaBackend

    call()
    counted = count(call, CudaBackend())
    assert counted.unavailable == ""
    return counted


@pytest.mark.gpu
def test_launches_on_a_device(torch: Any) -> None:
    x = torch.ones(1 << 20, device="cuda")
    counted = counted_on_device(lambda: x + x)
    assert numbers(counted) == {"launches": 1, "synchronizations": 0, "copies": 0, "allocations": 1}
    assert len(counted.kernels) == 1
    assert numbers(counted_on_device(lambda: (x + x).mul(2).relu()))["launches"] == 3


@pytest.mark.gpu
def test_a_hidden_synchronize_on_a_device(torch: Any) -> None:
    x = torch.ones(1 << 20, device="cuda")
    counts = numbers(counted_on_device(lambda: x[0].item()))
    assert (counts["synchronizations"], counts["copies"]) == (1, 1)


@pytest.mark.gpu
def test_work_of_another_thread_on_a_device(torch: Any) -> None:
    x = torch.ones(1 << 20, device="cuda", requires_grad=True)
    forward = numbers(counted_on_device(lambda: (x * x).sum()))["launches"]
    assert numbers(counted_on_device(lambda: (x * x).sum().backward()))["launches"] > forward


@pytest.mark.gpu
def test_a_graph_is_one_launch(torch: Any) -> None:
    x = torch.ones(1 << 20, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = (x + x).mul(2)
    counted = counted_on_device(graph.replay)
    assert (numbers(counted)["launches"], counted.kernels) == (1, [])
    assert y.shape == x.shape


@pytest.mark.gpu
def test_torchs_profiler_works_after_counting(torch: Any) -> None:
    x = torch.ones(1 << 20, device="cuda")
    counted_on_device(lambda: x + x)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA], acc_events=True) as profile:
        x + x
        torch.cuda.synchronize()
    assert any(event.device_time > 0 for event in profile.events())
