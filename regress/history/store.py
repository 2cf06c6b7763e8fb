"""The store of results: append a round, finish a side, load a commit, list what there is.

    ROOT/benchmarks.json                              asv's list of benchmarks, ours among them
    ROOT/further_metrics.jsonl                        which further names we wrote, to restore them after `asv run`
    ROOT/MACHINE/machine.json
    ROOT/MACHINE/COMMIT8-ENV.json                     asv's file: one value a name
    ROOT/MACHINE/COMMIT8-ENV.rounds.jsonl             the sidecar: one line a round
    ROOT/MACHINE/COMMIT8-ENV.explained.jsonl          what differences come from, see explanations.py
    JOURNAL/MACHINE/COMMIT8-ENV.rounds.raw.jsonl.gz   all samples

ROOT is results_dir, or a folder of the same layout in the cache. Rounds of a working tree with changes are no commit's
results: they go to a sidecar `COMMIT8+changes-ENV` that is never loaded, and asv's file gets nothing of them. Nor are those of
a commit that is measured again as an anchor: they go to `COMMIT8@BESIDE8-ENV`, and `anchors` gives them.
"""

from __future__ import annotations

import gzip
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from regress.errors import StoreError
from regress.history import disk, loading, names, sidecar
from regress.history.cells import newest_alike, rows_of
from regress.history.loading import ANCHOR, BENCHMARKS_FILE, MACHINE_FILE
from regress.history.reading import TableReader
from regress.history.recorded import CommitResults, Loaded, Recorded, SkippedFile, put_together
from regress.history.results_file import (
    BENCHMARKS_VERSION,
    MACHINE_VERSION,
    ResultsFile,
    Row,
    file_stem,
    parse_json,
    parse_whole_results,
    serialize_json,
    serialize_results,
)
from regress.history.sidecar import Header, Sidecar
from regress.model import Benchmark, Machine, Round, Side, writable
from regress.text.wording import quoted

LOCK_TIMEOUT_S = 30.0

T = TypeVar("T")


def new_run() -> str:
    """A word that no other run of regress has; of two the later one sorts last."""
    return f"{time.time_ns():x}-{os.getpid():x}"


@dataclass(frozen=True)
class Remeasured:
    """An anchor: a commit measured again beside the commit with that full hash."""

    recorded: Recorded
    beside: str


