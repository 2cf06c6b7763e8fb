"""The operations of a profile as a table, and what holds back those that take the most time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from regress.profiles.document import Bottleneck, Operation
from regress.text.style import Style, visible
from regress.text.table import Row, table, titles
from regress.units import format_bytes, format_percent, format_time

HEADS = ("operation", "device", "calls", "share", "total", "self", "mean", "busy", "copies", "idle", "host", "peak")
ALIGNS = "ll" + "r" * (len(HEADS) - 2)


def operation_lines(operations: Iterable[Operation], style: Style) -> list[str]:
    """A table of the operations. `busy`, `copies` and `idle` are shares of the device's span, `host` is the mean beside it."""
    return table([titles(*HEADS), *(Row(_cells(operation)) for operation in operations)], ALIGNS, style)


def bottleneck_lines(bottlenecks: Sequence[Bottleneck], style: Style) -> list[str]:
    """A paragraph each: how much of the time, what binds it and how that is known, what to try."""
    lines = []
    for place, bottleneck in enumerate(bottlenecks, 1):
        bound = "cause unknown" if bottleneck.bound == "unknown" else f"{bottleneck.bound}-bound"
        lines.append(
            f"{place}. {visible(bottleneck.operation)}: {format_percent(bottleneck.share)} of the time, {bound}"
        )
        lines.append(f"   {visible(bottleneck.evidence)}")
        lines += [f"   - {visible(advice)}" for advice in bottleneck.advice]
    return lines


def _cells(operation: Operation) -> tuple[str, ...]:
    parts = (operation.busy_s, operation.transfer_s, operation.idle_s)
    shares = [part / operation.span_s if part is not None and operation.span_s > 0 else None for part in parts]
    return (
        visible(operation.operation),
        operation.device,
        str(operation.calls),
        format_percent(operation.share),
        format_time(operation.total_s),
        format_time(operation.self_s),
        format_time(operation.mean_s),
        *map(format_percent, shares),
        format_time(operation.host_s / operation.calls),
        format_bytes(operation.peak_bytes),
    )
