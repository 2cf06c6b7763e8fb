"""Breakages: cases that gave numbers and no longer do."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from regress.model import Benchmark, Breakage, Case, Commit, Failure, Series
from regress.trends.past import Past

Numbers = dict[str, tuple[Benchmark, int]]
"""By name: a benchmark as it was recorded last, and the place of the first commit at which it gave a number."""


def breakages_of(every: Iterable[Series], commits: Sequence[Commit]) -> tuple[Breakage, ...]:
    """The cases of a benchmark that fail, or are skipped, at the newest commit they were run at and worked at one before it.

    `commits` are those of the series. A case fails where its own metric fails, whatever else was measured. If it never had
    that metric (a device time, if it has always waited for the device), it fails where nothing was measured.
    """
    groups: dict[tuple[object, ...], list[Series]] = {}
    for each in every:
        groups.setdefault((each.case, each.machine, each.environment, each.device), []).append(each)
    found = []
    for group in groups.values():
        valued = {at for each in group for at, own in zip(each.at, each.rounds, strict=True) if own}
        about = [each for each in group if each.primary]
        failed = {
            at: kind
            for each in about or group
            for at, kind in zip(each.at, each.failures, strict=True)
            if kind and (about or at not in valued)
        }
        worked = valued - failed.keys()
        if failed and worked and max(failed) > max(worked):
            good = max(worked)
            first = min(at for at in failed if at > good)
            found.append(_breakage(group[0], commits, good, first, failed[first]))
    return tuple(found)


def _breakage(series: Series, commits: Sequence[Commit], good: int, first: int, kind: str) -> Breakage:
    return Breakage(
        case=series.case,
        machine=series.machine,
        environment=series.environment,
        device=series.device,
        failure=Failure(kind, ""),
        good=commits[good].sha,
        blamed=tuple(commits[good + 1 : first + 1]),
    )


def numberless(every: Sequence[Series]) -> set[Case]:
    """The cases of a benchmark that have never given a number, and failed at the newest commit they were run at."""
    valued = {each.case for each in every if any(each.rounds)}
    failing = {each.case for each in every if each.failures and each.failures[-1] not in ("", "skipped")}
    return failing - valued


def numbers_before(past: Past, without: Collection[str]) -> Numbers:
    """What gave a number at any of the commits, but for the benchmarks of these names."""
    found: Numbers = {}
    for name in (each for each in past.names if each not in without):
        valued = [at for series in past.series(name) for at, each in zip(series.at, series.rounds, strict=True) if each]
        benchmark = past.benchmark(name) if valued else None
        if benchmark is not None:
            found[name] = benchmark, min(valued)
    return found
