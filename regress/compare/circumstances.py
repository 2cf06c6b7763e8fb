"""What forbids to claim that a time changed, and what explains a change: clocks, other processes, two modes, counters.

Pure, and symmetric in both sides: swapping them never turns a doubt into a claim. A check and a history use the same rules.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from regress.compare.evidence import Evidence
from regress.model import METRICS, Conditions, Round, Settings
from regress.stats.modes import Modes
from regress.units import format_pair, format_time

SKEWED, SKEW_TIMES = 0.03, 2.0
"""Ranks whose own work differs by less of a call are alike, and so are sides whose skews differ by less than this factor."""
COUNTED = {"launches": "kernel launches"}
"""Words for counters that are more than their names."""

FEWEST_TRENDS, LEAST_TREND, SURE_TREND = 6, 0.01, 5.0
"""Rounds of both sides together that have to tell of one; how large their mean has to be, and in how many standard errors."""


def conditions(rounds: Sequence[Round]) -> Conditions:
    """What the device was like while these rounds were taken."""
    slowed = [round.facts["throttled"] for round in rounds if round.facts.get("throttled")]
    known = [round.facts.get("sm_clock_hz") for round in rounds]
    company = {str(words).partition(",")[0]: str(words) for round in rounds for words in _company(round)}
    return Conditions(
        len(rounds),
        len(slowed),
        tuple(dict.fromkeys(str(reason) for reasons in slowed for reason in reasons)),
        tuple(clock for clock in known if isinstance(clock, (int, float)) and 0 < clock < math.inf),
        tuple(company[key] for key in sorted(company)),
    )


def _company(round: Round) -> Iterable[object]:
    processes: Iterable[object] = round.facts.get("foreign_processes", ())
    return processes


def together(sides: Sequence[Conditions]) -> Conditions:
    """The conditions of all of them together."""
    company = {words.partition(",")[0]: words for side in sides for words in side.company}
    return Conditions(
        sum(side.rounds for side in sides),
        sum(side.slowed for side in sides),
        tuple(dict.fromkeys(reason for side in sides for reason in side.reasons)),
        tuple(clock for side in sides for clock in side.clocks_hz),
        tuple(company[key] for key in sorted(company)),
    )


def disturbances(
    base: Conditions, head: Conditions, settings: Settings, sides: tuple[str, str] = ("on the base", "on the head")
) -> list[str]:
    """Why times of the device do not show what the code does, in words; empty where nothing speaks against it.

    Clocks that differ between the sides, rounds that ran while the device slowed itself down, other processes that computed on
    it. A software power cap alone does not count: large matrix products run into it normally.
    """
    doubts = [_clocks_apart(base, head, settings.clock_tolerance, sides)]
    doubts += [_throttled(state, side, settings.good_rounds) for state, side in zip((base, head), sides, strict=True)]
    seen = together([base, head]).company
    if seen:
        who = "another process" if len(seen) == 1 else f"{len(seen)} other processes"
        doubts.append(f"{who} computed on the device: {'; '.join(seen)}")
    return [doubt for doubt in doubts if doubt]


def unlike_devices(base: Evidence, head: Evidence) -> str:
    """That the sides were measured on different devices; empty where they were not, or where nothing is known."""
    one, other = (
        sorted({str(round.facts["gpu_uuid"]) for round in side.good if "gpu_uuid" in round.facts})
        for side in (base, head)
    )
    if not one or not other or one == other:
        return ""
    return f"different device: {' and '.join(one)} on the {base.side}, {' and '.join(other)} on the {head.side}"


def bimodal(modes: Modes, values: str = "rounds", base: str = "on the base", head: str = "on the head") -> str:
    """That the values have two levels, and how often each side was at the upper one."""
    counts = f"{modes.base_high} of {modes.base} {values} {base}, {modes.head_high} of {modes.head} {head}"
    return f"bimodal: two levels {100 * (modes.apart - 1):.2g} % apart, the upper one in {counts}"


def alternating(up: bool, before: tuple[int, int], since: tuple[int, int]) -> str:
    """That a history alternates between several levels, and how many of how many values were as high, or as low, before."""
    counts = f"{before[0]} of {before[1]} results before, {since[0]} of {since[1]} since"
    return f"alternating: its levels have hardly moved, the {'upper' if up else 'lower'} ones have {counts}"


def is_of_modes(reason: str) -> bool:
    """Whether `bimodal` or `alternating` gave the reason."""
    return reason.startswith(("bimodal:", "alternating:"))


def drifting(autocorrelation: float) -> str:
    """That rounds are like the ones before them, which makes their interval look narrower than it is."""
    return f"drifting: a round is like the one before it (autocorrelation {autocorrelation:.2g})"


def trending(base: Evidence, head: Evidence) -> str:
    """That a call takes longer, or less long, from the first samples of a round to the last: its value depends on when sampling
    ends. Empty where that is little, or may be chance."""
    told = [round.facts.get("trend") for side in (base, head) for round in side.good]
    known = [trend for trend in told if isinstance(trend, float) and math.isfinite(trend)]
    if len(known) < FEWEST_TRENDS:
        return ""
    mean, error = statistics.fmean(known), statistics.stdev(known) / math.sqrt(len(known))
    if abs(mean) < LEAST_TREND or abs(mean) <= SURE_TREND * error:
        return ""
    return f"drifting within a round: its last samples are {100 * math.expm1(mean):+.2g} % off its first"


def counter_changes(base: Evidence, head: Evidence) -> list[str]:
    """Counters of one call that are exact on both sides and not equal: "kernel launches 12 -> 14 a call"."""
    changes = []
    for name in (metric.name for metric in METRICS.values() if metric.kind == "count"):
        one, other = _count(base, name), _count(head, name)
        if one is not None and other is not None and one != other:
            changes.append(f"{COUNTED.get(name, name.replace('_', ' '))} {one:.10g} -> {other:.10g} a call")
    return changes


def _count(side: Evidence, name: str) -> float | None:
    values = side.values_of(name, every_round=False)
    known = set(values.values) if values is not None and values.exact and values.failure is None else set()
    return known.pop() if len(known) == 1 else None


def skewed(side: Evidence, metric: str) -> str:
    """That one rank of several is late; empty where none is. The metric is the time of a call."""
    skew = _skew(side, metric)
    if skew is None or skew.share < SKEWED:
        return ""
    return f"skew {format_time(skew.seconds)} a call: rank {skew.rank} works longest"


def skew_changes(base: Evidence, head: Evidence, metric: str) -> list[str]:
    """That one rank of several is late on one side and not on the other: "skew 0.200 us -> 52.0 us a call: rank 1 works
    longest". The metric is the time of a call."""
    one, other = _skew(base, metric), _skew(head, metric)
    if one is None or other is None or max(one.share, other.share) < SKEWED:
        return []
    if max(one.seconds, other.seconds) < SKEW_TIMES * min(one.seconds, other.seconds):
        return []
    grown = other.seconds > one.seconds
    who = f"rank {other.rank} works longest" if grown else f"rank {one.rank} worked longest"
    before, after = format_pair(one.seconds, other.seconds, "s")
    return [f"skew {before} -> {after} a call: {who}"]


