"""The groups of a sweep: which commits are measured in turn next, and which others are measured again beside them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import cached_property

from regress.commands.sweep.cards import anchors, has_several, spread
from regress.commands.sweep.choosing import Chosen
from regress.commands.sweep.done import Suite
from regress.commands.sweep.order import next_places
from regress.compare.rule import host_gates
from regress.history import Store
from regress.model import Case, Commit, Side
from regress.session import Session
from regress.trends.events import events_in

GROUP = 4
"""Commits that are measured in turn, on a card: so far apart in time lie the rounds of one of them."""

Again = dict[Side, Collection[Case] | None]
"""What is measured again, and which of its cases; None for all."""


def side_of(commit: Commit, environment: str) -> Side:
    """The side of a commit that is measured for the first time."""
    return Side(commit.short, commit, "", environment)


class Groups:
    """The groups of one sweep. `lacking` is what each commit lacks by now; `given` is what is to stand in every group, where
    who asks for the sweep says so."""

    def __init__(
        self,
        session: Session,
        chosen: Chosen,
        suite: Suite,
        recorded: Collection[str],
        lacking: Mapping[str, Mapping[Case, int]],
        environment: str,
        size: int,
        given: Commit | None,
    ) -> None:
        self._session, self._chosen, self._suite = session, chosen, suite
        self._recorded, self._lacking = recorded, lacking
        self._environment, self._size, self._given = environment, size, given
        self.place = {commit.sha: at for at, commit in enumerate(chosen.line)}
        self.several = given is not None or has_several(session)
        """Whether several cards of the machine have a part in its history."""
        self.unbuilt: set[Commit] = set()
        """Those that were to be measured again, and did not build."""

    def next(self, left: Collection[str]) -> list[Commit]:
        """The commits that are measured next, the oldest first, as many on each card; all of them lack the same."""
        left, line = set(left), self._chosen.line
        if not left:
            return []
        if (anchor := self._anchor) is not None and len(left) > 1:  # it is measured along with them
            left.discard(anchor.sha)
        count = self._size * self._cards
        changed = self._changed() if len(left) > count else ()
        (first,) = next_places([commit.sha in left for commit in line], changed, 1)
        alike = {sha for sha in left if self._lacking[sha] == self._lacking[line[first].sha]}
        places = next_places([commit.sha in alike for commit in line], changed, count)
        return [line[place] for place in sorted(places)]

    def parts(
        self, group: Sequence[Commit], measured: Sequence[Commit], *, alone: bool = False
    ) -> tuple[list[list[Side]], Again]:
        """What each card measures of the group, and which of that is measured again; with `alone` on one card nothing is.
        `measured` are the commits that the sweep has measured before."""
        if self.several:
            return self._on_cards(group)
        beside = {} if alone else self._beside(group, measured)
        again: Again = {
            replace(self._side(commit), name=f"{commit.short} again", beside=group[-1].sha): cases
            for commit, cases in beside.items()
        }
        return [[*again, *map(self._side, group)]], again

    def _side(self, commit: Commit) -> Side:
        return side_of(commit, self._environment)

    @property
    def _cards(self) -> int:
        return max(1, len(self._session.devices.named))

    def _changed(self) -> set[int]:
        """Places of commits that a large change may be due to."""
        machine = self._session.machine.name
        changes = events_in(self._session, self._chosen.histories, self._suite.names, machine).changes
        return {self.place[sha] for change in changes if change.point.large for sha in change.point.blamed}

    # -- on one card -----------------------------------------------------------------------------------------------------

    def _beside(self, group: Sequence[Commit], measured: Sequence[Commit]) -> dict[Commit, Collection[Case] | None]:
        """What is measured again beside the newest commit of the group, and which of its cases; None for all.

        Beside commits that are newer than all measured ones these are the last head and the last release, which show whether
        the machine is what it was. Beside every group it is one and the same older commit, in what the host's clock decides: by
        their ratios to it all commits are compared, however far apart they were measured.
        """
        newest = group[-1]
        chosen: dict[Commit, Collection[Case] | None] = {}
        before = [
            commit for commit in self._chosen.line if commit.sha in self._recorded and commit.sha not in self._lacking
        ]
        older = [commit for commit in before if self.place[commit.sha] < self.place[newest.sha]]
        tags = self._session.repository.releases.of(self._chosen.line)
        releases = [commit for commit in before if commit.sha in tags]
        whole = self._lacking[newest.sha] == dict.fromkeys(self._suite.cases, self._suite.rounds)
        new = whole and not measured and bool(older) and older[-1] == before[-1]
        if new and not self._remeasured_beside(newest.sha):
            chosen.update(dict.fromkeys([*releases[-1:], older[-1]]))
        fixed = next(iter([*releases[-1:], *before[:1], *measured[:1]]), None)
        if fixed is not None and fixed not in group and fixed not in self.unbuilt:
            in_turn = self._in_turn(fixed, gating=not new) & self._lacking[newest.sha].keys()
            if in_turn:
                chosen.setdefault(fixed, in_turn)
        return chosen

    def _in_turn(self, commit: Commit, gating: bool) -> set[Case]:
        """The cases of a measured commit that take windows in turn with others', with `gating` those that fail a check for what
        comes of it."""
        settings, machine = self._session.config.settings, self._session.machine.name
        return {
            case
            for recorded in Store(self._session.config.results_dir).load(commit.sha, machine).recorded
            for round in recorded.rounds
            if round.protocol is not None and round.protocol.short_windows
            for case in [Case(round.name, tuple(round.params))]
            if not gating or host_gates(round.protocol.metric, case, recorded.benchmarks.get(round.name), settings)
        }

    def _remeasured_beside(self, sha: str) -> bool:
        anchors = Store(self._session.config.results_dir).anchors(self._session.machine.name)
        return any(anchor.beside == sha for anchor in anchors)

    # -- on several cards ------------------------------------------------------------------------------------------------

    @property
    def _anchor(self) -> Commit | None:
        """What stands in the groups of all cards, where there are several."""
        return next((anchor for anchor in self._best_anchors if anchor not in self.unbuilt), None)

    @cached_property
    def _best_anchors(self) -> list[Commit]:
        if self._given is not None or not self.several:
            return [self._given] if self._given is not None else []
        line, suite = self._chosen.line, self._suite
        lacking = [commit for commit in line if commit.sha in self._lacking]
        return anchors(self._session, line, suite.names, suite.environment, lacking)

    def _on_cards(self, group: Sequence[Commit]) -> tuple[list[list[Side]], Again]:
        """What each card measures of the group, and which of that is the anchor, whose rounds are results of its own: what
        several cards have read of one commit."""
        parts, again = list[list[Side]](), Again()
        for number, own in enumerate(spread(group, self._cards), 1):
            sides = list(map(self._side, own))
            if self._anchor is not None and self._anchor not in own:
                side = replace(self._side(self._anchor), name=f"{self._anchor.short} again {number}")
                again[side] = None
                sides.insert(0, side)
            parts.append(sides)
        return parts, again
