"""The index of a report: what is known of each benchmark, put together."""

from __future__ import annotations

import math
import re
import statistics
import time
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from pathlib import Path

from regress import __version__
from regress.history import Store, last_aa, left_out
from regress.model import METRICS
from regress.pages import (
    Aa,
    Event,
    Freshness,
    Level,
    Lost,
    PageBroken,
    PageCommit,
    PageIndex,
    PageOverall,
    PagePlace,
    PageRow,
    PageValues,
    Part,
    Where,
)
from regress.pages.branch import Branch
from regress.pages.broken import with_messages
from regress.pages.events import with_notes, with_shifts
from regress.pages.leaves import id_of
from regress.pages.lines import rounded
from regress.pages.rows import rank, severity
from regress.project import Project
from regress.trends import Past
from regress.trends.cards import Read, card_levels
from regress.trends.changes import FEWEST
from regress.units import format_change

MOST_ROWS = 2500
"""Rows of the index; with more, benchmarks with many cases have one row for each metric and place, that of the worst case."""
MOST_EVENTS = 2000
"""Events of the index, and as many failures: the open ones, then the newest."""
HELD = ("open", "tentative", "acknowledged", "relapsed")
"""States of changes that nothing has taken back, the most urgent first."""
GONE_AFTER = 10
"""Commits without a result of a case, while others in its place have some, after which it counts as no longer measured."""
RETIRED_AFTER = 100
"""Commits without a result in a place, after which it counts as no longer used."""

LOST_SHARE = 0.01
"""Share of the results that could not be used, beyond which the overview says so first."""


