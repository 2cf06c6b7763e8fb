"""Sources: which files of results there are, and what each holds.

A source is asv's file of a commit on a machine in an environment, with its sidecar. Its state is its name with the sizes and
times of both: as long as that is the same, nothing is read again. The index has its rows of asv's file unparsed, and our rounds
without what a history does not need.
"""

from __future__ import annotations

import dataclasses
import json
import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from regress.files import read_bytes
from regress.history import loading
from regress.history.json_text import NUMBERS, decoded, has_huge_numbers, strict
from regress.history.loading import BENCHMARKS_FILE, MACHINE_FILE
from regress.history.recorded import SkippedFile
from regress.history.results_file import RESTORE, RESULTS_VERSION, Row, axes_of, is_seconds
from regress.history.rows import COLUMNS, Cut, are_usual
from regress.history.sidecar import ENDING, Header, Kept
from regress.model import Benchmark, Round, declared_words
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
    numbered = {}
    folder, name = None, ""
    for state in states:
        own_folder, machine, stem, file, sidecar = state
        if own_folder is not folder:
            folder, name = own_folder, f"{own_folder}\0{machine}"
        (one, then), (other, later) = file or _NOTHING, sidecar or _NOTHING
        text = f"{name}/{stem} {one} {then} {other} {later}".encode("utf-8", "surrogateescape")
        numbered[int.from_bytes(blake2b(text, digest_size=8).digest(), "big") >> 1] = state
    return numbered


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
        stat = entry.stat()
    except OSError:  # a link to nowhere, or gone since: reading it says so
        return 0, 0
    return stat.st_size, stat.st_mtime_ns


# -- what each holds -----------------------------------------------------------------------------------------------------


class Source(msgspec.Struct, array_like=True, frozen=True):
    """The subject of a source. `commit` is empty if nothing of it can be used."""

    commit: str
    date: float
    environment: str
    ending: str
    """Of the file that the results come from: the sidecar, if there is one."""
    skipped: list[tuple[str, str, str]]
    """Name of the file, why, and fix, of what could not be used."""
    was: dict[str, list[str]]
    """Old names that benchmarks declare."""


Texts = Mapping[str, Cut]
"""Rows by name."""


class Rounds(msgspec.Struct, array_like=True):
    """Rounds of a benchmark in a sidecar; `of` is the place of each one's definition among `benchmarks`, -1 where unknown."""

    rounds: list[Round]
    of: list[int]
    benchmarks: list[Benchmark]

    @classmethod
    def packed(cls, kept: Collection[Kept], facts: Collection[str]) -> Rounds:
        """Without what a history does not need: samples, flags, details of failures, and facts other than `facts`."""
        benchmarks: list[Benchmark] = []
        of = []
        for record in kept:
            if record.benchmark is not None and record.benchmark not in benchmarks:
                benchmarks.append(record.benchmark)
            of.append(benchmarks.index(record.benchmark) if record.benchmark is not None else -1)
        rounds = [_bare(record.round, facts) for record in kept]
        return cls(rounds, of, benchmarks)

    def kept(self) -> list[Kept]:
        return [
            Kept(round, self.benchmarks[place] if place >= 0 else None)
            for round, place in zip(self.rounds, self.of, strict=True)
        ]


class Content(NamedTuple):
    """The contents of a source: rows by name, unparsed, and rounds by benchmark. `lasting` is False if another look may find
    more, such as for a file without read permission."""

    source: Source
    rows: Texts
    rounds: dict[str, Rounds]
    lasting: bool = True


# -- what each says ------------------------------------------------------------------------------------------------------


class _Params(msgspec.Struct):
    machine: Any = None


class _File(msgspec.Struct):
    """asv's file as asv itself writes it: what else there is, the slow way reads."""

    version: int
    commit_hash: str
    env_name: str
    date: float | None
    params: _Params
    python: msgspec.Raw
    requirements: msgspec.Raw
    result_columns: list[str]
    results: dict[str, Cut]


_FILE = msgspec.json.Decoder(_File)
_HALF_A_CHARACTER = re.compile(rb"\\u[dD][89a-fA-F]")


def read_source(state: State, facts: Collection[str]) -> Content:
    """Read the source. `facts` are the names of the facts of rounds to keep."""
    skipped: list[SkippedFile] = []
    of_asv = _asv_file(state, skipped) if state.file is not None else None
    if state.sidecar is not None:
        side = loading.read_sidecar(state.folder / (state.stem + ENDING), state.machine, skipped)
        if side.header is not None and side.kept:
            return _with_sidecar(state, side.header, side.kept, of_asv, skipped, facts)
    if of_asv is None:
        return Content(Source("", 0.0, "", "", _told(skipped), {}), {}, {}, _lasting(skipped))
    commit, date, environment, rows = of_asv
    return Content(Source(commit, date, environment, ".json", _told(skipped), {}), rows, {})


