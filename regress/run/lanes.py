"""Several GPUs of one host at once, each in a lane: a thread, and worker processes that see that GPU alone.

(The lanes of a Protocol are something else, streams of one GPU.) A case that needs several GPUs has a lane that sees them all.
A case belongs to one lane, with all its rounds on all sides, or to one in each group of sides that a GPU has for itself; so no
two threads measure the same case of a side. Whoever hands work to lanes guards what they share.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TypeVar

from regress.measure.wire import Proposal, Suite, Task
from regress.model import Benchmark, Failure, Round
from regress.run import plan
from regress.run.deadline import Deadline
from regress.run.environments import Prepared
from regress.run.gpus import Gpu
from regress.run.job import Job
from regress.run.processes import Processes
from regress.run.programs import Programs
from regress.run.starting import NotStarted
from regress.run.turns import Turns
from regress.run.visits import Visits

T = TypeVar("T")

POLL_S = 1.0


@dataclass(eq=False)
class Lane:
    """One thread's part: visits to the cases that are its own.

    When no process of it can be started again (its GPU has failed), its own cases fail with that reason as long as other lanes
    are left; otherwise the error is raised.
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
    others: Collection[Lane] = ()
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
        self._attempt(self.processes.preload)

    def begin_afresh(self) -> None:
        self._attempt(self.processes.begin_afresh)

    def setup_cache(self, side: Prepared, benchmark: Benchmark, directory: Path) -> Failure | None:
        failed = self._attempt(lambda: self.visits.setup_cache(side, benchmark, directory))
        return self.lost or failed

    def visit(
        self, side: Prepared, tasks: Sequence[Task], benchmarks: Mapping[str, Benchmark], turns: Turns
    ) -> Generator[tuple[Task, Proposal | Round], None, None]:
        """Each task and its reply, as `Visits.visit` gives them; a lost lane replies why it is lost.

        Close it unless you take all of them: otherwise an error on the way keeps the worker until the lane is gone."""
        return self._replies(tasks, self.visits.visit(side, tasks, benchmarks, turns))

    def visit_in_turn(
        self,
        cases: Sequence[Sequence[Task]],
        benchmarks: Mapping[str, Mapping[str, Benchmark]],
        references: Sequence[str],
        turns: Turns,
    ) -> Generator[tuple[Task, Proposal | Round], None, None]:
        """The same as `Visits.visit_in_turn` gives them. Without `references`, the first side is the reference."""
        references = references or [self.sides[0].side.name]
        tasks = [task for tasks in cases for task in tasks]
        return self._replies(tasks, self.visits.visit_in_turn(self.sides, cases, benchmarks, references, turns))

    def _replies(
        self, tasks: Sequence[Task], replies: Iterator[tuple[Task, Proposal | Round]]
    ) -> Generator[tuple[Task, Proposal | Round], None, None]:
        left = list(tasks)
        if self.lost is None:
            try:
                for task, reply in replies:
                    left.remove(task)
                    yield task, reply
            except NotStarted as error:
                self._lose(error)
        for task in left:
            assert self.lost is not None
            yield task, plan.unanswered(task, self.lost)

    def _attempt(self, step: Callable[[], T]) -> T | None:
        if self.lost is None:
            try:
                return step()
            except NotStarted as error:
                self._lose(error)
        return None

    def _lose(self, error: NotStarted) -> None:
        where = ", ".join(gpu.uuid for gpu in self.gpus)
        self.lost = Failure("error", f"{where} cannot be used: {error.what}" + (f" ({error.why})" if error.why else ""))
        if all(other.lost is not None for other in self.others):
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
    """The lanes of a job: one for each of its GPUs, or a single one where it names none (`single`); and those for blocks of
    several GPUs and for the whole host, which are opened when they are asked for."""

    def __init__(self, job: Job, end_s: float) -> None:
        self._job, self._deadline = job, Deadline(end_s)
        self._programs = Programs(job.default_timeout_s)
        self._opened: dict[tuple[tuple[Gpu, ...], tuple[str, ...], bool], Lane] = {}
        self.single = [self.of((gpu,), sides) for gpus, sides in job.parts() for gpu in gpus] or [
            self.of((), job.sides)
        ]

    @property
    def all(self) -> Sequence[Lane]:
        return list(self._opened.values())

    def of(self, gpus: Sequence[Gpu], sides: Sequence[Prepared], whole_host: bool = False) -> Lane:
        """The lane of these sides on these GPUs; with `whole_host` one that is not kept to the processors near them."""
        key = tuple(gpus), tuple(side.side.name for side in sides), whole_host
        if key not in self._opened:
            cpus = frozenset[int]() if whole_host else frozenset[int]().union(*(gpu.cpus for gpu in gpus))
            visits = self._job.visits(gpus, self._deadline, self._programs)
            self._opened[key] = Lane(visits, sides, tuple(gpus), cpus, others=self._opened.values())
        return self._opened[key]

    def discover(self, meanwhile: Callable[[], object]) -> Mapping[str, Suite]:
        """By side: the suite as the first lane finds it; `meanwhile` is called once."""
        first, *others = self.single
        steps = {first: meanwhile, **dict.fromkeys(others, lambda: None)}
        at_once(self.single, lambda lane: lane.discover(steps[lane]))
        return {name: suite for lane in reversed(self.single) for name, suite in lane.suites.items()}

    def discover_others(self) -> None:
        """Have the lanes import the suite that were opened since."""
        at_once([lane for lane in self.all if lane not in self.single], Lane.discover)

    def close(self) -> None:
        for lane in self.all:
            lane.visits.close()


