"""The SQLite export of Nsight Systems, read into a Timeline.

The schema is documented with the tool (Exported data, SQLite schema reference), and grows from version to version: tables are
made only when there is something to put into them, and columns are looked up. Times are nanoseconds, names are numbers in
StringIds, a copy's kind and the kinds of its memories are CUPTI's numbers.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from regress.errors import ProfileError
from regress.files import open_file
from regress.text.wording import quoted
from regress.traces.timeline import (
    ApiCall,
    Copy,
    CopyKind,
    E,
    HostEvent,
    Launch,
    MarkedRange,
    Sync,
    TimedEvent,
    Timeline,
    is_sync,
    plain_api_name,
)

NANO = 1e-9
RECORD = "nsys profile --trace=cuda,nvtx --cuda-graph-trace=node -o FILE PROGRAM"
KERNELS, COPIES, SETS = ("CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_MEMCPY", "CUPTI_ACTIVITY_KIND_MEMSET")
CALLS, SYNCS, GRAPHS = (
    "CUPTI_ACTIVITY_KIND_RUNTIME",
    "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
    "CUPTI_ACTIVITY_KIND_GRAPH_TRACE",
)
RANGES, DEVICES, STRINGS, OVERHEADS = "NVTX_EVENTS", "TARGET_INFO_GPU", "StringIds", "PROFILER_OVERHEAD"

_EXPECTED = {
    KERNELS: "kernels",
    COPIES: "copies",
    SETS: "memsets",
    CALLS: "API calls",
    SYNCS: "synchronizations",
    RANGES: "NVTX ranges",
    DEVICES: "devices",
}
_COPY_KINDS: dict[int, tuple[str, CopyKind]] = {
    1: ("HtoD", "host to device"),
    2: ("DtoH", "device to host"),
    8: ("DtoD", "device to device"),
    9: ("HtoH", "host to host"),
    10: ("PtoP", "peer to peer"),
    11: ("HtoD", "host to device"),
    12: ("DtoH", "device to host"),
    13: ("DtoD", "device to device"),
}
"""11 to 13 are the driver's own, of unified memory."""
_MEMORIES = ("Pageable", "Pinned", "Device", "Array", "Managed", "Device Static", "Managed Static", "Unknown")
_HOST_WAITS = {1: "cudaEventSynchronize", 3: "cudaStreamSynchronize", 4: "cudaDeviceSynchronize"}
"""Kinds of synchronization in which the host waits; in kind 2 a stream waits for an event."""
_PROCESS = ~0xFFFFFF
"""A thread's number in the export contains that of its process in the higher bits."""


def read(path: Path) -> Timeline:
    """The timeline of a whole recording, as one call. Raises ProfileError.

    `timeline.between` takes the calls out of it that an NVTX range marks."""
    _refuse_reports(path)
    try:
        with contextlib.closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as database:
            return _Export(database, path).timeline()
    except sqlite3.Error as error:
        raise ProfileError(
            f"{path} cannot be read: {error}", why="the export was not finished, or is damaged", fix=_export(path)
        ) from error
    except (
        IndexError,
        KeyError,
        TypeError,
        ValueError,
        OverflowError,
    ) as error:  # a column that is not there, or holds something else
        raise ProfileError(
            f"{path} cannot be read: {error}", why="its tables are not as they are documented", fix=_export(path)
        ) from error


def _refuse_reports(path: Path) -> None:
    try:
        with open(open_file(path), "rb") as file:
            start = file.read(16)
    except OSError as error:
        raise ProfileError(f"{path} cannot be read: {error.strerror or error}", fix="name an export") from error
    if start == b"SQLite format 3\0":
        return
    raise unreadable(path)


