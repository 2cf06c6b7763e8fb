"""Shifts: many unrelated benchmarks that moved at one commit, and what speaks for another cause than that commit.

A machine that became another one, or an environment that was made anew, moves much at once, and nothing of it elsewhere; what
it once moved it also moves back. Code seldom does: what it moves is mostly of one module, and the same in all places. None of
this is a proof, as code may be about one device only, so a shift says what was seen and asks; its changes stay what they are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from typing import NamedTuple

from regress.model import ChangePoint, Series
from regress.stats.changepoints import LEAST

FEWEST = 5
"""Benchmarks that move together: fewer may by chance."""
FAMILIES = 3
"""Of so many modules or classes, at least: those of one share code."""
MOST_ELSEWHERE = 0.2
"""Share of the benchmarks that moved in a place which may have moved in others too; with more, the commit did it."""
LEAST_BACK = 0.8
"""Share of the benchmarks that are back at the level of before, so that it is that of them all."""


Range = tuple[int, int]
"""Between which commits a change happened, as numbers, the oldest first: the newest before it, and the first that has it for
certain."""


class Moved(NamedTuple):
    """One change of one benchmark, where it was seen."""

    benchmark: str
    place: Hashable
    range: Range
    elsewhere: bool
    """Whether the benchmark moved there in another place, too."""
    stood: bool
    """Whether it was measured in another place too, and did not move there."""
    undoes: Range | None
    """Of the change that it took back."""


class Shifted(NamedTuple):
    """Changes that are one shift."""

    members: tuple[int, ...]
    """Their numbers among those that were given."""
    range: Range
    """What they have in common."""
    stood: int
    """How many benchmarks of it were measured elsewhere too and did not move there; 0 where that does not tell this place from
    others."""
    undoes: Range | None
    """Of what they take back, where they do."""


def shifts_of(moved: Sequence[Moved]) -> list[Shifted]:
    """The shifts among all changes of a history that count; a change is in one at most."""
    by_place: dict[Hashable, dict[int, Range]] = {}
    for at, each in enumerate(moved):
        by_place.setdefault(each.place, {})[at] = each.range
    groups = (group for own in by_place.values() for group in _at_one_commit(own))
    return [found for group, common in groups if (found := _shifted(group, common, moved)) is not None]


def _at_one_commit(ranges: Mapping[int, Range]) -> list[tuple[list[int], Range]]:
    """Which of them one commit may be to blame for, and what their ranges have in common."""
    groups: list[tuple[list[int], Range]] = []
    for at, (low, high) in sorted(ranges.items(), key=lambda each: each[1][::-1]):
        for index, (members, (lowest, highest)) in enumerate(groups):
            common = max(lowest, low), min(highest, high)
            if common[0] < common[1]:
                groups[index] = [*members, at], common
                break
        else:
            groups.append(([at], (low, high)))
    return groups


def _shifted(group: Sequence[int], common: Range, moved: Sequence[Moved]) -> Shifted | None:
    here = [at for at in group if not moved[at].elsewhere]
    stood = {moved[at].benchmark for at in here if moved[at].stood}
    everywhere = _names(group, moved) - _names(here, moved)
    if not _unrelated(stood) or len(everywhere) > MOST_ELSEWHERE * len(_names(group, moved)):
        here, stood = list(group), set()
    taken, undone = _taken_back(here, moved)
    if undone is not None and not stood:
        here = taken
    return Shifted(tuple(sorted(here)), common, len(stood), undone) if stood or undone is not None else None


def _taken_back(group: Sequence[int], moved: Sequence[Moved]) -> tuple[list[int], Range | None]:
    """Those that took back what one commit had moved, and where that was; nothing unless most did, and are unrelated."""
    ranges = {at: undoes for at in group if (undoes := moved[at].undoes) is not None}
    taken, common = max(_at_one_commit(ranges), key=lambda each: len(each[0]), default=([], None))
    own, every = _names(taken, moved), _names(group, moved)
    return (taken, common) if _unrelated(own) and len(own) >= LEAST_BACK * len(every) else ([], None)


def _names(group: Iterable[int], moved: Sequence[Moved]) -> set[str]:
    return {moved[at].benchmark for at in group}


def _unrelated(names: Collection[str]) -> bool:
    return len(names) >= FEWEST and len({each.rpartition(".")[0] for each in names}) >= FAMILIES


def stood(series: Series, points: Iterable[ChangePoint], good: str, last: str) -> bool:
    """Whether the series was measured often enough on both sides of the commits after `good` up to `last` to show a change
    there, and has none."""
    place = {sha: at for at, sha in enumerate(series.commits)}
    low, high = place[good], place[last]
    if any(place[each.good] < high and low < place[each.blamed[-1]] for each in points):
        return False
    places = ([series.at[index] for index in own] for own in series.by_way.values())
    return any(sum(at <= low for at in each) >= LEAST <= sum(at >= high for at in each) for each in places)


def reasons(found: Shifted, before: str, notes: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """What speaks for another cause than the commit, in words. `before` names the newest commit before what it takes back;
    `notes` are what is said of each change, and what is said of most is said of the shift."""
    alone = f"{found.stood} of them were measured in other places too and did not move there: was it the machine?"
    back = f"they are back at the level of {before}"
    often = Counter(each for own in notes for each in own)
    shared = (each for each, n in often.items() if each and 2 * n > len(notes))
    return (*([alone] if found.stood else []), *([back] if found.undoes is not None else []), *shared)
