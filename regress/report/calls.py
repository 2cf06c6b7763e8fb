"""Cases that were profiled: several side by side, or one in full."""

from __future__ import annotations

from collections.abc import Iterable

from regress.model import CallProfile, Explanation, KernelUse, OperatorUse, PartUse, Report
from regress.report.explained import size_words
from regress.report.failures import case_lines
from regress.text.style import Style, paint, visible
from regress.text.table import Row, align, table, titles
from regress.text.wording import more_with_v, plural
from regress.units import format_bytes, format_change, format_number, format_percent, format_rate, format_time

_FEW = 8
"""Operators and kernels that are shown without -v."""


def call_profiles(report: Report, style: Style) -> list[str]:
    """Several cases as a table, a row each; one case, or with -v each of them, in full. Then what failed."""
    good = [each for each in report.profiled if each.totals is not None]
    if report.profiled_difference is not None:
        return [*_against(good, report.profiled_difference, style), *_fully(good, style)]
    lines = _side_by_side(good, style) if len(good) > 1 else []
    lines += _fully(good, style)
    for each in report.profiled:
        if each.failure is not None:
            lines += [*case_lines(each.case, each.failure, style), ""]
    return lines


def _side_by_side(found: list[CallProfile], style: Style) -> list[str]:
    parts = any(each.component for each in found)
    first = ("component", "share") if parts else ("profiled", "")
    rows = [titles(*first, "call", "busy", "idle", "launches", "bottleneck", "bound by")]
    for each in found:
        totals = each.totals
        assert totals is not None
        rows.append(
            Row(
                (
                    visible(each.component or str(each.case)),
                    "" if each.share is None else format_percent(each.share),
                    _time(each.call_s),
                    _time(totals.device_busy_s) if each.on_device else "",
                    _idle(each) if each.on_device else "",
                    _count(totals.launches),
                    _bottleneck(each),
                    each.bound.kind if each.bound is not None else "",
                )
            )
        )
    return [*table(rows, "lrrrrrll", style), ""]


def _fully(found: list[CallProfile], style: Style) -> list[str]:
    return [line for each in found if len(found) == 1 or style.verbose for line in _in_full(each, style)]


def _against(found: list[CallProfile], difference: Explanation, style: Style) -> list[str]:
    """Two cases in columns: totals, then kernels and copies, the largest difference first."""
    base, head = found
    lines = [f"  base  {visible(str(base.case))}", f"  head  {visible(str(head.case))}", ""]
    rows: list[tuple[str, ...]] = [("of a call", "base", "head", "difference"), *totals_against(base, head)]
    lines += [*table(_rows(rows), "lrrr", style), ""]
    compared = list[tuple[str, ...]]()
    for each in (*difference.kernels, *difference.copies):
        named = [visible(use.label) for use in (each.base, each.head) if use is not None]
        seconds = (use.seconds if use is not None else 0.0 for use in (each.base, each.head))
        compared.append(_difference(" -> ".join(dict.fromkeys(named)), *seconds))
    if compared:
        lines += [*table(_first(("kernel or copy", "base", "head", "difference"), compared, style), "lrrr", style), ""]
    lines += [f"  {visible(each.text)}" for each in difference.causes]
    lines += [f"  note  {visible(each)}" for each in difference.warnings]
    return [*lines, ""] if lines[-1] else lines


def totals_against(base: CallProfile, head: CallProfile) -> list[tuple[str, ...]]:
    """Rows of name, base, head and difference: times and counts of a call of two cases."""
    rows = [_difference("without the profiler", base.call_s, head.call_s)]
    for name, key in (("under the profiler", "span_s"), ("device busy", "device_busy_s"), ("device idle", "idle_s")):
        rows.append(_difference(name, getattr(base.totals, key), getattr(head.totals, key)))
    rows.append(_difference("the host's part", base.host_s, head.host_s))
    for key in ("launches", "copies", "synchronizations"):
        before, after = getattr(base.totals, key), getattr(head.totals, key)
        rows.append((key, _count(before), _count(after), f"{'+' * (after >= before)}{_count(after - before)}"))
    return rows


def _difference(name: str, before: float, after: float) -> tuple[str, ...]:
    before, after = round(before, 10), round(after, 10)
    sign = "+" if after >= before else "-"
    share = f" ({format_change(after / before)})" if before > 0 and after > 0 else ""
    return name, _time(before), _time(after), f"{sign}{_time(abs(after - before))}{share}"


