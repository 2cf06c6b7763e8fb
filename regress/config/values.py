"""Single values of the file, under any key: their types, and how an error shows them."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable
from typing import Any

from regress.errors import ConfigError
from regress.model import writable


def is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) <= sys.float_info.max


def check_patterns(name: str, patterns: Iterable[str], source: str) -> None:
    """Raises ConfigError for one that is no regular expression."""
    for pattern in patterns:
        try:
            re.compile(pattern)
        except re.error as error:
            raise ConfigError(
                f'"{name}" has {shown(pattern)} ({source})',
                why=f"it is not a regular expression: {error}",
                fix="correct that pattern",
            ) from error


def shown(value: Any) -> str:
    text = writable(json.dumps(value, ensure_ascii=False, default=repr))
    return text if len(text) <= 60 else text[:59] + "…"
