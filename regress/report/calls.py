"""Cases that were profiled: several side by side, or one in full."""

from __future__ import annotations

from collections.abc import Iterable

from regress.model import CallProfile, Explanation, KernelUse, OperatorUse, PartUse, Report
from regress.report.explained import size_words
from regress.report.failures import case_lines
from regress.text.style import Style, paint, visible
from regress.text.table import Row, align, table, titles
from regress.text.wording import more_with_v, plural
from regress.units import format_bytes, format_change, format_percent, format_rate, format_time, format_value

_FEW = 8
"""Operators and kernels that are shown without -v."""


def call_profiles(report: Report, style: Style) -> list[str]:
    """Several cases as a table, a row each; one case, or with -v each of them, in full. Then what failed."""
    good = [profile for profile in report.profiled if profile.totals is not None]
    if report.profiled_difference is not None:
        return [*_against(good, report.profiled_difference, style), *_fully(good, style)]
    lines = _side_by_side(good, style) if len(good) > 1 else []
    lines += _fully(good, style)
    for profile in report.profiled:
        if profile.failure is not None:
            lines += [*case_lines(profile.case, profile.failure, style), ""]
    return lines


def _side_by_side(profiles: list[CallProfile], style: Style) -> list[str]:
    parts = any(profile.component for profile in profiles)
    first = ("component", "share") if parts else ("profiled", "")
    rows = [titles(*first, "call", "busy", "idle", "launches", "bottleneck", "bound by")]
    for profile in profiles:
        totals = profile.totals
        assert totals is not None
        rows.append(
            Row(
                (
                    visible(profile.component or str(profile.case)),
                    "" if profile.share is None else format_percent(profile.share),
                    _time(profile.call_s),
                    _time(totals.device_busy_s) if profile.on_device else "",
                    _idle(profile) if profile.on_device else "",
                    _count(totals.launches),
                    _bottleneck(profile),
                    profile.bound.kind if profile.bound is not None else "",
                )
            )
        )
    return [*table(rows, "lrrrrrll", style), ""]


def _fully(profiles: list[CallProfile], style: Style) -> list[str]:
    return [line for profile in profiles if len(profiles) == 1 or style.verbose for line in _in_full(profile, style)]


def _against(profiles: list[CallProfile], difference: Explanation, style: Style) -> list[str]:
    """Two cases in columns: totals, then kernels and copies, the largest difference first."""
    base, head = profiles
    lines = [f"  base  {visible(str(base.case))}", f"  head  {visible(str(head.case))}", ""]
    rows: list[tuple[str, ...]] = [("of a call", "base", "head", "difference"), *totals_against(base, head)]
    lines += [*table(_rows(rows), "lrrr", style), ""]
    compared = list[tuple[str, ...]]()
    for kernel in (*difference.kernels, *difference.copies):
        named = [visible(use.label) for use in (kernel.base, kernel.head) if use is not None]
        seconds = (use.seconds if use is not None else 0.0 for use in (kernel.base, kernel.head))
        compared.append(_difference(" -> ".join(dict.fromkeys(named)), *seconds))
    if compared:
        lines += [*table(_first(("kernel or copy", "base", "head", "difference"), compared, style), "lrrr", style), ""]
    lines += [f"  {visible(cause.text)}" for cause in difference.causes]
    lines += [f"  note  {visible(warning)}" for warning in difference.warnings]
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


def _in_full(profile: CallProfile, style: Style) -> list[str]:
    lines = [f"  {paint(visible(str(profile.case)), 'bold', style)}", ""]
    for rows, aligns in (
        (_totals(profile), "lrrl"),
        (_parts(profile, style), "lrrrrr"),
        (_operators(profile, style), "lrrrrr"),
        (_api_calls(profile, style), "lrrr"),
        (_kernels(profile, profile.kernels, "kernel", style), "lrrrrll"),
        (_kernels(profile, profile.copies, "copy", style), "lrrrrll"),
        (_gaps(profile), "lrl"),
    ):
        if len(rows) > 1:
            lines += [*table(rows, aligns, style), ""]
    return [*lines, *_verdict(profile), ""]


