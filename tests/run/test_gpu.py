"""Real workers on a real device: what breaks one case is blamed on it, and the others are measured."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.run.test_execute import Bench, failures, good, values_of

pytestmark = pytest.mark.gpu

SUITE = """
import torch


class Fine:
    def setup(self):
        self.x = torch.randn(1 << 22, device="cuda")

    def cudatime_a_before(self): return self.x + self.x
    def cudatime_z_after(self): return self.x + self.x


def cudatime_m_asks_for_too_much(): torch.empty(1 << 40, device="cuda")


class OutOfRange:
    def setup(self):
        self.x, self.index = torch.randn(16, device="cuda"), torch.tensor([1 << 20], device="cuda")

    def cudatime_n_asserts(self): return self.x[self.index]


class Waits:
    def setup(self):
        self.x = torch.randn(1 << 22, device="cuda")

    def cudatime_o_reads(self): return self.x.sum().item()
"""


def test_one_case_that_breaks_the_device_costs_only_itself(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    bench = Bench(tmp_path)
    bench.write(SUITE)
    measured = bench.run(settings={"device": "cuda"})
    found = failures(measured)
    assert set(found) == {"b.cudatime_m_asks_for_too_much", "b.OutOfRange.cudatime_n_asserts"}
    assert found["b.cudatime_m_asks_for_too_much"].kind == "oom"
    assert "assert" in found["b.OutOfRange.cudatime_n_asserts"].message.lower()
    assert good(measured) == {
        "b.Fine.cudatime_a_before": 2,
        "b.Fine.cudatime_z_after": 2,
        "b.Waits.cudatime_o_reads": 2,
    }
    device, wall = values_of(measured, "gpu_time"), values_of(measured, "wall_time")
    assert "b.Waits.cudatime_o_reads" not in device
    assert min(wall["b.Waits.cudatime_o_reads"]) > 0
    assert device["b.Fine.cudatime_z_after"] == pytest.approx(device["b.Fine.cudatime_a_before"], rel=0.05)
    assert all(0.3e9 < each.facts["sm_clock_hz"] < 3e9 for each in measured.rounds if "sm_clock_hz" in each.facts)
    assert any("sm_clock_hz" in each.facts for each in measured.rounds)
