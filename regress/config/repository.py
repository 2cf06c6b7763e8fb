"""The local repository that "repo" means."""

from __future__ import annotations

import re
from pathlib import Path

from regress.errors import ConfigError, quoted


def repository(file: Path, value: str) -> tuple[Path, list[str]]:
    """The local repository that `value`, "repo" of the file, means, and doubts about it. Raises ConfigError."""
    if not value:
        raise ConfigError(f'{file} has no "repo"', why="asv needs it too", fix='add "repo": "." (relative to the file)')
    path = (file.parent / value).resolve()
    if path.is_dir():
        return path, []
    if not re.match(r"[a-zA-Z][a-zA-Z0-9+.-]+://|[^/\\]+@[^/\\]+:", value):
        raise ConfigError(f'"repo" in {file} is {value!r}', why=f"there is no folder {path}", fix='correct "repo"')
    top = git_top(file.parent)
    if top is None or _project_of(value) not in {top.name, *map(_project_of, _remotes(top))}:
        raise ConfigError(
            f'"repo" in {file} is the address {value}',
            why="regress measures in a local repository, and this one is another"
            if top
            else "regress needs a local one",
            fix=f"""{quoted("git", "clone", value)}, then set "repo" to the folder""",
        )
    return top, [f'"repo" is {value}; taken is this clone of it, {top}, and nothing is fetched']


def _project_of(address: str) -> str:
    """Last part of an address: a fork has another owner but the same name."""
    return re.split(r"[/:\\]", address.rstrip("/"))[-1].removesuffix(".git")


def git_top(folder: Path) -> Path | None:
    return next((each for each in (folder, *folder.parents) if (each / ".git").exists()), None)


def git_dir(top: Path) -> Path:
    """The git folder of a repository; for linked worktrees and submodules too, and one for all linked worktrees."""
    place = top / ".git"
    if place.is_file():
        place = (top / place.read_text(encoding="utf-8").removeprefix("gitdir:").strip()).resolve()
        shared = place / "commondir"
        if shared.is_file():
            place = place / shared.read_text(encoding="utf-8").strip()
    return place.resolve()


def _remotes(top: Path) -> list[str]:
    try:
        text = (git_dir(top) / "config").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    return re.findall(r"^\s*url\s*=\s*(\S+)", text, re.MULTILINE)
