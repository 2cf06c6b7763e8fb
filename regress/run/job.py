"""What is to be measured, what was, and who is told on the way."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from typing import Protocol as Interface

from regress.model import Batch, Benchmark, Case, Duration, Round, Settings, SuiteProblem
from regress.run.deadline import ENDLESS, Deadline
from regress.run.environments import Prepared
from regress.run.gpus import Gpu, visible
from regress.run.plan import Selection
from regress.run.processes import Processes
from regress.run.programs import Programs
from regress.run.starting import Starter
from regress.run.visits import Visits


class Watcher(Interface):
    """Who wants to know how far it is. A phase of 0 steps is one that nobody can tell the progress of."""

    def start(self, total: int, title: str) -> None: ...
    def advance(self, text: str, steps: int = 1) -> None: ...
    def note(self, text: str) -> None: ...


class PartOfPhase:
    """Watches a job that is a small part of a phase, one of many: passes on what is noted and what is worked on, but not how
    far this job is."""

    def __init__(self, watcher: Watcher) -> None:
        self._watcher = watcher

    def start(self, total: int, title: str) -> None:
        pass

    def advance(self, text: str, steps: int = 1) -> None:
        self._watcher.advance(text, 0)

    def note(self, text: str) -> None:
        self._watcher.note(text)


Sink = Callable[[Round, Mapping[str, Any], Benchmark], None]
"""Takes each round as it arrives, with the facts of its process and what it was taken of."""


@dataclass
class JobResult:
    """What was measured, as far as it got."""

    benchmarks: dict[str, dict[str, Benchmark]] = field(default_factory=dict)
    """By side, then by name: the benchmarks that were selected."""
    cases: dict[str, list[Case]] = field(default_factory=dict)
    """By side: the cases that were selected, as that side names them."""
    costs: dict[Case, float] = field(default_factory=dict)
    """Seconds that the unmeasured visits to a case have taken, all sides together; only of what was visited."""
    rounds: list[Round] = field(default_factory=list)
    facts: dict[str, dict[str, Any]] = field(default_factory=dict)
    """By side: the facts of its first process."""
    problems: list[SuiteProblem] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    start_s: float = 0.0
    """Seconds until the first visit: imports of the suite on all sides, and the trial of forks."""
    overhead: tuple[float, float] | None = None
    """Seconds that a process needs until it can measure (the median), and that a case takes beside that (the mean)."""
    durations: dict[str, Duration] = field(default_factory=dict)
    """By benchmark: where its time has gone."""
    unaffected: bool = False
    """Nothing was measured, because no benchmark covers what was changed."""
    interrupted: bool = False

    def of(self, side: str) -> list[Round]:
        return [round for round in self.rounds if round.side == side]


class Collector:
    """Takes what the lanes of a job send, several at once. A round goes to the sink the moment it arrives."""

    def __init__(self, measured: JobResult, sink: Sink, watcher: Watcher) -> None:
        self.measured, self._sink, self._watcher = measured, sink, watcher
        self._lock = threading.Lock()
        self._failures: Counter[tuple[str, Case]] = Counter()

    def keep(self, round: Round, facts: Mapping[str, Any]) -> None:
        """A round, and the facts of its process."""
        with self._lock:
            if round.failure is not None:
                self._failures[round.side, Case.of(round)] += 1
            self.measured.rounds.append(round)
            self._sink(round, facts, self.measured.benchmarks[round.side][round.name])

    def failures(self, side: str, case: Case) -> int:
        """How many rounds of the case have failed on that side."""
        return self._failures[side, case]

    def visited(self, case: Case, seconds: float) -> None:
        """An unmeasured visit to the case, which took so long."""
        with self._lock:
            self.measured.costs[case] = self.measured.costs.get(case, 0.0) + seconds

    def start(self, total: int, title: str) -> None:
        self._watcher.start(total, title)

    def advance(self, text: str, steps: int = 1) -> None:
        with self._lock:
            self._watcher.advance(text, steps)


class Steps(Interface):
    """Who says what is measured next, from what has been measured so far; None if it is enough."""

    @property
    def end_s(self) -> float:
        """When measuring ends, by the monotonic clock; infinite for no bound. A visit that is under way then counts for
        nothing."""

    def next(self, measured: JobResult) -> Batch | None: ...


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
    references: tuple[str, ...] = ()
    """Names of the sides that the others are compared with where windows are taken in turn; empty: the first one."""
    only: Mapping[str, Collection[Case]] = field(default_factory=dict)
    """By side: the cases that are measured of it, where those are not all that are wanted."""
    gpus: tuple[Gpu, ...] = ()
    """What to measure on, ordered by UUID, all of them at once; none: on the one that the sides' processes see first."""
    groups: tuple[tuple[str, ...], ...] = ()
    """By GPU, of the first ones: names of the sides that it measures with all their cases. Empty: each has cases of its own."""
    rank: Callable[[Case, Benchmark], int] = lambda case, benchmark: 0
    """How little a case is wanted: if there is no time for all, the smaller ones come first."""
    had: Callable[[str], Mapping[str, Benchmark]] = lambda side: {}
    """By name: the benchmarks that gave a number before the commit of that side. What of them cannot be imported has failed."""

    def parts(self) -> list[tuple[tuple[Gpu, ...], tuple[Prepared, ...]]]:
        """Which GPUs measure which sides."""
        if not self.groups:
            return [(self.gpus, self.sides)]
        return [
            ((gpu,), tuple(side for side in self.sides if side.side.name in names))
            for gpu, names in zip(self.gpus, self.groups, strict=False)
        ]

    def starter(self, gpus: Sequence[Gpu] = ()) -> Starter:
        """Starts processes that see these GPUs, or what the sides' variables show."""
        return Starter(self.suite, self.start_file, self.settings, self.own_suites, visible(gpus))

    def processes(self, gpus: Sequence[Gpu] = ()) -> Processes:
        """Processes that see these GPUs."""
        return Processes(self.starter(gpus))

    def visits(
        self, gpus: Sequence[Gpu] = (), deadline: Deadline = ENDLESS, programs: Programs | None = None
    ) -> Visits:
        """Visits by such processes; lanes have their `programs` in common."""
        programs = programs or Programs(self.default_timeout_s)
        return Visits(self.processes(gpus), programs, self.default_timeout_s, deadline)
