"""Records of CUPTI as a library of the test writes them into our buffers."""

from __future__ import annotations

import ctypes
import gc
import os
import struct
import time
from typing import Any

import pytest

from regress.measure.backend import activity
from regress.measure.backend.activity import BUFFER_BYTES, FORCED, MOST_UNREAD, Activities, CuptiTracer, _name

EPOCH_NS = 1_700_000_000_000_000_000
"""The time of CUPTI at the host's zero."""
START_NS = EPOCH_NS + time.perf_counter_ns() + 3600 * 10**9
"""Later than anything that a test does."""
NAME = ctypes.create_string_buffer(b"_ZN2at6native18elementwise_kernelILi4EEEvi")


def kernel(start_ns: int, end_ns: int, device: int = 0) -> bytes:
    head = struct.pack("=I12xQQ8xI", 10, START_NS + start_ns, START_NS + end_ns, device)
    return head.ljust(104, b"\0") + struct.pack("=Q", ctypes.addressof(NAME)).ljust(40, b"\0")


def copy(start_ns: int, end_ns: int, nbytes: int, direction: int = 1) -> bytes:
    return struct.pack("=IB3xQQQI", 1, direction, nbytes, START_NS + start_ns, START_NS + end_ns, 0).ljust(96, b"\0")


class Library:
    """Writes records into the buffers that it asks for, and gives them back when it is told to flush."""

    def __init__(self, enable_code: int = 0, rate: float = 1.0) -> None:
        self.enable_code = enable_code
        self.rate = rate
        """Ticks a nanosecond."""
        self.now = time.perf_counter
        self.enabled: set[int] = set()
        self.records: list[bytes] = []
        self.working = False
        """Whether the last record is not complete."""
        self.asked = 0

    def cuptiActivityRegisterCallbacks(self, lend: Any, take_back: Any) -> int:
        self.lend, self.take_back = lend, take_back
        return 0

    def cuptiGetTimestamp(self, ticks: Any) -> int:
        ticks._obj.value = self.ticks(self.now())
        return 0

    def ticks(self, time_s: float) -> int:
        return EPOCH_NS + round(time_s * 1e9 * self.rate)

    def cuptiActivityEnable(self, kind: int) -> int:
        self.enabled.add(kind)
        return self.enable_code

    def cuptiActivityDisable(self, kind: int) -> int:
        self.enabled.discard(kind)
        return 0

    def cuptiGetResultString(self, code: int, text: Any) -> None:
        text._obj.value = b"busy"

    def cuptiActivityFlushAll(self, flag: int) -> int:
        if not self.records or (self.working and flag != FORCED):
            return 0
        buffer, size, most = ctypes.c_void_p(), ctypes.c_size_t(), ctypes.c_size_t()
        self.lend(ctypes.pointer(buffer), ctypes.pointer(size), ctypes.pointer(most))
        self.asked += 1
        assert (size.value, most.value) == (BUFFER_BYTES, 0)
        assert buffer.value is not None
        assert buffer.value % 8 == 0
        data = b"".join(self.records)
        ctypes.memmove(buffer.value, data, len(data))
        self.sizes = [len(record) for record in self.records]
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
    tracer = CuptiTracer(0, Activities(library))
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
    pieces = tracer.collect(flush=True)
    assert [(piece.kind, piece.name, piece.nbytes) for piece in pieces] == [
        ("kernel", "at::native::elementwise_kernel", 0),
        ("copy", "copy", 4096),
        ("fill", "fill", 64),
        ("kernel", "at::native::elementwise_kernel", 0),
    ]
    from_s = pieces[0].start_s
    times = [(round((piece.start_s - from_s) * 1e9), round((piece.end_s - from_s) * 1e9)) for piece in pieces]
    assert times == [(0, 1500), (2000, 5000), (6000, 7000), (10_000, 10_500)]


class Host:
    """The host's clock, in steps: what is asked takes a microsecond."""

    def __init__(self) -> None:
        self.now_s = 5000.0

    def perf_counter(self) -> float:
        self.now_s += 1e-6
        return self.now_s

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds


