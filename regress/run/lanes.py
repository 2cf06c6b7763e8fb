"""Several GPUs of one host at once, each in a lane: a thread, and worker processes that see that GPU alone.

(The lanes of a Protocol are something else, streams of one GPU.) A case belongs to one lane, with all its rounds on all sides,
or to one in each group of sides that a GPU has for itself; so no two threads measure the same case of a side. What lanes share
is theirs to guard who hand them work.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TypeVar

from regress.measure.wire import Proposal, Suite, Task
from regress.model import Benchmark, Failure, Round
from regress.run import plan
from regress.run.environments import Prepared
from regress.run.gpus import Gpu
from regress.run.job import Job
from regress.run.processes import NotStarted, Processes
from regress.run.programs import Programs
from regress.run.turns import Turns
from regress.run.visits import Visits

T = TypeVar("T")

POLL_S = 1.0


@dataclass(eq=False)
class Lane:
    """One thread's part: visits to the cases that are its own.

    What it cannot do any more, because no process of it can be started (a GPU that has fallen out), costs its own cases, each
    with the reason, where other lanes are left; else the error is raised.
    """

    visits: Visits
    sides: Sequence[Prepared]
    """All that are measured in it."""
    gpus: tuple[Gpu, ...] = ()
    """All that its processes see; none: whatever the sides' variables show."""
    cpus: frozenset[int] = frozenset()
    """Processors that they are kept to; empty: they run anywhere."""
    device: bool = False
    """Whether any of its cases needs a device."""
    suites: Mapping[str, Suite] = field(default_factory=dict)
    """By side, as its processes found them."""
    others: Sequence[Lane] = ()
    """All lanes, itself among them."""
    lost: Failure | None = None
    """Why nothing more can be measured in it."""

    @property
    def processes(self) -> Processes:
        return self.visits.processes

    def discover(self, meanwhile: Callable[[], object] = lambda: None) -> None:
        self.suites = self.visits.discover(self.sides, meanwhile)

    def settle_process(self) -> None:
        self._attempt(lambda: self.processes.settle(self.suites, self.sides, self.device))

    def preload(self) -> None:
        self._attempt(lambda: self.processes.preload(self.sides, self.device))

    def begin_afresh(self) -> None:
        self._attempt(lambda: self.processes.begin_afresh(self.sides, self.device))

    def setup_cache(self, side: Prepared, benchmark: Benchmark, directory: Path) -> Failure | None:
        failed = self._attempt(lambda: self.visits.setup_cache(side, benchmark, directory))
        return self.lost or failed

    def visit(
        self, side: Prepared, tasks: Sequence[Task], benchmarks: Mapping[str, Benchmark], turns: Turns
    ) -> Generator[tuple[Task, Proposal | Round], None, None]:
        """Each task and its reply, as `Visits.visit` gives them; that of a lost lane is why it is lost.

        To be closed by who does not want all of them: an error on the way would keep the worker until the lane is gone."""
        left = list(tasks)
        if self.lost is None:
            try:
                for task, reply in self.visits.visit(side, tasks, benchmarks, turns):
                    left.remove(task)
                    yield task, reply
            except NotStarted as error:
                self._lose(error)
        for task in left:
            assert self.lost is not None
            yield task, plan.unanswered(task, self.lost)

    def visit_in_turn(
        self,
        cases: Sequence[Sequence[Task]],
        benchmarks: Mapping[str, Mapping[str, Benchmark]],
        references: Sequence[str],
        turns: Turns,
    ) -> Generator[tuple[Task, Round], None, None]:
        """The same as `Visits.visit_in_turn` gives them. Where there are no `references`, the first side is one."""
        references = references or [self.sides[0].side.name]
        left = [task for tasks in cases for task in tasks]
        if self.lost is None and left:
            try:
                for task, reply in self.visits.visit_in_turn(self.sides, cases, benchmarks, references, turns):
                    left.remove(task)
                    yield task, reply
            except NotStarted as error:
                self._lose(error)
        for task in left:
            assert self.lost is not None
            yield task, plan.failed_round(task.name, task.params, task.side, self.lost, task.order)

    def _attempt(self, step: Callable[[], T]) -> T | None:
        if self.lost is None:
            try:
                return step()
            except NotStarted as error:
                self._lose(error)
        return None

    def _lose(self, error: NotStarted) -> None:
        where = ", ".join(each.uuid for each in self.gpus)
        self.lost = Failure("error", f"{where} cannot be used: {error.what}" + (f" ({error.why})" if error.why else ""))
        if all(each.lost is not None for each in self.others):
            raise error

    @contextlib.contextmanager
    def pinned(self) -> Iterator[None]:
        """The calling thread runs on the lane's processors, and so does every process that it starts."""
        if not self.cpus or not hasattr(os, "sched_setaffinity"):
            yield
            return
        before = os.sched_getaffinity(0)
        os.sched_setaffinity(0, self.cpus)
        try:
            yield
        finally:
            os.sched_setaffinity(0, before)


