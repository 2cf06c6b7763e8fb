"""Ceilings of a device, with a library whose costs are scripted, and torch's own calls on the CPU."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from regress.measure import ceilings
from regress.measure.backend import Backend
from regress.measure.backend.fake import FakeBackend
from regress.measure.blocks import DeviceSamples
from regress.measure.ceilings import copy_bytes, matrix_size, measure
from regress.measure.wire import Ceilings, decode, encode

GIB = 1 << 30
COPY_S, PEER_S = 1e-3, 3e-3
PRODUCT_S = {"float32": 22e-3, "tf32": 3e-3, "bfloat16": 1.5e-3}


class Scripted(FakeBackend):
    """A scripted device that a library can compute on."""

    name = "cuda"


class Library(ceilings._Library):
    """Its copies and products cost what the script says."""

    def __init__(
        self, device: Scripted, free: int = 80 * GIB, broken: str = "", waits: bool = False, devices: int = 1
    ) -> None:
        self._device, self._free, self._broken, self._waits = device, free, broken, waits
        self._devices = devices
        self.asked: list[tuple[str, int]] = []

    def open(self) -> None: ...

    def free_bytes(self) -> int:
        return self._free

    def devices(self) -> int:
        return self._devices

    def dtypes(self) -> list[str]:
        return list(PRODUCT_S)

    @contextlib.contextmanager
    def copying(self, size: int, to: int = 0) -> Iterator[Callable[[], object]]:
        self.asked.append(("peer" if to else "copy", size))
        yield lambda: self._run(PEER_S if to else COPY_S)

    @contextlib.contextmanager
    def multiplying(self, dtype: str, size: int) -> Iterator[Callable[[], object]]:
        self.asked.append((dtype, size))
        if dtype == self._broken:
            raise RuntimeError("CUBLAS_STATUS_NOT_SUPPORTED")
        yield lambda: self._run(PRODUCT_S[dtype])

    def _run(self, seconds: float) -> None:
        self._device.kernel("k", seconds)
        if self._waits:
            self._device.synchronize()


def measured(monkeypatch: pytest.MonkeyPatch, peer: bool = False, **script: Any) -> tuple[Ceilings, Library]:
    device = Scripted()
    library = Library(device, **script)
    monkeypatch.setattr(ceilings, "_library", lambda: library)
    return measure(device, peer), library


def test_work_over_time_of_a_copy_and_of_each_product(monkeypatch: pytest.MonkeyPatch) -> None:
    limits, library = measured(monkeypatch)
    assert limits.failure is None
    assert limits.copy_bytes_s == pytest.approx(2 * GIB / COPY_S, rel=0.02), "read and written"
    for dtype, seconds in PRODUCT_S.items():
        assert limits.matmul_flops_s[dtype] == pytest.approx(2 * 8192**3 / seconds, rel=0.02)
    assert library.asked == [("copy", GIB), *((dtype, 8192) for dtype in PRODUCT_S)]
    assert decode(encode(limits)) == limits


def test_a_copy_to_another_device_is_measured_where_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    limits, library = measured(monkeypatch, devices=2)
    assert not limits.peer_bytes_s
    assert "peer" not in dict(library.asked), "nobody has locked the other one"
    limits, library = measured(monkeypatch, peer=True, devices=2)
    assert limits.peer_bytes_s == pytest.approx(GIB / PEER_S, rel=0.02)
    assert library.asked[-1] == ("peer", GIB)


def test_a_ceiling_is_the_best_of_the_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    device = Scripted()
    values = iter([3e-3, 1e-3, 2e-3])
    monkeypatch.setattr(DeviceSamples, "value", lambda self, step: next(values))
    assert ceilings.best_s(lambda: device.kernel("k", 1e-3), device) == 1e-3


def test_what_was_measured_before_a_failure_is_kept_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    limits, _ = measured(monkeypatch, broken="tf32")
    assert limits.copy_bytes_s > 0
    assert list(limits.matmul_flops_s) == ["float32"]
    assert limits.failure is not None
    assert limits.failure.message == "RuntimeError: CUBLAS_STATUS_NOT_SUPPORTED"


@pytest.mark.parametrize(
    ("script", "said"), [({"free": 500 << 20}, "only 500 MiB"), ({"waits": True}, "too slow to keep")]
)
def test_what_cannot_be_measured_has_a_reason(monkeypatch: pytest.MonkeyPatch, script: Any, said: str) -> None:
    limits, _ = measured(monkeypatch, **script)
    assert (limits.copy_bytes_s, limits.matmul_flops_s) == (0.0, {})
    assert limits.failure is not None
    assert said in limits.failure.message


def test_no_device_no_library_and_a_scripted_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ceilings, "_library", lambda: None)
    reasons = [measure(backend).failure for backend in (Backend(), FakeBackend(), Scripted())]
    assert [reason.kind if reason else "" for reason in reasons] == ["skipped"] * 3
    said = [reason.message if reason else "" for reason in reasons]
    assert said[0] == Backend().why_no_device
    assert "scripted" in said[1]
    assert "neither torch nor CuPy" in said[2]


def test_sizes_follow_the_free_memory() -> None:
    assert (copy_bytes(80 * GIB), copy_bytes(2 * GIB)) == (GIB, GIB // 2)
    assert [matrix_size(free) for free in (80 * GIB, 1 * GIB, GIB // 4)] == [8192, 4096, 2048]
    for choose in (copy_bytes, matrix_size):
        with pytest.raises(MemoryError, match="only 64 MiB of device memory are free"):
            choose(64 << 20)


@pytest.mark.parametrize("before", ["highest", "high", "medium"])
def test_torchs_precision_is_set_for_the_product_and_put_back(before: str) -> None:
    torch = pytest.importorskip("torch")
    on_cpu = SimpleNamespace(
        float32=torch.float32,
        randn=lambda rows, columns, device, dtype: torch.randn(rows, columns, dtype=dtype),
        empty_like=torch.empty_like,
        mm=torch.mm,
        get_float32_matmul_precision=torch.get_float32_matmul_precision,
        set_float32_matmul_precision=torch.set_float32_matmul_precision,
    )
    library, original = ceilings._Torch(on_cpu), torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(before)
    try:
        for dtype, expected in (("float32", "highest"), ("tf32", "high")):
            with library.multiplying(dtype, 8) as call:
                assert torch.get_float32_matmul_precision() == expected
                result: Any = call()
                assert result.shape == (8, 8)
            assert torch.get_float32_matmul_precision() == before
        with pytest.raises(KeyError), library.multiplying("tf32", 8):
            raise KeyError
        assert torch.get_float32_matmul_precision() == before
    finally:
        torch.set_float32_matmul_precision(original)


@pytest.mark.gpu
def test_a_real_device_copies_and_multiplies() -> None:
    torch = pytest.importorskip("torch")
    from regress.measure.backend import choose

    precision = torch.get_float32_matmul_precision()
    limits = measure(choose("cuda"))
    assert limits.failure is None
    assert 5e10 < limits.copy_bytes_s < 2e13
    products = limits.matmul_flops_s
    assert {"float32", "float16"} <= set(products)
    assert products["float16"] > products["float32"] > 1e11
    if "tf32" in products:
        assert products["tf32"] > 2 * products["float32"], "the flag does what it says"
    assert torch.get_float32_matmul_precision() == precision
