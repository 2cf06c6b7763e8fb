"""Sweeps where a machine has several cards of a kind: which groups they measure, and which commit all groups have in common.

`trends.cards` makes one series of what the cards read, by the commits that several of them have read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence

from regress.history import Store
from regress.model import Commit
from regress.session import Session
from regress.trends import past_of


def has_several(session: Session) -> bool:
    """Whether the history of this machine is of several cards: those of today, and those that measured last."""
    named = Store(session.config.results_dir).machine_facts(session.machine.name).get("gpu_uuid", "")
    own = session.devices.uuids
    return bool(own) and len({*own, *str(named).split(", ")} - {""}) > 1


def spread(commits: Sequence[Commit], cards: int) -> list[list[Commit]]:
    """A group for each card. Neighbours are on unlike cards: then what a card adds is scatter, and no level."""
    return [list(commits[first::cards]) for first in range(min(cards, len(commits)))]


def anchors(
    session: Session, line: Sequence[Commit], names: Collection[str], environment: str, wanted: Sequence[Commit]
) -> list[Commit]:
    """The commits that may stand in every group, the best first.

    That is one with results of as many cases as any: only what it has is linked. Of these it is the newest release, else the
    one that most cards have read, so that it stays the same from sweep to sweep, else the oldest. Where nothing is recorded,
    it is the newest of the `wanted` ones, which has all of today's cases.
    """
    cases, cards = Counter[int](), Counter[int]()
    config = session.config
    past = past_of(config.results_dir, session.cache, line, config.settings, session.machine.name, environment)
    for series in (
        one_series for name in past.names if name in names for one_series in past.series(name) if one_series.primary
    ):
        for at, rounds in zip(series.at, series.rounds, strict=True):
            if rounds:
                cases[at] += 1
                cards[at] = max(cards[at], len(series.cards.get(at, ())))
    tags = session.repository.releases.of(line)
    release = max((at for at in cases if line[at].sha in tags), default=-1)
    best = sorted(cases, key=lambda at: (cases[at], at == release, cards[at], -at), reverse=True)
    return [line[at] for at in best] or list(reversed(wanted))
