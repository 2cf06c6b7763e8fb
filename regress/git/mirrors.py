"""A copy of a repository in a folder that several nodes see, and what a node takes from it.

The copy only grows: nobody prunes it while a task reads it. A node has a clone that borrows the copy's objects, and worktrees
of that, so no two nodes write into one repository.
"""

from __future__ import annotations

import hashlib
import os
import random
import re
import shutil
import tempfile
import time
from collections.abc import Collection, Sequence
from pathlib import Path

from regress.errors import RegressError
from regress.files import locked, made_at_once
from regress.git.commits import exists
from regress.git.repository import Repository, open_repository
from regress.git.running import attempt, git_error, output
from regress.text.wording import reason

_REFS = ("refs/heads", "refs/tags", "refs/remotes")
_MIRRORED = "+refs/*:refs/*"
_MANY = 1000
"""Commits in one command."""
_PUSHES = 20
_MET = re.compile(
    r"cannot lock ref|failed to update ref|unable to create .*\.lock|reference already exists|incorrect old value",
    re.IGNORECASE,
)
"""What git, and git 2.50 in other words, says where another process has pushed to the same refs at that moment."""
TREES = 4
"""Worktrees of configurations and suites that a node keeps."""


def publish(repository: Repository, sha: str, mirror: Path, name: str, commits: Collection[str] = ()) -> None:
    """Bring the copy up to what the repository has, and have it keep that commit under a name, and those of `commits` that are
    on no branch any more. Raises RegressError, also where the copy is of another project: both would have their branches and
    tags in it."""
    if not mirror.is_dir():
        _make(repository, sha, mirror, name)
    roots = output(repository.root, "rev-list", "--max-parents=0", sha).decode().split()
    if output(mirror, "for-each-ref", "--count=1") and not any(exists(mirror, root) for root in roots):
        raise RegressError(
            f"{mirror.parent} is the folder of another project",
            why=f"{mirror.name} there and {repository.root} have no commit in common",
            fix=f'give this project a folder of its own: "shared": "{mirror.parent / repository.root.name}"',
        )
    _push(repository, sha, mirror, name)
    lacking = _lacking(mirror, sorted(commits))
    if lacking:
        _send(repository, mirror, [f"{commit}:refs/regress/{name}-{commit}" for commit in lacking])


def _make(repository: Repository, sha: str, mirror: Path, name: str) -> None:
    """The copy appears with what it has, so of two projects that make it at once one finds the other."""
    try:
        with made_at_once(mirror) as fresh:
            fresh.chmod(0o755)
            output(fresh, "init", "--quiet", "--bare")
            output(fresh, "config", "gc.auto", "0")
            _push(repository, sha, fresh, name)
    except OSError as error:
        why = reason(error)
        fix = 'set "shared" of "cluster" to a folder that you can write and all nodes see'
        raise RegressError(f"cannot make {mirror.parent}", why=why, fix=fix) from error


def _push(repository: Repository, sha: str, mirror: Path, name: str) -> None:
    _send(repository, mirror, [*(f"+{refs}/*:{refs}/*" for refs in _REFS), f"{sha}:refs/regress/{name}"])


def _send(repository: Repository, mirror: Path, pushed: Sequence[str]) -> None:
    """Push; of two that push at once git refuses one, which then pushes again."""
    words = ("push", "--quiet", "--force", str(mirror), *pushed)
    for left in reversed(range(_PUSHES)):
        status, _, err = attempt(repository.root, *words)
        if not status:
            return
        if not left or not _MET.search(err):
            raise git_error(repository.root, words, err)
        time.sleep(random.uniform(0.02, 0.2))


def _lacking(mirror: Path, commits: Sequence[str]) -> list[str]:
    """Those of the commits that the copy does not have."""
    there: set[str] = set()
    for at in range(0, len(commits), _MANY):
        some = commits[at : at + _MANY]
        there.update(output(mirror, "rev-list", "--no-walk", "--ignore-missing", *some).decode().split())
    return [commit for commit in commits if commit not in there]


def checkout(mirror: Path, sha: str, scratch: Path) -> tuple[Repository, Path]:
    """A worktree of that commit on this node, below `scratch`, and the clone that it is of, which all tasks that read this copy
    share on the node. Keep the clone for as long as the worktree is in use."""
    own = scratch / hashlib.sha256(os.fsencode(mirror)).hexdigest()[:16]  # a node may have tasks of several projects
    own.mkdir(parents=True, exist_ok=True)
    clone = own / "repository.git"
    with locked(own / ".lock"):
        if not _borrows(clone, mirror):
            shutil.rmtree(clone, ignore_errors=True)
            fresh = Path(tempfile.mkdtemp(prefix=".clone-", dir=own))
            output(own, "clone", "--quiet", "--shared", "--mirror", str(mirror), str(fresh))
            fresh.rename(clone)
        else:
            output(clone, "fetch", "--quiet", "--prune", "--force", str(mirror), _MIRRORED)
    repository = open_repository(clone)
    tree = repository.worktrees.get(repository.resolve(sha), own / "trees")
    repository.worktrees.trim(own / "trees", TREES)
    return repository, tree


def _borrows(clone: Path, mirror: Path) -> bool:
    borrowed = clone / "objects" / "info" / "alternates"
    return borrowed.is_file() and borrowed.read_text().strip() == str(mirror / "objects")
