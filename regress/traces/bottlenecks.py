"""The operations that take the most time: what limits each of them, and what to try.

The answer uses, in this order: where the time of the span went; the work that the program declared, compared with the device's
peak; which kernels ran. If none of them shows the limit, it is unknown, and the advice says how to find out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from regress.profiles import Bottleneck, Operation

OVERHEAD_SHARE = 0.5
"""Of the span that the device is idle, from which on nothing that makes kernels quicker would help much."""
TRANSFER_SHARE = 0.3
SMALL_SHARE = 0.02
"""A declared amount of work below this share of what the device could do says nothing."""

COMPUTE = re.compile(r"gemm|matmul|conv|cutlass|cublas|xmma|wgmma|flash|fmha|attention|winograd|fft", re.IGNORECASE)
MEMORY = re.compile(
    r"elementwise|reduce|softmax|norm|copy|cat|index|gather|scatter|fill|memset|transpose|permute|embedding|dropout|sort|scan",
    re.IGNORECASE,
)
"""Words in the names of kernels. Kernels with many operations on each byte are limited by arithmetic, the rest by memory."""

ADVICE = {
    "overhead": (
        "fuse small operations: torch.compile, or one kernel instead of several",
        "capture the sequence once as a CUDA graph and replay it",
        "take out what waits for the device: .item(), .cpu(), print of a tensor, synchronize",
        "give each call more work: a larger batch",
    ),
    "transfer": (
        "keep the data on the device between the operations",
        "pin host memory, and copy with non_blocking=True on a stream of its own while something else computes",
        "copy less: a narrower dtype, or only what is needed",
    ),
    "memory": (
        "fuse it with its neighbours, so the data passes memory once",
        "use a narrower dtype: bfloat16 or float16 halve the bytes of float32",
        "work in place, and keep tensors contiguous",
    ),
    "compute": (
        "let tensor cores do it: bfloat16 or float16, or TF32 for float32 products",
        "choose sizes that are multiples of 64, which fill the tiles",
        "do less arithmetic: another algorithm, or a smaller problem",
    ),
    "host": (
        "move it to the device, or vectorise it",
        "overlap it with the device's work: another thread or process, prefetching",
    ),
    "unknown": (
        "declare its work: profile(name, bytes=..., flops=...)",
        "enable the breakdown: it needs CUPTI, and no other profiler attached",
    ),
}


def bottlenecks(operations: Iterable[Operation], limits: Mapping[str, float], top: int = 5) -> tuple[Bottleneck, ...]:
    """The operations with the most self time, the largest first."""
    largest = sorted(operations, key=lambda operation: (-operation.self_s, operation.operation))[:top]
    return tuple(_bottleneck(operation, limits) for operation in largest)


def _bottleneck(operation: Operation, limits: Mapping[str, float]) -> Bottleneck:
    bound, evidence = _bound(operation, limits)
    return Bottleneck(operation.operation, operation.share, operation.self_s, bound, evidence, ADVICE[bound])


def _bound(operation: Operation, limits: Mapping[str, float]) -> tuple[str, str]:
    if operation.device == "cpu":
        return "host", "it runs on the CPU"
    span = operation.span_s
    if span > 0 and operation.idle_s is not None and operation.transfer_s is not None:
        if operation.idle_s >= OVERHEAD_SHARE * span:
            return "overhead", f"the device is idle for {_percent(operation.idle_s / span)} of its span"
        if operation.transfer_s >= TRANSFER_SHARE * span:
            return "transfer", f"copies are {_percent(operation.transfer_s / span)} of its span"
    return _by_work(operation, limits) or _by_kernels(operation) or ("unknown", _why_unknown(operation))


def _by_work(operation: Operation, limits: Mapping[str, float]) -> tuple[str, str] | None:
    shares = {}
    for bound, rate, limit in (
        ("memory", operation.bandwidth_bytes_s, limits.get("memory_bytes_s")),
        ("compute", operation.flops_s, limits.get("float32_flops_s")),
    ):
        if rate is not None and limit:
            shares[bound] = rate / limit
    if not shares or max(shares.values()) < SMALL_SHARE:
        return None
    bound = max(shares, key=lambda kind: shares[kind])
    what = {"memory": "memory bandwidth", "compute": "float32 arithmetic"}[bound]
    return bound, f"its declared work is {_percent(shares[bound])} of the device's {what}"


def _by_kernels(operation: Operation) -> tuple[str, str] | None:
    times = {"compute": 0.0, "memory": 0.0, "": 0.0}
    longest: dict[str, tuple[float, str]] = {}
    for kernel in operation.kernels:
        bound = "compute" if COMPUTE.search(kernel.name) else "memory" if MEMORY.search(kernel.name) else ""
        times[bound] += kernel.total_s
        longest[bound] = max(longest.get(bound, (0.0, "")), (kernel.total_s, kernel.name))
    bound = max(times, key=lambda kind: times[kind])
    total = sum(times.values())
    if not bound or times[bound] <= total / 2:
        return None
    return bound, f"by its kernels: {_percent(times[bound] / total)} of their time is in such as {longest[bound][1]}"


def _why_unknown(operation: Operation) -> str:
    return "its kernels do not show it" if operation.kernels else "neither its kernels nor its amount of work are known"


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"
