"""Results under the old names of a benchmark, and in another order of its parameters, as results of the benchmark of today."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from regress.history import AsvTable, Recorded
from regress.model import Benchmark, old_names

T = TypeVar("T")
Recordings = list[tuple[tuple[int, ...], Recorded]]
"""What is recorded of a benchmark, with the places of its commits; of two about one commit, the later one counts."""


def names_of_today(
    names: Collection[str], was: Callable[[str], Iterable[str]], last: Callable[[str], int]
) -> dict[str, tuple[str, ...]]:
    """Each benchmark of today with its old names, the oldest first. `was` gives what a benchmark declares, `last` the place of
    the last commit that has results of it.

    An old name that has results after the last ones of the new name is still in use, and what several benchmarks claim is
    nobody's.
    """
    claims: dict[str, list[str]] = {}
    for name in names:
        for old in dict.fromkeys(old_names(name, was(name))):
            if old in names and last(old) < last(name):
                claims.setdefault(old, []).append(name)
    renamed: dict[str, list[str]] = {}
    for old, claiming in claims.items():
        if len(claiming) == 1:
            renamed.setdefault(claiming[0], []).append(old)

    def every(name: str) -> list[str]:
        olds = sorted(renamed.get(name, ()), key=last)
        return list(dict.fromkeys(older for old in olds for older in (*every(old), old)))

    gone = {old for olds in renamed.values() for old in olds}
    return {name: tuple(every(name)) for name in names if name not in gone}


def as_of_today(name: str, olds: Sequence[str], recorded: Callable[[str], Recordings]) -> Recordings:
    """All that is recorded of the benchmark under any of its names.

    asv's version is a hash of the code with the name in it. That the code was the same under both names, `was` says: the last
    version under the old name is the first one under the new.
    """
    newest = recorded(name)
    definition = last_definition(newest, name)
    recordings = [(places, _adapted(result, name, name, {}, definition)) for places, result in newest]
    follower, versions = (newest, name), dict[str, str]()
    for old in reversed(olds):
        earlier = recorded(old)
        last, first = last_definition(earlier, old), _first_definition(*follower)
        versions = {last.version: versions.get(first.version, first.version)} if last and first else {}
        recordings = [
            (places, _adapted(result, old, name, versions, definition)) for places, result in earlier
        ] + recordings
        follower = (earlier, old)
    return _of_one_code(recordings, name)  # where a commit has both, the new name stands last and counts


def _of_one_code(recordings: Recordings, name: str) -> Recordings:
    """The same, with one version for all that has the same code.

    asv's version is another one once a comment is, and the same one where only a helper is another: what we have recorded with
    its code has the version that this code had first, or where another code had that, one of its own.
    """
    by_code: dict[str, str] = {}
    known: dict[str, str] = {}
    """Of asv's versions: the one that their code had first."""
    for benchmark in (recorded.benchmarks[name] for _, recorded in recordings if name in recorded.benchmarks):
        if benchmark.uses and benchmark.code not in by_code:
            taken = benchmark.version in by_code.values()
            by_code[benchmark.code] = f"{benchmark.version} {benchmark.code}" if taken else benchmark.version
        if benchmark.uses:
            known.setdefault(benchmark.version, by_code[benchmark.code])
    return (
        [(places, _versioned(recorded, name, by_code, known)) for places, recorded in recordings]
        if by_code
        else recordings
    )


def _versioned(recorded: Recorded, name: str, by_code: Mapping[str, str], known: Mapping[str, str]) -> Recorded:
    def of(benchmark: Benchmark) -> Benchmark:
        version = by_code[benchmark.code] if benchmark.uses else known.get(benchmark.version, benchmark.version)
        return benchmark if version == benchmark.version else replace(benchmark, version=version)

    benchmarks = {**recorded.benchmarks}
    if name in benchmarks:
        benchmarks[name] = of(benchmarks[name])
    asv = tuple(table._replace(benchmark=of(table.benchmark)) for table in recorded.asv)
    return replace(recorded, benchmarks=benchmarks, asv=asv)


def last_definition(recordings: Recordings, name: str) -> Benchmark | None:
    """The benchmark as it was at the last commit."""
    definitions = [
        (max(places), recorded.benchmarks[name]) for places, recorded in recordings if name in recorded.benchmarks
    ]
    return max(reversed(definitions), key=lambda definition: definition[0])[1] if definitions else None


def _first_definition(recordings: Recordings, name: str) -> Benchmark | None:
    definitions = [
        (min(places), recorded.benchmarks[name]) for places, recorded in recordings if name in recorded.benchmarks
    ]
    return min(definitions, key=lambda definition: definition[0])[1] if definitions else None


def _adapted(
    recorded: Recorded, old: str, name: str, versions: Mapping[str, str], definition: Benchmark | None
) -> Recorded:
    benchmark = recorded.benchmarks.get(old)
    order = _order(benchmark, definition) if benchmark is not None else None
    if old == name and order is None:
        return recorded
    benchmarks = {}
    if benchmark is not None:
        benchmarks[name] = replace(
            benchmark,
            name=name,
            version=versions.get(benchmark.version, benchmark.version),
            param_names=_in(order, benchmark.param_names),
            params=_in(order, benchmark.params),
        )
    return replace(
        recorded,
        rounds=tuple(replace(round, name=name, params=_in(order, round.params)) for round in recorded.rounds),
        benchmarks=benchmarks,
        asv=tuple(_asv(table, benchmarks[name], order) for table in recorded.asv),
    )


def _asv(table: AsvTable, benchmark: Benchmark, order: list[int] | None) -> AsvTable:
    cases = table.cases if order is None else tuple(tuple(_in(order, list(case))) for case in table.cases)
    return table._replace(benchmark=replace(benchmark, metric=table.benchmark.metric), cases=cases)


def _order(benchmark: Benchmark, definition: Benchmark | None) -> list[int] | None:
    """The order that turns the parameters into those of the definition; None if they agree, or if there is no such order."""
    was, now = benchmark.param_names, definition.param_names if definition is not None else []
    if was == now or len(set(was)) != len(was) or sorted(was) != sorted(now):
        return None
    return [was.index(param) for param in now]


def _in(order: list[int] | None, values: list[T]) -> list[T]:
    return values if order is None or len(order) != len(values) else [values[place] for place in order]
