"""Kernels as Nsight Compute measured them: of several cases a row each, of one case or with -v all that is known."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from regress.model import Metered, MeteredKernel, Report
from regress.report.explained import count, size_words
from regress.report.failures import case_lines
from regress.text.style import Style, paint, visible
from regress.text.table import Row, align, table, titles
from regress.text.wording import more_with_v
from regress.units import format_bytes, format_number, format_percent, format_rate, format_time

FEW = 8
"""Kernels that are shown without -v."""

Cell = Callable[[MeteredKernel], str]


def _percent(name: str) -> Cell:
    return lambda kernel: _known(getattr(kernel.metrics, name), format_percent)


def _known(value: Any, words: Callable[[Any], str]) -> str:
    return "" if value is None else words(value)


COLUMNS: tuple[tuple[str, Cell], ...] = (
    ("launches", lambda kernel: count(kernel.launches)),
    ("time", lambda kernel: "" if kernel.metrics.duration_s is None else format_time(kernel.seconds)),
    ("share", lambda kernel: _known(kernel.share, format_percent)),
    ("occupancy", _percent("achieved_occupancy")),
    ("at most", _percent("theoretical_occupancy")),
    ("memory", _percent("memory_throughput")),
    ("compute", _percent("compute_throughput")),
    ("tensor", _percent("tensor_use")),
    ("L1 hits", _percent("l1_hit_rate")),
    ("L2 hits", _percent("l2_hit_rate")),
    ("registers", lambda kernel: _known(kernel.metrics.registers, str)),
    ("shared", lambda kernel: _known(kernel.metrics.shared_bytes, format_bytes)),
)
"""What an engineer looks at first; then, with -v, the rest."""
MORE: tuple[tuple[str, Cell], ...] = (
    ("a launch", lambda kernel: _known(kernel.metrics.duration_s, format_time)),
    ("grid", lambda kernel: _known(kernel.metrics.grid, size_words)),
    ("block", lambda kernel: _known(kernel.metrics.block, size_words)),
    ("waves", lambda kernel: _known(kernel.metrics.waves, format_number)),
    ("DRAM", _percent("dram_throughput")),
    ("bytes of DRAM", lambda kernel: _known(kernel.metrics.dram_bytes_s, lambda rate: format_rate(rate, "B"))),
    ("bound by", lambda kernel: kernel.bound.kind),
)


def metered(report: Report, style: Style) -> list[str]:
    """Several cases as a table, a row each; one case, or with -v each of them, in full. Then what failed."""
    good = [result for result in report.metered if result.kernels]
    lines = _side_by_side(good, style) if len(good) > 1 else []
    lines += [line for result in good if len(good) == 1 or style.verbose for line in _in_full(result, style)]
    for result in report.metered:
        if result.failure is not None:
            lines += [*case_lines(result.case, result.failure, style), ""]
    return lines


def _side_by_side(results: list[Metered], style: Style) -> list[str]:
    rows = [titles("metered", "kernels", "launches", "time", "bottleneck", "bound by")]
    for result in results:
        launches = count(sum(kernel.launches for kernel in result.kernels))
        numbers = str(len(result.kernels)), launches, format_time(result.seconds)
        rows.append(Row((visible(str(result.case)), *numbers, _longest(result), result.kernels[0].bound.kind)))
    return [*table(rows, "lrrrll", style), ""]


def _in_full(result: Metered, style: Style) -> list[str]:
    return [
        f"  {paint(visible(str(result.case)), 'bold', style)}",
        "",
        *_kernels(result, style),
        "",
        *_verdict(result),
        "",
    ]


def _kernels(result: Metered, style: Style) -> list[str]:
    """A row each; a column of which nothing was collected is left out."""
    shown = result.kernels if style.verbose else result.kernels[:FEW]
    columns = [*COLUMNS, *(MORE if style.verbose else ())]
    cells = [[cell(kernel) for kernel in shown] for _, cell in columns]
    kept = [at for at, column in enumerate(cells) if any(column)]
    title = "kernel, of a call" if result.calls else "kernel"
    rows = [titles(title, *(columns[at][0] for at in kept))]
    for number, kernel in enumerate(shown):
        rows.append(Row((visible(kernel.label), *(cells[at][number] for at in kept))))
    left = len(result.kernels) - len(shown)
    if left:
        rows.append(Row((more_with_v(left), *("" for _ in kept))))
    return table(rows, "l" + "r" * len(kept), style)


def _verdict(result: Metered) -> list[str]:
    """What takes the most, its limit, what to try, and where it is kept."""
    bound = result.kernels[0].bound
    lines = [
        ("bottleneck", _longest(result) + (" of the kernels' time" if result.kernels[0].share is not None else "")),
        (bound.kind, visible(bound.why)),
        ("try", visible(bound.advice)),
        (
            "note",
            "each kernel ran alone, several times and with cold caches, so its time differs from that in a program",
        ),
        *(("note", visible(flag)) for flag in result.flags),
    ]
    lines += [("report", f"{visible(result.report)} (opens in Nsight Compute)")] if result.report else []
    lines += [("table", visible(result.table))] if result.table else []
    return [f"  {line}" for line in align(lines)]


def _longest(result: Metered) -> str:
    first = result.kernels[0]
    return visible(first.label) + ("" if first.share is None else f", {format_percent(first.share)}")
