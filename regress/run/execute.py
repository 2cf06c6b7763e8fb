"""Rounds of all sides: discover, settle a protocol for each case in an unmeasured visit, then visit in turn.

Every round is handed on the moment it arrives.
"""

from __future__ import annotations

import importlib
import statistics
import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from typing import Protocol as Interface

from regress.errors import NothingMeasured
from regress.measure.wire import Proposal, Task
from regress.measure.wire import Suite as SuiteMessage
from regress.model import Batch, Benchmark, Case, Failure, Protocol, Round, Settings, SuiteProblem
from regress.model import Measured as Value
from regress.run import plan
from regress.run.environments import Prepared
from regress.run.environments.tree import unbuilt
from regress.run.plan import Selection
from regress.run.visits import Visits


class Watcher(Interface):
    """Who wants to know how far it is."""

    def start(self, total: int, title: str) -> None: ...
    def advance(self, text: str, steps: int = 1) -> None: ...
    def note(self, text: str) -> None: ...


Sink = Callable[[Round, Mapping[str, Any], Benchmark], None]
"""Takes each round as it arrives, with the facts of its process and what it was taken of."""


@dataclass
class Measured:
    """What was measured, as far as it got."""

    benchmarks: dict[str, dict[str, Benchmark]] = field(default_factory=dict)
    """By side, then by name: the benchmarks that were selected."""
    cases: dict[str, list[Case]] = field(default_factory=dict)
    """By side: the cases that were selected, as that side names them."""
    costs: dict[Case, float] = field(default_factory=dict)
    """Seconds that the unmeasured visits to a case have taken, all sides together."""
    rounds: list[Round] = field(default_factory=list)
    facts: dict[str, dict[str, Any]] = field(default_factory=dict)
    """By side: the facts of its first process."""
    problems: list[SuiteProblem] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    overhead: tuple[float, float] | None = None
    """Seconds that a process needs until it can measure (the median), and that a case takes beside that (the mean)."""
    unaffected: bool = False
    """Nothing was measured, because no benchmark covers what was changed."""
    interrupted: bool = False

    def of(self, side: str) -> list[Round]:
        return [each for each in self.rounds if each.side == side]


class Steps(Interface):
    """Who says what is measured next, from what has been measured so far; None where it is enough."""

    def next(self, found: Measured) -> Batch | None: ...


@dataclass(frozen=True)
class Job:
    """What to measure: the sides in turn, the suite's folder, which cases, how many rounds."""

    sides: tuple[Prepared, ...]
    suite: Path
    start_file: Path
    settings: Settings
    rounds: int
    """Of every case on every side, where nobody else says what is measured next."""
    selection: Selection = field(default_factory=Selection)
    quick: bool = False
    default_timeout_s: float = 60.0
    own_suites: Mapping[str, Path] = field(default_factory=dict)
    """By side: the folder of its suite, where each side is measured with its own."""

    def visits(self) -> Visits:
        return Visits(self.suite, self.start_file, self.settings, self.default_timeout_s, self.own_suites)


def discover(job: Job, side: Prepared) -> SuiteMessage:
    """The suite as it is found with this side's code."""
    visits = job.visits()
    try:
        return visits.discover([side])[side.side.name]
    finally:
        visits.close()


def execute(job: Job, sink: Sink, watcher: Watcher, steps: Steps | None = None) -> Measured:
    """Measure the job, in these steps or with its rounds. Ctrl-C ends it early: what arrived is returned, with `interrupted`
    set.

    Raises NothingMeasured where no case is selected, the suite has none, or the wrong code was imported.
    """
    measured, visits = Measured(), job.visits()
    with tempfile.TemporaryDirectory(prefix="regress-caches-", ignore_cleanup_errors=True) as scratch:
        run = _Execution(job, measured, visits, sink, watcher, Path(scratch))
        try:
            run.select()
            if not measured.unaffected:
                run.settle()
                run.measure(steps or plan.FixedRounds(job.rounds))
        except KeyboardInterrupt:
            measured.interrupted = True
        finally:
            visits.close()
    measured.facts = visits.first_facts
    measured.warnings += visits.warnings
    if visits.overheads:
        firsts, betweens, cases = zip(*visits.overheads, strict=True)
        measured.overhead = statistics.median(firsts), sum(betweens) / sum(cases)
    return measured


def _import_for_deciding() -> None:
    """Import what takes the time of several rounds and is needed once they are over."""
    importlib.import_module("scipy.special")


def _refuse_unbuilt(side: Prepared, suite: SuiteMessage, build: tuple[str, ...]) -> None:
    """Raise NothingMeasured where the side's code is not built: what cannot be imported would pass as new on the other side."""
    for problem in suite.problems:
        missing = unbuilt(side, problem.message) if problem.fatal else ""
        if missing:
            raise NothingMeasured(
                f"{side.side.name} {side.side.label} has no built extension: {missing}",
                why=f"{problem.message}; your checkout has the file, and git does not",
                fix='set the command that builds it: "build" under "regress" in asv.conf.json'
                if not build
                else f'correct "build" under "regress" in asv.conf.json, it does not make the file: {"; ".join(build)}',
            )


