"""What of a metric's recorded values are draws of their own: rounds of one session of a machine are alike, whatever the code.

A session is a run of regress, which a round names. Another one may be another hour, job or boot, or another host of the same
name, and how far apart their levels are no round of one of them shows. So rounds of a run that measured both sides are compared
by themselves. Where none did, all rounds of a session are one value; a side that is from one session only does not
show how far sessions are apart, and with it no change is claimed. Cards of one kind are apart by more than sessions are, so of
sides that were on unlike ones only what one card has measured of both in one run is compared.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from regress.model import Round


class Taken(Protocol):
    """Round values of a side, and the session that each was recorded in; empty where nothing says."""

    @property
    def values(self) -> tuple[float, ...]: ...

    @property
    def runs(self) -> tuple[str, ...]: ...


class Draws(NamedTuple):
    """The values of both sides that can be tested."""

    base: tuple[float, ...]
    head: tuple[float, ...]
    sessions: tuple[int, int] | None = None
    """How many each side is from, where none has enough of both."""
    note: str = ""


def draws_of(base: Taken, head: Taken) -> Draws:
    """The draws of two sides. What was just measured, or recorded by asv, names no session: then every value is one."""
    if not all((*base.runs, *head.runs)):
        return Draws(base.values, head.values)
    both = Counter(base.runs) & Counter(head.runs)
    if shared := [run for run, rounds in both.items() if rounds > 1]:  # one round of each shows no spread
        run = max(shared, key=lambda each: (both[each], each))  # of equals the newest
        own = _of(base, run), _of(head, run)
        left = len(base.values) + len(head.values) - sum(map(len, own))
        return Draws(*own, note=f"{left} rounds of other sessions left out: one session has both sides" if left else "")
    sessions = len(set(base.runs)), len(set(head.runs))
    return Draws(_by_session(base), _by_session(head), sessions, _words(*sessions))


def on_one_card(base: Sequence[Round], head: Sequence[Round]) -> tuple[Sequence[Round], Sequence[Round]]:
    """The rounds of a case; of sides that were on unlike cards those of the run and card that have most of both."""
    if {card for _, card in map(_job, base)} == {card for _, card in map(_job, head)}:
        return base, head
    both = Counter(map(_job, base)) & Counter(map(_job, head))
    shared = [job for job, rounds in both.items() if all(job) and rounds > 1]
    if not shared:
        return base, head
    job = max(shared, key=lambda each: (both[each], each))
    return [each for each in base if _job(each) == job], [each for each in head if _job(each) == job]


def _job(round: Round) -> tuple[str, str]:
    return round.run, str(round.facts.get("gpu_uuid", ""))


def _of(values: Taken, run: str) -> tuple[float, ...]:
    return tuple(value for value, its in zip(values.values, values.runs, strict=True) if its == run)


def _by_session(values: Taken) -> tuple[float, ...]:
    """One value a session, but where there is one only."""
    found: dict[str, list[float]] = {}
    for value, run in zip(values.values, values.runs, strict=True):
        found.setdefault(run, []).append(value)
    return tuple(map(statistics.median, found.values())) if len(found) > 1 else values.values


def _words(base: int, head: int) -> str:
    if base > 1 and head > 1:
        return f"of {base} and {head} sessions, each one value"
    if base == head:
        return "each side was measured in one session, not in the same: sessions may differ for other reasons"
    side, many = ("base", head) if base == 1 else ("head", base)
    return f"the {side} was measured in one session, the other side in {many}: sessions may differ for other reasons"
