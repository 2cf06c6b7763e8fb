"""What was measured in turn on this machine, by check, gate or bisect, of changes that a history has: confirmed, or found to be
none. One small file of the cache.

    {"format": 1, "machines": {MACHINE: {CASE: {METRIC: [[base, head, verdict, ratio, command, date], ...]}}}}

A history has seen the one or two newest results of a change only; such a verdict has seen both sides of it, in fresh rounds.
The newest KEPT of each case and metric are kept.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from regress.history.disk import changing_kept, read_kept
from regress.model import Case, Confirmation, Metric, Verdict

FILE = "confirmed.json"
FORMAT = 1
KEPT = 20

Kept = Mapping[str, Mapping[str, Sequence[list[Any]]]]
"""As the file has it, by case and metric."""
Found = tuple[Case, Metric, Verdict, float | None]
"""A confirmed change: case, metric, direction, and head over base."""


def keep_confirmed(folder: Path, machine: str, command: str, base: str, head: str, found: Iterable[Found]) -> None:
    """Keep that a command has confirmed these between two commits, by their full hashes. Raises StoreError."""
    _keep(folder, machine, command, base, head, [each for each in found if each[2].traits.claims])


def keep_unchanged(folder: Path, machine: str, command: str, base: str, head: str, found: Iterable[Found]) -> None:
    """The same of what a history says has changed, and a command has found unchanged. Raises StoreError."""
    _keep(folder, machine, command, base, head, [each for each in found if each[2] is Verdict.UNCHANGED])


def _keep(folder: Path, machine: str, command: str, base: str, head: str, told: Sequence[Found]) -> None:
    if not told:
        return
    with changing_kept(folder / FILE, "machines", FORMAT) as machines:
        cases = machines.setdefault(machine, {})
        for case, metric, verdict, ratio in told:
            known = cases.setdefault(str(case), {}).setdefault(metric.name, [])
            known[:] = [each for each in known if each[:2] != [base, head]][1 - KEPT :]
            known.append([base, head, str(verdict), ratio, command, time.time()])


def confirmed_between(folder: Path, machine: str, base: str, head: str) -> Kept:
    """What is kept of these two commits on a machine, to be added elsewhere."""
    found: dict[str, dict[str, list[list[Any]]]] = {}
    for case, metrics in read_kept(folder / FILE, "machines", FORMAT).get(machine, {}).items():
        for metric, entries in metrics.items():
            if own := [each for each in entries if each[:2] == [base, head]]:
                found.setdefault(case, {})[metric] = own
    return found


def add_confirmed(folder: Path, machine: str, found: Kept) -> None:
    """Keep what was measured in turn by others of that machine. Raises StoreError."""
    with changing_kept(folder / FILE, "machines", FORMAT) as machines:
        cases = machines.setdefault(machine, {})
        for case, metrics in found.items():
            for metric, entries in metrics.items():
                known = cases.setdefault(case, {}).setdefault(metric, [])
                known[:] = [*(each for each in known if each not in entries), *entries][-KEPT:]


def confirmed_in(folder: Path) -> Mapping[tuple[str, str, str], tuple[Confirmation, ...]]:
    """The confirmed changes, the oldest first, by machine, case (as `str` gives it) and metric."""
    found: dict[tuple[str, str, str], tuple[Confirmation, ...]] = {}
    for machine, cases in read_kept(folder / FILE, "machines", FORMAT).items():
        for case, metrics in cases.items() if isinstance(cases, dict) else ():
            for metric, entries in metrics.items() if isinstance(metrics, dict) else ():
                read = map(_read, entries if isinstance(entries, list) else ())
                found[machine, case, metric] = tuple(each for each in read if each is not None)
    return found


def _read(entry: Any) -> Confirmation | None:
    try:
        base, head, verdict, ratio, command, date = entry
        size = None if ratio is None else float(ratio)
        return Confirmation(str(base), str(head), Verdict(verdict), size, str(command), float(date))
    except (TypeError, ValueError):
        return None
