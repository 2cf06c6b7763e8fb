"""GPUProfiler on the scripted device, whose times are known, and on none."""

from __future__ import annotations

import asyncio
import json
import os
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from regress.measure.backend import Activity, Backend
from regress.measure.backend.fake import ScriptedTracer
from regress.profiler import GPUProfiler, get_profiler
from regress.profiler.ledger import HARVEST
from regress.profiles import Entry, Profile, read
from tests.profiler.scripted import SLACK_S, WINDOW_S, Exact

US = 1e-6


@pytest.fixture
def device() -> Exact:
    return Exact()


@pytest.fixture
def profiler(device: Exact) -> GPUProfiler:
    return GPUProfiler(backend=device)


def exported(profiler: GPUProfiler, folder: Path) -> Profile:
    return read(profiler.export_json(folder / "profile.json"))


def entries(profiler: GPUProfiler, folder: Path, operation: str) -> list[Entry]:
    return [entry for entry in exported(profiler, folder).entries if entry.operation == operation]


# -- one entry -----------------------------------------------------------------------------------------------------------


class HeldUp(Exact):
    """A host that now and then is held up between the spin of an anchor and the event behind it."""

    def __init__(self) -> None:
        super().__init__()
        self.spins = 0

    def spin(self, seconds: float) -> None:
        super().spin(seconds)
        self.spins += 1
        if self.spins in (1, 2, 5):
            self.synchronize()
            self.host(300 * US)


def test_an_event_that_was_late_behind_its_spin_is_no_anchor(tmp_path: Path) -> None:
    device = HeldUp()
    profiler = GPUProfiler(backend=device)
    for _ in range(20):
        with profiler.profile("step"):
            device.kernel("gemm", 100 * US)
    steps = entries(profiler, tmp_path, "step")
    assert [entry.busy_s for entry in steps] == [pytest.approx(100 * US, abs=SLACK_S)] * 20


class TakenOver(ScriptedTracer):
    """It tells nothing while another profiler has CUPTI's buffers, until it is started anew."""

    taken = False

    def start(self) -> str:
        self.taken = False
        return super().start()

    def collect(self, flush: bool = False) -> list[Activity]:
        pieces = super().collect(flush)
        return [] if self.taken else pieces


@pytest.mark.slow
def test_what_another_profiler_has_taken_has_no_breakdown_and_what_comes_then_has_one(tmp_path: Path) -> None:
    device = Exact()
    tracer = device._tracer = TakenOver(device)
    profiler = GPUProfiler(backend=device)

    def steps(name: str) -> None:
        for _ in range(20):
            with profiler.profile(name):
                device.kernel("gemm", 100 * US)

    steps("before")
    profiler.synchronize()
    tracer.taken = True
    with profiler.profile("around"):
        steps("meanwhile")
        profiler.synchronize()
        steps("after")
    document = exported(profiler, tmp_path)
    assert (document.pending, document.lost, document.no_breakdown) == (0, 0, "")
    counts = {operation.operation: (operation.calls, operation.broken_down) for operation in document.operations}
    assert counts == {"before": (20, 20), "meanwhile": (20, 0), "after": (20, 20), "around": (1, 0)}
    assert [entry.duration_s for entry in document.entries if entry.operation == "meanwhile"] == [
        pytest.approx(100 * US, rel=0.1)
    ] * 20
    assert [entry.busy_s for entry in document.entries if entry.operation == "after"] == [
        pytest.approx(100 * US, abs=SLACK_S)
    ] * 20


