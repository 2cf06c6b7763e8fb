"""Which files of results there are.

A source is asv's file of a commit on a machine in an environment, with its sidecar. Its state is its name with the sizes and
times of both: as long as that is the same, nothing is read again.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

from regress.history import loading
from regress.history.loading import BENCHMARKS_FILE, MACHINE_FILE
from regress.history.recorded import SkippedFile
from regress.history.sidecar import ENDING
from regress.text.wording import quoted

Size = tuple[int, int]
"""Size of a file in bytes and its modification time in nanoseconds. There are many; a class would be slower."""


class State(NamedTuple):
    """A source on the disk; `file` or `sidecar` is None if it does not exist."""

    folder: Path
    machine: str
    stem: str
    file: Size | None
    sidecar: Size | None

    @property
    def changed_ns(self) -> int:
        return max(changed_ns for _, changed_ns in filter(None, (self.file, self.sidecar)))

    @property
    def bytes(self) -> int:
        return sum(size for size, _ in filter(None, (self.file, self.sidecar)))


_NOTHING = ("-", "-")
_OTHERS = (MACHINE_FILE, BENCHMARKS_FILE)


def by_number(states: Iterable[State]) -> dict[int, State]:
    """The states, numbered uniquely; those of a folder are consecutive."""
    found = {}
    folder, name = None, ""
    for state in states:
        own_folder, machine, stem, file, sidecar = state
        if own_folder is not folder:
            folder, name = own_folder, f"{own_folder}\0{machine}"
        (one, then), (other, later) = file or _NOTHING, sidecar or _NOTHING
        text = f"{name}/{stem} {one} {then} {other} {later}".encode("utf-8", "surrogateescape")
        found[int.from_bytes(blake2b(text, digest_size=8).digest(), "big") >> 1] = state
    return found


def scan(root: Path, skipped: list[SkippedFile]) -> Iterator[State]:
    """The sources below `root`, by folder and name. Files of results in other places are put to `skipped`."""
    for path in sorted(root.glob("*.json")):
        if path.name != BENCHMARKS_FILE:
            fix = "move it to the folder of its machine, or remove it"
            skipped.append(SkippedFile(path, "it is in no folder of a machine", fix))
    for folder in loading.folders_of_no_machine(root):
        why = f"no {MACHINE_FILE} says of which machine its results are"
        skipped.append(SkippedFile(folder, why, quoted("mv", folder, root)))
    twice = loading.doubled(root)
    for folder, machine in loading.machine_folders(root):
        files: dict[str, Size] = {}
        sidecars: dict[str, Size] = {}
        for entry in _entries(folder):
            name = entry.name
            if name.endswith(".json") and name[0] != "." and name not in _OTHERS:
                files[name[:-5]] = _size(entry)
            elif name.endswith(ENDING) and re.match(r"[0-9a-f]{8}-", name):
                sidecars[name[: -len(ENDING)]] = _size(entry)
        for stem in sorted({*files, *sidecars}):
            if stem in twice.get(folder, ()):
                skipped.append(loading.is_double(folder, stem, machine))
                continue
            yield State(folder, machine, stem, files.get(stem), sidecars.get(stem))


def _entries(folder: Path) -> Iterator[os.DirEntry[str]]:
    """The folder's files, listed from inside it, which is a shorter path to thousands of files."""
    here = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with os.scandir(here) as entries:
            yield from entries
    finally:
        os.close(here)


def _size(entry: os.DirEntry[str]) -> Size:
    try:
        found = entry.stat()
    except OSError:  # a link to nowhere, or gone since: reading it says so
        return 0, 0
    return found.st_size, found.st_mtime_ns
