"""Rows of asv's files as the index keeps them: those of one name in several sources."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import lru_cache, partial
from typing import Any, TypeVar

import msgspec

from regress.history.json_text import NUMBERS
from regress.history.reading import AsvRow, Axes
from regress.history.results_file import is_seconds, too_many

COLUMNS = ("result", "params", "version", "started_at", "duration", "stats_ci_99_a", "stats_ci_99_b")
"""What a history needs, in the order in which asv writes it."""
NULL = msgspec.Raw(b"null")

T = TypeVar("T")


class Cut(msgspec.Struct, array_like=True, omit_defaults=True, gc=False):
    """The columns of a row that a history needs; long ones stay unparsed."""

    result: msgspec.Raw = NULL
    params: msgspec.Raw = NULL
    version: str | None = None
    started_at: float | None = None
    duration: float | None = None
    ci_99_a: msgspec.Raw = NULL
    ci_99_b: msgspec.Raw = NULL


class _Row(msgspec.Struct, array_like=True, gc=False):
    """The same row, parsed, except for parameters, which many rows share."""

    result: Any = None
    params: msgspec.Raw = NULL
    version: str | None = None
    started_at: float | None = None
    duration: float | None = None
    ci_99_a: Any = None
    ci_99_b: Any = None


class _Version(msgspec.Struct, array_like=True, gc=False):
    """Of the same row the version, read."""

    result: msgspec.Raw = NULL
    params: msgspec.Raw = NULL
    version: str | None = None


_ROWS = msgspec.json.Decoder(list[_Row])
_VERSIONS = msgspec.json.Decoder(list[_Version])
_TEXTS = msgspec.json.Decoder(list[msgspec.Raw])
_LISTS_BEGIN = frozenset(b"[n")
_RESULTS_BEGIN = _LISTS_BEGIN.union(b"-0123456789")
"""A list or null; a result may also be a single number."""


def are_usual(rows: Collection[Cut]) -> bool:
    """Whether the rows look regular, judged by their beginnings. The careful reader handles everything refused here."""
    times = [row.started_at / 1000 for row in rows if row.started_at is not None]
    times += [row.duration for row in rows if row.duration is not None]
    return (
        _RESULTS_BEGIN.issuperset([memoryview(row.result)[0] for row in rows])
        and _LISTS_BEGIN.issuperset([memoryview(row.ci_99_a)[0] for row in rows])
        and _LISTS_BEGIN.issuperset([memoryview(row.ci_99_b)[0] for row in rows])
        and NUMBERS.keys().isdisjoint([row.version for row in rows])
        and (not times or (is_seconds(min(times)) and is_seconds(max(times))))
        and all(map(_can_be_laid_out, {bytes(row.params) for row in rows}))
    )


@lru_cache(maxsize=10_000)
def _can_be_laid_out(params: bytes) -> bool:
    try:
        axes = _axes(params)
    except (ValueError, msgspec.DecodeError):
        return False
    return axes is not None and not too_many(axes, 0) and not any(word in params for word in _WORDS)


def packed(rows: Sequence[Cut]) -> bytes:
    """The rows as the text that the others read."""
    return msgspec.json.encode(rows)


def versions(data: bytes) -> Iterator[str]:
    """The version of each row."""
    return (row.version or "" for row in _VERSIONS.decode(data))


def texts(data: bytes) -> list[msgspec.Raw]:
    """Opaque text for each row, which shows whether a row has changed."""
    return _TEXTS.decode(data)


class _Once(dict[bytes, T]):
    """The parsed texts: each is parsed once, so equal ones share an object."""

    def __init__(self, read: Callable[[bytes], T]) -> None:
        super().__init__()
        self._read = read

    def __missing__(self, text: bytes) -> T:
        value = self[text] = self._read(text)
        return value


class RowReader:
    """Reads rows. There may be millions, mostly regular, so it works a column at a time."""

    def __init__(self) -> None:
        self._axes = _Once(_axes)
        self._versions: dict[str | None, str] = {None: ""}

    def rows(self, data: bytes) -> Iterator[AsvRow]:
        """The rows."""
        columns = zip(*map(msgspec.structs.astuple, _ROWS.decode(data)), strict=True)
        results, params, versions, started_at, durations, *ends = columns
        words = any(word in data for word in _WORDS)
        cells = zip(
            map(self._axes.__getitem__, map(bytes, params)),
            map(self._versions.setdefault, versions, versions),
            _column(results, words),
            started_at,
            durations,
            *(_column(end, words) for end in ends),
            *(itertools.repeat(None, len(params)) for _ in ("samples", "numbers")),
            strict=True,
        )
        return map(partial(tuple.__new__, AsvRow), cells)


def _column(values: Sequence[Any], words: bool) -> Sequence[Any]:
    """The values, converted where some are not of the usual types."""
    return list(map(_numbers, values)) if words or not _LISTS.issuperset(map(type, values)) else values


_LISTS: frozenset[type] = frozenset({list, type(None)})
_WORDS = tuple(f'"{word}"'.encode() for word in NUMBERS)


def _axes(text: bytes) -> Axes | None:
    """The parameters; None if the text has none."""
    try:
        axes = msgspec.json.decode(text, type=list[list[Any]] | None)
    except msgspec.ValidationError:
        return None
    return tuple(tuple(map(str, axis)) for axis in axes or ())


def _numbers(values: Any) -> list[Any] | None:
    """One item a case. A single value belongs to a benchmark without parameters."""
    if values is None:
        return None
    every = values if type(values) is list else [values]
    if str in map(type, every):
        return [NUMBERS.get(value, value) if type(value) is str else value for value in every]
    return every
