"""The past: what is recorded of a project's commits, read a benchmark at a time."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from regress.compare.series import series_of
from regress.history import Recorded, SkippedFile, Store
from regress.model import Benchmark, Commit, Machine, Series, Settings


@dataclass(frozen=True)
class Unknown:
    """A commit with results that is none of the caller's: of another branch, or rebased away. `date` is as recorded."""

    commit_sha: str
    date: float
    files: tuple[Path, ...]


@dataclass(frozen=True)
class Past:
    """What is recorded of `commits`, the oldest first in the caller's order; one object a command."""

    names: tuple[str, ...]
    """Benchmarks with results, sorted."""
    commits: tuple[Commit, ...]
    machines: tuple[Machine, ...]
    environments: tuple[str, ...]
    skipped: tuple[SkippedFile, ...]
    """Files, or parts of them, that could not be used."""
    unknown: tuple[Unknown, ...]
    """Results of other commits, the oldest first."""
    _settings: Settings = field(repr=False)
    _recorded: Mapping[str, Sequence[tuple[int, Recorded]]] = field(repr=False)
    """By benchmark, what is recorded of it at which commit."""
    _entries: Mapping[str, Mapping[str, Any]] = field(repr=False)

    def series(self, name: str) -> tuple[Series, ...]:
        """Every series of a benchmark: cases, metrics, machines, devices and environments."""
        history: list[tuple[str, list[Recorded]]] = [(commit.sha, []) for commit in self.commits]
        for place, recorded in self._recorded.get(name, ()):
            history[place][1].append(recorded)
        return series_of(history, self._settings)

    def benchmark(self, name: str) -> Benchmark | None:
        """The benchmark as it was recorded last; its code is in `asv` where benchmarks.json has the benchmark."""
        found = [each for _, recorded in self._recorded.get(name, ()) for each in recorded.benchmarks.values()]
        return replace(found[-1], asv=dict(self._entries.get(name, {}))) if found else None

    def stamp(self, name: str) -> str:
        """A word that is another one whenever `series(name)` could be."""
        parts = (self.commits, self._settings, self._recorded.get(name, ()))
        return hashlib.sha256(repr(parts).encode()).hexdigest()[:24]


def past_of(
    root: Path,
    cache: Path,
    commits: Sequence[Commit],
    settings: Settings,
    machine: str | None = None,
    environment: str | None = None,
) -> Past:
    """What the results below `root` say of `commits`, on one machine and in one environment where these are named."""
    store = Store(root)
    places = {commit.sha: place for place, commit in enumerate(commits)}
    by_name: dict[str, list[tuple[int, Recorded]]] = {}
    machines: dict[str, Machine] = {}
    environments, skipped, unknown = set(), {}, {}
    dates = {each.commit_sha: each.date for each in store.commits(machine)}
    for sha in sorted(dates, key=lambda sha: (places.get(sha, -1), dates[sha], sha)):
        loaded = store.load(sha, machine, environment)
        skipped.update(dict.fromkeys(loaded.skipped))
        if sha not in places:
            files = tuple(each.source for each in loaded.recorded)
            unknown[sha] = Unknown(sha, dates[sha], files)
            continue
        for recorded in loaded.recorded:
            machines[recorded.machine.name] = recorded.machine
            environments.add(recorded.environment)
            for name in dict.fromkeys(each.name for each in recorded.rounds):
                by_name.setdefault(name, []).append((places[sha], _only(recorded, name)))
    return Past(
        names=tuple(sorted(by_name)),
        commits=tuple(commits),
        machines=tuple(machines[name] for name in sorted(machines)),
        environments=tuple(sorted(environments)),
        skipped=tuple(skipped),
        unknown=tuple(each for each in unknown.values() if each.files),
        _settings=settings,
        _recorded=by_name,
        _entries=store.entries(),
    )


def _only(recorded: Recorded, name: str) -> Recorded:
    """What is recorded of that benchmark."""
    return replace(
        recorded,
        rounds=tuple(each for each in recorded.rounds if each.name == name),
        benchmarks={key: each for key, each in recorded.benchmarks.items() if key == name},
        intervals={case: each for case, each in recorded.intervals.items() if case.name == name},
    )
