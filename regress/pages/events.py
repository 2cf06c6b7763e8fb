"""Change points that are one event: of one metric of a benchmark, in one direction, in blamed ranges that overlap, whatever the
case and the place. And events of many benchmarks that are one shift."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from regress.acks.project import REASON
from regress.history import Store
from regress.model import ChangePoint, Verdict
from regress.pages import SHA_DIGITS, Change, Event, PagePlace, PageShift, Where
from regress.pages.branch import MOST_SUSPECTS, Branch
from regress.pages.lines import Levelled, change_of
from regress.text.wording import quoted
from regress.trends.manner import Manners
from regress.trends.shifts import Moved, Range, Shifted, at_one_commit, reasons, shifts_of, stood

MOST_COMMITS = 5
"""Newest commits with changes whose results are read for how they were measured."""


@dataclass(frozen=True)
class _Member:
    """One change point, and where it was found."""

    curve: Levelled
    point: ChangePoint
    place: int
    change: Change


def events_of(
    name: str, lines: Sequence[tuple[Levelled, int]], branch: Branch, commands: frozenset[str]
) -> tuple[Event, ...]:
    """The events of one benchmark; `lines` are its series, each with its place."""
    groups: dict[tuple[str, str], list[_Member]] = {}
    for curve, place in lines:
        for point in curve.changes:
            member = _Member(curve, point, place, change_of(point, curve.at))
            groups.setdefault((curve.series.metric.name, member.change.moved), []).append(member)
    alike: dict[str, list[tuple[Levelled, int]]] = {}
    for line in lines:
        alike.setdefault(line[0].series.metric.name, []).append(line)
    return tuple(
        _event(name, members, to_blame, alike[metric], branch, commands)
        for (metric, _), group in groups.items()
        for members, to_blame in _together(group)
    )


def _together(members: Sequence[_Member]) -> list[tuple[list[_Member], Range]]:
    """Members whose blamed ranges overlap, and what these have in common; an event has at most one change of a series."""
    ranges = {at: (member.change.good, member.change.last) for at, member in enumerate(members)}
    groups = at_one_commit(ranges, lambda at: id(members[at].curve))
    return [(own := [members[at] for at in group], _to_blame(own, common)) for group, common in groups]


def _to_blame(members: Iterable[_Member], common: Range) -> Range:
    """What all ranges have in common, extended to the likeliest commit of each: a range misses its commit now and then, so the
    intersection of many may contain the answer of none."""
    low, high = common
    for member in members:
        likeliest, measured = member.change.first, member.curve.measured
        before = measured[bisect_left(measured, likeliest) - 1]
        if before >= common[1]:
            high = max(high, likeliest)
        elif likeliest <= common[0]:
            low = min(low, before)
    return low, high


def _event(
    name: str,
    members: Sequence[_Member],
    to_blame: Range,
    lines: Sequence[tuple[Levelled, int]],
    branch: Branch,
    commands: frozenset[str],
) -> Event:
    worst = max(members, key=_size)
    point, change, series = worst.point, worst.change, worst.curve.series
    good, last = to_blame
    first = min(max(change.first, good + 1), last)
    suspects = branch.suspects(branch.commits[good].sha, branch.commits[last].sha)
    ratios = [member.change.ratio for member in members if member.change.ratio is not None]
    recovered = [member.point.recovered_by for member in members]
    held = {member.place for member in members if not member.point.recovered_by}
    seen = [place for curve, place in lines if curve.measured[0] <= good and curve.latest >= last]
    return Event(
        benchmark=0,
        params=", ".join(series.case.params),
        metric=series.metric.name,
        unit=series.metric.unit,
        place=worst.place,
        moved=str(point.moved),
        state=_state(members),
        large=any(member.point.large for member in members),
        gates=any(member.curve.gates_at(member.point) for member in members),
        threshold=point.threshold,
        first=first,
        good=good,
        last=last,
        suspects=tuple(branch.shown(suspect) for suspect in suspects[-MOST_SUSPECTS:]),
        suspects_n=len(suspects),
        ratio=change.ratio,
        low=change.low,
        high=change.high,
        least=min(ratios, default=None),
        most=max(ratios, default=None),
        before=change.before,
        after=change.after,
        cases=len({member.curve.series.case for member in members}),
        of_cases=len({curve.series.case for curve, _ in lines}),
        places=tuple(dict.fromkeys(sorted(member.place for member in members))),
        of_places=tuple(dict.fromkeys(sorted(seen))),
        recovered_by=max(branch.at[sha] for sha in recovered) if all(recovered) else None,
        commands=_commands(str(series.case), series.metric.name, branch, (good, first, last), len(suspects), commands)
        | _accepting(name, members, commands),
        reasons=point.reasons,
        acknowledged=_acknowledged(worst.point),
        held=tuple(sorted({member.place for member in members if member.point.is_open} or held)),
        stood=_stood(members, lines, branch.commits[good].sha, branch.commits[last].sha),
        undoes=_undone(worst),
    )


def _stood(members: Sequence[_Member], lines: Sequence[tuple[Levelled, int]], good: str, last: str) -> tuple[int, ...]:
    """The places in which a case of it was measured and did not move."""
    moved, cases = {member.place for member in members}, {member.curve.series.case for member in members}
    others = [(curve, place) for curve, place in lines if place not in moved and curve.series.case in cases]
    return tuple(sorted({place for curve, place in others if stood(curve.series, curve.changes, good, last)}))


def _undone(member: _Member) -> tuple[int, int] | None:
    """Good and last commit of the change that it took back."""
    points = (point for point in member.curve.changes if point.first == member.point.undoes)
    return next(((member.curve.at[point.good], member.curve.at[point.blamed[-1]]) for point in points), None)


def _size(member: _Member) -> tuple[bool, bool, float]:
    """Sorts members: the one that stands for the event is open if any is, then large if any is, then the largest."""
    ratio = member.change.ratio
    return member.point.is_open, member.point.large, abs(math.log(ratio)) if ratio else math.inf


def _state(members: Sequence[_Member]) -> str:
    every = [member.point for member in members]
    points = [point for point in every if point.large] or every  # what is small elsewhere keeps nothing large open
    if points[0].moved is not Verdict.REGRESSED:
        return "tentative" if all(point.state == "tentative" for point in points) else points[0].state
    if any(point.is_open for point in points):
        return "open"
    held = [point for point in points if not point.recovered_by]
    if not held:
        return "recovered"
    if any(point.acknowledged is not None for point in held):
        return "acknowledged"
    states = {point.state for point in held}
    return "open" if "confirmed" in states else "tentative" if "tentative" in states else "relapsed"


def _acknowledged(point: ChangePoint) -> tuple[str, str] | None:
    """In words, and a link, which is harmless as only a web address is one."""
    entry = point.acknowledged
    if entry is None:
        return None
    return entry.words, entry.link if entry.link.startswith(("https://", "http://")) else ""


def _accepting(name: str, members: Sequence[_Member], available: frozenset[str]) -> dict[str, str]:
    """The command that acknowledges what is open."""
    opened = [member for member in members if member.point.is_open]
    if not opened or "ack" not in available:
        return {}
    worst = max(opened, key=_size)
    series = worst.curve.series
    what = str(series.case) if len({member.curve.series.case for member in opened}) == 1 else name
    words = ("regress", "ack", what, "--metric", series.metric.name, "--since", worst.point.good[:SHA_DIGITS])
    return {"ack": f"{quoted(*words)} {REASON}"}


def _commands(
    case: str, metric: str, branch: Branch, ends: tuple[int, int, int], suspects: int, available: frozenset[str]
) -> dict[str, str]:
    """What can be run next, without commands that this program lacks. `ends` are good, first and last."""
    sha = [branch.commits[at].short for at in ends]
    every = {
        "bisect": quoted("regress", "bisect", case, sha[0], sha[2], "--metric", metric),
        "explain": quoted("regress", "explain", case, sha[0], sha[1]),
        "check": quoted("regress", "check", sha[0], sha[1], "-b", case),
    }
    if suspects < 2:
        del every["bisect"]  # there is no range to look for it in
    return {word: text for word, text in every.items() if word in available}


# -- events of many benchmarks that are one ------------------------------------------------------------------------------


def with_shifts(
    events: Sequence[Event], names: Sequence[str], places: Sequence[PagePlace], branch: Branch
) -> tuple[list[Event], tuple[PageShift, ...]]:
    """The events, each with the number of its shift, and the shifts; `names` are those of the benchmarks."""
    counted = [at for at, event in enumerate(events) if event.large and event.gates and event.state != "gone"]
    sites = [(at, place) for at in counted for place in events[at].places]
    wheres = [(place.machine, place.device, place.environment) for place in places]
    moved = [_moved(events[at], place, names, wheres) for at, place in sites]
    done, shifts = list(events), list[PageShift]()
    for shift in shifts_of(moved):
        own = [sites[member] for member in shift.members if done[sites[member][0]].shift is None]
        for at, _ in own:
            done[at] = done[at]._replace(shift=len(shifts))
        if own:
            shifts.append(_shift(shift, own[0][1], [events[at] for at, _ in own], branch))
    return done, tuple(shifts)


def _moved(event: Event, place: int, names: Sequence[str], wheres: Sequence[Where]) -> Moved:
    everywhere, quiet = (frozenset(wheres[number] for number in numbers) for numbers in (event.places, event.stood))
    return Moved(names[event.benchmark], wheres[place], (event.good, event.last), everywhere, quiet, event.undoes)


def _shift(shift: Shifted, place: int, events: Sequence[Event], branch: Branch) -> PageShift:
    before = branch.commits[shift.undoes[0]].short if shift.undoes is not None else ""
    said = reasons(shift, before, [[event.note] for event in events])
    return PageShift(place, *shift.range, len({event.benchmark for event in events}), shift.suspect, said)


def with_notes(
    events: Sequence[Event], names: Sequence[str], places: Sequence[PagePlace], store: Store, branch: Branch
) -> list[Event]:
    """The events, with a note if the way they are measured changed at the same commit."""
    manners = Manners(store)
    newest = sorted({event.first for event in events if event.large and event.gates}, reverse=True)[:MOST_COMMITS]
    done = []
    for event in events:
        note = ""
        if event.large and event.gates and event.first in newest:
            where, case = places[event.place], (names[event.benchmark], event.params)
            ends = branch.commits[event.good].sha, branch.commits[event.first].sha
            note = manners.changes(where.machine, where.environment, case, event.metric, ends)
        done.append(event._replace(note=note))
    return done
