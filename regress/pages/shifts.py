"""Events of many benchmarks that are one: the shifts of a report, and how measuring changed where something moved."""

from __future__ import annotations

from collections.abc import Sequence

from regress.history import Store
from regress.pages import Event, PagePlace, PageShift, Where
from regress.pages.branch import Branch
from regress.trends.manner import Manners
from regress.trends.shifts import Moved, Shifted, reasons, shifts_of

MOST_COMMITS = 5
"""Commits at which something moved that are read for how it was measured, the newest ones."""


def with_shifts(
    events: Sequence[Event], names: Sequence[str], places: Sequence[PagePlace], branch: Branch
) -> tuple[list[Event], tuple[PageShift, ...]]:
    """The events, those of a shift with its number, and the shifts; `names` are those of the benchmarks."""
    counted = [at for at, each in enumerate(events) if each.large and each.gates and each.state != "gone"]
    sites = [(at, place) for at in counted for place in events[at].places]
    wheres = [(each.machine, each.device, each.environment) for each in places]
    moved = [_moved(events[at], place, names, wheres) for at, place in sites]
    done, shifts = list(events), list[PageShift]()
    for found in shifts_of(moved):
        own = [sites[each] for each in found.members if done[sites[each][0]].shift is None]
        for at, _ in own:
            done[at] = done[at]._replace(shift=len(shifts))
        if own:
            shifts.append(_shift(found, own[0][1], [events[at] for at, _ in own], branch))
    return done, tuple(shifts)


def _moved(event: Event, place: int, names: Sequence[str], wheres: Sequence[Where]) -> Moved:
    everywhere, quiet = (frozenset(wheres[each] for each in found) for found in (event.places, event.stood))
    return Moved(names[event.benchmark], wheres[place], (event.good, event.last), everywhere, quiet, event.undoes)


def _shift(found: Shifted, place: int, events: Sequence[Event], branch: Branch) -> PageShift:
    before = branch.commits[found.undoes[0]].short if found.undoes is not None else ""
    said = reasons(found, before, [[each.note] for each in events])
    return PageShift(place, *found.range, len({each.benchmark for each in events}), found.suspect, said)


def with_notes(
    events: Sequence[Event], names: Sequence[str], places: Sequence[PagePlace], store: Store, branch: Branch
) -> list[Event]:
    """The events, with how their measuring changed at the same commit."""
    manners = Manners(store)
    newest = sorted({each.first for each in events if each.large and each.gates}, reverse=True)[:MOST_COMMITS]
    done = []
    for event in events:
        note = ""
        if event.large and event.gates and event.first in newest:
            where, case = places[event.place], (names[event.benchmark], event.params)
            ends = branch.commits[event.good].sha, branch.commits[event.first].sha
            note = manners.changes(where.machine, where.environment, case, event.metric, ends)
        done.append(event._replace(note=note))
    return done