# -- tables --------------------------------------------------------------------------------------------------------------


def _sums(profile: CallProfile) -> list[Row]:
    """Where nothing is known of when anything ran."""
    totals = profile.totals
    assert totals is not None
    rows = [(f"of {_whole(profile)}", "time", "share", "")]
    for name, seconds, number in (
        ("kernels", totals.kernels_s, _times(totals.launches, "launch")),
        ("copies", totals.copies_s, _times(totals.copies, "copy")),
    ):
        rows.append((name, _time(seconds), _share(seconds, profile), number))
    rows.append(("the host in CUDA", _time(totals.host_busy_s), "", "without waiting"))
    waits = _times(totals.synchronizations, "synchronization")
    return _rows([*rows, ("host waiting", _time(totals.waiting_s), "", waits)])


def _totals(profile: CallProfile) -> list[Row]:
    totals = profile.totals
    assert totals is not None
    if not totals.span_s:
        return _sums(profile)
    rows = [(f"of {_whole(profile)}", "time", "share", "")]
    if profile.call_s:
        idle = f"the device idle for {_idle(profile)} of it" if profile.on_device else ""
        rows.append(("without the profiler", _time(profile.call_s), "", idle))
    rows.append(
        ("under the profiler", _time(totals.span_s), "100 %", f"mean of {profile.calls}" if profile.calls > 1 else "")
    )
    if profile.on_device:
        asked = f"{_times(totals.launches, 'launch')}, {_times(totals.copies, 'copy')}"
        rows += [
            ("device busy", _time(totals.device_busy_s), _share(totals.device_busy_s, profile), asked),
            ("device idle", _time(totals.idle_s), _share(totals.idle_s, profile), ""),
        ]
        waits = _times(totals.synchronizations, "synchronization")
        rows.append(("host waiting", _time(totals.waiting_s), _share(totals.waiting_s, profile), waits))
        beside = f"{_time(totals.overlap_s)} of it while the device was" if totals.overlap_s else ""
        rows.append(("host busy", _time(totals.host_busy_s), _share(totals.host_busy_s, profile), beside))
    if profile.host_s:
        rows.append(("the host's part", _time(profile.host_s), _share(profile.host_s, profile), ""))
    if totals.profiler_s:
        own = _time(totals.profiler_s), _share(totals.profiler_s, profile)
        rows.append(("profiler itself", *own, "in the times above"))
    if profile.memory is not None:
        used = f"{format_bytes(profile.memory.allocated_bytes / profile.calls)} allocated a call"
        left = f", {format_bytes(profile.memory.left_bytes)} left" if profile.memory.left_bytes else ""
        rows.append(("device memory", format_bytes(profile.memory.peak_bytes), "", f"peak; {used}{left}"))
    return _rows(rows)


def _parts(profile: CallProfile, style: Style) -> list[Row]:
    def cells(part: PartUse) -> tuple[str, ...]:
        times = _times_of(part.device_s, part.host_s, profile)
        return (visible(part.name), _count(part.uses), *times, _count(part.launches))

    return _first(("component", "uses", "device", "share", "host", "launches"), map(cells, profile.parts), style)


def _operators(profile: CallProfile, style: Style) -> list[Row]:
    def cells(operator: OperatorUse) -> tuple[str, ...]:
        times = _times_of(operator.own_device_s, operator.own_host_s, profile)
        return (visible(operator.name), _count(operator.calls), *times, _count(operator.launches))

    heads = ("operator, alone", "calls", "device", "share", "host", "launches")
    return _first(heads, map(cells, profile.operators), style)