class _Skew(NamedTuple):
    """How far the ranks' own work is apart: medians over the rounds."""

    seconds: float
    share: float
    """Of the time of a call."""
    rank: int
    """The one that works longest."""


def _skew(side: Evidence, metric: str) -> _Skew | None:
    rounds = [round for round in side.good if "own_s" in round.facts and metric in round.values]
    if not rounds or len({round.facts["ranks"] for round in rounds}) > 1:
        return None
    own_s = [statistics.median(of_rank) for of_rank in zip(*(round.facts["own_s"] for round in rounds), strict=True)]
    call_s = statistics.median(round.values[metric].value for round in rounds)
    apart_s = max(own_s) - min(own_s)
    return _Skew(apart_s, apart_s / call_s if call_s > 0 else 0.0, own_s.index(max(own_s)))


def _clocks_apart(base: Conditions, head: Conditions, tolerance: float, sides: tuple[str, str]) -> str:
    if not base.clocks_hz or not head.clocks_hz:
        return ""
    one, other = statistics.median(base.clocks_hz), statistics.median(head.clocks_hz)
    if (apart := abs(math.log(other / one))) <= tolerance:
        return ""
    told = f"{one / 1e6:.0f} MHz {sides[0]}, {other / 1e6:.0f} MHz {sides[1]}"
    return f"SM clock {told} ({100 * apart:.2g} % apart)"


def _throttled(state: Conditions, side: str, good_share: float) -> str:
    """That too few rounds of a side ran at full speed."""
    if not state.slowed or state.rounds - state.slowed >= good_share * state.rounds:
        return ""
    return f"throttled ({', '.join(state.reasons)}) in {state.slowed} of {state.rounds} rounds {side}"
