"""Cases profiled on a real device, and run in a plain process there."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from regress.measure.wire import CALL_MARK
from regress.model import CallProfile
from regress.run.profiled import Profiled
from regress.traces.calls import call_profile
from regress.traces.names import short
from regress.traces.totals import by_copy, by_kernel, memory, totals
from tests.run.test_execute import Bench
from tests.run.test_profiled import profile, timeline

pytestmark = pytest.mark.gpu

ROOT = Path(__file__).parents[2]
_TOOL = re.compile("Nsight Compute is not installed|ERR_NVGPUCTRPERM|cannot reach the GPU's counters")
"""What ncu needs and a machine may not have."""
SUITE = """
import torch

class Product:
    bytes = 3 * 4096 * 4096 * 2
    flops = 2 * 4096**3
    dtype = "bfloat16"
    def setup(self):
        self.x = torch.randn(4096, 4096, device="cuda", dtype=torch.bfloat16)
    def cudatime_product(self):
        return self.x @ self.x

class Small:
    def setup(self):
        self.x = torch.randn(16, device="cuda")
    def cudatime_small(self):
        with torch.profiler.record_function("the sum"):
            return self.x + self.x

class Waits:
    def setup(self):
        self.x, self.host = torch.randn(1 << 20, device="cuda"), torch.randn(1 << 20).pin_memory()
    def cudatime_waits(self):
        self.x.copy_(self.host, non_blocking=True)
        return self.x.sum().item()

class Fails:
    def setup(self):
        self.x, self.index = torch.randn(16, device="cuda"), torch.tensor([1 << 20], device="cuda")
    def cudatime_asserts(self): return self.x[self.index]
