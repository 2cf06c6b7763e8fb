"""The site of these pages, built by `make docs` with Sphinx: how it looks, and the two pages that the program writes itself."""

from __future__ import annotations

import ast
import inspect
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from sphinx.application import Sphinx

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # the program of this checkout, whatever is installed

project = "regress"
extensions = ["myst_parser"]
html_theme = "furo"
html_title = "regress"
html_show_sphinx = html_show_copyright = False
html_copy_source = False
pygments_dark_style = "monokai"
myst_heading_anchors = 3
smartquotes = False  # of "--option" it makes a dash
suppress_warnings = ["misc.highlighting_failure"]  # examples of JSON leave things out ("…")


def commands() -> str:
    """Every command as its help has it: what it does, its options, examples and exit codes."""
    from regress.cli import regress
    from regress.cli.program import GROUPS

    parts: list[str] = []
    for group, names in GROUPS.items():
        parts.append(f"## {group}")
        parts += [_command(regress.commands[name], regress) for name in names]
    return "\n\n".join(parts)


def _command(command: click.Command, program: click.Group) -> str:
    context = click.Context(command, click.Context(program, info_name="regress"), info_name=command.name)
    records = [record for param in command.params if (record := param.get_help_record(context)) is not None]
    paragraphs = inspect.cleandoc(command.help or "").split("\n\n")
    return "\n\n".join(
        [
            f"### regress {command.name}",
            f"`{' '.join(command.get_usage(context).removeprefix('Usage: ').split())}`",
            *(_paragraph(paragraph) for paragraph in paragraphs),
            "| option | |\n| --- | --- |",
        ]
    ) + "".join(f"\n| {_code(names)} | {_escaped(text)} |" for names, text in records if text)


def _paragraph(text: str) -> str:
    """A paragraph of a help or a docstring; what is laid out by hand, in columns or after click's \\b, stays so."""
    plain = text.removeprefix("\b").strip("\n")
    if text.startswith(("\b", " ")) or re.search(r"\S  +\S", text):
        return f"```text\n{plain}\n```"
    return _escaped(" ".join(plain.split()))


def _code(text: str) -> str:
    return f"`{text}`".replace("|", "\\|")


def _escaped(text: str) -> str:
    """Text in which nothing is markup but for names in backticks."""
    parts = re.split(r"(`[^`\n]+`)", text)
    return "".join(part if part.startswith("`") else re.sub(r"([\\`*_<>\[\]|])", r"\\\1", part) for part in parts)


def packages() -> str:
    """What each package of the program is for, and what is in it, as it says itself."""
    texts = []
    for path in sorted((ROOT / "regress").glob("*/__init__.py")):
        words = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
        texts += [f"## {path.parent.name}", *map(_paragraph, words.split("\n\n"))]
    return "\n\n".join(texts)


WRITTEN = {"commands": commands, "architecture": packages}
"""Page -> what the program adds to it."""


def _add(app: Sphinx, page: str, source: list[str]) -> None:
    if page in WRITTEN:
        source[0] += f"\n{WRITTEN[page]()}\n"


def setup(app: Sphinx) -> None:
    """What Sphinx calls."""
    app.connect("source-read", _add)
