"""The commits of a report: those of the branch that have results, their tags, and who may be to blame in between."""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from regress.commands.session import Session
from regress.errors import RevisionError
from regress.model import Commit
from regress.pages import SHA_DIGITS, PageCommit, Release

MOST_SUSPECTS = 20
"""Commits that are listed of a blamed range."""
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
    """Where releases stand in it, also those that were tagged on branches of their own; see Repository.releases_in."""

    @cached_property
    def at(self) -> dict[str, int]:
        """Index among the commits with results."""
        return {each.sha: index for index, each in enumerate(self.commits)}

    @cached_property
    def position(self) -> dict[str, int]:
        """Index among all commits."""
        return {each.sha: index for index, each in enumerate(self.all)}

    @cached_property
    def releases(self) -> tuple[Release, ...]:
        """The releases that have measured commits, the oldest first."""
        places = [self.position[each.sha] for each in self.commits]
        found = sorted((self.position[sha], sha, names) for sha, names in self.released.items() if sha in self.position)
        return tuple(
            Release(
                names[-1],
                at := bisect_right(places, place) - 1,
                self.commits[at].sha == sha,
                names[-1] in self.tags.get(sha, ()),
            )
            for place, sha, names in found
            if places[0] <= place <= places[-1]
        )

    @cached_property
    def last(self) -> Release | None:
        """The last release before the newest commit with results: what the newest values are held against."""
        newest = len(self.commits) - 1
        return next((each for each in reversed(self.releases) if each.at < newest), None)

    @property
    def reference(self) -> int:
        """The newest measured commit in that release; the first one where there is none."""
        return self.last.at if self.last is not None else 0

    def fingerprint(self, sha: str) -> str:
        """Another one whenever an index up to a commit with results could mean another commit, or a range other suspects;
        commits after it change nothing."""
        return self._fingerprints[sha]

    @cached_property
    def _fingerprints(self) -> dict[str, str]:
        words, found = {}, hashlib.sha256(str(self.reference).encode())
        for each in self.all:
            found.update(repr((each.sha, each.sha in self.at, self.tags.get(each.sha))).encode())
            if each.sha in self.at:
                words[each.sha] = found.hexdigest()
        return words

    def suspects(self, good: str, last: str) -> list[Commit]:
        """The commits that `last` has and `good` has not, the oldest first."""
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


def branch_of(session: Session, recorded: Collection[str], since: str | None) -> Branch:
    """The branch of the checkout; the first one that the configuration names, where that is ahead of it."""
    repository = session.repository
    revision, name = "HEAD", repository.current_branch() or "HEAD"
    for branch in session.config.branches[:1]:
        for ref in reversed(repository.newest_of(branch)):
            if repository.is_ancestor("HEAD", ref):
                revision, name = ref, branch
                break
    every = repository.commits(revision)
    first = _first(session, every, since)
    measured = tuple(each for each in every[first:] if each.sha in recorded)
    unmeasured: Sequence[Commit] = ()
    if measured:
        unmeasured = repository.commits(f"{measured[-1].sha}..{revision}", session.own_paths)
    tags, released = repository.releases(), repository.releases_in(every)
    return Branch(name, tuple(every), measured, tuple(unmeasured), tags, released)


def _first(session: Session, every: Sequence[Commit], since: str | None) -> int:
    """Index of the first commit of the report."""
    if since is None:
        return 0
    date = session.repository.date_of(since)
    if date is None:
        sha = session.repository.resolve(since).sha
        found = next((index for index, each in enumerate(every) if each.sha == sha), None)
        if found is None:
            raise RevisionError(f"{since} is not on the branch", fix="name a date or a commit that is")
        return found
    return next((index for index, each in enumerate(every) if each.date >= date), len(every))
