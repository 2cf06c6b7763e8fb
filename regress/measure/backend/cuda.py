"""CUDA through the driver API, called with ctypes: nothing to install, and every framework that can name its stream works.

A record costs the host a few microseconds less than through a framework's event objects, and the spin kernel reports the SM
clock of the very moment of measuring: it watches `%globaltimer` (nanoseconds) and counts `%clock64` (SM cycles).
"""

from __future__ import annotations

import contextlib
import ctypes
import sys
import threading
from typing import Any, Callable, ContextManager, Dict, Iterator, List, Optional, Sequence

from .activity import CuptiTracer
from .allocators import memory_probe
from .base import Calls, DeviceBackend, DeviceError, MemoryProbe, Tracer
from .cupti import Cupti
from .frameworks import DEFAULT_STREAM, current_stream, in_use, stream_reader
from .nvml import Foreign, Nvml

SPIN_PTX = b"""
.version 6.0
.target sm_50
.address_size 64
.visible .entry regress_spin(.param .u64 nanoseconds, .param .u64 out)
{
    .reg .pred %p;
    .reg .u64 %n, %o, %t0, %t1, %c0, %c1, %d;
    ld.param.u64 %n, [nanoseconds];
    ld.param.u64 %o, [out];
    mov.u64 %c0, %clock64;
    mov.u64 %t0, %globaltimer;
again:
    mov.u64 %t1, %globaltimer;
    sub.u64 %d, %t1, %t0;
    setp.lt.u64 %p, %d, %n;
    @%p bra again;
    mov.u64 %c1, %clock64;
    sub.u64 %c1, %c1, %c0;
    st.global.u64 [%o], %c1;
    st.global.u64 [%o+8], %d;
    ret;
}
"""

SPIN_SLOTS = 64
"""Spins whose clock is kept until it is read; later ones overwrite the first."""

NO_DEVICE, NOT_READY = 100, 600
STICKY = {700, 702, 709, 710, 714, 715, 716, 717, 718, 719}
"""Errors after which the context is lost: illegal address, launch timeout, assert, hardware stack, ..."""

HERE: ContextManager[object] = contextlib.nullcontext()

UUID_BYTES = 16
CLOCK_RATE, MULTIPROCESSORS, MEMORY_CLOCK_RATE, MEMORY_BUS_WIDTH, L2_CACHE_SIZE = 13, 16, 36, 37, 38
"""CU_DEVICE_ATTRIBUTE_...; clocks in kHz, the width in bits."""
CAPABILITY = (75, 76)
"""CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR and _MINOR"""
FLOAT32_LANES = {(6, 0): 64, (7, 0): 64, (7, 2): 64, (7, 5): 64, (8, 0): 64}
"""Of a multiprocessor, by compute capability; 128 in all others since 5.0. Source: CUDA C++ Programming Guide, arithmetic
instructions."""
RELAXED = 2
"""CU_STREAM_CAPTURE_MODE_RELAXED"""
FLUSH_TIMES = 2
"""A flush writes this many times the L2 cache."""


class _Attached(threading.local):
    attached = False
    """Whether the thread has a context."""