class Contents:
    """Puts the index together."""

    def __init__(self, project: Project, past: Past, branch: Branch) -> None:
        self._project, self._past, self._branch = project, past, branch
        self._store = Store(project.config.results_dir)

    def index(self, parts: Sequence[Part]) -> tuple[PageIndex, PageValues]:
        """The index of the benchmarks whose parts these are, and the values of its rows."""
        settings, branch, past = self._project.config.settings, self._branch, self._past
        places = self._places(parts)
        number = {place.id: index for index, place in enumerate(places)}
        rows: list[list[PageRow]] = []
        events: list[Event] = []
        broken: list[PageBroken] = []
        for index, part in enumerate(parts):
            own = [number[id_of(where)] for where in part.places]
            rows.append([row._replace(benchmark=index, place=own[row.place]) for row in part.rows])
            events += [_placed(event, index, own) for event in part.events]
            broken += [case._replace(benchmark=index, place=own[case.place]) for case in part.broken]
        every = [row for group in rows for row in group]
        newest = _newest(len(places), every, broken)
        rows = [[_gone(row, newest[row.place], len(branch.commits) - 1) for row in group] for group in rows]
        broken = [_stopped(case, newest[case.place], len(branch.commits) - 1) for case in broken]
        alive = {(row.benchmark, row.metric, row.place) for group in rows for row in group if row.status != "gone"}
        events = sorted((_held(event, alive) for event in events), key=_rank)
        broken.sort(key=lambda case: (not case.open, -case.last))
        beyond = max(0, len(events) - MOST_EVENTS) + max(0, len(broken) - MOST_EVENTS)
        events, suspects = _numbered(events[:MOST_EVENTS])
        names = [part.entry.name for part in parts]
        events, shifts = with_shifts(with_notes(events, names, places, self._store, branch), names, places, branch)
        listed, values = _apart(_shortened(rows), [part.columns for part in parts])
        unmeasured = branch.unmeasured
        page_index = PageIndex(
            fields={
                "row": PageRow._fields,
                "level": Level._fields,
                "event": Event._fields,
                "broken": PageBroken._fields,
            },
            project=self._project.config.project,
            generated=time.time(),
            version=__version__,
            commit_url=self._commit_url(),
            address=f"{settings.report_url.rstrip('/')}/" if settings.report_url else "",
            branch=branch.name,
            thresholds={
                "time": settings.time_threshold,
                "memory": settings.memory_threshold,
                "host": settings.host_threshold,
            },
            commits=tuple(map(branch.shown, branch.commits)),
            places=places,
            results=_results(len(places), every),
            machines=tuple((machine.name, dict(machine.facts)) for machine in self._past.machines),
            entries=tuple(part.entry for part in parts),
            rows=listed,
            counts=_counts(len(places), rows, broken),
            young=_young(len(places), rows),
            fewest=FEWEST,
            events=tuple(events),
            shifts=shifts,
            broken=with_messages(broken[:MOST_EVENTS], names, places, self._store, branch),
            left_out=beyond,
            suspects=tuple(suspects),
            reference=branch.reference,
            release=branch.last.name if branch.last is not None else "",
            releases=branch.releases,
            overall=tuple(_overall(every, len(branch.commits) - 1, len(places))),
            freshness=Freshness(len(unmeasured), unmeasured[0].date if unmeasured else None),
            aa=tuple(self._aa(places)),
            strays=tuple((unknown.commit_sha, len(unknown.files)) for unknown in self._past.unknown),
            skipped=tuple((self._path(left.path), left.files, left.why, left.fix) for left in left_out(past.skipped)),
            lost=self._lost(),
        )
        return page_index, values

    def _lost(self) -> Lost:
        """What of the results could not be used. Names of files begin with the commit that they are of."""
        branch, lost = self._branch, self._past.lost
        newest = branch.position[branch.commits[-1].sha]
        after = {commit.short for commit in branch.all[newest + 1 :]}
        newer, files = sum(path.name[:8] in after for path in lost), self._past.files
        return Lost(len(lost), files, newer, matters=newer > 0 or len(lost) > LOST_SHARE * files)

    def _path(self, path: Path) -> str:
        """Relative to the configuration: readers of the report need not know where that is."""
        root = self._project.config.root
        return str(path.relative_to(root) if path.is_relative_to(root) else path)

    def _commit_url(self) -> str:
        """The address that a hash is appended to; only web addresses, so that links are harmless."""
        url = self._project.config.show_commit_url
        return url if url.startswith(("https://", "http://")) else ""

    def _places(self, parts: Sequence[Part]) -> tuple[PagePlace, ...]:
        wheres = sorted({where for part in parts for where in part.places})
        facts = {machine.name: machine.facts for machine in self._past.machines}
        cards = self._cards(parts)
        return tuple(
            PagePlace(
                id_of(where),
                label,
                *where[:2],
                facts.get(where[0], {}).get("gpu", "") if where[1] else "",
                where[2],
                cards.get(where[:2], ()),
            )
            for where, label in zip(wheres, _labels(wheres), strict=True)
        )

    def _cards(self, parts: Sequence[Part]) -> dict[tuple[str, str], tuple[str, ...]]:
        """By machine and kind: each of its cards in words, where several have measured."""
        cards: dict[tuple[str, str], tuple[str, ...]] = {}
        read = (Read(*reading) for part in parts for reading in part.read)
        for level in card_levels(read, self._project.config.settings):
            words = f"{level.card} {format_change(level.factor)}{', off its kind' if level.is_off else ''}"
            cards[level.machine, level.kind] = (*cards.get((level.machine, level.kind), ()), words)
        return cards

    def _aa(self, places: Sequence[PagePlace]) -> list[Aa]:
        results = []
        facts = {machine.name: machine.facts for machine in self._past.machines}
        cards = [
            (place.machine, card)
            for place in places
            for card in (str(facts.get(place.machine, {}).get("gpu_uuid", "")).split(", ") if place.device else [""])
        ]
        for machine, card in dict.fromkeys(cards):
            last = last_aa(self._project.cache, machine, card)
            if last is not None:
                counts = (last.false_alarms, last.undecided, last.noise_floor, last.min_detectable)
                results.append(Aa(machine, last.date, last.commit, len(last.cases), *counts))
        return results


def _labels(places: Sequence[Where]) -> list[str]:
    """Machine, environment and device, as far as they differ between places; the machine if nothing does."""
    own = {machine: [environment for name, _, environment in places if name == machine] for machine, _, _ in places}
    short = {machine: _told_apart(environments) for machine, environments in own.items()}
    if len(own) < 2 or len({environment for _, _, environment in places}) > 1 == max(
        len(set(environments)) for environments in own.values()
    ):
        short = dict.fromkeys(own, _told_apart([environment for _, _, environment in places]))
    named = [(machine, device, short[machine][environment]) for machine, device, environment in places]
    told = [part for part in (0, 2, 1) if len({where[part] for where in named}) > 1] or [0]
    labels = [where[told[0]] for where in named]
    for part in told[1:]:
        count = Counter(labels)
        longer = [f"{label} · {where[part] or '-'}" for label, where in zip(labels, named, strict=True)]
        labels = [long if count[label] > 1 else label for label, long in zip(labels, longer, strict=True)]
    return labels


