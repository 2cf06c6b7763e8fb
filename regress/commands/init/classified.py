"""What the cases of an existing suite are: on the CPU or on the device, and what they do about waiting for it.

Cases are called once, as many as a budget of time allows: first one of each benchmark, then the others. Those timed by the
host's clock that ask something of the device are called once more under the device protocol: what is said of them, and the
patterns that are recommended for them, have been seen to work. A few are measured in full, which tells what a check takes.
"""

from __future__ import annotations

import enum
import itertools
import re
import statistics
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from regress.model import Benchmark, Case, Round, SuiteProblem, metric_of
from regress.run.execute import Job, Measured, Watcher, discover, execute, nothing_selected
from regress.run.plan import Selection, select
from regress.run.problems import apart

WORK = ("launches", "copies")
"""Counters of what a call gives the device to do."""


class Kind(enum.Enum):
    """What a case is. The value is what follows its number: "41 CUDA with a trailing synchronize"."""

    CPU = "CPU"
    TRAILING = "CUDA with a trailing synchronize"
    FREE = "without one"
    WAITING = "waiting in between"
    ON_DEVICE = "on the device already"
    UNKNOWN = "CPU or CUDA"
    SKIPPED = "skipped"
    FAILED = "failing"


MOVABLE = (Kind.TRAILING, Kind.FREE)
"""What belongs under the device protocol."""


@dataclass(frozen=True)
class Classified:
    """The kind of every case that was tried, and a round of each."""

    kinds: Mapping[Case, Kind]
    rounds: tuple[Round, ...]
    benchmarks: Mapping[str, Benchmark]
    measured: Measured
    """The visit to those that were measured in full: facts of the device, what it cost beside measuring."""
    problems: tuple[SuiteProblem, ...]
    cases: int
    """How many there are, those that were not tried among them."""
    given_up: int = 0
    """Cases that were not tried because another one of their benchmark had timed out."""
    interrupted: bool = False

    def and_then(self, other: Classified) -> Classified:
        """With what was found of further cases."""
        return replace(
            self,
            kinds={**self.kinds, **other.kinds},
            rounds=(*self.rounds, *other.rounds),
            benchmarks={**self.benchmarks, **other.benchmarks},
            interrupted=other.interrupted,
        )

    @property
    def counts(self) -> dict[Kind, int]:
        """How many cases of each kind that occurs, in the order of the kinds."""
        found = list(self.kinds.values())
        return {kind: found.count(kind) for kind in Kind if kind in found}

    @property
    def words(self) -> str:
        """ "90 CPU · 41 CUDA with a trailing synchronize · 12 without one"."""
        counts = self.counts
        texts = {kind: kind.value for kind in counts}
        if Kind.TRAILING not in counts:
            texts |= {Kind.FREE: "CUDA without a synchronize"}
            texts |= {Kind.WAITING: "CUDA waiting in between"} if Kind.FREE not in counts else {}
        return " · ".join(f"{number} {texts[kind]}" for kind, number in counts.items())

    def patterns(self) -> list[str]:
        """Regular expressions for the names of all benchmarks with a movable case, and of no other that is timed."""
        names = {kind: {case.name for case, own in self.kinds.items() if own is kind} for kind in Kind}
        wanted = set().union(*(names[kind] for kind in MOVABLE))
        others = names[Kind.CPU] | names[Kind.WAITING] | names[Kind.UNKNOWN]
        return covering(wanted, {name for name in others - wanted if _is_timed(self.benchmarks[name])})

    def undirected(self) -> tuple[list[str], list[str]]:
        """Units of tracked numbers of which nothing says whether more or less of it is better, and regular expressions for the
        names of their benchmarks."""
        units = {
            each.name: value.unit
            for each in self.rounds
            if (value := each.values.get("value")) is not None and not self.benchmarks[each.name].declared.get("better")
        }
        names = {name for name, unit in units.items() if metric_of("value", unit).better == "unknown"}
        others = {case.name for case in self.kinds} - names
        return sorted({units[name] for name in names}), covering(names, others)

    def check_s(self, rounds: int, cases: int | None = None) -> float:
        """What a check of two sides would take of all cases, or of so many: a first visit and so many rounds a side.

        One call tells what a case costs at least, and those that were measured in full how long one of them is sampled;
        what was not tried is as they are.
        """
        first_s, between_s = self.measured.overhead or (0.0, 0.0)
        sampled_s = statistics.median([each.duration_s for each in self.measured.rounds] or [0.0])
        costs = [max(each.duration_s, sampled_s) + between_s for each in self.rounds]
        return 2 * (1 + rounds) * (first_s + statistics.fmean(costs or [0.0]) * (cases or self.cases))


FULL = 6
"""Cases that are measured in full."""
PART = 0.2
"""Of the budget, that a further group of cases may take by what those before took."""