class CudaBackend(DeviceBackend):
    """The first visible CUDA device, in its primary context, which the frameworks use too."""

    name = "cuda"

    def __init__(self, ordinal: int = 0) -> None:
        self._events: List[ctypes.c_void_p] = []
        self._ends: Dict[int, ctypes.c_void_p] = {}
        """By declared stream: the event at its end that the current stream waits for."""
        self._flushed: Optional[ctypes.c_void_p] = None
        self._spins = 0
        self._context: Optional[ctypes.c_void_p] = None
        self._stream = ctypes.c_void_p(DEFAULT_STREAM)
        self._streams: Dict[int, ctypes.c_void_p] = {}
        self._threads = _Attached()
        # Made once: the profiler asks for them at every entry.
        self._elapsed_ms, self._capture_status = ctypes.c_float(), ctypes.c_int()
        self._elapsed_at, self._capture_at = ctypes.byref(self._elapsed_ms), ctypes.byref(self._capture_status)
        try:
            self._cuda = ctypes.CDLL("libcuda.so.1")
        except OSError:
            raise DeviceError("no CUDA driver: libcuda.so.1 cannot be loaded") from None
        self.shown = self._visible()
        """How many devices the driver shows."""
        if self.shown <= ordinal:
            raise DeviceError("the CUDA driver sees no device (check CUDA_VISIBLE_DEVICES)")
        self._device = ctypes.c_int()
        self._call("cuDeviceGet", ctypes.byref(self._device), ordinal)
        self._nvml, self._cupti = Nvml(self._uuid()), Cupti()

    # -- the driver ------------------------------------------------------------------------------------------------------

    def _visible(self) -> int:
        """How many devices the driver shows; where CUDA_VISIBLE_DEVICES hides all of them, it does not even start."""
        code = self._cuda.cuInit(0)
        if code == NO_DEVICE:
            return 0
        if code:
            raise self._error("cuInit", code)
        count = ctypes.c_int()
        self._call("cuDeviceGetCount", ctypes.byref(count))
        return count.value

    def _call(self, function: str, *arguments: Any) -> None:
        code = getattr(self._cuda, function)(*arguments)
        if code:
            raise self._error(function, code)

    def _error(self, function: str, code: int) -> DeviceError:
        name, text = ctypes.c_char_p(), ctypes.c_char_p()
        self._cuda.cuGetErrorName(code, ctypes.byref(name))
        self._cuda.cuGetErrorString(code, ctypes.byref(text))
        words = f"{(name.value or b'?').decode()} ({(text.value or b'').decode()}) from {function}"
        return DeviceError(words, sticky=code in STICKY)

    def _open(self) -> None:
        """Make the primary context current in this thread and load the spin kernel. Not in __init__, so checking for a device
        opens no context."""
        if self._context is not None:
            return
        context = ctypes.c_void_p()
        self._call("cuDevicePrimaryCtxRetain", ctypes.byref(context), self._device)
        self._call("cuCtxSetCurrent", context)
        module, spin = ctypes.c_void_p(), ctypes.c_void_p()
        self._call("cuModuleLoadData", ctypes.byref(module), ctypes.c_char_p(SPIN_PTX))
        self._call("cuModuleGetFunction", ctypes.byref(spin), module, b"regress_spin")
        out = ctypes.c_void_p()
        device_mapped = 2
        self._call("cuMemHostAlloc", ctypes.byref(out), ctypes.c_size_t(16 * SPIN_SLOTS), device_mapped)
        self._context, self._spin = context, spin
        assert out.value is not None
        self._out = out.value
        self._clocks = (ctypes.c_uint64 * (2 * SPIN_SLOTS)).from_address(out.value)

    # -- timing ----------------------------------------------------------------------------------------------------------

    def synchronize(self) -> None:
        current = ctypes.c_void_p()
        self._call("cuCtxGetCurrent", ctypes.byref(current))
        if current.value:  # without a context nothing has been launched
            self._call("cuCtxSynchronize")

    def use_events(self, count: int) -> None:
        self._open()
        while len(self._events) < count:
            self._events.append(self._new_event())

    def _new_event(self) -> ctypes.c_void_p:
        event = ctypes.c_void_p()
        self._call("cuEventCreate", ctypes.byref(event), 0)
        return event

    def record(self, event: int) -> None:
        code = self._cuda.cuEventRecord(self._events[event], self._stream)
        if code:
            raise self._error("cuEventRecord", code)

    def elapsed(self, start: int, end: int) -> float:
        code = self._cuda.cuEventElapsedTime(self._elapsed_at, self._events[start], self._events[end])
        if code:
            raise self._error("cuEventElapsedTime", code)
        return self._elapsed_ms.value * 1e-3

    def passed(self, event: int) -> bool:
        code = self._cuda.cuEventQuery(self._events[event])
        if code and code != NOT_READY:
            raise self._error("cuEventQuery", code)
        return bool(code == 0)

    def spin(self, seconds: float) -> None:
        self._open()
        nanoseconds = ctypes.c_uint64(int(seconds * 1e9))
        out = ctypes.c_uint64(self._out + 16 * (self._spins % SPIN_SLOTS))
        self._spins += 1
        arguments = (ctypes.c_void_p * 2)(
            ctypes.cast(ctypes.byref(nanoseconds), ctypes.c_void_p), ctypes.cast(ctypes.byref(out), ctypes.c_void_p)
        )
        self._call("cuLaunchKernel", self._spin, 1, 1, 1, 1, 1, 1, 0, self._stream, arguments, None)

    def clocks_hz(self) -> List[float]:
        if self._context is None:
            return []
        count, self._spins = min(self._spins, SPIN_SLOTS), 0
        pairs = [(self._clocks[2 * slot], self._clocks[2 * slot + 1]) for slot in range(count)]
        return [cycles / (nanoseconds * 1e-9) for cycles, nanoseconds in pairs if nanoseconds]

    # -- streams and caches ----------------------------------------------------------------------------------------------

    def hold_stream(self, handle: Optional[int] = None) -> None:
        if handle is None:
            handle = current_stream(self._device.value)
        if handle not in self._streams:
            self._streams[handle] = ctypes.c_void_p(handle)
        self._stream = self._streams[handle]

    def stream_reader(self) -> Callable[[], int]:
        return stream_reader(self._device.value)

    def frameworks(self) -> List[str]:
        return in_use(self._device.value)

    def here(self) -> ContextManager[object]:
        if self.shown == 1 and self._threads.attached:
            return HERE
        return self._as_current()

    @contextlib.contextmanager
    def _as_current(self) -> Iterator[None]:
        before = ctypes.c_void_p()
        self._call("cuCtxGetCurrent", ctypes.byref(before))
        self._open()
        self._call("cuCtxSetCurrent", self._context)
        self._threads.attached = True
        try:
            yield
        finally:
            if before.value:  # a thread without a context may keep this one
                self._call("cuCtxSetCurrent", before)

    def capturing(self) -> bool:
        # An error means that the default stream is asked about while another one is captured: it must be left alone too.
        code = self._cuda.cuStreamIsCapturing(self._stream, self._capture_at)
        return bool(code or self._capture_status.value)

    @contextlib.contextmanager
    def unheard(self) -> Iterator[None]:
        mode = ctypes.c_int(RELAXED)
        self._cuda.cuThreadExchangeStreamCaptureMode(ctypes.byref(mode))
        try:
            yield
        finally:
            self._cuda.cuThreadExchangeStreamCaptureMode(ctypes.byref(mode))

    def stream_handle(self, stream: Any) -> int:
        for attribute in ("cuda_stream", "ptr", "handle"):  # torch and Warp, CuPy, numba
            handle = getattr(stream, attribute, None)
            if handle is not None:
                return int(getattr(handle, "value", handle) or 0)
        return stream if isinstance(stream, int) else super().stream_handle(stream)

    def fork(self, event: int, streams: Sequence[int]) -> None:
        for stream in streams:
            self._call("cuStreamWaitEvent", ctypes.c_void_p(stream), self._events[event], 0)

    def join(self, streams: Sequence[int]) -> None:
        for stream in streams:
            if stream not in self._ends:
                self._ends[stream] = self._new_event()
            end = self._ends[stream]
            self._call("cuEventRecord", end, ctypes.c_void_p(stream))
            self._call("cuStreamWaitEvent", self._stream, end, 0)

    def flush(self) -> None:
        self._open()
        if self._flushed is None:
            flushed = ctypes.c_void_p()
            self._flushed_bytes = FLUSH_TIMES * self._attribute(L2_CACHE_SIZE)
            self._call("cuMemAlloc_v2", ctypes.byref(flushed), ctypes.c_size_t(self._flushed_bytes))
            self._flushed = flushed
        self._call(
            "cuMemsetD8Async", self._flushed, ctypes.c_ubyte(0), ctypes.c_size_t(self._flushed_bytes), self._stream
        )

    def idle(self) -> bool:
        current = ctypes.c_void_p()
        self._call("cuCtxGetCurrent", ctypes.byref(current))
        if not current.value:
            return True
        code = self._cuda.cuStreamQuery(ctypes.c_void_p(current_stream(self._device.value)))
        if code not in (0, NOT_READY):
            raise self._error("cuStreamQuery", code)
        return bool(code == 0)

    # -- facts and memory ------------------------------------------------------------------------------------------------

    def facts(self) -> Dict[str, Any]:
        name = ctypes.create_string_buffer(128)
        self._call("cuDeviceGetName", name, len(name), self._device)
        version = ctypes.c_int()
        self._call("cuDriverGetVersion", ctypes.byref(version))
        facts: Dict[str, Any] = {
            "gpu": name.value.decode(errors="replace"),
            "gpu_uuid": self._uuid(),
            "cuda": f"{version.value // 1000}.{version.value % 1000 // 10}",
        }
        driver = self._nvml.driver_version()
        if driver:
            facts["driver"] = driver
        return {**facts, **self._nvml.limits()}

    def architecture(self) -> str:
        """The compute capability, as compilers name what they compile for: "9.0"."""
        return ".".join(str(self._attribute(number)) for number in CAPABILITY)

    def _attribute(self, number: int) -> int:
        value = ctypes.c_int()
        self._call("cuDeviceGetAttribute", ctypes.byref(value), number, self._device)
        return value.value

    def limits(self) -> Dict[str, float]:
        # Memory moves twice a clock; a fused multiply-add is two operations.
        memory = 2 * 1e3 * self._attribute(MEMORY_CLOCK_RATE) * self._attribute(MEMORY_BUS_WIDTH) / 8
        major, minor = map(self._attribute, CAPABILITY)
        lanes = self._attribute(MULTIPROCESSORS) * FLOAT32_LANES.get((major, minor), 128)
        limits = {"memory_bytes_s": memory, "float32_flops_s": 2 * 1e3 * self._attribute(CLOCK_RATE) * lanes}
        return {name: value for name, value in limits.items() if value > 0}

    def _uuid(self) -> str:
        uuid = (ctypes.c_ubyte * UUID_BYTES)()
        # The older function, all that drivers before 11.4 have, names the whole device where ours is a slice of it (MIG).
        newer = hasattr(self._cuda, "cuDeviceGetUuid_v2")
        self._call("cuDeviceGetUuid_v2" if newer else "cuDeviceGetUuid", uuid, self._device)
        raw = bytes(uuid).hex()
        return "GPU-" + "-".join((raw[:8], raw[8:12], raw[12:16], raw[16:20], raw[20:]))

    def memory(self) -> Optional[MemoryProbe]:
        return memory_probe(sys.modules, self._cuda if self._context is not None else None, self._device.value)

    def counting(self) -> ContextManager[Calls]:
        return self._cupti.counting()

    def tracer(self) -> Tracer:
        return CuptiTracer(self._device.value)

    def device_state(self) -> Dict[str, Any]:
        return self._nvml.state()

    def energy_j(self) -> Optional[float]:
        return self._nvml.energy_j()

    def processes(self, ours: Optional[int] = None) -> List[Foreign]:
        return self._nvml.processes(ours)

    def taken_share(self) -> float:
        if self._context is None:
            return 0.0
        free, total = ctypes.c_size_t(0), ctypes.c_size_t(0)
        self._call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
        return 1 - free.value / total.value


def visible_uuids() -> List[str]:
    """The UUIDs of the devices that the driver shows, in its order; opens no context. Raises DeviceError if there is none."""
    return [str(device.facts()["gpu_uuid"]) for device in _visible()]


def visible_architectures() -> List[str]:
    """The compute capabilities of the same devices, in the same order: "9.0". Raises DeviceError if there is none."""
    return [device.architecture() for device in _visible()]


def _visible() -> List[CudaBackend]:
    first = CudaBackend()
    return [first, *(CudaBackend(ordinal) for ordinal in range(1, first.shown))]
