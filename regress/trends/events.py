"""What changed over the recorded commits and what stopped giving numbers, which of that is new, and what the machine did."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from regress.acks.project import review
from regress.history import Store, confirmed_in
from regress.model import (
    Anchor,
    AnchorCheck,
    Breakage,
    Case,
    Changed,
    ChangePoint,
    Commit,
    Failure,
    Series,
    Shift,
    Side,
)
from regress.project import Project
from regress.trends import Anchors, anchor_check, anchors_of, breakages_of, key_of, numberless, past_of
from regress.trends.cards import CardLevel, Read, card_levels, read_by
from regress.trends.changes import lacking
from regress.trends.gating import gating, that_gate
from regress.trends.manner import Manners
from regress.trends.shifts import FEWEST, Moved, Shifted, Where, at_one_commit, reasons, shifts_of, stood


@dataclass(frozen=True)
class Events:
    """What the history of some benchmarks says, the newest last."""

    changes: tuple[Changed, ...]
    breakages: tuple[Breakage, ...]
    shifts: tuple[Shift, ...] = ()
    """Which of the changes are one event."""
    numberless: frozenset[Case] = frozenset()
    """What has never given a number and fails: no event, as nothing has stopped."""
    cards: tuple[CardLevel, ...] = ()
    """Of kinds of which several cards have measured: how they stand to each other."""
    lacking: Mapping[Case, int] = field(default_factory=dict)
    """By case that has numbers: how many more results it needs before a change of its own metric can be found."""


def events_on(project: Project, line: Sequence[Commit], names: Collection[str] | None, machine: str | None) -> Events:
    """The change points of these benchmarks on a machine, each None for all, over the commits of `line`, in what gates, and
    the cases that stopped giving numbers. Acknowledged ones say so."""
    config = project.config
    entries = review(project, Side("head", line[-1], "")) if line else None
    past = past_of(config.results_dir, project.cache, line, config.settings, machine)
    again, releases = Store(config.results_dir).anchors(machine), project.repository.releases_in(line)
    anchors = Anchors(again, config.settings, confirmed_in(project.cache), releases)
    by_sha = {each.sha: each for each in line}
    found: list[Changed] = []
    broken: list[Breakage] = []
    never: set[Case] = set()
    read: list[Read] = []
    newest: dict[Case, tuple[int, int]] = {}
    for name in past.names:
        if names is not None and name not in names:
            continue
        every = past.series(name)
        never |= numberless(every)
        read += read_by(every)
        stopped = breakages_of(every, line)
        broken += entries.of_breakages(stopped) if entries is not None else stopped
        for series in every:
            if series.primary and any(series.rounds):
                latest = series.at[-1], lacking(series)
                newest[series.case] = max(latest, newest.get(series.case, latest), key=lambda each: (each[0], -each[1]))
            at = gating(series, every)
            if at is None or at:
                points = anchors.changes_of(series)
                points = entries.of_changes(series, points) if entries is not None else points
                found += [_changed(series, each, by_sha) for each in that_gate(points, at)]
    place = {each.sha: at for at, each in enumerate(line)}
    return Events(
        tuple(sorted(found, key=lambda each: place[each.point.first])),
        tuple(sorted(broken, key=lambda each: place[each.first.sha])),
        numberless=frozenset(never),
        cards=tuple(card_levels(read, config.settings)),
        lacking={case: lacks for case, (_, lacks) in newest.items()},
    )


def events_in(
    project: Project, histories: Sequence[Sequence[Commit]], names: Collection[str] | None, machine: str | None
) -> Events:
    """The same for several histories with a common part: an event of that part is listed once, as the first history has it."""
    first, *others = [events_on(project, each, names, machine) for each in histories]
    known = {each.sha for each in histories[0]}
    for found, history in zip(others, histories[1:], strict=True):
        first = Events(
            (*first.changes, *(each for each in found.changes if each.point.first not in known)),
            (*first.breakages, *(each for each in found.breakages if each.first.sha not in known)),
            numberless=(first.numberless - found.lacking.keys()) | (found.numberless - first.lacking.keys()),
            lacking={**found.lacking, **first.lacking},
            cards=first.cards or found.cards,
        )
        known.update(each.sha for each in history)
    return first


def by_history(
    changes: Sequence[Changed], histories: Sequence[Sequence[Commit]]
) -> Iterator[tuple[Sequence[Commit], list[Changed]]]:
    """Each history with those of the changes that it tells, see `events_in`."""
    known: set[str] = set()
    for history in histories:
        own = {each.sha for each in history} - known
        known |= own
        yield history, [each for each in changes if each.point.first in own]


def with_shifts(project: Project, histories: Sequence[Sequence[Commit]], found: Events) -> Events:
    """The same, with those of the changes that are one event."""
    shifts = [
        each for history, own in by_history(found.changes, histories) for each in shifts_in(project, history, own)
    ]
    return replace(found, shifts=tuple(shifts))


def _changed(series: Series, point: ChangePoint, commits: dict[str, Commit]) -> Changed:
    blamed = tuple(commits[sha] for sha in point.blamed)
    return Changed(series.case, series.metric, series.machine, series.environment, series.device, point, blamed)


def anchors_beside(
    project: Project, line: Sequence[Commit], names: Collection[str], machine: str, beside: Commit
) -> list[AnchorCheck]:
    """What the commits show that were measured again beside that one, in what gates and is not corrected for the machine; the
    oldest first. Of one that shows nothing else, nothing is said."""
    config = project.config
    store = Store(config.results_dir)
    again = [each for each in store.anchors(machine) if each.beside == beside.sha]
    anchors, past = (
        Anchors(again, config.settings),
        past_of(config.results_dir, project.cache, line, config.settings, machine),
    )
    found: dict[str, list[tuple[Series, Anchor]]] = {each.recorded.commit_sha: [] for each in again}
    corrected: set[str] = set()
    for name in (each for each in past.names if each in names):
        every = past.series(name)
        for series in (each for each in every if gating(each, every) is None):
            for anchor in anchors_of(series, anchors.of(name).get(key_of(series), ())):
                if series.corrected:
                    corrected.add(anchor.commit)
                else:
                    found[anchor.commit].append((series, anchor))
    tags = project.repository.releases_in(line)
    return [
        anchor_check(
            commit,
            beside,
            ", ".join(tags.get(commit.sha, ())),
            _recorded_at(store, commit.sha, machine),
            found[commit.sha],
            config.settings,
        )
        for commit in line
        if found.get(commit.sha) or commit.sha in found.keys() - corrected
    ]


def _recorded_at(store: Store, sha: str, machine: str) -> float | None:
    rounds = [round for each in store.load(sha, machine).recorded for round in each.rounds if round.values]
    return min((each.started_at for each in rounds if each.started_at), default=None)


def marked_new(before: Events, after: Events) -> Events:
    """Those of `after`, each marked as new unless `before` has one of the same series and direction that may be the same event.

    What was tentative or small and is open now is new: it has not been reported as a regression.
    """
    known: dict[tuple[object, ...], list[Changed]] = {}
    for each in before.changes:
        known.setdefault(_series(each), []).append(each)
    return replace(
        after,
        changes=tuple(
            replace(each, new=not any(_same(old, each) for old in known.get(_series(each), ())))
            for each in after.changes
        ),
        breakages=tuple(
            replace(each, new=each.acknowledged is None and not any(_is_it(old, each) for old in before.breakages))
            for each in after.breakages
        ),
        numberless=after.numberless - before.numberless,
    )


def with_failures(project: Project, found: Sequence[Breakage]) -> tuple[Breakage, ...]:
    """The same, each with what it said at its first commit without a number."""
    store, said = Store(project.config.results_dir), dict[tuple[object, ...], Failure]()
    for sha in {each.first.sha for each in found}:
        for recorded in store.load(sha).recorded:
            for each in recorded.rounds:
                if each.failure is not None:
                    case = Case(each.name, tuple(each.params))
                    said[sha, recorded.machine.name, recorded.environment, case] = each.failure
    return tuple(
        replace(one, failure=said.get((one.first.sha, one.machine, one.environment, one.case), one.failure))
        for one in found
    )


def shifts_in(project: Project, line: Sequence[Commit], changes: Sequence[Changed]) -> tuple[Shift, ...]:
    """Which of these changes, all that a machine has, are one event: by what the other places say of the same benchmarks."""
    own = [each for each in changes if each.point.large]
    if len({each.case.name for each in own}) < FEWEST:
        return ()
    config, place = project.config, {each.sha: at for at, each in enumerate(line)}
    past = past_of(config.results_dir, project.cache, line, config.settings)
    anchors = Anchors(Store(config.results_dir).anchors(), config.settings, confirmed_in(project.cache))
    moved: list[Moved] = []
    names = {each.case.name for each in own}
    every = {
        name: [(each, anchors.changes_of(each)) for each in past.series(name)] for name in past.names if name in names
    }
    for each in own:
        moved.append(_moved(each, every[each.case.name], place))
    found = [_shift(each, [own[at] for at in each.members], line) for each in shifts_of(moved)]
    return tuple(sorted(found, key=lambda each: place[each.good]))


def _moved(changed: Changed, every: Sequence[tuple[Series, Sequence[ChangePoint]]], place: Mapping[str, int]) -> Moved:
    """`every` are all series of the benchmark with their changes."""
    point, last = changed.point, changed.point.blamed[-1]
    ends = place[point.good], place[last]
    own = [each for each in every if each[0].metric.name == changed.metric.name]
    also = {
        _where(series)
        for series, points in own
        for one in points
        if one.moved is point.moved and place[one.good] < ends[1] and ends[0] < place[one.blamed[-1]]
    }
    alike = [(series, points) for series, points in own if series.case == changed.case]
    quiet = {_where(series) for series, points in alike if stood(series, points, point.good, last)}
    undone = [
        (place[one.good], place[one.blamed[-1]])
        for series, points in alike
        for one in points
        if _where(series) == _where(changed) and one.first == point.undoes
    ]
    places = frozenset(also), frozenset(quiet - also)
    return Moved(changed.case.name, _where(changed), ends, *places, next(iter(undone), None))


def _where(each: Series | Changed) -> Where:
    return each.machine, each.device, each.environment


def _shift(found: Shifted, changes: Sequence[Changed], line: Sequence[Commit]) -> Shift:
    good, last = found.range
    before = line[found.undoes[0]].short if found.undoes is not None else ""
    largest = sorted(changes, key=lambda each: -abs(math.log(each.point.ratio)) if each.point.ratio else -math.inf)
    said = reasons(found, before, [each.point.reasons for each in changes])
    machine, device, environment = _where(largest[0])
    return Shift(machine, environment, device, line[good].sha, tuple(line[good + 1 : last + 1]), tuple(largest), said)


def with_manners(project: Project, changes: Sequence[Changed]) -> tuple[Changed, ...]:
    """The changes; what is new says how its measuring changed at the same commit."""
    manners = Manners(Store(project.config.results_dir))
    done = []
    for each in changes:
        case, ends = (each.case.name, ", ".join(each.case.params)), (each.point.good, each.point.first)
        if each.new and each.point.large:
            note = manners.changes(each.machine, each.environment, case, each.metric.name, ends)
            said = (*each.point.reasons, note) if note else each.point.reasons
            each = replace(each, point=replace(each.point, reasons=said))
        done.append(each)
    return tuple(done)


def by_event(changes: Sequence[Changed], line: Sequence[Commit]) -> list[list[Changed]]:
    """The changes that a report counts as one, together: of one metric of a benchmark, one way, at one commit, in whatever case
    and place."""
    place, groups = {each.sha: at for at, each in enumerate(line)}, dict[object, list[Changed]]()
    for each in changes:
        groups.setdefault((each.case.name, each.metric.name, each.point.moved), []).append(each)
    found = []
    for own in groups.values():
        ranges = {at: (place[each.point.good], place[each.point.blamed[-1]]) for at, each in enumerate(own)}
        series = list(map(_series, own))
        found += [[own[at] for at in members] for members, _ in at_one_commit(ranges, series.__getitem__)]
    return found


def _series(changed: Changed) -> tuple[object, ...]:
    return (changed.case, changed.metric.name, changed.machine, changed.environment, changed.device)


def _same(old: Changed, new: Changed) -> bool:
    alike = old.point.moved is new.point.moved and (old.point.is_open or not new.point.is_open)
    return alike and not {each.sha for each in old.blamed}.isdisjoint(each.sha for each in new.blamed)


def _is_it(old: Breakage, new: Breakage) -> bool:
    alike = all(getattr(old, name) == getattr(new, name) for name in ("case", "machine", "environment", "device"))
    return alike and not {each.sha for each in old.blamed}.isdisjoint(each.sha for each in new.blamed)
