"""Rows of asv's files as the index keeps them: those of one name in several sources."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from regress.history.json_text import NUMBERS
from regress.history.reading import AsvRow, Axes

COLUMNS = ("result", "params", "version", "started_at", "duration", "stats_ci_99_a", "stats_ci_99_b")
"""What a history needs, in the order in which asv writes it."""
NULL = msgspec.Raw(b"null")

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


class Reader:
    """Reads rows; what many of them share is one object."""

    def __init__(self) -> None:
        self._axes: dict[bytes, Axes | None] = {}
        self._versions: dict[bytes, str] = {}

    def rows(self, data: bytes) -> Iterator[AsvRow]:
        """The rows; without what is not what it should be."""
        for row in _ROWS.decode(data):
            axes = self._axes_in(bytes(row.params))
            yield AsvRow(
                axes or (),
                self._version_in(bytes(row.version)),
                _numbers(row.result) if axes is not None else None,
                _number(row.started_at),
                _number(row.duration),
                _numbers(row.ci_99_a),
                _numbers(row.ci_99_b),
            )

    def _axes_in(self, text: bytes) -> Axes | None:
        """The parameters; None where the text has none."""
        if text not in self._axes:
            axes = _if_it_is(list[list[Any]] | None, text, ())
            self._axes[text] = None if axes == () else tuple(tuple(map(str, axis)) for axis in axes or ())
        return self._axes[text]

    def _version_in(self, text: bytes) -> str:
        found = self._versions.get(text)
        if found is None:
            found = self._versions[text] = _if_it_is(str | None, text, "") or ""
        return found


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
