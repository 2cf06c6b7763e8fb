"""Cases profiled in real worker processes, on the scripted device and with torch on the CPU."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from regress.errors import NothingMeasured
from regress.measure.wire import CALL_MARK, CALLS_SKIPPED
from regress.model import Case
from regress.run import questions
from regress.run.execute import discover
from regress.run.profiled import Profiled, profiled
from regress.traces import chrome
from regress.traces.timeline import Timeline, between
from regress.traces.totals import by_copy, by_kernel, by_operator, memory, totals
from tests.run.test_execute import Bench


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def profile(bench: Bench, name: str, *params: str, calls: int = 4, **job: Any) -> Profiled:
    asked = bench.job(**job)
    (side,) = asked.sides
    benchmarks = {benchmark.name: benchmark for benchmark in discover(asked, side, bench.watch).benchmarks}
    return profiled(side, asked, benchmarks[name], Case(name, params), bench.root / "traces", calls)


def timeline(recorded: Profiled) -> Timeline:
    assert recorded.failure is None
    assert recorded.trace is not None
    return between(chrome.read(recorded.trace), CALL_MARK, CALLS_SKIPPED)


SUITE = """
import regress_scripted as d

def setup_cache(): return 30e-6

class Layer:
    params = [[1, 2], ["a", "b"]]
    param_names = ["n", "word"]
    bytes = 4096
    def setup(self, seconds, n, word):
        d.kernel("setup", 1e-3)
    def cudatime_layer(self, seconds, n, word):
        buffer = d.alloc(1 << 20)
        d.copy(4096, 3e-6)
        for _ in range(n):
            d.kernel("softmax", seconds)
        d.host(5e-6)
        d.synchronize()
"""


def test_the_scripted_device_writes_what_it_did(bench: Bench) -> None:
    bench.write(SUITE)
    recorded = profile(bench, "b.Layer.cudatime_layer", "2", "'a'")
    calls = timeline(recorded)
    sums = totals(calls)
    assert recorded.calls == calls.calls == 4
    assert (sums.launches, sums.copies, sums.synchronizations) == (2, 1, 1)
    (use,) = by_kernel(calls)
    assert (use.name, use.operators) == ("softmax", ("scripted::softmax",))
    assert use.seconds == pytest.approx(60e-6, rel=0.02)
    (copied,) = by_copy(calls)
    assert copied.bytes == 4096
    assert {operator.name for operator in by_operator(calls)} == {
        "scripted::softmax",
        "scripted::copy",
        "scripted::host",
    }
    used = memory(calls)
    assert used is not None
    assert (used.peak_bytes, used.left_bytes) == (1 << 20, 0)
    assert (calls.device, calls.gaps_in_record) == ("scripted device", ())
    assert recorded.seconds == pytest.approx(sums.span_s, rel=0.1), "the scripted profiler costs nothing"
    assert recorded.facts["bytes"] == 4096
    assert recorded.facts["gpu"] == "scripted device"
    assert recorded.trace is not None
    assert recorded.trace.name == "b.Layer.cudatime_layer-2-a-aaaaaaaa.json.gz"


def test_parameters_choose_the_case(bench: Bench) -> None:
    bench.write(SUITE)
    assert totals(timeline(profile(bench, "b.Layer.cudatime_layer", "1", "'b'"))).launches == 1


def test_torch_on_the_cpu_has_operators_and_no_device(bench: Bench) -> None:
    pytest.importorskip("torch")
    bench.write(
        """
import torch
class Net:
    def setup(self):
        self.x = torch.randn(64, 64)
    def time_net(self):
        return torch.nn.functional.gelu(self.x @ self.x)
"""
    )
    recorded = profile(bench, "b.Net.time_net", settings={"device": "cpu"})
    calls = timeline(recorded)
    assert calls.calls == 4
    assert {"aten::matmul", "aten::mm", "aten::gelu"} <= {operator.name for operator in by_operator(calls)}
    assert (calls.launches, calls.gaps_in_record) == ((), ("no device work was recorded",))
    assert recorded.seconds > 0
    assert "torch" in recorded.facts["loaded"]


def test_what_runs_before_each_call_is_not_in_it(bench: Bench) -> None:
    bench.write(
        """
import regress_scripted as d
class Reset:
    def reset(self): d.kernel("reset", 1e-3)
    def cudatime_r(self): d.kernel("work", 50e-6)
"""
    )
    recorded = profile(bench, "b.Reset.cudatime_r")
    assert [use.name for use in by_kernel(timeline(recorded))] == ["work"]
    assert recorded.seconds < 100e-6
    assert any("between the calls" in flag for flag in recorded.flags)


def test_what_a_case_does_to_its_process_is_its_own_failure(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(questions, "RECORD_GRACE_S", 0.5)
    bench.write(
        """
import os, time
def time_raises(): raise ValueError("no such layer")
def time_dies(): os.kill(os.getpid(), 11)
def time_hangs(): time.sleep(600)
time_hangs.timeout = 0.5
def time_skipped(): pass
def not_here(): raise NotImplementedError
time_skipped.setup = not_here
def timeraw_text(): return "x = 1"
"""
    )
    outcomes = {
        name: profile(bench, f"b.{name}")
        for name in ("time_raises", "time_dies", "time_hangs", "time_skipped", "timeraw_text")
    }
    assert all(outcome.trace is None for outcome in outcomes.values())
    kinds = {name: benchmark.failure.kind for name, benchmark in outcomes.items() if benchmark.failure is not None}
    assert kinds == {
        "time_raises": "error",
        "time_dies": "signal",
        "time_hangs": "timeout",
        "time_skipped": "skipped",
        "timeraw_text": "skipped",
    }
    raised = outcomes["time_raises"].failure
    assert raised is not None
    assert "no such layer" in raised.message


def test_a_setup_cache_that_fails_is_the_reason(bench: Bench) -> None:
    bench.write(
        """
def setup_cache(): raise ValueError("no weights")
def time_t(weights): pass
"""
    )
    failure = profile(bench, "b.time_t").failure
    assert failure is not None
    assert "no weights" in failure.message


def test_without_torch_there_is_no_profiler(bench: Bench) -> None:
    bench.write("def time_t(): pass\n")
    (bench.root / "head" / "torch.py").write_text("raise ImportError('broken build')\n")
    failure = profile(bench, "b.time_t", settings={"device": "cpu"}).failure
    assert failure is not None
    assert failure.message.startswith("cannot be profiled: torch.profiler cannot be imported: broken build; fix: ")


def test_code_from_elsewhere_is_not_profiled(bench: Bench, tmp_path_factory: pytest.TempPathFactory) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (elsewhere / "proj").mkdir()
    (elsewhere / "proj" / "__init__.py").write_text("")
    bench.write(f"import sys\nsys.path.insert(0, {str(elsewhere)!r})\nimport proj\ndef time_t(): pass\n")
    with pytest.raises(NothingMeasured, match="imported from elsewhere"):
        profile(bench, "b.time_t")
