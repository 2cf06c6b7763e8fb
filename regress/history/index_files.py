"""The files of the index: SQLite, made beside and renamed, or added to.

    sources (about)              some sources, each by the state that its files were read in, as MessagePack
    rows (name, sources, data)   of one name in some sources: asv's row of each, see rows.py
    rounds (name, sources, data) of one benchmark in some sources: our rounds of each, as MessagePack

What is read of a long history at once is shared between two processes, which write a file each.
"""

from __future__ import annotations

import gc
import os
import secrets
import sqlite3
from array import array
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path
from typing import Generic, TypeVar

import msgspec

from regress.history.rows import packed
from regress.history.sources import Content, Source, State, read_source
from regress.sharing import beside, processors

BATCH_BYTES = 8 * 2**20
"""Files that are read before their contents are written: few enough to reuse memory instead of allocating more."""
SHARED_BYTES = 16 * 2**20
"""Of files from which on another process helps; each counts as FILE_BYTES more than it has."""
FILE_BYTES = 6_000
"""What could be read in the time that it takes to open a file."""

TABLES = """
CREATE TABLE sources (about BLOB NOT NULL);
CREATE TABLE rows (name TEXT NOT NULL, sources BLOB NOT NULL, data BLOB NOT NULL);
CREATE TABLE rounds (name TEXT NOT NULL, sources BLOB NOT NULL, data BLOB NOT NULL);
CREATE TABLE names (name TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE INDEX rows_of ON rows (name, sources);
CREATE INDEX rounds_of ON rounds (name, sources);
"""
NEW = "PRAGMA page_size = 32768; PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;"
"""Nothing has to survive a crash while a file has no final name yet."""

T = TypeVar("T")

Progress = Callable[[int, int], None]
"""Called with the bytes read so far, and the total."""


def make(paths: Sequence[Path], states: Mapping[int, State], facts: Collection[str], progress: Progress) -> None:
    """Make the files from these sources: the first one, and for a long history the second. Raises OSError, sqlite3.Error."""
    paths[0].parent.mkdir(parents=True, exist_ok=True)
    mine, others = _shared_out(states)
    total, own = (sum(state.bytes for state in part.values()) or 1 for part in (states, mine))
    # Not by this process's number: another container that shares the cache may have the same.
    temporaries = [path.with_suffix(f".{secrets.token_hex(4)}.tmp") for path in paths]

    def make_others() -> None:
        _make_one(paths[1], temporaries[1], others, facts, no_progress)

    try:
        with beside(make_others) if others else nullcontext():
            _make_one(paths[0], temporaries[0], mine, facts, lambda done, of: progress(done * total // own, total))
    finally:
        for temporary in temporaries:  # of a process that was killed too
            temporary.unlink(missing_ok=True)


def no_progress(done: int, total: int) -> None:
    """What the other process has done is taken to be as much as this one."""


def in_memory(
    states: Mapping[int, State], facts: Collection[str], progress: Progress
) -> tuple[sqlite3.Connection, dict[int, Source]]:
    """A separate database for data that fits nowhere else."""
    database = sqlite3.connect(":memory:", check_same_thread=False)
    database.executescript(TABLES)
    return database, read_into(database, states, facts, progress)


def read_into(
    database: sqlite3.Connection, states: Mapping[int, State], facts: Collection[str], progress: Progress
) -> dict[int, Source]:
    """Read the sources into the database, and give what they are about."""
    total = sum(state.bytes for state in states.values())
    done = written = 0
    batch: dict[int, Content] = {}
    sources: dict[int, Source] = {}
    with without_gc():
        for key, state in states.items():
            batch[key] = content = read_source(state, facts)
            sources[key] = content.source
            done += state.bytes
            progress(done, total)
            if done - written >= BATCH_BYTES:
                _write(database, batch)
                written, batch = done, {}
        _write(database, batch)
    return sources


def _make_one(
    path: Path, temporary: Path, states: Mapping[int, State], facts: Collection[str], progress: Progress
) -> None:
    with closing(sqlite3.connect(temporary, isolation_level=None)) as database:
        database.executescript(NEW + TABLES)
        read_into(database, states, facts, progress)
    os.replace(temporary, path)


def _write(database: sqlite3.Connection, batch: Mapping[int, Content]) -> None:
    rows = _by_name({key: content.rows for key, content in batch.items()})
    rounds = _by_name({key: content.rounds for key, content in batch.items()})
    _insert(database, "rows", rows, packed)
    _insert(database, "rounds", rounds, msgspec.msgpack.encode)
    database.executemany("INSERT OR IGNORE INTO names VALUES (?)", ((name,) for name in rows.keys() | rounds.keys()))
    about = {key: content.source for key, content in batch.items() if content.lasting}
    database.execute("INSERT INTO sources VALUES (?)", (msgspec.msgpack.encode(about),))


def _insert(
    database: sqlite3.Connection, table: str, parts: Mapping[str, _Column[T]], encode: Callable[[list[T]], bytes]
) -> None:
    values = ((name, parts[name].sources.tobytes(), encode(parts[name].items)) for name in sorted(parts))
    database.executemany(f"INSERT INTO {table} VALUES (?, ?, ?)", values)


class _Column(Generic[T]):
    """What sources hold of one name: an item a source."""

    __slots__ = ("items", "sources")

    def __init__(self) -> None:
        self.sources = array("q")
        self.items: list[T] = []


def _by_name(held: Mapping[int, Mapping[str, T]]) -> dict[str, _Column[T]]:
    """What sources hold, by name. Most have the same names in one order: these are turned over together."""
    alike: dict[tuple[str, ...], list[int]] = {}
    for key, items in held.items():
        alike.setdefault(tuple(items), []).append(key)
    columns = defaultdict[str, _Column[T]](_Column)
    for names, keys in alike.items():
        sources = array("q", keys)
        for name, column in zip(names, zip(*(held[key].values() for key in keys), strict=True), strict=True):
            columns[name].sources += sources
            columns[name].items += column
    return columns


def _shared_out(states: Mapping[int, State]) -> tuple[dict[int, State], dict[int, State]]:
    """The share of this process and of another one; nothing if that would not pay."""
    total = sum(_size(state) for state in states.values())
    if total < SHARED_BYTES or processors() < 2:
        return dict(states), {}
    mine: dict[int, State] = {}
    others: dict[int, State] = {}
    done = 0
    for key, state in states.items():
        (mine if 2 * done < total else others)[key] = state
        done += _size(state)
    return mine, others


def _size(state: State) -> int:
    """In bytes that take as long to read."""
    return state.bytes + FILE_BYTES


@contextmanager
def without_gc() -> Iterator[None]:
    """Without the cycle collector: a history's objects have no cycles, and looking for them takes half of the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
