"""A timeline of a case's calls -> CallProfile."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import fsum

from regress.model import CallProfile, Case, Throughput
from regress.traces import bound, totals
from regress.traces.timeline import Timeline

GAPS = 5
LEAST_GAP_S = 100e-9
"""Shorter ones are the clock's resolution."""
SLOWED = 1.5
"""Slowdown of a call under the profiler from which on a note mentions it."""


def call_profile(
    case: Case, timeline: Timeline, mark: str, call_s: float, rate: Callable[[float], Throughput | None]
) -> CallProfile:
    """The profile of the timeline. `mark` is the name of the ranges around the calls, `call_s` the time of one without the
    profiler, and `rate` turns the busy seconds of a call into its throughput."""
    whole = totals.totals(timeline)
    kernels = totals.by_kernel(timeline)
    copies = totals.by_copy(timeline)
    on_device = bool(kernels or copies)
    # The profiler slows the host down and hardly the device: what binds a call is told by how long it takes without it.
    usual = replace(whole, span_s=call_s, idle_s=max(0.0, call_s - whole.device_busy_s)) if call_s else whole
    throughput = rate(whole.device_busy_s) if on_device else None
    flags = []
    if call_s and whole.span_s > SLOWED * call_s:
        flags.append("slower under the profiler than without: its host times, gaps and idle time are too long")
    return CallProfile(
        case,
        call_s=call_s,
        calls=timeline.calls,
        host_s=fsum(span.duration_s for span in timeline.ranges if span.name == mark) / timeline.calls,
        idle_s=usual.idle_s,
        totals=whole,
        parts=totals.by_range(timeline, mark),
        operators=totals.by_operator(timeline),
        kernels=kernels,
        copies=copies,
        api_calls=totals.by_api_call(timeline),
        gaps=totals.gaps(timeline, LEAST_GAP_S, GAPS) if on_device else (),
        memory=totals.memory(timeline),
        bottleneck=totals.bottleneck(timeline, usual),
        bound=bound.of_call(usual, throughput) if on_device else None,
        throughput=throughput,
        on_device=on_device,
        flags=tuple(flags),
    )


def of_components(profiles: list[CallProfile]) -> list[CallProfile]:
    """Components of one whole, each with its share of it."""
    seconds = [_seconds(profile) for profile in profiles]
    whole = sum(seconds)
    if not whole:
        return profiles
    return [replace(profile, share=own / whole) for profile, own in zip(profiles, seconds, strict=True)]


def _seconds(profile: CallProfile) -> float:
    if profile.totals is None:
        return 0.0
    return profile.totals.device_busy_s if profile.on_device else profile.totals.span_s
