"""Who is visited when and by which protocol. Pure functions: no process, no clock, no files."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from regress.measure.wire import Proposal
from regress.model import SYNCHRONIZES, Benchmark, Case, Failure, Protocol, Round, SuiteProblem

ALONE = {"peak_rss"}
"""Metrics that need a process of their own: everything else in the process would count."""


def cases_of(benchmark: Benchmark) -> Iterator[Case]:
    """The benchmark's cases in asv's order."""
    for combination in itertools.product(*benchmark.params):
        yield Case(benchmark.name, tuple(combination))


def select(benchmarks: Iterable[Benchmark], patterns: Sequence[str]) -> list[Case]:
    """The cases that match any of the patterns; all of them where there is no pattern.

    A pattern that is the exact name of a benchmark or case selects that; any other is a regular expression that is searched in
    `name(params)`, as in asv. Raises re.error for a pattern that is neither.
    """
    cases = [case for benchmark in benchmarks for case in cases_of(benchmark)]
    if not patterns:
        return cases
    exact = {case.name for case in cases} | {str(case) for case in cases}
    wanted = [(pattern, None if pattern in exact else re.compile(pattern)) for pattern in patterns]
    return [case for case in cases if any(_matches(case, pattern, search) for pattern, search in wanted)]


def _matches(case: Case, pattern: str, search: re.Pattern[str] | None) -> bool:
    if search is None:
        return pattern in (case.name, str(case))
    return bool(search.search(str(case)))


def alternate(sides: Sequence[str], rounds: int) -> list[tuple[str, int]]:
    """(side, round) in the order of measuring: A B B A A B ..., so that a drift of the machine hits both sides alike."""
    order = []
    for index in range(rounds):
        turn = sides if index % 2 == 0 else list(reversed(sides))
        order += [(side, index) for side in turn]
    return order


def settle(proposals: Mapping[str, Proposal]) -> Protocol | None:
    """One protocol for both sides from what each side's unmeasured visit proposes; None where no side works.

    The first side (the base) decides wherever it can: a head that got slower must not change how it is measured. A side whose
    function synchronizes proposes no calls, so the other one is asked.
    """
    working = [
        proposal for proposal in proposals.values() if proposal.protocol is not None and proposal.failure is None
    ]
    if not working:
        return None
    free = [proposal for proposal in working if SYNCHRONIZES not in proposal.flags]
    return (free or working)[0].protocol


def problems_of(by_side: Mapping[str, Sequence[SuiteProblem]]) -> list[SuiteProblem]:
    """The problems of the last side (the head), and those that only another side has.

    The suite is the head's: a file of it that an older base cannot import holds benchmarks that are new, and fails nothing.
    """
    *others, head = by_side
    found = list(by_side[head])
    known = {(each.where, each.message) for each in found}
    for side in others:
        for each in by_side[side]:
            if (each.where, each.message) not in known:
                found.append(replace(each, message=f"on the {side} only: {each.message}", fatal=False))
    return found


def failed_round(name: str, params: Sequence[str], side: str, failure: Failure, order: int = 0) -> Round:
    """The record of a visit that gave no value."""
    return Round(name, list(params), side, order, failure=failure)


def hopeless(failures: int, planned: int, good_share: float) -> bool:
    """Whether so many rounds of a case have failed that the planned number can no longer give enough good ones."""
    return failures > planned - good_share * planned


def timeout_of(benchmark: Benchmark | None, default_s: float) -> float:
    """Wall-clock seconds that one visit to a case of the benchmark may take."""
    return benchmark.timeout_s if benchmark is not None and benchmark.timeout_s is not None else default_s
