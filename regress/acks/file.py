"""The acknowledgement file: what is worse and known to be, with who says why and until when. TOML, to be committed.

    [[ack]]
    benchmark = "softmax.cudatime_fwd(4096, fp16)"   # exact name, else a regular expression, as -b takes them
    metric = "gpu_time"                              # left out: all of them
    kind = "accepted"                                # or noise, quarantine or known
    level = 1.094                                    # accepted: the ratio to the value at `since`
    since = "3f2c1ab07d41"                           # a commit before the change
    seen = "9d41e77003c5"                            # one that has it; known: all changes up to there are
    until = "next tag"                               # or a tag, a date, or "lifted": until the entry is removed
    reason = "max and sum are one pass now, exact for long rows"
    link = "https://example.org/412"

Why the level is a ratio: a time is one machine's own, and another one after the next driver; what a change costs is much the
same ratio everywhere. It is a ratio to one commit, so that two accepted changes of one case are one level, and so that a base
which has a part of it in its own copy of the file can be told (see `acks.review`).

Text in, text out. A change is made in the text, not in what was parsed, so that every comment stays where it is; the result is
parsed again before it is given back.
"""

from __future__ import annotations

import datetime
import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from regress.errors import ConfigError
from regress.files import read_bytes
from regress.model import ACK_KINDS, LIFTED, METRICS, NEXT_TAG, Acknowledgement
from regress.text.wording import correction

if sys.version_info >= (3, 11):
    import tomllib
else:  # the same parser, by another name
    import tomli as tomllib

HEADER = """\
# Acknowledged regressions, for regress: why they are acceptable, and until when. Commit an entry with the change it is about.
"""
_TABLE = "ack"
_KEYS = ("benchmark", "metric", "kind", "level", "value", "since", "seen", "until", "reason", "link")
_OPENING = re.compile(rf"\s*\[\[\s*{_TABLE}\s*\]\]\s*(#.*)?")
_ANY_OPENING = re.compile(r"\s*\[")


def read(path: Path) -> tuple[Acknowledgement, ...]:
    """The entries of the file; none if there is no file. Raises ConfigError, with the line, for what is not understood."""
    try:
        text = read_bytes(path).decode()
    except FileNotFoundError:
        return ()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read {path}", why=str(error), fix="make it a readable UTF-8 file") from error
    return parse(text, path.name)


def parse(text: str, name: str) -> tuple[Acknowledgement, ...]:
    """The entries of a file with that text, in their order; `name` is for errors. Raises ConfigError."""
    if text.startswith("\ufeff"):
        why = "it is invisible, and not part of TOML"
        raise ConfigError(f"{name} begins with a byte order mark", why=why, fix=f"save {name} as UTF-8 without one")
    try:
        data = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # a TOMLDecodeError, or a number or nesting that is too long
        line = re.search(r"line (\d+)", str(error))
        where = f"{name}:{line[1]}" if line else name
        raise ConfigError(f"{where} is not TOML", why=str(error), fix=f"correct {where}") from error
    for key in data:
        if key != _TABLE:
            raise _error(
                name, 0, f'has "{key}"', "it is made of [[ack]] tables", "write [[ack]] above the keys of an entry"
            )
    tables = data.get(_TABLE, [])
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise _error(
            name, 0, "has an ack that is not a list of tables", "expected [[ack]]", "write [[ack]] instead of [ack]"
        )
    lines = _openings(text)
    numbers = [line + 1 for line in lines] if len(lines) == len(tables) else [0] * len(tables)
    entries = tuple(_entry(table, name, line) for table, line in zip(tables, numbers, strict=True))
    seen: dict[tuple[str, str], int] = {}
    for entry in entries:
        key = entry.pattern, entry.metric
        if key in seen:
            what = f'has a second entry for "{entry.pattern}"' + (f", {entry.metric}" if entry.metric else "")
            raise _error(name, entry.line, what, f"the first one begins at line {seen[key]}", "remove one of them")
        seen[key] = entry.line
    return entries