def test_a_span_is_broken_down(profiler: GPUProfiler, device: Exact, tmp_path: Path) -> None:
    for _ in range(20):
        with profiler.profile("step"):
            device.kernel("gemm", 100 * US)
            device.copy(1 << 20, 50 * US)
            device.synchronize()
            device.host(70 * US)
            device.kernel("relu", 10 * US)
    for entry in entries(profiler, tmp_path, "step"):
        assert entry.device == "gpu"
        assert entry.backend == "scripted"
        assert entry.busy_s == pytest.approx(110 * US, abs=SLACK_S)
        assert entry.transfer_s == pytest.approx(50 * US, abs=SLACK_S)
        assert entry.idle_s is not None
        assert entry.busy_s is not None
        assert entry.transfer_s is not None
        # 70 us of Python, 10 us of waking up, and the launches of an empty queue.
        assert 80 * US < entry.idle_s < 92 * US
        assert entry.busy_s + entry.transfer_s + entry.idle_s == pytest.approx(entry.duration_s, rel=1e-9)
        assert entry.utilization == pytest.approx(160 / (entry.duration_s / US), abs=0.01)
        assert entry.copied_bytes == pytest.approx(1 << 20, rel=0.01)
        assert entry.bandwidth_bytes_s == pytest.approx((1 << 20) / (50 * US), rel=0.01)


def test_an_empty_entry_is_a_window(profiler: GPUProfiler, device: Exact, tmp_path: Path) -> None:
    device.kernel("before", 1e-3)
    with profiler.profile("empty"):
        pass
    (entry,) = entries(profiler, tmp_path, "empty")
    assert entry.duration_s == pytest.approx(WINDOW_S, abs=1e-12)
    assert entry.busy_s == pytest.approx(0, abs=SLACK_S)


def test_work_on_another_stream_makes_the_device_busy_once(
    profiler: GPUProfiler, device: Exact, tmp_path: Path
) -> None:
    with profiler.profile("both"):
        device.kernel("here", 100 * US)
        device.kernel("there", 80 * US, stream=7)
        device.copy(1000, 300 * US, stream=8)
        device.wait_for(7)
        device.wait_for(8)
    (entry,) = entries(profiler, tmp_path, "both")
    assert entry.busy_s == pytest.approx(100 * US, abs=6 * US)
    assert entry.transfer_s == pytest.approx(entry.duration_s - (entry.busy_s or 0), abs=10 * US)


def test_host_time_stands_beside_it(profiler: GPUProfiler, device: Exact, tmp_path: Path) -> None:
    with profiler.profile("launches"):
        device.kernel("long", 1e-3)
    (entry,) = entries(profiler, tmp_path, "launches")
    assert entry.host_s < 10 * US < 1e-3 < entry.duration_s


def test_a_cpu_entry_has_the_hosts_time(profiler: GPUProfiler, device: Exact, tmp_path: Path) -> None:
    with profiler.profile("io", device="cpu"):
        device.host(300 * US)
    (entry,) = entries(profiler, tmp_path, "io")
    assert (entry.device, entry.backend, entry.busy_s) == ("cpu", "cpu", None)
    assert entry.duration_s == entry.host_s == pytest.approx(300 * US, rel=0.001)


def test_memory_at_the_end_and_at_most(profiler: GPUProfiler, device: Exact, tmp_path: Path) -> None:
    kept = [device.alloc(1000)]
    with profiler.profile("outer"):
        big = device.alloc(5000)
        del big
        with profiler.profile("inner"):
            kept.append(device.alloc(200))
    (outer,), (inner,) = (entries(profiler, tmp_path, name) for name in ("outer", "inner"))
    assert (outer.memory_bytes, outer.peak_bytes) == (1200, 6000)
    assert (inner.memory_bytes, inner.peak_bytes) == (1200, 1200)


def test_what_is_said_of_an_entry_is_kept(profiler: GPUProfiler, device: Exact, tmp_path: Path) -> None:
    for size in (1024, 2048, 1024):
        with profiler.profile("add", size=size, bytes=12 * size, odd={1, 2}):
            device.kernel("add", size * 1e-9)
    profile = exported(profiler, tmp_path)
    assert [entry.details["size"] for entry in profile.entries] == [1024, 2048, 1024]
    assert profile.entries[0].bandwidth_bytes_s == pytest.approx(12 * 1024 / profile.entries[0].duration_s)
    assert [(variant.details["size"], variant.calls) for variant in profile.variants] == [(1024, 2), (2048, 1)]


