"""Rounds of all sides: discover, settle a protocol for each case in an unmeasured visit, then visit in turn.

Every round is handed on the moment it arrives. A case that fails costs its process and nothing else: the cases after it go on
in a new one.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from typing import Protocol as Interface

from regress.errors import NothingMeasured, RegressError
from regress.measure.wire import (
    Begin,
    Broken,
    CacheReady,
    Discover,
    End,
    Open,
    Proposal,
    SetupCache,
    Task,
    Visit,
    WrongCode,
)
from regress.measure.wire import Suite as SuiteMessage
from regress.model import Benchmark, Case, Failure, Protocol, Round, Settings, SuiteProblem
from regress.run import plan
from regress.run.environments import Prepared
from regress.run.servers import Died, Reaper, Server, TimedOut

GRACE_S = 10.0
"""Beyond a case's timeout: what the worker may need around it."""


class Watcher(Interface):
    """Who wants to know how far it is."""

    def start(self, total: int, title: str) -> None: ...
    def advance(self, text: str, steps: int = 1) -> None: ...
    def note(self, text: str) -> None: ...


Sink = Callable[[Round, Mapping[str, Any]], None]
"""Takes each round and the facts of its process as it arrives."""


@dataclass
class Measured:
    """What was measured, as far as it got."""

    benchmarks: dict[str, dict[str, Benchmark]] = field(default_factory=dict)
    """By side, then by name: the benchmarks that were selected."""
    rounds: list[Round] = field(default_factory=list)
    facts: dict[str, dict[str, Any]] = field(default_factory=dict)
    problems: list[SuiteProblem] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    protocols: dict[Case, Protocol] = field(default_factory=dict)
    planned: int = 0
    interrupted: bool = False

    def of(self, side: str) -> list[Round]:
        return [each for each in self.rounds if each.side == side]


@dataclass(frozen=True)
class Job:
    """What to measure: the sides in turn, the suite's folder, which cases, how many rounds."""

    sides: tuple[Prepared, ...]
    suite: Path
    start_file: Path
    settings: Settings
    rounds: int
    patterns: tuple[str, ...] = ()
    quick: bool = False
    default_timeout_s: float = 60.0


def discover(job: Job, side: Prepared) -> SuiteMessage:
    """The suite as it is found with this side's code."""
    run = _Execution(job, Measured(), lambda round, facts: None, None)
    with run.open():
        return run.discover(side)


def execute(job: Job, sink: Sink, watcher: Watcher) -> Measured:
    """Measure the job. Ctrl-C ends it early: what arrived is returned, with `interrupted` set.

    Raises NothingMeasured where no case is selected or the suite has none, RegressError where the wrong code was imported.
    """
    measured = Measured()
    run = _Execution(job, measured, sink, watcher)
    with run.open():
        try:
            run.select()
            run.settle()
            run.measure()
        except KeyboardInterrupt:
            measured.interrupted = True
    return measured