def _in_full(found: CallProfile, style: Style) -> list[str]:
    lines = [f"  {paint(visible(str(found.case)), 'bold', style)}", ""]
    for rows, aligns in (
        (_totals(found), "lrrl"),
        (_parts(found, style), "lrrrrr"),
        (_operators(found, style), "lrrrrr"),
        (_api_calls(found, style), "lrrr"),
        (_kernels(found, found.kernels, "kernel", style), "lrrrrll"),
        (_kernels(found, found.copies, "copy", style), "lrrrrll"),
        (_gaps(found), "lrl"),
    ):
        if len(rows) > 1:
            lines += [*table(rows, aligns, style), ""]
    return [*lines, *_verdict(found), ""]


# -- tables --------------------------------------------------------------------------------------------------------------


def _sums(found: CallProfile) -> list[Row]:
    """Where nothing is known of when anything ran."""
    totals = found.totals
    assert totals is not None
    rows = [(f"of {_whole(found)}", "time", "share", "")]
    for name, seconds, number in (
        ("kernels", totals.kernels_s, _times(totals.launches, "launch")),
        ("copies", totals.copies_s, _times(totals.copies, "copy")),
    ):
        rows.append((name, _time(seconds), _share(seconds, found), number))
    rows.append(("the host in CUDA", _time(totals.host_busy_s), "", "without waiting"))
    waits = _times(totals.synchronizations, "synchronization")
    return _rows([*rows, ("host waiting", _time(totals.waiting_s), "", waits)])


def _totals(found: CallProfile) -> list[Row]:
    totals = found.totals
    assert totals is not None
    if not totals.span_s:
        return _sums(found)
    rows = [(f"of {_whole(found)}", "time", "share", "")]
    if found.call_s:
        idle = f"the device idle for {_idle(found)} of it" if found.on_device else ""
        rows.append(("without the profiler", _time(found.call_s), "", idle))
    rows.append(
        ("under the profiler", _time(totals.span_s), "100 %", f"mean of {found.calls}" if found.calls > 1 else "")
    )
    if found.on_device:
        asked = f"{_times(totals.launches, 'launch')}, {_times(totals.copies, 'copy')}"
        rows += [
            ("device busy", _time(totals.device_busy_s), _share(totals.device_busy_s, found), asked),
            ("device idle", _time(totals.idle_s), _share(totals.idle_s, found), ""),
        ]
        waits = _times(totals.synchronizations, "synchronization")
        rows.append(("host waiting", _time(totals.waiting_s), _share(totals.waiting_s, found), waits))
        beside = f"{_time(totals.overlap_s)} of it while the device was" if totals.overlap_s else ""
        rows.append(("host busy", _time(totals.host_busy_s), _share(totals.host_busy_s, found), beside))
    if found.host_s:
        rows.append(("the host's part", _time(found.host_s), _share(found.host_s, found), ""))
    if totals.profiler_s:
        own = _time(totals.profiler_s), _share(totals.profiler_s, found)
        rows.append(("profiler itself", *own, "in the times above"))
    if found.memory is not None:
        used = f"{format_bytes(found.memory.allocated_bytes / found.calls)} allocated a call"
        left = f", {format_bytes(found.memory.left_bytes)} left" if found.memory.left_bytes else ""
        rows.append(("device memory", format_bytes(found.memory.peak_bytes), "", f"peak; {used}{left}"))
    return _rows(rows)


def _parts(found: CallProfile, style: Style) -> list[Row]:
    def cells(each: PartUse) -> tuple[str, ...]:
        times = _times_of(each.device_s, each.host_s, found)
        return (visible(each.name), _count(each.uses), *times, _count(each.launches))

    return _first(("component", "uses", "device", "share", "host", "launches"), map(cells, found.parts), style)


def _operators(found: CallProfile, style: Style) -> list[Row]:
    def cells(each: OperatorUse) -> tuple[str, ...]:
        times = _times_of(each.own_device_s, each.own_host_s, found)
        return (visible(each.name), _count(each.calls), *times, _count(each.launches))

    heads = ("operator, alone", "calls", "device", "share", "host", "launches")
    return _first(heads, map(cells, found.operators), style)


def _times_of(device_s: float, host_s: float, found: CallProfile) -> tuple[str, str, str]:
    """On the device, the share of the whole, and on the host."""
    share = _share(device_s if found.on_device else host_s, found)
    return _time(device_s) if found.on_device else "", share, _time(host_s)


def _api_calls(found: CallProfile, style: Style) -> list[Row]:
    """What is shown of the host's part where no operators were recorded."""
    uses = found.api_calls if style.verbose or not found.operators else ()
    cells = (
        (visible(each.name), _count(each.calls), _time(each.seconds), _time(each.seconds / each.calls)) for each in uses
    )
    return _first(("CUDA API", "calls", "host", "a call"), cells, style)


