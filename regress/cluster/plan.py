"""Which commits go into which task."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

GROUP = 8
"""Commits that are measured in turn beside the anchor; a task of which nothing is known is one such group."""
FEW = 4
"""A task has no fewer where that would only keep more cards busy: every group costs an anchor."""
MOST_TASKS = 1000
"""Tasks of a kind in one run: an array of Slurm has no more where nobody has set MaxArraySize."""
START = 0.1
"""The share of a task that its start may be."""
TASK_S = 900.0
"""How long a task takes, unless START asks for more: what dies with its node is measured again."""
WITHIN = 0.8
"""The share of a job's time that a task is planned for."""


@dataclass(frozen=True)
class Costs:
    """What tasks of a kind of nodes take, as earlier ones have shown."""

    start_s: float
    """From a job's start to its first round."""
    case_s: float
    """One case of one commit, with its part of the anchors."""
    time_s: float
    """How long a job may take."""

    def sizes(self, cases: int) -> tuple[int, int]:
        """The least and the most commits of a task that measures `cases` cases."""
        commit_s = cases * self.case_s
        fits = max(1, int((WITHIN * self.time_s - self.start_s) / commit_s))
        few = min(max(FEW, math.ceil(self.start_s * (1 / START - 1) / commit_s)), fits)
        return few, min(max(2 * few, int(TASK_S / commit_s)), fits)


@dataclass(frozen=True)
class Task:
    """Commits that one node measures in turn."""

    number: int
    commits: tuple[str, ...]
    """Full hashes, the oldest first; the anchor is among them."""
    anchor: str = ""
    """The one that is measured with every group of the others."""
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
    left: Mapping[str, int] = field(default_factory=dict)
    """By kind: tasks that are too many for one run."""
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
    lacking: Mapping[str, Collection[str]],
    anchor: str,
    at_once: int,
    all_cases: Collection[str],
    costs: Costs | None = None,
) -> list[Task]:
    """The tasks in which what is lacking is measured: full hashes, the oldest first, with the cases that each lacks.

    What a card or a job does to its values must be scatter, not a level: so a task has every k-th commit and never neighbours,
    and each has the anchor. Its commits lack the same. Tasks come in an order in which the first ones cover all coarsely.
    """
    alike: dict[frozenset[str], list[str]] = {}
    place = {sha: at for at, sha in enumerate(lacking)}
    for sha, cases in lacking.items():
        alike.setdefault(frozenset(cases), []).append(sha)
    tasks: list[Task] = []
    for cases, own in alike.items():
        own = [sha for sha in own if sha != anchor] or own  # every task measures it
        few, most = costs.sizes(len(cases)) if costs is not None else (FEW, GROUP)
        named = () if cases == frozenset(all_cases) else tuple(sorted(cases))
        count = _count(len(own), at_once, few, most)
        for offset in halving(count):
            group = {*own[offset::count], anchor}
            commits = sorted(group, key=lambda sha: place.get(sha, -1))
            tasks.append(Task(len(tasks), tuple(commits), anchor, named))
    return tasks


def _count(commits: int, at_once: int, few: int, most: int) -> int:
    """In how many tasks of `few` to `most` commits that many are measured, where `at_once` tasks run at a time: twice as many,
    as nodes are not equally fast, or more, and whole rows of them, as the last row keeps all others waiting."""
    least, largest = math.ceil(commits / most), max(commits // few, 1)
    wanted = max(least, min(largest, 2 * at_once))
    rows = (at_once * math.ceil(wanted / at_once), at_once * (wanted // at_once))
    return next((whole for whole in rows if at_once < wanted and least <= whole <= largest), wanted)


def halving(count: int) -> Sequence[int]:
    """The numbers below `count`, each as far from those before it as can be: 0, 4, 2, 6, 1, 5, 3, 7."""
    bits = max(count - 1, 1).bit_length()
    return sorted(range(count), key=lambda number: int(f"{number:0{bits}b}"[::-1], 2))
