"""What `print_summary` and `print_bottlenecks` print."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from regress.profiles import Bottleneck, Operation
from regress.units import format_bytes, format_percent, format_time

HEADS = ("operation", "device", "calls", "share", "total", "self", "mean", "busy", "transfers", "idle", "host", "peak")
LEFT = 2
"""Columns of words; all others are numbers."""


def summary_lines(operations: Iterable[Operation], pending: int = 0, no_breakdown: str = "") -> list[str]:
    """A table of the operations, the most time first."""
    rows = [_row(each) for each in operations]
    lines = list(_table([HEADS, *rows])) if rows else ["nothing was profiled"]
    if pending:
        lines.append(
            f"{pending} {'entry is' if pending == 1 else 'entries are'} not done on the device, and not counted"
        )
    if no_breakdown and any(row[1] == "gpu" for row in rows):
        lines.append(f"busy, transfers and idle are not known: {no_breakdown}")
    return lines


def bottleneck_lines(found: Sequence[Bottleneck]) -> list[str]:
    """A paragraph each."""
    lines = []
    for place, each in enumerate(found, 1):
        lines.append(f"{place}. {each.operation}: {format_percent(each.share)} of the time, {_bound(each.bound)}")
        lines.append(f"   {each.evidence}")
        lines += [f"   - {advice}" for advice in each.advice]
    return lines or ["nothing was profiled"]


def _bound(bound: str) -> str:
    return "not known what it is bound by" if bound == "unknown" else f"{bound}-bound"


def _row(each: Operation) -> tuple[str, ...]:
    parts = (each.busy_s, each.transfer_s, each.idle_s)
    shares = [part / each.span_s if part is not None and each.span_s > 0 else None for part in parts]
    return (
        each.operation,
        each.device,
        str(each.calls),
        format_percent(each.share),
        format_time(each.total_s),
        format_time(each.self_s),
        format_time(each.mean_s),
        *map(format_percent, shares),
        format_time(each.host_s / each.calls),
        format_bytes(each.peak_bytes),
    )


def _table(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        padded = [
            text.ljust(width) if at < LEFT else text.rjust(width)
            for at, (text, width) in enumerate(zip(row, widths, strict=True))
        ]
        yield "  ".join(padded).rstrip()
