"""The repository that "repo" means: a local one, or one that is known by its address."""

from __future__ import annotations

import re
from pathlib import Path

from regress.errors import without_password

_ADDRESS = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]+://|[^/\\:]{2,}:(?!:)")
"""With a scheme, or in ssh's form host:path. An existing folder of that form is a folder."""


def repository(file: Path, value: str) -> tuple[Path | None, str, list[str]]:
    """The local repository that `value` ("repo" of the file) means, or else the address; and doubts about it.

    The address of the repository that contains the file, or of its upstream, means that repository.
    """
    path = (file.parent / value).resolve()
    if path.is_dir():
        return path, "", []
    if not _ADDRESS.match(value):
        return path, "", []  # who opens it says that it is not there: recorded results can be read without it
    top = git_top(file.parent)
    if top is None or project_of(value) not in (set(map(project_of, _remotes(top))) or {top.name}):
        return None, value, []
    return top, "", [f'"repo" is {without_password(value)}; taken is this clone of it, {top}, and nothing is fetched']


def project_of(address: str) -> str:
    """Last part of an address: a fork has another owner but the same name."""
    return re.split(r"[/:\\]", address.rstrip("/"))[-1].removesuffix(".git")


def git_top(folder: Path) -> Path | None:
    return next((path for path in (folder, *folder.parents) if (path / ".git").exists()), None)


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
