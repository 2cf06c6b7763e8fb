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
        releases = [branch.commits[each.at].sha for each in branch.releases]
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
        beside = [each.beside for every in again.values() for each in every if each.beside in at]
        return f"{self._branch.fingerprint(max((newest, *beside), key=at.__getitem__))} {again!r}"

    def _acknowledged(self, name: str) -> Iterator[str]:
        """The acknowledgements that may apply to the benchmark: those that do not name another one."""
        for each in self._review.active:
            about = each.pattern.partition("(")[0]
            if about == name or about not in self._past.names:
                yield repr(replace(each, line=0))

    @without_gc()
    def _make(self, name: str) -> tuple[Shard, Part]:
        every = self._past.series(name)
        places = tuple(dict.fromkeys(map(place_of, every)))
        number = {each: index for index, each in enumerate(places)}
        at = self._branch.at
        valued = [each for each in every if any(each.rounds)]
        rules = [series_rule(each, self._settings) for each in valued]
        found = [
            levelled(each, self._changes(each), at, rule, gating(each, every))
            for each, rule in zip(valued, rules, strict=True)
        ]
        accounts = Accounts(self._told(name), self._branch)
        thresholds = [each.threshold for each in rules]
        lines = [(each, number[place_of(each.series)]) for each in found]
        beside: dict[object, list[Levelled]] = {}
        for each in found:
            beside.setdefault(_whose(each), []).append(each)
        columns = {each: index for index, each in enumerate(dict.fromkeys(each.measured for each in found))}
        rows = [
            row_of(
                each,
                place,
                self._branch.reference,
                threshold,
                columns[each.measured],
                self._lost(each, beside[_whose(each)]),
            )
            for (each, place), threshold in zip(lines, thresholds, strict=True)
        ]
        part = Part(
            entry=PageEntry(name, shard_file(name)),
            places=places,
            columns=tuple(columns),
            rows=tuple(row for row, each in zip(rows, found, strict=True) if listed(row, each.series.metric.kind)),
            events=tuple(
                accounts.of_event(each, places[each.place])
                for each in events_of(name, lines, self._branch, self._commands)
            ),
            broken=broken_of([(each, number[place_of(each)]) for each in every], self._branch, self._review),
            read=tuple(read_by(every)),
        )
        return self._shard(name, found, thresholds, accounts), part

    def _told(self, name: str) -> list[KeptExplanation]:
        """What was explained of the benchmark, under the names that it had, too."""
        names = (*self._past.old_names(name), name)
        return [found for each in names for found in self._explained.get(each, ())]

    def _lost(self, found: Levelled, beside: Sequence[Levelled]) -> str:
        """Since when its case has been measured without a value of this metric, and why; empty if its newest measurement has
        one. `beside` are the series of its case and place."""
        series = found.series
        if series.failures[-1] or max(each.latest for each in beside) == found.latest:
            return ""
        later = [at for each in beside for at in each.measured if at > found.latest]
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

    def _shard(self, name: str, found: list[Levelled], thresholds: list[float], accounts: Accounts) -> Shard:
        names, code = self._described(name)
        used = sorted({at for each in found for at in each.series.at})
        rounds_a_commit = sum(len(each) for line in found for each in line.series.rounds) / max(1, len(used))
        kept = int(KEPT_ROUNDS / max(1.0, rounds_a_commit))
        places = [place_of(each.series) for each in found]
        lines = [
            replace(accounts.of_line(line_of(each, id_of(where), threshold, kept), where), samples=self._samples(each))
            for each, where, threshold in zip(found, places, thresholds, strict=True)
        ]
        columns = {each: index for index, each in enumerate(dict.fromkeys(each.measured for each in found))}
        number = {at: index for index, at in enumerate(used)}
        return Shard(
            name=name,
            param_names=names,
            code=code,
            commits=tuple(self._branch.commits[at].sha[:SHA_DIGITS] for at in used),
            columns=tuple(tuple(map(number.__getitem__, each)) for each in columns),
            lines=tuple(
                _renumbered(line, columns[each.measured], number) for line, each in zip(lines, found, strict=True)
            ),
            accounts=accounts.shown,
            sides=tuple(
                replace(each, commit=number[each.commit])
                for each in (self._beside.of(name, [each.series for each in found]) if IMPLEMENTATION in names else ())
            ),
        )

    def _samples(self, found: Levelled) -> Samples | None:
        """The samples of the newest value of a time; None if its rounds have none."""
        series = found.series
        if series.metric.kind != "time":
            return None
        rounds = self._taken(series.machine, series.environment, self._branch.commits[found.latest].sha)
        own = [each for each in rounds.get(series.case, ()) if each.facts.get("gpu", "") in ("", series.device)]
        return Evidence.of("head", own, self._settings.good_rounds).samples_of(series.metric.name)

    def _rounds_at(self, machine: str, environment: str, sha: str) -> Mapping[Case, Sequence[Round]]:
        found: dict[Case, list[Round]] = {}
        for recorded in self._store.load(sha, machine, environment).recorded:
            for each in recorded.rounds:
                found.setdefault(Case(each.name, tuple(each.params)), []).append(each)
        return found


def _whose(found: Levelled) -> tuple[Case, Where]:
    return found.series.case, place_of(found.series)


def _renumbered(line: Line, column: int, number: dict[int, int]) -> Line:
    """The line with indices into the shard's own columns and commits."""
    move: Callable[[int], int] = number.__getitem__
    return replace(
        line,
        at=column,
        levels=tuple(each._replace(first=move(each.first), last=move(each.last)) for each in line.levels),
        changes=tuple(
            replace(each, first=move(each.first), good=move(each.good), last=move(each.last)) for each in line.changes
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
