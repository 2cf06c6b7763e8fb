"""Rounds of all sides: discover, then batch after batch settle a protocol for each new case in an unmeasured visit, and visit
in turn.

Every round goes to the sink the moment it arrives.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import statistics
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from regress.files import scratch
from regress.measure.wire import Suite, Task
from regress.model import Batch, Case, Round
from regress.run import homes, plan
from regress.run.environments import Prepared
from regress.run.job import Collector, Job, JobResult, PartOfPhase, Sink, Steps, Watcher
from regress.run.lanes import Lane, Lanes, at_once
from regress.run.overhead import OverheadClock
from regress.run.placement import Placement
from regress.run.selecting import selected
from regress.run.trials import Trials
from regress.run.turns import Turns

__all__ = ["Job", "JobResult", "PartOfPhase", "Sink", "Steps", "Watcher", "discover", "execute"]

IMPORTING = "importing the suite"
"""The first phase."""


def discover(job: Job, side: Prepared, watcher: Watcher) -> Suite:
    """The suite as it is found with this side's code."""
    visits = job.visits()
    watcher.start(0, IMPORTING)
    try:
        return visits.discover([side])[side.side.name]
    finally:
        visits.close()


def execute(job: Job, sink: Sink, watcher: Watcher, steps: Steps | None = None) -> JobResult:
    """Measure the job, in these steps or with its rounds. The time of the steps ends it early, and so does Ctrl-C: what arrived
    is returned, after Ctrl-C with `interrupted` set.

    Raises NothingMeasured if no case is selected, the suite has none, or the wrong code was imported.
    """
    steps, began_s = steps or plan.FixedRounds(job.rounds), time.monotonic()
    measured, lanes = JobResult(), Lanes(job, steps.end_s)
    collector = Collector(measured, sink, watcher)
    with tempfile.TemporaryDirectory(prefix="caches-", dir=scratch(), ignore_cleanup_errors=True) as folder:
        try:
            trials = _prepared(job, lanes, collector, Path(folder))
            rounds = _Rounds(job, trials, collector)
            measured.start_s = time.monotonic() - began_s
            if not measured.unaffected:
                while time.monotonic() < steps.end_s and (batch := steps.next(measured)) is not None:
                    trials.visit(batch)
                    rounds.measure(batch)
        except KeyboardInterrupt:
            measured.interrupted = True
        finally:
            lanes.close()
    _note_what_lanes_know(measured, lanes, job)
    return measured


def _prepared(job: Job, lanes: Lanes, collector: Collector, folder: Path) -> Trials:
    """Discover the suite on each side, choose the cases that are wanted, and give each its lane. The trials of these keep files
    in the folder."""
    measured = collector.measured
    collector.start(0, IMPORTING)
    suites, unimportable = selected(job, lanes.discover(_import_for_deciding), measured)
    placed = Placement(job, lanes, measured)
    if any(measured.cases.values()):
        placed.place(suites)
        at_once(list(placed.by_lane(placed.visited_by_us())), Lane.settle_process)
    return Trials(job, placed, collector, unimportable, folder)


def _import_for_deciding() -> None:
    """Import what takes the time of several rounds and is needed once they are over."""
    importlib.import_module("scipy.special")


def _note_what_lanes_know(measured: JobResult, lanes: Lanes, job: Job) -> None:
    """Facts and warnings of the processes, and where time has gone."""
    for lane in reversed(lanes.all):
        measured.facts.update(lane.processes.first_facts)
    measured.warnings += dict.fromkeys(text for lane in lanes.all for text in lane.processes.warnings)
    measured.warnings += plan.nothing_imported(
        [lane.processes.imported for lane in lanes.all],
        {side.side.name: f"{side.side.name} {side.side.label}" for side in job.sides if not side.environment.installs},
    )
    clock = OverheadClock()
    for duration in (spent for lane in lanes.all for spent in lane.visits.clock.spent.values()):
        clock.add(duration)
    measured.durations = clock.spent
    overheads = [overhead for lane in lanes.all for overhead in lane.visits.overheads]
    if overheads:
        firsts, betweens, cases = zip(*overheads, strict=True)
        measured.overhead = statistics.median(firsts), sum(betweens) / sum(cases)