def _kernels(found: CallProfile, uses: tuple[KernelUse, ...], title: str, style: Style) -> list[Row]:
    def cells(each: KernelUse) -> tuple[str, ...]:
        host = _time(each.host_s) if found.totals is not None and found.totals.span_s else ""
        what = _copied(each) if each.bytes else _launch(each)
        times = _time(each.seconds), _share(each.seconds, found), host
        operator = visible(each.operators[0]) if each.operators else ""
        return (visible(each.label), _count(each.launches), *times, what, operator)

    counted = "launches" if title == "kernel" else "times"
    return _first((title, counted, "device", "share", "host", "", "in"), map(cells, uses), style)


def _first(heads: tuple[str, ...], cells: Iterable[tuple[str, ...]], style: Style) -> list[Row]:
    """The titles and rows of a table; unless verbose the first rows, and how many more there are."""
    every = list(cells)
    shown = every if style.verbose else every[:_FEW]
    left = len(every) - len(shown)
    more = [Row((more_with_v(left), *("",) * (len(heads) - 1)))] if left else []
    return [*_rows([heads, *shown]), *more]


def _copied(use: KernelUse) -> str:
    """How much, and how fast."""
    return format_bytes(use.bytes) + (f", {format_rate(use.bytes_s, 'B')}" if use.bytes_s else "")


def _launch(use: KernelUse) -> str:
    """Grid and block of its longest launch, and its occupancy."""
    sizes = [size_words(size) for size in (use.grid, use.block) if size is not None]
    occupancy = f", occupancy {format_percent(use.occupancy)}" if use.occupancy is not None else ""
    return f"<{', '.join(sizes)}>{occupancy}" if sizes else ""


def _gaps(found: CallProfile) -> list[Row]:
    rows = [("largest gaps", "idle", "")]
    for each in found.gaps:
        after = f"after {visible(found.label(each.after))}" if each.after else "at the start"
        before = f"before {visible(found.label(each.before))}" if each.before else "to the end"
        host = f"the host was in {visible(each.host)}" if each.host else "the host ran nothing that was recorded"
        rows.append((f"{after}, {before}", _time(each.duration_s), host))
    return _rows(rows)


# -- words ---------------------------------------------------------------------------------------------------------------


def _verdict(found: CallProfile) -> list[str]:
    """What takes the most, its limit, what to try, and where the trace is."""
    whole = _whole(found) if found.totals is not None and found.totals.span_s else "the device's time"
    lines = [("bottleneck", f"{_bottleneck(found)} of {whole}")] if found.bottleneck is not None else []
    if found.bound is not None:
        lines += [(found.bound.kind, visible(found.bound.why)), ("try", visible(found.bound.advice))]
    lines += [("note", visible(flag)) for flag in found.flags]
    if found.trace:
        lines.append(("trace", f"{visible(found.trace)} (opens in https://ui.perfetto.dev)"))
    return [f"  {line}" for line in align(lines)]


def _idle(found: CallProfile) -> str:
    """Share of a call without the profiler, if one was timed."""
    assert found.totals is not None
    return format_percent(round(found.idle_s, 10) / (found.call_s or found.totals.span_s))


def _whole(found: CallProfile) -> str:
    """What was profiled; a script is not called."""
    return "a call" if found.call_s or found.host_s else "the program"


def _bottleneck(found: CallProfile) -> str:
    if found.bottleneck is None:
        return ""
    return f"{visible(found.label(found.bottleneck.name))}, {format_percent(found.bottleneck.share)}"


def _time(seconds: float) -> str:
    """Times of a trace have whole nanoseconds: what is far below is what is left of subtracting them."""
    return format_time(round(seconds, 10))


def _count(number: float) -> str:
    """A mean number a call: "2", "0.333"."""
    return str(round(number)) if abs(number - round(number)) < 1e-9 else format_number(number)


def _times(number: float, noun: str) -> str:
    return f"{_count(number)} {noun if number == 1 else plural(noun)}"


def _share(seconds: float, found: CallProfile) -> str:
    totals = found.totals
    assert totals is not None
    whole = totals.span_s or totals.device_busy_s
    return format_percent(round(seconds, 10) / whole) if whole > 0 else ""


def _rows(cells: Iterable[tuple[str, ...]]) -> list[Row]:
    return [Row(each, color="bold" if number == 0 else "", accent=0) for number, each in enumerate(cells)]
