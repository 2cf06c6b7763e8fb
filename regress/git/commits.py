"""Commits as git lists them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from regress.git.running import attempt, damaged, output, text
from regress.model import Commit

_FIELDS = ("%H", "%P", "%ct", "%an", "%s")


def log(root: Path, *arguments: str, paths: Sequence[str] = ()) -> list[Commit]:
    """The commits that `git log` lists, in its order."""
    options = ("--no-show-signature", "--encoding=UTF-8", "-z", "--format=" + "%x00".join(_FIELDS))
    flat = text(output(root, "log", *options, *arguments, "--", *paths)).split("\0")
    rows = [flat[at : at + len(_FIELDS)] for at in range(0, len(flat) - 1, len(_FIELDS))]
    return [
        Commit(sha, subject, author, float(date or 0), tuple(parents.split()))
        for sha, parents, date, author, subject in rows
    ]


def exists(root: Path, name: str) -> bool:
    """Whether there is a commit of that name. Raises RegressError where a name is there, and what it names is lost."""
    if attempt(root, "rev-parse", "--verify", "--quiet", name + "^{commit}")[0] == 0:
        return True
    status, sha, _ = attempt(root, "rev-parse", "--verify", "--quiet", name)
    if not status and text(sha) != name and attempt(root, "cat-file", "-p", text(sha))[0]:
        raise damaged(root, f"{name} is {text(sha)}, which cannot be read")
    return False


def shallow(common_dir: Path) -> set[str]:
    """The commits whose parents were not fetched."""
    path = common_dir / "shallow"
    return set(path.read_text().split()) if path.is_file() else set()