class _Rounds:
    """Measures batches of rounds, of cases that have had their trials."""

    def __init__(self, job: Job, trials: Trials, collector: Collector) -> None:
        self._job, self._trials, self._collector = job, trials, collector
        self._measured = collector.measured
        self._planned = job.rounds
        """Rounds a side that are certain to be tried."""

    def measure(self, batch: Batch) -> None:
        """All rounds of the batch."""
        wanted = [case for cases in self._measured.cases.values() for case in cases if batch.rounds.get(case)]
        if not wanted:
            return
        if batch.afresh:
            at_once(list(self._trials.placed.by_lane(wanted)), Lane.begin_afresh)
        self._planned = batch.first + max(batch.rounds.values())
        self._collector.start(sum(batch.rounds[case] for case in wanted), batch.title)
        self._trials.placed.each_lane(wanted, functools.partial(self._rounds, batch))

    def _rounds(self, batch: Batch, lane: Lane, cases: set[Case], turns: Turns) -> None:
        """Round after round: what is measured in turn by groups of one process a side, then the rest by side after side."""
        sides = {side.side.name: side for side in lane.sides}
        if batch.afresh:
            sides = dict(reversed(sides.items()))
        longest = max(batch.rounds[case] for case in cases)
        for order in range(batch.first, batch.first + longest):
            where = f"round {order - batch.first + 1} of {longest}"
            names = list(sides) if (order - batch.first) % 2 == 0 else list(reversed(sides))
            due = {name: self._due(batch, lane, sides[name], cases, order) for name in names}
            grouped = self._grouped(lane, due, turns)
            with contextlib.closing(
                lane.visit_in_turn(grouped, self._measured.benchmarks, self._job.references, turns)
            ) as replies:
                for task, reply in replies:
                    assert isinstance(reply, Round)
                    self._arrived(lane, task, reply, where, turns)
            done = {(task.side, task.name, *task.params) for tasks in grouped for task in tasks}
            for name, tasks in due.items():
                left = [task for task in tasks if (task.side, task.name, *task.params) not in done]
                benchmarks = self._measured.benchmarks[name]
                with contextlib.closing(lane.visit(sides[name], left, benchmarks, turns)) as visited:
                    for task, answer in visited:
                        assert isinstance(answer, Round)
                        self._arrived(lane, task, answer, f"{where}, {name}", turns)

    def _due(self, batch: Batch, lane: Lane, side: Prepared, cases: set[Case], order: int) -> list[Task]:
        """The side's tasks of a round, in the order that they have on all sides."""
        name = side.side.name
        due = [
            case for case in self._measured.cases[name] if case in cases and order < batch.first + batch.rounds[case]
        ]
        tasks = [
            self._trials.task(lane, case, side, order, self._trials.protocols[name, case])
            for case in due
            if (name, case) in self._trials.protocols and self._worth(lane, case, name, order)
        ]
        self._collector.advance("", len(due) - len(tasks))
        return plan.shuffled(tasks, self._job.settings.seed)

    def _grouped(self, lane: Lane, due: Mapping[str, Sequence[Task]], turns: Turns) -> list[list[Task]]:
        """The tasks that are measured in turn: a list for each case, with a task of each side that has it. A case that other
        GPUs measure beside is left out: its host times would not count."""
        groups: dict[Case, list[Task]] = {}
        for tasks in due.values():
            for task in tasks:
                case = Case.of(task)
                in_turn = (lane, case) in self._trials.in_turn and case not in lane.visits.parted
                if in_turn and turns.beside(task, lane.gpus) == 1:
                    groups.setdefault(case, []).append(task)
        return [tasks for tasks in groups.values() if len(tasks) > 1 and len({task.protocol for task in tasks}) == 1]

    def _arrived(self, lane: Lane, task: Task, round: Round, where: str, turns: Turns) -> None:
        why = lane.visits.parted.get(Case.of(task))
        if why is not None and round.failure is None:
            round = replace(round, flags=[*round.flags, f"not in turn with the other side: {why}"])
        round = homes.beside_others(self._with_counters(round), turns.beside(task, lane.gpus))
        self._collector.keep(round, lane.processes.facts)
        self._collector.advance(f"{where}: {Case.of(task)}")

    def _with_counters(self, round: Round) -> Round:
        """The first round with values takes along what was counted in the unmeasured visit of its side."""
        if not round.values:
            return round
        counted = self._trials.counters.pop((round.side, Case.of(round)), {})
        return replace(round, values={**round.values, **counted}) if counted else round

    def _worth(self, lane: Lane, case: Case, name: str, order: int) -> bool:
        """Whether to visit the case again: not where it fails, and once only where it fails on the other side, to prove
        that it works on this one."""
        fails = any(self._fails(case, side.side.name) for side in lane.sides)
        return not self._fails(case, name) and (order == 0 or not fails)

    def _fails(self, case: Case, name: str) -> bool:
        hopeless = plan.hopeless(self._collector.failures(name, case), self._planned, self._job.settings.good_rounds)
        return (name, case) in self._trials.dead or hopeless
