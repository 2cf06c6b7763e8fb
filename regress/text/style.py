"""How to print: the switches of a rendering, the colours, and what becomes of text that did not come from us."""

from __future__ import annotations

import os
import unicodedata
from dataclasses import dataclass
from typing import TextIO

__all__ = ["Style", "cells", "cut", "pad", "paint", "takes_escapes", "visible"]


@dataclass(frozen=True)
class Style:
    """How to print a report."""

    color: bool = False
    verbose: bool = False
    quiet: bool = False
    """The verdict line only."""
    width: int | None = None
    """Columns of the terminal; None: not a terminal, names are never cut."""
    now: float | None = None
    """Seconds since the epoch, for "2 h ago"; None: the date is printed instead, so that equal reports give equal text."""


def takes_escapes(stream: TextIO | None) -> bool:
    """Whether colours and bars can be shown there: on a terminal that does not call itself dumb, as an editor's does."""
    return stream is not None and stream.isatty() and os.environ.get("TERM") != "dumb"


_COLORS = {
    "red": "\x1b[31m",
    "green": "\x1b[32m",
    "yellow": "\x1b[33m",
    "cyan": "\x1b[36m",
    "dim": "\x1b[2m",
    "bold": "\x1b[1m",
    "bold red": "\x1b[1;31m",
    "bold green": "\x1b[1;32m",
    "bold yellow": "\x1b[1;33m",
}
_RESET = "\x1b[0m"

_ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}

_HIDDEN = ("Cc", "Cf", "Cs", "Zl", "Zp")
"""Unicode categories that move the cursor, break the line, reorder what is read, or cannot be encoded."""

_JOINER = "\u200d"
"""Of category Cf, but it only holds an emoji together."""


def paint(text: str, color: str, style: Style) -> str:
    """The text in that colour where the style has colours. Blank text and an empty colour stay as they are."""
    if not (style.color and color and text.strip()):
        return text
    return f"{_COLORS[color]}{text}{_RESET}"


def visible(text: str) -> str:
    """Text from outside with every control, formatting and surrogate character written out ("\\n", "\\x1b", "\\u202e").

    Backslashes are not doubled: a parameter is a repr already, and a name has to match what `-b` takes.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(_escaped(char) for char in text)


def _escaped(char: str) -> str:
    if unicodedata.category(char) not in _HIDDEN or char == _JOINER:
        return char
    if char in _ESCAPES:
        return _ESCAPES[char]
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def cells(text: str) -> int:
    """Columns that the text takes on a terminal: two for a wide character, none for a combining one."""
    return len(text) if text.isascii() else sum(_cells(char) for char in text)


def _cells(char: str) -> int:
    if unicodedata.category(char) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def pad(text: str, width: int, align: str = "l") -> str:
    """The text filled with spaces to `width` columns, at its left ("l") or right ("r")."""
    space = " " * (width - cells(text))
    return space + text if align == "r" else text + space


def cut(text: str, width: int) -> str:
    """The text in at most `width` columns, its middle replaced by "…": both the name and its last parameters stay."""
    if cells(text) <= width:
        return text
    tail = _first(text[::-1], (width - 1) // 2)[::-1]
    return f"{_first(text, width - 1 - cells(tail))}…{tail}"


def _first(text: str, width: int) -> str:
    """The longest beginning of the text that fits into `width` columns."""
    for end, char in enumerate(text):
        width -= _cells(char)
        if width < 0:
            return text[:end]
    return text
