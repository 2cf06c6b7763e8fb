"""A timeline of a case's calls -> CallProfile: all that is told of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import fsum

from regress.model import CallProfile, Case, KernelUse, Throughput
from regress.profiling import bound, totals
from regress.profiling.names import short
from regress.profiling.timeline import Timeline

GAPS = 5
LEAST_GAP_S = 100e-9
"""Shorter ones are the clock's resolution."""
SLOWED = 1.5
"""Times a call takes under the profiler, from which on that is said."""


def call_profile(
    case: Case, timeline: Timeline, mark: str, call_s: float, rate: Callable[[float], Throughput | None]
) -> CallProfile:
    """What the timeline comes to. `mark` is the name of the ranges around the calls, `call_s` what one takes without the
    profiler, and `rate` turns the seconds that the device is busy for a call into its throughput."""
    found = totals.totals(timeline)
    kernels = totals.by_kernel(timeline)
    copies = totals.by_copy(timeline)
    on_device = bool(kernels or copies)
    throughput = rate(found.device_busy_s) if on_device else None
    flags = []
    if call_s and found.span_s > SLOWED * call_s:
        flags.append("slower under the profiler than without: the host's times and the idle time are too long")
    return CallProfile(
        case,
        call_s=call_s,
        calls=timeline.calls,
        host_s=fsum(each.duration_s for each in timeline.ranges if each.name == mark) / timeline.calls,
        totals=found,
        parts=totals.by_range(timeline, mark),
        operators=totals.by_operator(timeline),
        kernels=kernels,
        copies=copies,
        gaps=totals.gaps(timeline, LEAST_GAP_S, GAPS) if on_device else (),
        memory=totals.memory(timeline),
        bottleneck=totals.bottleneck(timeline),
        bound=bound.of_call(found, throughput) if on_device else None,
        throughput=throughput,
        on_device=on_device,
        short_names=_short_names((*kernels, *copies)),
        flags=tuple(flags),
    )


def of_components(found: list[CallProfile]) -> list[CallProfile]:
    """Components of one whole, each with its share of it."""
    seconds = [_seconds(each) for each in found]
    whole = sum(seconds)
    if not whole:
        return found
    return [replace(each, share=own / whole) for each, own in zip(found, seconds, strict=True)]


def _seconds(found: CallProfile) -> float:
    if found.totals is None:
        return 0.0
    return found.totals.device_busy_s if found.on_device else found.totals.span_s


def _short_names(uses: tuple[KernelUse, ...]) -> dict[str, str]:
    return {use.name: short(use.name) for use in uses}