def _with_sidecar(
    state: State,
    header: Header,
    kept: Collection[Kept],
    of_asv: tuple[str, float, str, Texts] | None,
    skipped: list[SkippedFile],
    facts: Collection[str],
) -> Content:
    rows: Texts = {} if of_asv is None else of_asv[3]
    if of_asv is not None and of_asv[0] != header.commit:
        skipped.append(loading.of_another_commit(state.folder / f"{state.stem}.json", of_asv[0], header.commit))
        rows = {}
    rounds: dict[str, list[Kept]] = {}
    for record in kept:
        rounds.setdefault(record.round.name, []).append(record)
    defined = {record.benchmark.name: record.benchmark for record in kept if record.benchmark is not None}
    was = {name: list(words) for name, benchmark in defined.items() if (words := declared_words(benchmark, "was"))}
    about = Source(header.commit, header.date, header.environment, ENDING, _told(skipped), was)
    packed = {name: Rounds.packed(records, facts) for name, records in rounds.items()}
    return Content(about, rows, packed, _lasting(skipped))


def _told(skipped: Collection[SkippedFile]) -> list[tuple[str, str, str]]:
    return [(file.path.name, file.why, file.fix) for file in skipped]


def _lasting(skipped: Collection[SkippedFile]) -> bool:
    return not any(file.fix.startswith(("chmod", "ls")) for file in skipped)


def _asv_file(state: State, skipped: list[SkippedFile]) -> tuple[str, float, str, Texts] | None:
    """Commit, its date, environment and rows of asv's file; None if it cannot be used."""
    try:
        data = read_bytes(state.folder / f"{state.stem}.json")
        file = decoded(data, _FILE.decode)
    except (OSError, ValueError, msgspec.DecodeError, RecursionError):  # the slow way says what is wrong
        return _asv_file_slowly(state, skipped)
    usual = file.version == RESULTS_VERSION and tuple(file.result_columns[: len(COLUMNS)]) == COLUMNS
    usual = usual and not set(COLUMNS).intersection(file.result_columns[len(COLUMNS) :])  # the last of a name counts
    usual = usual and NUMBERS.keys().isdisjoint((file.commit_hash, file.env_name, *file.result_columns))
    whole = are_usual(file.results.values()) and _can_be_read(data) and is_seconds((file.date or 0) / 1000)
    if not usual or not whole or not file.commit_hash or file.params.machine != state.machine:
        return _asv_file_slowly(state, skipped)
    return file.commit_hash, (file.date or 0) / 1000, file.env_name, file.results


def _can_be_read(data: bytes) -> bool:
    """Whether the unparsed part of the text can be parsed later: its numbers and characters are acceptable everywhere."""
    if b"\\" in data and _HALF_A_CHARACTER.search(data):
        return False
    try:
        return bool(data.isascii() or data.decode()) and not has_huge_numbers(data)
    except UnicodeDecodeError:
        return False


def _asv_file_slowly(state: State, skipped: list[SkippedFile]) -> tuple[str, float, str, Texts] | None:
    """Files that asv does not write today: of the first format, with other columns, malformed in parts, or broken."""
    path = state.folder / f"{state.stem}.json"
    file = loading.read_results(path, state.machine, skipped)
    if file is None:
        return None
    try:
        rows = {name: _cut(row) for name, row in file.rows.items()}
    except (ValueError, msgspec.DecodeError) as error:
        skipped.append(SkippedFile(path, f"its text cannot be kept: {error}", RESTORE))
        return None
    return file.commit_hash, (file.date or 0) / 1000, file.env_name, rows


def _cut(row: Row) -> Cut:
    result, _, version, started_at, duration, *ends = map(row.get, COLUMNS)
    return Cut(_text(result), _text(axes_of(row)), version, started_at, duration, *map(_text, ends))


def _text(value: Any) -> msgspec.Raw:
    text = strict(json.dumps(value).encode())
    msgspec.json.decode(text)  # what cannot be read again is not kept
    return msgspec.Raw(text)


def _bare(round: Round, facts: Collection[str]) -> Round:
    return dataclasses.replace(
        round,
        facts={name: round.facts[name] for name in facts if name in round.facts},
        flags=[],
        failure=dataclasses.replace(round.failure, detail="") if round.failure is not None else None,
    )
