"""Rows of asv's files as the index keeps them: of one name in several sources, a column at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, MutableMapping, Sequence
from itertools import repeat
from typing import Any

import msgspec

from regress.history.json_text import NUMBERS
from regress.history.reading import AsvRow, Axes

COLUMNS = ("result", "params", "version", "started_at", "duration", "stats_ci_99_a", "stats_ci_99_b")
"""What a history needs, in the order in which asv writes it."""
NULL = msgspec.Raw(b"null")

Known = MutableMapping[bytes, Axes | None]
"""Parameters that were read before, by their text, so that what is alike is one object; None for what are none."""


class Cut(msgspec.Struct, array_like=True, omit_defaults=True, gc=False):
    """A row up to what a history needs, unread."""

    result: msgspec.Raw = NULL
    params: msgspec.Raw = NULL
    version: msgspec.Raw = NULL
    started_at: msgspec.Raw = NULL
    duration: msgspec.Raw = NULL
    ci_99_a: msgspec.Raw = NULL
    ci_99_b: msgspec.Raw = NULL


class _Heads(msgspec.Struct, array_like=True, gc=False):
    """Parameters and version of each row; as most rows have the same, each pair is there once, and its place `of` each."""

    heads: list[tuple[msgspec.Raw, msgspec.Raw]]
    of: list[int]


class _Texts(_Heads, array_like=True, gc=False):
    """Rows, unread."""

    results: list[msgspec.Raw]
    started_at: list[msgspec.Raw]
    durations: list[msgspec.Raw]
    lows: list[msgspec.Raw]
    highs: list[msgspec.Raw]


class _Table(_Heads, array_like=True, gc=False):
    """Rows, read."""

    results: list[Any]
    started_at: list[Any]
    durations: list[Any]
    lows: list[Any]
    highs: list[Any]


_HEADS = msgspec.json.Decoder(_Heads)
_TEXTS = msgspec.json.Decoder(_Texts)
_TABLE = msgspec.json.Decoder(_Table)


def packed(rows: Sequence[Cut]) -> bytes:
    """The rows as the text that the others read."""
    numbers: dict[tuple[bytes, bytes], int] = {}
    of = [numbers.setdefault((bytes(row.params), bytes(row.version)), len(numbers)) for row in rows]
    heads = [(msgspec.Raw(params), msgspec.Raw(version)) for params, version in numbers]
    columns = ([getattr(row, name) for row in rows] for name in ("result", "started_at", "duration", "ci_99_a", "ci_99_b"))
    return msgspec.json.encode(_Texts(heads, of, *columns))


def versions(data: bytes) -> Iterator[str]:
    """The version of each row."""
    found = _HEADS.decode(data)
    return map([_version(version) for _, version in found.heads].__getitem__, found.of)


def texts(data: bytes) -> Iterator[bytes]:
    """Of each row a text that nobody has to understand: it tells whether a row is as it was."""
    found = _TEXTS.decode(data)
    heads = list(map(b"\0".join, found.heads))
    columns = (found.results, found.started_at, found.durations, found.lows, found.highs)
    return map(b"\0".join, zip(map(heads.__getitem__, found.of), *columns, strict=True))


def read(data: bytes, known: Known) -> Iterator[AsvRow]:
    """The rows; without what is not what it should be."""
    found = _TABLE.decode(data)
    axes = [_axes(params, known) for params, _ in found.heads]
    results: Iterable[Any] = map(_numbers, found.results)
    if None in axes:
        results = (None if axes[of] is None else result for of, result in zip(found.of, results, strict=True))
    return map(
        AsvRow,
        map([each or () for each in axes].__getitem__, found.of),
        map([_version(version) for _, version in found.heads].__getitem__, found.of),
        results,
        map(_number, found.started_at),
        map(_number, found.durations),
        map(_numbers, found.lows),
        map(_numbers, found.highs),
        repeat(None, len(found.of)),
    )


def _axes(text: msgspec.Raw, known: Known) -> Axes | None:
    key = bytes(text)
    if key not in known:
        try:
            axes = msgspec.json.decode(text, type=list[list[Any]] | None) or []
            known[key] = tuple(tuple(map(str, axis)) for axis in axes)
        except msgspec.ValidationError:
            known[key] = None
    return known[key]


def _version(text: msgspec.Raw) -> str:
    try:
        return msgspec.json.decode(text, type=str | None) or ""
    except msgspec.ValidationError:
        return ""


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
