"""Visits to cases in worker processes: whatever a case does to its process is its own failure, and the rest continues."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from regress.measure.wire import Proposal, Ready, Suite, Task, Visit
from regress.model import Benchmark, Case, Duration, Failure, Round
from regress.run import needs, plan, questions
from regress.run.deadline import Deadline
from regress.run.environments import Prepared
from regress.run.groups import Group, Parted
from regress.run.overhead import Overhead, OverheadClock, Spent
from regress.run.processes import Processes
from regress.run.programs import Programs
from regress.run.ranks import Ranks
from regress.run.replies import GaveUp, Replies, limit_s
from regress.run.servers import Died, Server, TimedOut
from regress.run.turns import Turns


@dataclass
class Visits:
    """Visits to cases in processes of any side. Raises TimeIsOver at the deadline."""

    processes: Processes
    programs: Programs
    default_timeout_s: float
    deadline: Deadline
    overheads: list[Overhead] = field(default_factory=list)
    """Of each process that visited all its cases."""
    clock: OverheadClock = field(default_factory=OverheadClock)
    parted: dict[Case, str] = field(default_factory=dict)
    """Why cases cannot be measured in turn with another side's."""
    _leaving: set[str] = field(default_factory=set)
    """Benchmarks that change the state of their process and leave it so."""

    def close(self) -> None:
        """Nothing is visited after this."""
        self.processes.close()

    def discover(self, sides: Sequence[Prepared], meanwhile: Callable[[], object] = lambda: None) -> dict[str, Suite]:
        """`questions.suites`, each with the cases of its programs."""
        suites = questions.suites(self.processes, sides, meanwhile)
        starter = self.processes.starter
        return {side.side.name: self.programs.discovered(starter, side, suites[side.side.name]) for side in sides}

    def setup_cache(self, side: Prepared, benchmark: Benchmark, directory: Path) -> Failure | None:
        """`questions.setup_cache`, with its time taken."""
        began_s = time.monotonic()
        try:
            return questions.setup_cache(
                self.processes, side, benchmark, directory, self.default_timeout_s, self.deadline
            )
        finally:
            self.clock.add(Duration(benchmark.name, setup_cache_s=time.monotonic() - began_s))

    # -- side after side -------------------------------------------------------------------------------------------------

    def visit(
        self, side: Prepared, tasks: Sequence[Task], benchmarks: Mapping[str, Benchmark], turns: Turns
    ) -> Iterator[tuple[Task, Proposal | Round]]:
        """Each task and its reply. Tasks that need a process of their own come last: because of their metric, or because the
        benchmark changes what others in its process would notice. Among the others, those measured alone come last. Programs
        run after everything else."""
        interrupt = self.processes.starter.interrupt
        by_programs = [task for task in tasks if benchmarks[task.name].program]
        tasks = [task for task in tasks if not benchmarks[task.name].program]
        own = {task.name for task in tasks if needs.has_process_of_its_own(benchmarks[task.name])} | self._leaving
        together = sorted((task for task in tasks if task.name not in own), key=turns.alone)
        with turns.working(interrupt):
            yield from self._by_processes(side, together, benchmarks, turns)
            for task in tasks:
                if task.name in own:
                    # Its process is its own, and so is the turn: from the start, which is part of what is measured.
                    with turns.taken(turns.alone(task), interrupt):
                        yield from self._by_processes(side, [task], benchmarks, Turns())
            for run in self.programs.apart(by_programs, benchmarks):
                with turns.taken(any(map(turns.alone, run)), interrupt):
                    yield from self._by_program(side, run)

    def _by_program(self, side: Prepared, tasks: Sequence[Task]) -> Iterator[tuple[Task, Proposal | Round]]:
        """Replies to tasks that one run of a program answers."""
        for task, reply in self.programs.visit(self.processes.starter, side, tasks, self.deadline):
            self.processes.note_program(side, reply)
            self.clock.answered(reply)
            yield task, reply

    def _by_processes(
        self, side: Prepared, tasks: Sequence[Task], benchmarks: Mapping[str, Benchmark], turns: Turns
    ) -> Iterator[tuple[Task, Proposal | Round]]:
        """Replies to tasks that share a process; after something ends it, the next tasks get another one."""
        left = list(tasks)
        while left:
            done = 0
            for task, reply in self._by_process(side, left, benchmarks, turns):
                done += 1
                self._note_leaving(reply)
                yield task, reply
            left = left[done:]

    def _by_process(
        self, side: Prepared, tasks: Sequence[Task], benchmarks: Mapping[str, Benchmark], turns: Turns
    ) -> Iterator[tuple[Task, Proposal | Round]]:
        """Replies to as many of the tasks as one process lives for; the one that kills it gets the failure as its reply."""
        self.deadline.check()
        current, spent = 0, Spent()
        try:
            with self._process(side, benchmarks[tasks[0].name], tasks[0]) as server:
                replies = Replies(self.processes, side, server, spent, self.clock, self.deadline)
                spent.pause()
                for step in turns.steps(tasks):
                    with turns.taken(step.alone, self.processes.starter.interrupt):
                        spent.resume()
                        server.send(Visit(list(step.tasks)))
                        for task in step.tasks:
                            reply = replies.next(task, limit_s([task]))
                            assert not isinstance(reply, Ready)
                            current += 1
                            yield task, reply
                        replies.end()
                        spent.pause()
                spent.resume()
            self.overheads.append(spent.overhead(len(tasks)))
        except GaveUp as ended:
            if ended.begun or not current:
                yield tasks[current], plan.unanswered(tasks[current], ended.failure)
        except TimedOut as error:
            self.processes.starter.release_locks()
            self.deadline.check()
            if current < len(tasks):
                where = f": {error.where}" if error.where else ""
                late = f"took longer than {tasks[current].timeout_s:g} s{where}"
                yield tasks[current], plan.unanswered(tasks[current], Failure("timeout", late, detail=error.stacks))
        except Died as died:
            if current < len(tasks):
                yield tasks[current], plan.unanswered(tasks[current], died.failure)

    def _process(self, side: Prepared, benchmark: Benchmark, first: Task) -> Server | Ranks:
        """What visits cases like those of the benchmark, from the first one on."""
        cold, (ranks, _) = benchmark.metric == "cold_time", needs.ranks_of(benchmark)
        # Whether a cold start works at all is seen in any process: a fresh one takes seconds to import a framework.
        alone = benchmark.metric in needs.ALONE and not (cold and first.protocol is None)
        if ranks > 1:
            gpus = max(needs.gpus_of(benchmark)[0], 1)
            return self.processes.ranks(side, ranks, gpus, first.order, alone=alone)
        return self.processes.get(side, first.order, alone=alone, cold=cold and alone)

    def _note_leaving(self, reply: Proposal | Round) -> None:
        """Take note of whether the case changes its process whenever it is visited. What an import does is done for good once
        the process that forks has imported the module as well: then the first round tells."""
        if isinstance(reply, Round):
            leaves = bool(reply.facts.get("leaves"))
        else:
            leaves = bool(reply.leaves) and not (reply.late and self.processes.kind != "fresh")
        if leaves:
            self._leaving.add(reply.name)

    # -- in turn ---------------------------------------------------------------------------------------------------------

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
                self._note_leaving(reply)
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
        left, interrupt = list(cases), self.processes.starter.interrupt
        while left:
            self.deadline.check()
            done, order = 0, left[0][0].order
            try:
                with (
                    turns.working(interrupt),
                    Group(self.processes, sides, order, self.clock, self.deadline) as group,
                ):
                    for tasks in left:
                        with turns.taken(turns.alone(tasks[0]), interrupt):
                            rounds = group.measure(tasks, references)
                        done += 1
                        yield from zip(tasks, rounds, strict=True)
                self.overheads.append(group.spent.overhead(sum(map(len, left))))
            except (Parted, GaveUp, TimedOut, Died) as error:
                if isinstance(error, TimedOut):
                    self.processes.starter.release_locks()
                self.deadline.check()
                if done == len(left):
                    return
                yield from self._parted(sides, left[done], benchmarks, turns, str(error))
                done += 1
            left = left[done:]

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
            self.parted[Case.of(tasks[0])] = why
        yield from replies
