"""The measuring of a sweep: group after group of commits, each group's rounds in turn, until all are measured or time is up."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from regress.commands.sweep.building import build
from regress.commands.sweep.choosing import Chosen
from regress.commands.sweep.done import Done, Missing, Suite
from regress.commands.sweep.groups import GROUP, Again, Groups, side_of
from regress.errors import BuildFailed, NoDevice, NothingMeasured
from regress.history import new_run
from regress.measure.wire import Ceilings
from regress.model import Benchmark, Case, Commit, Failure, Machine, Round, Side, SuiteProblem
from regress.run.environments import Prepared, identity_of
from regress.run.execute import IMPORTING, JobResult, Watcher, execute
from regress.run.plan import Selection, select, unimportable
from regress.run.problems import apart, nothing_selected
from regress.session import Session
from regress.session.recorder import Recorder, complete
from regress.session.remarks import device_line, remarks, require_values, throttled
from regress.text.wording import counted, first_of, quoted
from regress.trends import Numbers, numbers_before, past_of

Failed = tuple[str, str, str]
"""What, why, and fix."""


class Sweep:
    """One sweep, which ends when the monotonic clock says `end_s`. Attributes say how far it came."""

    def __init__(
        self,
        session: Session,
        chosen: Chosen,
        watcher: Watcher,
        recorded: Collection[str],
        environment: str,
        retry: bool = False,
        *,
        end_s: float = math.inf,
        group: int = GROUP,
        anchor: Commit | None = None,
    ) -> None:
        self._session, self._chosen, self._watcher = session, chosen, watcher
        self._end_s, self._environment, self._retry = end_s, environment, retry
        self.rounds = session.config.settings.sweep_rounds
        self.failed: dict[str, Failed] = {}
        self.measured: list[Commit] = []
        self.numberless: dict[str, Failure] = {}
        """By full hash: the first failure of a commit on which nothing gave a number."""
        self.anchors: list[str] = []
        """Labels of commits that were measured again."""
        self.beside: Commit | None = None
        """The commit beside which they were."""
        self.warnings: list[str] = list(session.warnings)
        self.problems: list[SuiteProblem] = []
        self.machine: Machine = session.machine
        self.device = self.recorded = ""
        self.interrupted = False
        self.cases: list[Case] = []
        self.suite = Suite()
        self._had: Numbers = {}
        """What gave numbers before, and cannot be imported with the newest commit's code."""
        self.done = self._look_over()
        self._lacking = {
            commit.sha: missing
            for commit in chosen.line
            if commit.sha in chosen.wanted and (missing := self.done.missing(commit.sha))
        }
        self._groups = Groups(session, chosen, self.suite, recorded, self._lacking, environment, group, anchor)
        self.planned = len(self._lacking)
        """Commits that were to be measured."""

    @property
    def left(self) -> list[str]:
        """Full hashes of the commits that are still to be measured."""
        return [sha for sha in self._lacking if sha not in self.failed]

    @property
    def several(self) -> bool:
        """Whether several cards of the machine have a part in its history."""
        return self._groups.several

    @property
    def names(self) -> frozenset[str]:
        """The benchmarks that it is about."""
        return self.suite.names

    # -- before ----------------------------------------------------------------------------------------------------------

    def _look_over(self) -> Done:
        """Discover the suite with the newest commit's code that can be made ready, and find out what is measured already."""
        unbuilt: dict[str, BuildFailed] = {}
        for commit in (candidate for candidate in reversed(self._chosen.line) if candidate.sha in self._chosen.wanted):
            try:
                prepared = self._session.prepare(self._side(commit), self._watcher)
                benchmarks, python = self._discovered(prepared)
            except (BuildFailed, NothingMeasured) as error:
                self.failed[commit.sha] = (error.what, error.why, error.fix)
                if isinstance(error, BuildFailed):
                    unbuilt[commit.sha] = error
                continue
            identity = identity_of(prepared, python)
            for commit in (candidate for candidate in self._chosen.line if candidate.sha in self._chosen.wanted):
                complete(self._session, self._side(commit), identity)
            self.suite = Suite(identity.name, benchmarks, tuple(self.cases), self.rounds)
            done = Done(self._session, self.suite, self._retry)
            for sha, failed in unbuilt.items():
                if done.missing(sha):
                    done.unbuilt(sha, failed.what)
                else:  # given up, or measured before it stopped building
                    del self.failed[sha]
            return done
        what, why, fix = next(iter(self.failed.values()))
        raise NothingMeasured(what, why=why, fix=fix)

    def _discovered(self, prepared: Prepared) -> tuple[dict[str, Benchmark], str]:
        """The suite's benchmarks by name, and the version of the interpreter; `cases` are those that are wanted."""
        job = self._session.job((prepared,), self.rounds)
        visits = job.visits()
        self._watcher.start(0, IMPORTING)
        try:
            suite = visits.discover([prepared])[prepared.side.name]
            python = visits.processes.python_of(prepared)
        finally:
            visits.close()
        self.problems, told = apart(suite.problems, job.selection, suite.benchmarks, job.suite)
        self.warnings += told
        benchmarks = {benchmark.name: benchmark for benchmark in suite.benchmarks}
        if any(problem.fatal for problem in suite.problems):
            config, machine = self._session.config, self._session.machine.name
            past = past_of(config.results_dir, self._session.cache, self._chosen.line, config.settings, machine)
            had = numbers_before(past, benchmarks.keys())
            lost = unimportable(suite, {name: benchmark for name, (benchmark, _) in had.items()})
            self._had = {name: had[name] for name in lost}
            benchmarks.update((name, benchmark) for name, (benchmark, _) in lost.items())
        self.cases = select(benchmarks.values(), job.selection)
        if not self.cases:
            raise nothing_selected(job, suite.problems, benchmarks.values())
        return benchmarks, python

    def _side(self, commit: Commit) -> Side:
        return side_of(commit, self._environment)

    # -- group after group -----------------------------------------------------------------------------------------------

    @property
    def is_over(self) -> bool:
        """Whether there is no time left."""
        return time.monotonic() >= self._end_s

    def measure(self) -> None:
        """Until nothing is left, another group would not be over in time, or Ctrl-C."""
        slowest_s = 0.0
        try:
            while time.monotonic() + slowest_s < self._end_s and (group := self._groups.next(self.left)):
                began = time.monotonic()
                self._measure(group)
                self._session.repository.worktrees.release()
                slowest_s = max(slowest_s, time.monotonic() - began)
                if self.interrupted:
                    break
        except KeyboardInterrupt:
            self.interrupted = True

    def _measure(self, group: Sequence[Commit], *, alone: bool = False) -> None:
        """Measure and record a group. What cannot be measured is left out: it is tried `alone`, so that the others are."""
        missing = self._lacking[group[0].sha]
        parts, again = self._groups.parts(group, self.measured, alone=alone)
        prepared = self._prepared(itertools.chain(*parts), list(group))
        built = [commit for commit in group if commit.sha not in self.failed]
        if not built:
            return
        labels = ", ".join(commit.short for commit in built)
        so_far = self.planned - len(self.left)
        numbers = f"{so_far + 1}" if len(built) == 1 else f"{so_far + 1} to {so_far + len(built)}"
        self._watcher.note(f"{counted(len(built), 'commit')}, {numbers} of {self.planned}: {labels}")
        try:
            measured = self._execute(prepared, missing, again, parts)
        except NothingMeasured as error:
            if isinstance(error, NoDevice):
                self.failed.update(dict.fromkeys(self.left, (error.what, error.why, error.fix)))
            elif len(built) > 1:
                for commit in built:
                    if not self.interrupted and not self.is_over:
                        self._measure([commit], alone=True)
            else:
                self.failed[built[0].sha] = (error.what, error.why, error.fix)
            return
        self.interrupted = measured.interrupted
        if not self.anchors:
            whole = (ready.side.commit.short for ready in prepared if again.get(ready.side, ()) is None)
            self.anchors = [*dict.fromkeys(whole)]
            self.beside = group[-1] if self.anchors and not self.several else None
        for commit in built:
            self._look_again(commit, commit.short, measured, missing)
        for side in again:
            if side.commit.sha in self._lacking:
                self._look_again(side.commit, side.name, measured, missing)

    def _look_again(self, commit: Commit, name: str, measured: JobResult, missing: Mapping[Case, int]) -> None:
        """What the commit lacks by now; `name` is that of its side."""
        if not self.interrupted:
            absent = missing.keys() - set(measured.cases.get(name, ()))
            self.done.absent(commit.sha, absent)
        rounds = measured.of(name)
        self.done.failed(commit.sha, rounds)
        left = self.done.missing(commit.sha)
        if left:
            self._lacking[commit.sha] = left
        else:
            self._lacking.pop(commit.sha, None)
        if commit not in self.measured:
            self._note_values(commit, rounds)
        beside = {Case(round.name, tuple(round.params)) for round in measured.rounds if round.failure is not None}
        lacking = [case for case in left if case not in beside]  # what fails on one side is visited once on the others
        if lacking and not self.interrupted and not self.is_over:
            # Rounds that were not kept, or gave nothing: not again in this sweep.
            lost = lacking[0]
            why = "some rounds were lost or gave no value"
            fix = quoted("regress", "run", commit.short, "-b", str(lost))
            self.failed[commit.sha] = (f"{first_of(lacking)} lack rounds", why, fix)

    def _note_values(self, commit: Commit, rounds: Sequence[Round]) -> None:
        """Whether the commit is measured now, or failed in all that it was asked."""
        failures = [round.failure for round in rounds if round.failure is not None and round.failure.kind != "skipped"]
        if any(round.values for round in rounds):
            self.numberless.pop(commit.sha, None)
            self.measured.append(commit)
        elif failures:
            self.numberless.setdefault(commit.sha, failures[0])

    def _execute(
        self,
        prepared: Sequence[Prepared],
        missing: Mapping[Case, int],
        again: Again,
        parts: Sequence[Sequence[Side]],
    ) -> JobResult:
        session, sides = self._session, tuple(prepared)
        if self.several:  # what a run has on one card was in turn
            session.run = new_run()
        places = {side.side.name: self._groups.place[side.side.commit.sha] for side in sides}
        job = replace(
            session.job(sides, self.rounds),
            references=tuple(side.name for side in again),
            only={side.name: cases for side, cases in again.items() if cases is not None},
            groups=tuple(tuple(side.name for side in part) for part in parts) if session.devices.named else (),
            had=lambda side: self._had_before(places[side]),
        )
        if missing.keys() != set(self.cases):
            job = replace(job, selection=Selection(tuple(map(str, missing)), known=True))
        recorder = Recorder(session, session.config.results_dir, sides)
        with session.devices.held(self._watcher):
            ready = execute(job, recorder.take, self._watcher, Missing(missing, self.rounds, self._end_s))
        recorder.finish(ready)
        self.recorded = self.recorded or recorder.recorded
        require_values(ready)
        self.machine = recorder.machine
        self.device = self.device or device_line(next(iter(ready.facts.values()), {}), ready.rounds)
        self.warnings += [*remarks(session.config, ready, job, Ceilings()), *recorder.warnings(), *throttled(ready)]
        self._note_problems(sides[-1], ready.problems)
        return ready

    def _had_before(self, place: int) -> dict[str, Benchmark]:
        return {name: benchmark for name, (benchmark, first) in self._had.items() if first < place}

    def _note_problems(self, last: Prepared, problems: Iterable[SuiteProblem]) -> None:
        """Keep them. The suite is that of the newest commit: what an older one cannot import is new, mostly, and fails nothing;
        those of the group's other commits have said so already."""
        known = {(problem.where, problem.name) for problem in self.problems}
        for problem in problems:
            if (problem.where, problem.name) in known:
                continue
            only = f"on {last.side.label} only: {problem.message}" if problem.fatal else problem.message
            self.problems.append(replace(problem, message=only, fatal=False))

    # -- making ready ----------------------------------------------------------------------------------------------------

    def _prepared(self, sides: Iterable[Side], group: Sequence[Commit]) -> list[Prepared]:
        """The sides that can be made ready. Those that do not build are noted."""
        build(self._session, [commit.sha for commit in group], self._environment, self._watcher)
        ready = []
        for side in sides:
            try:
                ready.append(self._session.prepare(side, self._watcher))
            except BuildFailed as error:
                if side.commit not in group:
                    self._groups.unbuilt.add(side.commit)
                    self.warnings.append(f"{side.label} was not measured again: {error.what}")
                    continue
                self.failed[side.commit.sha] = (error.what, error.why, error.fix)
                self.done.unbuilt(side.commit.sha, error.what)
                self._lacking.pop(side.commit.sha, None)
        return ready
