"""Recorded results of a commit, read back: rounds from the sidecars, the rest from asv's files.

Nothing here raises for a bad file: it is skipped and named, with what to do about it, and the others are used.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from regress.history.cells import newest_alike, recorded_later
from regress.history.reading import read_rows
from regress.history.results_file import (
    BENCHMARKS_VERSION,
    MACHINE_VERSION,
    FormatError,
    ResultsFile,
    parse_json,
    parse_results,
)
from regress.history.sidecar import ENDING, Sidecar, parse_header
from regress.history.sidecar import parse as parse_sidecar
from regress.model import Benchmark, Case, Machine, Round

BENCHMARKS_FILE = "benchmarks.json"
MACHINE_FILE = "machine.json"

T = TypeVar("T")


@dataclass(frozen=True)
class SkippedFile:
    """A file, or a part of it, that could not be used."""

    path: Path
    why: str
    fix: str


@dataclass(frozen=True)
class Recorded:
    """What is recorded of one commit on one machine in one environment.

    `rounds` of a case were all measured in one way; they have values, no samples. `benchmarks` are as they were then:
    version and parameters are the recorded ones.
    """

    commit_sha: str
    machine: Machine
    environment: str
    rounds: tuple[Round, ...]
    benchmarks: Mapping[str, Benchmark]
    source: Path
    """The sidecar, or asv's file where there is none."""
    notes: tuple[str, ...] = ()
    """What was left out or preferred, in words."""
    intervals: Mapping[Case, Mapping[str, tuple[float, float]]] = field(default_factory=dict)
    """By case and metric, what asv recorded as its 99 % interval, where it did not record the rounds."""


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


def load(root: Path, revision_sha: str, machine_name: str | None, environment: str | None) -> Loaded:
    """What `root` holds of the commit, by machine and environment; see Store.load."""
    skipped: list[SkippedFile] = []
    recorded = []
    entries: dict[str, Any] | None = None
    for folder in _machine_folders(root, machine_name):
        machine: Machine | None = None
        for stem in _stems(folder):
            if not stem.startswith(revision_sha[:8] + "-"):
                continue
            if entries is None:
                entries = read_benchmarks(root, skipped)
            if machine is None:
                machine = _machine(folder, skipped)
            found = _recorded(folder, stem, machine, entries, skipped)
            if found is None or not found.commit_sha.startswith(revision_sha):
                continue
            if environment in (None, found.environment):
                recorded.append(found)
    return Loaded(tuple(recorded), tuple(skipped))


def commits(root: Path, machine_name: str | None) -> tuple[CommitResults, ...]:
    """The commits that `root` has results of, the oldest first. Files that cannot be read are passed over."""
    found = set()
    for folder in _machine_folders(root, machine_name):
        for stem in _stems(folder):
            header = read(folder / (stem + ENDING), parse_header, [])
            if header is not None:
                found.add(CommitResults(header.commit, header.date, folder.name, header.environment))
                continue
            file = read(folder / f"{stem}.json", parse_results, [])
            if file is not None and file.params.get("machine") == folder.name:
                found.add(CommitResults(file.commit_hash, (file.date or 0) / 1000, folder.name, file.env_name))
    return tuple(sorted(found, key=lambda each: (each.date, each.commit_sha, each.machine, each.environment)))


# -- one file ------------------------------------------------------------------------------------------------------------


def read(path: Path, parse: Callable[[bytes], T], skipped: list[SkippedFile]) -> T | None:
    """The file's content; None where there is none, or where it cannot be read and is now in `skipped`."""
    try:
        return parse(path.read_bytes())
    except FileNotFoundError:
        return None
    except FormatError as error:
        skipped.append(SkippedFile(path, error.why, error.fix))
    except OSError as error:
        skipped.append(SkippedFile(path, error.strerror or str(error), f"chmod u+r {path}"))
    return None


def read_benchmarks(root: Path, skipped: list[SkippedFile]) -> dict[str, Any]:
    """The entries of benchmarks.json by name."""
    content = read(root / BENCHMARKS_FILE, lambda data: parse_json(data, BENCHMARKS_VERSION), skipped) or {}
    return {name: entry for name, entry in content.items() if isinstance(entry, dict)}


def _machine_folders(root: Path, machine_name: str | None) -> Iterator[Path]:
    if root.is_dir():
        yield from sorted(
            path
            for path in root.iterdir()
            if path.is_dir() and machine_name in (None, path.name) and path.name[0] != "."
        )


