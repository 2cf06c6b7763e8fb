"""The results of a commit on one machine in one environment: the sidecar's rounds, and what only asv's file has."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from regress.history.cells import newest_alike, recorded_later
from regress.history.reading import AsvRow, AsvTable, TableReader
from regress.history.sidecar import Kept
from regress.model import Benchmark, Machine, Round


@dataclass(frozen=True)
class SkippedFile:
    """A file, or a part of it, that could not be used."""

    path: Path
    why: str
    fix: str


class LeftOut(NamedTuple):
    """Files of one folder that could not be used for one reason. `path` is the file's, or the folder's of several."""

    path: Path
    files: int
    why: str
    fix: str

    @property
    def words(self) -> str:
        """In a line: which files, why, and what to do."""
        return f"{self.path}: {self.why}; fix: {self.fix}"


def left_out(skipped: Iterable[SkippedFile]) -> list[LeftOut]:
    """What was skipped, one entry for each folder and reason, with the fix for the first file."""
    groups: dict[tuple[Path, str], dict[SkippedFile, None]] = {}
    for file in skipped:
        groups.setdefault((file.path.parent, file.why), {})[file] = None
    left = []
    for (folder, why), group in groups.items():
        first, *others = group
        told = f"{len(group)} files, such as {first.path.name}: {why}" if others else why
        left.append(LeftOut(folder if others else first.path, len(group), told, first.fix))
    return left


@dataclass(frozen=True)
class Recorded:
    """The results of one commit on one machine in one environment; or of several, if all of it is one table of asv's:
    `commit_sha` and `source` are then those of the first one.

    All `rounds` of a case were measured in the same way; they have values, no samples. `benchmarks` are as recorded: with the
    version and parameters of that time.
    """

    commit_sha: str
    machine: Machine
    environment: str
    rounds: tuple[Round, ...]
    benchmarks: Mapping[str, Benchmark]
    source: Path
    """The sidecar, or asv's file if there is no sidecar."""
    notes: tuple[str, ...] = ()
    """What was left out or preferred, in words."""
    asv: tuple[AsvTable, ...] = ()
    """Results that only asv recorded, if they are not among the rounds."""

    def as_rounds(self) -> Recorded:
        """With what only asv has recorded as rounds too, one a case and commit."""
        return replace(self, rounds=(*self.rounds, *(round for one in self.asv for round in one.rounds())), asv=())


@dataclass(frozen=True)
class Loaded:
    """Everything recorded of a commit, and what had to be skipped."""

    recorded: tuple[Recorded, ...] = ()
    skipped: tuple[SkippedFile, ...] = ()


@dataclass(frozen=True)
class CommitResults:
    """A commit that has results. `date` is the commit's, in seconds since the epoch."""

    commit_sha: str
    date: float
    machine: str
    environment: str


def of_asv(commit_sha: str, machine: Machine, environment: str, source: Path, tables: Iterable[AsvTable]) -> Recorded:
    """What only asv has recorded."""
    every = tuple(tables)
    defined = {table.benchmark.name: table.benchmark for table in every}
    return Recorded(commit_sha, machine, environment, (), defined, source, asv=every)


def put_together(empty: Recorded, kept: Sequence[Kept], rows: Mapping[str, AsvRow], reader: TableReader) -> Recorded:
    """`empty` with the rounds of its sidecar, and what asv's file has beyond them: benchmarks and cases that only it knows, and
    benchmarks that asv measured later."""
    if not kept:
        return of_asv(empty.commit_sha, empty.machine, empty.environment, empty.source, reader.read(rows))
    alike, notes = newest_alike(kept)
    by_name = {name: [record.round for record in group] for name, group in alike.items()}
    later = {name for name, rounds in by_name.items() if name in rows and recorded_later(rows[name].started_ms, rounds)}
    asv = []
    for table in reader.read(rows):
        name = table.benchmark.name
        covered = {tuple(round.params) for round in by_name[name]} if name in by_name and name not in later else ()
        left = table.without(covered) if covered else table
        if left is not None:
            asv.append(left)
    return replace(
        empty,
        rounds=tuple(round for name, rounds in by_name.items() if name not in later for round in rounds),
        benchmarks={
            **{table.benchmark.name: table.benchmark for table in asv},
            **{
                name: group[-1].benchmark
                for name, group in alike.items()
                if name not in later and group[-1].benchmark is not None
            },
        },
        notes=(*notes, *(f"{name}: asv measured it later, its result is used" for name in sorted(later))),
        asv=tuple(asv),
    )
