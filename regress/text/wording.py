"""Parts of messages: counts, lists that end early, what a misspelt word may mean, and command lines."""

from __future__ import annotations

import difflib
import itertools
import re
import shlex
from collections.abc import Iterable, Iterator
from pathlib import Path

__all__ = ["correction", "counted", "first_of", "more_with_v", "near_names", "nearest", "plural", "quoted", "reason"]


def counted(number: int, noun: str) -> str:
    """ "1 case", "2 cases"."""
    return f"{number} {noun if number == 1 else plural(noun)}"


def plural(noun: str) -> str:
    """ "cases", "copies", "launches"."""
    if re.search(r"[^aeiou]y$", noun):
        return f"{noun[:-1]}ies"
    return noun + ("es" if noun.endswith(("s", "x", "ch", "sh")) else "s")


def first_of(names: Iterable[object], most: int = 1) -> str:
    """The first of them, and how many more there are: "a, b and 3 more"."""
    words = [str(name) for name in names]
    return ", ".join(words[:most]) + (f" and {len(words) - most} more" if len(words) > most else "")


def more_with_v(count: int) -> str:
    """The line below a list of which `count` items are not shown."""
    return f"… and {count} more with -v"


def reason(error: OSError) -> str:
    """Why the system refused: "no space left on device"."""
    return (error.strerror or str(error)).lower()


# -- what may have been meant --------------------------------------------------------------------------------------------


def nearest(word: str, known: Iterable[str], most: int = 1, alike: float = 0.6) -> list[str]:
    """The words that are spelt like this one, the nearest first; empty if none is. Those that are equal are `alike` 1.0."""
    return difflib.get_close_matches(word, list(known), most, alike)


def correction(word: str, known: Iterable[str], otherwise: str) -> str:
    """The fix for a word that is not known in a file: the one that is spelt like it, or `otherwise`."""
    near = nearest(word, known)
    return f'write "{near[0]}"' if near else otherwise


def near_names(words: str, names: Iterable[str], most: int = 3) -> list[str]:
    """The names of benchmarks or cases that these words may mean: those that contain them, then those that are spelt like them
    in whole, or in some of their parts between dots, the nearest first."""
    wanted = re.sub(r"[\\^$]", "", words).lower()
    every = sorted(set(names), key=lambda name: (len(name), name))
    forms: dict[str, list[str]] = {}
    for name in every:
        for form in _forms(name.lower()):
            forms.setdefault(form, []).append(name)
    near = [name for name in every if re.search(r"\w", wanted) and wanted in name.lower()]
    near += [name for form in nearest(wanted, forms, most) for name in forms[form]]
    return list(dict.fromkeys(near))[:most]


def _forms(name: str) -> Iterator[str]:
    """A name and its short forms: some of its consecutive parts, without parameters."""
    yield name
    parts = name.partition("(")[0].split(".")
    for start, end in itertools.combinations(range(len(parts) + 1), 2):
        yield ".".join(parts[start:end])


# -- command lines -------------------------------------------------------------------------------------------------------


def quoted(*words: str | Path) -> str:
    """A command line that a shell takes apart into these words, in one line of text that can be printed."""
    texts = map(str, words)
    return " ".join(shlex.quote(word) if word.isprintable() else _written_out(word) for word in texts)


def _written_out(word: str) -> str:
    """A word with characters that cannot be printed, as bash and zsh read it."""
    escapes = {"\\": "\\\\", "'": "\\'"}
    chars = (escapes.get(char, char) if char.isprintable() else f"\\U{ord(char):08x}" for char in word)
    return f"$'{''.join(chars)}'"