class _Execution:
    """One run of a job, stage by stage."""

    def __init__(
        self, job: Job, measured: Measured, visits: Visits, sink: Sink, watcher: Watcher, scratch: Path
    ) -> None:
        self._job, self._measured, self._visits = job, measured, visits
        self._sink, self._watcher, self._scratch = sink, watcher, scratch
        self._cases = measured.cases
        self._protocols: dict[tuple[str, Case], Protocol] = {}
        self._caches: dict[tuple[str, str], str] = {}
        """Folder of each (side, setup_cache key); empty where it failed."""
        self._counters: dict[tuple[str, Case], dict[str, Value]] = {}
        """What the unmeasured visits counted, until a round has taken it along."""
        self._dead: set[tuple[str, Case]] = set()
        """Cases that failed before the first round of a side."""
        self._failures: dict[tuple[str, Case], int] = {}
        self._planned = job.rounds
        """Rounds a side that are certain to be tried."""
        self._device = False
        """Whether a selected benchmark needs a device."""

    # -- before measuring ------------------------------------------------------------------------------------------------

    def select(self) -> None:
        """Discover the suite on each side, and choose the cases that are wanted."""
        job, measured = self._job, self._measured
        suites = self._visits.discover(job.sides, _import_for_deciding)
        for side in job.sides:
            _refuse_unbuilt(side, suites[side.side.name], job.settings.build)
        for name, found in suites.items():
            cases = plan.select(found.benchmarks, job.selection)
            names = {case.name for case in cases}
            self._cases[name] = cases
            measured.benchmarks[name] = {each.name: each for each in found.benchmarks if each.name in names}
        measured.problems = plan.problems_of({name: found.problems for name, found in suites.items()})
        asked = [each for found in suites.values() for each in found.benchmarks]
        measured.warnings += plan.complaints(asked, job.selection)
        chosen = [each for benchmarks in measured.benchmarks.values() for each in benchmarks.values()]
        if chosen:
            self._device = any(each.needs_device for each in chosen)
            self._visits.settle_process(suites, job.sides, self._device)
        else:
            measured.unaffected = bool(plan.select(asked, replace(job.selection, changed=None)))
            if not measured.unaffected:
                raise self._nothing_selected()

    def _nothing_selected(self) -> NothingMeasured:
        job, problems = self._job, [each for each in self._measured.problems if each.fatal]
        if job.selection.words:
            what = f"no benchmark matches {job.selection.words}"
            return NothingMeasured(what, why=f"searched in {job.suite}", fix="regress list")
        if problems:
            return NothingMeasured(
                f"no benchmark in {job.suite} could be imported",
                why=f"{problems[0].where}: {problems[0].message}",
                fix="mend that import",
            )
        return NothingMeasured(
            f"there is no benchmark in {job.suite}",
            why="no function or method there is named time_*, cudatime_*, cudacold_*, track_*, mem_*, peakmem_* or timeraw_*",
            fix='set "benchmark_dir" in asv.conf.json, or write one',
        )

    def settle(self) -> None:
        """The unmeasured visit to every case on each side, and the one protocol for both, where it is the same benchmark."""
        job = self._job
        total = sum(len(cases) for cases in self._cases.values())
        self._watcher.start(total, "first visits")
        proposals: dict[Case, dict[str, Proposal]] = {}
        for side in job.sides:
            self._refuse(side.side.name)
            self._setup_caches(side)
            cases = [case for case in self._cases[side.side.name] if (side.side.name, case) not in self._dead]
            tasks = [self._task(case, side) for case in cases]
            for task, reply in self._visits.visit(side, tasks, self._measured.benchmarks[side.side.name]):
                assert isinstance(reply, Proposal)
                case = Case(task.name, tuple(task.params))
                proposals.setdefault(case, {})[side.side.name] = reply
                self._measured.costs[case] = self._measured.costs.get(case, 0.0) + reply.seconds
                self._counters[side.side.name, case] = reply.values
                if reply.failure is not None:
                    self._bury(case, side.side.name, reply.failure, reply)
                self._watcher.advance(f"{side.side.name}: {case}")
            self._watcher.advance("", len(self._cases[side.side.name]) - len(tasks))
        self._visits.preload(job.sides, self._device)
        for case, offers in proposals.items():
            for alike in self._alike(case, offers):
                protocol = plan.settle(alike, self._visits.process)
                if protocol is not None:
                    self._protocols.update({(name, case): protocol for name in alike})

    def _alike(self, case: Case, offers: Mapping[str, Proposal]) -> Iterable[dict[str, Proposal]]:
        """The offers of the sides that have the same benchmark under that name: suites of their own may have two."""
        groups: dict[tuple[str, str], dict[str, Proposal]] = {}
        for name, offer in offers.items():
            benchmark = self._measured.benchmarks[name][case.name]
            groups.setdefault((benchmark.version, benchmark.metric), {})[name] = offer
        return groups.values()

    def _refuse(self, side: str) -> None:
        """What cannot be measured here at all is not tried."""
        for case in self._cases[side]:
            failure = plan.refusal(self._measured.benchmarks[side][case.name])
            if failure is not None:
                self._bury(case, side, failure)

    def _setup_caches(self, side: Prepared) -> None:
        """Run each setup_cache of the side once; what depends on a failed one fails with its reason."""
        name = side.side.name
        benchmarks = self._measured.benchmarks[name]
        for benchmark in benchmarks.values():
            key = benchmark.setup_cache_key
            if key is None or (name, key) in self._caches or plan.refusal(benchmark) is not None:
                continue
            directory = Path(tempfile.mkdtemp(dir=self._scratch))
            failure = self._visits.setup_cache(side, benchmark, directory)
            self._caches[name, key] = str(directory) if failure is None else ""
            if failure is not None:
                for case in self._cases[name]:
                    if benchmarks[case.name].setup_cache_key == key and (name, case) not in self._dead:
                        self._bury(case, name, failure)

    def _bury(self, case: Case, side: str, failure: Failure, found: Proposal | None = None) -> None:
        """The case fails on this side before anything is measured."""
        self._dead.add((side, case))
        self._keep(plan.failed_round(case.name, case.params, side, failure, found=found))

    # -- measuring -------------------------------------------------------------------------------------------------------

    def measure(self, steps: Steps) -> None:
        """Batch after batch, until the steps have enough."""
        while (batch := steps.next(self._measured)) is not None:
            self._batch(batch)

    def _batch(self, batch: Batch) -> None:
        """Round after round, the sides in turn."""
        sides = {side.side.name: side for side in self._job.sides}
        if batch.afresh:
            sides = dict(reversed(sides.items()))
            self._visits.begin_afresh(self._job.sides, self._device)
        longest = max(batch.rounds.values())
        self._planned = batch.first + longest
        wanted = {name: [case for case in cases if case in batch.rounds] for name, cases in self._cases.items()}
        self._watcher.start(sum(batch.rounds[case] for cases in wanted.values() for case in cases), batch.title)
        for name, order in plan.alternate(list(sides), longest, batch.first):
            due = {case for case in wanted[name] if order < batch.first + batch.rounds[case]}
            tasks = [
                self._task(case, sides[name], order, protocol)
                for (side, case), protocol in self._protocols.items()
                if side == name and case in due and self._worth(case, name, order)
            ]
            tasks = plan.shuffled(tasks, self._job.settings.seed)
            for task, reply in self._visits.visit(sides[name], tasks, self._measured.benchmarks[name]):
                assert isinstance(reply, Round)
                self._keep(self._with_counters(reply))
                where = f"round {order - batch.first + 1} of {longest}, {name}"
                self._watcher.advance(f"{where}: {Case(task.name, tuple(task.params))}")
            self._watcher.advance("", len(due) - len(tasks))

    def _with_counters(self, round: Round) -> Round:
        """The first round with values takes along what was counted in the unmeasured visit of its side."""
        if not round.values:
            return round
        counted = self._counters.pop((round.side, Case(round.name, tuple(round.params))), {})
        return replace(round, values={**round.values, **counted}) if counted else round

    def _worth(self, case: Case, name: str, order: int) -> bool:
        """Whether to visit the case again: not where it fails, and once only where it fails on the other side, to prove
        that it works on this one."""
        return not self._fails(case, name) and (order == 0 or not any(self._fails(case, each) for each in self._cases))

    def _fails(self, case: Case, name: str) -> bool:
        hopeless = plan.hopeless(self._failures.get((name, case), 0), self._planned, self._job.settings.good_rounds)
        return (name, case) in self._dead or hopeless

    def _task(self, case: Case, side: Prepared, order: int = -1, protocol: Protocol | None = None) -> Task:
        benchmark = self._measured.benchmarks[side.side.name][case.name]
        return Task(
            case.name,
            list(case.params),
            side.side.name,
            order,
            protocol,
            memory=0 <= order < self._job.settings.memory_rounds,
            cache_dir=self._caches.get((side.side.name, benchmark.setup_cache_key or ""), ""),
            quick=self._job.quick,
            timeout_s=plan.timeout_of(benchmark, self._job.default_timeout_s),
        )

    def _keep(self, round: Round) -> None:
        if round.failure is not None:
            key = round.side, Case(round.name, tuple(round.params))
            self._failures[key] = self._failures.get(key, 0) + 1
        self._measured.rounds.append(round)
        self._sink(round, self._visits.facts, self._measured.benchmarks[round.side][round.name])
