"""Along which parameter implementations are looked at, and where on it the fastest changes."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence

from regress.model import Crossover, Outcome, Standing, Stretch

_NUMBER = re.compile(r"[^\w-]*(-?\d[\d_]*\.?\d*(?:e[+-]?\d+)?)\s*(ki|mi|gi|k|m|g)?\b", re.IGNORECASE)
_SUFFIX = {"k": 1e3, "m": 1e6, "g": 1e9, "ki": 2.0**10, "mi": 2.0**20, "gi": 2.0**30}


def number_of(param: str) -> float | None:
    """The number that a parameter is, or begins with: 4096, '64k', (1024, 1024)."""
    found = _NUMBER.match(param)
    return float(found[1].replace("_", "")) * _SUFFIX.get((found[2] or "").lower(), 1.0) if found else None


def size_of(names: Sequence[str], combinations: Sequence[tuple[str, ...]]) -> str:
    """The parameter that has several values, all of them different numbers: of several such parameters the one with the most
    values, the first of equals. Empty if there is none."""
    best, most = "", 1
    for at, name in enumerate(names):
        values = {each[at] for each in combinations}
        numbers = {number_of(each) for each in values}
        if None not in numbers and len(numbers) == len(values) > most:
            best, most = name, len(values)
    return best


def crossovers_of(names: Sequence[str], standings: Sequence[Standing], size: str) -> tuple[Crossover, ...]:
    """One for each combination of the parameters that are not the size, in the order of the standings."""
    if not size:
        return ()
    at = names.index(size)
    groups: dict[tuple[str, ...], list[Standing]] = {}
    for each in standings:
        groups.setdefault((*each.params[:at], *each.params[at + 1 :]), []).append(each)
    found = {rest: stretches_of(group, at) for rest, group in groups.items()}
    return tuple(Crossover(rest, stretches, words(stretches, size)) for rest, stretches in found.items())


def stretches_of(standings: Sequence[Standing], at: int) -> tuple[Stretch, ...]:
    """The standings along the parameter at that place, those next to each other with the same outcome as one."""
    ordered = sorted(standings, key=lambda each: number_of(each.params[at]) or 0.0)
    groups = [(key, list(group)) for key, group in itertools.groupby(ordered, key=_what)]
    return tuple(Stretch(*key, group[0].params[at], group[-1].params[at]) for key, group in groups)


def _what(standing: Standing) -> tuple[Outcome, tuple[str, ...]]:
    return standing.outcome, tuple(each.name for each in standing.contenders if each.name in standing.leaders)


def words(stretches: Sequence[Stretch], size: str) -> str:
    """ "triton up to 512, no difference shown between torch and triton at 1024, torch from 2048"."""
    if len(stretches) == 1:
        only = stretches[0]
        everywhere = f"at every {size}" if only.outcome in ("fastest", "alone") else f"at any {size}"
        return f"{_who(only)} {everywhere if only.first != only.last else f'at {_bare(only.first)}'}"
    last = len(stretches) - 1
    return ", ".join(f"{_who(each)} {_where(each, at == 0, at == last)}" for at, each in enumerate(stretches))


def _who(stretch: Stretch) -> str:
    *others, last = stretch.names or ("",)
    if stretch.outcome == "no difference shown":
        return f"{stretch.outcome} between {', '.join(others)} and {last}"
    return {"fastest": last, "alone": f"only {last}"}.get(stretch.outcome, stretch.outcome)


def _where(stretch: Stretch, first: bool, last: bool) -> str:
    low, high = _bare(stretch.first), _bare(stretch.last)
    if first:
        return f"up to {high}"
    if last:
        return f"from {low}"
    return f"at {low}" if low == high else f"from {low} to {high}"


def _bare(param: str) -> str:
    return param.strip("'\"")