def unreadable(path: Path) -> ProfileError:
    """Why a file that is no SQLite cannot be read, by its name."""
    if path.suffix in (".nsys-rep", ".qdrep"):
        why = "only the tool itself can read those"
        return ProfileError(f"{path} is a report of Nsight Systems", why=why, fix=_export(path))
    if path.suffix == ".qdstrm":
        return ProfileError(
            f"{path} is what Nsight Systems leaves when it cannot finish a report",
            why="the tool that recorded it lacks its importer",
            fix="make a report of it with QdstrmImporter of a full installation, and export that",
        )
    return ProfileError(f"{path} is not an SQLite file", why="it was exported as something else", fix=_export(path))


def _export(path: Path) -> str:
    return quoted(
        "nsys", "export", "--type", "sqlite", "-o", path.with_suffix(".sqlite"), path.with_suffix(".nsys-rep")
    )


class _Export:
    """One open export: rows by the names of their columns, strings, and the origin of time."""

    def __init__(self, database: sqlite3.Connection, path: Path) -> None:
        self._database, self._path = database, path
        database.row_factory = sqlite3.Row
        tables = database.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')")
        self._tables = {str(row[0]) for row in tables}
        if not self._tables & {*_EXPECTED, STRINGS, GRAPHS}:
            raise ProfileError(
                f"{path} is not an export of Nsight Systems",
                why="it has none of its tables",
                fix=f"record with: {RECORD}",
            )
        self._strings = {row["id"]: str(row["value"]) for row in self._rows(STRINGS)}
        self._origin = self._first_start()
        self._processes: dict[int, int] = {}

    def timeline(self) -> Timeline:
        launches = _ordered([*self._launches(), *self._graphs()])
        copies = _ordered([*self._copies(), *self._sets()])
        api_calls = _ordered(list(self._api_calls()))
        waits = [
            Sync(call.name, call.start_s, call.duration_s, call.thread) for call in api_calls if is_sync(call.name)
        ]
        ranges = _ordered(list(self._ranges()))
        everything: list[TimedEvent] = [*launches, *copies, *api_calls, *ranges]
        return Timeline(
            start_s=0.0,
            end_s=max(event.end_s for event in everything),
            launches=tuple(launches),
            copies=tuple(copies),
            syncs=tuple(waits if api_calls else _ordered(list(self._syncs()))),
            api_calls=tuple(api_calls),
            ranges=tuple(ranges),
            overheads=tuple(_ordered(list(self._overheads()))),
            device=self._device({piece.device for piece in (*launches, *copies)}),
            gaps_in_record=tuple(self._missing()),
        )

    def _rows(self, table: str, where: str = "") -> Iterator[sqlite3.Row]:
        return iter(self._database.execute(f'SELECT * FROM "{table}" {where}')) if table in self._tables else iter(())

    def _first_start(self) -> int:
        starts = [
            row[0]
            for table in (KERNELS, COPIES, SETS, CALLS, GRAPHS)
            if table in self._tables
            for row in self._database.execute(f'SELECT min(start) FROM "{table}"')
            if row[0] is not None
        ]
        if not starts:
            raise ProfileError(
                f"{self._path} holds nothing of CUDA", why="it was not recorded", fix=f"record with: {RECORD}"
            )
        marks = [row["start"] for row in self._rows(RANGES, "WHERE start IS NOT NULL") if _get(row, "end") is not None]
        return int(min(starts + marks))

    def _times(self, row: sqlite3.Row) -> tuple[float, float]:
        if row["end"] < row["start"]:
            raise ValueError("something ends before it has begun")
        return (row["start"] - self._origin) * NANO, (row["end"] - row["start"]) * NANO

    def _name(self, row: sqlite3.Row, *columns: str) -> str:
        number = next((value for column in columns if (value := _get(row, column)) is not None), None)
        return self._strings.get(number, "" if number is None else str(number))

    def _correlation(self, row: sqlite3.Row) -> int | None:
        """Numbers are a process's own: with several, each gets a range."""
        number = _get(row, "correlationId")
        if number is None:
            return None
        process = (_get(row, "globalPid") or _get(row, "globalTid") or 0) & _PROCESS
        return int(number) | self._processes.setdefault(process, len(self._processes)) << 32

    def _place(self, row: sqlite3.Row) -> dict[str, Any]:
        return {
            "device": _get(row, "deviceId") or 0,
            "stream": _get(row, "streamId") or 0,
            "correlation": self._correlation(row),
        }

    def _launches(self) -> Iterator[Launch]:
        for row in self._rows(KERNELS):
            yield Launch(
                self._name(row, "demangledName", "name", "shortName"),
                *self._times(row),
                **self._place(row),
                grid=(row["gridX"], row["gridY"], row["gridZ"]),
                block=(row["blockX"], row["blockY"], row["blockZ"]),
                registers=_get(row, "registersPerThread"),
                shared_bytes=(_get(row, "staticSharedMemory") or 0) + (_get(row, "dynamicSharedMemory") or 0),
            )

    def _graphs(self) -> Iterator[Launch]:
        for row in self._rows(GRAPHS):
            yield Launch(f"CUDA graph {_get(row, 'graphId') or ''}".strip(), *self._times(row), **self._place(row))

    def _copies(self) -> Iterator[Copy]:
        for row in self._rows(COPIES):
            letters, kind = _COPY_KINDS.get(row["copyKind"], ("", "other"))
            memories = [_memory(_get(row, "srcKind")), _memory(_get(row, "dstKind"))]
            where = f" ({' -> '.join(memories)})" if all(memories) else ""
            name = f"Memcpy {letters}".strip() + where
            yield Copy(name, *self._times(row), **self._place(row), kind=kind, bytes=row["bytes"])

    def _sets(self) -> Iterator[Copy]:
        for row in self._rows(SETS):
            memory = _memory(_get(row, "memKind")) or "Device"
            yield Copy(f"Memset ({memory})", *self._times(row), **self._place(row), kind="memset", bytes=row["bytes"])

    def _api_calls(self) -> Iterator[ApiCall]:
        for row in self._rows(CALLS):
            name = plain_api_name(self._name(row, "nameId"))
            yield ApiCall(name, *self._times(row), thread=_thread(row), correlation=self._correlation(row))

    def _syncs(self) -> Iterator[Sync]:
        for row in self._rows(SYNCS):
            name = _HOST_WAITS.get(_get(row, "syncType") or 0)
            if name is not None:
                yield Sync(name, *self._times(row))

    def _ranges(self) -> Iterator[MarkedRange]:
        for row in self._rows(RANGES):
            text = _get(row, "text") or self._strings.get(_get(row, "textId"), "")
            if text and row["start"] is not None and _get(row, "end") is not None:
                yield MarkedRange(text, *self._times(row), thread=_thread(row))

    def _overheads(self) -> Iterator[HostEvent]:
        for row in self._rows(OVERHEADS):
            yield HostEvent(self._name(row, "nameId"), *self._times(row), thread=_thread(row))

    def _device(self, used: set[int]) -> str:
        rows = list(self._rows(DEVICES))
        return ", ".join(sorted({str(row["name"]) for row in rows if not used or row["id"] in used}))

    def _missing(self) -> Iterator[str]:
        for table, what in _EXPECTED.items():
            if table not in self._tables:
                yield f"no {what} in it: there is no table {table}"
        if GRAPHS in self._tables:
            yield "CUDA graphs were recorded whole, without their kernels: record with --cuda-graph-trace=node"


def _get(row: sqlite3.Row, column: str) -> Any:
    return row[column] if column in row.keys() else None  # noqa: SIM118 -- a row is no mapping: `in` looks at its values


def _memory(kind: object) -> str:
    return _MEMORIES[kind] if isinstance(kind, int) and 0 <= kind < len(_MEMORIES) else ""


def _thread(row: sqlite3.Row) -> int:
    return (_get(row, "globalTid") or 0) & ~_PROCESS


def _ordered(events: list[E]) -> list[E]:
    return sorted(events, key=lambda event: event.start_s)