def test_an_exception_is_noted_and_goes_on(profiler: GPUProfiler, device: Exact, tmp_path: Path) -> None:
    with pytest.raises(KeyError), profiler.profile("fails"):
        raise KeyError
    (entry,) = entries(profiler, tmp_path, "fails")
    assert entry.failed
    assert profiler.get_summary()["fails"].failed == 1


# -- many ----------------------------------------------------------------------------------------------------------------


def test_the_time_of_an_entry_inside_another_is_counted_once(profiler: GPUProfiler, device: Exact) -> None:
    for _ in range(10):
        with profiler.profile("outer"):
            device.kernel("a", 100 * US)
            with profiler.profile("inner"):
                device.kernel("b", 300 * US)
    device.synchronize()
    summary = profiler.get_summary()
    outer, inner = summary["outer"], summary["inner"]
    assert inner.mean_s == pytest.approx(300 * US + WINDOW_S)
    assert outer.self_s == pytest.approx(outer.total_s - inner.total_s)
    assert outer.share + inner.share == pytest.approx(1)
    assert outer.share == pytest.approx(101.25 / 402.5, rel=0.01)


def test_summary_waits_for_nothing(profiler: GPUProfiler, device: Exact) -> None:
    for _ in range(40):
        with profiler.profile("slow"):
            device.kernel("slow", 1.0)
    before = device.host_s
    assert profiler.get_summary() == {}
    assert profiler.pending == 40
    assert device.host_s - before < 0.01
    profiler.synchronize()
    assert profiler.get_summary()["slow"].calls == 40
    assert profiler.pending == 0


def test_nothing_grows_with_the_number_of_entries(device: Exact) -> None:
    profiler = GPUProfiler(backend=device, keep=100)
    sizes: list[tuple[int, int, int]] = []
    with profiler.profile("the whole program"):
        for number in range(9_000):
            with profiler.profile("step"):
                device.kernel("k", 20 * US)
            if number % 3_000 == 2_999:
                assert profiler._ledger.timeline is not None
                assert profiler._ledger.trace is not None
                sizes.append(
                    (
                        profiler._ledger.timeline.events,
                        len(profiler._ledger.trace._times),
                        len(profiler._ledger.trace._kernels),
                    )
                )
            if number % HARVEST == 0:
                device.synchronize()
    profiler.synchronize()
    assert sizes[2] <= tuple(2 * size for size in sizes[0])
    assert sizes[2][0] < 100
    summary = profiler.get_summary()
    assert summary["step"].calls == 9_000
    assert summary["the whole program"].busy_s == pytest.approx(9_000 * 20 * US, rel=0.01)
    assert profiler._profile().entries_kept == 100
    assert profiler._profile().entries_total == 9_001


def test_the_clocks_of_events_and_trace_may_drift(profiler: GPUProfiler, device: Exact, tmp_path: Path) -> None:
    """The scripted trace runs 20 us a second too fast: after half a minute that is more than the entry."""
    for _ in range(300):
        device.pause(0.1)
        with profiler.profile("late"):
            device.kernel("k", 100 * US)
    for entry in entries(profiler, tmp_path, "late"):
        assert entry.busy_s == pytest.approx(100 * US, abs=SLACK_S)


def test_entries_follow_each_other_on_one_clock(profiler: GPUProfiler, device: Exact, tmp_path: Path) -> None:
    device.kernel("a backlog", 0.5)
    for _ in range(3):
        with profiler.profile("gpu"):
            device.kernel("k", 0.1)
        with profiler.profile("cpu", device="cpu"):
            device.synchronize()
    every = exported(profiler, tmp_path).entries
    assert [entry.operation for entry in every] == ["gpu", "cpu"] * 3
    for gpu, cpu in zip(every[::2], every[1::2], strict=True):
        assert gpu.start_s <= cpu.end_s
        assert gpu.end_s == pytest.approx(cpu.end_s, abs=0.6)


