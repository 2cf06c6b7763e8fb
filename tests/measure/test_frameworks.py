from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from regress.measure.backend import frameworks
from regress.measure.backend.frameworks import (
    QuietSynchronizes,
    current_stream,
    in_use,
    really,
    stream_reader,
)

Load = Callable[..., ModuleType]


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Load:
    """Puts a module with these members among the loaded ones, and into its package."""

    def add(name: str, **members: Any) -> ModuleType:
        module = ModuleType(name)
        for key, value in members.items():
            setattr(module, key, value)
        package, _, last = name.rpartition(".")
        if package in sys.modules:
            monkeypatch.setattr(sys.modules[package], last, module, raising=False)
        monkeypatch.setitem(sys.modules, name, module)
        return module

    return add


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """No framework is loaded, whatever other tests have done."""
    for name in ("torch", "cupy", "numba.cuda.cudadrv.driver", "warp"):
        monkeypatch.delitem(sys.modules, name, raising=False)


def torch_with(load: Load, stream: int, initialized: bool = True) -> ModuleType:
    cuda = SimpleNamespace(is_initialized=lambda: initialized)
    return load("torch", cuda=cuda, _C=SimpleNamespace(_cuda_getCurrentRawStream=lambda device: stream + device))


def cupy_with(load: Load, stream: int, pooled: int = 0) -> ModuleType:
    cuda = SimpleNamespace(get_current_stream=lambda: SimpleNamespace(ptr=stream))
    pool = SimpleNamespace(total_bytes=lambda: pooled)
    return load("cupy", cuda=cuda, get_default_memory_pool=lambda: pool)


def warp_with(load: Load, stream: int | None, started: bool = True) -> None:
    handle = SimpleNamespace(cuda_stream=stream)
    load("warp", is_cuda_available=lambda: True, get_stream=lambda name: handle)
    load("warp.context", runtime=object() if started else None)


# -- streams -------------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("alone")
def test_without_a_framework_it_is_the_default_stream() -> None:
    assert (current_stream(), in_use()) == (0, [])


def test_torchs_current_stream_of_the_device(load: Load) -> None:
    torch_with(load, 100)
    assert (current_stream(), current_stream(2), in_use()) == (100, 102, ["torch"])


def test_a_torch_without_the_raw_handle_is_asked_for_the_object(load: Load) -> None:
    torch = torch_with(load, 100)
    torch.cuda.current_stream = lambda device: SimpleNamespace(cuda_stream=300)
    del torch._C._cuda_getCurrentRawStream
    assert current_stream() == 300


@pytest.mark.usefixtures("alone")
def test_a_framework_that_has_opened_no_context_is_not_asked(load: Load) -> None:
    torch_with(load, 100, initialized=False)
    cupy_with(load, 0)
    warp_with(load, 400, started=False)
    load("numba", config=SimpleNamespace(CUDA_PER_THREAD_DEFAULT_STREAM=1))
    load("numba.cuda.cudadrv.driver", driver=SimpleNamespace(is_initialized=False))
    assert (current_stream(), in_use()) == (0, [])


def test_torch_comes_first(load: Load) -> None:
    torch_with(load, 100)
    cupy_with(load, 200, pooled=512)
    assert (current_stream(), in_use()) == (100, ["torch", "cupy"])


@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize("stream, pooled", [(200, 0), (0, 512), (200, 512)])
def test_cupy_is_in_use_with_a_stream_or_memory_of_its_own(load: Load, stream: int, pooled: int) -> None:
    cupy_with(load, stream, pooled)
    assert (current_stream(), in_use()) == (stream, ["cupy"])


@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize("per_thread, handle", [(0, 0), (1, frameworks.PER_THREAD_STREAM)])
def test_numba_has_no_current_stream_but_two_default_ones(load: Load, per_thread: int, handle: int) -> None:
    load("numba", config=SimpleNamespace(CUDA_PER_THREAD_DEFAULT_STREAM=per_thread))
    load("numba.cuda.cudadrv.driver", driver=SimpleNamespace(is_initialized=True))
    assert (current_stream(), in_use()) == (handle, ["numba"])


@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize("stream, handle", [(400, 400), (None, 0)])
def test_warps_stream(load: Load, stream: int | None, handle: int) -> None:
    warp_with(load, stream)
    assert (current_stream(), in_use()) == (handle, ["warp"])


def test_the_reader_follows_the_stream_without_looking_for_frameworks_again(load: Load) -> None:
    streams = [7, 8]
    torch = torch_with(load, 0)
    torch._C._cuda_getCurrentRawStream = lambda device: streams.pop(0)
    read = stream_reader()
    torch.cuda.is_initialized = lambda: pytest.fail("asked again")
    assert (read(), read()) == (7, 8)


