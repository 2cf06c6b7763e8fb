"""Visits to cases in worker processes: whatever a case does to its process is its own failure, and the rest continues."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from regress.errors import NothingMeasured, RegressError
from regress.measure.wire import (
    Begin,
    Broken,
    CacheReady,
    CaseRecorded,
    Ceilings,
    End,
    MeasureCeilings,
    Proposal,
    Ready,
    Record,
    SetupCache,
    Task,
    Visit,
    WrongCode,
)
from regress.measure.wire import Suite as SuiteMessage
from regress.model import Benchmark, Duration, Failure, Round
from regress.run import groups, plan
from regress.run.environments import Prepared
from regress.run.groups import Group, Parted
from regress.run.overhead import Overhead, OverheadClock, Spent
from regress.run.processes import Processes
from regress.run.programs import Programs
from regress.run.ranks import Ranks
from regress.run.servers import Died, Server, TimedOut, discovered
from regress.run.turns import Turns
from regress.text.wording import quoted

T = TypeVar("T")

CEILINGS_TIMEOUT_S = 60.0
RECORD_GRACE_S = 120.0
"""Added to a case's timeout when it is profiled: it is called several times as often, and the trace is written."""


class _GaveUp(Exception):
    """A process cannot go on: with a task that it has `begun`, which gets no reply, or else because of the task before."""

    def __init__(self, failure: Failure, begun: bool) -> None:
        self.failure, self.begun = failure, begun
        super().__init__(failure.message)


class TimeIsOver(Exception):
    """The time that there was for measuring has ended; what was under way counts for nothing."""


