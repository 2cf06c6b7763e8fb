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
    return table([titles(*HEADS), *(Row(_cells(each)) for each in operations)], ALIGNS, style)


def bottleneck_lines(found: Sequence[Bottleneck], style: Style) -> list[str]:
    """A paragraph each: how much of the time, what binds it and how that is known, what to try."""
    lines = []
    for place, each in enumerate(found, 1):
        bound = "cause unknown" if each.bound == "unknown" else f"{each.bound}-bound"
        lines.append(f"{place}. {visible(each.operation)}: {format_percent(each.share)} of the time, {bound}")
        lines.append(f"   {visible(each.evidence)}")
        lines += [f"   - {visible(advice)}" for advice in each.advice]
    return lines


def _cells(each: Operation) -> tuple[str, ...]:
    parts = (each.busy_s, each.transfer_s, each.idle_s)
    shares = [part / each.span_s if part is not None and each.span_s > 0 else None for part in parts]
    return (
        visible(each.operation),
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
