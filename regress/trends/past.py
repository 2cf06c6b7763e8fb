"""The past: what is recorded of a project's commits, read a benchmark at a time."""

from __future__ import annotations

import gc
import hashlib
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from operator import or_
from pathlib import Path
from typing import NamedTuple

from regress.history import Archive, Place, SkippedFile, without_gc
from regress.model import Benchmark, Commit, Machine, Series, Settings
from regress.trends.renames import Recordings, as_of_today, last_definition, names_of_today
from regress.trends.series import FACTS, series_from

FORMAT = 4
"""Of what `series` makes of a history: part of each stamp."""


@dataclass(frozen=True)
class Unknown:
    """A commit with results that the caller's history lacks: of another branch, or rebased away. `date` is as recorded."""

    commit_sha: str
    date: float
    files: tuple[Place, ...]


class BenchmarkTrace(NamedTuple):
    """Which results there are of a benchmark."""

    files: str
    """A word that is another one whenever there are other files, or one of them has changed."""
    newest: Commit
    """The last commit that has results."""


@dataclass(frozen=True)
class Past:
    """What is recorded of `commits`, the oldest first in the caller's order; one object a command."""

    names: tuple[str, ...]
    """Benchmarks with results, sorted, under their names of today."""
    commits: tuple[Commit, ...]
    machines: tuple[Machine, ...]
    environments: tuple[str, ...]
    skipped: tuple[SkippedFile, ...]
    """Files, or parts of them, that could not be used."""
    lost: tuple[Path, ...]
    """Files of results of which nothing could be used."""
    files: int
    """How many results there are in all, of whatever commit."""
    unknown: tuple[Unknown, ...]
    """Results of other commits, the oldest first."""
    _archive: Archive = field(repr=False)
    _settings: Settings = field(repr=False)
    _places: Mapping[int, int] = field(repr=False)
    """Of each source that counts, the place of its commit among `commits`."""
    _old_names: Mapping[str, Sequence[str]] = field(repr=False)
    """By the name of today, the oldest first."""
    _only: tuple[str | None, str | None] = field(repr=False)

    def old_names(self, name: str) -> Sequence[str]:
        """What the benchmark was called, the oldest first."""
        return self._old_names.get(name, ())

    def of(self, commits: Sequence[Commit]) -> Past:
        """The same of other commits: nothing is looked at again."""
        return _of(self._archive, commits, self._settings, *self._only)

    def series(self, name: str) -> tuple[Series, ...]:
        """Every series of a benchmark: cases, metrics, machines, devices and environments. Results under names that the
        benchmark says it had are in them."""
        with without_gc():
            return self._series(name)  # a call of its own: what it has made is gone before the collector looks again

    def _series(self, name: str) -> tuple[Series, ...]:
        series = series_from(self._recorded(name), tuple(commit.sha for commit in self.commits), self._settings)
        return tuple(replace(one_series, beside=self._beside) for one_series in series) if self._beside else series

    @cached_property
    def _beside(self) -> frozenset[int]:
        return frozenset(place for place, commit in enumerate(self.commits) if commit.beside)

    def benchmark(self, name: str) -> Benchmark | None:
        """The benchmark as it was recorded last; its code is in `asv` where benchmarks.json has the benchmark."""
        benchmark = last_definition(self._recorded(name), name)
        return replace(benchmark, asv=dict(self._archive.benchmarks.get(name, {}))) if benchmark is not None else None

    def trace(self, name: str) -> BenchmarkTrace:
        """Which results there are of the benchmark, without a look at what they say."""
        names = (*self._old_names[name], name)
        files, newest = self._files(reduce(or_, map(self._archive.sources_of, names)))
        digest = hashlib.sha256(files + self._begun[newest])
        digest.update(
            repr([self._archive.benchmarks.get(known_as) for known_as in names]).encode(errors="surrogatepass")
        )
        return BenchmarkTrace(digest.hexdigest()[:24], self.commits[newest])

    def _files(self, sources: frozenset[int]) -> tuple[bytes, int]:
        """What stands for those of the sources that count, and the place of the newest commit among theirs. Most benchmarks
        stand in the same sources."""
        if sources not in self._files_told:
            held = self._places.keys() & sources
            self._files_told[sources] = array("q", sorted(held)).tobytes(), max(map(self._places.__getitem__, held))
        return self._files_told[sources]

    @cached_property
    def _files_told(self) -> dict[frozenset[int], tuple[bytes, int]]:
        return {}

    def stamp(self, name: str) -> str:
        """A word that is another one whenever `series(name)` could be, but for commits after the newest that has results. It is
        the same wherever the same results are."""
        digest, newest = hashlib.sha256(), 0
        for known_as in (*self.old_names(name), name):
            digest.update(repr((known_as, self._archive.benchmarks.get(known_as))).encode(errors="surrogatepass"))
            texts = self._archive.texts(known_as)
            keys = [key for key in self._labels if key in texts]
            digest.update(b"\0".join([part for key in keys for part in (self._labels[key], texts[key])]))
            newest = max(newest, self._places[keys[-1]]) if keys else newest
        digest.update(self._begun[newest])
        return digest.hexdigest()[:24]

    @cached_property
    def _labels(self) -> dict[int, bytes]:
        """Of each source, whose results it has; in the order of the commits, and beyond it in one that files keep when they are
        copied."""
        where = self._archive.places
        named = [
            (place, where[key].machine.name, where[key].environment, where[key].file, key)
            for key, place in self._places.items()
        ]
        return {key: repr(words).encode(errors="surrogatepass") for *words, _, key in sorted(named)}

    @cached_property
    def _begun(self) -> list[bytes]:
        """Of the commits up to each, a word that stands for them."""
        digest = hashlib.sha256(repr((FORMAT, self._settings)).encode())
        words = []
        for commit in self.commits:
            digest.update(commit.sha.encode() + b"|" * commit.beside)
            words.append(digest.digest())
        return words

    def _recorded(self, name: str) -> Recordings:
        """What is recorded of the benchmark, in the order of the commits."""
        return as_of_today(name, self.old_names(name), self._recorded_under)

    def _recorded_under(self, name: str) -> Recordings:
        return [
            (tuple(self._places[source] for source in sources), recorded)
            for sources, recorded in self._archive.recorded(name, self._places)
        ]