def test_cpu_torch_opens_nothing() -> None:
    torch = pytest.importorskip("torch")
    if torch.version.cuda is None:
        assert (current_stream(), in_use(), torch.cuda.is_initialized()) == (0, [], False)


# -- synchronizes --------------------------------------------------------------------------------------------------------


class Base:
    """A stream class whose method its children inherit."""

    def synchronize(self) -> str:
        return "waited"


class Child(Base):
    pass


def test_real_torch_becomes_quiet_and_is_put_back() -> None:
    torch = pytest.importorskip("torch")
    before = torch.cuda.synchronize, torch.cuda.Stream.synchronize, torch.accelerator.synchronize
    with QuietSynchronizes() as quiet:
        assert torch.cuda.synchronize() is None  # where there is no device it would raise
        torch.cuda.synchronize(device=0)
        torch.cuda.Stream.synchronize(object())
        torch.accelerator.synchronize()
    assert quiet.count == 4
    assert quiet.calls == [
        "torch.cuda.synchronize",
        "torch.cuda.synchronize",
        "torch.cuda.Stream.synchronize",
        "torch.accelerator.synchronize",
    ]
    assert (torch.cuda.synchronize, torch.cuda.Stream.synchronize, torch.accelerator.synchronize) == before


def test_a_name_that_another_module_imported_is_quiet_too(load: Load) -> None:
    def wait() -> str:
        return "waited"

    load("warp", synchronize=wait)
    suite = load("some_suite", wait_for_it=wait, other=len)
    load("same_suite_by_another_name")
    sys.modules["same_suite_by_another_name"] = suite
    with QuietSynchronizes() as quiet:
        assert suite.wait_for_it() is None
    assert quiet.calls == ["warp.synchronize"]
    assert suite.wait_for_it is wait


def test_the_hook_stands_in_for_the_call(load: Load) -> None:
    load("warp", synchronize_device=lambda name, deep=False: (name, deep))
    warp = sys.modules["warp"]
    seen = []

    def hook(name: str, original: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        seen.append((name, args, kwargs))
        return really(name, original, args, kwargs)

    with QuietSynchronizes(hook) as quiet:
        assert warp.synchronize_device("cuda:0", deep=True) == ("cuda:0", True)
    assert seen == [("warp.synchronize_device", ("cuda:0",), {"deep": True})]
    assert quiet.count == 1


def test_an_inherited_method_leaves_no_trace(load: Load) -> None:
    load("cupy")
    load("cupy.cuda", Stream=Child)
    with QuietSynchronizes(really) as quiet:
        assert Child().synchronize() == "waited"
        assert Base().synchronize() == "waited"
    assert quiet.calls == ["cupy.cuda.Stream.synchronize"]
    assert "synchronize" not in vars(Child)


def test_an_exception_puts_everything_back(load: Load) -> None:
    warp = load("warp", synchronize=len)
    with pytest.raises(ValueError), QuietSynchronizes():
        raise ValueError
    assert warp.synchronize is len


def test_a_subclass_stands_in_for_a_type_written_in_c(load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    """As CuPy's Device is; deque.clear plays the part of its synchronize."""
    monkeypatch.setattr(frameworks, "SYNCHRONIZES", (("c_types", "deque.clear"),))
    c_types, suite = load("c_types", deque=deque), load("some_suite", Device=deque)
    made_before = deque([1])
    with QuietSynchronizes() as quiet:
        for kind in (c_types.deque, suite.Device):
            made = kind([1, 2])
            assert made.clear() is None
            assert list(made) == [1, 2]
            assert isinstance(made, deque)
            assert isinstance(made_before, kind)
        made_before.clear()
    assert quiet.calls == ["c_types.deque.clear"] * 2, "the object from before has really been cleared"
    assert not made_before
    assert c_types.deque is suite.Device is deque


def test_a_subclass_can_do_what_the_type_does(load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frameworks, "SYNCHRONIZES", (("c_types", "deque.clear"),))
    c_types = load("c_types", deque=deque)
    with QuietSynchronizes(really) as quiet:
        made = c_types.deque([1])
        made.clear()
    assert not made
    assert quiet.count == 1


def test_a_type_that_cannot_be_inherited_from_is_left_out(load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frameworks, "SYNCHRONIZES", (("c_types", "range.index"),))
    c_types = load("c_types", range=range)
    with QuietSynchronizes() as quiet:
        assert c_types.range(3).index(2) == 2
    assert quiet.count == 0


def test_what_is_not_loaded_is_not_imported() -> None:
    before = set(sys.modules)
    with QuietSynchronizes():
        pass
    assert set(sys.modules) == before
