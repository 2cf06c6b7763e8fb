"""`regress export`: recorded results as a table, a row for each commit, machine, environment, device, case and metric."""

from __future__ import annotations

import datetime
import itertools
import re
from collections.abc import Iterator, Sequence

from regress.errors import NothingMeasured
from regress.git import Repository
from regress.history import left_out
from regress.model import Case, Commit, Series
from regress.run.execute import Watcher
from regress.run.unmatched import nothing_matches
from regress.session import Request, Session, reading
from regress.stats.summary import summarize
from regress.trends import Past, past_of

ASV_CONFIDENCE = 0.99
"""Of the intervals that stand in asv's files."""

COLUMNS = (
    "date",
    "sha",
    "machine",
    "environment",
    "device",
    "benchmark",
    "case",
    "metric",
    "unit",
    "value",
    "low",
    "high",
    "confidence",
    "n",
    "failure",
)
"""`date` is the commit's, in UTC; `device` is a GPU's UUID; `value` and its interval are in `unit`, over `n` rounds. A result
without a value has the kind of its failure."""

Row = tuple[str, ...]


def export(
    request: Request,
    watcher: Watcher,
    machine: str | None = None,
    environment: str | None = None,
    since: str | None = None,
) -> Iterator[Row]:
    """The table, its heading first: benchmark by benchmark as it is read, the commits of each by their dates.

    On every machine and in every environment where none is named. `since` leaves out commits that are older than that date
    or commit. Raises NothingMeasured where nothing is recorded and where no benchmark matches.
    """
    session = Session(request)
    root, settings = session.config.results_dir, session.config.settings
    oldest = None if since is None else _date(session.repository, since)
    every = past_of(root, session.cache, (), settings, machine, environment, reading(watcher)).unknown
    # The order is that of their dates: git no longer knows all of them.
    commits = [
        Commit(unknown.commit_sha, "", "", unknown.date)
        for unknown in every
        if oldest is None or unknown.date >= oldest
    ]
    past = past_of(root, session.cache, commits, settings, machine, environment)
    for left in left_out(past.skipped):
        watcher.note(f"warning: {left.words}")
    if not past.names:
        named = "".join(f" {word} {name}" for word, name in (("on", machine), ("in", environment)) if name)
        later = "" if oldest is None else f", of commits from {_iso(oldest)} on"
        raise NothingMeasured(f"nothing is recorded{named}", why=f"searched in {root}{later}", fix="regress run")
    rows = _rows(past, _Wanted(past, request.patterns), settings.confidence, watcher)
    first = next(rows, None)
    if first is None:
        raise nothing_matches(session.selection(), f"searched in {root}", past.names)
    for text in session.config.warnings:
        watcher.note(f"warning: {text}")
    return itertools.chain([COLUMNS, first], rows)


def _date(repository: Repository, words: str) -> float:
    date = repository.date_of(words)
    return date if date is not None else repository.resolve(words).date


class _Wanted:
    """Which cases the patterns select, as `-b` does everywhere: what is a name exactly, else what an expression is found in."""

    def __init__(self, past: Past, patterns: Sequence[str]) -> None:
        self._all = not patterns
        self._exact = {pattern for pattern in patterns if _is_name(past, pattern)}
        self._searched = [re.compile(pattern) for pattern in patterns if pattern not in self._exact]

    def __contains__(self, case: Case) -> bool:
        if self._all or not self._exact.isdisjoint((case.name, str(case))):
            return True
        return any(search.search(str(case)) for search in self._searched)


def _is_name(past: Past, pattern: str) -> bool:
    """Whether it is the name of a benchmark or of a case with its parameters."""
    name, parenthesis, _ = pattern.partition("(")
    if name not in past.names or not parenthesis:
        return name in past.names
    return any(str(series.case) == pattern for series in past.series(name))


# -- rows ----------------------------------------------------------------------------------------------------------------


def _rows(past: Past, wanted: _Wanted, confidence: float, watcher: Watcher) -> Iterator[Row]:
    watcher.start(len(past.names), "exporting")
    for name in past.names:
        for series in past.series(name):
            if series.case in wanted:
                yield from _rows_of(series, past.commits, confidence)
        watcher.advance(name)


def _rows_of(series: Series, commits: Sequence[Commit], confidence: float) -> Iterator[Row]:
    case, metric = series.case, series.metric
    what = case.name, str(case), metric.name, metric.unit
    for place, values, interval, failure in zip(
        series.at, series.rounds, series.intervals, series.failures, strict=True
    ):
        numbers = _numbers(values, interval, confidence) if values else ("", "", "", "", "0")
        where = series.machine, series.environment, ", ".join(series.cards.get(place, ()))
        yield (_iso(commits[place].date), commits[place].sha, *where, *what, *numbers, failure)


def _numbers(values: Sequence[float], recorded: tuple[float, float] | None, confidence: float) -> Row:
    """Value, interval, confidence and number of rounds; one round has no interval, unless asv has recorded one."""
    summary = summarize(values, confidence)
    if recorded is not None:
        interval = (*recorded, ASV_CONFIDENCE)
    elif len(values) > 1:
        interval = (summary.low, summary.high, confidence)
    else:
        return repr(summary.center), "", "", "", "1"
    return (repr(summary.center), *map(repr, interval), str(summary.n))


def _iso(date: float) -> str:
    """The date in UTC; empty for one that no calendar has."""
    try:
        return datetime.datetime.fromtimestamp(date, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (OverflowError, ValueError, OSError):
        return ""
