"""Measuring two commits in turn, as often as a bisection asks for it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from regress.errors import BuildFailed, NothingMeasured
from regress.measure.wire import Ceilings
from regress.model import Batch, Case, Commit, Machine, Side
from regress.run.environments import Prepared
from regress.run.execute import Job, JobResult, PartOfPhase, Steps, Watcher, execute
from regress.run.plan import Selection
from regress.session import Session
from regress.session.recorder import Recorder
from regress.session.remarks import device_line, remarks

FRESH = 1000
"""Numbers of rounds that verify begin so much higher: in nothing are they those that the search has seen."""


class CommitSkipped(Exception):
    """The commit cannot be measured, and why."""


class Meter:
    """Measures one case. Attributes say what on, and what the reader should know of it."""

    def __init__(self, session: Session, watcher: Watcher, environment: str) -> None:
        self._session, self._watcher, self._environment = session, watcher, environment
        self.case = Case("")
        self.machine: Machine = session.machine
        self.device = ""
        self.recorded_as = ""
        """The environment's name in the history."""
        self.warnings: list[str] = list(session.config.warnings)
        self.settings = session.config.settings
        self.recorded = ""
        """Where the rounds are kept; empty while there is none."""

    def prepare(self, commit: Commit, name: str) -> tuple[Prepared, float]:
        """The commit made ready, and the seconds that took. Raises BuildFailed for a head that does not build."""
        began = time.monotonic()
        side = Side(name, commit, "", self._environment)
        return self._session.prepare(side, self._watcher), time.monotonic() - began

    def job(self, *sides: Prepared) -> Job:
        return self._session.job(sides, 0)

    def measure(self, base: Prepared, head: Prepared, steps: Steps) -> JobResult:
        """Rounds of the case on both sides in turn, until the steps have enough; they are recorded in the cache.

        Raises NothingMeasured where nothing can be measured at all. After Ctrl-C `interrupted` is set.
        """
        session = self._session
        job = _of_case(self.job(base, head), self.case)
        recorder = Recorder(session, session.cache / "history", (base, head))
        with session.devices.held(self._watcher):
            measured = execute(job, recorder.take, PartOfPhase(self._watcher), steps)
        recorder.finish(measured)
        self.recorded = self.recorded or recorder.recorded
        self.machine = recorder.machine
        self.recorded_as = recorder.named(base.side).environment
        if measured.rounds:
            self.device = self.device or device_line(measured.facts.get("base", {}), measured.rounds)
        for remark in (*remarks(session.config, measured, job, Ceilings()), *recorder.warnings()):
            if remark not in self.warnings:
                self.warnings.append(remark)
        return measured

    def probe(self, good: Prepared, commit: Commit, steps: Steps) -> JobResult:
        """A commit measured in turn with the good end. Raises CommitSkipped where it cannot be."""
        try:
            head, _ = self.prepare(commit, "head")
            measured = self.measure(good, head, steps)
        except (BuildFailed, NothingMeasured) as error:
            raise CommitSkipped(error.cause) from error
        if self.case not in measured.cases.get("head", ()) and not measured.interrupted:
            why = "; ".join(problem.message for problem in measured.problems if problem.fatal)
            raise CommitSkipped("it does not have the case" + (f": {why}" if why else ""))
        versions = {own[self.case.name].code for own in measured.benchmarks.values() if self.case.name in own}
        if len(versions) > 1:
            raise CommitSkipped("its own suite has another version of the benchmark")
        return measured


class PairSteps:
    """Steps that ask for as many pairs of rounds as `more` says, which is told what was measured so far, until `end_s` of the
    monotonic clock."""

    def __init__(
        self,
        case: Case,
        first: int,
        more: Callable[[JobResult], int],
        end_s: float,
        title: str = "measuring",
        *,
        afresh: bool = False,
    ) -> None:
        self.end_s = end_s
        self._case, self._at, self._more, self._title, self._afresh = case, first, more, title, afresh

    def next(self, measured: JobResult) -> Batch | None:
        wanted = self._more(measured)
        if not wanted or not any(self._case in own for own in measured.cases.values()):
            return None
        at, self._at = self._at, self._at + wanted
        afresh, self._afresh = self._afresh, False
        return Batch({self._case: wanted}, at, self._title, afresh=afresh)


def _of_case(job: Job, case: Case) -> Job:
    return replace(job, selection=Selection((str(case),), known=True))
