"""The repository under test: revisions, changes, history, and a worktree for each commit that is measured.

All git of the program is here. GitPython runs the commands (imported late: it costs a tenth of a second); the questions are
put to git itself and not to GitPython's object model, which knows no `main@{yesterday}` and cannot make worktrees. No
command runs the user's hooks, asks for a password, or writes the user's index.
"""

from __future__ import annotations

import contextlib
import difflib
import fcntl
import os
import random
import re
import shlex
import shutil
import tempfile
import time
import weakref
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from pathlib import Path

from regress.errors import RegressError, RevisionError
from regress.model import Commit

__all__ = ["Repository", "open_repository"]

_FIELDS = ("%H", "%P", "%ct", "%an", "%s")
_FETCH_ALL = "git fetch --unshallow --tags origin '+refs/heads/*:refs/remotes/origin/*'"
"""A shallow clone has the one branch it was made of, and fetches no other by itself."""
_STEPS = re.compile(r"(.+?)((?:~\d*|\^\d*)+)", re.DOTALL)
_AGO = re.compile(r"yesterday|last[ .](week|month|year)|\d+[ .](minute|hour|day|week|month|year)s?([ .]ago)?")
_USUAL_BRANCHES = ("main", "master", "trunk")
_NOBODY = {"NAME": "regress", "EMAIL": "", "DATE": "@0 +0000"}
_LFS_POINTER = b"version https://git-lfs.github.com/spec/v1"
_LOCK_TRIES = 100
_HOOK_VARIABLES = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_PREFIX")


def open_repository(path: Path, release_tags: str = ".*") -> Repository:
    """The repository that `path` lies in; its releases are the tags whose whole name matches the regular expression. Raises
    RegressError if there is none, it is bare, or git will not read it.

    Drops GIT_DIR, GIT_INDEX_FILE and the like from this process: where regress is started by a hook they are set, and would
    send every later git command, ours and those of a build in a worktree, to the wrong tree or index.
    """
    for name in _HOOK_VARIABLES:
        os.environ.pop(name, None)
    if not path.is_dir():
        raise RegressError(f"there is no folder {path}", fix='correct "repo" in asv.conf.json')
    facts = _git(path, "rev-parse", "--is-bare-repository", "--is-inside-git-dir").decode().split()
    if facts == ["true", "true"]:
        raise RegressError(
            f"{path} is a bare repository",
            why="there is no working tree to measure",
            fix=f"git clone {path} and point to the clone",
        )
    root = _top(path)
    git_dir = os.fsdecode(_git(root, "rev-parse", "--absolute-git-dir"))
    common_dir = os.fsdecode(_git(root, "rev-parse", "--git-common-dir"))
    return Repository(root.resolve(), Path(git_dir), (root / common_dir).resolve(), release_tags)


