"""JSON as asv writes it, read fast. asv writes bare `NaN` and `Infinity`, which strict parsers refuse."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

import msgspec

from regress.model import from_json

T = TypeVar("T")

_STRING_OR_BARE = re.compile(rb'"(?:[^"\\]|\\.)*"|NaN|-?Infinity', re.DOTALL)
_QUOTED = {b"NaN": b'"N"', b"-Infinity": b'"-Infini"', b"Infinity": b'"Infini"'}
"""Strings of the same length as the words they replace, so nothing in a copied text moves."""
NUMBERS = {"N": float("nan"), "Infini": float("inf"), "-Infini": float("-inf")}
"""The numbers that JSON lacks, by the strings that `strict` makes of them."""


_SHAPES = bytes.maketrans(b"123456789E+[]{}:,-\t\n\r", b"000000000ee          ")
"""All digits the same, and all separators of numbers the same, so one search finds every pattern."""
_MANY_DIGITS = b" " + b"0" * 20
_HIGH_POWER = re.compile(rb"e0{3,} ")


def has_huge_numbers(data: bytes, powers: bool = True) -> bool:
    """Whether there may be an integer of more than 64 bits or, with `powers`, one that no float can hold. A quick test with
    false positives."""
    shapes = data.translate(_SHAPES) + b" "
    return (
        shapes.startswith(_MANY_DIGITS[1:]) or _MANY_DIGITS in shapes or (powers and bool(_HIGH_POWER.search(shapes)))
    )


def loads(data: bytes) -> Any:
    """What `from_json` gives, mostly much faster. Raises ValueError."""
    if not has_huge_numbers(data, powers=False):  # a float of them is no float for msgspec either
        with suppress(msgspec.DecodeError, UnicodeError, RecursionError):
            return msgspec.json.decode(data)
    return from_json(data)


def decoded(data: bytes, decode: Callable[[bytes], T]) -> T:
    """What a decoder of msgspec makes of the text, with bare numbers as strings. Raises msgspec.DecodeError."""
    try:
        return decode(data)
    except msgspec.DecodeError:
        if b"\\" not in data:
            # Quotes around a word inside of a string end that string before it, so that such a text cannot be decoded.
            with suppress(msgspec.DecodeError):
                return decode(_quoted(data))
        return decode(strict(data))


def _quoted(data: bytes) -> bytes:
    """The text with bare numbers as strings where asv writes them: `Infinity` in a parameter has a quote before it."""
    *before, last = data.replace(b"NaN", _QUOTED[b"NaN"]).split(b"Infinity")
    for at, text in enumerate(before):
        if text.endswith(b"-"):
            before[at] = text[:-1] + _QUOTED[b"-Infinity"]
        else:
            before[at] = text + (_QUOTED[b"Infinity"] if text.endswith((b" ", b"[")) else b"Infinity")
    return b"".join((*before, last))


def strict(data: bytes) -> bytes:
    """The text with its bare NaN, Infinity and -Infinity as strings; the inside of strings is unchanged."""
    if b"NaN" not in data and b"Infinity" not in data:
        return data
    if b"\\" in data or b"\0" in data:
        return _STRING_OR_BARE.sub(lambda match: _QUOTED.get(match[0], match[0]), data)
    pieces = data.split(
        b'"'
    )  # nothing is escaped: every other piece is a string, and all at once is what stands between
    between = b'"'.join(pieces[::2])
    for bare, quoted in _QUOTED.items():
        between = between.replace(bare, quoted.replace(b'"', b"\0"))
    pieces[::2] = between.split(b'"')
    return b'"'.join(pieces).replace(b"\0", b'"')
