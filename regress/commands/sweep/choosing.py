"""Which commits a sweep is about: what the words on the command line say."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from regress.commands.sweep.order import evenly
from regress.errors import RevisionError, quoted
from regress.model import Commit
from regress.session import Session

NEW, ALL, TAGS, EXISTING = "NEW", "ALL", "TAGS", "EXISTING"
"""Words instead of a range, as asv has them."""


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


def choose(
    session: Session,
    words: str,
    recorded: Collection[str],
    done: str = "",
    *,
    since: str | None = None,
    steps: int = 0,
    only: str = "",
) -> Chosen:
    """The commits that `words` name: a range, a commit, NEW, ALL, TAGS or EXISTING.

    `recorded` are the full hashes of commits with results; NEW is what comes after the newest of them, or after `done` where
    the last sweep got that far. `since` leaves out what is older, or before that commit; `only` is empty, "first-parent" or
    "merges"; of what is left, `steps` (0: all) are chosen evenly. Commits without results that touch nothing but what we write
    are never chosen, as there is nothing new to measure in them. Raises RevisionError where nothing is named.
    """
    repository, own, after = session.repository, session.own_paths, ""
    branches = _branches(session, needed=words in (NEW, ALL, TAGS, EXISTING))
    line = session.line(branches, recorded)
    if words == NEW:
        last = next((each for each in reversed(line) if each.sha in ({done} if done else recorded)), None)
        newer = repository.commits([*branches, f"^{last.sha}"], own, only) if last is not None else []
        found = [last, *newer] if last is not None else line[-1:]
        named = f"new commits after {last.short}" if last is not None else "the newest commit"
        after = last.sha if last is not None else ""
    elif words == ALL:
        found, named = repository.commits(branches, own, only), "all commits"
    elif words == TAGS:
        tags = repository.releases()
        every = repository.commits([*branches, "--tags"])
        found, named = [each for each in every if each.sha in tags], "tags"
    elif words == EXISTING:
        found, named = [each for each in line if each.sha in recorded], "commits with results"
    elif ".." in words:
        found, named = repository.commits(words, own, only), words
    else:
        found, named = [repository.resolve(words)], words
    found = _since(session, line, found, since)
    if steps:
        found = [found[at] for at in evenly(len(found), steps)] if found else []
    known = {each.sha for each in line}
    rest = [each for each in found if each.sha not in known]
    line = _in_order(session, branches, rest, line) if rest else line
    histories = session.histories([*branches, *(each.sha for each in rest)], line)
    return Chosen(named, tuple(line), tuple(map(tuple, histories)), frozenset(each.sha for each in found), after)


def _branches(session: Session, needed: bool) -> list[str]:
    """The revisions of the branches that the configuration names, the usual one where it names none: origin's where that is
    ahead. HEAD if there is none of them, unless one is `needed`: then raises RevisionError."""
    repository = session.repository
    names = session.config.branches or tuple(filter(None, [repository.default_branch()]))
    found = [ref for name in names for ref in repository.newest_of(name)]
    if names and not found and needed:
        raise RevisionError(
            f"there is no branch {names[0]!r} here",
            why='"branches" of asv.conf.json names it',
            fix=f"{quoted('git', 'fetch', 'origin', names[0])}, or name a range",
        )
    return found or ["HEAD"]


def _since(session: Session, line: Sequence[Commit], found: Sequence[Commit], since: str | None) -> list[Commit]:
    """Those that are not older than a date; or that commit, what descends from it, and what left the line no earlier: the patch
    of a release before it, made on a branch of its own, is older however new it is."""
    if since is None:
        return list(found)
    date = session.repository.date_of(since)
    if date is not None:
        return [each for each in found if each.date >= date]
    start = session.repository.resolve(since)
    before = {each.sha for each in session.repository.commits(start.sha)} - {start.sha}
    rest = [each for each in found if each.sha not in before]
    aside = {each.sha for each in rest}.difference(each.sha for each in line)
    if not aside or not line:
        return rest
    places = session.repository.places_in(line, {start.sha, *aside})
    first = places.get(start.sha, 0)
    return [each for each in rest if each.sha not in aside or places.get(each.sha, first) >= first]


def _in_order(
    session: Session, branches: Sequence[str], rest: Sequence[Commit], line: Sequence[Commit]
) -> list[Commit]:
    """The line with commits of no branch of ours in their places."""
    kept = {each.sha for each in (*rest, *line)}
    return [each for each in session.repository.commits([*branches, *(each.sha for each in rest)]) if each.sha in kept]
