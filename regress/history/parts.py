"""What a folder has of one result, read for merging."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from regress.history import loading, sidecar
from regress.history.loading import MACHINE_FILE
from regress.history.recorded import SkippedFile
from regress.history.results_file import (
    MACHINE_VERSION,
    RESTORE,
    ResultsFile,
    cells_of,
    malformed,
    parse_json,
    parse_results,
    parse_whole_results,
)
from regress.history.store import for_merging, refuse_other
from regress.history.uniting import Lines, lines_of, united_results
from regress.text.wording import quoted

T = TypeVar("T")


@dataclass(frozen=True)
class ResultPart:
    """One result in one folder: the sidecar and asv's file, if present."""

    whose: tuple[str, ...] | None = None
    """Commit and environment, for an anchor also what it was measured beside; None if nothing can be used."""
    data: bytes = b""
    file: ResultsFile | None = None

    def rounds(self, lines: Lines) -> frozenset[Any]:
        """Its rounds; where asv has measured it alone, each case counts as one."""
        if lines.places or self.file is None:
            return lines.rounds
        cells = ((name, cells_of(row)) for name, row in self.file.rows.items())
        return frozenset((name, params, repr(cell)) for name, row in cells for params, cell in row.items())

    def has_all_of(self, other: ResultPart) -> bool:
        """Whether everything in the other one is here unchanged. A quick check, because most of a history never changes."""
        if not set(other.data.split(b"\n")) <= set(self.data.split(b"\n")):
            return False
        return other.file is None or (self.file is not None and united_results([self.file, other.file]) == self.file)


class Parts:
    """Reads results for merging into `root`. What of another folder cannot be used is skipped and named; what of `root` cannot
    is an error, because it would be written over."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self.skipped: dict[SkippedFile, None] = {}
        self._folders: dict[Path, list[loading.MachineFolder]] = {}

    def read(self, root: Path, name: str, parse: Callable[[bytes], T]) -> T | None:
        """A file of a source, which is skipped and named if unreadable; in results_dir that is an error."""
        if root == self._root:
            return for_merging(root / name, parse)
        skipped: list[SkippedFile] = []
        content = loading.read(root / name, parse, skipped)
        self.skipped.update(dict.fromkeys(skipped))
        return content

    def folder(self, root: Path, machine: str, stem: str = "") -> str:
        """The folder of that machine, or, if it has several, the one with that result; relative to `root`."""
        if root == self._root:
            return machine
        if root not in self._folders:
            self._folders[root] = [folder for folder in loading.machine_folders(root) if folder.path.parent == root]
        own = [folder for folder, name in self._folders[root] if name == machine]
        held = [
            path for folder in own for end in (".json", sidecar.ENDING) if (path := folder / f"{stem}{end}").exists()
        ]
        first = held[0].parent if held else own[0] if own else root / machine
        for path in (other for other in held if other.parent != first):
            why = f"it is of the same commit, machine and environment as one in {first}"
            self.skipped[SkippedFile(path, why, f"merge it from a folder of its own: mv {path.parent} ELSEWHERE")] = (
                None
            )
        return str(first.relative_to(root))

    def part(self, root: Path, machine: str, stem: str) -> ResultPart:
        """The result without what belongs to another machine or commit."""
        folder = self.folder(root, machine, stem)
        side_name, file_name = f"{folder}/{stem}{sidecar.ENDING}", f"{folder}/{stem}.json"
        header = self.read(root, side_name, sidecar.parse_header)
        if header is not None and self._strays(root, side_name, (header.machine,), (machine,)):
            header = None
        data = self.read(root, side_name, bytes) if header is not None else None
        whose: tuple[str, ...] | None = None
        if header is not None:
            whose = (header.commit, header.environment, *filter(None, [header.beside]))
        file = self._results(root, file_name)
        if file is not None:
            named = (file.commit_hash, file.env_name)
            mine = (machine, *(whose or named))
            if self._strays(root, file_name, (str(file.params.get("machine")), *named), mine):
                return ResultPart(whose, data or b"")
            whose = named
        return ResultPart(whose, data or b"", file)

    def _results(self, root: Path, name: str) -> ResultsFile | None:
        """asv's file. A malformed row of a source is reported; in results_dir it would be lost, so it is an error."""
        if root == self._root:
            return for_merging(root / name, parse_whole_results)
        file = self.read(root, name, parse_results)
        if file is not None and file.malformed:
            why = f"{malformed(file.malformed)}; the others are merged"
            self.skipped[SkippedFile(root / name, why, RESTORE)] = None
        return file

    def lines(self, root: Path, name: str, part: ResultPart) -> Lines:
        lines = lines_of(part.data)
        if lines.unreadable:
            why = f"{lines.unreadable} of its lines cannot be read: a writer was killed, or a merge went wrong"
            path = root / f"{name}{sidecar.ENDING}"
            self.skipped[SkippedFile(path, why, "none is needed: the other rounds are used")] = None
        return lines

    def _strays(self, root: Path, name: str, says: tuple[str, ...], stands: tuple[str, ...]) -> bool:
        """Whether a source's file belongs to another machine than its folder, or to another commit than the sidecar beside it.
        Raises StoreError for one in results_dir, which would be overwritten."""
        if says == stands:
            return False
        path = root / name
        if root == self._root:
            refuse_other(path, says, stands)
        other = says[0] != stands[0]
        fix = quoted("mv", path.parent, path.parent.parent / says[0]) if other else "remove the one that is wrong there"
        why = f"it is of {', '.join(says)}, but is among results of {', '.join(stands)}"
        self.skipped[SkippedFile(path, why, fix)] = None
        return True

    def facts(self, root: Path, machine: str) -> Mapping[str, Any]:
        facts = self.read(
            root, f"{self.folder(root, machine)}/{MACHINE_FILE}", lambda data: parse_json(data, MACHINE_VERSION)
        )
        return facts or {}
