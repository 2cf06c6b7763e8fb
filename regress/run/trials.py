"""The unmeasured visit to each case on each side: whether it can be measured there, and by which protocol.

What fails here fails before anything is measured, and is tried no more.
"""

from __future__ import annotations

import contextlib
import functools
import math
import tempfile
import threading
import time
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

from regress.measure.wire import Proposal, Task
from regress.model import Batch, Case, Failure, Measured, Protocol
from regress.run import homes, needs, plan
from regress.run.environments import Prepared
from regress.run.job import Collector, Job
from regress.run.lanes import Lane
from regress.run.placement import Placement
from regress.run.selecting import Unimportable
from regress.run.turns import Turns


class Trials:
    """What the unmeasured visits have found. Lanes work at once, so what is not a case's own is touched with the lock held."""

    def __init__(
        self, job: Job, placed: Placement, collector: Collector, unimportable: Unimportable, scratch: Path
    ) -> None:
        self._job, self.placed, self._collector = job, placed, collector
        self._measured, self._unimportable, self._scratch = collector.measured, unimportable, scratch
        self.protocols: dict[tuple[str, Case], Protocol] = {}
        """By side: how a case is measured."""
        self.in_turn: set[tuple[Lane, Case]] = set()
        """Cases whose sides take windows of the host's clock in turn there."""
        self.counters: dict[tuple[str, Case], dict[str, Measured]] = {}
        """What the visits have counted, until a round has taken it along."""
        self.dead: set[tuple[str, Case]] = set()
        """Cases that failed before the first round of a side."""
        self._lock = threading.RLock()
        self._visited: set[tuple[str, Case]] = set()
        """Cases that have had their visit on a side, or never get one."""
        self._caches: dict[tuple[Lane, str, str], str | Failure] = {}
        """Folder of each (lane, side, setup_cache key), or why it failed."""

    def visit(self, batch: Batch) -> None:
        """The unmeasured visit to what is new in the batch on each side, and the one protocol for both, where it is the same
        benchmark."""
        new = [
            case
            for name, cases in self._measured.cases.items()
            for case in cases
            if case in batch.rounds and (name, case) not in self._visited
        ]
        if new:
            self._collector.start(len(new), "trial runs")
            self.placed.each_lane(new, functools.partial(self._first_visits, batch))

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
            tasks = [self.task(lane, case, side) for case in own if self._can_be_visited(lane, case, name)]
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
            self._collector.advance("", len(own) - len(tasks))
        lane.preload()
        with self._lock:
            self._settle_protocols(lane, proposals)

    def _unvisited(self, lane: Lane, side: str, cases: Collection[Case]) -> list[Case]:
        """The cases that the side is to visit, those first that a side before it has visited. What an earlier side has, and did
        not get to, is left for another time."""
        names = [prepared.side.name for prepared in lane.sides]
        before = names[: names.index(side)]
        with self._lock:
            been = {case for name, case in self._visited if name in before}
        left = {case for name in before for case in self._measured.cases[name]} - been
        own = [case for case in self._measured.cases[side] if case in cases and (side, case) not in self._visited]
        return sorted((case for case in own if case not in left), key=lambda case: case not in been)

    def _proposed(self, lane: Lane, case: Case, side: str, proposal: Proposal) -> None:
        self._been(case, side, proposal.seconds)
        self.counters[side, case] = proposal.values
        if proposal.failure is not None:
            self._bury(lane, case, side, proposal.failure, proposal)
        self._collector.advance(f"{side}: {case}")

    def _settle_protocols(self, lane: Lane, proposals: Mapping[Case, Mapping[str, Proposal]]) -> None:
        for case, offers in proposals.items():
            for alike in self._alike(case, offers):
                protocol = plan.settle(alike, lane.processes.kind)
                if protocol is not None:
                    self.protocols.update({(name, case): protocol for name in alike})
                    self._forget_counts_of_another_kind(case, protocol, alike)
                    self._settle_turns(lane, case, protocol, alike)
                if homes.of_the_host(protocol, offers.values()):
                    self.placed.alone.add(case)

    def _forget_counts_of_another_kind(self, case: Case, protocol: Protocol, alike: Mapping[str, Proposal]) -> None:
        """A call behind a setup may do other work than a repeated one: where one side has counted these and the other those,
        neither is compared."""
        if any(
            proposal.protocol is not None and proposal.protocol.setup_each != protocol.setup_each
            for proposal in alike.values()
        ):
            for name in alike:
                self.counters.pop((name, case), None)

    def _settle_turns(self, lane: Lane, case: Case, protocol: Protocol, alike: Mapping[str, Proposal]) -> None:
        """Whether the sides take their windows in turn: where there are some, and both fit the memory at once."""
        ranks = max(needs.ranks_of(self._measured.benchmarks[name][case.name])[0] for name in alike)
        if len(alike) < 2 or ranks > 1 or not protocol.windows or self._job.quick or not self._job.settings.in_turn:
            return
        why = plan.parted(alike.values(), plan.free_memory())
        if why:
            lane.visits.parted[case] = why
        else:
            self.in_turn.add((lane, case))

    def _alike(self, case: Case, offers: Mapping[str, Proposal]) -> Iterable[dict[str, Proposal]]:
        """The offers, grouped by sides with the same benchmark: sides with suites of their own may have two under one name."""
        groups: dict[tuple[str, str], dict[str, Proposal]] = {}
        for name, offer in offers.items():
            benchmark = self._measured.benchmarks[name][case.name]
            groups.setdefault((benchmark.code, benchmark.metric), {})[name] = offer
        return groups.values()

    def _refuse(self, lane: Lane, side: str, cases: Iterable[Case]) -> None:
        """What cannot be measured here at all is not tried."""
        for case in cases:
            failure = self._unimportable.get((side, case.name))
            failure = failure or needs.refusal(self._measured.benchmarks[side][case.name], len(self._job.gpus))
            if failure is not None:
                self._bury(lane, case, side, failure)

    def _setup_caches(self, lane: Lane, side: Prepared, cases: Iterable[Case], until_s: float = math.inf) -> None:
        """Run each setup_cache of the cases once; after `until_s` of the monotonic clock only the first of them. Where one
        fails, its cases fail with that reason."""
        name, benchmarks = side.side.name, self._measured.benchmarks[side.side.name]
        by_key: dict[str, list[Case]] = {}
        for case in cases:
            key = benchmarks[case.name].setup_cache_key
            if key is not None and (name, case) not in self.dead:
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
        return (side, case) not in self.dead and (key is None or (lane, side, key) in self._caches)

    def _been(self, case: Case, side: str, seconds: float = 0.0) -> None:
        """The case has had its unmeasured visit on this side, which took so long."""
        with self._lock:
            self._visited.add((side, case))
        self._collector.visited(case, seconds)

    def _bury(self, lane: Lane, case: Case, side: str, failure: Failure, proposal: Proposal | None = None) -> None:
        """The case fails on this side before anything is measured."""
        self.dead.add((side, case))
        if (side, case) not in self._visited:
            self._been(case, side)
        failed = plan.failed_round(case.name, case.params, side, failure, proposal=proposal)
        self._collector.keep(failed, lane.processes.facts)

    def task(self, lane: Lane, case: Case, side: Prepared, order: int = -1, protocol: Protocol | None = None) -> Task:
        """A visit to the case; without a protocol the unmeasured one."""
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
