"""Which lane measures which case, and which lanes are at work at the same time."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence

from regress.measure.wire import Suite
from regress.model import Case
from regress.run import homes
from regress.run.deadline import TimeIsOver
from regress.run.job import Job, JobResult
from regress.run.lanes import Lane, Lanes, at_once
from regress.run.turns import Turns


class Placement:
    """The lanes of each case of a job."""

    def __init__(self, job: Job, lanes: Lanes, measured: JobResult) -> None:
        self._job, self._lanes, self._measured = job, lanes, measured
        self._lanes_of: dict[Case, list[Lane]] = {}
        self.alone: set[Case] = set()
        """Cases that are measured while no other is: the host has a part in their values."""

    def place(self, suites: Mapping[str, Suite]) -> None:
        """Give every case its lane, the same for all sides and in every run; with groups of sides, one lane in each group."""
        roots = homes.roots(
            {side: {benchmark.name: benchmark for benchmark in suite.benchmarks} for side, suite in suites.items()}
        )
        for gpus, sides in self._job.parts():
            names = [side.side.name for side in sides]
            for case in dict.fromkeys(case for name in names for case in self._measured.cases[name]):
                by_side = [self._measured.benchmarks[name] for name in names]
                definitions = [benchmarks[case.name] for benchmarks in by_side if case.name in benchmarks]
                program = next((definition.program for definition in definitions if definition.program), "")
                # All cases of a program are visited by one run, on one GPU.
                root = program or roots[case.name]
                needs = homes.gpus_for_all(definitions)
                if len(self._job.gpus) < 2 or needs > len(self._job.gpus):
                    lane = next(lane for lane in self._lanes.single if lane.sides == sides)
                elif all(definition.needs_device for definition in definitions):
                    places = homes.blocks(gpus if needs == 1 else self._job.gpus, needs)
                    lane = self._lanes.of(homes.home(Case(root) if program else case, root, places), sides)
                else:
                    self.alone.add(case)
                    lane = self._lanes.of(self._job.gpus[:needs], sides, whole_host=True)
                lane.device |= any(definition.needs_device for definition in definitions)
                self._lanes_of.setdefault(case, []).append(lane)
        self._lanes.discover_others()

    def visited_by_us(self) -> list[Case]:
        """The cases that processes of ours visit; the others have programs of their own."""
        by_side = self._measured.benchmarks.values()
        return [
            case for case in self._lanes_of if not any(own[case.name].program for own in by_side if case.name in own)
        ]

    def by_lane(self, cases: Iterable[Case]) -> dict[Lane, set[Case]]:
        """The cases of each lane that has some, in the order of the lanes."""
        own: dict[Lane, set[Case]] = {lane: set() for lane in self._lanes.all}
        for case in cases:
            for lane in self._lanes_of[case]:
                own[lane].add(case)
        return {lane: those for lane, those in own.items() if those}

    def each_lane(self, cases: Sequence[Case], work: Callable[[Lane, set[Case], Turns], None]) -> None:
        """Have the cases worked on while there is time: at once by the lanes that have some which need not be alone and may be
        beside each other, those of most GPUs first, as these are seldom free together; then lane after lane the others. `work`
        gets the cases of the lane, and the turns of the lanes that are at it."""
        own = self.by_lane(cases)
        beside = sorted((lane for lane, those in own.items() if those - self.alone), key=lambda lane: -len(lane.gpus))

        def in_time(lane: Lane, turns: Turns) -> None:
            with contextlib.suppress(TimeIsOver):
                work(lane, own[lane], turns)

        turns = Turns([lane.gpus for lane in beside], {case for lane in beside for case in own[lane] & self.alone})
        at_once(beside, lambda lane: in_time(lane, turns), apart=lambda one, other: homes.apart(one.gpus, other.gpus))
        for lane in (lane for lane in own if lane not in beside):
            at_once([lane], lambda lane: in_time(lane, Turns()))
