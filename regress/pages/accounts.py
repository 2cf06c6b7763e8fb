"""The causes of the changes of one benchmark: explanations of two commits, matched with the commits that may be to blame."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from regress.history import explanations_in
from regress.model import KeptExplanation
from regress.pages import SHA_DIGITS, Account, Change, Event, Line, Told, Where
from regress.pages.branch import Branch
from regress.project import Project

UNKNOWN = "no cause is recognized"


def explained_in(project: Project) -> Mapping[str, Sequence[KeptExplanation]]:
    """The explanations of each benchmark: those in results_dir, and those that checks on this machine left in the cache."""
    newest: dict[tuple[str, ...], KeptExplanation] = {}
    for kept in (*explanations_in(project.config.results_dir), *explanations_in(project.cache / "history")):
        about = kept.found.comparison
        key = (kept.base, kept.head, kept.machine, kept.environment, str(about.case), about.metric.name)
        newest[key] = max(kept, newest.get(key, kept), key=lambda one: one.date)
    by_name: dict[str, list[KeptExplanation]] = {}
    for _, kept in sorted(newest.items()):
        by_name.setdefault(kept.found.case.name, []).append(kept)
    return by_name


class Accounts:
    """The explanations of a benchmark whose commits are on the branch, the newest commit first.

    An explanation accounts for a change if every commit between its sides may be to blame. Failing that, one will do that
    has all commits that may be to blame between its sides, and others too."""

    def __init__(self, explanations: Iterable[KeptExplanation], branch: Branch) -> None:
        self._branch, at = branch, branch.position
        there = [kept for kept in explanations if kept.base in at and kept.head in at]
        self._found = sorted(there, key=lambda kept: (-at[kept.head], -at[kept.base], -kept.date))
        self._commits = {sha: branch.all[at[sha]] for kept in there for sha in (kept.base, kept.head)}
        self._between = [self._suspects(kept.base, kept.head) for kept in self._found]
        """Empty where it was explained backwards."""

    def _suspects(self, good: str, last: str) -> frozenset[str]:
        return frozenset(commit.sha for commit in self._branch.suspects(good, last))

    @property
    def shown(self) -> tuple[Account, ...]:
        """All of them, as data of the page."""
        return tuple(
            Account(
                params=", ".join(kept.found.case.params),
                metric=kept.found.comparison.metric.name,
                machine=kept.machine,
                environment=kept.environment,
                base=self._branch.shown(self._commits[kept.base]),
                head=self._branch.shown(self._commits[kept.head]),
                date=kept.date,
                found=kept.found,
            )
            for kept in self._found
        )

    def of_event(self, event: Event, where: Where) -> Event:
        """The event with its cause, preferably of the case that stands for it and from the place where it was largest."""
        if not self._found:
            return event
        alike = [at for at, kept in enumerate(self._found) if _is_of(kept, event.metric, event.moved)]
        return event._replace(told=self._best(alike, event, event.params, where))

    def of_line(self, line: Line, where: Where) -> Line:
        """The line with the causes of its changes."""
        if not self._found:
            return line
        params = ", ".join(line.params)
        changes = []
        for change in line.changes:
            alike = [
                at
                for at, kept in enumerate(self._found)
                if _is_of(kept, line.metric, change.moved) and kept.found.case.params == line.params
            ]
            changes.append(replace(change, told=self._best(alike, change, params, where)))
        return replace(line, changes=tuple(changes))

    def _best(self, alike: Sequence[int], change: Event | Change, params: str, where: Where) -> Told | None:
        """The explanation that says most about the change, of those with these numbers."""
        if not alike:
            return None
        commits = self._branch.commits
        blamed = self._suspects(commits[change.good].sha, commits[change.last].sha)
        told = [candidate for at in alike if (candidate := self._told(at, blamed, params, where)) is not None]
        return min(told, key=self._rank, default=None)

    def _told(self, at: int, blamed: frozenset[str], params: str, where: Where) -> Told | None:
        between, kept = self._between[at], self._found[at]
        if not between or not (between <= blamed or blamed <= between):
            return None
        causes = kept.found.explanation.causes if kept.found.explanation is not None else ()
        machine, _, environment = where
        other = [word for word, own in ((kept.machine, machine), (kept.environment, environment)) if word != own]
        own = ", ".join(kept.found.case.params)
        return Told(
            at=at,
            text=causes[0].text if causes else UNKNOWN,
            confidence=causes[0].confidence if causes else "",
            base=kept.base[:SHA_DIGITS],
            head=kept.head[:SHA_DIGITS],
            wider=not between <= blamed,
            params=own if own != params else "",
            where=" ".join(other),
        )

    def _rank(self, told: Told) -> tuple[bool, bool, bool, int, float, float]:
        """Sorts the explanations of one change, the closest first."""
        kept, size = self._found[told.at], len(self._between[told.at])
        ratio = kept.found.comparison.ratio
        moved = abs(math.log(ratio)) if ratio else 0.0
        return told.wider, bool(told.params), bool(told.where), size, -moved, -kept.date


def _is_of(kept: KeptExplanation, metric: str, moved: str) -> bool:
    about = kept.found.comparison
    return about.metric.name == metric and str(about.verdict) == moved