def test_threads_have_stacks_of_their_own(profiler: GPUProfiler, device: Exact) -> None:
    inside, over = threading.Barrier(2), threading.Barrier(2)

    def work(name: str) -> None:
        with profiler.profile(name):
            inside.wait()
            with profiler.profile(f"{name} inner"):
                device.kernel("k", 10 * US)
            over.wait()

    threads = [threading.Thread(target=work, args=(name,), name=name) for name in ("a", "b")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    profiler.synchronize()
    by_operation = {entry.operation: entry for entry in profiler._profile().entries}
    assert {name: (benchmark.thread, benchmark.depth) for name, benchmark in by_operation.items()} == {
        "a": ("a", 0),
        "b": ("b", 0),
        "a inner": ("a", 1),
        "b inner": ("b", 1),
    }


def test_coroutines_may_be_left_in_any_order(device: Exact, tmp_path: Path) -> None:
    profiler = GPUProfiler(backend=device)

    @profiler.profile_function(device="cpu")
    async def step(seconds: float) -> float:
        await asyncio.sleep(seconds)
        return seconds

    async def both() -> tuple[float, float]:
        return await asyncio.gather(step(0.002), step(0.001))

    with ThreadPoolExecutor(1) as elsewhere:  # a loop may be running here already
        assert tuple(elsewhere.submit(asyncio.run, both()).result()) == (0.002, 0.001)
    assert profiler.get_summary()[step.__qualname__].calls == 2
    assert profiler._ledger.threads.stack == []


def test_it_is_switched_at_run_time(profiler: GPUProfiler, device: Exact, tmp_path: Path) -> None:
    @profiler.profile_function(operation="x")
    def step(value: int) -> int:
        device.kernel("k", 10 * US)
        return value + 1

    for on in (True, False, True):
        profiler.enabled = on
        assert step(1) == 2
    with GPUProfiler(enabled=False).profile("nothing"):
        pass
    own = entries(profiler, tmp_path, "x")
    assert len(own) == 2
    assert [entry.busy_s for entry in own] == [pytest.approx(10 * US, abs=SLACK_S)] * 2
    assert step.__name__ == "step"


def test_what_the_device_has_done_when_it_is_switched_off_is_broken_down(profiler: GPUProfiler, device: Exact) -> None:
    for _ in range(5):
        with profiler.profile("step"):
            device.kernel("k", 10 * US)
    device.synchronize()
    profiler.disable()
    totals = profiler.get_summary()["step"]
    assert (totals.calls, totals.broken_down) == (5, 5)


def test_what_is_pending_when_it_is_switched_off_is_counted(profiler: GPUProfiler, device: Exact) -> None:
    for seconds in (10 * US, 1.0):
        with profiler.profile("step"):
            device.kernel("k", seconds)
        if seconds < 1.0:
            profiler.synchronize()
    profiler.disable()
    profiler.synchronize()
    totals = profiler.get_summary()["step"]
    assert (totals.calls, totals.broken_down) == (2, 1)


def test_reset_forgets(profiler: GPUProfiler, device: Exact) -> None:
    with profiler.profile("old"):
        pass
    profiler.reset()
    with profiler.profile("new"):
        pass
    profiler.synchronize()
    assert set(profiler.get_summary()) == {"new"}


# -- where things are missing --------------------------------------------------------------------------------------------


def test_without_a_device_there_is_the_hosts_time(tmp_path: Path) -> None:
    backend = Backend()
    backend.why_no_device = "no CUDA driver"
    profiler = GPUProfiler(backend=backend)
    with profiler.profile("step"):
        pass
    profile = exported(profiler, tmp_path)
    assert [(entry.device, entry.busy_s) for entry in profile.entries] == [("cpu", None)]
    assert profile.facts["no_device"] == "no CUDA driver"
    assert profile.lost == 0


def test_without_a_trace_there_is_no_breakdown(device: Exact, tmp_path: Path, capsys: Any) -> None:
    profiler = GPUProfiler(backend=device, breakdown=False)
    device.kernel("before", 1e-3)
    with profiler.profile("step"):
        device.kernel("k", 10 * US)
    (entry,) = entries(profiler, tmp_path, "step")
    assert entry.duration_s == pytest.approx(10 * US + WINDOW_S)
    assert (entry.busy_s, entry.transfer_s, entry.idle_s, entry.utilization) == (None,) * 4
    profiler.print_summary()
    assert "busy, copies and idle are unknown: it was not asked for" in capsys.readouterr().out


def test_a_device_that_fails_ends_device_times_and_not_the_program(profiler: GPUProfiler, device: Exact) -> None:
    for number in range(3 * HARVEST):
        with profiler.profile("step"):
            device.kernel("k", 10 * US)
        if number == HARVEST:
            device.lose_context(1)
    profiler.synchronize()
    with profiler.profile("after"):
        pass
    profiler.synchronize()
    assert profiler.get_summary()["step"].calls == 3 * HARVEST
    profile = profiler._profile()
    assert profile.lost > 0
    assert "the device failed: an illegal memory access" in profile.no_breakdown


def test_a_stream_that_is_captured_is_left_alone(profiler: GPUProfiler, device: Exact, monkeypatch: Any) -> None:
    monkeypatch.setattr(device, "capturing", lambda: True)
    with profiler.profile("captured"):
        device.kernel("k", 10 * US)
    profiler.synchronize()
    assert profiler.get_summary()["captured"].device == "cpu"
    assert device._events == []


def test_a_forked_child_has_the_hosts_time(profiler: GPUProfiler, device: Exact) -> None:
    with profiler.profile("parent"):
        device.kernel("k", 10 * US)
        with profiler._ledger.lock, warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of threads that other tests may have left
            child = os.fork()
            if not child:
                with profiler.profile("child"):
                    pass
                profiler.synchronize()
                devices = [(entry.operation, entry.device) for entry in profiler._profile().entries]
                os._exit(0 if devices == [("child", "cpu")] else 1)
        assert os.waitpid(child, 0)[1] == 0
    profiler.synchronize()
    assert set(profiler.get_summary()) == {"parent"}


# -- what is printed and written -----------------------------------------------------------------------------------------


def test_summary_and_bottlenecks_are_printed(profiler: GPUProfiler, device: Exact, capsys: Any) -> None:
    profiler.print_summary()
    for _ in range(10):
        with profiler.profile("matmul"):
            device.kernel("ampere_bf16_gemm", 100 * US)
        with profiler.profile("load", device="cpu"):
            device.host(5 * US)
    device.synchronize()
    profiler.print_summary()
    profiler.print_bottlenecks(1)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "nothing was profiled"
    assert lines[1].split()[:6] == ["operation", "device", "calls", "share", "total", "self"]
    assert lines[2].split()[:6] == ["matmul", "gpu", "10", "95.2", "%", "1.01"]
    assert lines[4] == "1. matmul: 95.2 % of the time, compute-bound"
    assert "ampere_bf16_gemm" in lines[5]
    assert [bottleneck.operation for bottleneck in profiler.get_bottlenecks()] == ["matmul", "load"]


def test_an_export_that_cannot_be_written_leaves_the_old_one(profiler: GPUProfiler, tmp_path: Path) -> None:
    path = profiler.export_json(tmp_path / "profile.json")
    before = path.read_text()
    with pytest.raises(OSError, match="No such file"):
        profiler.export_json(tmp_path / "no" / "profile.json")
    assert path.read_text() == before
    assert json.loads(before)["schema"] == "regress.profile/1"
    assert [path.name for path in tmp_path.iterdir()] == ["profile.json"]


def test_there_is_one_profiler_of_the_program() -> None:
    assert get_profiler() is get_profiler()
