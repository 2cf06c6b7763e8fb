"""Records of CUPTI as a library of the test writes them into our buffers."""

from __future__ import annotations

import ctypes
import struct
from typing import Any

from regress.measure.backend.activity import BUFFER_BYTES, MOST_UNREAD, CuptiTracer, _name

START_NS = 1_700_000_000_000_000_000
NAME = ctypes.create_string_buffer(b"_ZN2at6native18elementwise_kernelILi4EEEvi")


def kernel(start_ns: int, end_ns: int, device: int = 0) -> bytes:
    head = struct.pack("=I12xQQ8xI", 10, START_NS + start_ns, START_NS + end_ns, device)
    return head.ljust(104, b"\0") + struct.pack("=Q", ctypes.addressof(NAME)).ljust(40, b"\0")


def copy(start_ns: int, end_ns: int, nbytes: int, direction: int = 1) -> bytes:
    return struct.pack("=IB3xQQQI", 1, direction, nbytes, START_NS + start_ns, START_NS + end_ns, 0).ljust(96, b"\0")


class Library:
    """Writes records into the buffers that it asks for, and gives them back when it is told to flush."""

    def __init__(self, enable_code: int = 0) -> None:
        self.enable_code = enable_code
        self.enabled: set[int] = set()
        self.records: list[bytes] = []
        self.asked = 0

    def cuptiActivityRegisterCallbacks(self, lend: Any, take_back: Any) -> int:
        self.lend, self.take_back = lend, take_back
        return 0

    def cuptiActivityEnable(self, kind: int) -> int:
        self.enabled.add(kind)
        return self.enable_code

    def cuptiActivityDisable(self, kind: int) -> int:
        self.enabled.discard(kind)
        return 0

    def cuptiGetResultString(self, code: int, text: Any) -> None:
        text._obj.value = b"busy"

    def cuptiActivityFlushAll(self, flag: int) -> int:
        if not self.records:
            return 0
        buffer, size, most = ctypes.c_void_p(), ctypes.c_size_t(), ctypes.c_size_t()
        self.lend(ctypes.pointer(buffer), ctypes.pointer(size), ctypes.pointer(most))
        self.asked += 1
        assert (size.value, most.value) == (BUFFER_BYTES, 0)
        assert buffer.value is not None
        assert buffer.value % 8 == 0
        data = b"".join(self.records)
        ctypes.memmove(buffer.value, data, len(data))
        self.sizes = [len(each) for each in self.records]
        self.records = []
        self.take_back(None, 0, buffer, size.value, len(data))
        return 0

    def cuptiActivityGetNextRecord(self, buffer: Any, valid: Any, record: Any) -> int:
        at = 0 if record._obj.value is None else record._obj.value - buffer.value
        ends = [sum(self.sizes[: n + 1]) for n in range(len(self.sizes))]
        following = 0 if record._obj.value is None else next(end for end in ends if end > at)
        if following >= valid.value:
            return 12
        record._obj.value = buffer.value + following
        return 0


def test_records_become_activities() -> None:
    library = Library()
    tracer = CuptiTracer(0, library)
    assert tracer.start() == ""
    assert library.enabled == {1, 2, 10, 22}
    library.records = [
        kernel(0, 1500),
        copy(2000, 5000, 4096),
        copy(6000, 7000, 64, direction=8),
        b"\x63".ljust(32, b"\0"),
    ]
    library.records += [kernel(8000, 9000, device=1), kernel(8000, 0), kernel(10_000, 10_500)]
    assert tracer.collect() == []
    found = tracer.collect(flush=True)
    assert [(each.kind, each.name, each.nbytes) for each in found] == [
        ("kernel", "at::native::elementwise_kernel", 0),
        ("copy", "copy", 4096),
        ("fill", "fill", 64),
        ("kernel", "at::native::elementwise_kernel", 0),
    ]
    times = [(round(each.start_s * 1e9), round(each.end_s * 1e9)) for each in found]
    assert times == [(0, 1500), (2000, 5000), (6000, 7000), (10_000, 10_500)]


def test_buffers_are_used_again() -> None:
    library = Library()
    tracer = CuptiTracer(0, library)
    tracer.start()
    for number in range(5):
        library.records = [kernel(number * 1000, number * 1000 + 500)]
        assert len(tracer.collect(flush=True)) == 1
    assert library.asked == 5
    assert len(tracer._free) == 1
    assert tracer._lent == {}


def test_what_nobody_collects_is_bounded() -> None:
    library = Library()
    tracer = CuptiTracer(0, library)
    tracer.start()
    for _ in range(MOST_UNREAD + 3):
        buffer, size, most = ctypes.c_void_p(), ctypes.c_size_t(), ctypes.c_size_t()
        tracer._lend(ctypes.pointer(buffer), ctypes.pointer(size), ctypes.pointer(most))
        if buffer.value is not None:
            tracer._take_back(None, 0, buffer.value, size.value, 0)
    assert len(tracer._full) == MOST_UNREAD
    assert tracer.overrun
    assert tracer.collect() == []
    assert len(tracer._free) < 10


def test_what_cannot_be_traced_says_why() -> None:
    library = Library(enable_code=13)
    assert CuptiTracer(0, library).start() == "CUPTI traces nothing (is a profiler attached?): busy"
    assert library.enabled == set()


def test_stopping_ends_the_records_and_keeps_what_was_seen() -> None:
    library = Library()
    tracer = CuptiTracer(0, library)
    tracer.start()
    library.records = [kernel(0, 100)]
    tracer.stop()
    assert library.enabled == set()
    assert len(tracer.collect(flush=True)) == 1


def test_names_of_kernels() -> None:
    assert _name(b"_ZN2at6native12_GLOBAL__N_14gemmIfEEvT_") == "at::native::gemm"
    assert _name(b"sm90_xmma_gemm_bf16") == "sm90_xmma_gemm_bf16"
    assert _name(b"void softmax<float>(int)") == "void softmax"
    assert _name(b"triton_poi_fused_add_0") == "triton_poi_fused_add_0"
