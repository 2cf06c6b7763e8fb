"""A worktree for each measured commit: made once, reused, and locked while somebody measures in it."""

from __future__ import annotations

import os
import random
import shutil
import tempfile
import time
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path

from regress.errors import RegressError
from regress.files import lock as take
from regress.files import locked
from regress.git.running import attempt, git_error, line, output, text, top
from regress.model import Commit
from regress.text.wording import quoted, reason

Matters = Callable[[Path, str], bool]
"""Whether a worktree needs the file or submodule of that name, relative to it."""
_LFS_POINTER = b"version https://git-lfs.github.com/spec/v1"
_UPDATE = ("submodule", "update", "--init", "--recursive", "--checkout", "--force")
_LOCK_TRIES = 100
_OWN = "at-"
"""The beginning of the name of the folder with the worktrees, which ends by chance."""


class Worktrees:
    """The worktrees of the repository at `root` with this `git_dir` and `common_dir`.

    Keep the object as long as a path that `get` returned is in use, or until `release`: it holds a lock on it.
    """

    def __init__(self, root: Path, git_dir: Path, common_dir: Path) -> None:
        self.root, self.git_dir, self.common_dir = root, git_dir, common_dir
        self._held: dict[Path, int] = {}
        weakref.finalize(self, _close_all, self._held)

    def get(self, commit: Commit, parent: Path, matters: Matters = lambda tree, name: True) -> Path:
        """A checkout of the commit below `parent`, made once and then reused with everything built in it. Of Git LFS files and
        submodules, those that matter are required.

        It is made again, without its builds, if its maker was killed, or if tracked files were changed since the checkout; so
        a mark that a build is done must be inside the tree. Safe with several processes at once: the first one makes it.
        Raises RegressError if git cannot deliver the files, or a submodule or Git LFS does not deliver one that matters.
        """
        tree = _folder(parent) / commit.sha
        lock = self._held.pop(tree, None)
        if lock is None:
            lock = os.open(_lock_path(tree), os.O_RDWR | os.O_CREAT, 0o644)
        try:
            self._ensure(tree, commit.sha, lock, matters)
        except BaseException:
            os.close(lock)
            raise
        os.utime(lock)
        self._held[tree] = lock
        return tree

    def release(self) -> None:
        """The paths that `get` returned are not in use any more."""
        _close_all(self._held)

    def trim(self, parent: Path, count: int) -> list[Path]:
        """Remove the worktrees under `parent` but the `count` that were asked for last, and those that a process is using, this
        one too."""
        locks = sorted(_folder(parent).glob("*.lock"), key=lambda path: path.stat().st_mtime_ns, reverse=True)
        trees = [tree for path in locks if (tree := path.with_suffix("")).exists()]
        removed = []
        for tree in sorted(set(trees[count:]) - self._held.keys()):
            lock = os.open(_lock_path(tree), os.O_RDWR)
            try:
                if take(lock, wait=False):  # alone; if not, it may have lost the shared one
                    os.ftruncate(lock, 0)
                    self._discard(tree)
                    removed.append(tree)
            finally:
                os.close(lock)
        return removed

    def lacking(self, tree: Path) -> list[str]:
        """What the tree does not have: files in Git LFS that are only pointers, also in submodules, and empty submodules."""
        listed = output(tree, "ls-files", "-z", "--recurse-submodules", "--", ":(attr:filter=lfs)").split(b"\0")
        pointers = [os.fsdecode(name) for name in listed if name and _is_pointer(tree / os.fsdecode(name))]
        return pointers + [name for name in self._modules(tree) if not any((tree / name).glob("*"))]

    def outputs(self, tree: Path) -> list[str] | None:
        """Files in a worktree that are not the commit's; None if the worktree differs in other ways too, because tracked files
        were changed or there are submodules."""
        if (tree / ".gitmodules").exists() or output(tree, "status", "--porcelain", "--untracked-files=no"):
            return None
        return [os.fsdecode(name) for name in output(tree, "ls-files", "--others", "-z").split(b"\0") if name]

    def clean(self, tree: Path) -> None:
        """Remove everything from a worktree that is not the commit's."""
        output(tree, "clean", "-ffdxq")

    def own_folder(self, tree: Path) -> Path:
        """The folder where git keeps what belongs to that worktree alone."""
        return Path(text(output(tree, "rev-parse", "--absolute-git-dir")).strip())

    def _ensure(self, tree: Path, sha: str, lock: int, matters: Matters) -> None:
        """Return with `tree` in the right state and a shared lock on it.

        The lock file holds the state of the finished tree. A killed maker leaves it empty, and the kernel releases its lock.
        """
        for _ in range(_LOCK_TRIES):
            take(lock, shared=True)  # waits while another process makes the tree
            recorded = _read(lock)
            whole = recorded and recorded == self._state(tree)
            if whole and not any(matters(tree, name) for name in self.lacking(tree)):
                return
            if take(lock, wait=False):  # alone; if not, it may have lost the shared one
                os.ftruncate(lock, 0)
                # Recorded as it is, not required to be clean: what a checkout itself leaves different (line endings, file
                # modes that the file system does not have) is no damage, and must not make the tree again for ever.
                made = self._make(tree, sha, matters)
                os.pwrite(lock, made, 0)
                take(lock, shared=True)
                if _read(lock) == made:  # else it was removed between the two locks
                    return
            else:
                time.sleep(random.uniform(0.02, 0.1))
        raise RegressError(
            f"the worktree {tree} is in use and was changed",
            why="another regress is measuring in it, and its files differ from the commit",
            fix="wait until the other one has ended",
        )

    def _state(self, tree: Path) -> bytes:
        """The commit checked out in `tree` and the tracked files that differ from it; empty if git cannot tell."""
        # The top folder too: where `tree` has lost its .git, git would speak of a repository around it.
        no_tree, top_and_head, _ = attempt(tree, "rev-parse", "--show-toplevel", "HEAD")
        options = ("--porcelain", "-z", "--untracked-files=no", "--ignore-submodules=untracked")
        no_status, changes, _ = attempt(tree, "status", *options)
        return b"" if no_tree or no_status else top_and_head + b"\n" + changes

    def _make(self, tree: Path, sha: str, matters: Matters) -> bytes:
        """Check out `sha` at `tree`, replacing what is there; returns the new state."""
        try:
            self._checkout(tree, sha)
            failed = self._add_submodules(tree, sha) if (tree / ".gitmodules").is_file() else ""
            for name in self.lacking(tree):
                if matters(tree, name):
                    raise (
                        _module_error(sha, failed) if (tree / name).is_dir() else _lfs_error(sha, *_pointer(tree, name))
                    )
            state = self._state(tree)
            if not state:
                raise RegressError(
                    f"{tree} is not a worktree of {sha[:8]}",
                    why="git does not recognise what it made",
                    fix="git worktree prune",
                )
        except BaseException:
            self._discard(tree)
            raise
        return state

    def _checkout(self, tree: Path, sha: str) -> None:
        self._discard(tree)
        words = ("worktree", "add", "--detach", "--force", "--force", str(tree), sha)
        status, _, err = attempt(self.root, *words)
        if status:
            raise _lfs_error(sha, line(err)) if "git-lfs" in err else git_error(self.root, words, err)

    def _discard(self, tree: Path) -> None:
        # `git worktree prune` would do, but also forget the user's own worktrees on a drive that is not mounted now.
        try:
            if tree.exists():
                shutil.rmtree(tree)
        except OSError as error:
            raise RegressError(
                f"cannot remove {tree}", why=str(error), fix=f"remove it: {quoted('rm', '-rf', tree)}"
            ) from error
        attempt(self.root, "worktree", "remove", "--force", "--force", str(tree))

    def _add_submodules(self, tree: Path, sha: str) -> str:
        """Check out the submodules: from the user's own copies (no network, no second download), else from their URLs, and if
        some are not available the others; returns git's messages."""
        tried: list[list[str]] = []
        err = ""
        for copies in (True, False):
            options = self._module_urls(tree, copies)
            if options in tried:
                continue
            if tried:
                self._checkout(tree, sha)  # the half-made submodules have the wrong origin
            tried.append(options)
            status, _, err = attempt(tree, *options, *_UPDATE)
            if not status:
                return ""
        self._checkout(tree, sha)
        for name in self._modules(tree):
            attempt(tree, *tried[0], *_UPDATE, "--", name)
        return line(err)

    def _modules(self, tree: Path) -> Iterator[str]:
        """The folders of the tree's submodules."""
        if (tree / ".gitmodules").is_file():
            options = ("-z", "--file", ".gitmodules", "--get-regexp", r"^submodule\..*\.path$")
            for entry in filter(None, os.fsdecode(attempt(tree, "config", *options)[1]).split("\0")):
                name = entry.partition("\n")[2]
                if (tree / name).is_dir():
                    yield name

    def _module_urls(self, tree: Path, copies: bool) -> list[str]:
        """Options that name the submodules' origins. Were they not given, git would write them into the user's config."""
        options = []
        listed = attempt(tree, "config", "-z", "--file", ".gitmodules", "--get-regexp", r"^submodule\..*\.url$")[1]
        for entry in filter(None, os.fsdecode(listed).split("\0")):
            key, _, url = entry.partition("\n")
            name = key.removeprefix("submodule.").removesuffix(".url")
            places = [place / "modules" / name for place in (self.git_dir, self.common_dir)]
            copy = next((str(place) for place in places if (place / "HEAD").is_file()), None)
            if copies and copy:
                options += ["-c", "protocol.file.allow=always", "-c", f"{key}={copy}"]
            elif not url.startswith(("./", "../")) and attempt(self.root, "config", "--get", key)[0]:
                options += ["-c", f"{key}={url}"]
        return options


