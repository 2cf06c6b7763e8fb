"""Merges results of other folders into results_dir: the shards of one run, or the histories of several machines.

Results of one commit on one machine in one environment become one result, see uniting.py; all others are kept apart. Nothing
in results_dir is lost.

Before anything is written, the merge checks that everything belongs together. Then it proceeds file by file, each written
completely or not at all, under the lock of results_dir. After a kill, or a refusal because a file changed in between, the same
command finishes the rest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from regress.errors import StoreError
from regress.history import disk, loading, names, sidecar
from regress.history.explanations import files_of_explanations, united_explanations
from regress.history.loading import BENCHMARKS_FILE, MACHINE_FILE
from regress.history.parts import Parts
from regress.history.recorded import SkippedFile
from regress.history.results_file import (
    BENCHMARKS_VERSION,
    MACHINE_VERSION,
    ResultsFile,
    parse_json,
    parse_results,
    serialize_json,
    serialize_results,
)
from regress.history.store import LOCK_TIMEOUT_S, rows_of_sidecar
from regress.history.uniting import (
    Entries,
    united_entries,
    united_facts,
    united_further,
    united_lines,
    united_results,
)
from regress.model import Merged
from regress.text.wording import quoted

SAME_MACHINE = ("arch", "cpu", "num_cpu")
"""Facts of machine.json that two machines of one name have in common, or they are two."""


@dataclass
class _Folder:
    """One of the folders that are merged, and what it brought."""

    root: Path
    results: set[tuple[str, str]] = field(default_factory=set)
    """Machine and name of file, of what can be used."""
    commits: set[str] = field(default_factory=set)
    added: int = 0
    known: int = 0


class Merging:
    """A merge of `sources` into `root`: `take` each of `results`, then `finish`. Raises StoreError if a folder holds no
    results, or if one name means two commits, environments or machines."""

    def __init__(self, root: Path, sources: Sequence[Path], lock_timeout_s: float = LOCK_TIMEOUT_S) -> None:
        self._root, self._lock_timeout_s = root, lock_timeout_s
        self._folders = [_Folder(source) for source in dict.fromkeys(sources)]
        self._parts = Parts(root)
        for folder in self._folders:
            _require_results(folder.root, root)
        whose: dict[tuple[str, str], tuple[tuple[str, ...], Path]] = {}
        for folder in self._folders:
            for result in loading.results_in(folder.root):
                self._look_over(folder, result, whose)
        for machine in self._machines:
            self._refuse_other_machine(machine)

    @property
    def results(self) -> list[tuple[str, str]]:
        """Machine and name of file, less its ending, of every result that is merged."""
        return sorted({result for folder in self._folders for result in folder.results})

    @property
    def skipped(self) -> tuple[SkippedFile, ...]:
        """What of the sources cannot be used."""
        return tuple(self._parts.skipped)

    @property
    def _machines(self) -> list[str]:
        return sorted({machine for machine, _ in self.results})

    @property
    def _roots(self) -> list[Path]:
        return [self._root, *(folder.root for folder in self._folders)]

    # -- before anything is written --------------------------------------------------------------------------------------

    def _look_over(
        self, folder: _Folder, result: tuple[str, str], whose: dict[tuple[str, str], tuple[tuple[str, ...], Path]]
    ) -> None:
        """Take note of a result, and refuse one that would be mixed with another commit's or environment's."""
        part = self._parts.part(folder.root, *result)
        if part.whose is None:
            return
        here = self._parts.part(self._root, *result).whose
        known, where = whose.setdefault(result, (here, self._root) if here is not None else (part.whose, folder.root))
        if known != part.whose:
            name = "/".join(result)
            raise StoreError(
                f"cannot merge {folder.root}: {name} there and in {where} are not of one commit and environment",
                why=f"it is of {' in '.join(part.whose)}, and here of {' in '.join(known)}",
                fix="rename one of the environments where it is measured, or leave that folder out",
            )
        folder.results.add(result)
        folder.commits.add(part.whose[0])

    def _refuse_other_machine(self, machine: str) -> None:
        """Values of two machines never become one series, whatever they are called."""
        known: dict[str, tuple[Any, Path]] = {}
        for root in self._roots:
            for key, value in self._parts.facts(root, machine).items():
                before, where = known.setdefault(key, (value, root))
                if key in SAME_MACHINE and before != value and before and value:
                    raise StoreError(
                        f"cannot merge {root}: its {machine} is another machine than that of {where}",
                        why=f"{key} is {value!r} there, and {before!r} here",
                        fix=f"measure there under another name than {quoted(machine)} (--machine NAME); "
                        "if it is one machine, make both machine.json agree",
                    )

    # -- one result ------------------------------------------------------------------------------------------------------

    def take(self, machine: str, stem: str) -> None:
        """Merge one result: sidecars by rounds, asv's files by cells; asv's rows are computed again from the rounds."""
        name = f"{machine}/{stem}"
        with disk.locked(self._root, self._lock_timeout_s):
            here = self._parts.part(self._root, machine, stem)
            parts, lines = [here], [self._parts.lines(self._root, name, here)]
            there = here.rounds(lines[0])
            for folder in self._folders:
                if (machine, stem) in folder.results:
                    part = self._parts.part(folder.root, machine, stem)
                    parts.append(part)
                    lines.append(self._parts.lines(folder.root, name, part))
                    rounds = part.rounds(lines[-1])
                    folder.added += len(rounds - there)
                    folder.known += len(rounds & there)
                    there |= rounds
            if not all(here.has_all_of(part) for part in parts[1:]):
                self._write(name, united_lines(lines), [part.file for part in parts if part.file is not None])

    def _write(self, name: str, data: bytes, files: Sequence[ResultsFile]) -> None:
        """The sidecar comes last: once it has all lines, asv's rows have been made from them."""
        if files:
            united = united_results(files)
            rows, _ = rows_of_sidecar(sidecar.parse(data), united.rows)
            content = serialize_results(replace(united, rows={**united.rows, **rows}))
            disk.replace_file(self._root / f"{name}.json", content)
        if data:
            disk.replace_file(self._root / f"{name}{sidecar.ENDING}", data)

    # -- what is there once ----------------------------------------------------------------------------------------------

    def finish(self) -> tuple[Merged, ...]:
        """Merge descriptions of machines and benchmarks, and explanations; returns what each source contributed."""
        with disk.locked(self._root, self._lock_timeout_s):
            self._finish_benchmarks()
            self._finish_explanations()
            for machine in self._machines:
                facts = united_facts([self._parts.facts(root, machine) for root in self._roots])
                if facts:
                    disk.replace_file(self._root / machine / MACHINE_FILE, serialize_json(facts, MACHINE_VERSION))
        return tuple(
            Merged(
                folder=str(folder.root),
                machines=tuple(sorted({machine for machine, _ in folder.results})),
                commits=len(folder.commits),
                added=folder.added,
                known=folder.known,
            )
            for folder in self._folders
        )

    def _finish_benchmarks(self) -> None:
        parts: list[Entries] = []
        further: list[names.Further] = []
        for root in self._roots:
            oldest = BENCHMARKS_VERSION if root == self._root else 1
            parse = partial(parse_json, version=BENCHMARKS_VERSION, oldest=oldest)
            benchmarks = self._parts.read(root, BENCHMARKS_FILE, parse) or {}
            parts.append({name: entry for name, entry in benchmarks.items() if isinstance(entry, dict)})
            further.append(self._parts.read(root, names.FURTHER_FILE, names.parse_further) or {})
        known = united_further(further)
        of_further = {names.further_name(name, metric) for name, metrics in known.items() for metric in metrics}
        own = [{name: entry for name, entry in part.items() if name not in of_further} for part in parts]
        entries = {name: dict(entry) for name, entry in united_entries(own, self._measured).items()}
        if entries:
            content = serialize_json(names.with_further(entries, known), BENCHMARKS_VERSION)
            disk.replace_file(self._root / BENCHMARKS_FILE, content)
        if known:
            disk.replace_file(self._root / names.FURTHER_FILE, names.serialize_further(known))

    def _finish_explanations(self) -> None:
        for machine in self._machines:
            folders = {root: self._parts.folder(root, machine) for root in self._roots}
            files = (path for root, folder in folders.items() for path in files_of_explanations(root / folder))
            for name in sorted({path.name for path in files}):
                parts = [self._parts.read(root, f"{own}/{name}", bytes) or b"" for root, own in folders.items()]
                disk.replace_file(self._root / machine / name, united_explanations(parts))

    def _measured(self) -> Mapping[tuple[str, str], float]:
        """When each version of each benchmark was measured last."""
        times: dict[tuple[str, str], float] = {}
        for machine, stem in loading.results_in(self._root):
            file = loading.read(self._root / machine / f"{stem}.json", parse_results, [])
            for name, row in file.rows.items() if file is not None else ():
                key = name, str(row.get("version"))
                times[key] = max(times.get(key, 0.0), float(row.get("started_at") or 0))
        return times


# -- the folders ---------------------------------------------------------------------------------------------------------


def _require_results(source: Path, root: Path) -> None:
    """Raise StoreError if nothing of `source` can be merged into `root`."""
    if not source.is_dir():
        raise StoreError(f"there is no folder {source}", fix="name the folder that a run had as its results_dir")
    if source.resolve() == root.resolve():
        raise StoreError(
            f"{source} is results_dir itself", why="its results are there already", fix="name other folders"
        )
    if not _has_results(source):
        below = _below(source)
        why = "a folder of results has a folder of each machine, with files COMMIT-ENVIRONMENT.json"
        fix = quoted("regress", "merge", *below) if below else "check whether that run recorded anything"
        raise StoreError(f"there are no results in {source}", why=why, fix=fix)


def _has_results(folder: Path) -> bool:
    return any(True for _ in loading.results_in(folder))


def _below(source: Path) -> list[str]:
    """Folders of results inside `source`, as in an archive of a run."""
    folders = dict.fromkeys(path.parent.parent for path in sorted(source.rglob(MACHINE_FILE)))
    return [str(path) for path in folders if _has_results(path)][:20]