class Store:
    """Results below `root`; with `journal_root`, all samples below that. Rounds that name no run count as a separate one.

    Writing is locked, so several processes of one node may write at once. Every method that writes raises StoreError.
    """

    def __init__(self, root: Path, journal_root: Path | None = None, lock_timeout_s: float = LOCK_TIMEOUT_S) -> None:
        self.root, self.journal_root = root, journal_root
        self._lock_timeout_s = lock_timeout_s
        self._run = new_run()
        self._seen: dict[Path, tuple[int, frozenset[str]]] = {}

    # -- writing ---------------------------------------------------------------------------------------------------------

    def append(
        self,
        side: Side,
        machine: Machine,
        environment: str,
        round: Round,
        process_facts: Mapping[str, Any] | None = None,
        benchmark: Benchmark | None = None,
    ) -> None:
        """Write a round to disk at once. `process_facts` are shared by all rounds of its process.

        With `benchmark` its version is recorded too; without, `finish` says which benchmarks this run's rounds belong to.
        """
        header = _header(side, machine, environment)
        path = _path(self.root, header, sidecar.ENDING)
        with disk.locked(self.root, self._lock_timeout_s):
            ids = self._ids(path, header)
            round = replace(round, run=round.run or self._run)
            data, new = sidecar.round_lines(header, round, process_facts or {}, benchmark, ids)
            self._seen[path] = disk.append(path, data), ids | new
        if self.journal_root is not None:
            raw = gzip.compress(sidecar.raw_line(round))
            with disk.locked(self.journal_root, self._lock_timeout_s):
                disk.append(_path(self.journal_root, header, sidecar.RAW_ENDING), raw, lines=False)

    def finish(
        self,
        side: Side,
        machine: Machine,
        environment: str,
        *,
        python: str,
        benchmarks: Mapping[str, Benchmark],
        requirements: Mapping[str, str] | None = None,
        env_vars: Mapping[str, str] | None = None,
        durations: Mapping[str, float] | None = None,
    ) -> Path | None:
        """Write asv's files from all rounds of the sidecar, merged with their contents; returns the file of results.

        `benchmarks` are those of the suite by name, `requirements` and `env_vars` the environment's, `durations` seconds by
        asv's names (`<build>`). Returns None if there is nothing to write: the side has changes or is an anchor, or there is
        no result at all. A file that cannot be merged is never overwritten: the rounds stay in the sidecar, and the error
        names the file.
        """
        header = _header(side, machine, environment)
        if side.dirty:
            return None
        with disk.locked(self.root, self._lock_timeout_s):
            kept = self._attributed(header, benchmarks)
            if not header.is_result:
                return None
            path = _path(self.root, header, ".json")
            before = self._results(path, header)
            rows, further = rows_of_sidecar(kept, before.rows)
            facts = {**machine.facts, "machine": machine.name, "python": python, **(requirements or {})}
            after = replace(
                before,
                date=int(header.date * 1000),
                params={**before.params, **facts},
                python=python,
                requirements=before.requirements if requirements is None else dict(requirements),
                env_vars=before.env_vars if env_vars is None else dict(env_vars),
                rows={**before.rows, **rows},
                durations={**before.durations, **(durations or {})},
            )
            self._write_benchmarks(benchmarks, kept, further)
            self._write_machine(machine)
            if not after.rows:
                return None
            disk.replace_file(path, serialize_results(after))
            return path

    def known(self, side: Side, machine: Machine, environment: str) -> set[tuple[str, str, tuple[str, ...]]]:
        """Of each round of the side that is on disk the run, the benchmark and its parameters."""
        header = _header(side, machine, environment)
        kept = self._sidecar(_path(self.root, header, sidecar.ENDING), header).kept
        return {(record.round.run, record.round.name, tuple(record.round.params)) for record in kept}

    def is_unfinished(self, side: Side, machine: Machine, environment: str) -> bool:
        """Whether rounds of the side are on disk, and who appended them was killed before `finish` was done."""
        header = _header(side, machine, environment)
        path, common = _path(self.root, header, ".json"), (self.root / BENCHMARKS_FILE, self.root / names.FURTHER_FILE)
        if not _path(self.root, header, sidecar.ENDING).exists():
            return False
        return not path.exists() or any(map(disk.is_unfinished, (path, path.with_name(MACHINE_FILE), *common)))

    def _ids(self, path: Path, header: Header) -> frozenset[str]:
        """The ids of lines that the sidecar has; read again where another process has written to it."""
        with disk.explained(path):
            size = path.stat().st_size if path.exists() else 0
        seen, ids = self._seen.get(path, (0, frozenset()))
        return ids if size == seen else self._sidecar(path, header).ids

    def _sidecar(self, path: Path, header: Header) -> Sidecar:
        content = for_merging(path, sidecar.parse) or Sidecar()
        if content.header is not None:
            refuse_other(path, (content.header.commit, content.header.environment), (header.commit, header.environment))
        return content

    def _attributed(self, header: Header, benchmarks: Mapping[str, Benchmark]) -> Sidecar:
        """The sidecar, after adding which benchmarks its rounds belong to where that was missing."""
        path = _path(self.root, header, sidecar.ENDING)
        content = self._sidecar(path, header)
        unknown = [record for record in content.kept if not record.version and record.round.name in benchmarks]
        if not unknown:
            return content
        runs = dict.fromkeys(record.round.run for record in unknown)
        suite = [benchmarks[name] for name in dict.fromkeys(record.round.name for record in unknown)]
        data, new = sidecar.suite_lines(header, list(runs), suite, content.ids)
        self._seen[path] = disk.append(path, data), content.ids | new
        return self._sidecar(path, header)

    def _results(self, path: Path, header: Header) -> ResultsFile:
        results = for_merging(path, parse_whole_results)
        if results is None:
            return ResultsFile(header.commit, header.environment, 0, {}, "")
        ours = (header.commit, header.environment, header.machine)
        refuse_other(path, (results.commit_hash, results.env_name, results.params.get("machine")), ours)
        return results

    def _write_benchmarks(self, benchmarks: Mapping[str, Benchmark], kept: Sidecar, further: names.Further) -> None:
        path, further_path = self.root / BENCHMARKS_FILE, self.root / names.FURTHER_FILE
        content = for_merging(path, lambda data: parse_json(data, BENCHMARKS_VERSION)) or {}
        entries = {name: entry for name, entry in content.items() if isinstance(entry, dict)}
        for record in reversed(kept.kept):
            if record.benchmark is not None:
                entries.setdefault(record.round.name, names.entry_of(record.benchmark))
        entries.update((name, names.entry_of(benchmark)) for name, benchmark in benchmarks.items())
        known = for_merging(further_path, names.parse_further) or {}
        for name, metrics in further.items():
            known[name] = {**known.get(name, {}), **metrics}
        disk.replace_file(path, serialize_json(names.with_further(entries, known), BENCHMARKS_VERSION))
        if known:
            disk.replace_file(further_path, names.serialize_further(known))

    def _write_machine(self, machine: Machine) -> None:
        path = folder_of(self.root, machine.name) / MACHINE_FILE
        before = for_merging(path, lambda data: parse_json(data, MACHINE_VERSION)) or {}
        disk.replace_file(path, serialize_json({**before, **machine.facts, "machine": machine.name}, MACHINE_VERSION))

    # -- reading ---------------------------------------------------------------------------------------------------------

    def machine_facts(self, name: str) -> Mapping[str, Any]:
        """The machine.json of that machine; empty without one."""
        path = folder_of(self.root, name) / MACHINE_FILE
        return for_merging(path, lambda data: parse_json(data, MACHINE_VERSION)) or {}

    def load(self, revision_sha: str, machine_name: str | None = None, environment: str | None = None) -> Loaded:
        """The results of a commit, one Recorded for each machine and environment; all of them if none is named.

        Rounds come from the sidecar; results that only asv's file has (of `asv run`) are one round a case.
        """
        return loading.load(self.root, revision_sha, machine_name, environment)

    def anchors(self, machine_name: str | None = None) -> tuple[Remeasured, ...]:
        """Commits measured again beside others, the oldest file name first. Unreadable files are left out."""
        anchors = []
        for machine, path in loading.anchors_in(self.root, machine_name):
            side = loading.read_sidecar(path, machine, [])
            if side.header is not None and side.header.beside:
                empty = Recorded(side.header.commit, Machine(machine), side.header.environment, (), {}, path)
                anchors.append(Remeasured(put_together(empty, side.kept, {}, TableReader({})), side.header.beside))
        return tuple(anchors)

    def commits(self, machine_name: str | None = None) -> tuple[CommitResults, ...]:
        """The commits that have results, the oldest first."""
        return loading.commits(self.root, machine_name)


