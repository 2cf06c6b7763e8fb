"""The commits between a good and a bad one: the line of first parents, and what a merge on it has brought along."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from regress.errors import RevisionError
from regress.git.repository import Repository
from regress.model import Commit
from regress.text.wording import quoted


def line_between(
    repository: Repository, good: Commit, bad: Commit, ignore: Sequence[Path] = (), asked: Sequence[str] = ("CASE",)
) -> list[Commit]:
    """The commits after `good` up to `bad` that could have done it, the oldest first: descendants of `good` on the line of
    first parents. What only touches the `ignore` folders is none, nor is what was merged: it counts as one with its merge.

    Raises RevisionError if `bad` does not descend from `good`. `asked` is what bisect was asked for: the case, and options.
    """
    between = {commit.sha for commit in repository.descendants_between(good, bad)}
    if not between:
        raise _unrelated(repository, good, bad, asked)
    line = repository.commits([bad.sha, f"^{good.sha}"], ignore, "first-parent")
    return [commit for commit in line if commit.sha in between]


def merged_by(repository: Repository, merge: Commit, before: Commit) -> list[tuple[Commit, Commit]]:
    """What a merge has put on top of `before`: of each further parent where it left the line, and the parent itself."""
    brought = []
    for sha in merge.parents:
        parent = repository.resolve(sha)
        if not repository.is_ancestor(parent.sha, before.sha):
            brought.append((repository.merge_base(before.sha, sha), parent))
    return brought


def _unrelated(repository: Repository, good: Commit, bad: Commit, asked: Sequence[str]) -> RevisionError:
    what = f"cannot bisect {asked[0]}: BAD, {bad.short}, does not come after GOOD, {good.short}"
    if good.sha == bad.sha:
        why = f"GOOD and BAD are one commit, {good.short}"
        return RevisionError(f"cannot bisect {asked[0]}", why=why, fix="name two commits")
    if repository.is_ancestor(bad.sha, good.sha):
        why = "GOOD is to be the older one; an improvement is found in that order too"
        return RevisionError(what, why=why, fix=quoted("regress", "bisect", *asked, bad.short, good.short))
    base = repository.merge_base(good.sha, bad.sha)
    return RevisionError(
        what,
        why=f"they are on two branches, which diverge at {base.short}",
        fix=quoted("regress", "bisect", *asked, base.short, bad.short),
    )