def _stems(folder: Path) -> list[str]:
    """Names of files of results, without their endings; an asv file and its sidecar have the same."""
    matches = (re.fullmatch(r"([0-9a-f]{8}-.*?)(\.rounds\.jsonl|\.json)", path.name) for path in folder.iterdir())
    return sorted({match[1] for match in matches if match is not None})


def _machine(folder: Path, skipped: list[SkippedFile]) -> Machine:
    path = folder / MACHINE_FILE
    content = read(path, lambda data: parse_json(data, MACHINE_VERSION), skipped) or {}
    named = content.pop("machine", folder.name)
    if named != folder.name:
        skipped.append(
            SkippedFile(
                path,
                f"it is of machine {named!r}, in the folder {folder.name}",
                f"mv {folder} {folder.parent / str(named)}",
            )
        )
        return Machine(folder.name)
    return Machine(folder.name, {key: value for key, value in content.items() if isinstance(value, str)})


# -- one commit on one machine in one environment ------------------------------------------------------------------------


def _recorded(
    folder: Path, stem: str, machine: Machine, entries: Mapping[str, Any], skipped: list[SkippedFile]
) -> Recorded | None:
    side_path, file_path = folder / (stem + ENDING), folder / f"{stem}.json"
    side = read(side_path, parse_sidecar, skipped) or Sidecar()
    if side.unreadable:
        lines = ", ".join(map(str, side.unreadable[:5])) + (" ..." if len(side.unreadable) > 5 else "")
        why = (
            f"{len(side.unreadable)} of its lines cannot be read ({lines}): a writer was killed, or a merge went wrong"
        )
        skipped.append(SkippedFile(side_path, why, "remove those lines; the other rounds are used"))
    file = _checked(read(file_path, parse_results, skipped), file_path, skipped)
    if side.header is not None and side.kept:
        merged = _from_sidecar(side, side_path, machine)
        return _with_rows(merged, file, entries)
    if file is None:
        return None
    found = read_rows(file.rows, entries, {})
    return Recorded(
        file.commit_hash,
        machine,
        file.env_name,
        tuple(found.rounds),
        found.benchmarks,
        file_path,
        intervals=found.intervals,
    )


def _checked(file: ResultsFile | None, path: Path, skipped: list[SkippedFile]) -> ResultsFile | None:
    """The file, unless it belongs to another machine than its folder's."""
    if file is None or file.params.get("machine") == path.parent.name:
        return file
    named = file.params.get("machine")
    why = f"it is of machine {named!r}, in the folder of {path.parent.name}"
    skipped.append(SkippedFile(path, why, f"mv {path} {path.parent.parent / str(named)}/"))
    return None


def _from_sidecar(side: Sidecar, path: Path, machine: Machine) -> Recorded:
    assert side.header is not None
    alike, notes = newest_alike(side.kept)
    benchmarks = {name: group[-1].benchmark for name, group in alike.items() if group[-1].benchmark is not None}
    return Recorded(
        commit_sha=side.header.commit,
        machine=machine,
        environment=side.header.environment,
        rounds=tuple(each.round for group in alike.values() for each in group),
        benchmarks=benchmarks,
        source=path,
        notes=tuple(notes),
    )


def _with_rows(recorded: Recorded, file: ResultsFile | None, entries: Mapping[str, Any]) -> Recorded:
    """With what asv's file has beyond the sidecar: benchmarks and cases only it knows, and those asv measured later."""
    if file is None or file.commit_hash != recorded.commit_sha:
        return recorded
    by_name: dict[str, list[Round]] = {}
    for each in recorded.rounds:
        by_name.setdefault(each.name, []).append(each)
    later = {name for name, rounds in by_name.items() if recorded_later(file.rows.get(name, {}), rounds)}
    covered = {name: {tuple(each.params) for each in rounds} for name, rounds in by_name.items() if name not in later}
    found = read_rows(file.rows, entries, covered)
    return replace(
        recorded,
        rounds=(*(each for each in recorded.rounds if each.name not in later), *found.rounds),
        intervals=found.intervals,
        benchmarks={**found.benchmarks, **{name: each for name, each in recorded.benchmarks.items() if name not in later}},
        notes=(*recorded.notes, *(f"{name}: asv measured it later, its result is used" for name in sorted(later))),
    )
