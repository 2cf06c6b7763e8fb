"""A copy of a repository in a folder that several nodes see, and what a node takes from it.

The copy only grows: nobody prunes it while a task reads it. A node has a clone that borrows the copy's objects, and worktrees
of that, so no two nodes write into one repository.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from regress.errors import RegressError
from regress.files import lock, made_at_once
from regress.git.repository import Repository, open_repository
from regress.git.running import attempt, git_error, output
from regress.text.wording import reason

_REFS = ("refs/heads", "refs/tags", "refs/remotes/origin")
_MIRRORED = "+refs/*:refs/*"


def publish(repository: Repository, sha: str, mirror: Path, name: str) -> None:
    """Bring the copy up to what the repository has, and have it keep that commit under a name."""
    if not mirror.is_dir():
        try:
            with made_at_once(mirror) as fresh:
                fresh.chmod(0o755)
                output(fresh, "init", "--quiet", "--bare")
                output(fresh, "config", "gc.auto", "0")
        except OSError as error:
            why = reason(error)
            fix = 'set "shared" of "cluster" to a folder that you can write and all nodes see'
            raise RegressError(f"cannot make {mirror.parent}", why=why, fix=fix) from error
    pushed = [f"+{refs}/*:{refs}/*" for refs in _REFS]
    status, _, err = attempt(
        repository.root, "push", "--quiet", "--force", str(mirror), *pushed, f"{sha}:refs/regress/{name}"
    )
    if status:
        raise git_error(repository.root, "push", err)


def checkout(mirror: Path, sha: str, scratch: Path) -> tuple[Repository, Path]:
    """A worktree of that commit on this node, below `scratch`, and the clone that it is of, which all tasks of the node share.
    Keep the clone for as long as the worktree is in use."""
    scratch.mkdir(parents=True, exist_ok=True)
    clone = scratch / "repository.git"
    with (scratch / ".lock").open("a") as file:
        lock(file.fileno())
        if not _borrows(clone, mirror):
            shutil.rmtree(clone, ignore_errors=True)
            fresh = Path(tempfile.mkdtemp(prefix=".clone-", dir=scratch))
            output(scratch, "clone", "--quiet", "--shared", "--mirror", str(mirror), str(fresh))
            fresh.rename(clone)
        else:
            output(clone, "fetch", "--quiet", "--prune", "--force", str(mirror), _MIRRORED)
    repository = open_repository(clone)
    return repository, repository.worktrees.get(repository.resolve(sha), scratch / "trees")


def _borrows(clone: Path, mirror: Path) -> bool:
    borrowed = clone / "objects" / "info" / "alternates"
    return borrowed.is_file() and borrowed.read_text().strip() == str(mirror / "objects")