class _Execution:
    def __init__(self, job: Job, measured: Measured, sink: Sink, watcher: Watcher | None) -> None:
        self._job, self._measured, self._sink, self._watcher = job, measured, sink, watcher
        self._reaper = Reaper()
        self._facts: Mapping[str, Any] = {}
        """Of the process that was started last."""
        self._cases: dict[str, list[Case]] = {}
        self._caches: dict[tuple[str, str], str] = {}
        self._dead: set[tuple[str, Case]] = set()
        """Cases that failed in the unmeasured visit of a side."""

    @contextlib.contextmanager
    def open(self) -> Iterator[None]:
        with tempfile.TemporaryDirectory(prefix="regress-caches-", ignore_cleanup_errors=True) as caches:
            self._scratch = Path(caches)
            try:
                yield
            finally:
                self._reaper.close()

    # -- before measuring ------------------------------------------------------------------------------------------------

    def discover(self, side: Prepared) -> SuiteMessage:
        timeout_s = self._job.settings.discover_timeout_s
        try:
            with self._server(side) as server:
                server.send(Discover())
                found = server.receive(timeout_s)
        except TimedOut:
            raise NothingMeasured(
                f"the suite was not imported within {timeout_s:.0f} s on {side.side.name} {side.side.label}",
                why="a module of it hangs at import, or the import is slow",
                fix='raise "discover_timeout_s" under "regress" in asv.conf.json, or mend the import',
            ) from None
        except Died as died:
            raise NothingMeasured(
                f"the process that imports the suite died on {side.side.name} {side.side.label}: {died.reason}",
                why=(died.log.strip().splitlines() or ["it printed nothing"])[-1],
                fix=f"PYTHONPATH={side.import_roots[0]} {side.python} -c 'import {self._job.suite.name}'",
            ) from None
        if isinstance(found, Broken):
            raise RegressError("the suite could not be read", why=found.failure.message, fix="see the traceback below")
        assert isinstance(found, SuiteMessage)
        return found

    def select(self) -> None:
        job, measured = self._job, self._measured
        problems: dict[str, list[SuiteProblem]] = {}
        for side in job.sides:
            found = self.discover(side)
            problems[side.side.name] = found.problems
            cases = plan.select(found.benchmarks, job.patterns)
            names = {case.name for case in cases}
            self._cases[side.side.name] = cases
            measured.benchmarks[side.side.name] = {each.name: each for each in found.benchmarks if each.name in names}
        measured.problems = plan.problems_of(problems)
        if not any(self._cases.values()):
            raise self._nothing_selected()

    def _nothing_selected(self) -> NothingMeasured:
        job, problems = self._job, [each for each in self._measured.problems if each.fatal]
        if job.patterns:
            wanted = " or ".join(repr(pattern) for pattern in job.patterns)
            return NothingMeasured(f"no benchmark matches {wanted}", why=f"searched in {job.suite}", fix="regress list")
        if problems:
            return NothingMeasured(
                f"no benchmark in {job.suite} could be imported",
                why=f"{problems[0].where}: {problems[0].message}",
                fix="mend that import",
            )
        return NothingMeasured(
            f"there is no benchmark in {job.suite}",
            why="no function or method there is named time_*, cudatime_*, track_*, mem_*, peakmem_* or timeraw_*",
            fix='set "benchmark_dir" in asv.conf.json, or write one',
        )

    def settle(self) -> None:
        """The unmeasured visit to every case on each side, and the one protocol for both."""
        job, measured = self._job, self._measured
        total = sum(len(cases) for cases in self._cases.values())
        if self._watcher is not None:
            self._watcher.start(total * (1 + job.rounds), "measuring")
        proposals: dict[Case, dict[str, Proposal]] = {}
        for side in job.sides:
            self._setup_caches(side)
            tasks = [
                self._task(case, side) for case in self._cases[side.side.name] if not self._cache_failed(case, side)
            ]
            for task, reply in self._visit(side, tasks, "first visit"):
                case = Case(task.name, tuple(task.params))
                if isinstance(reply, Proposal):
                    proposals.setdefault(case, {})[side.side.name] = reply
                    if reply.failure is not None:
                        self._dead.add((side.side.name, case))
                        self._keep(plan.failed_round(task.name, task.params, task.side, reply.failure))
        for case, offers in proposals.items():
            protocol = plan.settle(offers)
            if protocol is not None:
                measured.protocols[case] = protocol

    def _setup_caches(self, side: Prepared) -> None:
        """Run each setup_cache of the side once; what depends on a failed one fails with its reason."""
        benchmarks = self._measured.benchmarks[side.side.name]
        for name, benchmark in benchmarks.items():
            key = (side.side.name, benchmark.setup_cache_key or "")
            if not key[1] or key in self._caches:
                continue
            directory = Path(tempfile.mkdtemp(dir=self._scratch))
            failure = self._run_setup_cache(side, name, directory, benchmark.setup_cache_timeout_s)
            self._caches[key] = str(directory) if failure is None else ""
            if failure is not None:
                dependents = {each.name for each in benchmarks.values() if each.setup_cache_key == key[1]}
                for case in self._cases[side.side.name]:
                    if case.name in dependents:
                        self._keep(plan.failed_round(case.name, case.params, side.side.name, failure))

    def _run_setup_cache(self, side: Prepared, name: str, directory: Path, timeout_s: float | None) -> Failure | None:
        limit_s = self._job.default_timeout_s if timeout_s is None else timeout_s
        try:
            with self._server(side) as server:
                server.send(SetupCache(name, str(directory)))
                ready = server.receive(limit_s)
        except TimedOut:
            return Failure("timeout", f"setup_cache took longer than {limit_s:.3g} s")
        except Died as died:
            return Failure("signal" if died.returncode < 0 else "error", f"setup_cache: {died.reason}", detail=died.log)
        if isinstance(ready, CacheReady) and ready.failure is not None:
            return replace(ready.failure, message=f"setup_cache: {ready.failure.message}")
        return None

    def _cache_failed(self, case: Case, side: Prepared) -> bool:
        benchmark = self._measured.benchmarks[side.side.name][case.name]
        return self._caches.get((side.side.name, benchmark.setup_cache_key or "")) == ""

    # -- measuring -------------------------------------------------------------------------------------------------------

    def measure(self) -> None:
        job = self._job
        sides = {side.side.name: side for side in job.sides}
        for name, order in plan.alternate(list(sides), job.rounds):
            side = sides[name]
            tasks = [
                self._task(case, side, order, protocol)
                for case, protocol in self._measured.protocols.items()
                if case in self._cases[name] and self._worth(case, name, order)
            ]
            self._measured.planned += len(tasks)
            for _, reply in self._visit(side, tasks, f"round {order + 1} of {job.rounds}"):
                if isinstance(reply, Round):
                    self._keep(reply)
            self._skip_steps(len(self._cases[name]) - len(tasks))

    def _worth(self, case: Case, name: str, order: int) -> bool:
        """Whether to visit the case again: not where it fails, and once only where it fails on the other side, to prove
        that it works on this one."""
        return not self._fails(case, name) and (order == 0 or not any(self._fails(case, each) for each in self._cases))

    def _fails(self, case: Case, name: str) -> bool:
        if (name, case) in self._dead:
            return True
        of_case = [
            each for each in self._measured.rounds if each.side == name and Case(each.name, tuple(each.params)) == case
        ]
        return plan.hopeless(of_case, self._job.rounds, self._job.settings.good_rounds)

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
        )

    def _keep(self, round: Round) -> None:
        self._measured.rounds.append(round)
        self._sink(round, self._facts)

    # -- processes -------------------------------------------------------------------------------------------------------

    def _visit(self, side: Prepared, tasks: Sequence[Task], what: str) -> Iterator[tuple[Task, Proposal | Round]]:
        """Each task and its reply. Tasks that need a process of their own come last."""
        benchmarks = self._measured.benchmarks[side.side.name]
        alone = [task for task in tasks if benchmarks[task.name].metric in plan.ALONE]
        together = [task for task in tasks if benchmarks[task.name].metric not in plan.ALONE]
        for group in [together, *([task] for task in alone)]:
            left = list(group)
            while left:
                done = 0
                for task, reply in self._one_process(side, left):
                    done += 1
                    yield task, reply
                    if self._watcher is not None:
                        self._watcher.advance(f"{what}, {side.side.name}: {Case(task.name, tuple(task.params))}")
                left = left[done:]

    def _one_process(self, side: Prepared, tasks: Sequence[Task]) -> Iterator[tuple[Task, Proposal | Round]]:
        """Replies to as many of the tasks as one process lives for; the one that kills it gets the failure as its reply."""
        current = 0
        try:
            with self._server(side) as server:
                server.send(Visit(list(tasks)))
                while current < len(tasks):
                    task = tasks[current]
                    message = server.receive(self._limit_s(side, task))
                    if isinstance(message, (Proposal, Round)):
                        current += 1
                        yield task, message
                    elif isinstance(message, WrongCode):
                        raise self._wrong_code(side, message)
                    elif isinstance(message, Broken):
                        return
                    else:
                        assert isinstance(message, (Begin, End))
                self._note_code(side, server)
        except TimedOut:
            timeout_s = self._limit_s(side, tasks[current]) - GRACE_S
            yield (
                tasks[current],
                self._failed(tasks[current], Failure("timeout", f"took longer than {timeout_s:.3g} s")),
            )
        except Died as died:
            if current == len(tasks):
                return
            kind = "signal" if died.returncode < 0 else "error"
            failure = Failure(kind, died.reason, detail=died.log)
            yield tasks[current], self._failed(tasks[current], failure)

    def _failed(self, task: Task, failure: Failure) -> Proposal | Round:
        if task.protocol is None:
            return Proposal(task.name, task.params, task.side, failure=failure)
        return plan.failed_round(task.name, task.params, task.side, failure, task.order)

    def _note_code(self, side: Prepared, server: Server) -> None:
        end = server.receive(GRACE_S)
        if isinstance(end, End) and not end.project_files:
            text = "the suite imports nothing of this repository: it measures installed packages only"
            if text not in self._measured.warnings:
                self._measured.warnings.append(text)

    def _wrong_code(self, side: Prepared, found: WrongCode) -> RegressError:
        return NothingMeasured(
            f"{side.side.name} {side.side.label} would not be measured: {found.module} was imported from elsewhere",
            why=f"{found.file} is outside {', '.join(found.expected)}; an editable install or a path hook wins over it",
            fix=f"{side.python} -m pip uninstall {found.module}",
        )

    def _limit_s(self, side: Prepared, task: Task) -> float:
        benchmark = self._measured.benchmarks[side.side.name][task.name]
        return plan.timeout_of(benchmark, self._job.default_timeout_s) + GRACE_S

    def _server(self, side: Prepared) -> Server:
        settings = self._job.settings
        opening = Open(
            suite_dir=str(self._job.suite),
            import_roots=[str(root) for root in side.import_roots],
            side=side.side.name,
            device=settings.device,
            seed=settings.seed,
        )
        try:
            server = Server(self._job.start_file, side.python, side.variables, opening, self._reaper)
        except Died as died:
            raise NothingMeasured(
                f"no process could be started for {side.side.name} {side.side.label}",
                why=(died.log.strip().splitlines() or [died.reason])[-1],
                fix=f"{side.python} --version",
            ) from None
        self._facts = server.opened.facts
        self._measured.facts.setdefault(side.side.name, dict(server.opened.facts))
        return server

    def _skip_steps(self, steps: int) -> None:
        if self._watcher is not None and steps > 0:
            self._watcher.advance("", steps)
