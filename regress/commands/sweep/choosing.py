"""Which commits a sweep is about: what the words on the command line say."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from regress.commands.sweep.order import evenly
from regress.errors import RevisionError
from regress.model import Commit
from regress.session import Session
from regress.text.wording import first_of, quoted

NEW, ALL, TAGS, EXISTING = "NEW", "ALL", "TAGS", "EXISTING"
"""Words instead of a range, as asv has them."""
_WORDS = (NEW, ALL, TAGS, EXISTING)
MANY = 3
"""Where more words name commits, people are shown the first."""


@dataclass(frozen=True)
class Asked:
    """What a sweep is asked for: which commits, in the user's words, and how they are measured."""

    words: tuple[str, ...] = (NEW,)
    """Ranges and commits, or one of the words above alone."""
    since: str | None = None
    """Leaves out what is older than a date, or comes before that commit."""
    steps: int = 0
    """This many of what is left, evenly chosen; 0: all."""
    only: str = ""
    """Empty, "first-parent" or "merges"."""
    environment: str = ""
    retry: bool = False
    """Also what did not build or failed before."""

    @property
    def word(self) -> str:
        """The word that stands instead of a range; empty where commits are named."""
        return self.words[0] if len(self.words) == 1 and self.words[0] in _WORDS else ""


@dataclass(frozen=True)
class Chosen:
    """What a sweep is about."""

    words: str
    """For people: "new commits after 3f2c1ab0"."""
    line: tuple[Commit, ...]
    """The commits of the branches, the oldest first, and any that are measured besides."""
    histories: tuple[tuple[Commit, ...], ...]
    """The same of each branch by itself, the first one first: what it has of them."""
    wanted: frozenset[str]
    """Those to be measured, unless they are already."""
    after: str = ""
    """Of NEW: the commit that what is new comes after; it is wanted too, in case it was not measured to the end."""


def choose(session: Session, asked: Asked, recorded: Collection[str], done: str = "") -> Chosen:
    """The commits that the words name: ranges, commits, NEW, ALL, TAGS or EXISTING.

    `recorded` are the full hashes of commits with results; NEW is what comes after the newest of them, or after `done` where
    the last sweep got that far. Commits without results that touch nothing but what we write are never chosen, as there is
    nothing new to measure in them. Raises RevisionError where nothing is named.
    """
    branches = _branches(session, needed=bool(asked.word))
    line = session.line(branches, recorded)
    after = None
    if asked.word == NEW:
        after = next((commit for commit in reversed(line) if commit.sha in ({done} if done else recorded)), None)
    commits, named = _named(session, asked, branches, line, recorded, after)
    commits = _since(session, line, commits, asked.since)
    if asked.steps:
        commits = [commits[at] for at in evenly(len(commits), asked.steps)] if commits else []
    known = {commit.sha for commit in line}
    rest = [commit for commit in commits if commit.sha not in known]
    line = _in_order(session, branches, rest, line) if rest else line
    histories = session.histories([*branches, *(commit.sha for commit in rest)], line)
    wanted = frozenset(commit.sha for commit in commits)
    return Chosen(named, tuple(line), tuple(map(tuple, histories)), wanted, after.sha if after is not None else "")


def _named(
    session: Session,
    asked: Asked,
    branches: Sequence[str],
    line: Sequence[Commit],
    recorded: Collection[str],
    after: Commit | None,
) -> tuple[list[Commit], str]:
    """What the words name, the oldest first, and what that is, for people; NEW begins with the commit that it comes after."""
    repository, own, only = session.repository, session.own_paths, asked.only
    if asked.word == NEW:
        if after is None:
            return list(line[-1:]), "the newest commit"
        newer = repository.commits([*branches, f"^{after.sha}"], own, only)
        return [after, *newer], f"new commits after {after.short}"
    if asked.word == ALL:
        return repository.commits(branches, own, only), "all commits"
    if asked.word == TAGS:
        tags = repository.releases.all()
        return [commit for commit in repository.commits([*branches, "--tags"]) if commit.sha in tags], "tags"
    if asked.word == EXISTING:
        return [commit for commit in line if commit.sha in recorded], "commits with results"
    by_sha = {commit.sha: commit for word in asked.words for commit in _commits(session, word, only)}
    if len(asked.words) == 1:
        return list(by_sha.values()), asked.words[0]
    ordered = [commit for commit in repository.commits(list(by_sha)) if commit.sha in by_sha]
    return ordered, first_of(asked.words, len(asked.words) if len(asked.words) <= MANY else 1)


def _commits(session: Session, word: str, only: str) -> list[Commit]:
    """Those of a range, or the one of that name."""
    if word in _WORDS:
        raise RevisionError(
            f"{word} cannot be combined with other commits",
            why="it already selects commits",
            fix=f"regress sweep {word}",
        )
    repository = session.repository
    return repository.commits(word, session.own_paths, only) if ".." in word else [repository.resolve(word)]


def _branches(session: Session, needed: bool) -> list[str]:
    """The revisions of the branches that the configuration names, the usual one where it names none: origin's where that is
    ahead. HEAD if there is none of them, unless one is `needed`: then raises RevisionError."""
    repository = session.repository
    names = session.config.branches or tuple(filter(None, [repository.default_branch()]))
    refs = [ref for name in names for ref in repository.newest_of(name)]
    if names and not refs and needed:
        raise RevisionError(
            f"there is no branch {names[0]!r} here",
            why='"branches" of asv.conf.json names it',
            fix=f"{quoted('git', 'fetch', 'origin', names[0])}, or name a range",
        )
    return refs or ["HEAD"]


def _since(session: Session, line: Sequence[Commit], commits: Sequence[Commit], since: str | None) -> list[Commit]:
    """Those that are not older than a date; or that commit, what descends from it, and what left the line no earlier: the patch
    of a release before it, made on a branch of its own, is older however new it is."""
    if since is None:
        return list(commits)
    date = session.repository.date_of(since)
    if date is not None:
        return [commit for commit in commits if commit.date >= date]
    start = session.repository.resolve(since)
    before = {commit.sha for commit in session.repository.commits(start.sha)} - {start.sha}
    rest = [commit for commit in commits if commit.sha not in before]
    aside = {commit.sha for commit in rest}.difference(commit.sha for commit in line)
    if not aside or not line:
        return rest
    places = session.repository.releases.places(line, {start.sha, *aside})
    first = places.get(start.sha, 0)
    return [commit for commit in rest if commit.sha not in aside or places.get(commit.sha, first) >= first]


def _in_order(
    session: Session, branches: Sequence[str], rest: Sequence[Commit], line: Sequence[Commit]
) -> list[Commit]:
    """The line with commits of no branch of ours in their places."""
    kept = {commit.sha for commit in (*rest, *line)}
    return [
        commit
        for commit in session.repository.commits([*branches, *(commit.sha for commit in rest)])
        if commit.sha in kept
    ]
