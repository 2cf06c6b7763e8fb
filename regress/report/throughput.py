"""Work a second in words: "1.48 TB/s, 53 % of copy"."""

from __future__ import annotations

from regress.model import Throughput
from regress.units import format_percent, format_rate

__all__ = ["throughput_words"]


def throughput_words(throughput: Throughput | None) -> str:
    """What is known of it, bytes first; nothing if nothing is."""
    if throughput is None:
        return ""
    parts = (
        _words(throughput.bytes_per_s, "B", throughput.share_of_copy, "copy"),
        _words(throughput.flops_per_s, "FLOP", throughput.share_of_matmul, "matmul"),
    )
    return "; ".join(filter(None, parts))


def _words(rate: float | None, unit: str, share: float | None, ceiling: str) -> str:
    if rate is None:
        return ""
    return format_rate(rate, unit) + (f", {format_percent(share)} of {ceiling}" if share is not None else "")