@dataclass
class Visits:
    """Asks processes of any side about the suite and its cases. Questions about cases raise TimeIsOver at `end_s`."""

    processes: Processes
    default_timeout_s: float = 60.0
    end_s: float = math.inf
    """By the monotonic clock."""
    programs: Programs = field(default_factory=lambda: Programs(60.0))
    interpreters: dict[str, str] = field(default_factory=dict)
    """By side: the version of the Python that imported the suite."""
    _importers: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    """By side: the facts of the process that did so."""
    overheads: list[Overhead] = field(default_factory=list)
    """Of each process that visited all its cases."""
    clock: OverheadClock = field(default_factory=OverheadClock)
    imported: dict[str, bool] = field(default_factory=dict)
    """By side, once a process of it has ended: whether any has imported code of the repository."""
    parted: dict[tuple[str, tuple[str, ...]], str] = field(default_factory=dict)
    """Why cases, by name and parameters, cannot be measured in turn with another side's."""
    _leaving: set[str] = field(default_factory=set)
    """Benchmarks that change the state of their process and leave it so."""

    def close(self) -> None:
        """Nothing is asked after this."""
        self.processes.close()

    # -- the suite -------------------------------------------------------------------------------------------------------

    def discover(
        self, sides: Sequence[Prepared], meanwhile: Callable[[], object] = lambda: None
    ) -> dict[str, SuiteMessage]:
        """By side: the suite as it is found with the side's code. All of them import it at once, and `meanwhile` is called.

        Raises NothingMeasured if it cannot be imported at all. The process that imports it stays, to fork the workers,
        unless the settings want fresh ones.
        """
        with contextlib.ExitStack() as ending:
            servers = [self.processes.importing(side, ending) for side in sides]
            meanwhile()
            suites = {side.side.name: self._found(side, server) for side, server in zip(sides, servers, strict=True)}
            return {
                side.side.name: self.programs.discovered(self.processes.starter, side, suites[side.side.name])
                for side in sides
            }

    def _found(self, side: Prepared, server: Server) -> SuiteMessage:
        timeout_s, where = self.processes.starter.settings.discover_timeout_s, f"{side.side.name} {side.side.label}"
        self.interpreters[side.side.name] = str(server.opened.facts.get("python", "")) or "unknown"
        self._importers[side.side.name] = server.opened.facts
        try:
            reply = discovered(server, timeout_s)
        except TimedOut as late:
            what = f"the import of {late.importing}" if late.importing else "the import of the suite"
            raise NothingMeasured(
                f"{what} did not end within {timeout_s:.0f} s on {where}",
                why="it hangs, or it is slow",
                fix='fix the import, or raise "discover_timeout_s" under "regress" in asv.conf.json',
            ) from None
        except Died as died:
            module = died.importing or self.processes.starter.suite.name
            raise NothingMeasured(
                f"the process that imports the suite died on {where}, in {module}: {died.reason}",
                why=died.last_line or "it printed nothing",
                fix=f"{side.starts_python} -c {quoted(f'import {module}')}",
            ) from None
        if isinstance(reply, Broken):
            raise RegressError("the suite could not be read", why=reply.failure.message, fix="see --debug")
        return reply

    def setup_cache(self, side: Prepared, benchmark: Benchmark, directory: Path) -> Failure | None:
        """Run the benchmark's setup_cache in the directory; None when it worked."""
        declared = benchmark.setup_cache_timeout_s
        limit_s = self.default_timeout_s if declared is None else declared
        began_s = time.monotonic()
        try:
            with self.processes.get(side) as server:
                server.send(SetupCache(benchmark.name, str(directory)))
                ready = server.receive(self._within(limit_s))
        except TimedOut:
            self._end_if_over()
            return Failure("timeout", f"setup_cache took longer than {limit_s:.3g} s")
        except Died as died:
            return Failure("signal" if died.returncode < 0 else "error", f"setup_cache: {died.reason}", detail=died.log)
        finally:
            self.clock.add(Duration(benchmark.name, setup_cache_s=time.monotonic() - began_s))
        failure = ready.failure if isinstance(ready, (CacheReady, Broken)) else None
        if failure is None:
            return None
        return Failure(failure.kind, f"setup_cache: {failure.message}", failure.where, failure.detail)

    def ceilings(self, side: Prepared, peer: bool = False) -> Ceilings:
        """What the device does at most, with `peer` in copies to the next one too, measured in a process of its own;
        without some of it, the reason."""
        try:
            with self.processes.get(side) as server:
                server.send(MeasureCeilings(peer))
                reply = server.receive(CEILINGS_TIMEOUT_S)
        except TimedOut as late:
            return Ceilings(failure=Failure("timeout", f"took longer than {late.seconds:.3g} s"))
        except Died as died:
            return Ceilings(failure=Failure("error", died.reason, detail=died.log))
        return reply if isinstance(reply, Ceilings) else Ceilings(failure=Failure("error", reply.failure.message))

    def record(self, side: Prepared, record: Record) -> CaseRecorded:
        """What came of profiling a case in a process of its own."""
        limit_s = record.task.timeout_s + RECORD_GRACE_S
        try:
            with self.processes.get(side, alone=True) as server:
                server.send(record)
                reply = server.receive(limit_s)
        except TimedOut:
            return CaseRecorded(failure=Failure("timeout", f"took longer than {limit_s:.3g} s"))
        except Died as died:
            kind = "signal" if died.returncode < 0 else "error"
            return CaseRecorded(failure=Failure(kind, died.reason, detail=died.log))
        if isinstance(reply, WrongCode):
            raise _wrong_code(side, reply)
        return reply if isinstance(reply, CaseRecorded) else CaseRecorded(failure=reply.failure)

    # -- cases -----------------------------------------------------------------------------------------------------------

    def _within(self, timeout_s: float) -> float:
        """The timeout, or what time is left where that is less. Raises TimeIsOver if there is none."""
        self._end_if_over()
        return min(timeout_s, self.end_s - time.monotonic())

    def _end_if_over(self) -> None:
        if time.monotonic() >= self.end_s:
            raise TimeIsOver

    def visit(
        self, side: Prepared, tasks: Sequence[Task], benchmarks: Mapping[str, Benchmark], turns: Turns | None = None
    ) -> Iterator[tuple[Task, Proposal | Round]]:
        """Each task and its reply. Tasks that need a process of their own come last: because of their metric, or because the
        benchmark changes what others in its process would notice. Among the others, those measured alone come last. Programs
        run after everything else."""
        turns = turns or Turns()
        by_programs = [task for task in tasks if benchmarks[task.name].program]
        tasks = [task for task in tasks if not benchmarks[task.name].program]
        own = {task.name for task in tasks if plan.has_process_of_its_own(benchmarks[task.name])} | self._leaving
        together = sorted((task for task in tasks if task.name not in own), key=turns.alone)
        with turns.working(self.processes.starter.interrupt):
            yield from self._group(side, together, benchmarks, turns)
            for task in tasks:
                if task.name in own:
                    # Its process is its own, and so is the turn: from the start, which is part of what is measured.
                    with turns.taken(turns.alone(task), self.processes.starter.interrupt):
                        yield from self._group(side, [task], benchmarks, Turns())
            for run in self.programs.apart(by_programs, benchmarks):
                with turns.taken(any(map(turns.alone, run)), self.processes.starter.interrupt):
                    yield from self._run_of_program(side, run)

    def _run_of_program(self, side: Prepared, tasks: Sequence[Task]) -> Iterator[tuple[Task, Proposal | Round]]:
        """Replies to tasks that one run of a program answers. If no process of ours has visited anything, the side's facts are
        those of the process that imported the suite, and what the program says of the device."""
        name, processes = side.side.name, self.processes
        self.imported[name] = True  # it runs what the side has built
        for task, reply in self.programs.visit(processes.starter, side, tasks, self._within):
            processes.facts = processes.facts or self._importers.get(name, {})
            if isinstance(reply, Round):
                device = {key: reply.facts[key] for key in ("gpu",) if key in reply.facts}
                processes.first_facts.setdefault(name, {**self._importers.get(name, {}), **device})
            self.clock.answered(reply)
            yield task, reply

    def visit_in_turn(
        self,
        sides: Sequence[Prepared],
        cases: Sequence[Sequence[Task]],
        benchmarks: Mapping[str, Mapping[str, Benchmark]],
        references: Sequence[str],
        turns: Turns,
    ) -> Iterator[tuple[Task, Round]]:
        """Each task and its reply, where one process of each side takes its windows in turn with the others'. `cases` are the
        tasks of each case, of some sides or all.

        What cannot be measured so is measured by one side after the other, each in a process that nothing is beside; `parted`
        knows it from then on, unless it fails there too.
        """
        own = [tasks for tasks in cases if tasks[0].name in self._leaving]
        together = [tasks for tasks in cases if tasks[0].name not in self._leaving]
        for part in [together, *([tasks] for tasks in own)]:
            for task, reply in self._by_groups(sides, part, benchmarks, references, turns):
                if self._leaves(reply):
                    self._leaving.add(task.name)
                yield task, reply

    def _by_groups(
        self,
        sides: Sequence[Prepared],
        cases: Sequence[Sequence[Task]],
        benchmarks: Mapping[str, Mapping[str, Benchmark]],
        references: Sequence[str],
        turns: Turns,
    ) -> Iterator[tuple[Task, Round]]:
        """Replies to cases that share a group; after something ends it, the next cases get another one."""
        left = list(cases)
        while left:
            self._end_if_over()
            spent, done, order = Spent(), 0, left[0][0].order
            try:
                with (
                    turns.working(self.processes.starter.interrupt),
                    Group(self.processes, sides, order, self._within) as group,
                ):
                    for tasks in left:
                        with turns.taken(turns.alone(tasks[0]), self.processes.starter.interrupt):
                            replies = self._in_turn(group, sides, tasks, references, spent)
                        done += 1
                        yield from zip(tasks, replies, strict=True)
                self.overheads.append(spent.overhead(sum(map(len, left))))
            except (Parted, _GaveUp, TimedOut, Died) as error:
                if isinstance(error, TimedOut):
                    self.processes.starter.release_locks()
                self._end_if_over()
                if done == len(left):
                    return
                yield from self._parted(sides, left[done], benchmarks, turns, str(error))
                done += 1
            left = left[done:]

    def _in_turn(
        self, group: Group, sides: Sequence[Prepared], tasks: Sequence[Task], references: Sequence[str], spent: Spent
    ) -> list[Round]:
        by_name = {side.side.name: side for side in sides}
        asked = {task.side: replace(task, in_turn=True) for task in tasks}

        def next_of(name: str, timeout_s: float) -> Ready | Round:
            said = self._reply(by_name[name], group.servers[name], asked[name], timeout_s, spent)
            assert isinstance(said, (Ready, Round))
            if isinstance(said, Round):
                self._note_end(by_name[name], group.servers[name], spent)
            return said

        by_side = {round.side: round for round in group.measure(list(asked.values()), references, next_of)}
        return [by_side[task.side] for task in tasks]

    def _parted(
        self,
        sides: Sequence[Prepared],
        tasks: Sequence[Task],
        benchmarks: Mapping[str, Mapping[str, Benchmark]],
        turns: Turns,
        why: str,
    ) -> Iterator[tuple[Task, Round]]:
        """The replies of sides that are measured one after the other, after they could not be in turn."""
        by_name = {side.side.name: side for side in sides}
        replies: list[tuple[Task, Round]] = []
        for task in tasks:
            for done, reply in self.visit(by_name[task.side], [task], benchmarks[task.side], turns):
                assert isinstance(reply, Round)
                replies.append((done, reply))
        if all(reply.failure is None for _, reply in replies):
            self.parted[tasks[0].name, tuple(tasks[0].params)] = why
        yield from replies

    def _group(
        self, side: Prepared, tasks: Sequence[Task], benchmarks: Mapping[str, Benchmark], turns: Turns
    ) -> Iterator[tuple[Task, Proposal | Round]]:
        """Replies to tasks that share a process; after something ends it, the next tasks get another one."""
        left = list(tasks)
        while left:
            done = 0
            for task, reply in self._one_process(side, left, benchmarks, turns):
                done += 1
                if self._leaves(reply):
                    self._leaving.add(task.name)
                yield task, reply
            left = left[done:]

    def _leaves(self, reply: Proposal | Round) -> bool:
        """Whether the case changes its process whenever it is visited. What an import does is done for good once the process
        that forks has imported the module as well: then the first round tells."""
        if isinstance(reply, Round):
            return bool(reply.facts.get("leaves"))
        return bool(reply.leaves) and not (reply.late and self.processes.kind != "fresh")

    def _one_process(
        self, side: Prepared, tasks: Sequence[Task], benchmarks: Mapping[str, Benchmark], turns: Turns
    ) -> Iterator[tuple[Task, Proposal | Round]]:
        """Replies to as many of the tasks as one process lives for; the one that kills it gets the failure as its reply."""
        limits = [plan.timeout_of(benchmarks[task.name], self.default_timeout_s) for task in tasks]
        self._end_if_over()
        current, spent = 0, Spent()
        try:
            with self._process(side, benchmarks[tasks[0].name], tasks[0]) as server:
                spent.pause()
                for step in turns.steps(tasks):
                    with turns.taken(step.alone, self.processes.starter.interrupt):
                        spent.resume()
                        server.send(Visit(list(step.tasks)))
                        for task in step.tasks:
                            reply = self._reply(side, server, task, limits[current] + groups.GRACE_S, spent)
                            assert not isinstance(reply, Ready)
                            current += 1
                            yield task, reply
                        self._note_end(side, server, spent)
                        spent.pause()
                spent.resume()
            self.overheads.append(spent.overhead(len(tasks)))
        except _GaveUp as ended:
            if ended.begun or not current:
                yield tasks[current], plan.unanswered(tasks[current], ended.failure)
        except TimedOut as error:
            self.processes.starter.release_locks()
            self._end_if_over()
            if current < len(tasks):
                late = f"took longer than {limits[current]:.3g} s" + (f": {error.where}" if error.where else "")
                yield tasks[current], plan.unanswered(tasks[current], Failure("timeout", late, detail=error.stacks))
        except Died as died:
            if current < len(tasks):
                kind = "signal" if died.returncode < 0 else "error"
                yield tasks[current], plan.unanswered(tasks[current], Failure(kind, died.reason, detail=died.log))

    def _process(self, side: Prepared, benchmark: Benchmark, first: Task) -> Server | Ranks:
        """What visits cases like those of the benchmark, from the first one on."""
        cold, (ranks, _) = benchmark.metric == "cold_time", plan.ranks_of(benchmark)
        # Whether a cold start works at all is seen in any process: a fresh one takes seconds to import a framework.
        alone = benchmark.metric in plan.ALONE and not (cold and first.protocol is None)
        if ranks > 1:
            return self.processes.ranks(side, ranks, max(plan.gpus_of(benchmark)[0], 1), first.order, alone=alone)
        return self.processes.get(side, first.order, alone=alone, cold=cold and alone)

    def _reply(
        self, side: Prepared, server: Server | Ranks, task: Task, timeout_s: float, spent: Spent
    ) -> Proposal | Round | Ready:
        """What the process answers to the task, which comes next, with its time taken. Raises _GaveUp instead of that."""
        began_s = time.monotonic()
        try:
            reply = self._answer(side, server, task, timeout_s, spent)
        except (_GaveUp, TimedOut, Died):
            self.clock.unanswered(task, time.monotonic() - began_s)
            raise
        if not isinstance(reply, Ready):
            self.clock.answered(reply)
        return reply

    def _answer(
        self, side: Prepared, server: Server | Ranks, task: Task, timeout_s: float, spent: Spent
    ) -> Proposal | Round | Ready:
        begun, kind = False, Proposal if task.protocol is None else Round
        while not isinstance(message := server.receive(self._within(timeout_s)), (Proposal, Round, Ready)):
            if isinstance(message, WrongCode):
                raise _wrong_code(side, message)
            if isinstance(message, Broken):
                raise _GaveUp(message.failure, begun)
            if not isinstance(message, Begin):
                raise server.strange(message)
            begun = True
            spent.begin()
        if isinstance(message, Ready):
            if not task.in_turn:
                raise server.strange(message)
            return message
        if not isinstance(message, kind) or (message.name, message.params, message.side) != (
            task.name,
            task.params,
            task.side,
        ):
            raise server.strange(message)
        spent.measuring_s += message.seconds if isinstance(message, Proposal) else message.duration_s
        return message

    def _note_end(self, side: Prepared, server: Server | Ranks, spent: Spent) -> None:
        """Take note of what all cases together have done. Raises _GaveUp if the last one was too much for the process."""
        end = server.receive(self._within(groups.GRACE_S))
        if isinstance(end, Broken):
            raise _GaveUp(end.failure, begun=False)
        if not isinstance(end, End):
            raise server.strange(end)
        name = side.side.name
        self.imported[name] = self.imported.get(name, False) or bool(end.project_files)
        self.processes.note_late(side, end.late)
        spent.opening_s = end.opening_s


def _wrong_code(side: Prepared, wrong: WrongCode) -> RegressError:
    own = [root / f"{wrong.module}{ending}" for root in side.import_roots for ending in ("", ".py")]
    if not any(path.exists() for path in own):
        return NothingMeasured(
            f"{side.side.name} {side.side.label} would not be measured: it has no {wrong.module} to import",
            why=f"{wrong.file} was imported, which is not of the commit; looked in {', '.join(wrong.expected)}",
            fix='leave the commit out, or say where its packages are: "package_dir" under "regress" in asv.conf.json',
        )
    return NothingMeasured(
        f"{side.side.name} {side.side.label} would not be measured: {wrong.module} was imported from elsewhere",
        why=f"{wrong.file} is outside {', '.join(wrong.expected)}; an editable install or a path hook wins over it",
        fix=quoted(side.python, "-m", "pip", "uninstall", wrong.module),
    )
