"""Recorded results of a commit, read back: rounds from the sidecars, the rest from asv's files.

Nothing here raises for a bad file: it is skipped and named, with what to do about it, and the others are used.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from regress.files import read_bytes
from regress.history.reading import AsvRow, TableReader
from regress.history.recorded import CommitResults, Loaded, Recorded, SkippedFile, put_together
from regress.history.results_file import (
    BENCHMARKS_VERSION,
    MACHINE_VERSION,
    RESTORE,
    FormatError,
    ResultsFile,
    malformed,
    parse_json,
    parse_results,
)
from regress.history.sidecar import ENDING, Sidecar, parse_header
from regress.history.sidecar import parse as parse_sidecar
from regress.model import Machine
from regress.text.wording import first_of, quoted, reason

BENCHMARKS_FILE = "benchmarks.json"
ANCHOR = "@"
"""Separates the two hashes in the name of an anchor's sidecar."""
MACHINE_FILE = "machine.json"
ANCHORED = rf"(?:{ANCHOR}[0-9a-f]{{8}})?"
"""Part of a file's name that marks it as a possible anchor's."""

T = TypeVar("T")


def load(root: Path, revision_sha: str, machine_name: str | None, environment: str | None) -> Loaded:
    """The results of the commit below `root`, by machine and environment; see Store.load."""
    skipped: list[SkippedFile] = []
    recorded = []
    reader: TableReader | None = None
    twice = doubled(root)
    for folder, name in machine_folders(root, machine_name):
        machine: Machine | None = None
        for stem in _stems(folder):
            if not stem.startswith(revision_sha[:8] + "-"):
                continue
            if stem in twice.get(folder, ()):
                skipped.append(is_double(folder, stem, name))
                continue
            reader = reader or TableReader(read_benchmarks(root, skipped))
            machine = machine or read_machine(folder, name, skipped)
            result = _recorded(folder, stem, machine, reader, skipped)
            if result is None or not result.commit_sha.startswith(revision_sha):
                continue
            if environment in (None, result.environment):
                recorded.append(result.as_rounds())
    return Loaded(tuple(recorded), tuple(skipped))


def commits(root: Path, machine_name: str | None) -> tuple[CommitResults, ...]:
    """The commits that `root` has results of, the oldest first. Files that cannot be read are passed over."""
    results = set()
    for folder, machine in machine_folders(root, machine_name):
        for stem in _stems(folder):
            header = read(folder / (stem + ENDING), parse_header, [])
            if header is not None:
                results.add(CommitResults(header.commit, header.date, machine, header.environment))
                continue
            file = read(folder / f"{stem}.json", parse_results, [])
            if file is not None and file.params.get("machine") == machine:
                results.add(CommitResults(file.commit_hash, (file.date or 0) / 1000, machine, file.env_name))
    return tuple(
        sorted(results, key=lambda commit: (commit.date, commit.commit_sha, commit.machine, commit.environment))
    )


# -- one file ------------------------------------------------------------------------------------------------------------


def read(path: Path, parse: Callable[[bytes], T], skipped: list[SkippedFile]) -> T | None:
    """The file's content; None if it does not exist, or is unreadable and now in `skipped`."""
    try:
        return parse(read_bytes(path))
    except FileNotFoundError:
        return None
    except FormatError as error:
        skipped.append(SkippedFile(path, error.why, error.fix))
    except PermissionError as error:
        skipped.append(SkippedFile(path, reason(error), quoted("chmod", "u+r", path)))
    except OSError as error:
        skipped.append(SkippedFile(path, reason(error), quoted("ls", "-ld", path)))
    return None


def read_benchmarks(root: Path, skipped: list[SkippedFile]) -> dict[str, Any]:
    """The entries of benchmarks.json by name."""
    content = read(root / BENCHMARKS_FILE, lambda data: parse_json(data, BENCHMARKS_VERSION, oldest=1), skipped) or {}
    return {name: entry for name, entry in content.items() if isinstance(entry, dict)}


def read_machine(folder: Path, name: str, skipped: list[SkippedFile]) -> Machine:
    """The machine of that folder, with what machine.json says of it."""
    content = _machine_file(folder, skipped)
    return Machine(name, {key: value for key, value in content.items() if isinstance(value, str) and key != "machine"})


def _machine_file(folder: Path, skipped: list[SkippedFile]) -> dict[str, Any]:
    return read(folder / MACHINE_FILE, lambda data: parse_json(data, MACHINE_VERSION), skipped) or {}


def read_sidecar(path: Path, machine: str, skipped: list[SkippedFile]) -> Sidecar:
    """The sidecar; empty if it does not exist, or belongs to another machine than its folder."""
    side = read(path, parse_sidecar, skipped) or Sidecar()
    if side.header is not None and (wrong := wrong_machine(path, machine, side.header.machine)):
        skipped.append(wrong)
        return Sidecar()
    if side.unreadable:
        why = f"{_of_lines(side.unreadable, 'cannot be read')}: a writer was killed, or a merge went wrong"
        skipped.append(SkippedFile(path, why, "remove those lines; the other rounds are used"))
    if side.doubled:
        why = f"{_of_lines(side.doubled, 'repeat rounds')}: a merge or copy duplicated them"
        skipped.append(SkippedFile(path, why, "remove those lines; each round counts once"))
    return side


def _of_lines(numbers: Sequence[int], words: str) -> str:
    return f"{len(numbers)} of its lines {words} ({first_of(numbers, 5)})"