def _times_of(device_s: float, host_s: float, profile: CallProfile) -> tuple[str, str, str]:
    """On the device, the share of the whole, and on the host."""
    share = _share(device_s if profile.on_device else host_s, profile)
    return _time(device_s) if profile.on_device else "", share, _time(host_s)


def _api_calls(profile: CallProfile, style: Style) -> list[Row]:
    """What is shown of the host's part where no operators were recorded."""
    uses = profile.api_calls if style.verbose or not profile.operators else ()
    cells = (
        (visible(call.name), _count(call.calls), _time(call.seconds), _time(call.seconds / call.calls)) for call in uses
    )
    return _first(("CUDA API", "calls", "host", "a call"), cells, style)


def _kernels(profile: CallProfile, uses: tuple[KernelUse, ...], title: str, style: Style) -> list[Row]:
    def cells(kernel: KernelUse) -> tuple[str, ...]:
        host = _time(kernel.host_s) if profile.totals is not None and profile.totals.span_s else ""
        what = _copied(kernel) if kernel.bytes else _launch(kernel)
        times = _time(kernel.seconds), _share(kernel.seconds, profile), host
        operator = visible(kernel.operators[0]) if kernel.operators else ""
        return (visible(kernel.label), _count(kernel.launches), *times, what, operator)

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


def _gaps(profile: CallProfile) -> list[Row]:
    rows = [("largest gaps", "idle", "")]
    for gap in profile.gaps:
        after = f"after {visible(profile.label(gap.after))}" if gap.after else "at the start"
        before = f"before {visible(profile.label(gap.before))}" if gap.before else "to the end"
        host = f"the host was in {visible(gap.host)}" if gap.host else "the host ran nothing that was recorded"
        rows.append((f"{after}, {before}", _time(gap.duration_s), host))
    return _rows(rows)


# -- words ---------------------------------------------------------------------------------------------------------------


def _verdict(profile: CallProfile) -> list[str]:
    """What takes the most, its limit, what to try, and where the trace is."""
    whole = _whole(profile) if profile.totals is not None and profile.totals.span_s else "the device's time"
    lines = [("bottleneck", f"{_bottleneck(profile)} of {whole}")] if profile.bottleneck is not None else []
    if profile.bound is not None:
        lines += [(profile.bound.kind, visible(profile.bound.why)), ("try", visible(profile.bound.advice))]
    lines += [("note", visible(flag)) for flag in profile.flags]
    if profile.trace:
        lines.append(("trace", f"{visible(profile.trace)} (opens in https://ui.perfetto.dev)"))
    return [f"  {line}" for line in align(lines)]


def _idle(profile: CallProfile) -> str:
    """Share of a call without the profiler, if one was timed."""
    assert profile.totals is not None
    return format_percent(round(profile.idle_s, 10) / (profile.call_s or profile.totals.span_s))


def _whole(profile: CallProfile) -> str:
    """What was profiled; a script is not called."""
    return "a call" if profile.call_s or profile.host_s else "the program"


def _bottleneck(profile: CallProfile) -> str:
    if profile.bottleneck is None:
        return ""
    return f"{visible(profile.label(profile.bottleneck.name))}, {format_percent(profile.bottleneck.share)}"


def _time(seconds: float) -> str:
    """Times of a trace have whole nanoseconds: what is far below is what is left of subtracting them."""
    return format_time(round(seconds, 10))


def _count(number: float) -> str:
    """A mean number a call: "2", "0.333"."""
    return format_value(round(number, 9), "count")


def _times(number: float, noun: str) -> str:
    return f"{_count(number)} {noun if number == 1 else plural(noun)}"


def _share(seconds: float, profile: CallProfile) -> str:
    totals = profile.totals
    assert totals is not None
    whole = totals.span_s or totals.device_busy_s
    return format_percent(round(seconds, 10) / whole) if whole > 0 else ""


def _rows(cells: Iterable[tuple[str, ...]]) -> list[Row]:
    return [Row(row, color="bold" if number == 0 else "", accent=0) for number, row in enumerate(cells)]
