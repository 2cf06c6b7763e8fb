"""A benchmark at a time: all that its page shows, and its part of the index."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, cached_property, partial
from pathlib import Path

import regress
from regress.acks import Review
from regress.compare.evidence import Evidence
from regress.compare.implementations import IMPLEMENTATION
from regress.history import Store, without_gc
from regress.history.loading import read_benchmarks
from regress.model import Case, ChangePoint, Confirmation, KeptExplanation, Round, Samples, Series, Settings
from regress.pages import SHA_DIGITS, Leaf, Line, PageEntry, Part, Shard, Where
from regress.pages.accounts import Accounts
from regress.pages.branch import Branch
from regress.pages.broken import broken_of
from regress.pages.events import events_of
from regress.pages.implementations import Beside
from regress.pages.lines import KEPT_ROUNDS, Levelled, levelled, line_of
from regress.pages.rows import listed, row_of
from regress.trends import Anchors, Past
from regress.trends.cards import read_by
from regress.trends.changes import series_rule
from regress.trends.gating import gating

PACKAGE = Path(regress.__file__).parent


def place_of(series: Series) -> Where:
    return series.machine, series.device, series.environment


def id_of(where: Where) -> str:
    return "|".join(where)


class Maker:
    """Makes the leaves of a report. Rows and events name their place by its index in Part.places."""

    def __init__(
        self,
        past: Past,
        results: Path,
        branch: Branch,
        settings: Settings,
        review: Review,
        explained: Mapping[str, Sequence[KeptExplanation]],
        confirmed: Mapping[tuple[str, str, str], Sequence[Confirmation]],
        commands: frozenset[str],
    ) -> None:
        self._past, self._branch, self._settings, self._commands = past, branch, settings, commands
        self._review, self._explained = review, explained
        self._entries = read_benchmarks(results, [])
        self._store = Store(results)
        releases = [branch.commits[release.at].sha for release in branch.releases]
        self._anchors = Anchors(self._store.anchors(), settings, confirmed, releases)
        self._taken = cache(self._rounds_at)
        self._beside = Beside(results, branch, settings)

    def leaves(self) -> Iterator[Leaf]:
        for name in self._past.names:
            files, newest = self._past.trace(name)
            rest = (self._common, self._seen(name, newest.sha), *self._acknowledged(name), *map(repr, self._told(name)))
            rest += tuple(map(repr, self._anchors.confirmed(name)))
            if IMPLEMENTATION in (self._entries.get(name, {}).get("param_names") or ()):
                rest += (self._beside.stamp,)
            stamp = cache(partial(self._stamp, name, rest))
            yield Leaf(name, shard_file(name), _word(files, *rest), stamp, partial(self._make, name))

    def _stamp(self, name: str, rest: tuple[str, ...]) -> str:
        return _word(self._past.stamp(name), *rest)

    @cached_property
    def _common(self) -> str:
        """Whatever else a page depends on: the settings, and the code of this program, any part of which may decide."""
        code = hashlib.sha256(b"".join(path.read_bytes() for path in sorted(PACKAGE.rglob("*.py"))))
        return "\n".join((code.hexdigest(), repr(self._settings), *sorted(self._commands)))

    def _seen(self, name: str, newest: str) -> str:
        """What was measured again of the benchmark, and the branch up to the newest commit that concerns it."""
        at, again = self._branch.at, self._anchors.of(name)
        beside = [anchor.beside for every in again.values() for anchor in every if anchor.beside in at]
        return f"{self._branch.fingerprint(max((newest, *beside), key=at.__getitem__))} {again!r}"

    def _acknowledged(self, name: str) -> Iterator[str]:
        """The acknowledgements that may apply to the benchmark: those that do not name another one."""
        for entry in self._review.active:
            about = entry.pattern.partition("(")[0]
            if about == name or about not in self._past.names:
                yield repr(replace(entry, line=0))

    @without_gc()
    def _make(self, name: str) -> tuple[Shard, Part]:
        every = self._past.series(name)
        places = tuple(dict.fromkeys(map(place_of, every)))
        number = {place: index for index, place in enumerate(places)}
        at = self._branch.at
        valued = [series for series in every if any(series.rounds)]
        rules = [series_rule(series, self._settings) for series in valued]
        curves = [
            levelled(series, self._changes(series), at, rule, gating(series, every))
            for series, rule in zip(valued, rules, strict=True)
        ]
        accounts = Accounts(self._told(name), self._branch)
        thresholds = [rule.threshold for rule in rules]
        lines = [(curve, number[place_of(curve.series)]) for curve in curves]
        beside: dict[object, list[Levelled]] = {}
        for curve in curves:
            beside.setdefault(_whose(curve), []).append(curve)
        columns = {measured: index for index, measured in enumerate(dict.fromkeys(curve.measured for curve in curves))}
        rows = [
            row_of(
                curve,
                place,
                self._branch.reference,
                threshold,
                columns[curve.measured],
                self._lost(curve, beside[_whose(curve)]),
            )
            for (curve, place), threshold in zip(lines, thresholds, strict=True)
        ]
        part = Part(
            entry=PageEntry(name, shard_file(name)),
            places=places,
            columns=tuple(columns),
            rows=tuple(row for row, curve in zip(rows, curves, strict=True) if listed(row, curve.series.metric.kind)),
            events=tuple(
                accounts.of_event(event, places[event.place])
                for event in events_of(name, lines, self._branch, self._commands)
            ),
            broken=broken_of([(series, number[place_of(series)]) for series in every], self._branch, self._review),
            read=tuple(read_by(every)),
        )
        return self._shard(name, curves, thresholds, accounts), part

    def _told(self, name: str) -> list[KeptExplanation]:
        """What was explained of the benchmark, under the names that it had, too."""
        names = (*self._past.old_names(name), name)
        return [kept for known_as in names for kept in self._explained.get(known_as, ())]

    def _lost(self, curve: Levelled, beside: Sequence[Levelled]) -> str:
        """Since when its case has been measured without a value of this metric, and why; empty if its newest measurement has
        one. `beside` are the series of its case and place."""
        series = curve.series
        if series.failures[-1] or max(other.latest for other in beside) == curve.latest:
            return ""
        later = [at for other in beside for at in other.measured if at > curve.latest]
        commit = self._branch.commits[min(later)]
        why = self._beside.flags(commit.sha, series)
        return "; ".join((f"no {series.metric.name.replace('_', ' ')} since {commit.short}", *why))

    def _changes(self, series: Series) -> tuple[ChangePoint, ...]:
        return self._review.of_changes(series, self._anchors.changes_of(series))

    def _described(self, name: str) -> tuple[tuple[str, ...], str]:
        """Names of the parameters, and the code: from asv's list of benchmarks, which is one file, or else from the results,
        all of which have to be read."""
        entry = self._entries.get(name)
        if entry is None:
            benchmark = self._past.benchmark(name)
            return (tuple(benchmark.param_names), "") if benchmark is not None else ((), "")
        names = entry.get("param_names")
        return tuple(map(str, names)) if isinstance(names, list) else (), str(entry.get("code") or "")

    def _shard(self, name: str, curves: list[Levelled], thresholds: list[float], accounts: Accounts) -> Shard:
        names, code = self._described(name)
        used = sorted({at for curve in curves for at in curve.series.at})
        rounds_a_commit = sum(len(rounds) for line in curves for rounds in line.series.rounds) / max(1, len(used))
        kept = int(KEPT_ROUNDS / max(1.0, rounds_a_commit))
        places = [place_of(curve.series) for curve in curves]
        lines = [
            replace(
                accounts.of_line(line_of(curve, id_of(where), threshold, kept), where), samples=self._samples(curve)
            )
            for curve, where, threshold in zip(curves, places, thresholds, strict=True)
        ]
        columns = {measured: index for index, measured in enumerate(dict.fromkeys(curve.measured for curve in curves))}
        number = {at: index for index, at in enumerate(used)}
        return Shard(
            name=name,
            param_names=names,
            code=code,
            commits=tuple(self._branch.commits[at].sha[:SHA_DIGITS] for at in used),
            columns=tuple(tuple(map(number.__getitem__, column)) for column in columns),
            lines=tuple(
                _renumbered(line, columns[curve.measured], number) for line, curve in zip(lines, curves, strict=True)
            ),
            accounts=accounts.shown,
            sides=tuple(
                replace(sides, commit=number[sides.commit])
                for sides in (
                    self._beside.of(name, [curve.series for curve in curves]) if IMPLEMENTATION in names else ()
                )
            ),
        )

    def _samples(self, curve: Levelled) -> Samples | None:
        """The samples of the newest value of a time; None if its rounds have none."""
        series = curve.series
        if series.metric.kind != "time":
            return None
        rounds = self._taken(series.machine, series.environment, self._branch.commits[curve.latest].sha)
        own = [round for round in rounds.get(series.case, ()) if round.facts.get("gpu", "") in ("", series.device)]
        return Evidence.of("head", own, self._settings.good_rounds).samples_of(series.metric.name)

    def _rounds_at(self, machine: str, environment: str, sha: str) -> Mapping[Case, Sequence[Round]]:
        by_case: dict[Case, list[Round]] = {}
        for recorded in self._store.load(sha, machine, environment).recorded:
            for round in recorded.rounds:
                by_case.setdefault(Case(round.name, tuple(round.params)), []).append(round)
        return by_case


def _whose(curve: Levelled) -> tuple[Case, Where]:
    return curve.series.case, place_of(curve.series)


def _renumbered(line: Line, column: int, number: dict[int, int]) -> Line:
    """The line with indices into the shard's own columns and commits."""
    move: Callable[[int], int] = number.__getitem__
    return replace(
        line,
        at=column,
        levels=tuple(level._replace(first=move(level.first), last=move(level.last)) for level in line.levels),
        changes=tuple(
            replace(change, first=move(change.first), good=move(change.good), last=move(change.last))
            for change in line.changes
        ),
        failures={kind: tuple(map(move, places)) for kind, places in line.failures.items()},
        ticks=tuple((move(at), words) for at, words in line.ticks),
    )


def _word(*words: str) -> str:
    return hashlib.sha256("\n".join(words).encode()).hexdigest()[:24]


def shard_file(name: str) -> str:
    """A unique file name that every file system accepts."""
    slug = re.sub(r"[^A-Za-z0-9_.]+", "-", name)[:60].strip(".-") or "benchmark"
    return f"{slug}-{hashlib.sha256(name.encode()).hexdigest()[:8]}.js"
