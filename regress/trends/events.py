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
    again, releases = Store(config.results_dir).anchors(machine), project.repository.releases.of(line)
    anchors = Anchors(again, config.settings, confirmed_in(project.cache), releases)
    by_sha = {commit.sha: commit for commit in line}
    changes: list[Changed] = []
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
                newest[series.case] = max(latest, newest.get(series.case, latest), key=lambda end: (end[0], -end[1]))
            at = gating(series, every)
            if at is None or at:
                points = anchors.changes_of(series)
                points = entries.of_changes(series, points) if entries is not None else points
                changes += [_changed(series, point, by_sha) for point in that_gate(points, at)]
    place = {commit.sha: at for at, commit in enumerate(line)}
    return Events(
        tuple(sorted(changes, key=lambda change: place[change.point.first])),
        tuple(sorted(broken, key=lambda breakage: place[breakage.first.sha])),
        numberless=frozenset(never),
        cards=tuple(card_levels(read, config.settings)),
        lacking={case: lacks for case, (_, lacks) in newest.items()},
    )


def events_in(
    project: Project, histories: Sequence[Sequence[Commit]], names: Collection[str] | None, machine: str | None
) -> Events:
    """The same for several histories with a common part: an event of that part is listed once, as the first history has it."""
    first, *others = [events_on(project, history, names, machine) for history in histories]
    known = {history.sha for history in histories[0]}
    for other, history in zip(others, histories[1:], strict=True):
        first = Events(
            (*first.changes, *(change for change in other.changes if change.point.first not in known)),
            (*first.breakages, *(breakage for breakage in other.breakages if breakage.first.sha not in known)),
            numberless=(first.numberless - other.lacking.keys()) | (other.numberless - first.lacking.keys()),
            lacking={**other.lacking, **first.lacking},
            cards=first.cards or other.cards,
        )
        known.update(commit.sha for commit in history)
    return first


def by_history(
    changes: Sequence[Changed], histories: Sequence[Sequence[Commit]]
) -> Iterator[tuple[Sequence[Commit], list[Changed]]]:
    """Each history with those of the changes that it tells, see `events_in`."""
    known: set[str] = set()
    for history in histories:
        own = {commit.sha for commit in history} - known
        known |= own
        yield history, [change for change in changes if change.point.first in own]


def with_shifts(project: Project, histories: Sequence[Sequence[Commit]], events: Events) -> Events:
    """The same, with those of the changes that are one event."""
    shifts = [
        shift for history, own in by_history(events.changes, histories) for shift in shifts_in(project, history, own)
    ]
    return replace(events, shifts=tuple(shifts))


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
    again = [anchor for anchor in store.anchors(machine) if anchor.beside == beside.sha]
    anchors, past = (
        Anchors(again, config.settings),
        past_of(config.results_dir, project.cache, line, config.settings, machine),
    )
    by_commit: dict[str, list[tuple[Series, Anchor]]] = {anchor.recorded.commit_sha: [] for anchor in again}
    corrected: set[str] = set()
    for name in (known for known in past.names if known in names):
        every = past.series(name)
        for series in (one_series for one_series in every if gating(one_series, every) is None):
            for anchor in anchors_of(series, anchors.of(name).get(key_of(series), ())):
                if series.corrected:
                    corrected.add(anchor.commit)
                else:
                    by_commit[anchor.commit].append((series, anchor))
    tags = project.repository.releases.of(line)
    return [
        anchor_check(
            commit,
            beside,
            ", ".join(tags.get(commit.sha, ())),
            _recorded_at(store, commit.sha, machine),
            by_commit[commit.sha],
            config.settings,
        )
        for commit in line
        if by_commit.get(commit.sha) or commit.sha in by_commit.keys() - corrected
    ]


def _recorded_at(store: Store, sha: str, machine: str) -> float | None:
    rounds = [round for recorded in store.load(sha, machine).recorded for round in recorded.rounds if round.values]
    return min((round.started_at for round in rounds if round.started_at), default=None)


def marked_new(before: Events, after: Events) -> Events:
    """Those of `after`, each marked as new unless `before` has one of the same series and direction that may be the same event.

    What was tentative or small and is open now is new: it has not been reported as a regression.
    """
    known: dict[tuple[object, ...], list[Changed]] = {}
    for change in before.changes:
        known.setdefault(_series(change), []).append(change)
    return replace(
        after,
        changes=tuple(
            replace(change, new=not any(_same(old, change) for old in known.get(_series(change), ())))
            for change in after.changes
        ),
        breakages=tuple(
            replace(
                breakage,
                new=breakage.acknowledged is None and not any(_is_it(old, breakage) for old in before.breakages),
            )
            for breakage in after.breakages
        ),
        numberless=after.numberless - before.numberless,
    )