def named(entries: Sequence[Acknowledgement], pattern: str, metric: str = "") -> list[Acknowledgement]:
    """The entries with exactly that benchmark, and that metric where one is named."""
    return [entry for entry in entries if entry.pattern == pattern and metric in ("", entry.metric)]


def until_of(words: str) -> str:
    """What `until` is as the file has it: "next tag", "lifted", a date in ISO's format, or the name of a tag. Raises
    ValueError for anything else."""
    text = words.strip()
    if text.lower() in (NEXT_TAG, LIFTED):
        return text.lower()
    if re.fullmatch(r"\d{4}-\d\d-\d\d", text):
        return datetime.date.fromisoformat(text).isoformat()
    if not text or re.search(r"[\s~^:?*\[\\\x00-\x1f\x7f]|\.\.", text):  # what git allows in no name
        raise ValueError(words)
    return text


# -- reading -------------------------------------------------------------------------------------------------------------


def _error(name: str, line: int, what: str, why: str, fix: str) -> ConfigError:
    return ConfigError(f"{name}{f':{line}' if line else ''} {what}", why=why, fix=fix)


def _entry(table: dict[str, Any], name: str, line: int) -> Acknowledgement:
    def wrong(what: str, why: str, fix: str) -> ConfigError:
        return _error(name, line, what, why, fix)

    def text(key: str, default: str = "") -> str:
        value = table.get(key, default)
        if not isinstance(value, str) or (key in table and not value.strip()):
            raise wrong(f'has "{key}" {value!r}', "expected words", f'correct "{key}"')
        return value

    def number(key: str) -> float | None:
        value = table.get(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < float("inf"):
            raise wrong(f'has "{key}" {value!r}', "expected a number above 0, such as 1.094", f'correct "{key}"')
        return float(value)

    for key in table:
        if key not in _KEYS:
            raise wrong(
                f'has an unknown key "{key}"', "known are " + ", ".join(_KEYS), correction(key, _KEYS, "remove it")
            )
    for key in ("benchmark", "kind", "reason"):
        if key not in table:
            raise wrong(
                f'has an entry without "{key}"', "every entry needs benchmark, kind and reason", f"add {key} = …"
            )
    kind, metric = text("kind"), text("metric")
    if kind not in ACK_KINDS:
        raise wrong(
            f'has the kind "{kind}"', "known are " + ", ".join(ACK_KINDS), correction(kind, ACK_KINDS, "take one")
        )
    if metric and metric not in (*METRICS, "value"):
        known = (*METRICS, "value")
        raise wrong(
            f'has the metric "{metric}"', "known are " + ", ".join(known), correction(metric, known, "take one")
        )
    pattern = text("benchmark")
    if not _is_pattern(pattern):
        why = "it is neither the name of a benchmark nor a regular expression"
        raise wrong(f'has the benchmark "{pattern}"', why, "regress list")
    level, value = number("level"), number("value")
    if kind == "accepted" and (level is None) == (value is None):
        why = "`level` is the ratio to the value at `since`; if that is zero, `value` is what it may reach"
        raise wrong("has an accepted entry without one level", why, "add a level, such as level = 1.094")
    if kind != "accepted" and (level, value) != (None, None):
        raise wrong(f"has a level in an entry of the kind {kind}", "only accepted has one", "remove it")
    if kind == "known" and not text("seen"):
        raise wrong(
            "has a known entry without seen", "it is about changes up to a commit", 'add seen = "v1.4", or a commit'
        )
    given = table.get("until", LIFTED if kind in ("quarantine", "known") else NEXT_TAG)
    try:
        until = until_of(given.isoformat() if isinstance(given, datetime.date) else given)
    except (ValueError, AttributeError):
        why = f'expected "{NEXT_TAG}", a tag, a date such as 2026-03-31, or "{LIFTED}"'
        raise wrong(f'has "until" {given!r}', why, 'correct "until"') from None
    return Acknowledgement(
        pattern,
        ACK_KINDS[ACK_KINDS.index(kind)],
        text("reason"),
        metric,
        level,
        value,
        since=text("since"),
        seen=text("seen"),
        until=until,
        link=text("link"),
        line=line,
    )


def _is_pattern(text: str) -> bool:
    """Whether it can be a regular expression; the name of a case need not be one: "f(a(b)"."""
    try:
        re.compile(text)
    except re.error:
        return bool(re.fullmatch(r"[\w.]+\(.*\)", text, re.DOTALL))
    return True


# -- changing ------------------------------------------------------------------------------------------------------------


def added(text: str, entry: Acknowledgement, name: str) -> str:
    """The text with the entry at its end."""
    before = text if text.strip() else HEADER
    return _checked(before.rstrip("\n") + "\n\n" + _written(entry), [*parse(text, name), entry], name)


def replaced(text: str, old: Acknowledgement, new: Acknowledgement, name: str) -> str:
    """The text with `new` where `old` was, and the comments above it. Raises ConfigError."""
    entries = parse(text, name)
    lines = _lines(text)
    _, opening, end = _extent(lines, old, entries, name)
    done = "".join([*lines[:opening], _written(new), *lines[end:]])
    return _checked(done, [new if entry == old else entry for entry in entries], name)


def removed(text: str, old: Acknowledgement, name: str) -> str:
    """The text without the entry and without the comments right above it. Raises ConfigError."""
    entries = parse(text, name)
    lines = _lines(text)
    start, _, end = _extent(lines, old, entries, name)
    while end < len(lines) and not lines[end].strip():
        end += 1
    while end == len(lines) and start and not lines[start - 1].strip():
        start -= 1
    return _checked("".join([*lines[:start], *lines[end:]]), [entry for entry in entries if entry != old], name)


def _openings(text: str) -> list[int]:
    return [at for at, line in enumerate(_lines(text)) if _OPENING.fullmatch(line.rstrip())]


def _lines(text: str) -> list[str]:
    """The lines with their ends, as TOML tells them apart: str.splitlines knows more ends than that."""
    return re.findall(r"[^\n]*\n|[^\n]+", text)


def _extent(
    lines: Sequence[str], entry: Acknowledgement, entries: Sequence[Acknowledgement], name: str
) -> tuple[int, int, int]:
    """Lines of an entry: where the comments right above it begin, its own first line, and the one after its last key."""
    opening = entries[entries.index(entry)].line - 1
    if opening < 0:
        raise ConfigError(f"cannot change {name}", why="its entries are not written as [[ack]] tables of their own",
                          fix=f"edit {name}")  # fmt: skip
    start = opening
    while start and lines[start - 1].lstrip().startswith("#"):
        start -= 1
    next_one = next((at for at in range(opening + 1, len(lines)) if _ANY_OPENING.match(lines[at])), len(lines))
    end = max(at for at in range(opening, next_one) if lines[at].strip() and not lines[at].lstrip().startswith("#")) + 1
    return start, opening, end


def _checked(text: str, expected: Sequence[Acknowledgement], name: str) -> str:
    """The text, if it says what it should: a string of several lines may look like the beginning of an entry."""
    if list(parse(text, name)) != list(expected):
        raise ConfigError(f"cannot change {name}", why="its layout is not understood", fix=f"edit {name}")
    return text


def _written(entry: Acknowledgement) -> str:
    given = {
        "benchmark": entry.pattern,
        "metric": entry.metric or None,
        "kind": entry.kind,
        "level": entry.level,
        "value": entry.value,
        "since": entry.since or None,
        "seen": entry.seen or None,
        "until": entry.until,
        "reason": entry.reason,
        "link": entry.link or None,
    }
    lines = [f"{key} = {_literal(value)}\n" for key, value in given.items() if value is not None]
    return "".join([f"[[{_TABLE}]]\n", *lines])


def _literal(value: str | float) -> str:
    """As TOML writes it: its escapes are those of JSON, and it wants DEL escaped too."""
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return repr(value)
