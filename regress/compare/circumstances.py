"""What forbids to claim that a time changed, and what explains a change: clocks, other processes, two modes, counters.

Pure, and symmetric in both sides: what is no claim one way is none the other way.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable

from regress.compare.evidence import Evidence
from regress.model import METRICS, Round, Settings
from regress.stats.modes import Modes

COUNTED = {"launches": "kernel launches"}
"""Words for counters that are more than their names."""


def disturbances(base: Evidence, head: Evidence, settings: Settings) -> list[str]:
    """Why times of the device do not show what the code does, in words; empty where nothing speaks against it.

    Clocks that differ between the sides, rounds that ran while the device slowed itself down, other processes that computed on
    it. A software power cap alone is none: large matrix products run into it by nature.
    """
    found = [_clocks_apart(base, head, settings.clock_tolerance)]
    found += [_throttled(side, settings.good_rounds) for side in (base, head)]
    found.append(_company([*base.good, *head.good]))
    return [each for each in found if each]


def unlike_devices(base: Evidence, head: Evidence) -> str:
    """That the sides were measured on different devices; empty where they were not, or where nothing is known."""
    one, other = (
        sorted({str(each.facts["gpu_uuid"]) for each in side.good if "gpu_uuid" in each.facts}) for side in (base, head)
    )
    if not one or not other or one == other:
        return ""
    return f"unlike device: {' and '.join(one)} on the {base.side}, {' and '.join(other)} on the {head.side}"


def bimodal(modes: Modes, values: str = "rounds", base: str = "on the base", head: str = "on the head") -> str:
    """That the values have two levels, and how often each side was at the upper one."""
    counts = f"{modes.base_high} of {modes.base} {values} {base}, {modes.head_high} of {modes.head} {head}"
    return f"bimodal: two levels {100 * (modes.apart - 1):.2g} % apart, the upper one in {counts}"


def is_bimodal(reason: str) -> bool:
    """Whether that is what the reason says."""
    return reason.startswith("bimodal:")


def drifting(autocorrelation: float) -> str:
    """That rounds are like the ones before them, which makes their interval look narrower than it is."""
    return f"drifting: a round is like the one before it (autocorrelation {autocorrelation:.2g})"


def counter_changes(base: Evidence, head: Evidence) -> list[str]:
    """Counters of one call that are exact on both sides and not equal: "kernel launches 12 -> 14 a call"."""
    found = []
    for name in (metric.name for metric in METRICS.values() if metric.kind == "count"):
        one, other = _count(base, name), _count(head, name)
        if one is not None and other is not None and one != other:
            found.append(f"{COUNTED.get(name, name.replace('_', ' '))} {one:.10g} -> {other:.10g} a call")
    return found


def _count(side: Evidence, name: str) -> float | None:
    values = side.values_of(name, every_round=False)
    known = set(values.values) if values is not None and values.exact and values.failure is None else set()
    return known.pop() if len(known) == 1 else None


def _clocks_apart(base: Evidence, head: Evidence, tolerance: float) -> str:
    clocks = [_sm_clock_hz(side) for side in (base, head)]
    one, other = clocks
    if one is None or other is None or (apart := abs(math.log(other / one))) <= tolerance:
        return ""
    clocks_told = f"{one / 1e6:.0f} MHz on the {base.side}, {other / 1e6:.0f} MHz on the {head.side}"
    return f"SM clock {clocks_told} ({100 * apart:.2g} % apart)"


def _sm_clock_hz(side: Evidence) -> float | None:
    """Median of the rounds that know it."""
    known = [each.facts.get("sm_clock_hz") for each in side.good]
    clocks = [clock for clock in known if isinstance(clock, (int, float)) and 0 < clock < math.inf]
    return statistics.median(clocks) if clocks else None


def _throttled(side: Evidence, good_share: float) -> str:
    """That too few rounds of a side ran at full speed."""
    slowed = [each for each in side.good if each.facts.get("throttled")]
    if not slowed or len(side.good) - len(slowed) >= good_share * len(side.good):
        return ""
    reasons = ", ".join(dict.fromkeys(str(reason) for each in slowed for reason in each.facts["throttled"]))
    return f"throttled ({reasons}) in {len(slowed)} of {len(side.good)} rounds on the {side.side}"


def _company(rounds: Iterable[Round]) -> str:
    """The other processes that computed on the device, each as it was seen last."""
    seen: dict[str, str] = {}
    for each in rounds:
        for words in each.facts.get("foreign_processes", ()):
            seen[str(words).partition(",")[0]] = str(words)
    if not seen:
        return ""
    who = "another process" if len(seen) == 1 else f"{len(seen)} other processes"
    return f"{who} computed on the device: {'; '.join(seen[key] for key in sorted(seen))}"