class Repository:
    """A git repository with a working tree. `root` is its top folder; linked worktrees share one `common_dir`.

    Keep the object for as long as a path that `worktree` returned is in use: it holds a lock on it.
    """

    def __init__(self, root: Path, git_dir: Path, common_dir: Path, release_tags: str) -> None:
        self.root, self.git_dir, self.common_dir = root, git_dir, common_dir
        self._release_tags = re.compile(release_tags)
        self._held: dict[Path, int] = {}
        weakref.finalize(self, _close_all, self._held)

    def __repr__(self) -> str:
        return f"Repository({str(self.root)!r})"

    # -- revisions -------------------------------------------------------------------------------------------------------

    def resolve(self, revision: str) -> Commit:
        """The commit of anything git understands: HEAD~1, a tag, a short sha, a branch, `main@{yesterday}`, `:/text`.

        Raises RevisionError with near names, or saying why a parent is missing.
        """
        if not revision.strip() or revision.startswith("-"):
            raise RevisionError(f"{revision!r} is not a revision", fix="name a commit, branch or tag, such as HEAD~1")
        # ":/text" searches for everything that follows, so that nothing may be appended to it.
        wanted = revision if revision.startswith(":/") else revision + "^{commit}"
        status, out, err = _try(self.root, "rev-parse", "--verify", wanted)
        if status:
            raise self._unresolved(revision, err)
        if "only goes back to" in err:
            # git answers with the oldest entry it has, which in a fresh clone is HEAD itself: a check would always pass.
            why = err.strip().removeprefix("warning: ")
            raise RevisionError(
                f"{revision!r} is before the reflog", why=why, fix="name the commit by its sha or a tag"
            )
        return self._log("--no-walk", out.decode())[0]

    def commits(self, revisions: str | Sequence[str], ignore: Sequence[Path] = (), only: str = "") -> list[Commit]:
        """The commits of a range such as `v1.0..main` (or of all history up to one revision, or several), oldest first.

        The order follows the graph, never the clock: a parent always stands before its children. With `ignore` (folders or
        files, such as results_dir) without those that are like their parents everywhere else: there is nothing new to measure.
        `only` is empty, "first-parent" (what was merged counts as one with its merge) or "merges".
        """
        asked = [revisions] if isinstance(revisions, str) else list(revisions)
        for each in asked:
            for end in re.split(r"\.\.\.?", each.removeprefix("^")):
                if (end or ".." not in each) and each != "--tags":
                    self.resolve(end)
        inside = [path.resolve().relative_to(self.root) for path in ignore if path.resolve().is_relative_to(self.root)]
        left_out = [f":(top,exclude,literal){path}" for path in inside if path.parts]
        paths = [":(top)", *left_out] if left_out else []
        # Without --full-history git follows only the parent that a merge is like, and loses the commits of the other one.
        follow = [f"--{only}"] if only else []
        return self._log("--topo-order", "--reverse", "--full-history", *follow, *asked, paths=paths)

    def descendants_between(self, good: Commit, bad: Commit) -> list[Commit]:
        """The commits up to `bad` that descend from `good`, the oldest first; empty where `bad` does not, or is `good`."""
        return self._log("--topo-order", "--reverse", "--ancestry-path", bad.sha, f"^{good.sha}")

    def releases(self) -> dict[str, tuple[str, ...]]:
        """Names of the tags of each commit that was released, by its full hash."""
        out = _git(self.root, "for-each-ref", "--format=%(objectname) %(*objectname) %(refname:strip=2)", "refs/tags")
        found: dict[str, tuple[str, ...]] = {}
        for line in _text(out).splitlines():
            own, peeled, name = line.split(" ", 2)
            if self._release_tags.fullmatch(name):
                found[peeled or own] = (*found.get(peeled or own, ()), name)
        return found

    def last_release(self, sha: str, *, itself: bool = False) -> str | None:
        """The tag of the release that is nearest among the commit's ancestors; with `itself` the commit's own too."""
        known = [f"--match={name}" for names in self.releases().values() for name in names]
        if not known:
            return None
        status, out, _ = _try(self.root, "describe", "--tags", "--abbrev=0", *known, sha if itself else f"{sha}^")
        return None if status else _text(out)

    def is_ancestor(self, old: str, new: str) -> bool:
        """Whether `new` is or descends from `old`; no where one of them is not here."""
        return _try(self.root, "merge-base", "--is-ancestor", old, new)[0] == 0

    def content(self, revision: str, path: Path) -> str | None:
        """The text of a file as a commit has it; None where it has none, and for a file outside the repository."""
        if not path.is_relative_to(self.root):
            return None
        name = path.relative_to(self.root).as_posix()
        status, out, _ = _try(self.root, "cat-file", "blob", f"{revision}:{name}")
        return None if status else _text(out)

    def newest_of(self, branch: str) -> list[str]:
        """The refs of a branch, here and of origin, without one that the other is ahead of; none where there is no branch."""
        refs = self._branch_refs(branch)
        behind = (
            [one for one, other in (refs, reversed(refs)) if self.is_ancestor(one, other)] if len(refs) == 2 else []
        )
        return [ref for ref in refs if ref not in behind[:1]]

    def date_of(self, words: str) -> float | None:
        """The moment that words name, in seconds since the epoch: 2026-01-20 (in ISO's format), "30 days ago", yesterday. None
        where they name none: git itself takes any words for a date, a mistyped tag too, and means now.
        """
        with contextlib.suppress(ValueError):
            return datetime.fromisoformat(words).astimezone().timestamp()
        if not _AGO.fullmatch(words.strip().lower()):
            return None
        out = _text(_git(self.root, "rev-parse", f"--since={words}")).strip()
        return float(out.rpartition("=")[2])

    def has(self, sha: str) -> bool:
        """Whether the commit is here at all."""
        return self._exists(sha)

    def is_kept(self, commit: Commit) -> bool:
        """Whether a branch or a tag holds the commit, or HEAD is based on it; one that was rebased away is held by none."""
        status, out, _ = _try(self.root, "for-each-ref", "--count=1", f"--contains={commit.sha}")
        if not status and out:
            return True
        return self.is_ancestor(commit.sha, "HEAD")

    def merge_base(self, a: str, b: str) -> Commit:
        """The newest commit that both descend from. Raises RevisionError if there is none."""
        return self._nearest_common(self.resolve(a).sha, [self.resolve(b).sha], f"{a} and {b}")

    def current_branch(self) -> str | None:
        """Name of the branch that is checked out; None if HEAD is detached."""
        status, out, _ = _try(self.root, "symbolic-ref", "--quiet", "HEAD")
        return None if status else _text(out).removeprefix("refs/heads/")

    def default_branch(self) -> str | None:
        """Name of the branch that others start from: origin/HEAD, else init.defaultBranch, main, master or trunk."""
        prefix = "refs/remotes/origin/"
        status, out, _ = _try(self.root, "symbolic-ref", "--quiet", prefix + "HEAD")
        if not status and self._exists(_text(out)):
            return _text(out).removeprefix(prefix)
        status, out, _ = _try(self.root, "config", "--get", "init.defaultBranch")
        names = ([] if status else [_text(out)]) + list(_USUAL_BRANCHES)
        return next((name for name in names if self._branch_refs(name)), None)

    def default_base(self, ignore: Sequence[Path] = ()) -> tuple[str, str]:
        """What a check compares with when no base is named: a revision, and in words how it was chosen.

        With uncommitted changes HEAD; away from the default branch the merge base with it; else HEAD~1. Where the merge
        base is HEAD itself (a branch without commits of its own) it is HEAD~1 too, as a commit says nothing beside itself.
        Untracked files are no changes here: what a build leaves behind would turn a check of a branch into one of nothing.
        """
        if self.changed_files(ignore, untracked=False):
            return "HEAD", "HEAD, without the uncommitted changes"
        branch = self.default_branch()
        if branch is not None and branch != self.current_branch():
            head = self.resolve("HEAD").sha
            # Both the local branch and origin's: whichever is more up to date holds the nearer ancestor.
            base = self._nearest_common(head, self._branch_refs(branch), f"HEAD and {branch}")
            if base.sha != head:
                return base.sha, f"merge base with {branch}"
        return "HEAD~1", "HEAD~1"

    # -- changes ---------------------------------------------------------------------------------------------------------

    def is_dirty(self, ignore: Sequence[Path] = ()) -> bool:
        """Whether the working tree differs from HEAD outside the ignored folders."""
        return bool(self.changed_files(ignore))

    def changed_files(self, ignore: Sequence[Path] = (), *, untracked: bool = True) -> list[str]:
        """Tracked files that differ from HEAD and untracked files that git does not ignore, relative to the root.

        `ignore` are folders (or files) whose content does not count, such as results_dir.
        """
        files = f"--untracked-files={'all' if untracked else 'no'}"
        out = _git(self.root, "status", "--porcelain", "-z", "--no-renames", files)
        return self._outside([entry[3:] for entry in out.split(b"\0") if entry], ignore)

    def ignores(self, name: str) -> bool:
        """Whether git ignores what lies there, relative to the root; it need not exist. A folder's name ends in a slash."""
        return _try(self.root, "check-ignore", "--quiet", "--no-index", name)[0] == 0

    def not_in_git(self, *patterns: str) -> list[str]:
        """Files that match a pattern (`*.so`, in any folder) and are not tracked, ignored ones too, relative to the root."""
        out = _git(self.root, "ls-files", "--others", "-z", "--", *patterns)
        return [_text(name) for name in out.split(b"\0") if name]

    def changed_between(self, a: str, b: str, ignore: Sequence[Path] = ()) -> list[str]:
        """Files that differ between two revisions, relative to the root; both names of a renamed one."""
        shas = self.resolve(a).sha, self.resolve(b).sha
        out = _git(self.root, "diff-tree", "-r", "--name-only", "--no-renames", "-z", *shas)
        return self._outside([name for name in out.split(b"\0") if name], ignore)

    # -- worktrees -------------------------------------------------------------------------------------------------------

    def worktree(self, commit: Commit, parent: Path) -> Path:
        """A checkout of `commit` at PARENT/SHA, made once and then reused with all that was built in it.

        It is made again, without what was built in it, if the last process that made it was killed, or if tracked files in
        it are no longer as they were checked out: a mark that a build was done must therefore lie in the tree. Safe with
        several processes at once: the first one makes it. Raises RegressError where git, a submodule or Git LFS
        cannot deliver the files.
        """
        parent = _folder(parent)
        tree = parent / commit.sha
        lock = self._held.pop(tree, None)
        if lock is None:
            lock = os.open(_lock_path(tree), os.O_RDWR | os.O_CREAT, 0o644)
        try:
            self._ensure(tree, commit.sha, lock)
        except BaseException:
            os.close(lock)
            raise
        os.utime(lock)
        self._held[tree] = lock
        return tree

    def snapshot(self, ignore: Sequence[Path] = ()) -> str:
        """The working tree as a commit on top of HEAD that no branch has: its sha, the same for the same content.

        Like `is_dirty`: with untracked files that git does not ignore, and without what lies in the `ignore` folders.
        """
        head = self.resolve("HEAD")
        who = {f"GIT_{role}_{what}": value for role in ("AUTHOR", "COMMITTER") for what, value in _NOBODY.items()}
        own = [path.resolve() for path in ignore if path.resolve().is_relative_to(self.root)]
        left = [f":(exclude,top,literal){path.relative_to(self.root)}" for path in own if path.resolve() != self.root]
        with tempfile.TemporaryDirectory(prefix="regress-index-") as folder:
            index = Path(folder) / "index"
            user_index = self.git_dir / "index"
            if user_index.exists():  # it knows which files are unchanged
                shutil.copy2(user_index, index)
            variables = {"GIT_INDEX_FILE": str(index)}
            _git(self.root, "add", "--all", "--", ":/", *left, variables=variables)
            tree = _text(_git(self.root, "write-tree", variables=variables)).strip()
        made = _git(self.root, "commit-tree", tree, "-p", head.sha, "-m", "the working tree", variables=who)
        return _text(made).strip()

    def contents(self, revision: str) -> dict[str, str]:
        """Every file of a commit, relative to the root, with the id of its content."""
        listed = _git(self.root, "ls-tree", "-r", "-z", "--full-tree", revision).split(b"\0")
        rows = (entry.partition(b"\t") for entry in listed if entry)
        return {_text(name): _text(about) for about, _, name in rows}

    def outputs(self, tree: Path) -> list[str] | None:
        """Files in a worktree that are not the commit's; None where they are not all that tells it from the commit, because
        tracked files were changed, or there are submodules."""
        if (tree / ".gitmodules").exists() or _git(tree, "status", "--porcelain", "--untracked-files=no"):
            return None
        return [os.fsdecode(name) for name in _git(tree, "ls-files", "--others", "-z").split(b"\0") if name]

    def clean(self, tree: Path) -> None:
        """Remove from a worktree what is not the commit's."""
        _git(tree, "clean", "-ffdxq")

    def own_folder(self, tree: Path) -> Path:
        """The folder where git keeps what belongs to that worktree alone."""
        return Path(_text(_git(tree, "rev-parse", "--absolute-git-dir")).strip())

    def remove_worktrees(self, parent: Path, keep: Collection[str] = ()) -> list[Path]:
        """Remove the worktrees under `parent` but those of the commits in `keep` and those that a process is using."""
        parent = parent.resolve()
        removed = []
        for tree in sorted(path.with_suffix("") for path in parent.glob("*.lock")):
            if tree.name in keep or not tree.exists():
                continue
            if tree in self._held:
                os.close(self._held.pop(tree))
            lock = os.open(_lock_path(tree), os.O_RDWR)
            try:
                if _lock_alone(lock):
                    os.ftruncate(lock, 0)
                    self._discard(tree)
                    removed.append(tree)
            finally:
                os.close(lock)
        return removed

    def trim_worktrees(self, parent: Path, count: int) -> list[Path]:
        """Remove the worktrees under `parent` but the `count` that were asked for last, and those that a process is using."""
        locks = sorted(parent.resolve().glob("*.lock"), key=lambda path: path.stat().st_mtime_ns, reverse=True)
        there = [path.stem for path in locks if path.with_suffix("").exists()]
        return self.remove_worktrees(parent, keep=there[:count])

    def _ensure(self, tree: Path, sha: str, lock: int) -> None:
        """Return with `tree` as it should be and a shared lock on it.

        The lock file holds the state of the finished tree. A killed maker leaves it empty, and the kernel drops its lock.
        """
        for _ in range(_LOCK_TRIES):
            fcntl.flock(lock, fcntl.LOCK_SH)  # waits while another process makes the tree
            recorded = _read(lock)
            if recorded and recorded == self._state(tree):
                return
            if _lock_alone(lock):
                os.ftruncate(lock, 0)
                # Recorded as it is, not required to be clean: what a checkout itself leaves different (line endings, file
                # modes that the file system does not have) is no damage, and must not make the tree again for ever.
                made = self._make(tree, sha)
                os.pwrite(lock, made, 0)
                fcntl.flock(lock, fcntl.LOCK_SH)
                if _read(lock) == made:  # else it was removed between the two locks
                    return
            else:
                time.sleep(random.uniform(0.02, 0.1))
        raise RegressError(
            f"the worktree {tree} is in use and was changed",
            why="another regress measures in it, and its files are not those of the commit",
            fix="wait until the other one has ended",
        )

    def _state(self, tree: Path) -> bytes:
        """What is checked out in `tree` and which tracked files differ from it; empty if git cannot tell."""
        # The top folder too: where `tree` has lost its .git, git would speak of a repository around it.
        no_tree, top_and_head, _ = _try(tree, "rev-parse", "--show-toplevel", "HEAD")
        options = ("--porcelain", "-z", "--untracked-files=no", "--ignore-submodules=untracked")
        no_status, changes, _ = _try(tree, "status", *options)
        return b"" if no_tree or no_status else top_and_head + b"\n" + changes

    def _make(self, tree: Path, sha: str) -> bytes:
        """Check out `sha` at `tree` in place of what is there; the state of the result."""
        try:
            self._checkout(tree, sha)
            if (tree / ".gitmodules").is_file():
                self._add_submodules(tree, sha)
            self._refuse_pointers(tree, sha)
            state = self._state(tree)
            if not state:
                raise RegressError(
                    f"{tree} is no worktree of {sha[:8]}",
                    why="git does not recognise what it made",
                    fix="git worktree prune",
                )
        except BaseException:
            self._discard(tree)
            raise
        return state

    def _checkout(self, tree: Path, sha: str) -> None:
        self._discard(tree)
        status, _, err = _try(self.root, "worktree", "add", "--detach", "--force", "--force", str(tree), sha)
        if status:
            raise _lfs_error(sha, _line(err)) if "git-lfs" in err else _git_error(self.root, "worktree add", err)

    def _discard(self, tree: Path) -> None:
        # `git worktree prune` would do, but also forget the user's own worktrees on a drive that is not mounted now.
        try:
            if tree.exists():
                shutil.rmtree(tree)
        except OSError as error:
            raise RegressError(f"cannot remove {tree}", why=str(error), fix=f"remove it: rm -rf {tree}") from error
        _try(self.root, "worktree", "remove", "--force", "--force", str(tree))

    def _add_submodules(self, tree: Path, sha: str) -> None:
        """Check out the submodules: from the user's own copies (no network, no second download), else from their URLs."""
        tried: list[list[str]] = []
        err = ""
        for copies in (True, False):
            options = self._module_urls(tree, copies)
            if options in tried:
                continue
            if tried:
                self._checkout(tree, sha)  # the half-made submodules have the wrong origin
            tried.append(options)
            status, _, err = _try(
                tree, *options, "submodule", "update", "--init", "--recursive", "--checkout", "--force"
            )
            if not status:
                return
        raise RegressError(
            f"cannot check out the submodules of {sha[:8]}",
            why=_line(err),
            fix="git submodule update --init --recursive where there is a network; its copies are then used",
        )

    def _module_urls(self, tree: Path, copies: bool) -> list[str]:
        """Options that name the submodules' origins. Were they not given, git would write them into the user's config."""
        options = []
        listed = _try(tree, "config", "-z", "--file", ".gitmodules", "--get-regexp", r"^submodule\..*\.url$")[1]
        for entry in filter(None, os.fsdecode(listed).split("\0")):
            key, _, url = entry.partition("\n")
            name = key.removeprefix("submodule.").removesuffix(".url")
            places = [place / "modules" / name for place in (self.git_dir, self.common_dir)]
            copy = next((str(place) for place in places if (place / "HEAD").is_file()), None)
            if copies and copy:
                options += ["-c", "protocol.file.allow=always", "-c", f"{key}={copy}"]
            elif not url.startswith(("./", "../")) and _try(self.root, "config", "--get", key)[0]:
                options += ["-c", f"{key}={url}"]
        return options

    def _refuse_pointers(self, tree: Path, sha: str) -> None:
        """Raise RegressError where a file of the tree, or of a submodule in it, is a pointer to its content."""
        for name in _git(tree, "ls-files", "-z", "--recurse-submodules", "--", ":(attr:filter=lfs)").split(b"\0"):
            path = tree / os.fsdecode(name)
            if name and path.is_file():
                with path.open("rb") as file:
                    if file.read(len(_LFS_POINTER)) == _LFS_POINTER:
                        module = os.path.relpath(_top(path.parent), tree.resolve())
                        raise _lfs_error(sha, f"{_text(name)} is a Git LFS pointer, not the file itself", module)

    # -- parts -----------------------------------------------------------------------------------------------------------

    def _log(self, *arguments: str, paths: Sequence[str] = ()) -> list[Commit]:
        options = ("--no-show-signature", "--encoding=UTF-8", "-z", "--format=" + "%x00".join(_FIELDS))
        flat = _text(_git(self.root, "log", *options, *arguments, "--", *paths)).split("\0")
        rows = [flat[at : at + len(_FIELDS)] for at in range(0, len(flat) - 1, len(_FIELDS))]
        return [
            Commit(sha, subject, author, float(date or 0), tuple(parents.split()))
            for sha, parents, date, author, subject in rows
        ]

    def _exists(self, name: str) -> bool:
        return _try(self.root, "rev-parse", "--verify", "--quiet", name + "^{commit}")[0] == 0

    def _branch_refs(self, name: str) -> list[str]:
        return [ref for ref in (f"refs/remotes/origin/{name}", f"refs/heads/{name}") if self._exists(ref)]

    def _nearest_common(self, sha: str, others: list[str], who: str) -> Commit:
        status, out, _ = _try(self.root, "merge-base", sha, *others)
        if status:
            shallow = bool(self._shallow())
            raise RevisionError(
                f"{who} have no common commit" + (" in this shallow clone" if shallow else ""),
                fix="git fetch --unshallow" if shallow else "name the base: regress check BASE",
            )
        return self.resolve(out.decode())

    def _outside(self, names: list[bytes], ignore: Sequence[Path]) -> list[str]:
        ignored = [path.resolve() for path in ignore]
        paths = [(name, self.root / os.fsdecode(name)) for name in names]
        return [_text(name) for name, path in paths if not any(path.is_relative_to(each) for each in ignored)]

    def _shallow(self) -> set[str]:
        """The commits whose parents were not fetched."""
        path = self.common_dir / "shallow"
        return set(path.read_text().split()) if path.is_file() else set()

    def _unresolved(self, revision: str, err: str) -> RevisionError:
        if not self._exists("HEAD") and revision.startswith("HEAD"):
            return RevisionError(
                "there is no commit yet", why=f"{self.root} has an empty history", fix="git add -A && git commit"
            )
        if "ambiguous" in err:
            return RevisionError(f"{revision!r} is ambiguous", why=_line(err), fix="give more digits of the sha")
        if ".." in revision:
            return RevisionError(f"{revision!r} is a range", why="one commit is needed", fix="name the two ends apart")
        return self._missing_parent(revision) or self._unknown(revision)

    def _missing_parent(self, revision: str) -> RevisionError | None:
        """Why `X~3` or `X^2` is not there although X is."""
        parts = _STEPS.fullmatch(revision)
        if parts is None or not self._exists(parts[1]):
            return None
        at = self.resolve(parts[1])
        for step in re.findall(r"[~^]\d*", parts[2]):
            if self._exists(at.sha + step):
                at = self.resolve(at.sha + step)
                continue
            if step[0] == "^" and at.parents:
                why = f"{at.short} has {len(at.parents)}"
                return RevisionError(f"{revision}: no parent number {step[1:]}", why=why, fix=f"name {at.short}^1")
            count = int(step[1:] or 1) if step[0] == "~" else 1
            chain = self._log("--first-parent", f"--max-count={count + 1}", at.sha)
            return self._no_parent(revision, chain[-1], count - len(chain) + 1)
        return None

    def _no_parent(self, revision: str, last: Commit, missing: int) -> RevisionError:
        if last.sha in self._shallow():
            return RevisionError(
                f"{revision}: no parent in this shallow clone",
                why=f"its history begins at {last.short}",
                fix=f"git fetch --deepen {missing}",
            )
        return RevisionError(
            f"{revision}: the first commit has no parent",
            why=f"the history begins at {last.short}",
            fix="regress run measures a commit by itself",
        )

    def _unknown(self, revision: str) -> RevisionError:
        parts = _STEPS.fullmatch(revision)
        name, steps = (parts[1], parts[2]) if parts else (revision, "")
        folders = ("refs/heads", "refs/tags", "refs/remotes")
        listed = _git(self.root, "for-each-ref", "--format=%(refname:lstrip=2)", *folders)
        names = ["HEAD", *_text(listed).split("\n")]
        near = [each for each in names if each.endswith("/" + name)] + difflib.get_close_matches(name, names)
        fix = "name " + " or ".join(dict.fromkeys(each + steps for each in near[:3])) if near else ""
        where = str(self.root)
        if self._shallow():
            where = f"this shallow clone, {self.root}"  # what is missing there looks like what is mistyped
            fix = f"{_FETCH_ALL}, or {fix}" if fix else _FETCH_ALL
        fix = fix or "git fetch --tags, or see git log --oneline --all"
        return RevisionError(f"unknown revision {revision!r}", why=f"no branch, tag or commit in {where}", fix=fix)


