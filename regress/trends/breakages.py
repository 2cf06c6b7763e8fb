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
    for series in every:
        groups.setdefault((series.case, series.machine, series.environment, series.device), []).append(series)
    breakages = []
    for group in groups.values():
        valued = {at for series in group for at, own in zip(series.at, series.rounds, strict=True) if own}
        about = [series for series in group if series.primary]
        failed = {
            at: kind
            for series in about or group
            for at, kind in zip(series.at, series.failures, strict=True)
            if kind and (about or at not in valued)
        }
        worked = valued - failed.keys()
        if failed and worked and max(failed) > max(worked):
            good = max(worked)
            first = min(at for at in failed if at > good)
            breakages.append(_breakage(group[0], commits, good, first, failed[first]))
    return tuple(breakages)


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
    valued = {series.case for series in every if any(series.rounds)}
    failing = {series.case for series in every if series.failures and series.failures[-1] not in ("", "skipped")}
    return failing - valued


def numbers_before(past: Past, without: Collection[str]) -> Numbers:
    """What gave a number at any of the commits, but for the benchmarks of these names."""
    numbers: Numbers = {}
    for name in (known for known in past.names if known not in without):
        valued = [
            at for series in past.series(name) for at, rounds in zip(series.at, series.rounds, strict=True) if rounds
        ]
        benchmark = past.benchmark(name) if valued else None
        if benchmark is not None:
            numbers[name] = benchmark, min(valued)
    return numbers
