"""What a device does at most: bytes a second of a large copy, floating point operations a second of a large matrix product.

Data sheets name figures that no kernel reaches; what the vendor's own copy and matrix product reach on this very card, with its
clocks and its power limit, is what a benchmark's declared work can be compared with. torch measures them, or CuPy where there
is no torch.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import os
from typing import Any, Callable, Iterator, List, Optional

from .backend import Backend, DeviceBackend
from .calibration import calibrate
from .failures import failure_of
from .loop import DeviceLoop
from .wire import Ceilings, Failure, Protocol

Call = Callable[[], object]

COPY_BYTES = 1 << 30
"""Far more than any cache holds."""
LEAST_COPY_BYTES = 256 << 20
MATRIX_SIZES = (8192, 4096, 2048)
MATRICES = 3
"""Of a product: two factors and the result."""
MEMORY_SHARE = 0.5
"""Of the free memory that a measurement may take."""
FLOAT32_BYTES = 4
ROUNDS = 3
PROTOCOL = Protocol("gpu_time", samples_min=5, samples_max=5)
WARMUP_S = 1.0
AMPERE = (8, 0)
"""First compute capability with TF32, and with bfloat16 in hardware."""


def measure(backend: Backend, peer: bool = False) -> Ceilings:
    """The ceilings of the backend's device, with `peer` of copies to the next one too. Where they cannot be measured,
    `failure` says why, beside what was."""
    if not isinstance(backend, DeviceBackend):
        return Ceilings(failure=Failure("skipped", backend.why_no_device))
    if backend.name == "fake":
        return Ceilings(failure=Failure("skipped", "the device is scripted: it copies and multiplies nothing"))
    copy, products, peer_bytes_s = 0.0, {}, 0.0
    try:
        library = _library()
        if library is None:
            return Ceilings(failure=Failure("skipped", "neither torch nor CuPy is there to measure it with"))
        library.open()
        calibrate(backend)
        copy = _copy(library, backend)
        for dtype in library.dtypes():
            products[dtype] = _matmul(library, dtype, backend)
        if peer and library.devices() > 1:
            peer_bytes_s = _peer(library, backend)
    except (
        Exception
    ) as error:  # out of memory, a driver too old, a broken installation: all are reasons, none is a crash
        return Ceilings(copy, products, failure_of(error, []), peer_bytes_s)
    return Ceilings(copy, products, peer_bytes_s=peer_bytes_s)


def copy_bytes(free: int) -> int:
    """Bytes to copy on a device with this many free. Raises MemoryError if a copy would fit into a cache."""
    size = min(COPY_BYTES, int(MEMORY_SHARE * free) // 2)
    if size < LEAST_COPY_BYTES:
        raise MemoryError(f"only {free >> 20} MiB of device memory are free: too few for a copy that no cache holds")
    return size


def matrix_size(free: int) -> int:
    """Rows and columns of the float32 matrices to multiply on a device with this many bytes free. Raises MemoryError."""
    for size in MATRIX_SIZES:
        if MATRICES * FLOAT32_BYTES * size**2 <= MEMORY_SHARE * free:
            return size
    raise MemoryError(f"only {free >> 20} MiB of device memory are free: too few for a large matrix product")


def _copy(library: _Library, backend: DeviceBackend) -> float:
    size = copy_bytes(library.free_bytes())
    with library.copying(size) as call:
        return 2 * size / best_s(call, backend)  # each byte is read and written


def _peer(library: _Library, backend: DeviceBackend) -> float:
    size = copy_bytes(library.free_bytes())
    with library.copying(size, to=1) as call:
        return size / best_s(call, backend)


def _matmul(library: _Library, dtype: str, backend: DeviceBackend) -> float:
    size = matrix_size(library.free_bytes())
    with library.multiplying(dtype, size) as call:
        return 2 * size**3 / best_s(call, backend)  # a multiplication and an addition each


def best_s(call: Call, backend: DeviceBackend) -> float:
    """Device seconds of the call in the best of a few rounds: a ceiling is what was reached, not what is usual.

    Raises RuntimeError if the queue could not be kept full."""
    loop = DeviceLoop(call, backend)
    loop.warm_up(WARMUP_S)
    rounds = [loop.sample(PROTOCOL) for _ in range(ROUNDS)]
    values = [samples.value(backend.clock_step_s) for samples in rounds if samples is not None and samples.device]
    if not values:
        raise RuntimeError("the host is too slow to keep the device's queue full")
    return min(values)


# -- libraries -----------------------------------------------------------------------------------------------------------


class _Library:
    """What measuring needs of an array library. Arrays live as long as the context that made them."""

    def __init__(self, module: Any) -> None:
        self._module = module

    def open(self) -> None:
        """Let the library open its context on the device, before ours is asked for."""
        raise NotImplementedError

    def free_bytes(self) -> int:
        raise NotImplementedError

    def dtypes(self) -> List[str]:
        """Kinds of matrix product that the device has hardware for."""
        raise NotImplementedError

    def devices(self) -> int:
        """How many it can copy between."""
        return 1

    def copying(self, size: int, to: int = 0) -> contextlib.AbstractContextManager[Call]:
        """A copy of this many bytes from device memory to that of the device of this number; the first one is the own."""
        raise NotImplementedError

    def multiplying(self, dtype: str, size: int) -> contextlib.AbstractContextManager[Call]:
        """The product of two square matrices, into a third that is there already."""
        raise NotImplementedError


def _library() -> Optional[_Library]:
    """torch, or else CuPy; None if neither is installed, or is built for the device."""
    if importlib.util.find_spec("torch") is not None:
        torch = importlib.import_module("torch")
        if torch.cuda.is_available():
            return _Torch(torch)
    if importlib.util.find_spec("cupy") is not None:
        return _CuPy(importlib.import_module("cupy"))
    return None


class _Torch(_Library):
    def open(self) -> None:
        self._module.zeros(1, device="cuda")

    def free_bytes(self) -> int:
        self._module.cuda.empty_cache()
        return int(self._module.cuda.mem_get_info()[0])

    def dtypes(self) -> List[str]:
        dtypes = ["float32", "float16"]
        return [*dtypes, "tf32", "bfloat16"] if self._module.cuda.get_device_capability() >= AMPERE else dtypes

    def devices(self) -> int:
        return int(self._module.cuda.device_count())

    @contextlib.contextmanager
    def copying(self, size: int, to: int = 0) -> Iterator[Call]:
        source = self._module.zeros(size // FLOAT32_BYTES, device="cuda")
        target = self._module.empty_like(source, device=f"cuda:{to}")
        yield lambda: target.copy_(source)

    @contextlib.contextmanager
    def multiplying(self, dtype: str, size: int) -> Iterator[Call]:
        torch = self._module
        kind = getattr(torch, "float32" if dtype == "tf32" else dtype)
        # Random, because the power that zeros save buys a higher clock than any real product has.
        left, right = (torch.randn(size, size, device="cuda", dtype=kind) for _ in range(2))
        result = torch.empty_like(left)
        # This one switch keeps torch's old flags for TF32 and its new ones in step; set apart, reading the other raises.
        before = torch.get_float32_matmul_precision()
        torch.set_float32_matmul_precision("high" if dtype == "tf32" else "highest")
        try:
            yield lambda: torch.mm(left, right, out=result)
        finally:
            torch.set_float32_matmul_precision(before)


class _CuPy(_Library):
    def open(self) -> None:
        self._module.zeros(1)

    def free_bytes(self) -> int:
        self._module.get_default_memory_pool().free_all_blocks()
        return int(self._module.cuda.runtime.memGetInfo()[0])

    def dtypes(self) -> List[str]:
        # CuPy has no bfloat16 of its own, and reads its switch for TF32 from the environment, once.
        return ["tf32" if os.environ.get("CUPY_TF32") == "1" else "float32", "float16"]

    @contextlib.contextmanager
    def copying(self, size: int, to: int = 0) -> Iterator[Call]:
        source = self._module.zeros(size // FLOAT32_BYTES, dtype="float32")
        target = self._module.empty_like(source)
        yield lambda: self._module.copyto(target, source)

    @contextlib.contextmanager
    def multiplying(self, dtype: str, size: int) -> Iterator[Call]:
        cupy = self._module
        kind = "float32" if dtype == "tf32" else dtype
        left, right = (cupy.random.standard_normal((size, size), dtype="float32").astype(kind) for _ in range(2))
        result = cupy.empty_like(left)
        yield lambda: cupy.matmul(left, right, out=result)
