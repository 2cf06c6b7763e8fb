"""The last verdict on each case on each machine, and how often one was taken back: one small file of the cache.

    {"format": 1, "machines": {MACHINE: {CASE: {METRIC: [base, head, threshold, verdict, ratio, value, reversed,
      steady]}}}}

A verdict is reversed where the same two sides are judged again by the same threshold and it is another one, with regressed or
improved among the two: the code is the same, so one of them was wrong. What was undecided neither reverses nor is reversed.
After FORGOTTEN verdicts in a row without a reversal, earlier ones are forgotten. An unreadable file counts as missing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from regress.history.disk import changing_kept, read_kept
from regress.model import Comparison, Side, Verdict

FILE = "verdicts.json"
FORMAT = 1
FORGOTTEN = 30


@dataclass(frozen=True)
class LastVerdict:
    """The last verdict of a check or a comparison on one case and metric."""

    base: str
    """Full hash."""
    head: str
    """Full hash; empty where the head was no commit."""
    threshold: float
    verdict: Verdict
    ratio: float | None
    value: float
    """Of the head."""
    reversed: int = 0
    """How often a verdict was taken back lately."""
    steady: int = 0
    """Verdicts since that were not."""


def remember_verdicts(folder: Path, machine: str, base: Side, head: Side, found: Iterable[Comparison]) -> None:
    """Keep the verdicts on each case in each metric that gates. Raises StoreError."""
    sides = base.commit.sha, "" if head.dirty else head.commit.sha
    alike = base.environment == head.environment
    decided = [each for each in found if each.gates and each.verdict.decided and each.head is not None]
    if not decided or not alike:
        return
    with changing_kept(folder / FILE, "machines", FORMAT) as machines:
        cases = machines.get(machine)
        cases = machines[machine] = cases if isinstance(cases, dict) else {}
        for each in decided:
            assert each.head is not None
            metrics = cases.setdefault(str(each.case), {})
            now = LastVerdict(*sides, each.threshold, each.verdict, each.ratio, each.head.center)
            metrics[each.metric.name] = _as_list(_after(_as_last(metrics.get(each.metric.name)), now))


def last_verdicts(folder: Path, machine: str) -> dict[tuple[str, str], LastVerdict]:
    """By case, as `str` gives it, and metric."""
    cases = read_kept(folder / FILE, "machines", FORMAT).get(machine)
    found = {
        (case, metric): _as_last(entry)
        for case, metrics in (cases.items() if isinstance(cases, dict) else ())
        for metric, entry in (metrics.items() if isinstance(metrics, dict) else ())
    }
    return {key: each for key, each in found.items() if each is not None}


def _after(before: LastVerdict | None, now: LastVerdict) -> LastVerdict:
    """The combined state after `now` has followed `before`."""
    if before is None:
        return now
    same = bool(now.head) and _judged(before) == _judged(now)
    if same and now.verdict is not before.verdict:
        return replace(now, reversed=before.reversed + 1)
    steady = before.steady + 1
    return replace(now, reversed=before.reversed if steady < FORGOTTEN else 0, steady=steady)


def _judged(each: LastVerdict) -> tuple[str, str, float]:
    return each.base, each.head, each.threshold


def _as_list(each: LastVerdict) -> list[Any]:
    ratio = float(f"{each.ratio:.6g}") if each.ratio is not None and math.isfinite(each.ratio) else None
    return [*_judged(each), str(each.verdict), ratio, float(f"{each.value:.6g}"), each.reversed, each.steady]


def _as_last(entry: Any) -> LastVerdict | None:
    try:
        base, head, threshold, verdict, ratio, value, reversed_, steady = entry
        if not all(each is None or math.isfinite(each) for each in (threshold, ratio, value)):
            return None
        return LastVerdict(
            str(base),
            str(head),
            float(threshold),
            Verdict(verdict),
            None if ratio is None else float(ratio),
            float(value),
            int(reversed_),
            int(steady),
        )
    except (TypeError, ValueError, OverflowError):
        return None