def classify(job: Job, watcher: Watcher, budget_s: float) -> Classified:
    """Try the cases of the job, until all are tried or the time is over. Raises NothingMeasured where it has none."""
    ends = time.monotonic() + budget_s
    suite = discover(job, job.sides[-1])
    waiting = _in_turn(select(suite.benchmarks, job.selection))
    if not waiting:
        raise nothing_selected(job, suite.problems, suite.benchmarks)
    problems, _ = apart(suite.problems, job.selection, suite.benchmarks, job.suite)
    count, given_up, size = len(waiting), 0, FULL
    found: Classified | None = None
    while waiting and (found is None or (time.monotonic() < ends and not found.interrupted)):
        began, group, waiting = time.monotonic(), waiting[:size], waiting[size:]
        wanted = Selection(tuple(map(str, group)), known=True)
        limit_s = min(job.default_timeout_s, max(1.0, ends - began))
        part = _group(replace(job, selection=wanted, quick=found is not None, default_timeout_s=limit_s), watcher)
        slow = {each.name for each in part.rounds if each.failure is not None and each.failure.kind == "timeout"}
        given_up += sum(case.name in slow for case in waiting)
        waiting = [case for case in waiting if case.name not in slow]
        size = max(1, int(PART * budget_s * len(group) / (time.monotonic() - began)))
        found = part if found is None else found.and_then(part)
    assert found is not None
    return replace(found, problems=tuple(problems), cases=count, given_up=given_up)


def _in_turn(cases: Sequence[Case]) -> list[Case]:
    """One case of each benchmark, then another one of each, and so on."""
    by_name: dict[str, list[Case]] = {}
    for case in cases:
        by_name.setdefault(case.name, []).append(case)
    turns = itertools.zip_longest(*by_name.values())
    return [case for turn in turns for case in turn if case is not None]


def _group(job: Job, watcher: Watcher) -> Classified:
    """Visit every case of the job, and those that may belong under the device protocol once more under it."""
    plain = execute(job, _forget, watcher)
    benchmarks = plain.benchmarks.get("head", {})
    first = {_case(each): each for each in plain.rounds}
    counted = any("launches" in each.values for each in plain.rounds)
    blind = not counted and "no_device" not in plain.facts.get("head", {})
    kinds = {case: _first_sight(each, benchmarks[case.name], blind) for case, each in first.items()}
    asking = {case for case, kind in kinds.items() if kind is Kind.WAITING}
    if not asking or plain.interrupted:
        return Classified(kinds, tuple(plain.rounds), benchmarks, plain, (), len(kinds), 0, plain.interrupted)
    names = sorted({case.name for case in asking})
    settings = replace(job.settings, cuda=(*job.settings.cuda, *(f"^{re.escape(name)}$" for name in names)))
    again = Selection(tuple(sorted(map(str, asking))), known=True)
    tried = execute(replace(job, settings=settings, selection=again), _forget, watcher)
    second = {case: each for each in tried.rounds if (case := _case(each)) in asking}
    kinds |= {case: _at_second_sight(each) for case, each in second.items()}
    rounds = tuple({**first, **{case: each for case, each in second.items() if kinds[case] in MOVABLE}}.values())
    return Classified(kinds, rounds, benchmarks, plain, (), len(kinds), 0, tried.interrupted)


def _first_sight(round: Round, benchmark: Benchmark, blind: bool) -> Kind:
    """The kind as far as a round by the host's clock tells; WAITING for what asks something of the device. `blind`: the calls
    to the device cannot be counted here."""
    if round.failure is not None:
        return Kind.SKIPPED if round.failure.kind == "skipped" else Kind.FAILED
    if benchmark.needs_device:
        return Kind.ON_DEVICE
    if not _is_timed(benchmark):
        return Kind.CPU
    if any(name in round.values and round.values[name].value > 0 for name in WORK):
        return Kind.WAITING
    return Kind.UNKNOWN if blind else Kind.CPU


def _at_second_sight(round: Round) -> Kind:
    """The kind of a case that gives the device work, by what the device protocol made of it."""
    if "gpu_time" not in round.values or round.facts.get("synchronizes_kept"):
        return Kind.WAITING
    return Kind.TRAILING if round.facts.get("synchronizes_left_out") else Kind.FREE


def covering(wanted: Collection[str], others: Collection[str]) -> list[str]:
    """Regular expressions that are found in all of the wanted names and in none of the others: as few as whole modules and
    classes allow."""
    return list(_covering(sorted(wanted), sorted(others), 1))


def _covering(wanted: list[str], others: list[str], depth: int) -> Iterable[str]:
    for prefix in dict.fromkeys(_start(name, depth) for name in wanted):
        mine = [name for name in wanted if _start(name, depth) == prefix]
        rest = [name for name in others if _start(name, depth) == prefix]
        if prefix in mine:
            yield f"^{re.escape(prefix)}$"
        elif not rest:
            yield f"^{re.escape(prefix)}\\."
        else:
            yield from _covering(mine, rest, depth + 1)


def _start(name: str, depth: int) -> str:
    return ".".join(name.split(".")[:depth])


def _is_timed(benchmark: Benchmark) -> bool:
    """Whether it is a `time_*`: only these can be moved, and only these do patterns concern."""
    return benchmark.metric == "wall_time" and not benchmark.name.rpartition(".")[2].lower().startswith("timeraw")


def _case(each: Round) -> Case:
    return Case(each.name, tuple(each.params))


def _forget(round: Round, facts: Mapping[str, Any], benchmark: Benchmark) -> None:
    """What is measured to find out is no result."""
