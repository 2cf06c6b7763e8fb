"""Totals of entries, kept up with every entry, so that their number costs no memory."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Any

from regress.profiler.running import Running, number
from regress.profiles import Kernel, Operation, Variant

KEPT_SAMPLES = 256
"""Durations that are kept of each variant, the last ones."""
MOST_VARIANTS = 64
"""Of an operation; what has more is not told apart by its details."""
MOST_KERNELS = 64
SHOWN_KERNELS = 8


@dataclass
class VariantTotals:
    """Of the entries of an operation with the same details."""

    details: dict[str, Any]
    device: str
    calls: int = 0
    durations_s: deque[float] = field(default_factory=lambda: deque(maxlen=KEPT_SAMPLES))
    hosts_s: deque[float] = field(default_factory=lambda: deque(maxlen=KEPT_SAMPLES))
    peak_bytes: int | None = None

    def add(self, entry: Running) -> None:
        self.calls += 1
        self.durations_s.append(entry.duration_s)
        self.hosts_s.append(entry.host_s)
        if entry.peak_bytes is not None:
            self.peak_bytes = most(self.peak_bytes, entry.peak_bytes)


@dataclass
class OperationTotals:
    """Of one operation."""

    operation: str
    device: str
    backend: str
    calls: int = 0
    failed: int = 0
    total_s: float = 0.0
    self_s: float = 0.0
    min_s: float = float("inf")
    max_s: float = 0.0
    host_s: float = 0.0
    broken_down: int = 0
    span_s: float = 0.0
    busy_s: float = 0.0
    transfer_s: float = 0.0
    idle_s: float = 0.0
    copied_bytes: int = 0
    declared: dict[str, list[float]] = field(default_factory=dict)
    """By what is declared, bytes or flops: their sum, and the seconds of the entries that declare it."""
    memory_bytes: int | None = None
    peak_bytes: int | None = None
    kernels: dict[str, list[float]] = field(default_factory=dict)
    """By name: calls, seconds."""
    variants: dict[str, VariantTotals] = field(default_factory=dict)

    def add(self, entry: Running, kernels: dict[str, list[float]]) -> None:
        duration_s = entry.duration_s
        if self.device != entry.device:
            self.device = "mixed"
        self.calls += 1
        self.failed += entry.failed
        self.total_s += duration_s
        self.self_s += entry.self_s
        self.host_s += entry.host_s
        if duration_s < self.min_s:
            self.min_s = duration_s
        if duration_s > self.max_s:
            self.max_s = duration_s
        if entry.memory_bytes is not None:
            self.memory_bytes = entry.memory_bytes
            self.peak_bytes = most(self.peak_bytes, entry.peak_bytes)
        if entry.busy_s is not None:
            self.broken_down += 1
            self.span_s += duration_s
            self.busy_s += entry.busy_s
            self.transfer_s += entry.transfer_s or 0.0
            self.idle_s += entry.idle_s or 0.0
            self.copied_bytes += entry.copied_bytes or 0
        for name, (calls, seconds) in kernels.items():
            if name in self.kernels or len(self.kernels) < MOST_KERNELS:
                sums = self.kernels.setdefault(name, [0, 0.0])
                sums[0] += calls
                sums[1] += seconds
        if entry.details:
            self._declared(entry)
        self._variant(entry).add(entry)

    def _declared(self, entry: Running) -> None:
        for name in ("bytes", "flops"):
            work = number(entry.details.get(name))
            if work is not None:
                sums = self.declared.setdefault(name, [0.0, 0.0])
                sums[0] += work
                sums[1] += entry.duration_s

    def _variant(self, entry: Running) -> VariantTotals:
        key = f"{entry.device} {entry.details}" if entry.details else entry.device
        variant = self.variants.get(key)
        if variant is None:
            if len(self.variants) >= MOST_VARIANTS:
                key = entry.device
            details = {} if key == entry.device else entry.details
            variant = self.variants.setdefault(key, VariantTotals(details, entry.device))
        return variant

    def operation_of(self, all_self_s: float) -> Operation:
        """The totals as they stand, where all operations together have that much time of their own."""
        known = self.broken_down > 0
        longest = sorted(self.kernels.items(), key=lambda kernel: -kernel[1][1])[:SHOWN_KERNELS]
        declared = {name: work / seconds for name, (work, seconds) in self.declared.items() if seconds > 0}
        copies = self.copied_bytes / self.transfer_s if self.copied_bytes and self.transfer_s > 0 else None
        return Operation(
            operation=self.operation,
            device=self.device,
            backend=self.backend,
            calls=self.calls,
            failed=self.failed,
            total_s=self.total_s,
            self_s=self.self_s,
            share=self.self_s / all_self_s if all_self_s > 0 else 0.0,
            mean_s=self.total_s / self.calls,
            min_s=self.min_s,
            max_s=self.max_s,
            host_s=self.host_s,
            broken_down=self.broken_down,
            span_s=self.span_s,
            busy_s=self.busy_s if known else None,
            transfer_s=self.transfer_s if known else None,
            idle_s=self.idle_s if known else None,
            copied_bytes=self.copied_bytes if known else None,
            memory_bytes=self.memory_bytes,
            peak_bytes=self.peak_bytes,
            utilization=1 - self.idle_s / self.span_s if known and self.span_s > 0 else None,
            bandwidth_bytes_s=declared.get("bytes", copies),
            flops_s=declared.get("flops"),
            kernels=tuple(Kernel(name, int(calls), seconds) for name, (calls, seconds) in longest),
        )

    def variants_of(self) -> tuple[Variant, ...]:
        return tuple(
            Variant(
                self.operation,
                variant.details,
                variant.device,
                variant.calls,
                tuple(variant.durations_s),
                tuple(variant.hosts_s),
                variant.peak_bytes,
            )
            for variant in self.variants.values()
        )


def most(one: int | None, other: int | None) -> int | None:
    known = [level for level in (one, other) if level is not None]
    return max(known) if known else None
