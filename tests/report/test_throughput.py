"""Throughput in words, in the tables, and in the documents."""

from __future__ import annotations

from dataclasses import replace

import pytest

from regress.model import METRICS, Case, Comparison, Measurement, Report, Throughput, Verdict
from regress.report import Style, render
from regress.report.json import document
from regress.report.rows import throughput_words

from .sample import summary

COPY = Throughput(bytes_per_s=1.484e12, share_of_copy=0.531)


@pytest.mark.parametrize(
    ("throughput", "words"),
    [
        (None, ""),
        (Throughput(), ""),
        (COPY, "1.48 TB/s, 53.1 % of copy"),
        (Throughput(flops_per_s=6.1e14, share_of_matmul=0.78), "610 TFLOP/s, 78 % of matmul"),
        (Throughput(bytes_per_s=2.5e10), "25.0 GB/s"),
        (Throughput(1e9, 2e3, 0.01, None), "1.00 GB/s, 1 % of copy; 2.00 kFLOP/s"),
    ],
)
def test_words(throughput: Throughput | None, words: str) -> None:
    assert throughput_words(throughput) == words


def test_a_run_has_a_column_for_it_only_where_a_benchmark_declares_work() -> None:
    row = Measurement(Case("b.copy"), METRICS["gpu_time"], summary(1e-3), throughput=COPY)
    report = Report("run", measurements=(row, replace(row, case=Case("b.other"), throughput=None)))
    text = render(report, Style(), "text")
    assert text.splitlines()[0].split() == ["measured", "value", "throughput", "rounds", "spread"]
    assert "1.00 ± 0.01 ms  1.48 TB/s, 53.1 % of copy  " in text
    assert "throughput" not in render(replace(report, measurements=report.measurements[1:]), Style(), "text")
    first, second = document(report)["benchmarks"]
    assert first["throughput"] == {
        "bytes_per_s": 1.484e12,
        "flops_per_s": None,
        "share_of_copy": 0.531,
        "share_of_matmul": None,
    }
    assert second["throughput"] is None


def test_a_check_shows_the_heads_if_verbose() -> None:
    comparison = Comparison(
        Case("b.copy"), METRICS["gpu_time"], Verdict.REGRESSED, base=summary(1e-3), head=summary(2e-3), ratio=2.0
    )
    base = replace(COPY, bytes_per_s=2.968e12, share_of_copy=1.0)
    report = Report("check", comparisons=(replace(comparison, base_throughput=base, head_throughput=COPY),))
    assert "1.48 TB/s, 53.1 % of copy" in render(report, Style(verbose=True), "text")
    assert "copy," not in render(report, Style(), "text").replace("b.copy", "")
    assert "throughput" not in render(replace(report, comparisons=(comparison,)), Style(verbose=True), "text")
    (row,) = document(report)["benchmarks"]
    assert row["throughput"]["base"]["share_of_copy"] == 1.0
    assert row["throughput"]["head"]["bytes_per_s"] == 1.484e12
