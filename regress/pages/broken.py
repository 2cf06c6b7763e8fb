"""What fails: cases without a value at some commits, with the messages of those that fail now."""

from __future__ import annotations

from collections.abc import Sequence

from regress.acks import Review
from regress.history import Store
from regress.model import Series
from regress.pages import PageBroken, PagePlace
from regress.pages.branch import Branch
from regress.trends import breakages_of

MOST_COMMITS = 5
"""Newest commits that are read for messages: many failures have few causes."""
MOST_LETTERS = 2000
"""Of a message."""


def broken_of(lines: Sequence[tuple[Series, int]], branch: Branch, review: Review) -> tuple[PageBroken, ...]:
    """What fails or failed of one benchmark, or is skipped and had a value before. A case counts once in each place, whatever
    it measures; cases that failed alike at the same commits are one."""
    places = {(line.case, line.machine, line.environment, line.device): place for line, place in lines}
    stopped = {
        (breakage.case.params, places[breakage.case, breakage.machine, breakage.environment, breakage.device]): breakage
        for breakage in review.of_breakages(breakages_of((series for series, _ in lines), branch.commits))
    }
    told = {key: branch.at[breakage.good] for key, breakage in stopped.items() if breakage.acknowledged is None}
    by_case: dict[tuple[tuple[str, ...], int], PageBroken] = {}
    for series, place in lines:
        kinds = dict(zip(series.at, series.failures, strict=True))
        key = series.case.params, place
        failed = [at for at, kind in kinds.items() if kind and (kind != "skipped" or key in stopped)]
        if not failed:
            continue
        newest = max((at for at, rounds in zip(series.at, series.rounds, strict=True) if rounds), default=-1)
        run = [at for at in failed if at > newest] or failed
        case = PageBroken(
            benchmark=0,
            params=", ".join(series.case.params),
            place=place,
            kind=kinds[failed[-1]],
            first=run[0],
            last=failed[-1],
            commits=len(failed),
            open=failed[-1] == series.at[-1],
            good=told.get(key),
        )
        if key not in by_case or (series.primary and case.commits >= by_case[key].commits):
            by_case[key] = case
    alike: dict[PageBroken, list[PageBroken]] = {}
    for case in by_case.values():
        alike.setdefault(case._replace(params=""), []).append(case)
    return tuple(group[0]._replace(cases=len(group)) for group in alike.values())


def with_messages(
    broken: Sequence[PageBroken], names: Sequence[str], places: Sequence[PagePlace], store: Store, branch: Branch
) -> tuple[PageBroken, ...]:
    """The same, with the newest messages of what still fails; `names` are those of the benchmarks."""
    wanted = sorted({case.last for case in broken if case.open}, reverse=True)[:MOST_COMMITS]
    said: dict[tuple[int, str, str, str, str], tuple[str, str]] = {}
    for at in wanted:
        for recorded in store.load(branch.commits[at].sha).recorded:
            for round in recorded.rounds:
                if round.failure is not None:
                    key = at, recorded.machine.name, recorded.environment, round.name, ", ".join(round.params)
                    said[key] = round.failure.message[:MOST_LETTERS], round.failure.where
    done = []
    for case in broken:
        place = places[case.place]
        key = case.last, place.machine, place.environment, names[case.benchmark], case.params
        message, where = said.get(key, ("", "")) if case.open else ("", "")
        done.append(case._replace(message=message, where=where))
    return tuple(done)
