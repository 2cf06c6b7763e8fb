"""Questions to the repository: revisions, branches, history, changes."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from regress.errors import NoRepository, RevisionError
from regress.files import scratch
from regress.git.clones import Clone
from regress.git.commits import exists, histories, log, off_the_line, shallow
from regress.git.releases import Releases
from regress.git.revisions import FETCH_ALL, resolve
from regress.git.running import attempt, output, text, top
from regress.git.worktrees import Worktrees
from regress.model import Commit

_AGO = re.compile(r"yesterday|last[ .](week|month|year)|\d+[ .](minute|hour|day|week|month|year)s?([ .]ago)?")
_USUAL_BRANCHES = ("main", "master", "trunk")
_NOBODY = {"NAME": "regress", "EMAIL": "", "DATE": "@0 +0000"}
_HOOK_VARIABLES = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_PREFIX")


def open_repository(place: Path | Clone, release_tags: str = ".*") -> Repository:
    """The repository that contains the folder `place`, or that clone; its releases are the tags whose whole name matches the
    regular expression. Raises NoRepository if there is none, RegressError if git will not read it. A bare one has no working
    tree that could differ from its commits.

    Drops GIT_DIR, GIT_INDEX_FILE and similar variables from this process: a hook that starts regress sets them, and they would
    send every later git command, ours and those of a build in a worktree, to the wrong tree or index.
    """
    for name in _HOOK_VARIABLES:
        os.environ.pop(name, None)
    clone = place if isinstance(place, Clone) else None
    path = place.ready() if isinstance(place, Clone) else place
    if not path.is_dir():
        raise NoRepository(f"there is no folder {path}", fix='correct "repo" in asv.conf.json')
    facts = output(path, "rev-parse", "--is-bare-repository", "--is-inside-git-dir").decode().split()
    git_dir = os.fsdecode(output(path, "rev-parse", "--absolute-git-dir"))
    root = Path(git_dir) if facts == ["true", "true"] else top(path)
    git_dir = os.fsdecode(output(root, "rev-parse", "--absolute-git-dir"))
    common_dir = os.fsdecode(output(root, "rev-parse", "--git-common-dir"))
    return Repository(root.resolve(), Path(git_dir), (root / common_dir).resolve(), release_tags, clone)


class Repository:
    """A git repository. `root` is the top folder of its working tree, or the repository itself if it is bare; linked worktrees
    share one `common_dir`.

    Keep the object as long as a path that `worktrees.get` returned is in use: it holds a lock on it.
    """

    def __init__(
        self, root: Path, git_dir: Path, common_dir: Path, release_tags: str, clone: Clone | None = None
    ) -> None:
        self.root, self.git_dir, self.common_dir = root, git_dir, common_dir
        self.releases, self.worktrees = Releases(root, release_tags), Worktrees(root, git_dir, common_dir)
        self._clone = clone
        self._resolved: dict[str, Commit] = {}
        """By the whole sha, which always means the same commit; a check asks for its two some ten times."""

    def __repr__(self) -> str:
        return f"Repository({str(self.root)!r})"

    @property
    def is_bare(self) -> bool:
        """Whether there is no working tree."""
        return self.root == self.git_dir.resolve()

    # -- revisions -------------------------------------------------------------------------------------------------------

    def resolve(self, revision: str) -> Commit:
        """The commit of anything git understands: HEAD~1, a tag, a short sha, a branch, `main@{yesterday}`, `:/text`.

        A clone fetches missing commits. Raises RevisionError with similar names, or the reason why a parent is missing.
        """
        commit = self._resolved.get(revision)
        if commit is None:
            commit = self._asked(revision)
            self._resolved[commit.sha] = commit
        return commit

    def _asked(self, revision: str) -> Commit:
        """The commit as git has it."""
        try:
            return resolve(self.root, self.common_dir, revision)
        except RevisionError as error:
            if self._clone is None or not self._clone.fetches:
                raise
            try:
                self.fetch()
            except NoRepository as failed:
                why = f"{error.why}; {failed.what} ({failed.why})"
                raise RevisionError(error.what, why=why, fix=failed.fix) from None
            return resolve(self.root, self.common_dir, revision)

    def fetch(self) -> None:
        """Bring a clone up to what its address has now, once; nothing for any other repository. Raises NoRepository."""
        if self._clone is not None and self._clone.fetches:
            self._clone.fetch()
            self._clone = replace(self._clone, fetches=False)
            self._resolved.clear()  # a shallow clone knows more parents now

    def commits(self, revisions: str | Sequence[str], ignore: Sequence[Path] = (), only: str = "") -> list[Commit]:
        """The commits of a range such as `v1.0..main` (or of all history up to one revision, or several), oldest first.

        The order follows the graph, never the clock: a parent always precedes its children, and commits `beside` the line are
        marked. With `ignore` (folders or files, such as results_dir), commits that equal their parents everywhere else are
        left out, because they have nothing new to measure. `only` is empty, "first-parent" (a merge and what it merged count
        as one) or "merges".
        """
        asked = [revisions] if isinstance(revisions, str) else list(revisions)
        for revision in asked:
            for end in re.split(r"\.\.\.?", revision.removeprefix("^")):
                if (end or ".." not in revision) and revision != "--tags":
                    self.resolve(end)
        inside = [path.resolve().relative_to(self.root) for path in ignore if path.resolve().is_relative_to(self.root)]
        left_out = [f":(top,exclude,literal){path}" for path in inside if path.parts]
        paths = [":(top)", *left_out] if left_out else []
        # Without --full-history git follows only the parent that a merge is like, and loses the commits of the other one.
        follow = [f"--{only}"] if only else []
        commits = log(self.root, "--topo-order", "--reverse", "--full-history", *follow, *asked, paths=paths)
        if paths:  # what is left out is missing in between
            return commits
        aside = off_the_line(commits)
        return (
            [replace(commit, beside=True) if commit.sha in aside else commit for commit in commits]
            if aside
            else commits
        )

    def histories(self, revisions: Sequence[str]) -> list[list[Commit]]:
        """The history of each revision, the oldest commit first; a revision that is an ancestor of another has none of its own.
        What `commits` returns for several is no single line: a branch's first commit does not follow another's last."""
        return histories(self.commits(revisions), [self.resolve(revision).sha for revision in revisions])

    def descendants_between(self, good: Commit, bad: Commit) -> list[Commit]:
        """The commits up to `bad` that descend from `good`, the oldest first; empty where `bad` does not, or is `good`."""
        return log(self.root, "--topo-order", "--reverse", "--ancestry-path", bad.sha, f"^{good.sha}")

    def last_release(self, sha: str, *, itself: bool = False) -> str | None:
        """The tag of the release that is nearest among the commit's ancestors; with `itself` the commit's own too."""
        known = [f"--match={name}" for names in self.releases.all().values() for name in names]
        if not known:
            return None
        status, out, _ = attempt(self.root, "describe", "--tags", "--abbrev=0", *known, sha if itself else f"{sha}^")
        return None if status else text(out)

    def is_ancestor(self, old: str, new: str) -> bool:
        """Whether `new` is or descends from `old`; False if one of them is missing here."""
        return attempt(self.root, "merge-base", "--is-ancestor", old, new)[0] == 0

    def content(self, revision: str, path: Path) -> str | None:
        """The text of a file in a commit; None if it does not exist, and for a file outside the repository."""
        if not path.is_relative_to(self.root):
            return None
        name = path.relative_to(self.root).as_posix()
        status, out, _ = attempt(self.root, "cat-file", "blob", f"{revision}:{name}")
        return None if status else text(out)

    def newest_of(self, branch: str) -> list[str]:
        """The refs of a branch, local and of origin, without one that the other is ahead of; any other revision is returned as
        it is. Empty if there is none."""
        refs = self._branch_refs(branch)
        if branch == "HEAD" or not refs:  # asv takes any revision for a branch
            return [branch] if exists(self.root, branch) else []
        behind = (
            [one for one, other in (refs, reversed(refs)) if self.is_ancestor(one, other)] if len(refs) == 2 else []
        )
        return [ref for ref in refs if ref not in behind[:1]]

    def date_of(self, words: str) -> float | None:
        """The moment that words name, in seconds since the epoch: 2026-01-20 (ISO format), "30 days ago", yesterday. None if
        they name none: git itself accepts any words as a date, even a mistyped tag, and takes them as now."""
        moment = iso_date(words)
        if moment is not None:
            return moment
        if not _AGO.fullmatch(words.strip().lower()):
            return None
        out = text(output(self.root, "rev-parse", f"--since={words}")).strip()
        return float(out.rpartition("=")[2])

    def has(self, sha: str) -> bool:
        """Whether the commit is here at all."""
        return exists(self.root, sha)

    def is_kept(self, commit: Commit) -> bool:
        """Whether a branch, a tag or HEAD contains the commit; nothing contains one that was rebased away."""
        status, out, _ = attempt(self.root, "for-each-ref", "--count=1", f"--contains={commit.sha}")
        if not status and out:
            return True
        return self.is_ancestor(commit.sha, "HEAD")

    def merge_base(self, a: str, b: str) -> Commit:
        """The newest common ancestor. Raises RevisionError if there is none."""
        return self._nearest_common(self.resolve(a).sha, [self.resolve(b).sha], f"{a} and {b}")

    def current_branch(self) -> str | None:
        """Name of the branch that is checked out; None if HEAD is detached."""
        status, out, _ = attempt(self.root, "symbolic-ref", "--quiet", "HEAD")
        return None if status else text(out).removeprefix("refs/heads/")

    @property
    def head_words(self) -> str:
        """What HEAD is, in words: "branch main"."""
        branch = self.current_branch()
        return f"branch {branch}" if branch is not None else "detached"

    def default_branch(self) -> str | None:
        """Name of the default branch: origin/HEAD, else init.defaultBranch, main, master or trunk; for a bare repository,
        where nobody works on another branch, its HEAD."""
        if self.is_bare:
            return self.current_branch()
        prefix = "refs/remotes/origin/"
        status, out, _ = attempt(self.root, "symbolic-ref", "--quiet", prefix + "HEAD")
        if not status and exists(self.root, text(out)):
            return text(out).removeprefix(prefix)
        status, out, _ = attempt(self.root, "config", "--get", "init.defaultBranch")
        names = ([] if status else [text(out)]) + list(_USUAL_BRANCHES)
        return next((name for name in names if self._branch_refs(name)), None)

    def default_base(self, ignore: Sequence[Path] = ()) -> tuple[str, str]:
        """The revision that a check compares with by default, and how it was chosen, in words.

        With uncommitted changes HEAD; away from the default branch the merge base with it; else HEAD~1. If the merge base is
        HEAD itself (a branch without commits of its own) it is HEAD~1 too, because comparing a commit with itself says
        nothing. Untracked files do not count as changes here: leftovers of a build would turn a check of a branch into one of
        nothing. Beside the first commit there is nothing else.
        """
        if self.changed_files(ignore, untracked=self._is_first()):
            return "HEAD", "HEAD, without the uncommitted changes"
        branch = self.default_branch()
        if branch is not None and branch != self.current_branch():
            head = self.resolve("HEAD").sha
            # Both the local branch and origin's: whichever is more up to date holds the nearer ancestor.
            base = self._nearest_common(head, self._branch_refs(branch), f"HEAD and {branch}")
            if base.sha != head:
                return base.sha, f"merge base with {branch}"
        return "HEAD~1", "HEAD~1"

    def _is_first(self) -> bool:
        head = self.resolve("HEAD")
        return not head.parents and head.sha not in shallow(self.common_dir)

    def missing_history(self) -> list[str]:
        """A line on a shallow clone, for those who look at its history; none on a whole one."""
        if not shallow(self.common_dir):
            return []
        return [
            f"this is a shallow clone: what precedes its first commit is missing from the history; fix: {FETCH_ALL}"
        ]

    # -- changes ---------------------------------------------------------------------------------------------------------

    def is_dirty(self, ignore: Sequence[Path] = ()) -> bool:
        """Whether the working tree differs from HEAD outside the ignored folders."""
        return bool(self.changed_files(ignore))

    def changed_files(self, ignore: Sequence[Path] = (), *, untracked: bool = True) -> list[str]:
        """Tracked files that differ from HEAD and untracked files that git does not ignore, relative to the root.

        `ignore` are folders (or files) whose content does not count, such as results_dir.
        """
        if self.is_bare:
            return []
        files = f"--untracked-files={'all' if untracked else 'no'}"
        out = output(self.root, "status", "--porcelain", "-z", "--no-renames", files)
        return self._outside([entry[3:] for entry in out.split(b"\0") if entry], ignore)

    def ignores(self, name: str) -> bool:
        """Whether git ignores that path, relative to the root; it need not exist. A folder's name ends in a slash."""
        return attempt(self.root, "check-ignore", "--quiet", "--no-index", name)[0] == 0

    def not_in_git(self, *patterns: str) -> list[str]:
        """Files that match a pattern (`*.so`, in any folder) and are not tracked, ignored ones too, relative to the root."""
        out = output(self.root, "ls-files", "--others", "-z", "--", *patterns)
        return [text(name) for name in out.split(b"\0") if name]

    def changed_between(self, a: str, b: str, ignore: Sequence[Path] = ()) -> list[str]:
        """Files that differ between two revisions, relative to the root; both names of a renamed one."""
        shas = self.resolve(a).sha, self.resolve(b).sha
        out = output(self.root, "diff-tree", "-r", "--name-only", "--no-renames", "-z", *shas)
        return self._outside([name for name in out.split(b"\0") if name], ignore)

    def snapshot(self, ignore: Sequence[Path] = ()) -> str:
        """The working tree as a commit on top of HEAD that is on no branch: its sha, the same for the same content.

        Like `is_dirty`, it includes untracked files that git does not ignore, but not the `ignore` folders.
        """
        head = self.resolve("HEAD")
        who = {f"GIT_{role}_{what}": value for role in ("AUTHOR", "COMMITTER") for what, value in _NOBODY.items()}
        below = [path.resolve() for path in ignore if self.root in path.resolve().parents]
        own = [str(path.relative_to(self.root)) for path in below]
        ignored = [name for name in own if self.ignores(name) or self.ignores(f"{name}/")]
        left = [f":(exclude,top,literal){name}" for name in own if name not in ignored]
        with tempfile.TemporaryDirectory(prefix="index-", dir=scratch()) as folder:
            index = Path(folder) / "index"
            user_index = self.git_dir / "index"
            if user_index.exists():  # it knows which files are unchanged
                shutil.copy2(user_index, index)
            variables = {"GIT_INDEX_FILE": str(index)}
            output(self.root, "add", "--all", "--", ":/", *left, variables=variables)
            if ignored:  # git refuses to leave them out by name; what it tracks of them all the same stays as it was
                kept = [f":(top,literal){name}" for name in ignored]
                output(self.root, "reset", "--quiet", "HEAD", "--", *kept, variables=variables)
            tree = text(output(self.root, "write-tree", variables=variables)).strip()
        made = output(self.root, "commit-tree", tree, "-p", head.sha, "-m", "the working tree", variables=who)
        return text(made).strip()

    def contents(self, revision: str) -> dict[str, str]:
        """Every file of a commit, relative to the root, with the id of its content."""
        listed = output(self.root, "ls-tree", "-r", "-z", "--full-tree", revision).split(b"\0")
        rows = (entry.partition(b"\t") for entry in listed if entry)
        return {text(name): text(about) for about, _, name in rows}

    # -- parts -----------------------------------------------------------------------------------------------------------

    def _branch_refs(self, name: str) -> list[str]:
        return [ref for ref in (f"refs/remotes/origin/{name}", f"refs/heads/{name}") if exists(self.root, ref)]

    def _nearest_common(self, sha: str, others: list[str], who: str) -> Commit:
        status, out, _ = attempt(self.root, "merge-base", sha, *others)
        if status:
            cut_off = bool(shallow(self.common_dir))
            raise RevisionError(
                f"{who} have no common commit" + (" in this shallow clone" if cut_off else ""),
                fix="git fetch --unshallow" if cut_off else "name the base: regress check BASE",
            )
        return self.resolve(out.decode())

    def _outside(self, names: list[bytes], ignore: Sequence[Path]) -> list[str]:
        ignored = [path.resolve() for path in ignore]
        paths = [(name, self.root / os.fsdecode(name)) for name in names]
        return [text(name) for name, path in paths if not any(path.is_relative_to(folder) for folder in ignored)]


def iso_date(words: str) -> float | None:
    """The moment that a date in ISO's format names (2026-01-20), in seconds since the epoch; None for other words."""
    with contextlib.suppress(ValueError):
        return datetime.fromisoformat(words).astimezone().timestamp()
    return None
