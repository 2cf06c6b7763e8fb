"""torch's own events and streams, for devices whose driver is not libcuda (ROCm), and for CUDA on request.

A record costs the host more than through the driver (10.5 us against 2.3 us on an H100), and the spin does not report the
clock. The suite imports torch and may set variables for it first, so torch is imported here only when the first event is
needed. Only work that torch has put into its streams is seen.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import os
import re
import sys
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple, TypeVar, cast

from .allocators import memory_probe
from .base import DeviceBackend, DeviceError, MemoryProbe
from .frameworks import in_use

AMD_DEVICE = "/dev/kfd"
"""The compute driver of AMD devices."""
DEVICE = 0
"""The first visible one."""
STICKY = (
    "illegal memory access",
    "illegal instruction",
    "misaligned address",
    "device-side assert",
    "hardware stack error",
    "launch timed out",
    "unspecified launch failure",
    "context is destroyed",
)
"""Words of the errors after which the context is lost."""

FIRST_SPIN_CYCLES = 1_000_000
LONG_SPIN_S = 0.05
"""Spins get longer until one takes this long: by then the clocks are up, and its cycles over its time show how fast they
run."""
FLUSH_TIMES = 2
"""A flush writes this many times the L2 cache."""

Method = TypeVar("Method", bound=Callable[..., Any])


def built_for() -> Tuple[str, str]:
    """What the installed torch is built for, "hip" or "cuda", and its version; ("", "") for the CPU alone, without importing
    torch. Raises DeviceError if torch is not installed."""
    spec = importlib.util.find_spec("torch")
    if spec is None:
        raise DeviceError("torch is not installed")
    for folder in spec.submodule_search_locations or ():
        try:
            with open(os.path.join(folder, "version.py"), encoding="utf-8") as file:
                versions = dict(re.findall(r"^(hip|cuda)\b[^=\n]*=\s*['\"]([^'\"]+)", file.read(), re.MULTILINE))
        except OSError:
            continue
        return next(((kind, versions[kind]) for kind in ("hip", "cuda") if kind in versions), ("", ""))
    return "", ""


def amd_backend() -> Optional[TorchBackend]:
    """The backend of an AMD device, or None without one. Raises DeviceError if torch is not there for it."""
    if not os.path.exists(AMD_DEVICE):
        return None
    if built_for()[0] != "hip":
        raise DeviceError("there is an AMD device, but the installed torch is not built for ROCm")
    return TorchBackend()


def _answered(method: Method) -> Method:
    """The method, with torch's errors as the device's."""

    @functools.wraps(method)
    def call(*args: Any) -> Any:
        try:
            return method(*args)
        except DeviceError:
            raise
        except RuntimeError as error:
            words = str(error).partition("\n")[0]
            raise DeviceError(words, sticky=any(sign in words for sign in STICKY)) from error

    return cast(Method, call)


class TorchBackend(DeviceBackend):
    """The first device that torch sees. Raises DeviceError if torch is missing, or built for no device."""

    name = "torch"

    def __init__(self) -> None:
        if not built_for()[0]:
            raise DeviceError("the installed torch is built for the CPU only")
        self._torch: Any = None
        self._synchronize: Optional[Callable[[], None]] = None
        self._stream: Any = None
        self._events: List[Any] = []
        self._declared: Dict[int, Any] = {}
        """By handle: torch's object for a declared stream."""
        self._ends: Dict[int, Any] = {}
        """By handle: the event at its end that the current stream waits for."""
        self._flushed: Any = None
        self._cycles_hz = 0.0

    @_answered
    def _open(self) -> Any:
        """torch's device functions, with the spin calibrated; imports torch and opens its context the first time."""
        if self._torch is None:
            torch = importlib.import_module("torch")
            if not torch.cuda.is_available():
                raise DeviceError("torch sees no device (check HIP_VISIBLE_DEVICES and CUDA_VISIBLE_DEVICES)")
            self._stream = torch.cuda.current_stream(DEVICE)
            self._cycles_hz = _cycles_hz(torch.cuda)
            self._torch = torch
        return self._torch.cuda

    # -- timing ----------------------------------------------------------------------------------------------------------

    @_answered
    def synchronize(self) -> None:
        torch = _started()
        if torch is None:  # nothing has been launched
            return
        if self._synchronize is None:
            # Kept as it is now: while a `time_*` is timed, the name stands for something that does nothing.
            self._synchronize = torch.cuda.synchronize
        self._synchronize()

    @_answered
    def use_events(self, count: int) -> None:
        cuda = self._open()
        while len(self._events) < count:
            self._events.append(cuda.Event(enable_timing=True))

    @_answered
    def record(self, event: int) -> None:
        self._events[event].record(self._stream)

    @_answered
    def elapsed(self, start: int, end: int) -> float:
        return float(self._events[start].elapsed_time(self._events[end])) * 1e-3

    @_answered
    def passed(self, event: int) -> bool:
        return bool(self._events[event].query())

    @_answered
    def spin(self, seconds: float) -> None:
        cuda = self._open()
        with cuda.stream(self._stream):
            cuda._sleep(max(1, int(seconds * self._cycles_hz)))

    # -- streams and caches ----------------------------------------------------------------------------------------------

    @_answered
    def hold_stream(self, handle: Optional[int] = None) -> None:
        self._stream = self._open().current_stream(DEVICE)

    def frameworks(self) -> List[str]:
        return in_use(DEVICE)

    def stream_handle(self, stream: Any) -> int:
        handle = getattr(stream, "cuda_stream", stream)
        return handle if isinstance(handle, int) else super().stream_handle(stream)

    @_answered
    def fork(self, event: int, streams: Sequence[int]) -> None:
        for handle in streams:
            self._by_handle(handle).wait_event(self._events[event])

    @_answered
    def join(self, streams: Sequence[int]) -> None:
        cuda = self._open()
        for handle in streams:
            if handle not in self._ends:
                self._ends[handle] = cuda.Event()
            self._ends[handle].record(self._by_handle(handle))
            self._stream.wait_event(self._ends[handle])

    def _by_handle(self, handle: int) -> Any:
        if handle not in self._declared:
            self._declared[handle] = self._open().ExternalStream(handle, device=DEVICE)
        return self._declared[handle]

    @_answered
    def flush(self) -> None:
        cuda = self._open()
        if self._flushed is None:
            size = FLUSH_TIMES * cuda.get_device_properties(DEVICE).L2_cache_size
            self._flushed = self._torch.empty(size, dtype=self._torch.uint8, device=f"cuda:{DEVICE}")
        with cuda.stream(self._stream):
            self._flushed.zero_()

    @_answered
    def idle(self) -> bool:
        torch = _started()
        return torch is None or bool(torch.cuda.current_stream(DEVICE).query())

    # -- facts and memory ------------------------------------------------------------------------------------------------

    def facts(self) -> Dict[str, Any]:
        """Empty until torch has opened the device, which nothing else that is always available can identify."""
        torch = _started()
        if torch is None:
            return {}
        properties = torch.cuda.get_device_properties(DEVICE)
        facts = {"gpu": properties.name}
        if hasattr(properties, "uuid"):
            facts["gpu_uuid"] = f"GPU-{properties.uuid}"
        if torch.version.hip:
            facts["hip"] = torch.version.hip
        return facts

    def memory(self) -> Optional[MemoryProbe]:
        return memory_probe(sys.modules)


def _started() -> Any:
    """torch, if it is loaded and has opened the device; else None."""
    torch: Any = sys.modules.get("torch")
    cuda = getattr(torch, "cuda", None)
    return torch if cuda is not None and cuda.is_initialized() else None


def _cycles_hz(cuda: Any) -> float:
    """Cycles a second of the spin, from one that is long enough."""
    start, end = (cuda.Event(enable_timing=True) for _ in range(2))
    cycles, seconds = FIRST_SPIN_CYCLES // 2, 0.0
    while seconds < LONG_SPIN_S:
        cycles *= 2
        start.record()
        cuda._sleep(cycles)
        end.record()
        cuda.synchronize()
        seconds = start.elapsed_time(end) * 1e-3
    return cycles / seconds