def _told_apart(names: Sequence[str]) -> dict[str, str]:
    """Short names of environments, into whose names asv writes every requirement: the interpreter, then as many requirements
    as it takes to tell them apart."""
    parts = {name: {_stem(word): word for word in name.split("-")} for name in names}
    stems = list(dict.fromkeys(stem for part in parts.values() for stem in part))
    telling = [stem for stem in stems if len({part.get(stem) for part in parts.values()}) > 1]
    telling.sort(key=lambda stem: stem not in ("py", "python", "pypy"))
    used: list[str] = []
    for stem in telling:
        now, then = ({_label(part, stems) for part in parts.values()} for stems in (used, [*used, stem]))
        if len(now) < len(then):
            used.append(stem)
    labels = {name: _label(part, used) or name for name, part in parts.items()}
    return labels if len(set(labels.values())) == len(parts) else {name: name for name in parts}


def _stem(word: str) -> str:
    """A requirement without its version."""
    return re.split(r"[0-9]", word, maxsplit=1)[0] or word


def _label(words: Mapping[str, str], stems: Sequence[str]) -> str:
    return "-".join(words[stem] for stem in stems if stem in words)


def _placed(event: Event, benchmark: int, own: Sequence[int]) -> Event:
    return event._replace(
        benchmark=benchmark,
        place=own[event.place],
        places=tuple(sorted(own[place] for place in event.places)),
        held=tuple(sorted(own[place] for place in event.held)),
        stood=tuple(sorted(own[place] for place in event.stood)),
        of_places=tuple(sorted(own[place] for place in event.of_places)),
    )


def _numbered(events: Sequence[Event]) -> tuple[list[Event], list[PageCommit]]:
    """The events with numbers instead of the commits that may be to blame, and these commits, each once."""
    numbers: dict[str, int] = {}
    every: list[PageCommit] = []
    done = []
    for event in events:
        own = []
        for suspect in event.suspects:
            if isinstance(suspect, PageCommit):
                if suspect.sha not in numbers:
                    numbers[suspect.sha] = len(every)
                    every.append(suspect)
                own.append(numbers[suspect.sha])
        done.append(event._replace(suspects=tuple(own)))
    return done, every


def _rank(event: Event) -> tuple[int, bool, bool, int, float]:
    """Sorts events: open ones first, then what counts, then the newest and the largest."""
    state = HELD.index(event.state) if event.state in HELD else len(HELD)
    size = abs(math.log(event.ratio)) if event.ratio else math.inf
    return state, not event.large, not event.gates, -event.first, -size


def _newest(places: int, rows: Sequence[PageRow], broken: Sequence[PageBroken]) -> list[int]:
    """The newest commit with a measurement, for each place."""
    newest = [0] * places
    for place, at in (*((row.place, row.at) for row in rows), *((case.place, case.last) for case in broken)):
        newest[place] = max(newest[place], at)
    return newest


def _results(places: int, rows: Sequence[PageRow]) -> tuple[int, ...]:
    """See PageIndex.results."""
    most = [0] * places
    for row in rows:
        most[row.place] = max(most[row.place], len(row.measured.values) if row.measured is not None else 0)
    return tuple(most)


def _stopped(broken: PageBroken, newest_there: int, newest: int) -> PageBroken:
    """The failure, which is not open if its place is no longer used."""
    return broken._replace(open=broken.open and newest - newest_there < RETIRED_AFTER)


def _counts(
    places: int, groups: Sequence[Sequence[PageRow]], broken: Sequence[PageBroken]
) -> tuple[Mapping[str, int], ...]:
    """See PageIndex.counts. What has never had a value is in no row, only in `broken`."""
    counts: list[Counter[str]] = [Counter() for _ in range(places)]
    failed: Counter[tuple[int, int]] = Counter()
    for row in _worst(groups):
        counts[row.place][row.status] += 1
        failed[row.benchmark, row.place] += row.status == "failed"
    for (benchmark, place), cases in _failing(broken).items():
        if cases > failed[benchmark, place]:
            counts[place]["failed"] += cases - failed[benchmark, place]
    return tuple(counts)


