"""The profiler on a real device: laws that hold whatever the device's speed, and agreement with torch's own profiler."""

from __future__ import annotations

import gc
import json
import statistics
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from regress.measure.backend.cuda import CudaBackend
from regress.profiler import GPUProfiler

pytestmark = pytest.mark.gpu

Call = Callable[[], object]

WORKLOADS = ("matmul", "elementwise", "copies")
CALLS = 50
TORCH_PROFILER = """
import json, sys, torch
from torch.autograd import DeviceType
from torch.profiler import ProfilerActivity, profile
from tests.profiler.test_gpu_profiler import CALLS, workloads
found = {}
for name, call in workloads(torch).items():
    for _ in range(5):
        call()
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CUDA], acc_events=True) as traced:
        for _ in range(CALLS):
            call()
        torch.cuda.synchronize()
    events = [each for each in traced.events() if each.device_type == DeviceType.CUDA]
    found[name] = sum(each.time_range.end - each.time_range.start for each in events) * 1e-6 / CALLS
print(json.dumps(found))
"""


def workloads(torch: Any) -> dict[str, Call]:
    """One of large kernels, one of several small ones, one of copies and a kernel."""
    a = torch.randn(4096, 4096, device="cuda", dtype=torch.bfloat16)
    x = torch.randn(1 << 24, device="cuda")
    pinned = torch.randn(1 << 22).pin_memory()
    target = torch.empty(1 << 22, device="cuda")

    def elementwise() -> object:
        return (x * 2 + 1).relu().sum()

    def copies() -> object:
        target.copy_(pinned, non_blocking=True)
        return target * 2

    return {"matmul": lambda: a @ a, "elementwise": elementwise, "copies": copies}


@pytest.fixture(scope="module")
def torch() -> Any:
    module = pytest.importorskip("torch")
    module.cuda.init()
    return module


@pytest.fixture
def profiler(torch: Any) -> Any:
    made = GPUProfiler()
    yield made
    made.disable()


def warm(torch: Any, call: Call) -> None:
    for _ in range(5):
        call()
    torch.cuda.synchronize()


def test_busy_transfers_and_idle_add_up_to_the_span(torch: Any, profiler: GPUProfiler, tmp_path: Path) -> None:
    for name, call in workloads(torch).items():
        warm(torch, call)
        for _ in range(CALLS):
            with profiler.profile(name):
                call()
    profiler.print_summary()
    document = json.loads(profiler.export_json(tmp_path / "profile.json").read_text())
    profiler.print_summary()
    assert document["no_breakdown"] == ""
    assert document["pending"] == document["lost"] == 0
    assert len(document["entries"]) == CALLS * len(WORKLOADS)
    for entry in document["entries"]:
        assert entry["busy_s"] is not None, entry
        parts = entry["busy_s"] + entry["transfer_s"] + entry["idle_s"]
        assert parts == pytest.approx(entry["duration_s"], rel=0.02), entry
        assert entry["busy_s"] > 0, entry
    copies = next(operation for operation in document["operations"] if operation["operation"] == "copies")
    assert copies["copied_bytes"] == pytest.approx(CALLS * 4 * (1 << 22), rel=0.02)


def test_it_agrees_with_the_profiler_of_torch(torch: Any, profiler: GPUProfiler) -> None:
    done = subprocess.run([sys.executable, "-c", TORCH_PROFILER], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    theirs = json.loads(done.stdout.splitlines()[-1])
    for name, call in workloads(torch).items():
        warm(torch, call)
        for _ in range(CALLS):
            with profiler.profile(name):
                call()
        profiler.synchronize()
    for name, totals in profiler.get_summary().items():
        assert totals.busy_s is not None
        assert totals.transfer_s is not None
        ours = (totals.busy_s + totals.transfer_s) / totals.calls
        print(
            f"{name}: ours {ours * 1e6:.2f} us, torch.profiler {theirs[name] * 1e6:.2f} us ({ours / theirs[name] - 1:+.2%})"
        )
        assert ours == pytest.approx(theirs[name], rel=0.05, abs=3e-6), name


def test_a_span_is_what_events_of_torch_say(torch: Any, profiler: GPUProfiler) -> None:
    a = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
    warm(torch, lambda: a @ a)
    events = [(torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)) for _ in range(20)]
    for start, end in events:
        with profiler.profile("matmul"):
            start.record()
            a @ a
            end.record()
    profiler.synchronize()
    theirs = statistics.mean(start.elapsed_time(end) * 1e-3 for start, end in events)
    ours = profiler.get_summary()["matmul"].mean_s
    print(f"ours {ours * 1e6:.2f} us, torch's events {theirs * 1e6:.2f} us")
    assert theirs <= ours <= theirs * 1.02 + 40e-6


def test_it_does_not_wait_for_the_device(torch: Any, profiler: GPUProfiler) -> None:
    spinning = CudaBackend()
    spinning.hold_stream()
    x = torch.ones(10, device="cuda")
    with profiler.profile("first"):  # opens everything
        x + 1
    torch.cuda.synchronize()
    spinning.spin(0.3)
    for _ in range(100):
        with profiler.profile("behind"):
            x + 1
    profiler.get_summary()
    assert not torch.cuda.current_stream().query(), "the stream was waited for"
    assert profiler.pending
    profiler.synchronize()
    assert profiler.get_summary()["behind"].calls == 100