def read_results(path: Path, machine: str, skipped: list[SkippedFile]) -> ResultsFile | None:
    """asv's file; None if it does not exist, is unreadable, or belongs to another machine than its folder."""
    file = read(path, parse_results, skipped)
    if file is None:
        return None
    if wrong := wrong_machine(path, machine, file.params.get("machine")):
        skipped.append(wrong)
        return None
    if file.malformed:
        skipped.append(SkippedFile(path, f"{malformed(file.malformed)}; the others are used", RESTORE))
    return file


def wrong_machine(path: Path, machine: str, named: Any) -> SkippedFile | None:
    """The error of a results file that names a machine, in the folder of `machine`; None if they match."""
    if named == machine:
        return None
    told = path.parent / MACHINE_FILE
    fix = f'move it to the folder of that machine; or, if they are one, set "machine" in {told} to "{named}"'
    return SkippedFile(path, f"it is of machine {named!r}, and its folder is of {machine!r}", fix)


def of_another_commit(path: Path, commit_sha: str, sidecar_sha: str) -> SkippedFile:
    """A file of results whose sidecar is not its own: eight digits of two commits are the same."""
    why = f"it is of commit {commit_sha}, the rounds beside it are of {sidecar_sha}"
    return SkippedFile(path, why, f"move one of them away: {quoted('mv', path, f'{path}.other')}")


class MachineFolder(NamedTuple):
    """A folder of results, and the name of the machine that they are of."""

    path: Path
    machine: str


def machine_folders(root: Path, machine_name: str | None = None) -> Iterator[MachineFolder]:
    """The folders of that machine below `root`, or of any, by their names.

    As in asv, machine.json names the machine, whatever its folder is called and however deep it is. A folder of `root` without
    one belongs to the machine that it is named after.
    """
    for path in _folders(root):
        if path.parent == root or (path / MACHINE_FILE).is_file():
            named = _machine_file(path, []).get("machine")
            machine = named if isinstance(named, str) and named else path.name
            if machine_name in (None, machine):
                yield MachineFolder(path, machine)


def doubled(root: Path) -> dict[Path, set[str]]:
    """By folder: the results, by their file names without the ending, that another folder of the same machine has too. In a
    folder that was copied with its machine.json, every round would count twice. The folder named after the machine counts, or
    else the first one."""
    by_machine: dict[str, list[Path]] = {}
    for path, machine in machine_folders(root):
        by_machine.setdefault(machine, []).append(path)
    doubles = {}
    for machine, paths in by_machine.items():
        seen: set[str] = set()
        for path in sorted(paths, key=lambda folder: (folder.name != machine, folder)) if len(paths) > 1 else ():
            own = set(_stems(path, ANCHORED))
            doubles[path] = own & seen
            seen |= own
    return doubles


def is_double(folder: Path, stem: str, machine: str) -> SkippedFile:
    """Why such a result is left out."""
    why = f"another folder of {machine!r} has results of that commit and environment"
    return SkippedFile(folder / f"{stem}.json", why, f"remove one of them, or correct {MACHINE_FILE}")


def folders_of_no_machine(root: Path) -> Iterator[Path]:
    """Folders with results that do not name a machine; asv ignores them, too."""
    named = {folder.path for folder in machine_folders(root)}
    yield from (path for path in _folders(root) if path not in named and next(path.glob("*.json"), None) is not None)


def _folders(root: Path) -> list[Path]:
    """All folders below, less hidden ones."""
    folders = []
    for parent, names, _ in os.walk(root):
        names[:] = [name for name in names if name[0] != "."]
        folders += [Path(parent, name) for name in names]
    return sorted(folders)


def results_in(root: Path) -> Iterator[tuple[str, str]]:
    """Machine and file name, without its ending, of every result in a folder of `root`, and of every anchor measured again."""
    for folder, machine in machine_folders(root):
        if folder.parent != root:
            continue
        yield from ((machine, stem) for stem in _stems(folder, ANCHORED))


def anchors_in(root: Path, machine_name: str | None = None) -> Iterator[tuple[str, Path]]:
    """Machine and sidecar of commits measured again beside others."""
    twice = doubled(root)
    for folder, machine in machine_folders(root, machine_name):
        paths = sorted(folder.glob(f"*{ANCHOR}*{ENDING}"))
        yield from ((machine, path) for path in paths if path.name[: -len(ENDING)] not in twice.get(folder, ()))


def _stems(folder: Path, anchor: str = "") -> list[str]:
    """Names of files of results, without their endings; an asv file and its sidecar have the same."""
    matches = (
        re.fullmatch(rf"([0-9a-f]{{8}}{anchor}-.*?)(\.rounds\.jsonl|\.json)", path.name) for path in folder.iterdir()
    )
    return sorted({match[1] for match in matches if match is not None})


def _recorded(
    folder: Path, stem: str, machine: Machine, reader: TableReader, skipped: list[SkippedFile]
) -> Recorded | None:
    side_path, file_path = folder / (stem + ENDING), folder / f"{stem}.json"
    side = read_sidecar(side_path, machine.name, skipped)
    file = read_results(file_path, machine.name, skipped)
    if side.header is None or not side.kept:
        if file is None:
            return None
        empty = Recorded(file.commit_hash, machine, file.env_name, (), {}, file_path)
        return put_together(empty, (), _rows(file), reader)
    header = side.header
    if file is not None and file.commit_hash != header.commit:
        skipped.append(of_another_commit(file_path, file.commit_hash, header.commit))
        file = None
    empty = Recorded(header.commit, machine, header.environment, (), {}, side_path)
    return put_together(empty, side.kept, _rows(file) if file is not None else {}, reader)


def _rows(file: ResultsFile) -> dict[str, AsvRow]:
    return {name: AsvRow.of(row) for name, row in file.rows.items()}
