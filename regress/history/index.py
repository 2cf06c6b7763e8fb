"""The index: what was read of results_dir, kept in a cache by benchmark, so a history is read only once.

A changed file is a new source: nothing in the index is ever modified, and what two processes read at once is simply there
twice. The index is optional: an unreadable one is rebuilt, and if it cannot be written, it stays in memory.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
import time
from array import array
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Set
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import msgspec

from regress.history import index_files, rows
from regress.history.index_files import Progress
from regress.history.names import further_version
from regress.history.reading import AsvRow
from regress.history.sources import Rounds, Source, State

FORMAT = 5
WAIT_S = 2.0
"""How long to wait for another process that writes; after that, missing parts stay in memory."""
SETTLED_NS = 2 * 10**9
"""A file that changed less than this ago may change again without its time telling: it is read again the next time."""
LEFT_OVER = 3
"""The index is rebuilt once it knows this many times as many sources as exist."""

T = TypeVar("T")

_BROKEN = (sqlite3.Error, msgspec.MsgspecError, ValueError, TypeError)
"""Exceptions from a damaged index: SQLite returns whatever is stored, of any type."""
_ABOUT = msgspec.msgpack.Decoder(dict[int, Source])
_ROUNDS, _ROUND_TEXTS = msgspec.msgpack.Decoder(list[Rounds]), msgspec.msgpack.Decoder(list[msgspec.Raw])


class Held(NamedTuple):
    """What there is of a benchmark, by source."""

    sources: frozenset[int]
    rows: dict[str, dict[int, AsvRow]]
    """asv's rows of it and of its further metrics, by name."""
    rounds: dict[int, Rounds]


