"""The text of asv.conf.json: a new one, the block of our settings, and where that goes in a file that is there."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from regress.errors import ConfigError

KEYS = (
    ("the smallest slowdown and the smallest growth that count", '"time_threshold": "5%",', '"memory_threshold": "10%",'),
    ("run once in the worktree of each commit, to compile the project",
     '"build": ["$PYTHON setup.py build_ext --inplace"],'),
    ("where to import the project from, if that is neither the top nor src/", '"package_dir": "python",'),
    ("the interpreter under test, if it is not the one that runs regress", '"python": ".venv/bin/python",'),
)  # fmt: skip
"""The settings worth knowing, each with what it is for."""

CUDA = "time_* that are timed on the device: regular expressions, searched in names"
ENVIRONMENT = "the environment that asv is to make cannot be had everywhere; this measures worktrees where regress runs"


def configuration(project: str, places: Mapping[str, str], branch: str, patterns: Sequence[str]) -> str:
    """A new asv.conf.json. `places` are the paths and folders in it by their keys."""
    keys = {"version": 1, "project": project, **places, "branches": [branch], "environment_type": "existing"}
    lines = [f"    {json.dumps(key)}: {json.dumps(value)}," for key, value in keys.items()]
    return "\n".join(["{", *lines, "", *block({"cuda": list(patterns)} if patterns else {}), "}", ""])


def block(needed: Mapping[str, Any], *, comments: bool = True, indent: str = "    ") -> list[str]:
    """The lines of the key "regress" as it stands in the file, with the settings that were found to be needed; without comments
    for a file that is plain JSON."""
    if not comments:
        return [f'{indent}"regress": {json.dumps(dict(needed))}']
    set_lines = {key: f"{json.dumps(key)}: {json.dumps(value)}," for key, value in needed.items()}
    inner = [f"// {CUDA}", set_lines.get("cuda", '// "cuda": ["^ops\\\\."],')]
    if "environment" in needed:
        inner += [f"// {ENVIRONMENT}", set_lines["environment"]]
    for about, *keys in KEYS:
        inner += [f"// {about}", *(f"// {key}" for key in keys)]
    inner.append("// every key with its default: regress config")
    return [
        f"{indent}// regress's own settings; asv ignores them",
        f'{indent}"regress": {{',
        *(f"{indent}{indent}{line}" for line in inner),
        f"{indent}}}",
    ]


@dataclass(frozen=True)
class File:
    """A configuration that is there: its text, line ends as they are, and what it says."""

    path: Path
    text: str
    data: Mapping[str, Any]

    @classmethod
    def of(cls, path: Path) -> File:
        """The file, which has been loaded before."""
        import json5

        text = path.read_bytes().decode("utf-8")
        return cls(path, text, json5.loads(text))

    @property
    def has_block(self) -> bool:
        return "regress" in self.data

    @property
    def is_plain(self) -> bool:
        """Whether it is JSON without comments, which every other reader of it may rely on."""
        try:
            json.loads(self.text)
        except ValueError:
            return False
        return True

    def with_block(self, needed: Mapping[str, Any]) -> str:
        """The text with the block as the last key, and everything else as it was. Raises ConfigError where that fails."""
        import json5

        newline = "\r\n" if "\r\n" in self.text else "\n"
        *_, last, end = _ends(self.text)  # of the last thing in the object, and of the brace that closes it
        comma = "" if self.text[last] in "{," else ","
        first = re.search(r'^([ \t]+)["\'\w]', self.text, re.MULTILINE)
        lines = block(needed, comments=not self.is_plain, indent=first[1] if first else "    ")
        before = self.text[: last + 1] + comma + self.text[last + 1 : end].rstrip()
        changed = newline.join([before, *lines, self.text[end:]])
        data = json5.loads(changed)
        if data.pop("regress", None) is None or data != self.data:
            raise ConfigError(
                f"{self.path} has a layout that regress cannot edit",
                why="other keys would change",
                fix="run regress init, and add what it shows by hand",
            )
        return changed


def _ends(text: str) -> list[int]:
    """Index of the last character of everything that is neither space nor comment; a string is one thing."""
    pattern = re.compile(r'//[^\n\r]*|/\*.*?\*/|"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'|[^\s\ufeff]', re.DOTALL)
    matches = pattern.finditer(text)
    return [match.end() - 1 for match in matches if not match[0].startswith(("//", "/*"))]
