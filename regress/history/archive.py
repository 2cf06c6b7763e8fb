"""Everything that is recorded below results_dir, read a benchmark at a time."""

from __future__ import annotations

from collections.abc import Collection, Container, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from regress.history.index import Held, Index
from regress.history.index_files import Progress
from regress.history.loading import read_benchmarks, read_machine
from regress.history.reading import AsvRow, TableReader
from regress.history.recorded import Recorded, SkippedFile, of_asv, put_together
from regress.history.sources import by_number, scan
from regress.model import Machine


class Place(NamedTuple):
    """A source of results: its commit, machine, environment and file. `date` is the commit's."""

    commit_sha: str
    date: float
    machine: Machine
    environment: str
    folder: Path
    file: str

    @property
    def path(self) -> Path:
        return self.folder / self.file


_Found = tuple[float, tuple[int, ...], Recorded]
"""When it was last measured, its sources, and what is recorded."""


class Archive:
    """What is recorded below `root`. Unchanged files are not read again: `cache` is the folder that keeps what was read. Of
    the facts of rounds, those in `facts` are available."""

    def __init__(self, root: Path, cache: Path, facts: Collection[str], progress: Progress | None = None) -> None:
        skipped: list[SkippedFile] = []
        self.benchmarks: Mapping[str, Mapping[str, Any]] = read_benchmarks(root, skipped)
        """asv's entries of the benchmarks by name."""
        states = by_number(scan(root, skipped))
        self._index = Index(cache, root, states, facts, progress)
        self._reader = TableReader(self.benchmarks)
        self.places: dict[int, Place] = {}
        """By source."""
        lost: list[Path] = []
        machine, folder = Machine(""), None
        sources, places = self._index.sources, self.places
        for key, (own_folder, name, stem, _, _) in states.items():
            source = sources[key]
            if source.skipped:
                skipped += (SkippedFile(own_folder / file, why, fix) for file, why, fix in source.skipped)
                if not source.commit:
                    lost.append(own_folder / source.skipped[0][0])
            if source.commit:
                if own_folder is not folder:  # sources of a machine stand together
                    machine, folder = read_machine(own_folder, name, skipped), own_folder
                places[key] = Place(
                    source.commit, source.date, machine, source.environment, folder, stem + source.ending
                )
        self._doubled: set[int] = set()
        """Sources about the same commit, machine and environment as another one."""
        self.skipped = (*skipped, *self._twice())
        """Files, or parts of them, that could not be used."""
        self.lost = tuple(lost)
        """Files of results that cannot be used at all."""
        self._was: dict[str, list[str]] = {}
        for source in self._index.sources.values():
            for name, words in source.was.items():
                self._was.setdefault(name, []).extend(words)

    def names(self, sources: Container[int] | None = None) -> list[str]:
        """The benchmarks in any of these sources, or in any at all."""
        return self._index.names(self.places if sources is None else sources)

    def sources_of(self, name: str) -> frozenset[int]:
        """The sources that hold the benchmark; the same object for benchmarks with the same sources."""
        return self._index.sources_of(name)

    def was(self, name: str) -> tuple[str, ...]:
        """The names that the benchmark says it had before."""
        entry = self.benchmarks.get(name, {}).get("was")
        words = [word for word in (entry if isinstance(entry, list) else [entry]) if isinstance(word, str)]
        return tuple(dict.fromkeys((*words, *self._was.get(name, ()))))

    def recorded(self, name: str, sources: Collection[int] | None = None) -> list[tuple[tuple[int, ...], Recorded]]:
        """The benchmark's recorded results in these sources, or in all: individually if we measured them; asv's own results
        for one definition in one place form one table. Of two sources for one commit, the one measured last comes last."""
        held = self._index.held(name)
        wanted = [key for key in self.places if key in held.sources and (sources is None or key in sources)]
        parts = [self._measured(key, held) for key in wanted if key in held.rounds]
        alone = [key for key in wanted if key not in held.rounds]
        parts += [self._table(name, keys, names, held) for keys, names in self._alike(alone, held)]
        return [(sources, recorded) for _, sources, recorded in sorted(parts, key=lambda part: part[0])]

    @cached_property
    def _where(self) -> dict[int, tuple[Any, ...]]:
        """Of each source, what one table has in common; nothing with others where another one is about the same commit."""
        return {
            key: (place.machine.name, place.environment, key if key in self._doubled else None)
            for key, place in self.places.items()
        }

    def texts(self, name: str) -> Mapping[int, bytes]:
        """For each source, its data for the benchmark, as opaque text."""
        return self._index.texts(name)

    def _measured(self, key: int, held: Held) -> _Found:
        rounds, rows = held.rounds[key], {name: rows[key] for name, rows in held.rows.items() if key in rows}
        started_at = max([*map(_started_at, rows.values()), *(round.started_at for round in rounds.rounds)])
        return started_at, (key,), put_together(self._empty(key), rounds.kept(), rows, self._reader)

    def _alike(self, wanted: Sequence[int], held: Held) -> Iterator[tuple[list[int], tuple[str, ...]]]:
        """The sources, those of one place and definition together, with the names of their rows."""
        groups: dict[tuple[Any, ...], list[int]] = {}
        rows = [(name, of.get) for name, of in held.rows.items()]
        for key in wanted:
            definition: list[Any] = [self._where[key]]
            for name, get in rows:
                if (row := get(key)) is not None:
                    definition += name, id(row[0]), row[1]
            groups.setdefault(tuple(definition), []).append(key)
        for (_, *parts), keys in groups.items():
            yield keys, tuple(parts[::3])

    def _table(self, name: str, keys: Sequence[int], names: Sequence[str], held: Held) -> _Found:
        rows = {entry: [held.rows[entry][key] for key in keys] for entry in names}
        further = {entry.rpartition(".")[2]: rows[entry] for entry in names if entry != name}
        table = self._reader.table(name, rows[name], further)
        empty = self._empty(keys[0])
        recorded = of_asv(empty.commit_sha, empty.machine, empty.environment, empty.source, [table])
        return max(_started_at(row) for column in rows.values() for row in column), tuple(keys), recorded

    def _empty(self, key: int) -> Recorded:
        place = self.places[key]
        return Recorded(place.commit_sha, place.machine, place.environment, (), {}, place.path)

    def _twice(self) -> list[SkippedFile]:
        """Files that hold results of the same commit, machine and environment as another one."""
        firsts: dict[tuple[str, str, str], int] = {}
        twice = []
        for key, place in self.places.items():
            first = firsts.setdefault((place.commit_sha, place.machine.name, place.environment), key)
            if first != key:
                self._doubled |= {first, key}
                file = self.places[first].file
                why = f"it is of the same commit, machine and environment as {file}: what was measured later counts"
                twice.append(SkippedFile(place.path, why, "remove one of them"))
        return twice


def _started_at(row: AsvRow) -> float:
    return (row.started_ms or 0) / 1000