def test_memory_does_not_grow_with_the_number_of_entries(torch: Any, profiler: GPUProfiler) -> None:
    x = torch.ones(1 << 12, device="cuda")

    def run(entries: int) -> tuple[int, int]:
        for _ in range(entries):
            with profiler.profile("add"):
                x + 1
        assert profiler._ledger.timeline is not None
        assert profiler._ledger.trace is not None
        return profiler._ledger.timeline.events, len(profiler._ledger.trace._times)

    events, times = run(20_000)
    gc.collect()
    more_events, more_times = run(80_000)
    print(
        f"{events} events after 20,000 entries, {more_events} after 100,000; {times} and {more_times} moments of the trace"
    )
    assert more_events <= max(2 * events, 4096)
    assert more_times <= max(2 * times, 20_000)
    profiler.synchronize()
    assert profiler.get_summary()["add"].calls == 100_000


def test_memory_is_that_of_the_entry(torch: Any, profiler: GPUProfiler) -> None:
    before = torch.cuda.memory_stats()["requested_bytes.all.current"]
    with profiler.profile("outer"):
        big = torch.empty(64 << 20, dtype=torch.uint8, device="cuda")
        del big
        with profiler.profile("inner"):
            kept = torch.empty(1 << 20, dtype=torch.uint8, device="cuda")
    profiler.synchronize()
    summary = profiler.get_summary()
    assert (summary["outer"].peak_bytes or 0) - before == 64 << 20
    assert (summary["inner"].peak_bytes or 0) - before == 1 << 20
    assert (summary["inner"].memory_bytes or 0) - before == 1 << 20
    del kept


def test_a_graph_can_be_captured_inside_an_entry(torch: Any, profiler: GPUProfiler) -> None:
    x = torch.zeros(10, device="cuda")
    warm(torch, lambda: x.add_(0))
    graph = torch.cuda.CUDAGraph()
    for _ in range(40):  # so that there is something to harvest
        with profiler.profile("before"):
            x.add_(0)
    with profiler.profile("capture"), torch.cuda.graph(graph):
        for _ in range(40):
            with profiler.profile("captured"):
                x.add_(1)
    with profiler.profile("replay"):
        graph.replay()
    profiler.synchronize()
    assert x.tolist() == [40.0] * 10
    summary = profiler.get_summary()
    assert summary["captured"].device == "cpu"
    assert summary["replay"].device == "gpu"
    assert summary["replay"].calls == 1


def test_threads_with_streams_of_their_own(torch: Any, profiler: GPUProfiler) -> None:
    a = torch.randn(2048, 2048, device="cuda", dtype=torch.bfloat16)
    warm(torch, lambda: a @ a)

    def work(name: str) -> None:
        with torch.cuda.stream(torch.cuda.Stream()):
            for _ in range(100):
                with profiler.profile(name):
                    a @ a

    threads = [threading.Thread(target=work, args=(f"thread {number}",)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    profiler.synchronize()
    assert {name: operation.calls for name, operation in profiler.get_summary().items()} == {
        f"thread {n}": 100 for n in range(3)
    }


def test_it_can_be_switched_off_and_on(torch: Any, profiler: GPUProfiler) -> None:
    x = torch.ones(1 << 24, device="cuda")
    for on in (True, False, True):
        profiler.enabled = on
        for _ in range(20):
            with profiler.profile("add"):
                x + 1
    profiler.synchronize()
    totals = profiler.get_summary()["add"]
    assert totals.calls == totals.broken_down == 40


def test_it_goes_on_after_a_profiler_of_torch(torch: Any, profiler: GPUProfiler) -> None:
    """torch's takes the trace over, and may end it for the whole process when it is done."""
    x = torch.ones(1 << 24, device="cuda")

    def steps(name: str) -> None:
        for _ in range(20):
            with profiler.profile(name):
                x + 1

    steps("before")
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA], acc_events=True):
        steps("beside")
        torch.cuda.synchronize()
    steps("behind")
    profiler.synchronize()
    assert profiler.pending == 0
    steps("later")
    profiler.synchronize()
    totals = profiler.get_summary()
    assert {name: total.calls for name, total in totals.items()} == dict.fromkeys(
        ("before", "beside", "behind", "later"), 20
    )
    assert totals["later"].broken_down == 20


def test_torchs_profiler_sees_all_after_one_that_was_switched_off(torch: Any, profiler: GPUProfiler) -> None:
    x = torch.ones(1 << 20, device="cuda")
    with profiler.profile("before"):
        x + 1
    torch.cuda.synchronize()
    profiler.disable()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA], acc_events=True) as traced:
        for _ in range(CALLS):
            x + 1
        torch.cuda.synchronize()
    assert sum(event.device_time > 0 for event in traced.events()) == CALLS


def test_of_two_profilers_of_a_device_the_later_one_has_the_breakdown(torch: Any, profiler: GPUProfiler) -> None:
    x = torch.ones(1 << 24, device="cuda")
    with profiler.profile("first"):
        x + 1
    other = GPUProfiler()
    for _ in range(20):
        with profiler.profile("earlier"), other.profile("later"):
            x + 1
    profiler.synchronize()
    other.synchronize()
    earlier, later = profiler.get_summary()["earlier"], other.get_summary()["later"]
    other.disable()
    assert (earlier.calls, earlier.broken_down) == (20, 0)
    assert (later.calls, later.broken_down) == (20, 20)


def test_the_current_device_stays_what_it_was(torch: Any, profiler: GPUProfiler) -> None:
    if torch.cuda.device_count() < 2:
        pytest.skip("needs two devices")
    x = torch.ones(1 << 20, device="cuda:1")
    with torch.cuda.device(1):
        with profiler.profile("elsewhere"):
            x + 1
        assert torch.cuda.current_device() == 1
    other = GPUProfiler(device_id=1)
    for _ in range(20):
        with other.profile("there"):
            x + 1
    assert torch.cuda.current_device() == 0
    other.synchronize()
    totals = other.get_summary()["there"]
    other.disable()
    assert (totals.device, totals.broken_down) == ("gpu", 20)
    assert (totals.busy_s or 0.0) > 0
