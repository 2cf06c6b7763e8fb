"""The commits of a report: those of the branch with results, their tags, and the commits in between that may be to blame."""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from regress.errors import RevisionError
from regress.git import iso_date
from regress.model import Commit
from regress.pages import SHA_DIGITS, PageCommit, Release
from regress.project import Project

MOST_SUSPECTS = 20
"""Commits of a blamed range that are listed."""
MOST_LETTERS = 400
"""Of a subject."""


@dataclass(frozen=True)
class Branch:
    """A branch as the report sees it, the oldest commit first."""

    name: str
    all: tuple[Commit, ...]
    commits: tuple[Commit, ...]
    """Those with results."""
    unmeasured: tuple[Commit, ...]
    """Those after the newest one with results."""
    tags: Mapping[str, tuple[str, ...]]
    released: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Releases by the commit of this branch they belong to, even if tagged on another branch; see Repository.releases_in."""

    @cached_property
    def at(self) -> dict[str, int]:
        """Index among the commits with results."""
        return {commit.sha: index for index, commit in enumerate(self.commits)}

    @cached_property
    def position(self) -> dict[str, int]:
        """Index among all commits."""
        return {commit.sha: index for index, commit in enumerate(self.all)}

    @cached_property
    def releases(self) -> tuple[Release, ...]:
        """The releases that have measured commits, the oldest first."""
        places = [self.position[commit.sha] for commit in self.commits]
        placed = sorted(
            (self.position[sha], sha, names) for sha, names in self.released.items() if sha in self.position
        )
        return tuple(
            Release(
                names[-1],
                at := bisect_right(places, place) - 1,
                self.commits[at].sha == sha,
                names[-1] in self.tags.get(sha, ()),
            )
            for place, sha, names in placed
            if places[0] <= place <= places[-1]
        )

    @cached_property
    def last(self) -> Release | None:
        """The last release before the newest commit with results: what the newest values are compared with."""
        newest = len(self.commits) - 1
        return next((release for release in reversed(self.releases) if release.at < newest), None)

    @property
    def reference(self) -> int:
        """The newest measured commit in that release; the first one if there is none."""
        return self.last.at if self.last is not None else 0

    def fingerprint(self, sha: str) -> str:
        """A word for the branch up to a commit with results: it changes if an index up to there means another commit, or a
        range has other suspects. Later commits do not change it."""
        return self._fingerprints[sha]

    @cached_property
    def _fingerprints(self) -> dict[str, str]:
        words, digest = {}, hashlib.sha256(str(self.reference).encode())
        for commit in self.all:
            digest.update(
                repr(
                    (commit.sha, commit.sha in self.at, self.tags.get(commit.sha), self.released.get(commit.sha))
                ).encode()
            )
            if commit.sha in self.at:
                words[commit.sha] = digest.hexdigest()
        return words

    def suspects(self, good: str, last: str) -> list[Commit]:
        """The commits in the history of `last` and not of `good`, the oldest first."""
        low, at = self.position[good], self.position[last]
        reached, waiting = set(), [at]
        while waiting:
            place = waiting.pop()
            if place <= low or place in reached:
                continue
            reached.add(place)
            waiting += [self.position[sha] for sha in self.all[place].parents if sha in self.position]
        return [self.all[place] for place in sorted(reached)]

    def shown(self, commit: Commit) -> PageCommit:
        subject = commit.subject
        if len(subject) > MOST_LETTERS:
            subject = subject[: MOST_LETTERS - 1] + "…"
        tags = self.tags.get(commit.sha, ())
        return PageCommit(commit.sha[:SHA_DIGITS], subject, commit.author[:MOST_LETTERS], commit.date, tags)


def branch_of(project: Project, recorded: Collection[str], since: str | None) -> Branch:
    """The checked-out branch, or the first of `branches` in the configuration if that is ahead."""
    repository = project.repository
    revision, name = "HEAD", repository.current_branch() or "HEAD"
    for branch in project.config.branches[:1]:
        for ref in reversed(repository.newest_of(branch)):
            if repository.is_ancestor("HEAD", ref):
                revision, name = ref, branch
                break
    every = repository.commits(revision)
    first = _first(project, every, since)
    measured = tuple(commit for commit in every[first:] if commit.sha in recorded)
    unmeasured: Sequence[Commit] = ()
    if measured:
        unmeasured = repository.commits(f"{measured[-1].sha}..{revision}", project.own_paths)
    tags, released = repository.releases.all(), repository.releases.of(every)
    return Branch(name, tuple(every), measured, tuple(unmeasured), tags, released)


def by_date(every: Sequence[Commit], since: str | None) -> Branch:
    """The branch if there is no repository: commits with results by date, each the parent of the next. `since` is a date or
    one of these commits."""
    first = 0
    if since is not None:
        first = next((at for at, commit in enumerate(every) if commit.sha.startswith(since)), -1)
        if first < 0:
            oldest = iso_date(since)
            if oldest is None:
                why = "tags and branches are not known without the repository"
                raise RevisionError(
                    f"{since} is not a date", why=why, fix="--since 2026-01-20, or a hash of a commit with results"
                )
            first = sum(commit.date < oldest for commit in every)
    before = [(), *((commit.sha,) for commit in every)]
    line = tuple(replace(commit, parents=parents) for commit, parents in zip(every, before, strict=False))
    return Branch("this history", line, line[first:], (), {})


class Dated:
    """An Ancestry of commits of which only the dates are known."""

    def __init__(self, commits: Sequence[Commit]) -> None:
        self._place = {commit.sha: at for at, commit in enumerate(commits)}

    def has(self, sha: str) -> bool:
        return self._at(sha) is not None

    def is_ancestor(self, old: str, new: str) -> bool:
        before, after = self._at(old), self._at(new)
        return before is not None and after is not None and before <= after

    def last_release(self, sha: str, *, itself: bool = False) -> str | None:
        return None

    def content(self, revision: str, path: Path) -> str | None:
        return None

    def _at(self, sha: str) -> int | None:
        """The index of a commit; the beginning of its hash suffices."""
        return next((at for whole, at in self._place.items() if sha and whole.startswith(sha)), None)


def _first(project: Project, every: Sequence[Commit], since: str | None) -> int:
    """Index of the first commit of the report."""
    if since is None:
        return 0
    date = project.repository.date_of(since)
    if date is None:
        sha = project.repository.resolve(since).sha
        place = next((index for index, commit in enumerate(every) if commit.sha == sha), None)
        if place is None:
            raise RevisionError(f"{since} is not on the branch", fix="name a date or a commit that is")
        return place
    return next((index for index, commit in enumerate(every) if commit.date >= date), len(every))