class Index:
    """The contents of the sources of `root`. `facts` are the names of the facts of rounds that are kept."""

    def __init__(
        self,
        folder: Path,
        root: Path,
        states: Mapping[int, State],
        facts: Collection[str],
        progress: Progress | None = None,
    ) -> None:
        self._databases: list[sqlite3.Connection] = []
        self._owner = self._process = os.getpid()
        """Which process has made this, and which one the connections are for."""
        words = f"{FORMAT} {msgspec.__version__} {sorted(facts)} {root.resolve()}"
        stem = f"history-{hashlib.sha256(words.encode(errors='surrogateescape')).hexdigest()[:16]}"
        self._paths = [folder / f"{stem}{ending}" for ending in (".sqlite", "-2.sqlite")]
        self._facts, self._states = facts, states
        self._opened: list[tuple[Path, os.stat_result]] = []
        """Of those that are files: the first ones."""
        self._as_read: list[int] = []
        """Versions of those that are files, before what their sources are was read."""
        self._reader = rows.RowReader()
        self._left_over = False
        """Whether there is something of sources that are no longer there."""
        self.sources: dict[int, Source] = {}
        """By the number of the state that they were read in."""
        self._fill(progress or index_files.no_progress)

    def __del__(self) -> None:
        if os.getpid() == self._process:  # a forked process must leave the other's connections alone
            self._close()

    # -- reading ---------------------------------------------------------------------------------------------------------

    def names(self, sources: Container[int]) -> list[str]:
        """The benchmarks in any of these sources."""
        return self._sure(lambda: self._names(sources))

    def sources_of(self, name: str) -> frozenset[int]:
        """The sources that hold the benchmark; the same object for benchmarks with the same sources, as for most."""
        return self._sure(lambda: self._sources_of(name))

    def held(self, name: str) -> Held:
        """What the sources hold of the benchmark."""
        return self._sure(lambda: self._held(name))

    def texts(self, name: str) -> dict[int, bytes]:
        """For each source, its data for the benchmark, as stored."""
        return self._sure(lambda: self._texts(name))

    def _sure(self, read: Callable[[], T]) -> T:
        """The result of `read`; if the index turns out to be broken, it is rebuilt first."""
        try:
            return read()
        except _BROKEN:
            if os.getpid() != self._owner:
                raise
            self._forget()
            for told in ("_holding", "_proven", "_further"):
                vars(self).pop(told, None)
            self._fill(index_files.no_progress)
            return read()

    def _names(self, sources: Container[int]) -> list[str]:
        """Finding the sources of every name takes long, and is unnecessary if any source will do."""
        names = dict.fromkeys(name for (name,) in self._select("SELECT name FROM names"))
        as_it_was = self._as_read == [_version(database) for database in self._databases[: len(self._as_read)]]
        any_will_do = (
            as_it_was
            and not self._left_over
            and all(key in sources for key, source in self.sources.items() if source.commit)
        )
        answers: dict[frozenset[int], bool] = {}

        def is_held(name: str) -> bool:
            own = self._sources_of(name)
            if own not in answers:
                answers[own] = any(key in sources for key in own)
            return answers[own]

        return [name for name in names if (any_will_do and name.rpartition(".")[0] not in names) or is_held(name)]

    @cached_property
    def _holding(self) -> dict[str, frozenset[int]]:
        """By name, the sources that hold it."""
        parts: dict[str, list[bytes]] = {}
        for table in ("rows", "rounds"):
            for name, sources in self._select(f"SELECT name, sources FROM {table}"):
                parts.setdefault(name, []).append(sources)
        alike: dict[bytes, frozenset[int]] = {}
        holding = {}
        for name, blobs in parts.items():
            keys = b"".join(blobs)
            if keys not in alike:
                # The very numbers that stand in `sources`: those of the array would be new objects.
                alike[keys] = frozenset(filter(set(array("q", keys)).__contains__, self.sources))
            holding[name] = alike[keys]
        return holding

    def _sources_of(self, name: str) -> frozenset[int]:
        every, proven = self._holding.get(name, frozenset()), self._proven.get(name)
        return every - proven if proven else every

    @cached_property
    def _proven(self) -> dict[str, set[int]]:
        """Of names that hold further metrics of a benchmark, in which sources they do."""
        proven: dict[str, set[int]] = {}
        for name in self._holding:
            base, _, metric = name.rpartition(".")
            if base in self._holding:
                versions, others = self._versions(base), self._versions(name)
                proven[name] = {
                    key
                    for key, version in others.items()
                    if key in versions and version == further_version(versions[key], metric)
                }
        return {name: sources for name, sources in proven.items() if sources}

    @cached_property
    def _further(self) -> dict[str, dict[str, set[int]]]:
        """By benchmark, the names of its further metrics, each with the sources in which it is that."""
        further: dict[str, dict[str, set[int]]] = {}
        for name, sources in self._proven.items():
            further.setdefault(name.rpartition(".")[0], {})[name] = sources
        return further

    def _versions(self, name: str) -> dict[int, str]:
        return self._of("rows", name, rows.versions)

    def _held(self, name: str) -> Held:
        holding = self._sources_of(name)
        by_name = {
            entry: _only(self._of("rows", entry, self._reader.rows), sources)
            for entry, sources in {name: holding, **self._further.get(name, {})}.items()
        }
        return Held(holding, by_name, self._of("rounds", name, _ROUNDS.decode))

    def _texts(self, name: str) -> dict[int, bytes]:
        holding = self._sources_of(name)
        texts: dict[int, bytes] = dict(_only(self._of("rows", name, rows.texts), holding))
        others = [self._of("rows", entry, rows.texts) for entry in self._further.get(name, {})]
        for part in (*others, self._of("rounds", name, _ROUND_TEXTS.decode)):
            for key, text in _only(part, holding).items():
                texts[key] = b"\0".join((texts.get(key, b""), text))
        return texts

    def _of(self, table: str, name: str, read: Callable[[bytes], Iterable[T]]) -> dict[int, T]:
        """Each source's data for that name, also for sources that no longer exist."""
        by_source: dict[int, T] = {}
        for sources, data in self._select(f"SELECT sources, data FROM {table} WHERE name = ?", name):
            by_source.update(zip(array("q", sources), read(data), strict=True))
        return by_source

    def _select(self, query: str, *values: str) -> Iterator[tuple[Any, ...]]:
        if os.getpid() != self._process:
            self._reopen()
        for database in self._databases:
            yield from database.execute(query, values)

    def _reopen(self) -> None:
        """In a forked process, which must not use the other's connections to files (sqlite.org/howtocorrupt.html, 2.6); memory
        is its own. Raises ValueError if a file has been replaced."""
        names = [f"{path.absolute().as_uri()}?mode=rw" for path, _ in self._opened]  # what is gone is not made again
        files = [sqlite3.connect(name, uri=True, timeout=WAIT_S, check_same_thread=False) for name in names]
        if not all(os.path.samestat(path.stat(), was) for path, was in self._opened):
            raise ValueError("the index was rebuilt meanwhile")
        self._inherited = self._databases  # not to be closed here
        self._databases = [*files, *self._databases[len(files) :]]
        self._process = os.getpid()

    # -- filling ---------------------------------------------------------------------------------------------------------

    def _fill(self, progress: Progress) -> None:
        self._open()
        if self._databases and not self._missing(self._states):
            return
        settled_ns = time.time_ns() - SETTLED_NS
        lasting = {key: state for key, state in self._states.items() if state.changed_ns < settled_ns}
        if not self._databases and self._missing(lasting):
            with suppress(OSError, sqlite3.Error):
                index_files.make(self._paths, self._missing(lasting), self._facts, progress)
            self._open()
        if self._databases and (missing := self._missing(lasting)):
            with suppress(sqlite3.Error), self._databases[0] as database:
                database.execute("BEGIN IMMEDIATE")
                self.sources.update(index_files.read_into(database, missing, self._facts, progress))
        if left := self._missing(self._states):
            memory, sources = index_files.in_memory(left, self._facts, progress)
            self._databases.append(memory)
            self.sources.update(sources)

    def _missing(self, states: Mapping[int, State]) -> dict[int, State]:
        return {key: state for key, state in states.items() if key not in self.sources}

    def _open(self) -> None:
        """Open the existing index; remove it if it is broken, or mostly about files that have changed."""
        known: dict[int, Source] = {}
        try:
            for path in self._paths:
                try:
                    status = path.stat()  # before it is opened: another process may remove or replace it behind that
                except OSError:
                    continue
                database = sqlite3.connect(path, timeout=WAIT_S, check_same_thread=False)
                self._databases.append(database)
                self._opened.append((path, status))
                self._as_read.append(_version(database))
                for (about,) in database.execute("SELECT about FROM sources"):
                    known.update(_ABOUT.decode(about))
                for table in ("rows", "rounds"):
                    database.execute(f"SELECT name, sources, data FROM {table} LIMIT 1").fetchall()
            self.sources.update({key: known[key] for key in self._states if key in known})
            self._left_over = len(known) > len(self.sources)
            if len(known) <= LEFT_OVER * max(len(self._states), 100):
                return
        except _BROKEN as error:
            if "locked" in str(error):
                self._close()
                return
        self._forget()

    def _forget(self) -> None:
        self._close()
        for path in self._paths:
            with suppress(OSError):
                path.unlink()

    def _close(self) -> None:
        for database in self._databases:
            database.close()
        self.sources, self._databases, self._opened, self._as_read, self._left_over = {}, [], [], [], False


def _only(by_source: dict[int, T], sources: Set[int]) -> dict[int, T]:
    """The part that belongs to these sources."""
    return (
        by_source if by_source.keys() <= sources else {key: value for key, value in by_source.items() if key in sources}
    )


def _version(database: sqlite3.Connection) -> int:
    """A number that is another one once somebody else has written into it."""
    (version,) = database.execute("PRAGMA data_version").fetchone()
    return int(version)