# -- running git ---------------------------------------------------------------------------------------------------------


def _try(directory: Path, *arguments: str, variables: Mapping[str, str] | None = None) -> tuple[int, bytes, str]:
    """Run git in a folder: exit status, output without its last newline, messages in English."""
    try:
        import git
    except ModuleNotFoundError:
        raise
    except ImportError as error:  # what GitPython raises where there is no git
        raise _no_git() from error
    if not directory.is_dir():
        return 128, b"", f"fatal: there is no folder {directory}"
    command = ["git", "-c", f"core.hooksPath={os.devnull}", "-c", "core.fsmonitor=false", *arguments]
    settings = {"GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0", **(variables or {})}
    try:
        status, out, err = git.Git(str(directory)).execute(
            command, with_extended_output=True, with_exceptions=False, stdout_as_string=False, env=settings
        )
    except git.GitCommandNotFound as error:
        raise _no_git() from error
    return status, out, os.fsencode(err).decode("utf-8", "replace")


def _git(directory: Path, *arguments: str, variables: Mapping[str, str] | None = None) -> bytes:
    """The output of a git command that should succeed; RegressError with git's own words if it does not."""
    status, out, err = _try(directory, *arguments, variables=variables)
    if status:
        raise _git_error(directory, arguments[0], err)
    return out