def test_times_are_of_the_hosts_clock_whatever_clock_a_profiler_has_given_cupti(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    library, host = Library(), Host()
    monkeypatch.setattr(activity, "time", host)
    library.now = lambda: host.now_s
    tracer = CuptiTracer(0, Activities(library))
    tracer.start()

    def seen(start_s: float) -> bytes:
        return kernel(library.ticks(start_s) - START_NS, library.ticks(start_s + 40e-6) - START_NS)

    library.records = [seen(5000.1)]
    library.cuptiActivityFlushAll(0)  # it came back before the clock is another one, and is read after
    tracer.stop()
    library.rate = 2.1
    tracer.start()
    library.records = [seen(5000.5)]
    first, second = tracer.collect(flush=True)
    assert first.start_s == pytest.approx(5000.1, abs=3e-6)
    assert second.start_s == pytest.approx(5000.5, abs=1e-4)
    assert [piece.end_s - piece.start_s for piece in (first, second)] == pytest.approx([40e-6] * 2, rel=1e-3)


def test_buffers_are_used_again() -> None:
    library = Library()
    activities = Activities(library)
    tracer = CuptiTracer(0, activities)
    tracer.start()
    for number in range(5):
        library.records = [kernel(number * 1000, number * 1000 + 500)]
        assert len(tracer.collect(flush=True)) == 1
    assert library.asked == 5
    assert len(activities._free) == 1
    assert activities._lent == {}


def test_what_nobody_collects_is_bounded() -> None:
    activities = Activities(Library())
    tracer = CuptiTracer(0, activities)
    tracer.start()
    for _ in range(MOST_UNREAD + 3):
        buffer, size, most = ctypes.c_void_p(), ctypes.c_size_t(), ctypes.c_size_t()
        activities._lend(ctypes.pointer(buffer), ctypes.pointer(size), ctypes.pointer(most))
        if buffer.value is not None:
            activities._take_back(None, 0, buffer.value, size.value, 0)
    assert len(activities._full) == MOST_UNREAD
    assert tracer.collect() == []
    assert tracer.overrun
    assert len(activities._free) < 10


def test_what_cannot_be_traced_says_why() -> None:
    library = Library(enable_code=13)
    assert CuptiTracer(0, Activities(library)).start() == "CUPTI traces nothing (is a profiler attached?): busy"
    assert library.enabled == set()


def test_stopping_ends_the_records_and_keeps_what_was_seen() -> None:
    library = Library()
    tracer = CuptiTracer(0, Activities(library))
    tracer.start()
    now_ns = EPOCH_NS + time.perf_counter_ns() - START_NS
    library.records = [kernel(now_ns, now_ns + 100), kernel(0, 100)]
    tracer.stop()
    assert library.enabled == set()
    assert len(tracer.collect(flush=True)) == 1, "what began later is not for it"


def test_a_tracer_that_stops_leaves_no_buffer_behind() -> None:
    """CUPTI would fill it with what a profiler that starts later asks for."""
    library = Library()
    activities = Activities(library)
    tracer = CuptiTracer(0, activities)
    tracer.start()
    now_ns = EPOCH_NS + time.perf_counter_ns() - START_NS
    library.records, library.working = [kernel(now_ns, now_ns + 100), kernel(-START_NS, -START_NS)], True
    assert tracer.collect(flush=True) == []
    tracer.stop()
    assert (library.records, len(tracer.collect())) == ([], 1)
    assert activities._lent == {}


def beside(one: int, two: int) -> tuple[Library, CuptiTracer, CuptiTracer]:
    """Tracers of these devices in one process."""
    library = Library()
    activities = Activities(library)
    return library, CuptiTracer(one, activities), CuptiTracer(two, activities)


def test_devices_of_one_process_have_tracers_of_their_own() -> None:
    """CUPTI goes on with a buffer that it was lent before, whoever comes after."""
    library, one, two = beside(0, 1)
    one.start()
    library.records = [kernel(0, 100)]
    two.start()
    library.records += [kernel(200, 300, device=1), kernel(400, 500), kernel(600, 700, device=1)]
    assert [round((piece.end_s - piece.start_s) * 1e9) for piece in two.collect(flush=True)] == [100, 100]
    assert len(one.collect()) == 2
    two.stop()
    assert library.enabled == {1, 2, 10, 22}, "the other one goes on"
    library.records = [kernel(800, 900), kernel(800, 900, device=1)]
    assert (len(one.collect(flush=True)), two.collect()) == (1, [])
    one.stop()
    assert library.enabled == set()


def test_a_process_has_one_interface_and_a_forked_one_its_own() -> None:
    own = activity.of_process()
    assert CuptiTracer(0)._activities is CuptiTracer(1)._activities is own
    pid = os.fork()
    if not pid:
        os._exit(int(activity.of_process() is own))
    assert os.waitpid(pid, 0)[1] == 0


def test_of_two_tracers_of_a_device_the_later_one_is_told() -> None:
    library, one, two = beside(0, 0)
    one.start()
    two.start()
    library.records = [kernel(0, 100)]
    assert (one.collect(flush=True), len(two.collect())) == ([], 1)
    assert one.again() == "another profiler of the process traces the device"
    assert (two.on, two.again()) == (True, "")
    assert one.start() == "", "who asks for it has it again"
    assert (one.on, two.on, two.superseded) == (True, False, True)
    library.records = [kernel(200, 300)]
    assert (len(one.collect(flush=True)), two.collect()) == (1, [])


def test_a_tracer_that_does_not_collect_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(activity, "MOST_KEPT", 10)
    library, idle, busy = beside(1, 0)
    idle.start()
    busy.start()
    for number in range(12):
        library.records = [kernel(number * 1000, number * 1000 + 500, device) for device in (0, 1)]
        assert len(busy.collect(flush=True)) == 1
    assert (idle.overrun, busy.overrun) == (True, False)
    assert len(idle.collect()) < 10
    library.records = [kernel(number, number + 1) for number in range(20)]
    assert len(busy.collect(flush=True)) == 20, "what is asked for is not too much"
    assert not busy.overrun


def test_a_tracer_that_is_gone_is_told_nothing() -> None:
    library, one, two = beside(0, 1)
    one.start()
    two.start()
    del two
    gc.collect()
    assert len(one._activities._tracers) == 1
    one.stop()
    assert library.enabled == set()


def test_names_of_kernels() -> None:
    assert _name(b"_ZN2at6native12_GLOBAL__N_14gemmIfEEvT_") == "at::native::gemm"
    assert _name(b"sm90_xmma_gemm_bf16") == "sm90_xmma_gemm_bf16"
    assert _name(b"void softmax<float>(int)") == "void softmax"
    assert _name(b"triton_poi_fused_add_0") == "triton_poi_fused_add_0"
