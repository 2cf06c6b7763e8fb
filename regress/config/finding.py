"""Finds the configuration file and reads it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from regress.config.repository import git_top
from regress.config.values import shown
from regress.errors import ConfigError
from regress.files import read_bytes
from regress.model import writable
from regress.text.wording import quoted

_FILE_NAMES = ("asv.conf.json", "asv.conf.jsonc")
_USUAL_FOLDERS = ("benchmarks", "asv_bench")


def find(start: Path) -> Path | None:
    """The nearest configuration, as `load` looks for it; None if there is none. Raises ConfigError if there are two."""
    start = start.resolve()
    top = git_top(start) or start
    for folder in (start, *start.parents):
        path = _in_folder(folder)
        if path is not None:
            return _placed(path)
        if folder == top:
            break
    usual = [path for path in (_in_folder(top / name) for name in _USUAL_FOLDERS) if path is not None]
    if len(usual) > 1:
        raise _two(usual)
    return _placed(usual[0]) if usual else None


def locate(path: Path | None, start: Path) -> Path:
    if path is None:
        file = find(start)
        if file is None:
            raise ConfigError(
                f"there is no asv.conf.json in {start}",
                why=f"searched the folders up to {git_top(start) or start}, "
                f"and {' and '.join(name + '/' for name in _USUAL_FOLDERS)} there",
                fix="regress init, or name it with --config FILE",
            )
        return file
    file = _in_folder(path) if path.is_dir() else path
    if file is None or not file.is_file():
        raise ConfigError(f"there is no file {path}", why="it was named with --config", fix="--config FILE")
    return _placed(file)


def _placed(path: Path) -> Path:
    """The absolute path. Of a link, that of the link: its folder is where relative paths start, as in asv."""
    return path.parent.resolve() / path.name


def _in_folder(folder: Path) -> Path | None:
    paths = [folder / name for name in _FILE_NAMES if (folder / name).is_file()]
    if len(paths) > 1:
        raise _two(paths)
    return paths[0] if paths else None


def _two(paths: list[Path]) -> ConfigError:
    why = " and ".join(str(path) for path in paths)
    return ConfigError("there are two configurations", why=why, fix=f"name one: {quoted('--config', paths[0])}")


def parse(path: Path) -> tuple[dict[str, Any], list[str]]:
    """What the file holds, and warnings of what its text says in vain."""
    try:
        text = read_bytes(path).decode()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read {path}", why=str(error), fix="make it a readable UTF-8 file") from error
    try:
        data: Any = json.loads(text)  # json5 takes a hundred times as long, and most files need none of it
    except (ValueError, RecursionError):
        data = _parse_json5(path, text)
    if not isinstance(data, dict):
        raise ConfigError(f"{path} holds {shown(data)}", why="expected an object", fix="begin with { and end with }")
    for key, value in data.items():
        if not _is_text(key) or not _is_text(value):
            why = "it has a NUL or half a character in it, which no file name, no pattern and no command has"
            raise ConfigError(f'"{key}" in {path} is {shown(value)}', why=why, fix=f"correct {shown(key)}")
    return data, [_repeated(path.name, key, lines) for key, lines in repeated_keys(text)]


def _repeated(file: str, key: str, lines: list[int]) -> str:
    where = f"lines {', '.join(map(str, lines[:-1]))} and {lines[-1]}" if len(set(lines)) > 1 else f"line {lines[0]}"
    return f'{file} has "{key}" {len(lines)} times, in {where}, and only the last one counts; fix: remove the others'


_JSON5 = re.compile(
    r"""//[^\n]* | /\*.*?\*/ | (?P<word> "(?:\\.|[^"\\])*" | '(?:\\.|[^'\\])*' | [^\s{}\[\],:"'/]+ ) | (?P<mark> [{}\[\]:] )""",
    re.DOTALL | re.VERBOSE,
)
"""A comment, a word or a mark of JSON5."""


def repeated_keys(text: str) -> list[tuple[str, list[int]]]:
    """The keys that one object of this JSON5 has more than once, each with its lines."""
    places: dict[tuple[int, str], list[int]] = {}
    holders, word, start = [0], "", 0
    for part in _JSON5.finditer(text):
        if part["word"]:
            word, start = part["word"], part.start()
            word = word[1:-1] if word[0] in "\"'" else word
        elif part["mark"] in ("{", "["):
            holders.append(part.start())  # where an object begins tells it from all others
        elif part["mark"] in ("}", "]"):
            holders.pop()
        elif part["mark"]:
            places.setdefault((holders[-1], word), []).append(start)
    repeated = ((key, starts) for (_, key), starts in places.items() if len(starts) > 1)
    return [(key, [text.count("\n", 0, start) + 1 for start in starts]) for key, starts in repeated]


def _is_text(value: Any) -> bool:
    """Whether all text in the value is such as files and commands take."""
    if isinstance(value, str):
        return "\0" not in value and writable(value) == value
    if isinstance(value, dict):
        return all(_is_text(key) and _is_text(item) for key, item in value.items())
    return all(map(_is_text, value)) if isinstance(value, list) else True


def _parse_json5(path: Path, text: str) -> Any:
    import json5

    try:
        return json5.loads(text)
    except RecursionError:
        raise ConfigError(f"{path} is nested too deeply", why="it has brackets in brackets", fix="rewrite it") from None
    except ValueError as error:
        place = re.fullmatch(r"<string>:(\d+) (.*) at column (\d+)", str(error), re.DOTALL)
        line, why, column = place.groups() if place else ("1", str(error), "1")
        why = why.replace("\n", "end of line")
        raise ConfigError(f"{path}:{line}:{column} is not JSON5", why=why, fix=f"correct line {line}") from error
