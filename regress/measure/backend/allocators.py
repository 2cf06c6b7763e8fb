"""Memory probes: what the allocator in use has handed out, in requested bytes, or the next best thing.

An allocator that reports nothing has no probe: "not known" and "nothing" are different answers. The frameworks are looked up
among the loaded modules and never imported.
"""

from __future__ import annotations

import ctypes
import os
from typing import Any, Dict, Mapping, Optional, Tuple

from .base import MemoryProbe, ReckonedMemory

POOL_USED, POOL_USED_HIGH = 7, 8
"""CU_MEMPOOL_ATTR_USED_MEM_CURRENT and _HIGH."""
UNCACHED = "PYTORCH_NO_CUDA_MEMORY_CACHING"
"""With this set, torch asks the driver for every block and keeps no count."""


def memory_probe(modules: Mapping[str, Any], driver: Any = None, device: int = 0) -> Optional[MemoryProbe]:
    """The probe for the frameworks among `modules` (`sys.modules`), or None if none can be read.

    `driver` is the loaded libcuda with a current context; without it only what frameworks report is read. torch comes first if
    it has allocated anything, then CuPy, then the driver's own pool (used by torch's cudaMallocAsync, CuPy and Warp). If no
    known framework is loaded, the device's free memory gives a lower bound.
    """
    torch, cupy, warp = (_loaded(modules, name) for name in ("torch", "cupy", "warp"))
    by_torch = torch is not None and torch.cuda.is_initialized()
    by_cupy = cupy is not None and cupy.get_default_memory_pool().total_bytes() > 0
    if by_torch and torch.cuda.get_allocator_backend() == "native" and UNCACHED not in os.environ:
        probe = TorchMemory(torch)
        if probe.allocations() or not by_cupy:
            return probe
    if by_cupy:
        return CupyMemory(cupy)
    pool = DriverPool.of(driver, device)
    if pool is not None and pool.peak() > 0:
        return pool
    if driver is None or by_torch or cupy is not None or warp is not None or "jax" in modules:
        return None  # they keep blocks for themselves: free memory would not move, and 0 would be a lie
    return FreeMemory(driver)


def _loaded(modules: Mapping[str, Any], name: str) -> Any:
    """The module, or None if it is missing or only half imported."""
    module = modules.get(name)
    return module if name == "warp" or hasattr(module, "cuda") else None


class TorchMemory(MemoryProbe):
    """Requested bytes of torch's caching allocator: allocated bytes would depend on how blocks happen to be split."""

    name = "torch"

    def __init__(self, torch: Any) -> None:
        self._cuda = torch.cuda

    def current(self) -> int:
        return self._read("requested_bytes.all.current")

    def release(self) -> None:
        self._cuda.empty_cache()

    def reset_peak(self) -> None:
        self._cuda.reset_peak_memory_stats()

    def peak(self) -> int:
        return self._read("requested_bytes.all.peak")

    def levels(self) -> Tuple[int, int]:
        # Flattening the statistics takes torch longer than reading them.
        requested = self._cuda.memory_stats_as_nested_dict().get("requested_bytes", {}).get("all", {})
        return int(requested.get("current", 0)), int(requested.get("peak", 0))

    def allocations(self) -> int:
        return self._read("allocation.all.allocated")

    def _read(self, key: str) -> int:
        return int(self._cuda.memory_stats().get(key, 0))


class CupyMemory(ReckonedMemory):
    """Requested bytes of CuPy's pool, from a memory hook: the pool itself knows only rounded sizes, and no peak.

    It sees what this thread allocates while it is open. A block from before that is given back counts with its rounded size.
    """

    name = "cupy"

    def __init__(self, cupy: Any) -> None:
        self._cupy = cupy
        super().__init__()
        self._sizes: Dict[int, int] = {}
        taken, given = self._taken, self._given

        class Hook(cupy.cuda.MemoryHook):  # type: ignore[misc]
            name = "regress"

            def malloc_postprocess(self, **facts: Any) -> None:
                taken(facts["mem_ptr"], facts["size"])

            def free_postprocess(self, **facts: Any) -> None:
                given(facts["mem_ptr"], facts["mem_size"])

        self._hook = Hook()

    def __enter__(self) -> CupyMemory:
        self._hook.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._hook.__exit__(*error)

    def _taken(self, address: int, size: int) -> None:
        if not address:  # out of memory
            return
        self._sizes[address] = size
        self.change(size)

    def _given(self, address: int, rounded: int) -> None:
        self.change(-self._sizes.pop(address, rounded))

    def release(self) -> None:
        self._cupy.get_default_memory_pool().free_all_blocks()


class DriverPool(MemoryProbe):
    """Bytes in use of the device's default memory pool, which stream-ordered allocators draw from. The driver rounds them."""

    name = "driver pool"

    def __init__(self, driver: Any, pool: ctypes.c_void_p) -> None:
        self._driver, self._pool = driver, pool

    @classmethod
    def of(cls, driver: Any, device: int) -> Optional[DriverPool]:
        """The pool of the device, or None if the driver or the device has none."""
        find = getattr(driver, "cuDeviceGetDefaultMemPool", None) if driver is not None else None
        pool = ctypes.c_void_p()
        return cls(driver, pool) if find is not None and find(ctypes.byref(pool), device) == 0 else None

    def current(self) -> int:
        return self._read(POOL_USED)

    def release(self) -> None:
        self._driver.cuMemPoolTrimTo(self._pool, ctypes.c_size_t(0))

    def reset_peak(self) -> None:
        zero = ctypes.c_uint64(0)  # the only value that a high-water mark may be set to
        self._driver.cuMemPoolSetAttribute(self._pool, POOL_USED_HIGH, ctypes.byref(zero))

    def peak(self) -> int:
        return self._read(POOL_USED_HIGH)

    def _read(self, attribute: int) -> int:
        value = ctypes.c_uint64(0)
        failed = self._driver.cuMemPoolGetAttribute(self._pool, attribute, ctypes.byref(value))
        return 0 if failed else int(value.value)


class FreeMemory(MemoryProbe):
    """What the device's free memory went down by: a lower bound, because it is read at a few moments only."""

    name = "free memory of the device (a lower bound)"
    exact = False

    def __init__(self, driver: Any) -> None:
        self._driver = driver
        self._peak = self.current()

    def current(self) -> int:
        free, total = ctypes.c_size_t(0), ctypes.c_size_t(0)
        self._driver.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total))
        return int(total.value - free.value)

    def reset_peak(self) -> None:
        self._peak = self.current()

    def peak(self) -> int:
        self._peak = max(self._peak, self.current())
        return self._peak
