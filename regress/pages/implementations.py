"""The implementations of a benchmark side by side, at the commits that its page offers: the newest one and the releases."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path

from regress.compare import implementations
from regress.compare.implementations import number_of
from regress.history import Recorded, Store
from regress.model import Contender, Implementations, Round, Series, Settings, Standing
from regress.pages import At, Combination, PageTime, Sides, Where
from regress.pages.branch import Branch
from regress.pages.lines import rounded

MOST_RELEASES = 12
"""Newest releases that are offered."""
MOST_TRIES = 5
"""Newest commits of a place that are searched for one with several implementations."""


class Beside:
    """Finds the Sides of benchmarks, and the flags of rounds. The results of a commit are read once and in full: the index of
    a history lacks the flags."""

    def __init__(self, results: Path, branch: Branch, settings: Settings) -> None:
        store, self._branch, self._settings = Store(results), branch, settings
        self._recorded = cache(lambda sha: store.load(sha).recorded)

    def of(self, name: str, every: Sequence[Series]) -> tuple[Sides, ...]:
        """For each place, the newest commit first. `every` are the series of the benchmark; commits are those of the branch."""
        sides = []
        for where, measured in _measured(every).items():
            newest = next(filter(None, (self._at(name, where, at) for at in measured[:MOST_TRIES])), None)
            if newest is None:
                continue
            older = [at for at in self._releases if at < newest.commit and at in measured]
            sides += [newest, *filter(None, (self._at(name, where, at) for at in older))]
        return tuple(sides)

    def flags(self, sha: str, series: Series) -> tuple[str, ...]:
        """The flags of the case's rounds at that commit, each once."""
        where, case = (series.machine, series.device, series.environment), series.case
        rounds = (round for recorded in self._recorded(sha) for round in _on_device(recorded, case.name, where))
        return tuple(
            dict.fromkeys(flag for round in rounds if tuple(round.params) == case.params for flag in round.flags)
        )

    @property
    def stamp(self) -> str:
        """A word that changes with the releases that are offered."""
        return " ".join(map(str, self._releases))

    @property
    def _releases(self) -> list[At]:
        """The newest tagged commits with results, the newest first."""
        tagged = (at for sha, at in self._branch.at.items() if self._branch.tags.get(sha))
        return sorted(tagged, reverse=True)[:MOST_RELEASES]

    def _at(self, name: str, where: Where, at: At) -> Sides | None:
        for recorded in self._recorded(self._branch.commits[at].sha):
            rounds = _on_device(recorded, name, where)
            benchmark = recorded.benchmarks.get(name)
            if rounds and benchmark is not None:
                for operation in implementations(rounds, {name: benchmark}, self._settings):
                    return sides_of(operation, where, at)
        return None


def _measured(every: Iterable[Series]) -> dict[Where, list[At]]:
    """The commits with values of each place, the newest first."""
    places: dict[Where, set[At]] = {}
    for series in every:
        own = places.setdefault((series.machine, series.device, series.environment), set())
        own.update(at for at, rounds in zip(series.at, series.rounds, strict=True) if rounds)
    return {where: sorted(own, reverse=True) for where, own in places.items()}


def _on_device(recorded: Recorded, name: str, where: Where) -> list[Round]:
    """The rounds of the benchmark in that place; those that name no device, as their process failed early, belong to each."""
    machine, device, environment = where
    if (recorded.machine.name, recorded.environment) != (machine, environment):
        return []
    return [round for round in recorded.rounds if round.name == name and round.facts.get("gpu", "") in ("", device)]


# -- as data of a page ---------------------------------------------------------------------------------------------------


def sides_of(operation: Implementations, where: Where, at: At) -> Sides:
    size = operation.param_names.index(operation.size) if operation.size else None
    return Sides(
        place="|".join(where),
        commit=at,
        metric=operation.metric.name,
        unit=operation.metric.unit,
        names=operation.names,
        param_names=operation.param_names,
        size=size,
        combinations=tuple(_combination(standing, operation, size) for standing in operation.standings),
        crossovers=tuple((crossover.params, crossover.words) for crossover in operation.crossovers),
    )


def _combination(standing: Standing, operation: Implementations, size: int | None) -> Combination:
    by_name: Mapping[str, Contender] = {contender.name: contender for contender in standing.contenders}
    return Combination(
        params=standing.params,
        size=None if size is None else number_of(standing.params[size]),
        outcome=standing.outcome,
        leaders=standing.leaders,
        reasons=standing.reasons,
        times=tuple(_timed(by_name.get(name)) for name in operation.names),
    )


def _timed(contender: Contender | None) -> PageTime | None:
    if contender is None:
        return None
    summary = contender.summary
    return PageTime(
        params=", ".join(contender.case.params),
        value=rounded(summary.center, 6) if summary else None,
        low=rounded(summary.low, 6) if summary else None,
        high=rounded(summary.high, 6) if summary else None,
        rounds=summary.n if summary else 0,
        ratio=rounded(contender.ratio, 6) if contender.ratio is not None else None,
        failure=contender.failure.kind if contender.failure else "",
    )
