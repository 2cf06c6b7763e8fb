"""Declared work in what `run` and `check` print, and one more worker for the ceilings, which fails no command."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from regress.commands.check import check
from regress.commands.run import run
from regress.measure.wire import Ceilings
from regress.model import Failure, Report
from regress.report.json import schema
from regress.run import ceilings as module
from regress.session import Request
from tests.conftest import Project
from tests.run.test_execute import Watch

SUITE = """
import regress_scripted as d
def cudatime_copy(dtype): d.kernel("copy", 1e-3)
cudatime_copy.params = ["float32", "float16"]
cudatime_copy.bytes = 1_500_000_000
cudatime_copy.flops = lambda dtype: 2_500_000_000
def cudatime_plain(): d.kernel("plain", 1e-3)
"""
CEILINGS = Ceilings(3e12, {"float16": 5e12})


@pytest.fixture
def declared(project: Callable[..., Project]) -> Project:
    p = project(run_rounds=2, check_rounds=2)
    p.commit({"benchmarks/b.py": SUITE})
    p.commit({}, "nothing")
    return p


def shares(report: Report) -> dict[str, Any]:
    throughputs = {str(row.case): row.throughput for row in report.measurements if row.throughput is not None}
    return {case: (throughput.share_of_copy, throughput.share_of_matmul) for case, throughput in throughputs.items()}


def test_work_is_shown_beside_the_value(declared: Project) -> None:
    text = declared.regress("run").out
    assert re.search(r"1\.[45]\d TB/s; 2\.[45]\d TFLOP/s +2 ", text)
    assert "of copy" not in text, "a scripted device has no ceilings"
    report = json.loads(declared.regress("check", "HEAD~1", "HEAD", "--format", "json").out)
    jsonschema.Draft202012Validator(schema()).validate(report)
    with_work = {row["name"]: row for row in report["benchmarks"] if row["throughput"]}
    assert set(with_work) == {"b.cudatime_copy"}
    for side in ("base", "head"):
        throughput = with_work["b.cudatime_copy"]["throughput"][side]
        assert throughput["bytes_per_s"] == pytest.approx(1.5e12, rel=0.02)
        assert throughput["share_of_copy"] is None


def test_shares_are_of_what_the_device_was_found_to_do(declared: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def ceilings_of(facts: Any, folder: Path, measure: Callable[[], Ceilings], peer: bool) -> Ceilings:
        asked.append((facts["gpu_uuid"], folder))
        return CEILINGS

    monkeypatch.setattr(module, "ceilings_of", ceilings_of)
    request = Request(declared.root)
    report = run(request, None, Watch())
    half = pytest.approx(0.5, rel=0.02)
    assert shares(report) == {"b.cudatime_copy('float32')": (half, None), "b.cudatime_copy('float16')": (half, half)}
    compared = check(request, "HEAD~1", "HEAD", Watch()).comparisons
    assert [comparison.head_throughput.share_of_copy for comparison in compared if comparison.head_throughput] == [
        half
    ] * 2
    assert asked[0] == asked[1]
    assert asked[0][0] == "scripted"
    run(Request(declared.root, patterns=("plain",)), None, Watch())
    assert len(asked) == 2, "nothing was declared, so nothing is asked"


def test_ceilings_that_cannot_be_measured_are_a_warning(declared: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    failed = Ceilings(3e12, failure=Failure("oom", "no room"))
    monkeypatch.setattr(module, "ceilings_of", lambda facts, folder, measure, peer: failed)
    report = run(Request(declared.root), None, Watch())
    assert report.exit_code == 0
    assert shares(report)["b.cudatime_copy('float16')"] == (pytest.approx(0.5, rel=0.02), None)
    said = "some shares of the device's peak are unknown: no room"
    assert report.warnings.count(said) == 1
