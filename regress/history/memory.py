"""What a machine remembers of past checks: of each a small file of the cache.

    aa.json         the last A/A check on each device
    noise.json      how much each case's rounds scatter, as past checks have seen it
    confirmed.json  changes of the history that were measured in turn, by check, gate or bisect: confirmed, or found to be none
    verdicts.json   the last verdict on each case, and how often one was taken back

A history has seen the one or two newest results of a change only; a verdict that was confirmed has seen both sides of it, in
fresh rounds. Of these the newest CONFIRMED of each case and metric are kept.

A verdict is reversed where the same two sides are judged again by the same threshold and it is another one, with regressed or
improved among the two: the code is the same, so one of them was wrong. What was undecided neither reverses nor is reversed.
After FORGOTTEN verdicts in a row without a reversal, earlier ones are forgotten.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, NamedTuple

from msgspec import Meta

from regress.history.kept import StateFile
from regress.model import Case, Comparison, Confirmation, Metric, SelfCheck, Side, Spread, Verdict

AA_FILE = "aa.json"
NOISE_FILE = "noise.json"
MEMORY = 60
"""Degrees of freedom that the past keeps at most: a machine that has become noisier is believed soon."""
CONFIRMED_FILE = "confirmed.json"
CONFIRMED = 20
VERDICTS_FILE = "verdicts.json"
FORGOTTEN = 30

_Scatter = Annotated[float, Meta(ge=0, le=1e300)]
"""Standard deviation of the logarithms of round values."""
_Freedom = Annotated[int, Meta(gt=0)]

Claim = tuple[str, str, Verdict, float | None, str, float]
"""A Confirmation as its file has it."""

Found = tuple[Case, Metric, Verdict, float | None]
"""A confirmed change: case, metric, direction, and head over base."""


class LastVerdict(NamedTuple):
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


# -- checks of a side against itself -------------------------------------------------------------------------------------


def _checks(folder: Path) -> StateFile[dict[str, SelfCheck]]:
    """By machine, and UUID of the device, which is empty for a machine without one."""
    return StateFile(folder / AA_FILE, "machines", dict[str, SelfCheck])


def keep_aa(folder: Path, machine: str, device: str, self_check: SelfCheck) -> Path:
    """Keep it for the device of that UUID, replacing the previous one. Raises StoreError."""
    with _checks(folder).changing() as machines:
        machines.setdefault(machine, {})[device] = self_check
    return folder / AA_FILE


def last_aa(folder: Path, machine: str, device: str) -> SelfCheck | None:
    """The last one on that device, or None."""
    return _checks(folder).read().get(machine, {}).get(device)


# -- how much each case's rounds scatter ---------------------------------------------------------------------------------


def _spreads(folder: Path) -> StateFile[dict[str, tuple[_Scatter, _Freedom]]]:
    """By machine and case. Cards of one machine are not told apart: this plans what is measured, and decides nothing."""
    return StateFile(folder / NOISE_FILE, "machines", dict[str, tuple[_Scatter, _Freedom]])


def remember_noise(folder: Path, machine: str, seen: Mapping[str, Spread]) -> None:
    """Add what a check saw of each case to what is remembered. Raises StoreError."""
    with _spreads(folder).changing() as machines:
        cases = machines.setdefault(machine, {})
        for case, spread in seen.items():
            pooled = _pooled(Spread(*cases[case]) if case in cases else None, spread)
            cases[case] = float(f"{pooled.sd:.3g}"), pooled.freedom


def remembered_noise(folder: Path, machine: str) -> dict[str, Spread]:
    """By case, as `str` gives it."""
    return {case: Spread(*spread) for case, spread in _spreads(folder).read().get(machine, {}).items()}


def _pooled(before: Spread | None, now: Spread) -> Spread:
    weight = min(before.freedom, MEMORY) if before is not None else 0
    past = before.sd if before is not None else 0.0
    variance = (weight * past**2 + now.freedom * now.sd**2) / (weight + now.freedom)
    return Spread(math.sqrt(variance), min(weight + now.freedom, MEMORY))


# -- changes that were confirmed -----------------------------------------------------------------------------------------


def _claims(folder: Path) -> StateFile[dict[str, dict[str, list[Claim]]]]:
    """By machine, case and metric."""
    return StateFile(folder / CONFIRMED_FILE, "machines", dict[str, dict[str, list[Claim]]])


def keep_confirmed(folder: Path, machine: str, command: str, base: str, head: str, results: Iterable[Found]) -> None:
    """Keep that a command has confirmed these between two commits, by their full hashes. Raises StoreError."""
    _keep(folder, machine, command, base, head, [result for result in results if result[2].traits.claims])


def keep_unchanged(folder: Path, machine: str, command: str, base: str, head: str, results: Iterable[Found]) -> None:
    """The same of what a history says has changed, and a command has found unchanged. Raises StoreError."""
    _keep(folder, machine, command, base, head, [result for result in results if result[2] is Verdict.UNCHANGED])


def _keep(folder: Path, machine: str, command: str, base: str, head: str, judged: Sequence[Found]) -> None:
    if not judged:
        return
    with _claims(folder).changing() as machines:
        cases = machines.setdefault(machine, {})
        for case, metric, verdict, ratio in judged:
            known = cases.setdefault(str(case), {}).setdefault(metric.name, [])
            known[:] = [claim for claim in known if claim[:2] != (base, head)][1 - CONFIRMED :]
            known.append((base, head, verdict, ratio, command, time.time()))


def confirmed_between(folder: Path, machine: str, base: str, head: str) -> dict[str, dict[str, list[Claim]]]:
    """What is kept of these two commits on a machine, by case and metric, to be added elsewhere."""
    confirmed: dict[str, dict[str, list[Claim]]] = {}
    for case, metrics in _claims(folder).read().get(machine, {}).items():
        for metric, claims in metrics.items():
            if own := [claim for claim in claims if claim[:2] == (base, head)]:
                confirmed.setdefault(case, {})[metric] = own
    return confirmed


def add_confirmed(folder: Path, machine: str, confirmed: Mapping[str, Mapping[str, Sequence[Claim]]]) -> None:
    """Keep what others of that machine have measured in turn. Raises StoreError."""
    with _claims(folder).changing() as machines:
        cases = machines.setdefault(machine, {})
        for case, metrics in confirmed.items():
            for metric, claims in metrics.items():
                known = cases.setdefault(case, {}).setdefault(metric, [])
                known[:] = [*(claim for claim in known if claim not in claims), *claims][-CONFIRMED:]


def confirmed_in(folder: Path) -> Mapping[tuple[str, str, str], tuple[Confirmation, ...]]:
    """The confirmed changes, the oldest first, by machine, case (as `str` gives it) and metric."""
    return {
        (machine, case, metric): tuple(Confirmation(*claim) for claim in entries)
        for machine, cases in _claims(folder).read().items()
        for case, metrics in cases.items()
        for metric, entries in metrics.items()
    }


# -- the last verdicts ---------------------------------------------------------------------------------------------------


def _verdicts(folder: Path) -> StateFile[dict[str, dict[str, LastVerdict]]]:
    """By machine, case and metric."""
    return StateFile(folder / VERDICTS_FILE, "machines", dict[str, dict[str, LastVerdict]])


def remember_verdicts(folder: Path, machine: str, base: Side, head: Side, comparisons: Iterable[Comparison]) -> None:
    """Keep the verdicts on each case in each metric that gates. Raises StoreError."""
    sides = base.commit.sha, "" if head.dirty else head.commit.sha
    alike = base.environment == head.environment
    decided = [
        comparison
        for comparison in comparisons
        if comparison.gates and comparison.verdict.decided and comparison.head is not None
    ]
    if not decided or not alike:
        return
    with _verdicts(folder).changing() as machines:
        cases = machines.setdefault(machine, {})
        for comparison in decided:
            assert comparison.head is not None
            metrics = cases.setdefault(str(comparison.case), {})
            ratio = (
                float(f"{comparison.ratio:.6g}")
                if comparison.ratio is not None and math.isfinite(comparison.ratio)
                else None
            )
            now = LastVerdict(
                *sides, comparison.threshold, comparison.verdict, ratio, float(f"{comparison.head.center:.6g}")
            )
            metrics[comparison.metric.name] = _after(metrics.get(comparison.metric.name), now)


def last_verdicts(folder: Path, machine: str) -> dict[tuple[str, str], LastVerdict]:
    """By case, as `str` gives it, and metric."""
    cases = _verdicts(folder).read().get(machine, {})
    return {(case, metric): verdict for case, metrics in cases.items() for metric, verdict in metrics.items()}


def _after(before: LastVerdict | None, now: LastVerdict) -> LastVerdict:
    """The combined state after `now` has followed `before`."""
    if before is None:
        return now
    same = bool(now.head) and _judged(before) == _judged(now)
    if same and now.verdict is not before.verdict:
        return now._replace(reversed=before.reversed + 1)
    steady = before.steady + 1
    return now._replace(reversed=before.reversed if steady < FORGOTTEN else 0, steady=steady)


def _judged(last: LastVerdict) -> tuple[str, str, float]:
    return last.base, last.head, last.threshold