def _is_pointer(path: Path) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(len(_LFS_POINTER)) == _LFS_POINTER


def _pointer(tree: Path, name: str) -> tuple[str, str]:
    """The problem with the file, and the submodule that it belongs to."""
    module = os.path.relpath(top((tree / name).parent), tree.resolve())
    return f"{name} is a Git LFS pointer, not the file itself", module


def _module_error(sha: str, why: str) -> RegressError:
    return RegressError(
        f"cannot check out the submodules of {sha[:8]}",
        why=why,
        fix="git submodule update --init --recursive with network access; its copies are then used",
    )


def _lfs_error(sha: str, why: str, module: str = os.curdir) -> RegressError:
    """The error for files of a commit, or of its submodule at that path."""
    fetch = (
        f"git lfs fetch origin {sha}" if module == os.curdir else quoted("git", "-C", module, "lfs", "fetch", "--all")
    )
    fix = f"git lfs install && {fetch}"
    return RegressError(f"files of {sha[:8]} are in Git LFS and not here", why=why, fix=fix)


# -- locks ---------------------------------------------------------------------------------------------------------------


def _folder(parent: Path) -> Path:
    """The folder of the worktrees below `parent`, with a name that no other one has.

    The repository has one entry for a path. Two nodes may have disks of their own at one path, and each would take the other's
    entry away; whoever shares the disk shares the name.
    """
    try:
        parent.mkdir(parents=True, exist_ok=True)
        with locked(parent / ".lock"):
            folder = next(parent.resolve().glob(f"{_OWN}*"), None)
            return folder or Path(tempfile.mkdtemp(prefix=_OWN, dir=parent.resolve()))
    except OSError as error:
        raise RegressError(
            f"cannot make {parent}",
            why=reason(error),
            fix='set "cache_dir" under "regress" in asv.conf.json, or $REGRESS_CACHE_DIR, to a folder you can write',
        ) from error


def _lock_path(tree: Path) -> Path:
    return tree.with_name(tree.name + ".lock")


def _read(lock: int) -> bytes:
    return os.pread(lock, os.fstat(lock).st_size, 0)


def _close_all(held: dict[Path, int]) -> None:
    while held:
        os.close(held.popitem()[1])
