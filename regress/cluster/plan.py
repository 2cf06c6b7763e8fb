"""Which commits go into which task."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

GROUP = 8
"""Commits of a task beside its anchor, at most."""
FEW = 4
"""A task has no fewer where that would only keep more cards busy: every task costs an anchor and its start."""


@dataclass(frozen=True)
class Task:
    """Commits that one node measures in turn."""

    number: int
    commits: tuple[str, ...]
    """Full hashes, the oldest first; the anchor is among them."""
    cases: tuple[str, ...] = ()
    """What is measured of them; empty: all that was asked for."""
    pair: bool = False
    """Whether these are the ends of a change that is to be confirmed: they are judged against each other, as by `check`."""


@dataclass(frozen=True)
class Plan:
    """What a run is about. Written once, then only read."""

    key: str
    """The same for the same request."""
    command: str
    """What takes it up again."""
    tree: str
    """The working tree as a commit: its configuration and benchmark files measure every commit."""
    config: str
    """The configuration's place in it."""
    tasks: Mapping[str, tuple[Task, ...]]
    """By kind, in the order in which they are to be measured."""
    heads: Mapping[str, str] = field(default_factory=dict)
    """By kind: up to where NEW is measured when all of its tasks are in; empty for other words."""
    environment: str = ""
    """As it was asked for."""
    recorded_in: str = ""
    """As it is recorded."""
    names: tuple[str, ...] = ()
    """The benchmarks."""
    patterns: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Those of the command line."""
    facts: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """By kind: what its nodes are, where results say so."""


def tasks_of(
    lacking: Mapping[str, Collection[str]], anchor: str, at_once: int, all_cases: Collection[str]
) -> list[Task]:
    """The tasks in which what is lacking is measured: full hashes, the oldest first, with the cases that each lacks.

    What a card or a job does to its values must be scatter, not a level: so a task has every k-th commit and never neighbours,
    and each has the anchor. Its commits lack the same. Tasks come in an order in which the first ones cover all coarsely.
    """
    alike: dict[frozenset[str], list[str]] = {}
    place = {sha: at for at, sha in enumerate(lacking)}
    for sha, cases in lacking.items():
        alike.setdefault(frozenset(cases), []).append(sha)
    found: list[Task] = []
    for cases, own in alike.items():
        own = [sha for sha in own if sha != anchor] or own  # every task measures it
        count = max(math.ceil(len(own) / GROUP), min(len(own) // FEW, 2 * at_once), 1)
        named = () if cases == frozenset(all_cases) else tuple(sorted(cases))
        for offset in halving(count):
            group = {*own[offset::count], anchor}
            commits = sorted(group, key=lambda sha: place.get(sha, -1))
            found.append(Task(len(found), tuple(commits), named))
    return found


def halving(count: int) -> Sequence[int]:
    """The numbers below `count`, each as far from those before it as can be: 0, 4, 2, 6, 1, 5, 3, 7."""
    bits = max(count - 1, 1).bit_length()
    return sorted(range(count), key=lambda number: int(f"{number:0{bits}b}"[::-1], 2))