class Lanes:
    """The lanes of a job: one for each of its GPUs, or a single one where it names none; and those for what is measured while
    nothing else is, by the number of GPUs that they see, which are not kept to any processors."""

    def __init__(self, job: Job, end_s: float) -> None:
        self._job, self._end_s = job, end_s
        self._programs = Programs(job.default_timeout_s)
        self.all: list[Lane] = []
        self.beside = [self._opened(sides, (gpu,), gpu.cpus) for gpus, sides in job.parts() for gpu in gpus] or [
            self._opened(job.sides, ())
        ]
        self._alone: dict[tuple[int, str], Lane] = {}

    def _opened(self, sides: Sequence[Prepared], gpus: tuple[Gpu, ...], cpus: frozenset[int] = frozenset()) -> Lane:
        lane = Lane(self._job.visits(gpus, self._end_s, self._programs), sides, gpus, cpus, others=self.all)
        self.all.append(lane)
        return lane

    def of(self, uuid: str) -> Lane:
        return next(lane for lane in self.beside if [each.uuid for each in lane.gpus] == [uuid])

    def alone(self, gpus: int, sides: Sequence[Prepared]) -> Lane:
        """The lane of these sides whose processes see that many GPUs, the first ones. It is opened when it is asked for."""
        key = gpus, sides[0].side.name
        if key not in self._alone:
            self._alone[key] = self._opened(sides, self._job.gpus[:gpus])
            self._alone[key].discover()
        return self._alone[key]

    def discover(self, meanwhile: Callable[[], object]) -> Mapping[str, Suite]:
        """By side: the suite as the first lane finds it; `meanwhile` is called once."""
        first, *others = self.beside
        steps = {first: meanwhile, **dict.fromkeys(others, lambda: None)}
        at_once(self.beside, lambda lane: lane.discover(steps[lane]))
        return {name: suite for lane in reversed(self.beside) for name, suite in lane.suites.items()}

    def close(self) -> None:
        for lane in self.all:
            lane.visits.close()


def at_once(lanes: Sequence[Lane], work: Callable[[Lane], object]) -> None:
    """Have the work done in each of the lanes, and wait for all of them.

    Where one raises, and on Ctrl-C, the others are stopped as Ctrl-C stops them; what was raised first is raised once all have
    ended. A lane by itself has no thread of its own.
    """
    if len(lanes) < 2:
        for lane in lanes:
            with lane.pinned():
                work(lane)
        return
    ended: SimpleQueue[tuple[threading.Thread, BaseException | None]] = SimpleQueue()

    def run(lane: Lane) -> None:
        error: BaseException | None = None
        try:
            with lane.pinned():
                work(lane)
        except BaseException as raised:
            error = raised
        ended.put((threading.current_thread(), error))

    threads = [threading.Thread(target=run, args=(lane,), name=f"lane {lane.processes.visible}") for lane in lanes]
    first: BaseException | None = None
    started = False
    while not started or any(each.is_alive() for each in threads):
        try:
            if not started:
                started = True
                for each in threads:
                    each.start()
            # Not with `join` alone: Ctrl-C in it can leave a thread that goes on taken for one that has ended.
            thread, error = ended.get(timeout=POLL_S)
            thread.join()
        except Empty:
            continue
        except KeyboardInterrupt as interrupt:
            error = interrupt
        if error is not None and first is None:
            first = error
            for lane in lanes:
                lane.processes.interrupt.set()
    if first is not None:
        raise first
