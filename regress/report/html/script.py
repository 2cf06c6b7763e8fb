"""Data as scripts: `regress.take(...[KIND, NAME, {...}]);`. A page opened from a file may run scripts, but not read files."""

from __future__ import annotations

import json
from typing import Any

import msgspec

_HARMLESS = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
"""What could end a script or open a comment where a script stands in a page, and what older engines take for the end of a line.
Inside a string, which is the only place where JSON has them, the longer form is the same."""


def script_of(kind: str, name: str, data: Any) -> str:
    """The data as a script. Numbers that are not finite become null."""
    text = _json([kind, name, data])
    for character, escaped in _HARMLESS.items():
        text = text.replace(character, escaped)
    return f"regress.take(...{text});\n"


def _json(data: Any) -> str:
    try:
        return msgspec.json.encode(data).decode()
    except UnicodeEncodeError:  # half of a character, as a path or a parameter may have it
        return json.dumps(json.loads(json.dumps(msgspec.to_builtins(data)), parse_constant=lambda _: None))
