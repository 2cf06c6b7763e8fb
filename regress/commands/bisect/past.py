"""What recorded rounds say of where a change came: enough to choose where a search begins, and never part of its claim."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from regress.compare.bisection import weights_of
from regress.errors import StoreError
from regress.model import Case, Commit, Series
from regress.session import Session
from regress.trends import past_of


def recorded_weights(
    session: Session,
    commits: Sequence[Commit],
    case: Case,
    metric: str,
    environment: str | None,
    size: float,
    sd: float,
) -> tuple[tuple[float, ...], int]:
    """The probability of each commit after the first of `commits` to have made the step, by what is recorded on this machine in
    that environment (None: any), and how many commits that rests on; empty where it says nothing."""
    best: tuple[tuple[float, ...], int] = (), 0
    for root in (session.config.results_dir, session.cache / "history"):
        levels = _levels(session, root, commits, case, metric, environment)
        known = len(levels) if levels.keys() - {0, len(commits) - 1} else 0
        if known > best[1]:
            best = weights_of(len(commits) - 1, {place - 1: level for place, level in levels.items()}, size, sd), known
    return best


def _levels(
    session: Session, root: Path, commits: Sequence[Commit], case: Case, metric: str, environment: str | None
) -> dict[int, tuple[float, ...]]:
    """By place among the commits: the logarithms of the round values, of the way of measuring that most of them have."""
    try:
        past = past_of(root, session.cache, commits, session.config.settings, session.machine.name, environment)
    except (StoreError, OSError):
        return {}
    if case.name not in past.names:
        return {}
    every = [series for series in past.series(case.name) if series.case == case and series.metric.name == metric]
    return max(map(_largest, every), key=len, default={})


def _largest(series: Series) -> dict[int, tuple[float, ...]]:
    usual = max(series.by_way.values(), key=len, default=[])
    rounds = series.curve_rounds
    return {series.at[item]: tuple(map(math.log, rounds[item])) for item in usual if min(rounds[item]) > 0}
