"""Recorded results of a commit, read back: rounds from the sidecars, the rest from asv's files.

Nothing here raises for a bad file: it is skipped and named, with what to do about it, and the others are used.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

from regress.errors import quoted
from regress.files import read_bytes
from regress.history.reading import AsvRow, Reader
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

BENCHMARKS_FILE = "benchmarks.json"
ANCHOR = "@"
"""Stands between the two hashes in the name of an anchor's sidecar."""
MACHINE_FILE = "machine.json"

T = TypeVar("T")


def load(root: Path, revision_sha: str, machine_name: str | None, environment: str | None) -> Loaded:
    """What `root` holds of the commit, by machine and environment; see Store.load."""
    skipped: list[SkippedFile] = []
    recorded = []
    reader: Reader | None = None
    for folder in machine_folders(root, machine_name):
        machine: Machine | None = None
        for stem in _stems(folder):
            if not stem.startswith(revision_sha[:8] + "-"):
                continue
            reader = reader or Reader(read_benchmarks(root, skipped))
            machine = machine or read_machine(folder, skipped)
            found = _recorded(folder, stem, machine, reader, skipped)
            if found is None or not found.commit_sha.startswith(revision_sha):
                continue
            if environment in (None, found.environment):
                recorded.append(found.as_rounds())
    return Loaded(tuple(recorded), tuple(skipped))


def commits(root: Path, machine_name: str | None) -> tuple[CommitResults, ...]:
    """The commits that `root` has results of, the oldest first. Files that cannot be read are passed over."""
    found = set()
    for folder in machine_folders(root, machine_name):
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
        return parse(read_bytes(path))
    except FileNotFoundError:
        return None
    except FormatError as error:
        skipped.append(SkippedFile(path, error.why, error.fix))
    except PermissionError as error:
        skipped.append(SkippedFile(path, error.strerror or str(error), quoted("chmod", "u+r", path)))
    except OSError as error:
        skipped.append(SkippedFile(path, error.strerror or str(error), quoted("ls", "-ld", path)))
    return None


def read_benchmarks(root: Path, skipped: list[SkippedFile]) -> dict[str, Any]:
    """The entries of benchmarks.json by name."""
    content = read(root / BENCHMARKS_FILE, lambda data: parse_json(data, BENCHMARKS_VERSION, oldest=1), skipped) or {}
    return {name: entry for name, entry in content.items() if isinstance(entry, dict)}


def read_machine(folder: Path, skipped: list[SkippedFile]) -> Machine:
    """The machine of that folder, with what machine.json says of it."""
    path = folder / MACHINE_FILE
    content = read(path, lambda data: parse_json(data, MACHINE_VERSION), skipped) or {}
    named = content.pop("machine", folder.name)
    if named != folder.name:
        why = f"it is of machine {named!r}, in the folder {folder.name}"
        skipped.append(SkippedFile(path, why, quoted("mv", folder, folder.parent / str(named))))
        return Machine(folder.name)
    return Machine(folder.name, {key: value for key, value in content.items() if isinstance(value, str)})


def read_sidecar(path: Path, skipped: list[SkippedFile]) -> Sidecar:
    """The sidecar; an empty one where there is none."""
    side = read(path, parse_sidecar, skipped) or Sidecar()
    if side.header is not None and (wrong := wrong_machine(path, side.header.machine)):
        skipped.append(wrong)
        return Sidecar()
    if side.unreadable:
        why = f"{_of_lines(side.unreadable, 'cannot be read')}: a writer was killed, or a merge went wrong"
        skipped.append(SkippedFile(path, why, "remove those lines; the other rounds are used"))
    if side.doubled:
        why = f"{_of_lines(side.doubled, 'repeat rounds')}: a merge or a copy has put them there twice"
        skipped.append(SkippedFile(path, why, "remove those lines; each round counts once"))
    return side


def _of_lines(numbers: Sequence[int], words: str) -> str:
    first = ", ".join(map(str, numbers[:5])) + (" ..." if len(numbers) > 5 else "")
    return f"{len(numbers)} of its lines {words} ({first})"


def read_results(path: Path, skipped: list[SkippedFile]) -> ResultsFile | None:
    """asv's file; None where there is none, where it cannot be read, or where it is of another machine than its folder's."""
    file = read(path, parse_results, skipped)
    if file is None:
        return None
    if wrong := wrong_machine(path, file.params.get("machine")):
        skipped.append(wrong)
        return None
    if file.malformed:
        skipped.append(SkippedFile(path, f"{malformed(file.malformed)}; the others are used", RESTORE))
    return file


def wrong_machine(path: Path, named: Any) -> SkippedFile | None:
    """What is wrong with a file of results that names this machine; None where it is its folder's."""
    if named == path.parent.name:
        return None
    why = f"it is of machine {named!r}, in the folder of {path.parent.name}"
    return SkippedFile(path, why, quoted("mv", path, path.parent.parent / str(named)))


def of_another_commit(path: Path, commit_sha: str, sidecar_sha: str) -> SkippedFile:
    """A file of results whose sidecar is not its own: eight digits of two commits are the same."""
    why = f"it is of commit {commit_sha}, the rounds beside it are of {sidecar_sha}"
    return SkippedFile(path, why, f"move one of them away: {quoted('mv', path, f'{path}.other')}")


def machine_folders(root: Path, machine_name: str | None) -> Iterator[Path]:
    if root.is_dir():
        yield from sorted(
            path
            for path in root.iterdir()
            if path.is_dir() and machine_name in (None, path.name) and path.name[0] != "."
        )


def results_in(root: Path) -> Iterator[tuple[str, str]]:
    """Machine and name of file, less its ending, of every result below `root`, and of what was measured again as an anchor."""
    for folder in machine_folders(root, None):
        yield from ((folder.name, stem) for stem in _stems(folder, f"(?:{ANCHOR}[0-9a-f]{{8}})?"))


def anchors_in(root: Path, machine_name: str | None = None) -> Iterator[tuple[str, str]]:
    """Machine and name of file, less its ending, of what was measured again beside other commits."""
    for folder in machine_folders(root, machine_name):
        names = sorted(path.name.removesuffix(ENDING) for path in folder.glob(f"*{ANCHOR}*{ENDING}"))
        yield from ((folder.name, name) for name in names)


def _stems(folder: Path, anchor: str = "") -> list[str]:
    """Names of files of results, without their endings; an asv file and its sidecar have the same."""
    matches = (
        re.fullmatch(rf"([0-9a-f]{{8}}{anchor}-.*?)(\.rounds\.jsonl|\.json)", path.name) for path in folder.iterdir()
    )
    return sorted({match[1] for match in matches if match is not None})


def _recorded(folder: Path, stem: str, machine: Machine, reader: Reader, skipped: list[SkippedFile]) -> Recorded | None:
    side_path, file_path = folder / (stem + ENDING), folder / f"{stem}.json"
    side = read_sidecar(side_path, skipped)
    file = read_results(file_path, skipped)
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
