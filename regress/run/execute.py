"""Rounds of all sides: discover, then batch after batch settle a protocol for each new case in an unmeasured visit, and visit
in turn.

Every round goes to the sink the moment it arrives.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import math
import statistics
import tempfile
import threading
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from regress.files import scratch
from regress.measure.wire import Proposal, Task
from regress.measure.wire import Suite as SuiteMessage
from regress.model import Batch, Case, Failure, Measured, Protocol, Round
from regress.run import homes, plan
from regress.run.environments import Prepared
from regress.run.job import Job, JobResult, Sink, Steps, Watcher
from regress.run.lanes import Lane, Lanes, at_once
from regress.run.overhead import OverheadClock
from regress.run.placement import Placement
from regress.run.selecting import Unimportable, selected
from regress.run.turns import Turns

__all__ = ["Job", "JobResult", "Sink", "Steps", "Watcher", "discover", "execute"]


def discover(job: Job, side: Prepared) -> SuiteMessage:
    """The suite as it is found with this side's code."""
    visits = job.visits()
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
    with tempfile.TemporaryDirectory(prefix="caches-", dir=scratch(), ignore_cleanup_errors=True) as folder:
        run = _Execution(job, measured, lanes, sink, watcher, Path(folder))
        try:
            run.select()
            measured.start_s = time.monotonic() - began_s
            if not measured.unaffected:
                run.measure(steps)
        except KeyboardInterrupt:
            measured.interrupted = True
        finally:
            lanes.close()
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
    return measured


def _import_for_deciding() -> None:
    """Import what takes the time of several rounds and is needed once they are over."""
    importlib.import_module("scipy.special")