def past_of(
    root: Path,
    cache: Path,
    commits: Sequence[Commit],
    settings: Settings,
    machine: str | None = None,
    environment: str | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Past:
    """What the results below `root` say of `commits`, on one machine and in one environment where these are named.

    Of files that have not changed, what was read is taken from the folder `cache`; `progress` is called with the bytes that
    were read and that have to be.
    """
    with without_gc():
        past = _of(Archive(root, cache, FACTS, progress), commits, settings, machine, environment)
        gc.freeze()  # it stays, and the collector need not look at all of it as soon as it works again
        return past


def _of(
    archive: Archive, commits: Sequence[Commit], settings: Settings, machine: str | None, environment: str | None
) -> Past:
    by_sha = {commit.sha: place for place, commit in enumerate(commits)}
    wanted = archive.places
    if machine is not None:
        wanted = {key: place for key, place in wanted.items() if place.machine.name == machine}
    if environment is not None:
        wanted = {key: place for key, place in wanted.items() if place.environment == environment}
    places = {key: by_sha[place.commit_sha] for key, place in wanted.items() if place.commit_sha in by_sha}

    def last(name: str) -> int:
        return max(places[key] for key in archive.sources_of(name) if key in places)

    names = names_of_today(set(archive.names(places)), archive.was, last)
    own = [wanted[key] for key in places]
    machines = {place.machine.name: place.machine for place in own}
    return Past(
        names=tuple(sorted(names)),
        commits=tuple(commits),
        machines=tuple(machines[name] for name in sorted(machines)),
        environments=tuple(sorted({place.environment for place in own})),
        skipped=archive.skipped,
        lost=archive.lost,
        files=len(archive.places) + len(archive.lost),
        unknown=_unknown(place for key, place in wanted.items() if key not in places),
        _archive=archive,
        _settings=settings,
        _places=places,
        _old_names=names,
        _only=(machine, environment),
    )


def _unknown(places: Iterable[Place]) -> tuple[Unknown, ...]:
    by_commit: dict[str, list[Place]] = {}
    for place in places:
        by_commit.setdefault(place.commit_sha, []).append(place)
    every = (Unknown(sha, group[0].date, tuple(group)) for sha, group in by_commit.items())
    return tuple(sorted(every, key=lambda unknown: (unknown.date, unknown.commit_sha)))
