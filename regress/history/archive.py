"""Everything that is recorded below results_dir, read a benchmark at a time."""

from __future__ import annotations

from collections.abc import Collection, Container, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from regress.history.index import Entry, Index
from regress.history.index_files import Progress
from regress.history.loading import read_benchmarks, read_machine
from regress.history.reading import Reader
from regress.history.recorded import Recorded, SkippedFile, of_asv, put_together
from regress.history.states import by_number, scan
from regress.model import Machine


class Place(NamedTuple):
    """Where results are: of which commit, machine and environment, and in which file. `date` is the commit's."""

    commit_sha: str
    date: float
    machine: Machine
    environment: str
    folder: Path
    file: str

    @property
    def path(self) -> Path:
        return self.folder / self.file


class Archive:
    """What is recorded below `root`. Files that have not changed are not read again: `cache` is the folder that what was read of
    them is kept in. Of the facts of rounds, those in `facts` are there."""

    def __init__(
        self, root: Path, cache: Path, facts: Collection[str], progress: Progress | None = None
    ) -> None:
        skipped: list[SkippedFile] = []
        self.benchmarks: Mapping[str, Mapping[str, Any]] = read_benchmarks(root, skipped)
        """asv's entries of the benchmarks by name."""
        states = by_number(scan(root, skipped))
        self._index = Index(cache, root, states, facts, progress)
        self._reader = Reader(self.benchmarks)
        self.places: dict[int, Place] = {}
        """By source."""
        machine, folder = Machine(""), None
        for key, state in states.items():
            source = self._index.sources[key]
            if source.skipped:
                skipped += (SkippedFile(state.folder / name, why, fix) for name, why, fix in source.skipped)
            if source.commit:
                if state.folder is not folder:  # sources of a machine stand together
                    machine, folder = read_machine(state.folder, skipped), state.folder
                about = (source.commit, source.date, machine, source.environment)
                self.places[key] = Place(*about, state.folder, state.stem + source.ending)
        self.skipped = (*skipped, *self._twice())
        """Files, or parts of them, that could not be used."""
        self._paths: dict[int, Path] = {}
        """Of places, as far as they were asked for."""
        self._was: dict[str, list[str]] = {}
        for source in self._index.sources.values():
            for name, words in source.was.items():
                self._was.setdefault(name, []).extend(words)

    @property
    def files_known(self) -> int:
        """How many sources did not have to be read."""
        return self._index.known

    def names(self, sources: Container[int] | None = None) -> list[str]:
        """The benchmarks that any of these sources holds, or any at all."""
        return self._index.names(self.places if sources is None else sources)

    def sources_of(self, name: str) -> set[int]:
        """The sources that hold the benchmark."""
        return self._index.sources_of(name)

    def was(self, name: str) -> tuple[str, ...]:
        """The names that the benchmark says it had before."""
        entry = self.benchmarks.get(name, {}).get("was", ())
        words = [entry] if isinstance(entry, str) else [each for each in entry if isinstance(each, str)]
        return tuple(dict.fromkeys((*words, *self._was.get(name, ()))))

    def recorded(self, name: str) -> list[tuple[int, Recorded]]:
        """What each source holds of the benchmark, what was measured last standing last."""
        entries = sorted(self._index.entries(name), key=_started_at)
        return [(each.source, self._put_together(each)) for each in entries if each.source in self.places]

    def texts(self, name: str) -> Mapping[int, list[bytes]]:
        """For each source, what it holds of the benchmark, as text that nobody has to understand."""
        return self._index.texts(name)

    def _put_together(self, entry: Entry) -> Recorded:
        place, rows = self.places[entry.source], {name: row.row() for name, row in entry.rows.items()}
        about, path = (place.commit_sha, place.machine, place.environment), self._paths.get(entry.source)
        if path is None:
            path = self._paths[entry.source] = place.path
        if entry.rounds is None:
            return of_asv(*about, path, self._reader.read(rows))
        return put_together(Recorded(*about, (), {}, path), entry.rounds.kept(), rows, self._reader)

    def _twice(self) -> list[SkippedFile]:
        """Files that hold results of the same commit, machine and environment as another one."""
        found: dict[tuple[str, str, str], Place] = {}
        twice = []
        for place in self.places.values():
            first = found.setdefault((place.commit_sha, place.machine.name, place.environment), place)
            if first is not place:
                why = f"it is of the same commit, machine and environment as {first.file}: what was measured later counts"
                twice.append(SkippedFile(place.path, why, "remove one of them"))
        return twice


def _started_at(entry: Entry) -> float:
    latest = max([row.started_ms or 0 for row in entry.rows.values()], default=0) / 1000
    return latest if entry.rounds is None else max([latest, *(each.started_at for each in entry.rounds.rounds)])