class _Execution:
    """One run of a job, stage by stage. Lanes work at once, so what is not a case's own is touched with the lock held."""

    def __init__(
        self, job: Job, measured: JobResult, lanes: Lanes, sink: Sink, watcher: Watcher, scratch: Path
    ) -> None:
        self._job, self._measured, self._lanes = job, measured, lanes
        self._sink, self._watcher, self._scratch = sink, watcher, scratch
        self._lock = threading.RLock()
        self._cases = measured.cases
        self._placed = Placement(job, lanes, measured)
        self._protocols: dict[tuple[str, Case], Protocol] = {}
        self._in_turn: set[tuple[Lane, Case]] = set()
        """Cases whose sides take windows of the host's clock in turn there."""
        self._caches: dict[tuple[Lane, str, str], str | Failure] = {}
        """Folder of each (lane, side, setup_cache key), or why it failed."""
        self._counters: dict[tuple[str, Case], dict[str, Measured]] = {}
        """What the unmeasured visits counted, until a round has taken it along."""
        self._dead: set[tuple[str, Case]] = set()
        """Cases that failed before the first round of a side."""
        self._visited: set[tuple[str, Case]] = set()
        """Cases that have had their unmeasured visit on a side, or never get one."""
        self._unimportable = Unimportable()
        self._failures: dict[tuple[str, Case], int] = {}
        self._planned = job.rounds
        """Rounds a side that are certain to be tried."""

    # -- before measuring ------------------------------------------------------------------------------------------------

    def select(self) -> None:
        """Discover the suite on each side, choose the cases that are wanted, and give each its lane."""
        suites, self._unimportable = selected(self._job, self._lanes.discover(_import_for_deciding), self._measured)
        if any(self._cases.values()):
            self._placed.place(suites)
            at_once(list(self._placed.by_lane(self._placed.visited_by_us())), Lane.settle_process)

    def _settle(self, batch: Batch) -> None:
        """The unmeasured visit to what is new in the batch on each side, and the one protocol for both, where it is the same
        benchmark."""
        new = [
            case
            for name, cases in self._cases.items()
            for case in cases
            if case in batch.rounds and (name, case) not in self._visited
        ]
        if new:
            self._watcher.start(len(new), "trial runs")
            self._placed.each_lane(new, functools.partial(self._first_visits, batch))

    def _first_visits(self, batch: Batch, lane: Lane, cases: set[Case], turns: Turns) -> None:
        """Side after side, each until its part of the time is over; what one side has visited the others visit too."""
        proposals, began_s = dict[Case, dict[str, Proposal]](), time.monotonic()
        for number, side in enumerate(lane.sides, 1):
            name, benchmarks = side.side.name, self._measured.benchmarks[side.side.name]
            until_s = began_s + batch.visits_s * number / len(lane.sides)
            own = self._unvisited(lane, name, cases)
            self._refuse(lane, name, own)
            self._setup_caches(lane, side, [case for case in own if case in proposals])
            self._setup_caches(lane, side, own, until_s)
            tasks = [self._task(lane, case, side) for case in own if self._can_be_visited(lane, case, name)]
            asked = {Case.of(task) for task in tasks} & proposals.keys()
            with contextlib.closing(lane.visit(side, tasks, benchmarks, turns)) as replies:
                for task, reply in replies:
                    assert isinstance(reply, Proposal)
                    case = Case.of(task)
                    proposals.setdefault(case, {})[name] = reply
                    self._proposed(lane, case, name, reply)
                    asked.discard(case)
                    if not asked and time.monotonic() > until_s:
                        break
            with self._lock:
                self._watcher.advance("", len(own) - len(tasks))
        lane.preload()
        with self._lock:
            self._settle_protocols(lane, proposals)

    def _unvisited(self, lane: Lane, side: str, cases: Collection[Case]) -> list[Case]:
        """Those of the cases that the side is to visit, first those that a side before it has visited; what these have not come
        to is left for another time."""
        names = [prepared.side.name for prepared in lane.sides]
        before = names[: names.index(side)]
        been = {case for name, case in self._visited if name in before}
        left = {case for name in before for case in self._cases[name]} - been
        own = [case for case in self._cases[side] if case in cases and (side, case) not in self._visited]
        return sorted((case for case in own if case not in left), key=lambda case: case not in been)

    def _proposed(self, lane: Lane, case: Case, side: str, proposal: Proposal) -> None:
        with self._lock:
            self._been(case, side, proposal.seconds)
            self._counters[side, case] = proposal.values
            if proposal.failure is not None:
                self._bury(lane, case, side, proposal.failure, proposal)
            self._watcher.advance(f"{side}: {case}")

    def _settle_protocols(self, lane: Lane, proposals: Mapping[Case, Mapping[str, Proposal]]) -> None:
        for case, offers in proposals.items():
            for alike in self._alike(case, offers):
                protocol = plan.settle(alike, lane.processes.kind)
                if protocol is not None:
                    self._protocols.update({(name, case): protocol for name in alike})
                    self._forget_counts_of_another_kind(case, protocol, alike)
                    self._settle_turns(lane, case, protocol, alike)
                if len(self._lanes.all) > 1 and homes.of_the_host(protocol, offers.values()):
                    self._placed.alone.add(case)

    def _forget_counts_of_another_kind(self, case: Case, protocol: Protocol, alike: Mapping[str, Proposal]) -> None:
        """A call behind a setup may do other work than a repeated one: where one side has counted these and the other those,
        neither is compared."""
        if any(
            proposal.protocol is not None and proposal.protocol.setup_each != protocol.setup_each
            for proposal in alike.values()
        ):
            for name in alike:
                self._counters.pop((name, case), None)

    def _settle_turns(self, lane: Lane, case: Case, protocol: Protocol, alike: Mapping[str, Proposal]) -> None:
        """Whether the sides take their windows in turn: where there are some, and both fit the memory at once."""
        ranks = max(plan.ranks_of(self._measured.benchmarks[name][case.name])[0] for name in alike)
        if len(alike) < 2 or ranks > 1 or not protocol.windows or self._job.quick or not self._job.settings.in_turn:
            return
        why = plan.parted(alike.values(), plan.free_memory())
        if why:
            lane.visits.parted[case] = why
        else:
            self._in_turn.add((lane, case))

    def _alike(self, case: Case, offers: Mapping[str, Proposal]) -> Iterable[dict[str, Proposal]]:
        """The offers of the sides that have the same benchmark under that name: suites of their own may have two."""
        groups: dict[tuple[str, str], dict[str, Proposal]] = {}
        for name, offer in offers.items():
            benchmark = self._measured.benchmarks[name][case.name]
            groups.setdefault((benchmark.code, benchmark.metric), {})[name] = offer
        return groups.values()

    def _refuse(self, lane: Lane, side: str, cases: Iterable[Case]) -> None:
        """What cannot be measured here at all is not tried."""
        for case in cases:
            failure = self._unimportable.get((side, case.name))
            failure = failure or plan.refusal(self._measured.benchmarks[side][case.name], len(self._job.gpus))
            if failure is not None:
                self._bury(lane, case, side, failure)

    def _setup_caches(self, lane: Lane, side: Prepared, cases: Iterable[Case], until_s: float = math.inf) -> None:
        """Run each setup_cache of the cases once, after that time of the monotonic clock the first one only; what depends on a
        failed one fails with its reason."""
        name, benchmarks = side.side.name, self._measured.benchmarks[side.side.name]
        by_key: dict[str, list[Case]] = {}
        for case in cases:
            key = benchmarks[case.name].setup_cache_key
            if key is not None and (name, case) not in self._dead:
                by_key.setdefault(key, []).append(case)
        for number, (key, dependent) in enumerate(by_key.items()):
            if (lane, name, key) not in self._caches and (not number or time.monotonic() < until_s):
                directory = Path(tempfile.mkdtemp(dir=self._scratch))
                made = lane.setup_cache(side, benchmarks[dependent[0].name], directory)
                self._caches[lane, name, key] = str(directory) if made is None else made
            failure = self._caches.get((lane, name, key))
            if isinstance(failure, Failure):
                for case in dependent:
                    self._bury(lane, case, name, failure)

    def _can_be_visited(self, lane: Lane, case: Case, side: str) -> bool:
        key = self._measured.benchmarks[side][case.name].setup_cache_key
        return (side, case) not in self._dead and (key is None or (lane, side, key) in self._caches)

    def _been(self, case: Case, side: str, seconds: float = 0.0) -> None:
        """The case has had its unmeasured visit on this side, which took so long."""
        self._visited.add((side, case))
        self._measured.costs[case] = self._measured.costs.get(case, 0.0) + seconds

    def _bury(self, lane: Lane, case: Case, side: str, failure: Failure, proposal: Proposal | None = None) -> None:
        """The case fails on this side before anything is measured."""
        self._dead.add((side, case))
        if (side, case) not in self._visited:
            self._been(case, side)
        self._keep(lane, plan.failed_round(case.name, case.params, side, failure, proposal=proposal))

    # -- measuring -------------------------------------------------------------------------------------------------------

    def measure(self, steps: Steps) -> None:
        """Batch after batch, until the steps have enough."""
        while time.monotonic() < steps.end_s and (batch := steps.next(self._measured)) is not None:
            self._settle(batch)
            self._batch(batch)

    def _batch(self, batch: Batch) -> None:
        wanted = [case for cases in self._cases.values() for case in cases if batch.rounds.get(case)]
        if not wanted:
            return
        if batch.afresh:
            at_once(list(self._placed.by_lane(wanted)), Lane.begin_afresh)
        self._planned = batch.first + max(batch.rounds.values())
        self._watcher.start(sum(batch.rounds[case] for case in wanted), batch.title)
        self._placed.each_lane(wanted, functools.partial(self._rounds, batch))

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
        due = [case for case in self._cases[name] if case in cases and order < batch.first + batch.rounds[case]]
        tasks = [
            self._task(lane, case, side, order, self._protocols[name, case])
            for case in due
            if (name, case) in self._protocols and self._worth(lane, case, name, order)
        ]
        with self._lock:
            self._watcher.advance("", len(due) - len(tasks))
        return plan.shuffled(tasks, self._job.settings.seed)

    def _grouped(self, lane: Lane, due: Mapping[str, Sequence[Task]], turns: Turns) -> list[list[Task]]:
        """The tasks that are measured in turn, a list a case with a task of each side that has it; not what others are measured
        beside, whose windows would count for nothing."""
        groups: dict[Case, list[Task]] = {}
        for tasks in due.values():
            for task in tasks:
                case = Case.of(task)
                parted = case in lane.visits.parted
                if (lane, case) in self._in_turn and not parted and turns.beside(task, lane.gpus) == 1:
                    groups.setdefault(case, []).append(task)
        return [tasks for tasks in groups.values() if len(tasks) > 1 and len({task.protocol for task in tasks}) == 1]

    def _arrived(self, lane: Lane, task: Task, round: Round, where: str, turns: Turns) -> None:
        why = lane.visits.parted.get(Case.of(task))
        if why is not None and round.failure is None:
            round = replace(round, flags=[*round.flags, f"not in turn with the other side: {why}"])
        with self._lock:
            self._keep(lane, homes.beside_others(self._with_counters(round), turns.beside(task, lane.gpus)))
            self._watcher.advance(f"{where}: {Case.of(task)}")

    def _with_counters(self, round: Round) -> Round:
        """The first round with values takes along what was counted in the unmeasured visit of its side."""
        if not round.values:
            return round
        counted = self._counters.pop((round.side, Case.of(round)), {})
        return replace(round, values={**round.values, **counted}) if counted else round

    def _worth(self, lane: Lane, case: Case, name: str, order: int) -> bool:
        """Whether to visit the case again: not where it fails, and once only where it fails on the other side, to prove
        that it works on this one."""
        fails = any(self._fails(case, side.side.name) for side in lane.sides)
        return not self._fails(case, name) and (order == 0 or not fails)

    def _fails(self, case: Case, name: str) -> bool:
        hopeless = plan.hopeless(self._failures.get((name, case), 0), self._planned, self._job.settings.good_rounds)
        return (name, case) in self._dead or hopeless

    def _task(self, lane: Lane, case: Case, side: Prepared, order: int = -1, protocol: Protocol | None = None) -> Task:
        benchmark = self._measured.benchmarks[side.side.name][case.name]
        cache = self._caches.get((lane, side.side.name, benchmark.setup_cache_key or ""), "")
        return Task(
            case.name,
            list(case.params),
            side.side.name,
            order,
            protocol,
            memory=0 <= order < self._job.settings.memory_rounds,
            cache_dir=cache if isinstance(cache, str) else "",
            quick=self._job.quick,
            timeout_s=plan.timeout_of(benchmark, self._job.default_timeout_s),
        )

    def _keep(self, lane: Lane, round: Round) -> None:
        with self._lock:
            if round.failure is not None:
                key = round.side, Case.of(round)
                self._failures[key] = self._failures.get(key, 0) + 1
            self._measured.rounds.append(round)
            self._sink(round, lane.processes.facts, self._measured.benchmarks[round.side][round.name])
