"""Counts exactly what one call asks of the CUDA driver, through the callback interface of CUPTI.

CUPTI calls back at the entry and the exit of every function of the driver and of the runtime. Both are watched: code calls
either, and the runtime calls the driver in turn, reported or not. So the outermost known call counts, on each thread
separately. Sources: cupti_callbacks.h and the callback names of the library, both of CUDA 13.0.

A process can have one subscriber, so ours exists only while a call is counted. torch's profiler, started later, finds the
place free; if it is taken, counting is unavailable, not wrong. `cuptiFinalize` is never called: it may only be used at the
exit of a CUDA function, and would tear down a profiler in the same process.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import glob
import os
import re
import sys
import threading
from typing import Any, Dict, Iterator, List, Optional, Tuple

from .base import Calls

DOMAINS = (1, 2)
"""The functions of the driver, and of the runtime."""
EXIT = 1
SONAMES = ("libcupti.so.13", "libcupti.so.12", "libcupti.so")
WHEELS = ("nvidia/cu*/lib", "nvidia/cuda_cupti/lib")
"""Folders of a site-packages directory in which wheels bring the library."""

Callback = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_uint32, ctypes.c_void_p)


class CallbackData(ctypes.Structure):
    """CUpti_CallbackData."""

    _fields_ = [
        ("callbackSite", ctypes.c_int),
        ("functionName", ctypes.c_char_p),
        ("functionParams", ctypes.c_void_p),
        ("functionReturnValue", ctypes.c_void_p),
        ("symbolName", ctypes.c_char_p),
        ("context", ctypes.c_void_p),
        ("contextUid", ctypes.c_uint32),
        ("correlationData", ctypes.c_void_p),
        ("correlationId", ctypes.c_uint32),
    ]


# -- names ---------------------------------------------------------------------------------------------------------------

_NAME = re.compile(r"_*(?:cuda|cu64|cu)(\w+?)(?:_ptds|_ptsz|_v\d+)*$")
"""cuMemcpyDtoHAsync_v2_ptsz, cudaLaunchKernelExC_ptsz_v11060, __cudaLaunchKernel_v13000 -> the part with the meaning."""
_KERNEL = re.compile(r"Launch(Grid(Async)?|(Cooperative)?Kernel(Ex|ExC|MultiDevice)?)?")
_SYNCHRONIZE = re.compile(r"(Ctx|Device|Thread|Stream|Event)Synchronize")
_COPY = re.compile(r"(Memcpy|Memset)\w*")
_ON_THE_DEVICE = re.compile(r"Memset|Memcpy(DtoD|DtoA|AtoD|AtoA|(2D)?ArrayToArray|(3D)?Peer)")
"""Not waited for, although the name does not say Async."""


@functools.lru_cache(maxsize=None)
def meaning(function: bytes) -> Tuple[str, ...]:
    """What a call of that function counts as: "kernel", "graph", "synchronization", "copy", some of them or nothing.

    A graph's launch is one launch, whatever it contains. Filling memory is a copy. A copy that the host waits for is a
    synchronization too; if the name does not show the direction (cudaMemcpy), it counts as one.
    """
    match = _NAME.match(function.decode(errors="replace"))
    word = match.group(1) if match else ""
    if _KERNEL.fullmatch(word):
        return ("kernel",)
    if word == "GraphLaunch":
        return ("graph",)
    if _SYNCHRONIZE.fullmatch(word):
        return ("synchronization",)
    if _COPY.fullmatch(word):
        waits = "Async" not in word and not _ON_THE_DEVICE.match(word)
        return ("copy", "synchronization") if waits else ("copy",)
    return ()


# -- the library ---------------------------------------------------------------------------------------------------------


class Cupti:
    """The library, found and loaded when it is first needed. `library` is the loaded library; tests bring one."""

    def __init__(self, library: Any = None) -> None:
        self._library = library
        self._callback = Callback(self._called)  # kept as long as a call that was begun might still report its end
        self._seen: Optional[List[Tuple[Tuple[str, ...], bytes]]] = None
        self._inside: Dict[int, Tuple[int, int]] = {}
        """Thread -> (domain, correlation id) of the call on it that has been counted and has not ended."""

    @contextlib.contextmanager
    def counting(self) -> Iterator[Calls]:
        """Count the calls of all threads while this is open; the counts are available when it is closed. If counting is
        impossible, `unavailable` says why from the start."""
        calls = Calls()
        subscriber, calls.unavailable = self._subscribe()
        if calls.unavailable:
            yield calls
            return
        self._inside.clear()
        seen: List[Tuple[Tuple[str, ...], bytes]] = []
        self._seen = seen
        try:
            yield calls
        finally:
            self._seen = None
            self._library.cuptiUnsubscribe(subscriber)
        for kinds, symbol in seen:
            calls.launches += "kernel" in kinds or "graph" in kinds
            calls.synchronizations += "synchronization" in kinds
            calls.copies += "copy" in kinds
            if symbol:
                calls.kernels.setdefault(symbol.decode(errors="replace"))

    def _subscribe(self) -> Tuple[Optional[ctypes.c_void_p], str]:
        if self._library is None:
            self._library = load()
        if self._library is None:
            return None, "CUPTI was not found (libcupti.so is in the CUDA toolkit and in the wheel nvidia-cuda-cupti)"
        subscriber = ctypes.c_void_p()
        code = self._library.cuptiSubscribe(ctypes.byref(subscriber), self._callback, None)
        if code:
            return None, f"CUPTI is not available (is a profiler attached?): {self._reason(code)}"
        for domain in DOMAINS:
            code = self._library.cuptiEnableDomain(1, subscriber, domain)
            if code:
                self._library.cuptiUnsubscribe(subscriber)
                return None, f"CUPTI reports no calls: {self._reason(code)}"
        return subscriber, ""

    def _reason(self, code: int) -> str:
        text = ctypes.c_char_p()
        self._library.cuptiGetResultString(code, ctypes.byref(text))
        return (text.value or b"").decode(errors="replace") or f"error {code}"

    def _called(self, _user: object, domain: int, _function: int, address: int) -> None:
        seen = self._seen
        if seen is None:
            return
        data = CallbackData.from_address(address)
        thread, call = threading.get_ident(), (domain, data.correlationId)
        if data.callbackSite == EXIT:
            if self._inside.get(thread) == call:
                del self._inside[thread]
        elif thread not in self._inside:
            kinds = meaning(data.functionName)
            if kinds:
                self._inside[thread] = call
                # Only a kernel's launch has a symbol; for other functions the field means nothing.
                seen.append((kinds, (data.symbolName or b"") if "kernel" in kinds else b""))


def load() -> Any:
    """The library, or None: the one that the process has loaded, by name, from a wheel, or from $CUDA_HOME."""
    for path in (*_loaded(), *SONAMES, *_installed()):
        try:
            return ctypes.CDLL(path)
        except OSError:
            continue
    return None


def _loaded() -> List[str]:
    """Paths of the copies that this process has mapped; a second one would know nothing of the first."""
    try:
        with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
            paths = [line.split(maxsplit=5)[5].strip() for line in maps if "/libcupti.so" in line]
    except OSError:
        return []
    return list(dict.fromkeys(paths))


def _installed() -> List[str]:
    folders = [os.path.join(place, wheel) for place in sys.path if place for wheel in WHEELS]
    homes = [os.environ[name] for name in ("CUDA_HOME", "CUDA_PATH") if os.environ.get(name)]
    folders += [os.path.join(home, *rest) for home in homes for rest in (("extras", "CUPTI", "lib64"), ("lib64",))]
    return [
        path for folder in folders for path in sorted(glob.glob(os.path.join(folder, "libcupti.so*")), reverse=True)
    ]
