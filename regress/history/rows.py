"""Rows of asv's files as the index keeps them: those of one name in several sources."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, TypeVar

import msgspec

from regress.history.json_text import NUMBERS
from regress.history.reading import AsvRow, Axes

COLUMNS = ("result", "params", "version", "started_at", "duration", "stats_ci_99_a", "stats_ci_99_b")
"""What a history needs, in the order in which asv writes it."""
NULL = msgspec.Raw(b"null")

T = TypeVar("T")


class Cut(msgspec.Struct, array_like=True, omit_defaults=True, gc=False):
    """A row up to what a history needs, unread."""

    result: msgspec.Raw = NULL
    params: msgspec.Raw = NULL
    version: msgspec.Raw = NULL
    started_at: msgspec.Raw = NULL
    duration: msgspec.Raw = NULL
    ci_99_a: msgspec.Raw = NULL
    ci_99_b: msgspec.Raw = NULL


class _Row(msgspec.Struct, array_like=True, gc=False):
    """The same row, read: but for parameters and version, of which many rows have the same."""

    result: Any = None
    params: msgspec.Raw = NULL
    version: msgspec.Raw = NULL
    started_at: Any = None
    duration: Any = None
    ci_99_a: Any = None
    ci_99_b: Any = None


class _Version(msgspec.Struct, array_like=True, gc=False):
    """Of the same row the version, read."""

    result: msgspec.Raw = NULL
    params: msgspec.Raw = NULL
    version: Any = None


_ROWS = msgspec.json.Decoder(list[_Row])
_VERSIONS = msgspec.json.Decoder(list[_Version])
_TEXTS = msgspec.json.Decoder(list[msgspec.Raw])


def packed(rows: Sequence[Cut | msgspec.Raw]) -> bytes:
    """The rows as the text that the others read; of those that are not cut, the rest is not looked at."""
    return msgspec.json.encode(rows)


def versions(data: bytes) -> Iterator[str]:
    """The version of each row."""
    return (row.version if isinstance(row.version, str) else "" for row in _VERSIONS.decode(data))


def texts(data: bytes) -> list[msgspec.Raw]:
    """Of each row a text that nobody has to understand: it tells whether a row is as it was."""
    return _TEXTS.decode(data)


class _Once(dict[bytes, T]):
    """What each text says: it is read once, so that what is alike is one object."""

    def __init__(self, read: Callable[[bytes], T]) -> None:
        super().__init__()
        self._read = read

    def __missing__(self, text: bytes) -> T:
        found = self[text] = self._read(text)
        return found


class Reader:
    """Reads rows. There may be millions, of which most are as they should be: a column at a time is looked at."""

    def __init__(self) -> None:
        self._axes, self._versions = _Once(_axes), _Once(_version)

    def rows(self, data: bytes) -> Iterator[AsvRow]:
        """The rows; without what is not what it should be."""
        columns = zip(*map(msgspec.structs.astuple, _ROWS.decode(data)), strict=True)
        results, params, versions, started_at, durations, *ends = columns
        axes: list[Axes | None] = list(map(self._axes.__getitem__, map(bytes, params)))
        if None in axes:
            results = tuple(None if known is None else each for known, each in zip(axes, results, strict=True))
        words = any(word in data for word in _WORDS)
        cells = zip(
            (each or () for each in axes),
            map(self._versions.__getitem__, map(bytes, versions)),
            _column(results, _LISTS, _numbers, words),
            _column(started_at, _NUMBERS, _number),
            _column(durations, _NUMBERS, _number),
            *(_column(each, _LISTS, _numbers, words) for each in ends),
            itertools.repeat(None, len(axes)),
            strict=True,
        )
        return map(partial(tuple.__new__, AsvRow), cells)


def _column(
    values: Sequence[T], usual: frozenset[type], convert: Callable[[T], Any], always: bool = False
) -> Sequence[Any]:
    """The values, converted where some are not of the usual types."""
    return list(map(convert, values)) if always or not usual.issuperset(map(type, values)) else values


_LISTS: frozenset[type] = frozenset({list, type(None)})
_NUMBERS: frozenset[type] = frozenset({int, float, type(None)})
_WORDS = tuple(f'"{word}"'.encode() for word in NUMBERS)


def _axes(text: bytes) -> Axes | None:
    """The parameters; None where the text has none."""
    axes = _if_it_is(list[list[Any]] | None, text, ())
    return None if axes == () else tuple(tuple(map(str, axis)) for axis in axes or ())


def _version(text: bytes) -> str:
    return str(_if_it_is(str | None, text, "") or "")


def _if_it_is(kind: Any, text: bytes, otherwise: Any) -> Any:
    try:
        return msgspec.json.decode(text, type=kind)
    except msgspec.ValidationError:
        return otherwise


def _numbers(values: Any) -> list[Any] | None:
    """An item a case. What stands there alone is the one of a plain benchmark."""
    if values is None:
        return None
    every = values if type(values) is list else [values]
    if str in map(type, every):
        return [NUMBERS.get(each, each) if type(each) is str else each for each in every]
    return every


def _number(value: Any) -> float | None:
    return value if isinstance(value, (int, float)) else None