def with_failures(project: Project, breakages: Sequence[Breakage]) -> tuple[Breakage, ...]:
    """The same, each with what it said at its first commit without a number."""
    store, said = Store(project.config.results_dir), dict[tuple[object, ...], Failure]()
    for sha in {breakage.first.sha for breakage in breakages}:
        for recorded in store.load(sha).recorded:
            for round in recorded.rounds:
                if round.failure is not None:
                    case = Case(round.name, tuple(round.params))
                    said[sha, recorded.machine.name, recorded.environment, case] = round.failure
    return tuple(
        replace(one, failure=said.get((one.first.sha, one.machine, one.environment, one.case), one.failure))
        for one in breakages
    )


def shifts_in(project: Project, line: Sequence[Commit], changes: Sequence[Changed]) -> tuple[Shift, ...]:
    """Which of these changes, all that a machine has, are one event: by what the other places say of the same benchmarks."""
    own = [change for change in changes if change.point.large]
    if len({change.case.name for change in own}) < FEWEST:
        return ()
    config, place = project.config, {commit.sha: at for at, commit in enumerate(line)}
    past = past_of(config.results_dir, project.cache, line, config.settings)
    anchors = Anchors(Store(config.results_dir).anchors(), config.settings, confirmed_in(project.cache))
    moved: list[Moved] = []
    names = {change.case.name for change in own}
    every = {
        name: [(series, anchors.changes_of(series)) for series in past.series(name)]
        for name in past.names
        if name in names
    }
    for change in own:
        moved.append(_moved(change, every[change.case.name], place))
    shifts = [_shift(shift, [own[at] for at in shift.members], line) for shift in shifts_of(moved)]
    return tuple(sorted(shifts, key=lambda shift: place[shift.good]))


def _moved(changed: Changed, every: Sequence[tuple[Series, Sequence[ChangePoint]]], place: Mapping[str, int]) -> Moved:
    """`every` are all series of the benchmark with their changes."""
    point, last = changed.point, changed.point.blamed[-1]
    ends = place[point.good], place[last]
    own = [pair for pair in every if pair[0].metric.name == changed.metric.name]
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


def _where(subject: Series | Changed) -> Where:
    return subject.machine, subject.device, subject.environment


def _shift(shift: Shifted, changes: Sequence[Changed], line: Sequence[Commit]) -> Shift:
    good, last = shift.range
    before = line[shift.undoes[0]].short if shift.undoes is not None else ""
    largest = sorted(
        changes, key=lambda change: -abs(math.log(change.point.ratio)) if change.point.ratio else -math.inf
    )
    said = reasons(shift, before, [change.point.reasons for change in changes])
    machine, device, environment = _where(largest[0])
    return Shift(machine, environment, device, line[good].sha, tuple(line[good + 1 : last + 1]), tuple(largest), said)


def with_manners(project: Project, changes: Sequence[Changed]) -> tuple[Changed, ...]:
    """The changes; what is new says how its measuring changed at the same commit."""
    manners = Manners(Store(project.config.results_dir))
    done = []
    for change in changes:
        case, ends = (change.case.name, ", ".join(change.case.params)), (change.point.good, change.point.first)
        if change.new and change.point.large:
            note = manners.changes(change.machine, change.environment, case, change.metric.name, ends)
            said = (*change.point.reasons, note) if note else change.point.reasons
            change = replace(change, point=replace(change.point, reasons=said))
        done.append(change)
    return tuple(done)


def by_event(changes: Sequence[Changed], line: Sequence[Commit]) -> list[list[Changed]]:
    """The changes that a report counts as one, together: of one metric of a benchmark, one way, at one commit, in whatever case
    and place."""
    place, groups = {commit.sha: at for at, commit in enumerate(line)}, dict[object, list[Changed]]()
    for change in changes:
        groups.setdefault((change.case.name, change.metric.name, change.point.moved), []).append(change)
    events = []
    for own in groups.values():
        ranges = {at: (place[change.point.good], place[change.point.blamed[-1]]) for at, change in enumerate(own)}
        series = list(map(_series, own))
        events += [[own[at] for at in members] for members, _ in at_one_commit(ranges, series.__getitem__)]
    return events


def _series(changed: Changed) -> tuple[object, ...]:
    return (changed.case, changed.metric.name, changed.machine, changed.environment, changed.device)


def _same(old: Changed, new: Changed) -> bool:
    alike = old.point.moved is new.point.moved and (old.point.is_open or not new.point.is_open)
    return alike and not {commit.sha for commit in old.blamed}.isdisjoint(commit.sha for commit in new.blamed)


def _is_it(old: Breakage, new: Breakage) -> bool:
    alike = all(getattr(old, name) == getattr(new, name) for name in ("case", "machine", "environment", "device"))
    return alike and not {commit.sha for commit in old.blamed}.isdisjoint(commit.sha for commit in new.blamed)