"""


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    bench = Bench(tmp_path)
    bench.write(SUITE)
    return bench


def on_device(bench: Bench, name: str) -> Profiled:
    return profile(bench, f"b.{name}", calls=10, settings={"device": "cuda"})


def told(profiled: Profiled) -> CallProfile:
    return call_profile(profiled.case, timeline(profiled), CALL_MARK, profiled.seconds, lambda seconds: None)


def test_a_product_is_one_kernel_that_keeps_the_device_busy(bench: Bench) -> None:
    profiled = on_device(bench, "Product.cudatime_product")
    calls = timeline(profiled)
    sums = totals(calls)
    assert (calls.calls, sums.launches, sums.synchronizations) == (10, 1, 0)
    assert {copy.kind for copy in calls.copies} <= {"memset"}, "cuBLAS may clear its workspace"
    (use,) = by_kernel(calls)
    assert use.operators[0] == "aten::matmul"
    assert "4096, 4096" in use.shapes
    assert sums.device_busy_s == pytest.approx(profiled.seconds, rel=0.25), "the profiler does not slow the device down"
    assert sums.idle_s < 0.2 * sums.span_s
    used = memory(calls)
    assert used is not None
    assert used.allocated_bytes / calls.calls == 4096 * 4096 * 2
    assert profiled.facts["flops"] == 2 * 4096**3
    assert profiled.facts["gpu"] == calls.device
    assert "torch" in profiled.facts["loaded"]


def test_a_small_kernel_is_launch_bound_and_its_part_is_named(bench: Bench) -> None:
    profile = told(on_device(bench, "Small.cudatime_small"))
    assert profile.bound is not None
    assert profile.bound.kind == "launch-bound"
    assert profile.bottleneck is not None
    assert profile.bottleneck.kind == "idle"
    (part,) = profile.parts
    assert (part.name, part.uses, part.launches) == ("the sum", 1, 1)
    assert part.device_s == pytest.approx(profile.kernels[0].seconds)
    assert short(profile.kernels[0].name) == "at::native::vectorized_elementwise_kernel"


def test_copies_and_waiting_are_seen(bench: Bench) -> None:
    profiled = on_device(bench, "Waits.cudatime_waits")
    calls = timeline(profiled)
    assert totals(calls).synchronizations >= 1
    assert totals(calls).waiting_s > 0
    assert {"host to device", "device to host"} <= {copy.kind for copy in calls.copies}
    assert max(kernel.bytes for kernel in by_copy(calls)) == 4 << 20


def test_a_case_that_breaks_its_context_is_its_own_failure(bench: Bench) -> None:
    profiled = on_device(bench, "Fails.cudatime_asserts")
    assert profiled.trace is None
    assert profiled.failure is not None
    assert "assert" in profiled.failure.message
    assert on_device(bench, "Small.cudatime_small").failure is None


def repository(folder: Path) -> Path:
    """A repository with the suite, to be used from the command line."""
    (folder / "benchmarks").mkdir(parents=True)
    (folder / "benchmarks" / "__init__.py").write_text("")
    (folder / "benchmarks" / "b.py").write_text(SUITE)
    config = {"version": 1, "project": "p", "repo": ".", "benchmark_dir": "benchmarks"}
    (folder / "asv.conf.json").write_text(json.dumps(config))
    identity = ["-c", "user.name=a", "-c", "user.email=a@b"]
    for words in (["init", "-q"], ["add", "-A"], [*identity, "commit", "-qm", "one"]):
        subprocess.run(["git", *words], cwd=folder, check=True)
    return folder


def regress(folder: Path, *words: str, under: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*under, sys.executable, "-m", "regress", *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_command_holds_a_call_against_the_measured_ceilings(tmp_path: Path) -> None:
    done = regress(repository(tmp_path / "p"), "profile", "b.Product", "--format", "json")
    assert done.returncode == 0, done.stderr
    (profile,) = json.loads(done.stdout)["profiles"]
    assert profile["bound"]["kind"] == "compute-bound"
    assert 0.6 < profile["throughput"]["share_of_matmul"] < 1.3
    assert profile["bottleneck"]["kind"] == "kernel"
    assert profile["bottleneck"]["share"] > 0.8
    assert Path(profile["trace"]).is_file()


def test_once_runs_on_the_device(tmp_path: Path) -> None:
    done = regress(repository(tmp_path / "p"), "once", "b.Small", "--calls", "5")
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert done.stderr.startswith("regress: 5 calls of b.Small.cudatime_small, ")


def test_nsys_captures_the_calls_alone(tmp_path: Path) -> None:
    nsys = shutil.which("nsys")
    if nsys is None:
        pytest.skip("nsys is not installed")
    folder = repository(tmp_path / "p")
    under = (nsys, "profile", "-c", "cudaProfilerApi", "-t", "cuda,nvtx", "-o", "calls", "--export", "sqlite")
    done = regress(folder, "once", "b.Small", "--calls", "5", under=under)
    assert done.returncode == 0, done.stderr
    from regress.traces import nsys as reader

    read = reader.read(folder / "calls.sqlite")
    assert len(read.launches) == 5
    assert [span.name for span in read.ranges].count(CALL_MARK) == 5


def test_ncu_measures_the_kernels_of_a_call(tmp_path: Path) -> None:
    done = regress(repository(tmp_path / "p"), "profile", "b.Product", "--ncu", "--format", "json")
    data = json.loads(done.stdout)
    if any(error["kind"] == "stopped" and _TOOL.search(error["message"]) for error in data["errors"]):
        pytest.skip(data["errors"][0]["message"])
    assert done.returncode == 0, done.stderr
    assert "NVIDIA" in data["device"]
    (case,) = data["metered"]
    (kernel,) = case["kernels"]
    measured = kernel["metrics"]
    assert re.search("gemm|nvjet|cutlass", kernel["label"], re.IGNORECASE), kernel["label"]
    assert (kernel["launches"], kernel["share"]) == (1, 1)
    # 2 * 4096^3 operations take 0.14 ms at 1 PFLOP/s, and 14 ms at a hundredth of that
    assert 50e-6 < measured["duration_s"] < 20e-3
    for share in ("achieved_occupancy", "theoretical_occupancy", "memory_throughput", "l1_hit_rate", "l2_hit_rate"):
        assert 0 <= measured[share] <= 1, share
    assert 0 < measured["achieved_occupancy"] <= measured["theoretical_occupancy"] * 1.05
    assert measured["tensor_use"] > 0.2
    assert 16 <= measured["registers"] <= 255
    assert measured["shared_bytes"] > 0
    assert kernel["bound"]["kind"] == "compute-bound"
    assert Path(case["table"]).is_file()
    assert Path(case["report"]).is_file()
    shown = regress(tmp_path, "profile", case["table"], "--format", "json")
    (again,) = json.loads(shown.stdout)["metered"]
    assert again["kernels"][0]["metrics"] == measured
