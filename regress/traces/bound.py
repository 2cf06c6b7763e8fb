"""What limits a call or a kernel: memory, arithmetic, launching, or latency; how close it is to that limit, and what to try.

Two sources: declared work over the ceilings that were measured on the device (`Throughput`), or the counters of Nsight
Compute. A share of a measured ceiling refers to a large copy or product; the profiler's shares refer to the chip's peak.
"""

from __future__ import annotations

from regress.model import Bound, KernelMetrics, Throughput, Totals
from regress.traces.names import is_simple
from regress.units import format_percent

NEAR = 0.6
"""From this share of a limit on, it is the limit; if both are below, latency is."""
IDLE = 0.5
"""Idle share of a call from which on it is launch-bound."""
LOW_OCCUPANCY = 0.25

FEWER_BYTES = "move fewer bytes: fuse it with its neighbours, use a smaller dtype, write nothing that is read only once"
FEWER_OPERATIONS = (
    "compute less, or in a lower precision; let products use tensor cores (TF32, bfloat16, sizes in eights)"
)
FEWER_INDICES = (
    "element by element it computes more than it moves: operands that are contiguous and of one type and shape spare it the "
    "indices, and fused with its neighbours (torch.compile) it computes them once"
)
FEWER_FOR_TENSOR_CORES = (
    "the tensor cores do {} of what they can: compute less, or in a lower precision (bfloat16 and float16 take half the time "
    "of TF32, float8 half of that)"
)
FEWER_IN_CACHES = (
    "the caches are the limit, DRAM is not ({}): let neighbouring threads read neighbouring bytes, without conflicts of banks "
    "in shared memory, and keep what is read again in registers"
)
FEWER_LAUNCHES = "launch less: fuse kernels, capture a CUDA graph, give a call more to do"
NO_WAITING = "let the host run ahead: nothing in a call may wait for the device (.item(), .cpu(), printing a tensor)"
MORE_AT_ONCE = "keep more in flight: more work a thread, asynchronous loads, more warps"


def of_call(totals: Totals, throughput: Throughput | None = None) -> Bound:
    """What limits a whole call. `throughput` is its declared work over the ceilings, if it declares any."""
    idle = totals.idle_s / totals.span_s if totals.span_s > 0 else 0.0
    if idle >= IDLE:
        advice = NO_WAITING if totals.synchronizations else FEWER_LAUNCHES
        return Bound("launch-bound", idle, f"the device is idle for {format_percent(idle)} of a call", advice)
    return of_throughput(throughput)


def of_throughput(throughput: Throughput | None) -> Bound:
    """What limits work whose bytes and operations are declared."""
    memory = throughput.share_of_copy if throughput else None
    compute = throughput.share_of_matmul if throughput else None
    if memory is None and compute is None:
        return Bound(
            "unknown",
            None,
            "no work is declared, or no ceiling was measured",
            "declare `bytes` and `flops`, or let --ncu measure",
        )
    advice = FEWER_BYTES, FEWER_OPERATIONS, MORE_AT_ONCE
    return _of_shares(
        memory, compute, "of the bandwidth of a large copy", "of the rate of a large matrix product", advice
    )


def of_metrics(metrics: KernelMetrics) -> Bound:
    """What limits a kernel, by the counters of Nsight Compute."""
    memory, compute = metrics.memory_throughput, metrics.compute_throughput
    if memory is None:
        memory = metrics.dram_throughput
    if memory is None and compute is None:
        return Bound("unknown", None, "the throughputs were not collected", "profile with the section SpeedOfLight")
    advice = _for_memory(metrics), _for_compute(metrics), _for_latency(metrics)
    return _of_shares(memory, compute, "of the memory's peak", "of the multiprocessors' peak", advice)


def _of_shares(
    memory: float | None, compute: float | None, of_memory: str, of_compute: str, advice: tuple[str, str, str]
) -> Bound:
    """`advice` is against memory, arithmetic and latency."""
    for_memory, for_compute, for_latency = advice
    shares = [
        f"{format_percent(share)} {of}"
        for share, of in ((memory, of_memory), (compute, of_compute))
        if share is not None
    ]
    share, why = max(memory or 0.0, compute or 0.0), " and ".join(shares)
    if share < NEAR:
        return Bound("latency-bound", share, f"only {why}", for_latency)
    if share == memory:
        return Bound("memory-bound", share, why, for_memory)
    return Bound("compute-bound", share, why, for_compute)


def _for_memory(metrics: KernelMetrics) -> str:
    dram = metrics.dram_throughput
    return FEWER_BYTES if dram is None or dram >= NEAR else FEWER_IN_CACHES.format(format_percent(dram))


def _for_compute(metrics: KernelMetrics) -> str:
    tensor = metrics.tensor_use
    if tensor is not None and tensor >= NEAR:
        return FEWER_FOR_TENSOR_CORES.format(format_percent(tensor))
    return FEWER_INDICES if is_simple(metrics.kernel) else FEWER_OPERATIONS


def _for_latency(metrics: KernelMetrics) -> str:
    if metrics.waves is not None and metrics.waves < 1:
        share = format_percent(metrics.waves)
        return f"the grid fills {share} of the device: launch more blocks, or more work at a time"
    if metrics.theoretical_occupancy is not None and metrics.theoretical_occupancy < LOW_OCCUPANCY:
        used = [f"{metrics.registers} registers a thread"] if metrics.registers else []
        used += [f"{metrics.shared_bytes} B of shared memory a block"] if metrics.shared_bytes else []
        allowed = format_percent(metrics.theoretical_occupancy)
        return f"make room for more warps: {' and '.join(used) or 'its resources'} allow {allowed} of them"
    return MORE_AT_ONCE