def rows_of_sidecar(kept: Sidecar, before: Mapping[str, Row]) -> tuple[dict[str, Row], names.Further]:
    """The rows of all benchmarks of the sidecar, and the further metrics among them with their units."""
    rows: dict[str, Row] = {}
    further: names.Further = {}
    visited: dict[str, set[tuple[str, ...]]] = {}
    for record in kept.kept:
        visited.setdefault(record.round.name, set()).add(tuple(record.round.params))
    for name, group in newest_alike(kept.kept)[0].items():
        benchmark, rounds = group[-1].benchmark, [record.round for record in group]
        if benchmark is None:
            continue
        new = rows_of(benchmark, rounds, before, visited[name])
        rows.update(new)
        units = {metric: value.unit for round in rounds for metric, value in round.values.items()}
        metrics = {metric: unit for metric, unit in units.items() if names.further_name(name, metric) in new}
        if metrics:
            further[name] = metrics
    return rows, further


def _header(side: Side, machine: Machine, environment: str) -> Header:
    return Header(side.commit.sha, side.commit.date, machine.name, environment, side.dirty, side.beside)


def _path(root: Path, header: Header, ending: str) -> Path:
    stem = file_stem(header.commit, header.environment)
    commit, _, rest = stem.partition("-")
    if header.dirty:
        stem = f"{commit}+changes-{rest}"
    elif header.beside:
        stem = f"{commit}{ANCHOR}{header.beside[:8]}-{rest}"
    return folder_of(root, header.machine) / (stem + ending)


def folder_of(root: Path, machine_name: str) -> Path:
    """The folder of that machine. Raises StoreError if the name cannot be a folder's."""
    foreign = writable(machine_name) != machine_name or set(machine_name) & set("/\\\0\n")
    if not machine_name or machine_name.startswith(".") or foreign:
        raise StoreError(
            f"{machine_name!r} cannot name a machine",
            why="the name is that of a folder in results_dir",
            fix='set "machine" under "regress" in asv.conf.json to a name of letters, digits, dashes and dots',
        )
    return root / machine_name


def for_merging(path: Path, parse: Callable[[bytes], T]) -> T | None:
    """The file's content, None if it does not exist. Raises StoreError if it is unreadable: it is not overwritten."""
    skipped: list[SkippedFile] = []
    content = loading.read(path, parse, skipped)
    if skipped:
        raise StoreError(f"cannot add results to {path}", why=skipped[0].why, fix=skipped[0].fix)
    return content


def refuse_other(path: Path, held: tuple[Any, ...], wanted: tuple[Any, ...]) -> None:
    """Two commits or environments may have one file name; their results are not mixed."""
    if held != wanted:
        raise StoreError(
            f"cannot add results of {', '.join(map(str, wanted))} to {path}",
            why=f"it holds results of {', '.join(map(str, held))}",
            fix=f"move it away: {quoted('mv', path, f'{path}.other')}",
        )
