"""How much each case's rounds scatter on each machine, as past checks have seen it: one small file of the cache.

    {"format": 1, "machines": {MACHINE: {CASE: [standard deviation of log round values, degrees of freedom]}}}

Cards of one machine are not told apart: this plans what is measured, and decides nothing. What cannot be read counts as not
there: it is seen again in the next check.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from regress.history.disk import changing_kept, read_kept
from regress.model import Spread

FILE = "noise.json"
FORMAT = 1
MEMORY = 60
"""Degrees of freedom that the past keeps at most: a machine that has become noisier is believed soon."""


def remember_noise(folder: Path, machine: str, seen: Mapping[str, Spread]) -> None:
    """Add what a check saw of each case to what is remembered. Raises StoreError."""
    with changing_kept(folder / FILE, "machines", FORMAT) as machines:
        cases = _spreads(machines.get(machine))
        cases.update((case, _pooled(cases.get(case), spread)) for case, spread in seen.items())
        machines[machine] = {case: [float(f"{each.sd:.3g}"), each.freedom] for case, each in cases.items()}


def remembered_noise(folder: Path, machine: str) -> dict[str, Spread]:
    """By case, as `str` gives it."""
    return _spreads(read_kept(folder / FILE, "machines", FORMAT).get(machine))


def _spreads(entries: Any) -> dict[str, Spread]:
    found = entries.items() if isinstance(entries, dict) else ()
    return {case: Spread(float(each[0]), each[1]) for case, each in found if _is_spread(each)}


def _is_spread(entry: Any) -> bool:
    if not isinstance(entry, list) or len(entry) != 2:
        return False
    sd, freedom = entry
    return type(sd) in (int, float) and 0 <= sd < math.inf and type(freedom) is int and freedom > 0


def _pooled(before: Spread | None, now: Spread) -> Spread:
    weight = min(before.freedom, MEMORY) if before is not None else 0
    past = before.sd if before is not None else 0.0
    variance = (weight * past**2 + now.freedom * now.sd**2) / (weight + now.freedom)
    return Spread(math.sqrt(variance), min(weight + now.freedom, MEMORY))
