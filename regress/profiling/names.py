"""Names of kernels, as compilers and libraries make them."""

from __future__ import annotations

import re

_ANONYMOUS = re.compile(r"\(anonymous namespace\)::|<unnamed>::|::_GLOBAL__N__\w+(?=::)")
_OPERATOR = re.compile(r"operator\s*(\(\)|<<=?|>>=?|<=>|<=?|>=?|->\*?)")
_CLOSES = {")": "(", "]": "[", "}": "{", ">": "<"}


def short(name: str) -> str:
    """The name alone: `void at::native::f<float, 4>(int, T)` -> `at::native::f`.

    Template arguments, the return type, parameters and anonymous namespaces go. A name that has none of these stays."""
    text = _ANONYMOUS.sub("", name)
    kept: list[str] = []
    open_brackets: list[str] = []
    at = 0
    while at < len(text):
        operator = _OPERATOR.match(text, at)
        if operator is not None and (at == 0 or not (text[at - 1].isalnum() or text[at - 1] == "_")):
            kept.extend(operator[0] if not open_brackets else "")
            at = operator.end()
            continue
        letter = text[at]
        if letter == "(" and not open_brackets and kept:
            break  # the parameters
        if letter in "(<[{":
            open_brackets.append(letter)
        elif letter in _CLOSES:
            _close(open_brackets, letter, arrow=text[at - 1 : at] == "-")
        elif not open_brackets:
            kept.append(letter)
        at += 1
    words = "".join(kept).split()
    return words[-1] if words else name


def _close(open_brackets: list[str], letter: str, arrow: bool) -> None:
    """A `>` may be a comparison or part of an arrow: only one that is open as a bracket is closed."""
    opening = _CLOSES[letter]
    if letter == ">":
        if not arrow and open_brackets[-1:] == ["<"]:
            open_brackets.pop()
    elif opening in open_brackets:
        while open_brackets.pop() != opening:
            pass
