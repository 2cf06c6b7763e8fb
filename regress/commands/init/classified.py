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

from regress.model import Batch, Benchmark, Case, Round, SuiteProblem, metric_of
from regress.run.execute import Job, JobResult, PartOfPhase, Watcher, discover, execute
from regress.run.plan import Selection, select
from regress.run.problems import apart, nothing_selected
from regress.text.wording import counted

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
    measured: JobResult
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
    def left(self) -> str:
        """What was not tried, and why, in words; empty where all was."""
        if len(self.kinds) == self.cases:
            return ""
        why = f"; {self.given_up} skipped, because another case of their benchmark timed out" if self.given_up else ""
        return f"{len(self.kinds)} of {counted(self.cases, 'case')} tried{why}"

    @property
    def counts(self) -> dict[Kind, int]:
        """How many cases of each kind that occurs, in the order of the kinds."""
        kinds = list(self.kinds.values())
        return {kind: kinds.count(kind) for kind in Kind if kind in kinds}

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
            round.name: value.unit
            for round in self.rounds
            if (value := round.values.get("value")) is not None
            and not self.benchmarks[round.name].declared.get("better")
        }
        names = {name for name, unit in units.items() if metric_of("value", unit).better == "unknown"}
        others = {case.name for case in self.kinds} - names
        return sorted({units[name] for name in names}), covering(names, others)

    def check_s(self, rounds: int, cases: int | None = None) -> float:
        """What a check of two sides would take of all cases, or of `cases`: the import of the suite, a first visit and `rounds`
        rounds a side.

        One call tells what a case costs at least, and those that were measured in full how long one of them is sampled;
        what was not tried is as they are.
        """
        first_s, between_s = self.measured.overhead or (0.0, 0.0)
        sampled_s = statistics.median([round.duration_s for round in self.measured.rounds] or [0.0])
        costs = [max(round.duration_s, sampled_s) + between_s for round in self.rounds]
        visit_s = first_s + statistics.fmean(costs or [0.0]) * (cases or self.cases)
        return 2 * (self.measured.start_s + (1 + rounds) * visit_s)


FULL = 6
"""Cases that are measured in full."""
PART = 0.2
"""Of the budget, that a further group of cases may take by what those before took."""


def classify(job: Job, watcher: Watcher, budget_s: float) -> Classified:
    """Try the cases of the job, until all are tried or the time is over, which ends a case that is under way. Raises
    NothingMeasured where it has none."""
    suite = discover(job, job.sides[-1], watcher)
    end_s = time.monotonic() + budget_s
    waiting = _in_turn(select(suite.benchmarks, job.selection))
    if not waiting:
        raise nothing_selected(job, suite.problems, suite.benchmarks)
    problems, _ = apart(suite.problems, job.selection, suite.benchmarks, job.suite)
    count, given_up, size = len(waiting), 0, FULL
    classified: Classified | None = None
    trying = _Trying(count, watcher)
    while waiting and (classified is None or (time.monotonic() < end_s and not classified.interrupted)):
        began, group, waiting = time.monotonic(), waiting[:size], waiting[size:]
        part = _group(replace(job, quick=classified is not None), group, trying, end_s)
        slow = _timed_out(part.rounds)
        given_up += sum(case.name in slow and case not in part.kinds for case in (*group, *waiting))
        waiting = [case for case in waiting if case.name not in slow]
        size = max(1, int(PART * budget_s * len(group) / (time.monotonic() - began)))
        classified = part if classified is None else classified.and_then(part)
    assert classified is not None
    return replace(classified, problems=tuple(problems), cases=count, given_up=given_up)


class _Trying(PartOfPhase):
    """How many of all cases have been tried. A case may give several rounds."""

    def __init__(self, cases: int, watcher: Watcher) -> None:
        super().__init__(watcher)
        self._seen: set[Case] = set()
        watcher.start(cases, "cases tried")

    def take(self, round: Round, facts: Mapping[str, Any], benchmark: Benchmark) -> None:
        """What is measured to find out is no result."""
        case = Case.of(round)
        self._watcher.advance(str(case), int(case not in self._seen))
        self._seen.add(case)


class _Growing:
    """The steps of a group: a case, then two, then four, so that one which takes for ever costs what is beside it and no more.
    None of a benchmark of which a case has timed out."""

    def __init__(self, cases: Sequence[Case], end_s: float) -> None:
        self.end_s = end_s
        self._left, self._size = list(cases), 1

    def next(self, measured: JobResult) -> Batch | None:
        slow = _timed_out(measured.rounds)
        left = [case for case in self._left if case.name not in slow]
        now, self._left = left[: self._size], left[self._size :]
        self._size *= 2
        return Batch(dict.fromkeys(now, 1)) if now else None


def _timed_out(rounds: Iterable[Round]) -> set[str]:
    """Names of the benchmarks of which a case has taken too long."""
    return {round.name for round in rounds if round.failure is not None and round.failure.kind == "timeout"}


def _in_turn(cases: Sequence[Case]) -> list[Case]:
    """One case of each benchmark, then another one of each, and so on."""
    by_name: dict[str, list[Case]] = {}
    for case in cases:
        by_name.setdefault(case.name, []).append(case)
    turns = itertools.zip_longest(*by_name.values())
    return [case for turn in turns for case in turn if case is not None]


def _group(job: Job, cases: Sequence[Case], trying: _Trying, end_s: float) -> Classified:
    """Visit the cases, and those that may belong under the device protocol once more under it, as far as there is time."""
    job = replace(job, selection=Selection(tuple(map(str, cases)), known=True))
    plain = execute(job, trying.take, trying, _Growing(cases, end_s))
    benchmarks = plain.benchmarks.get("head", {})
    first = {Case.of(round): round for round in plain.rounds}
    counted = any("launches" in round.values for round in plain.rounds)
    blind = not counted and "no_device" not in plain.facts.get("head", {})
    kinds = {case: _first_sight(round, benchmarks[case.name], blind) for case, round in first.items()}
    asking = {case for case, kind in kinds.items() if kind is Kind.WAITING}
    if not asking or plain.interrupted:
        return Classified(kinds, tuple(plain.rounds), benchmarks, plain, (), len(kinds), 0, plain.interrupted)
    names = sorted({case.name for case in asking})
    settings = replace(job.settings, cuda=(*job.settings.cuda, *(f"^{re.escape(name)}$" for name in names)))
    again = Selection(tuple(sorted(map(str, asking))), known=True)
    job = replace(job, settings=settings, selection=again)
    tried = execute(job, trying.take, trying, _Growing(sorted(asking, key=str), end_s))
    second = {case: round for round in tried.rounds if (case := Case.of(round)) in asking}
    kinds = {
        case: kind for case, kind in kinds.items() if case not in asking
    }  # what there was no time for is not known
    kinds |= {case: _at_second_sight(round) for case, round in second.items()}
    rounds = {**first, **{case: round for case, round in second.items() if kinds[case] in MOVABLE}}
    known = tuple(round for case, round in rounds.items() if case in kinds)
    return Classified(kinds, known, benchmarks, plain, (), len(kinds), 0, tried.interrupted)


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
