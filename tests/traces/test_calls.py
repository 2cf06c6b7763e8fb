"""What is told of a case's calls, on traces recorded on an H200."""

from __future__ import annotations

from pathlib import Path

from regress.model import CallProfile, Case, Throughput
from regress.traces import chrome
from regress.traces.calls import call_profile, of_components
from regress.traces.timeline import between
from regress.traces.totals import totals

RECORDED = Path(__file__).parent / "recorded"
MARK = "regress.call"


def told(name: str, call_s: float = 0.0, throughput: Throughput | None = None) -> CallProfile:
    timeline = between(chrome.read(RECORDED / f"{name}.json.gz"), MARK, skip=1)
    return call_profile(Case(name), timeline, MARK, call_s, lambda seconds: throughput)


def test_what_the_profiler_adds_binds_nothing() -> None:
    slow = told("scale_slow_host")
    assert slow.bound is not None
    assert slow.bottleneck is not None
    assert (slow.bound.kind, slow.bottleneck.kind) == ("launch-bound", "idle")
    busy_s = totals(between(chrome.read(RECORDED / "scale_slow_host.json.gz"), MARK, skip=1)).device_busy_s
    usual = told("scale_slow_host", call_s=1.1 * busy_s, throughput=Throughput(share_of_copy=0.9))
    assert usual.bound is not None
    assert usual.bottleneck is not None
    assert (usual.bound.kind, usual.bottleneck.kind) == ("memory-bound", "kernel")
    assert abs(usual.idle_s - 0.1 * busy_s) < 1e-9
    assert any("slower under the profiler" in flag for flag in usual.flags)
    assert slow.flags == ()


def test_a_call_without_a_pause_has_no_idle_time() -> None:
    assert told("linear_fp32", call_s=1e-6).idle_s == 0.0


def test_components_share_the_busy_time() -> None:
    parts = of_components([told("linear_fp32"), told("linear_bf16")])
    shares = [profile.share or 0.0 for profile in parts]
    assert abs(sum(shares) - 1) < 1e-9
    assert shares[0] > shares[1] > 0
