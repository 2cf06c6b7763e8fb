"""JSON as asv writes it, read fast. asv writes bare `NaN` and `Infinity`, which strict parsers refuse."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

import msgspec

T = TypeVar("T")

_STRING_OR_BARE = re.compile(rb'"(?:[^"\\]|\\.)*"|NaN|-?Infinity', re.DOTALL)
_QUOTED = {b"NaN": b'"NaN"', b"Infinity": b'"Infinity"', b"-Infinity": b'"-Infinity"'}
NUMBERS = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}
"""The numbers that JSON lacks, by the strings that `strict` makes of them."""


def loads(data: bytes) -> Any:
    """What `json.loads` gives, mostly much faster. Raises ValueError."""
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return json.loads(data)


def decoded(data: bytes, decode: Callable[[bytes], T]) -> T:
    """What a decoder of msgspec makes of the text, with bare numbers as strings. Raises msgspec.DecodeError."""
    try:
        return decode(data)
    except msgspec.DecodeError:
        if b"\\" not in data:
            # Quotes around a word inside of a string end that string before it, so that such a text cannot be decoded.
            with suppress(msgspec.DecodeError):
                quoted = data.replace(b"NaN", b'"NaN"').replace(b"Infinity", b'"Infinity"')
                return decode(quoted.replace(b'-"Infinity"', b'"-Infinity"'))
        return decode(strict(data))


def strict(data: bytes) -> bytes:
    """The text with its bare NaN, Infinity and -Infinity as strings; what stands inside of strings is not touched."""
    if b"NaN" not in data and b"Infinity" not in data:
        return data
    if b"\\" in data or b"\0" in data:
        return _STRING_OR_BARE.sub(lambda match: _QUOTED.get(match[0], match[0]), data)
    pieces = data.split(b'"')  # nothing is escaped: every other piece is a string, and all at once is what stands between
    between = b'"'.join(pieces[::2]).replace(b"NaN", b"\0NaN\0").replace(b"Infinity", b"\0Infinity\0")
    pieces[::2] = between.replace(b"-\0Infinity", b"\0-Infinity").split(b'"')
    return b'"'.join(pieces).replace(b"\0", b'"')