def _top(directory: Path) -> Path:
    """The top folder of the repository, or of the submodule, that the folder lies in."""
    return Path(os.fsdecode(_git(directory, "rev-parse", "--show-toplevel")))


def _git_error(directory: Path, command: str, err: str) -> RegressError:
    if "dubious ownership" in err or "safe.directory" in err:
        fix = f"git config --global --add safe.directory {directory}"
        return RegressError(f"git refuses to read {directory}", why="it belongs to another user", fix=fix)
    if "not a git repository" in err:
        return RegressError(
            f"{directory} is not in a git repository",
            why="regress compares commits",
            fix='run it inside the project, or set "repo" in asv.conf.json to its folder',
        )
    return RegressError(f"git {command} failed in {directory}", why=_line(err), fix="run it by hand to see more")


def _no_git() -> RegressError:
    return RegressError("there is no git", why="the command git is not on the PATH", fix="install git")


def _lfs_error(sha: str, why: str, module: str = os.curdir) -> RegressError:
    """The error for files of a commit, or of its submodule at that path."""
    fetch = f"git lfs fetch origin {sha}" if module == os.curdir else f"git -C {shlex.quote(module)} lfs fetch --all"
    fix = f"git lfs install && {fetch}"
    return RegressError(f"files of {sha[:8]} are in Git LFS and not here", why=why, fix=fix)


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _line(err: str) -> str:
    return " ".join(line.strip() for line in err.splitlines() if line.strip())


# -- locks ---------------------------------------------------------------------------------------------------------------


def _folder(path: Path) -> Path:
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RegressError(
            f"cannot make {path}",
            why=(error.strerror or str(error)).lower(),
            fix='set "cache_dir" under "regress" in asv.conf.json, or $REGRESS_CACHE_DIR, to a folder you can write',
        ) from error
    return path.resolve()


def _lock_path(tree: Path) -> Path:
    return tree.with_name(tree.name + ".lock")


def _read(lock: int) -> bytes:
    return os.pread(lock, os.fstat(lock).st_size, 0)


def _lock_alone(lock: int) -> bool:
    """Whether this process now has the lock for itself; if not, it may have lost a shared one."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _close_all(held: dict[Path, int]) -> None:
    while held:
        os.close(held.popitem()[1])
