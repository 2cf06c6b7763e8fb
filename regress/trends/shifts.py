"""Shifts: many unrelated benchmarks that moved at one commit, and what speaks for another cause than that commit.

A machine that was replaced, or an environment that was made again, moves many benchmarks at once there and none elsewhere, and
later it may move them back. Code seldom does this: it mostly moves one module, in all places alike. This is no proof, because
code may affect only one device, so a shift says what was seen and asks; its changes keep their verdicts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from regress.model import ChangePoint, Series
from regress.stats.changepoints import LEAST

FEWEST = 5
"""Fewest benchmarks of a shift: fewer may move together by chance."""
FAMILIES = 3
"""Fewest modules or classes that they come from: benchmarks of one module share code."""
MOST_ELSEWHERE = 0.2
"""Largest share of the benchmarks that may have moved in other places too; with more, the commit caused it."""
LEAST_BACK = 0.8
"""Smallest share of the benchmarks that are back at their earlier level, for all of them to count as back."""


Where = tuple[str, str, str]
"""Machine, device and environment."""
Range = tuple[int, int]
"""The commits around a change, as numbers: the newest one before it, and the first one that certainly has it."""


class Moved(NamedTuple):
    """One change of one benchmark, where it was seen."""

    benchmark: str
    place: Where
    range: Range
    moved: frozenset[Where]
    """All places in which the benchmark moved there."""
    stood: frozenset[Where]
    """Places in which it was measured too, and did not move."""
    undoes: Range | None
    """The range of the change that it took back."""


class Shifted(NamedTuple):
    """Changes that are one shift."""

    members: tuple[int, ...]
    """Their places among the changes given."""
    range: Range
    """What the ranges of all have in common."""
    suspect: str
    """The possible cause: "machine", "environment", or empty if the places do not differ in one."""
    stood: int
    """How many benchmarks of it were measured elsewhere too and did not move there."""
    undoes: Range | None
    """The range of what they took back, if they did."""


def shifts_of(moved: Sequence[Moved]) -> list[Shifted]:
    """The shifts among all changes of a history that count; a change is in one at most."""
    by_place: dict[Where, dict[int, Range]] = {}
    for at, change in enumerate(moved):
        by_place.setdefault(change.place, {})[at] = change.range
    groups = ((place, *group) for place, own in by_place.items() for group in at_one_commit(own))
    return [shift for group in groups if (shift := _shifted(*group, moved)) is not None]


def at_one_commit(
    ranges: Mapping[int, Range], whose: Callable[[int], object] = lambda at: at
) -> list[tuple[list[int], Range]]:
    """Groups of changes that one commit may have caused, with what their ranges have in common. A group has at most one change
    of the same `whose`, such as a series."""
    groups: list[tuple[list[int], Range]] = []
    for at, (low, high) in sorted(ranges.items(), key=lambda item: item[1][::-1]):
        for index, (members, (lowest, highest)) in enumerate(groups):
            common = max(lowest, low), min(highest, high)
            if common[0] < common[1] and whose(at) not in map(whose, members):
                groups[index] = [*members, at], common
                break
        else:
            groups.append(([at], (low, high)))
    return groups


def _shifted(place: Where, group: Sequence[int], common: Range, moved: Sequence[Moved]) -> Shifted | None:
    seen = frozenset().union(*(moved[at].moved | moved[at].stood for at in group))
    suspects = {
        "machine": frozenset(where for where in seen if where[:2] == place[:2]),
        "environment": frozenset(where for where in seen if where[2] == place[2]),
    }
    here, suspect, stood, against = list(group), "", 0, len(group) + 1
    for word, places in suspects.items():
        inside = [at for at in group if moved[at].moved <= places]
        apart = {moved[at].benchmark for at in inside if moved[at].stood - places}
        everywhere = _names(group, moved) - _names(inside, moved)
        held = sum(bool(moved[at].stood & places) for at in inside)  # of the same machine, say: then it is not that
        few = len(everywhere) <= MOST_ELSEWHERE * len(_names(group, moved))
        if _unrelated(apart) and few and held < against:
            here, suspect, stood, against = inside, word, len(apart), held
    taken, undone = _taken_back(here, moved)
    if undone is not None and not suspect:
        here = taken
    return Shifted(tuple(sorted(here)), common, suspect, stood, undone) if suspect or undone is not None else None


def _taken_back(group: Sequence[int], moved: Sequence[Moved]) -> tuple[list[int], Range | None]:
    """Those that took back what one commit had moved, and its range; empty unless most did and are unrelated."""
    ranges = {at: undoes for at in group if (undoes := moved[at].undoes) is not None}
    taken, common = max(at_one_commit(ranges), key=lambda item: len(item[0]), default=([], None))
    own, every = _names(taken, moved), _names(group, moved)
    return (taken, common) if _unrelated(own) and len(own) >= LEAST_BACK * len(every) else ([], None)


def _names(group: Iterable[int], moved: Sequence[Moved]) -> set[str]:
    return {moved[at].benchmark for at in group}


def _unrelated(names: Collection[str]) -> bool:
    return len(names) >= FEWEST and len({name.rpartition(".")[0] for name in names}) >= FAMILIES


def stood(series: Series, points: Iterable[ChangePoint], good: str, last: str) -> bool:
    """Whether the series was measured often enough on both sides of the commits after `good` up to `last` to show a change
    there, and has none."""
    place = {sha: at for at, sha in enumerate(series.commits)}
    low, high = place[good], place[last]
    if any(place[point.good] < high and low < place[point.blamed[-1]] for point in points):
        return False
    places = ([series.at[index] for index in own] for own in series.by_way.values())
    return any(sum(at <= low for at in own) >= LEAST <= sum(at >= high for at in own) for own in places)


def reasons(shift: Shifted, before: str, notes: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """Why the commit may not be the cause, in words. `before` names the newest commit before what the shift takes back; `notes`
    are those of each change, and notes that most changes share become notes of the shift."""
    where = "on other machines" if shift.suspect == "machine" else "in other environments"
    alone = f"{shift.stood} of them were measured {where} too and did not move there: was it the {shift.suspect}?"
    back = f"they are back at the level of {before}"
    often = Counter(note for own in notes for note in own)
    shared = (note for note, n in often.items() if note and 2 * n > len(notes))
    return (*([alone] if shift.suspect else []), *([back] if shift.undoes is not None else []), *shared)