def _young(places: int, groups: Sequence[Sequence[PageRow]]) -> tuple[int, ...]:
    """See PageIndex.young."""
    young = Counter(row.place for row in _worst(groups) if row.status == "undecided" and row.lacks)
    return tuple(young[place] for place in range(places))


def _worst(groups: Sequence[Sequence[PageRow]]) -> list[PageRow]:
    """The row of each case in each place: that of the worst metric that gates."""
    worst: dict[tuple[int, str, int], PageRow] = {}
    for row in (candidate for group in groups for candidate in group if candidate.gates):
        key = row.benchmark, row.params, row.place
        worst[key] = min(worst.get(key, row), row, key=lambda candidate: (rank(candidate.status), not candidate.lacks))
    return list(worst.values())


def _failing(broken: Sequence[PageBroken]) -> dict[tuple[int, int], int]:
    """How many cases of a benchmark fail in a place."""
    failing: Counter[tuple[int, int]] = Counter()
    for case in broken:
        if case.open:
            failing[case.benchmark, case.place] += case.cases
    return failing


def _gone(row: PageRow, newest_there: int, newest: int) -> PageRow:
    """The row, marked if its case is no longer measured, or its place no longer used."""
    if newest - newest_there >= RETIRED_AFTER:
        return row._replace(status="gone", why="nothing is measured there now")
    if newest_there - row.at < GONE_AFTER or row.status in ("failed", "gone"):
        return row
    return row._replace(status="gone", why="no longer measured")


def _held(event: Event, alive: Set[tuple[int, str, int]]) -> Event:
    """The event, which is not open if its cases are no longer measured."""
    if event.state not in HELD or any((event.benchmark, event.metric, place) in alive for place in event.held):
        return event
    return event._replace(state="gone")


def _apart(
    rows: Sequence[PageRow], columns: Sequence[Sequence[tuple[int, ...]]]
) -> tuple[tuple[PageRow, ...], PageValues]:
    """The rows without their values, and these; `columns` are those of each benchmark."""
    number: dict[tuple[int, ...], int] = {}
    values = [
        row.measured
        and row.measured._replace(
            column=number.setdefault(columns[row.benchmark][row.measured.column], len(number)),
        )
        for row in rows
    ]
    return tuple(row._replace(measured=None) for row in rows), PageValues(tuple(number), tuple(values))


def _shortened(groups: Sequence[Sequence[PageRow]]) -> list[PageRow]:
    """The rows of all benchmarks; while there are too many, only the worst row of those with the most cases."""
    left = sum(map(len, groups))
    folded: dict[int, list[PageRow]] = {}
    for index in sorted(range(len(groups)), key=lambda index: -len(groups[index])):
        if left <= MOST_ROWS:
            break
        folded[index] = _folded(groups[index])
        left -= len(groups[index]) - len(folded[index])
    return [row for index, group in enumerate(groups) for row in folded.get(index, group)]


def _folded(group: Sequence[PageRow]) -> list[PageRow]:
    by_kind: dict[tuple[str, int], list[PageRow]] = {}
    for row in group:
        by_kind.setdefault((row.metric, row.place), []).append(row)
    return [min(rows, key=severity)._replace(cases=len(rows)) for rows in by_kind.values()]


def _overall(rows: Sequence[PageRow], newest: int, places: int) -> list[PageOverall]:
    """The geometric mean of each place, over the times that gate, are measured at both ends and can be judged."""
    by_place: dict[int, list[float]] = {}
    for row in rows:
        metric = METRICS.get(row.metric)
        time_of_case = row.gates and metric is not None and metric.kind == "time"
        judged = row.status != "undecided" and not row.doubt
        if time_of_case and row.since and judged and newest - row.at < GONE_AFTER:
            by_place.setdefault(row.place, []).append(row.since)
    return [
        PageOverall(place, rounded(statistics.geometric_mean(by_place[place]), 5), len(by_place[place]))
        for place in range(places)
        if place in by_place
    ]
