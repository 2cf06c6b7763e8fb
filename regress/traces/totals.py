"""The totals of a timeline. Sums are per call, in seconds; pure functions, one question each."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from math import fsum

from regress.model import ApiUse, Bottleneck, Gap, KernelUse, MemoryUse, OperatorUse, PartUse, Totals
from regress.traces.intervals import Interval, complement, intersection, length, union, without
from regress.traces.names import labels, short
from regress.traces.timeline import Copy, DeviceWork, HostEvent, Launch, TimedEvent, Timeline, when_asked

LARGEST_GAPS = 20


def totals(timeline: Timeline) -> Totals:
    calls = timeline.calls
    busy, host, waiting = device_busy(timeline), host_busy(timeline), _union(timeline, timeline.syncs)
    busy_s = length(busy) / calls
    return Totals(
        span_s=timeline.span_s / calls,
        device_busy_s=busy_s,
        idle_s=timeline.span_s / calls - busy_s,
        kernels_s=_sum(timeline.launches) / calls,
        copies_s=_sum(timeline.copies) / calls,
        host_busy_s=length(host) / calls,
        waiting_s=length(waiting) / calls,
        overlap_s=length(intersection(host, busy)) / calls,
        profiler_s=length(_union(timeline, timeline.overheads)) / calls,
        launches=len(timeline.launches) / calls,
        copies=len(timeline.copies) / calls,
        synchronizations=len(timeline.syncs) / calls,
    )


def device_busy(timeline: Timeline) -> list[Interval]:
    """When the device worked, within the span."""
    return _union(timeline, timeline.work)


def host_busy(timeline: Timeline) -> list[Interval]:
    """When the host was in an operator or an API call, and did not wait for the device."""
    at_work = _union(timeline, (*timeline.operators, *timeline.api_calls))
    return without(at_work, _union(timeline, timeline.syncs))


def _union(timeline: Timeline, events: Iterable[TimedEvent]) -> list[Interval]:
    return intersection(union((event.start_s, event.end_s) for event in events), [(timeline.start_s, timeline.end_s)])


def _sum(events: Iterable[TimedEvent]) -> float:
    return fsum(event.duration_s for event in events)


# -- by kernel, by copy, by operator -------------------------------------------------------------------------------------


def by_kernel(timeline: Timeline) -> tuple[KernelUse, ...]:
    """The kernels, the one that takes longest first."""
    return _by_name(timeline, timeline.launches)


def by_copy(timeline: Timeline) -> tuple[KernelUse, ...]:
    """The ways of copying, and memsets, the one that takes longest first."""
    return _by_name(timeline, timeline.copies)


def _by_name(timeline: Timeline, work: Iterable[DeviceWork]) -> tuple[KernelUse, ...]:
    groups: dict[str, list[DeviceWork]] = defaultdict(list)
    for piece in work:
        groups[piece.name].append(piece)
    # A graph's kernels share the call that launched it: each bears its part.
    shared: dict[int, int] = defaultdict(int)
    for piece in timeline.work:
        if piece.correlation is not None:
            shared[piece.correlation] += 1
    asked = {call.correlation: call.duration_s for call in timeline.api_calls if call.correlation is not None}
    # Where operators are recorded, they say what a kernel is for, and its short name is enough.
    told = labels(name for name, group in groups.items() if not group[0].operators)
    uses = []
    for name, group in groups.items():
        longest = max(group, key=lambda piece: piece.duration_s)
        launch = longest if isinstance(longest, Launch) else None
        uses.append(
            KernelUse(
                name,
                launches=len(group) / timeline.calls,
                seconds=_sum(group) / timeline.calls,
                host_s=fsum(asked.get(key, 0.0) / shared[key] for key in _correlations(group)) / timeline.calls,
                bytes=sum(piece.bytes for piece in group if isinstance(piece, Copy)) / timeline.calls,
                grid=launch.grid if launch else None,
                block=launch.block if launch else None,
                registers=launch.registers if launch else None,
                shared_bytes=launch.shared_bytes if launch else None,
                occupancy=launch.occupancy if launch else None,
                operators=group[0].operators,
                shapes=group[0].shapes,
                dtypes=group[0].dtypes,
                short=told.get(name, short(name)) if launch else "",
            )
        )
    return tuple(sorted(uses, key=lambda use: (-use.seconds, use.name)))


def _correlations(group: Iterable[DeviceWork]) -> list[int]:
    return [piece.correlation for piece in group if piece.correlation is not None]


def by_api_call(timeline: Timeline) -> tuple[ApiUse, ...]:
    """The functions of CUDA that the host called, the one that takes longest first."""
    spent: dict[str, list[float]] = defaultdict(list)
    for call in timeline.api_calls:
        spent[call.name].append(call.duration_s)
    uses = [ApiUse(name, len(own) / timeline.calls, fsum(own) / timeline.calls) for name, own in spent.items()]
    return tuple(sorted(uses, key=lambda use: (-use.seconds, use.name)))


def by_operator(timeline: Timeline) -> tuple[OperatorUse, ...]:
    """The operators, ordered by self time on the device, then on the host."""
    sums: dict[str, list[float]] = defaultdict(lambda: [0.0] * 6)
    inner_s = _time_inside(timeline)
    for index, operator in enumerate(timeline.operators):
        row = sums[operator.name]
        row[0] += 1
        if operator.name not in operator.path[:-1]:  # an operator that calls itself spends the time once
            row[1] += operator.duration_s
        row[2] += operator.duration_s - inner_s[index]
    for work in timeline.work:
        for name in set(work.operators):
            sums[name][3] += work.duration_s
            sums[name][5] += isinstance(work, Launch)
        for name in work.operators[-1:]:
            sums[name][4] += work.duration_s
    uses = [OperatorUse(name, *(value / timeline.calls for value in row)) for name, row in sums.items()]
    return tuple(sorted(uses, key=lambda use: (-use.own_device_s, -use.own_host_s, use.name)))


def _time_inside(timeline: Timeline) -> list[float]:
    """Of each operator, the time that the operators directly inside it take."""
    inside = [0.0] * len(timeline.operators)
    around: dict[int, list[int]] = defaultdict(list)
    for index, operator in enumerate(timeline.operators):
        stack = around[operator.thread]
        del stack[max(0, len(operator.path) - 1) :]  # as deep as the path says, so that equal times cannot mislead
        if stack:
            inside[stack[-1]] += operator.duration_s
        stack.append(index)
    return inside


def by_range(timeline: Timeline, leave_out: str = "") -> tuple[PartUse, ...]:
    """The ranges that the program marked, the one with the most device time first. `leave_out` are those of that name."""
    asked_s, calls = when_asked(timeline), timeline.calls
    work = sorted(timeline.work, key=asked_s)
    times = [asked_s(piece) for piece in work]
    ranges: dict[str, list[Interval]] = defaultdict(list)
    for marked in timeline.ranges:
        if marked.name != leave_out:
            ranges[marked.name].append((marked.start_s, marked.end_s))
    uses = []
    for name, own in ranges.items():
        spans = [slice(bisect_left(times, start), bisect_right(times, end)) for start, end in union(own)]
        inside = [piece for span in spans for piece in work[span]]
        launches = sum(isinstance(piece, Launch) for piece in inside)
        host_s = fsum(end - start for start, end in own)
        uses.append(PartUse(name, len(own) / calls, host_s / calls, _sum(inside) / calls, launches / calls))
    return tuple(sorted(uses, key=lambda use: (-use.device_s, -use.host_s, use.name)))


# -- idle time -----------------------------------------------------------------------------------------------------------


def gaps(timeline: Timeline, least_s: float = 0.0, most: int = LARGEST_GAPS) -> tuple[Gap, ...]:
    """The largest gaps, the largest first."""
    idle = complement(device_busy(timeline), timeline.start_s, timeline.end_s)
    largest = sorted((gap for gap in idle if gap[1] - gap[0] >= least_s), key=lambda gap: (gap[0] - gap[1], gap))
    by_end = {piece.end_s: piece.name for piece in timeline.work}
    by_start = {piece.start_s: piece.name for piece in timeline.work}
    return tuple(
        Gap(start, end - start, by_end.get(start, ""), by_start.get(end, ""), _host_during(timeline, start, end))
        for start, end in largest[:most]
    )


def _host_during(timeline: Timeline, start: float, end: float) -> str:
    """The outermost operator, or else the API call, that fills most of the interval; waiting counts before both."""
    outermost = [operator for operator in timeline.operators if len(operator.path) == 1]
    for events in (timeline.syncs, outermost, timeline.api_calls):
        spent: dict[str, float] = defaultdict(float)
        for event in _before(events, end):
            spent[event.name] += max(0.0, min(end, event.end_s) - max(start, event.start_s))
        name = max(spent, key=lambda name: spent[name], default="")
        if name and spent[name] >= (end - start) / 2:
            return name
    return ""


def _before(events: Sequence[HostEvent], end: float) -> Sequence[HostEvent]:
    return events[: bisect_left(events, end, key=lambda event: event.start_s)]


# -- memory and the bottleneck -------------------------------------------------------------------------------------------


def memory(timeline: Timeline) -> MemoryUse | None:
    """None if no allocation was recorded, because profile_memory was off or there was none."""
    allocations = [allocation for allocation in timeline.allocations if allocation.on_device]
    if not allocations:
        return None
    before = allocations[0].allocated_bytes - allocations[0].bytes
    return MemoryUse(
        peak_bytes=max(before, *(allocation.allocated_bytes for allocation in allocations)),
        allocated_bytes=sum(allocation.bytes for allocation in allocations if allocation.bytes > 0),
        left_bytes=allocations[-1].allocated_bytes - before,
    )


def bottleneck(timeline: Timeline, call: Totals | None = None) -> Bottleneck | None:
    """None if neither device nor operators were recorded. Work side by side may have shares of more than one in all.

    `call` is what the shares are of, if not of the calls as they were recorded: a call without the profiler."""
    call = call or totals(timeline)
    span_s = call.span_s
    if span_s <= 0:
        return None
    kernels, copied = by_kernel(timeline)[:1], by_copy(timeline)[:1]
    candidates = [Bottleneck("kernel", use.name, use.seconds / span_s) for use in kernels]
    candidates += [Bottleneck("copies", use.name, use.seconds / span_s) for use in copied]
    if candidates:
        candidates.append(Bottleneck("idle", "the device waits for the host", call.idle_s / span_s))
    else:
        candidates = [Bottleneck("operator", use.name, use.own_host_s / span_s) for use in by_operator(timeline)]
    return max(candidates, key=lambda candidate: candidate.share, default=None)
