"""The commit that a revision means, or why it means none, with a suggestion or the fetch that is needed."""

from __future__ import annotations

import re
from pathlib import Path

from regress.errors import RevisionError
from regress.git.commits import exists, log, shallow
from regress.git.running import attempt, line, output, text
from regress.model import Commit
from regress.text.wording import nearest, quoted

FETCH_ALL = "git fetch --unshallow --tags origin '+refs/heads/*:refs/remotes/origin/*'"
"""A shallow clone has only the branch it was made from, and fetches no other automatically."""
_STEPS = re.compile(r"(.+?)((?:~\d*|\^\d*)+)", re.DOTALL)


def resolve(root: Path, common_dir: Path, revision: str) -> Commit:
    """The commit of anything git understands. Raises RevisionError."""
    if not revision.strip() or revision.startswith("-"):
        raise RevisionError(f"{revision!r} is not a revision", fix="name a commit, branch or tag, such as HEAD~1")
    # ":/text" searches for everything that follows, so that nothing may be appended to it.
    wanted = revision if revision.startswith(":/") else revision + "^{commit}"
    status, out, err = attempt(root, "rev-parse", "--verify", wanted)
    if status:
        raise _unresolved(root, common_dir, revision, err)
    if "only goes back to" in err:
        # git answers with the oldest entry it has, which in a fresh clone is HEAD itself: a check would always pass.
        why = err.strip().removeprefix("warning: ")
        raise RevisionError(f"{revision!r} is before the reflog", why=why, fix="name the commit by its sha or a tag")
    return log(root, "--no-walk", out.decode())[0]


def _unresolved(root: Path, common_dir: Path, revision: str, err: str) -> RevisionError:
    """The error for a revision that git does not know; `err` is git's message."""
    if not exists(root, "HEAD") and revision.startswith("HEAD"):
        return RevisionError(
            "there is no commit yet", why=f"{root} has an empty history", fix="git add -A && git commit"
        )
    if "ambiguous" in err:
        return RevisionError(f"{revision!r} is ambiguous", why=line(err), fix="give more digits of the sha")
    if ".." in revision:
        return RevisionError(f"{revision!r} is a range", why="one commit is needed", fix="name the two ends apart")
    return _missing_parent(root, common_dir, revision) or _unknown(root, common_dir, revision)


def _missing_parent(root: Path, common_dir: Path, revision: str) -> RevisionError | None:
    """Why `X~3` or `X^2` is not there although X is."""
    parts = _STEPS.fullmatch(revision)
    if parts is None or not exists(root, parts[1]):
        return None
    at = resolve(root, common_dir, parts[1])
    for step in re.findall(r"[~^]\d*", parts[2]):
        if exists(root, at.sha + step):
            at = resolve(root, common_dir, at.sha + step)
            continue
        if step[0] == "^" and at.parents:
            why = f"{at.short} has {len(at.parents)}"
            return RevisionError(f"{revision}: no parent number {step[1:]}", why=why, fix=f"name {at.short}^1")
        count = int(step[1:] or 1) if step[0] == "~" else 1
        chain = log(root, "--first-parent", f"--max-count={count + 1}", at.sha)
        return _no_parent(common_dir, revision, chain[-1], count - len(chain) + 1)
    return None


def _no_parent(common_dir: Path, revision: str, last: Commit, missing: int) -> RevisionError:
    if last.sha in shallow(common_dir):
        return RevisionError(
            f"{revision}: no parent in this shallow clone",
            why=f"its history begins at {last.short}",
            fix=f"git fetch --deepen {missing}",
        )
    return RevisionError(
        f"{revision} is before the first commit",
        why=f"the history begins at {last.short}",
        fix="name a later commit, or measure this one alone: regress run",
    )


def _unknown(root: Path, common_dir: Path, revision: str) -> RevisionError:
    parts = _STEPS.fullmatch(revision)
    name, steps = (parts[1], parts[2]) if parts else (revision, "")
    folders = ("refs/heads", "refs/tags", "refs/remotes")
    listed = output(root, "for-each-ref", "--format=%(refname:lstrip=2)", *folders)
    names = ["HEAD", *text(listed).split("\n")]
    near = [candidate for candidate in names if candidate.endswith("/" + name)] + nearest(name, names, 3)
    fix = "name " + " or ".join(dict.fromkeys(candidate + steps for candidate in near[:3])) if near else ""
    where = str(root)
    if shallow(common_dir):
        where = f"this shallow clone, {root}"  # what is missing there looks like what is mistyped
        fix = f"{FETCH_ALL}, or {fix}" if fix else FETCH_ALL
    if not fix and root.samefile(common_dir):  # bare: nobody stands in it
        fix = f"see {quoted('git', '-C', root, 'log', '--oneline', '--all')}"
    fix = fix or "git fetch --tags, or see git log --oneline --all"
    return RevisionError(f"unknown revision {revision!r}", why=f"no branch, tag or commit in {where}", fix=fix)
