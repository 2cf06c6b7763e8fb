"""Commits as git lists them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
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


def off_the_line(commits: Sequence[Commit]) -> set[str]:
    """The commits of a history, given from its beginning, that are beside its main line.

    From each end the line follows first parents. What a merge brings also belongs to the line if it begins at the first
    parent, as if it had been made there; or at a commit with the same files as the first parent, if it brings nothing else.
    """
    place = {commit.sha: at for at, commit in enumerate(commits)}
    parents = [[place[sha] for sha in commit.parents if sha in place] for commit in commits]
    if all(len(own) < 2 for own in parents):
        return set()
    brought: dict[int, list[int]] = {}
    for at, (first, *others) in ((at, own) for at, own in enumerate(parents) if len(own) > 1):
        alike, last = {first}, first
        while last in brought:
            last = brought[last][0]
            alike.add(last)
        chains = [_first_parents(other, parents, alike) for other in others]
        if all(chains):
            brought[at] = [index for chain in chains for index in chain]
    inner = {parent for own in parents for parent in own}
    line, waiting = set[int](), [at for at in range(len(commits)) if at not in inner]
    while waiting:
        at = waiting.pop()
        if at not in line:
            line.add(at)
            waiting += [*parents[at][:1], *brought.get(at, ())]
    return {commit.sha for at, commit in enumerate(commits) if at not in line}


def histories(commits: Sequence[Commit], first: Sequence[str] = ()) -> list[list[Commit]]:
    """Of each end of a history, given from its beginning, the commits that it has, those of the ends in `first` before others:
    what follows a commit in one of them descends from it, or lies beside the line of that end."""
    inner = {sha for commit in commits for sha in commit.parents}
    ends = [commit.sha for commit in commits if commit.sha not in inner]
    if len(ends) < 2:
        return [list(commits)]
    lines = []
    for end in sorted(ends, key=lambda sha: first.index(sha) if sha in first else len(first)):
        reached = {end}
        for commit in reversed(commits):
            if commit.sha in reached:
                reached.update(commit.parents)
        own = [commit for commit in commits if commit.sha in reached]
        aside = off_the_line(own)
        lines.append([replace(commit, beside=commit.sha in aside) for commit in own])
    return lines


def _first_parents(at: int, parents: Sequence[Sequence[int]], until: set[int]) -> list[int]:
    """The place, its first parent and so on, down to a place in `until`, which is left out; empty if none is reached."""
    places: list[int] = []
    while at > min(until):
        if at in until:
            return places
        places.append(at)
        if not parents[at]:
            break
        at = parents[at][0]
    return places if at in until else []


def exists(root: Path, name: str) -> bool:
    """Whether there is a commit of that name. Raises RegressError if a name is there, and what it names is lost."""
    if attempt(root, "rev-parse", "--verify", "--quiet", name + "^{commit}")[0] == 0:
        return True
    status, sha, _ = attempt(root, "rev-parse", "--verify", "--quiet", name)
    if not status and text(sha) != name and attempt(root, "cat-file", "-p", text(sha))[0]:
        raise damaged(root, f"{name} is {text(sha)}, which cannot be read")
    return False


def shallow(common_dir: Path) -> set[str]:
    """The commits whose parents were not fetched."""
    path = common_dir / "shallow"
    try:
        return set(path.read_text().split())
    except FileNotFoundError:  # also where it is fetched in full at this moment
        return set()
