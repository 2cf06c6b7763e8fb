"""Whether a case was measured differently from one commit to the next, in ways that do not split levels but may explain a move.

What makes values incomparable (driver, protocol, what the author declares) splits a series already. This is the rest: how many
calls a sample spans, how many samples there are, how long a round lasts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from regress.history import Store
from regress.model import PROTOCOL_IDENTITY, Round
from regress.trends.points import SPLITTING

BUDGETS = ("samples_min", "samples_max", "windows", "window_budget_s", "warm_calls")
"""The fields of a Protocol that say how much of a case is sampled: settings, not calibrated."""
APART = 2.0
"""Times that what is calibrated, or drawn from run to run, has to be more or less: below, nobody changed it."""


class Manners:
    """How cases were measured at commits; what is recorded of a commit is read once."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._read: dict[tuple[str, str, str], dict[tuple[str, str], Round]] = {}

    def changes(
        self, machine: str, environment: str, case: tuple[str, str], metric: str, commits: tuple[str, str]
    ) -> str:
        """What of it is another at the second commit, in words; empty where nothing is. `case` is a benchmark and its
        parameters, joined by ", "."""
        before, after = (self._rounds(machine, environment, sha).get(case) for sha in commits)
        differing = differences(before, after, metric) if before is not None and after is not None else []
        return f"measured differently: {', '.join(differing)}" if differing else ""

    def _rounds(self, machine: str, environment: str, sha: str) -> Mapping[tuple[str, str], Round]:
        key = machine, environment, sha
        if key not in self._read:
            recorded = self._store.load(sha, machine, environment).recorded
            self._read[key] = {
                (round.name, ", ".join(round.params)): round for one in recorded for round in one.rounds if round.values
            }
        return self._read[key]


def differences(before: Round, after: Round, metric: str) -> list[str]:
    """What of how a case was measured is not the same in two rounds: "number 100 → 1"."""
    if before.protocol is None or after.protocol is None:
        return []
    sides = [
        {name: getattr(round.protocol, name) for name in (*PROTOCOL_IDENTITY, *BUDGETS)} for round in (before, after)
    ]
    for side, round in zip(sides, (before, after), strict=True):
        side.update((name, round.facts[name]) for name in SPLITTING if name in round.facts)
    changed = [f"{name} {was} → {sides[1][name]}" for name, was in sides[0].items() if sides[1].get(name, was) != was]
    return [*changed, *_counts(before, after, metric)]


def _counts(before: Round, after: Round, metric: str) -> Iterable[str]:
    """asv's number and repeat. A number is calibrated so that a sample lasts as long as ever: it is compared with that."""
    assert before.protocol is not None
    assert after.protocol is not None
    if metric not in before.values or metric not in after.values:
        return
    was, now = before.values[metric], after.values[metric]
    calls = before.protocol.calls, after.protocol.calls
    own = metric == before.protocol.metric == after.protocol.metric
    if own and calls[0] != calls[1] and _apart(calls[0] * was.value, calls[1] * now.value):
        yield f"number {calls[0]} → {calls[1]}"
    if _apart(len(was.samples), len(now.samples)):
        yield f"repeat {len(was.samples)} → {len(now.samples)}"


def _apart(one: float, other: float) -> bool:
    return min(one, other) > 0 and max(one, other) >= APART * min(one, other)