def at_once(
    lanes: Sequence[Lane],
    work: Callable[[Lane], object],
    apart: Callable[[Lane, Lane], bool] = lambda one, other: False,
) -> None:
    """Have the work done in each of the lanes, and wait for all of them. A lane begins as soon as none is at work that it must
    be `apart` from; of several that could, the first one.

    Where one raises, and on Ctrl-C, the others are stopped as Ctrl-C stops them; what was raised first is raised once all have
    ended. A lane by itself has no thread of its own.
    """
    if len(lanes) < 2:
        for lane in lanes:
            with lane.pinned():
                work(lane)
        return
    ended: SimpleQueue[threading.Thread] = SimpleQueue()
    errors: list[BaseException] = []

    def run(lane: Lane) -> None:
        try:
            with lane.pinned():
                work(lane)
        except BaseException as raised:
            errors.append(raised)
        ended.put(threading.current_thread())

    threads = {
        lane: threading.Thread(target=run, args=(lane,), name=f"lane {lane.processes.starter.visible}")
        for lane in lanes
    }
    waiting, stopped = list(lanes), False
    while waiting or any(thread.is_alive() for thread in threads.values()):
        try:
            _begin(waiting, threads, apart)
            # Not with `join` alone: Ctrl-C in it can leave a thread that goes on taken for one that has ended.
            ended.get(timeout=POLL_S).join()
        except Empty:
            pass
        except KeyboardInterrupt as interrupt:
            errors.append(interrupt)
        if errors and not stopped:
            stopped = True
            waiting.clear()
            for lane in lanes:
                lane.processes.starter.interrupt.set()
    if errors:  # perhaps of a thread that ended while another was joined
        raise errors[0]


def _begin(waiting: list[Lane], threads: Mapping[Lane, threading.Thread], apart: Callable[[Lane, Lane], bool]) -> None:
    """Start the threads of those that wait and need not, and have them wait no more."""
    at_work = [lane for lane, thread in threads.items() if thread.is_alive()]
    for lane in list(waiting):
        if not any(apart(lane, other) for other in at_work):
            at_work.append(lane)
            waiting.remove(lane)
            threads[lane].start()
