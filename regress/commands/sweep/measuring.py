"""The measuring of a sweep: group after group of commits, each group's rounds in turn, until all are measured or time is up."""

from __future__ import annotations

import contextlib
import itertools
import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property

from regress.commands.sweep.cards import anchors, has_several, spread
from regress.commands.sweep.choosing import Chosen
from regress.commands.sweep.done import Done, Missing, Suite
from regress.commands.sweep.order import next_places
from regress.compare.rule import host_gates
from regress.config import environment as environment_of
from regress.errors import BuildFailed, NoDevice, NothingMeasured
from regress.history import Store, new_run
from regress.measure.wire import Ceilings
from regress.model import Benchmark, Case, Commit, Machine, Side, SuiteProblem
from regress.run.environments import Prepared, identity_of
from regress.run.execute import JobResult, Watcher, execute
from regress.run.plan import Selection, select, unimportable
from regress.run.problems import apart, nothing_selected
from regress.session import Session
from regress.session.recorder import Recorder, complete
from regress.session.remarks import device_line, remarks, require_values, throttled
from regress.text.wording import counted, first_of, quoted
from regress.trends import Numbers, numbers_before, past_of
from regress.trends.events import events_in

GROUP = 4
"""Commits that are measured in turn, on a card: so far apart in time lie the rounds of one of them."""

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
        self._session, self._chosen, self._watcher, self._recorded = session, chosen, watcher, recorded
        self._end_s, self._group = end_s, group
        self._environment, self._retry = environment, retry
        self._place = {commit.sha: at for at, commit in enumerate(chosen.line)}
        self.rounds = session.config.settings.sweep_rounds
        self.failed: dict[str, Failed] = {}
        self.measured: list[Commit] = []
        self.anchors: list[str] = []
        """Labels of commits that were measured again."""
        self.beside: Commit | None = None
        """The commit beside which they were."""
        self._given = anchor
        """What is to stand in every group, where who asks for the sweep says so."""
        self.several = anchor is not None or has_several(session)
        """Whether several cards of the machine have a part in its history."""
        self._unbuilt: set[Commit] = set()
        """Those that were to be measured again, and did not build."""
        self.warnings: list[str] = list(session.config.warnings)
        self.problems: list[SuiteProblem] = []
        self.machine: Machine = session.machine
        self.device = ""
        self.interrupted = False
        self.cases: list[Case] = []
        self.suite = Suite()
        self._had: Numbers = {}
        """What gave numbers before, and cannot be imported with the newest commit's code."""
        self.done = self._look_over()
        self._lacking = {
            sha: missing for sha in self._place if sha in chosen.wanted and (missing := self.done.missing(sha))
        }
        self.planned = len(self._lacking)
        """Commits that were to be measured."""

    @property
    def left(self) -> list[str]:
        """Full hashes of the commits that are still to be measured."""
        return [sha for sha in self._lacking if sha not in self.failed]

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
        try:
            suite = visits.discover([prepared])[prepared.side.name]
            python = visits.interpreters[prepared.side.name]
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

    def _side(self, commit: Commit, beside: str = "") -> Side:
        name = f"{commit.short} again" if beside else commit.short
        return Side(name, commit, "", self._environment, beside=beside)

    # -- group after group -----------------------------------------------------------------------------------------------

    @property
    def is_over(self) -> bool:
        """Whether there is no time left."""
        return time.monotonic() >= self._end_s

    def measure(self) -> None:
        """Until nothing is left, another group would not be over in time, or Ctrl-C."""
        slowest_s = 0.0
        try:
            while time.monotonic() + slowest_s < self._end_s and (group := self._next_group()):
                began = time.monotonic()
                self._measure(group, {} if self.several else self._anchors(group))
                self._session.repository.release_worktrees()
                slowest_s = max(slowest_s, time.monotonic() - began)
                if self.interrupted:
                    break
        except KeyboardInterrupt:
            self.interrupted = True

    def _next_group(self) -> list[Commit]:
        """The commits that are measured next, the oldest first, as many on each card; all of them lack the same."""
        left, line = set(self.left), self._chosen.line
        if not left:
            return []
        if (anchor := self._anchor) is not None and len(left) > 1:  # it is measured along with them
            left.discard(anchor.sha)
        count = self._group * max(1, len(self._session.devices.named))
        changed = self._changed() if len(left) > count else ()
        (first,) = next_places([commit.sha in left for commit in line], changed, 1)
        alike = {sha for sha in left if self._lacking[sha] == self._lacking[line[first].sha]}
        places = next_places([commit.sha in alike for commit in line], changed, count)
        return [line[place] for place in sorted(places)]

    def _changed(self) -> set[int]:
        """Places of commits that a large change may be due to."""
        changes = events_in(self._session, self._chosen.histories, self.names, self._session.machine.name).changes
        return {self._place[sha] for change in changes if change.point.large for sha in change.point.blamed}

    def _anchors(self, group: Sequence[Commit]) -> dict[Commit, Collection[Case] | None]:
        """What is measured again beside the newest commit of the group, and which of its cases; None for all.

        Beside commits that are newer than all measured ones these are the last head and the last release, which show whether
        the machine is what it was. Beside every group it is one and the same older commit, in what the host's clock decides: by
        their ratios to it all commits are compared, however far apart they were measured.
        """
        newest = group[-1]
        chosen: dict[Commit, Collection[Case] | None] = {}
        before = [
            commit for commit in self._chosen.line if commit.sha in self._recorded and commit.sha not in self._lacking
        ]
        older = [commit for commit in before if self._place[commit.sha] < self._place[newest.sha]]
        tags = self._session.repository.releases_in(self._chosen.line)
        releases = [commit for commit in before if commit.sha in tags]
        whole = self._lacking[newest.sha] == dict.fromkeys(self.cases, self.rounds)
        new = whole and not self.measured and bool(older) and older[-1] == before[-1]
        if new and not self._remeasured_beside(newest.sha):
            chosen.update(dict.fromkeys([*releases[-1:], older[-1]]))
        fixed = next(iter([*releases[-1:], *before[:1], *self.measured[:1]]), None)
        if fixed is not None and fixed not in group and fixed not in self._unbuilt:
            in_turn = self._in_turn(fixed, gating=not new) & self._lacking[newest.sha].keys()
            if in_turn:
                chosen.setdefault(fixed, in_turn)
        return chosen

    def _in_turn(self, commit: Commit, gating: bool) -> set[Case]:
        """The cases of a measured commit that take windows in turn with others', with `gating` those that fail a check for what
        comes of it."""
        settings, machine = self._session.config.settings, self._session.machine.name
        return {
            case
            for recorded in Store(self._session.config.results_dir).load(commit.sha, machine).recorded
            for round in recorded.rounds
            if round.protocol is not None and round.protocol.short_windows
            for case in [Case(round.name, tuple(round.params))]
            if not gating or host_gates(round.protocol.metric, case, recorded.benchmarks.get(round.name), settings)
        }

    def _remeasured_beside(self, sha: str) -> bool:
        anchors = Store(self._session.config.results_dir).anchors(self._session.machine.name)
        return any(anchor.beside == sha for anchor in anchors)

    @property
    def _anchor(self) -> Commit | None:
        """What stands in the groups of all cards, where there are several."""
        return next((anchor for anchor in self._best_anchors if anchor not in self._unbuilt), None)

    @cached_property
    def _best_anchors(self) -> list[Commit]:
        if self._given is not None or not self.several:
            return [self._given] if self._given is not None else []
        line, environment = self._chosen.line, self.done.environment
        return anchors(
            self._session, line, self.names, environment, [commit for commit in line if commit.sha in self._lacking]
        )

    def _parts(self, group: Sequence[Commit]) -> tuple[list[list[Side]], dict[Side, None]]:
        """What each card measures of the group, and which of that is the anchor, whose rounds are results of its own: what
        several cards have read of one commit."""
        parts, again = [], dict[Side, None]()
        for number, own in enumerate(spread(group, max(1, len(self._session.devices.named))), 1):
            sides = [self._side(commit) for commit in own]
            if self._anchor is not None and self._anchor not in own:
                side = replace(self._side(self._anchor), name=f"{self._anchor.short} again {number}")
                again[side] = None
                sides.insert(0, side)
            parts.append(sides)
        return parts, again

    def _measure(
        self, group: Sequence[Commit], anchors: Mapping[Commit, Collection[Case] | None] | None = None
    ) -> None:
        """Measure and record a group. What cannot be measured is left out: it is tried alone, so that the others are."""
        missing = self._lacking[group[0].sha]
        again: Mapping[Side, Collection[Case] | None]
        if self.several:
            parts, again = self._parts(group)
        else:
            again = {self._side(commit, group[-1].sha): cases for commit, cases in (anchors or {}).items()}
            parts = [[*again, *(self._side(commit) for commit in group)]]
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
                    self._measure([commit])
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
        self.done.failed(commit.sha, measured.of(name))
        left = self.done.missing(commit.sha)
        if left:
            self._lacking[commit.sha] = left
        else:
            self._lacking.pop(commit.sha, None)
        if commit not in self.measured and any(round.values for round in measured.of(name)):
            self.measured.append(commit)
        beside = {Case(round.name, tuple(round.params)) for round in measured.rounds if round.failure is not None}
        lacking = [case for case in left if case not in beside]  # what fails on one side is visited once on the others
        if lacking and not self.interrupted and not self.is_over:
            # Rounds that were not kept, or gave nothing: not again in this sweep.
            lost = lacking[0]
            why = "some rounds were lost or gave no value"
            fix = quoted("regress", "run", commit.short, "-b", str(lost))
            self.failed[commit.sha] = (f"{first_of(lacking)} lack rounds", why, fix)

    def _execute(
        self,
        prepared: Sequence[Prepared],
        missing: Mapping[Case, int],
        again: Mapping[Side, Collection[Case] | None],
        parts: Sequence[Sequence[Side]],
    ) -> JobResult:
        session, sides = self._session, tuple(prepared)
        if self.several:  # what a run has on one card was in turn
            session.run = new_run()
        places = {side.side.name: self._place[side.side.commit.sha] for side in sides}
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
        self._build([commit.sha for commit in group])
        ready = []
        for side in sides:
            try:
                ready.append(self._session.prepare(side, self._watcher))
            except BuildFailed as error:
                if side.commit not in group:
                    self._unbuilt.add(side.commit)
                    self.warnings.append(f"{side.label} was not measured again: {error.what}")
                    continue
                self.failed[side.commit.sha] = (error.what, error.why, error.fix)
                self.done.unbuilt(side.commit.sha, error.what)
                self._lacking.pop(side.commit.sha, None)
        return ready

    def _build(self, revisions: Sequence[str]) -> None:
        """Build several commits at once; `prepare` finds what they have built, and says what is wrong with what has not.

        Each in a process of the program: Ctrl-C interrupts only the main thread of a process, and there it ends the build
        that is under way, with all that it has started."""
        config = self._session.config
        if not config.settings.build or environment_of(config, self._environment).asv or len(revisions) < 2:
            return
        file = self._session.request.config_file
        options = ["-q", *(["--config", str(file.resolve())] if file is not None else [])]
        options += ["--env", self._environment] if self._environment else []
        cores = max(2, os.cpu_count() or 2)
        self._watcher.note(f"building {counted(len(revisions), 'commit')}")
        waiting, running = list(revisions), list[subprocess.Popen[bytes]]()
        try:
            while waiting or running:
                while waiting and len(running) < cores:
                    words = [sys.executable, "-m", "regress", "build", waiting.pop(0), *options]
                    start, null = self._session.request.start, subprocess.DEVNULL
                    running.append(subprocess.Popen(words, cwd=start, stdin=null, stdout=null, stderr=null))
                running[0].wait()
                running = [process for process in running if process.poll() is None]
        finally:
            for process in running:
                with contextlib.suppress(ProcessLookupError):
                    process.send_signal(signal.SIGINT)
            for process in running:
                process.wait()
