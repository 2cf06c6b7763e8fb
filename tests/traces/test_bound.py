from __future__ import annotations

from dataclasses import replace

import pytest

from regress.model import KernelMetrics, Throughput
from regress.traces.bound import (
    FEWER_BYTES,
    FEWER_INDICES,
    FEWER_LAUNCHES,
    FEWER_OPERATIONS,
    NO_WAITING,
    of_call,
    of_metrics,
)
from regress.traces.timeline import Sync
from regress.traces.totals import totals
from tests.traces.samples import US, launch, near, timeline

BUSY = totals(timeline([launch("k", 0, 90)], span_us=100))


@pytest.mark.parametrize(
    ("throughput", "kind", "share"),
    [
        (Throughput(share_of_copy=0.9, share_of_matmul=0.1), "memory-bound", 0.9),
        (Throughput(share_of_copy=0.2, share_of_matmul=0.8), "compute-bound", 0.8),
        (Throughput(share_of_matmul=0.8), "compute-bound", 0.8),
        (Throughput(share_of_copy=0.3, share_of_matmul=0.2), "latency-bound", 0.3),
        (Throughput(bytes_per_s=1.0), "unknown", None),
        (None, "unknown", None),
    ],
)
def test_declared_work_over_the_ceilings(throughput: Throughput | None, kind: str, share: float | None) -> None:
    bound = of_call(BUSY, throughput)
    assert (bound.kind, bound.share) == (kind, share)
    assert bound.advice


def test_a_device_that_mostly_waits_is_bound_by_launching() -> None:
    idle = timeline([launch("k", 0, 30)], span_us=100)
    bound = of_call(totals(idle), Throughput(share_of_copy=0.9))
    assert (bound.kind, bound.share, bound.advice) == ("launch-bound", near(0.7), FEWER_LAUNCHES)
    waiting = timeline([launch("k", 0, 30)], syncs=[Sync("cudaStreamSynchronize", 0.0, 30 * US)], span_us=100)
    assert of_call(totals(waiting)).advice == NO_WAITING


def test_counters_say_what_holds_a_kernel_back() -> None:
    memory = of_metrics(KernelMetrics("k", memory_throughput=0.9, compute_throughput=0.3))
    assert (memory.kind, memory.share, memory.advice) == ("memory-bound", 0.9, FEWER_BYTES)
    assert memory.why == "90 % of the memory's peak and 30 % of the multiprocessors' peak"
    compute = of_metrics(KernelMetrics("k", dram_throughput=0.1, compute_throughput=0.7))
    assert (compute.kind, compute.advice) == ("compute-bound", FEWER_OPERATIONS)
    assert of_metrics(KernelMetrics("k")).kind == "unknown"


def test_what_to_try_depends_on_which_memory_and_which_pipe_is_busy() -> None:
    caches = of_metrics(KernelMetrics("k", memory_throughput=0.9, compute_throughput=0.3, dram_throughput=0.2))
    assert (caches.kind, "DRAM is not (20 %)" in caches.advice) == ("memory-bound", True)
    dram = of_metrics(KernelMetrics("k", memory_throughput=0.9, compute_throughput=0.3, dram_throughput=0.85))
    assert dram.advice == FEWER_BYTES
    product = KernelMetrics("k", memory_throughput=0.3, compute_throughput=0.8, tensor_use=0.82)
    assert "tensor cores do 82 %" in of_metrics(product).advice
    assert of_metrics(replace(product, tensor_use=0.0)).advice == FEWER_OPERATIONS
    added = replace(product, kernel="void at::native::elementwise_kernel<128, CUDAFunctor_add>(int)", tensor_use=0.05)
    assert of_metrics(added).advice == FEWER_INDICES


def test_what_to_try_against_latency_depends_on_the_launch() -> None:
    low = KernelMetrics("k", memory_throughput=0.2, compute_throughput=0.1)
    small = of_metrics(replace(low, waves=0.25))
    assert (small.kind, "25 % of the device" in small.advice) == ("latency-bound", True)
    heavy = of_metrics(replace(low, waves=4.0, theoretical_occupancy=0.125, registers=255))
    assert "255 registers a thread" in heavy.advice
    assert "more in flight" in of_metrics(replace(low, waves=4.0, theoretical_occupancy=1.0)).advice
