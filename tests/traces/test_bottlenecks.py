"""What an operation is bound by rests on what was seen."""

from __future__ import annotations

from dataclasses import replace

import pytest

from regress.profiles import Kernel, Operation
from regress.traces.bottlenecks import ADVICE, bottlenecks

PLAIN = Operation(
    operation="op",
    device="gpu",
    backend="torch",
    calls=10,
    failed=0,
    total_s=1.0,
    self_s=1.0,
    share=1.0,
    mean_s=0.1,
    min_s=0.1,
    max_s=0.1,
    host_s=0.1,
    broken_down=10,
    span_s=1.0,
    busy_s=1.0,
    transfer_s=0.0,
    idle_s=0.0,
)
LIMITS = {"memory_bytes_s": 3e12, "float32_flops_s": 60e12}
GEMM, NORM, ODD = (Kernel(name, 10, 0.9) for name in ("sm90_xmma_gemm", "layer_norm_kernel", "mine"))


@pytest.mark.parametrize(
    ("changes", "bound", "evidence"),
    [
        ({"device": "cpu"}, "host", "it runs on the CPU"),
        ({"busy_s": 0.3, "idle_s": 0.7}, "overhead", "the device is idle for 70 % of its span"),
        ({"busy_s": 0.5, "transfer_s": 0.4, "idle_s": 0.1}, "transfer", "copies are 40 % of its span"),
        ({"bandwidth_bytes_s": 2.4e12}, "memory", "its declared work is 80 % of the device's memory bandwidth"),
        ({"bandwidth_bytes_s": 0.3e12, "flops_s": 30e12}, "compute", "50 % of the device's float32 arithmetic"),
        ({"kernels": (GEMM,)}, "compute", "such as sm90_xmma_gemm"),
        ({"kernels": (NORM, Kernel("mine", 1, 0.5))}, "memory", "by its kernels: 64 % of their time"),
        ({"kernels": (ODD,)}, "unknown", "its kernels do not show it"),
        ({"busy_s": None, "transfer_s": None, "idle_s": None}, "unknown", "neither its kernels nor its amount of work"),
        ({"bandwidth_bytes_s": 1e9, "kernels": (GEMM,)}, "compute", "sm90_xmma_gemm"),
    ],
)
def test_what_binds_it(changes: dict[str, object], bound: str, evidence: str) -> None:
    (bottleneck,) = bottlenecks([replace(PLAIN, **changes)], LIMITS)  # type: ignore[arg-type]
    assert bottleneck.bound == bound
    assert evidence in bottleneck.evidence
    assert bottleneck.advice == ADVICE[bound]


def test_the_largest_come_first() -> None:
    operations = [replace(PLAIN, operation=f"op{n}", self_s=float(n)) for n in range(8)]
    assert [bottleneck.operation for bottleneck in bottlenecks(operations, {})] == ["op7", "op6", "op5", "op4", "op3"]
