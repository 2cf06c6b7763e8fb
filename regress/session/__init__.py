"""What the measuring commands share: a project, the machine that measures it, and what is recorded of both.

devices     the GPUs in use, and their locks
remarks     warnings about measured rounds
recorder    results on their way into the history
checkout    the checkout as a side: what is measured, and what is recorded
fitness     what a machine lacks for measuring on a device
throughput  work per second, from declared work
explanation  profiles regressions on both sides
"""

from __future__ import annotations

import contextlib
import functools
import math
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regress.compare import CheckSteps, spreads_of
from regress.compare.rule import is_critical
from regress.errors import NothingMeasured, RegressError, StoreError
from regress.history import new_run, remember_noise, remembered_noise
from regress.measure.wire import Ceilings
from regress.model import METRICS, Benchmark, Case, Comparison, Side
from regress.project import Project
from regress.project import Request as Request
from regress.session.devices import Devices
from regress.session.throughput import declares_work, moves_between
from regress.text.wording import nearest
from regress.trends import past_of

if TYPE_CHECKING:  # what measures is imported where it is needed: many commands only read
    from regress.run.environments import Prepared
    from regress.run.execute import Job, JobResult, Watcher
    from regress.run.plan import FixedRounds, Selection


class Session(Project):
    """A project that is measured on this machine, opened once a command."""

    def __init__(self, request: Request) -> None:
        super().__init__(request)
        self.devices = Devices(self)
        self.run = new_run()
        """What tells the rounds that it records from those of other runs."""

    def of(self, machine: str) -> Session:
        """The session of another machine, such as a kind of nodes."""
        return Session(replace(self.request, overrides={**self.request.overrides, "machine": machine}))

    def recorded(self, machine: str | None = None) -> frozenset[str]:
        """The full hashes of all commits with results, on a machine or on any."""
        # Of no commits at all everything is unknown: so it says which have results.
        past = past_of(self.config.results_dir, self.cache, (), self.config.settings, machine)
        return frozenset(unknown.commit_sha for unknown in past.unknown)

    def prepare(self, side: Side, watcher: Watcher) -> Prepared:
        from regress.run.environments import prepare

        return prepare(side, self.config, self.repository, self.cache, watcher.note)

    # -- what is measured, and how ---------------------------------------------------------------------------------------

    def selection(self, changed: tuple[str, ...] | None = None, files: frozenset[str] | None = None) -> Selection:
        """The cases that were asked for; with `changed` only those of benchmarks that cover one of these of all `files`."""
        from regress.run.plan import Selection

        return Selection(self.request.patterns, self.request.tags, changed, self.suite_parent, files)

    def job(
        self,
        sides: tuple[Prepared, ...],
        rounds: int,
        changed: tuple[str, ...] | None = None,
        wanted: Collection[str] = (),
    ) -> Job:
        """The job of measuring these sides with the suite of the invoking checkout, or each with its own. `changed`: of
        benchmarks that cover these files alone; `wanted`: of those that cover these before others, but for critical ones."""
        from regress.run.execute import Job
        from regress.run.ship import ship

        suite = self.config.benchmark_dir
        files = None
        if changed is not None:
            commits = {side.side.commit.sha for side in sides}
            files = frozenset(changed).union(*(self.repository.contents(sha) for sha in commits))
        own_suites = {side.side.name: self._own_suite(side) for side in sides} if self.request.own_suite else {}
        if not own_suites and not suite.is_dir():
            default = self.config.sources["benchmark_dir"] == "default"
            raise NothingMeasured(
                f"there is no folder {suite}",
                why=f'asv.conf.json has no "benchmark_dir", so it is {suite.name}' if default
                else '"benchmark_dir" of asv.conf.json names it',
                fix='set "benchmark_dir" to the folder of the suite, or write one: regress init',
            )  # fmt: skip
        return Job(
            sides=sides,
            suite=suite,
            start_file=ship(self.cache.parent),
            settings=self.config.settings,
            rounds=1 if self.request.quick else rounds,
            selection=self.selection(changed, files),
            quick=self.request.quick,
            default_timeout_s=self.config.default_benchmark_timeout_s,
            own_suites=own_suites,
            gpus=self.devices.named,
            rank=functools.partial(self._rank, wanted),
        )

    def _rank(self, wanted: Collection[str], case: Case, benchmark: Benchmark) -> int:
        """Critical cases first, then what covers a file that is changed, then the others."""
        from regress.run.plan import affected

        if is_critical(case, benchmark, self.config.settings):
            return 0
        return 1 if affected(benchmark, wanted, self.suite_parent) else 2

    def _own_suite(self, side: Prepared) -> Path:
        """The suite's folder as the side's commit has it; a wheel has none, so its commit is checked out for it."""
        suite, root = self.config.benchmark_dir, self.repository.root
        if not suite.is_relative_to(root):
            why = f"the suite is in {suite}, outside the repository"
            raise RegressError("no commit contains a suite", why=why, fix="leave --suite own out")
        tree = side.tree
        if not (tree / ".git").exists():
            folder = suite.relative_to(root)
            tree = self.repository.worktrees.get(
                side.side.commit,
                self.cache / "worktrees",
                lambda tree, name: Path(name).is_relative_to(folder) or folder.is_relative_to(name),
            )
        own = tree / suite.relative_to(root)
        if not own.is_dir():
            raise NothingMeasured(
                f"{side.side.name} {side.side.label} has no folder {suite.relative_to(root)}",
                why="with --suite own each side is measured with the suite of its own commit",
                fix="leave --suite own out",
            )
        return own

    def steps(self, job: Job) -> CheckSteps | FixedRounds:
        """The steps of a check that begins now: the rounds of the job, which a budget bounds that was asked for; where it has
        none, as many as are needed, planned by what past checks on this machine have seen."""
        from regress.run.plan import FixedRounds

        settings = self.config.settings
        if job.rounds:
            asked_for = "budget_s" in self.request.overrides
            return FixedRounds(job.rounds, time.monotonic() + settings.budget_s if asked_for else math.inf)
        return CheckSteps(
            settings, time.monotonic, remembered_noise(self.cache, self.machine.name), len(self.devices.named)
        )

    def remember(self, comparisons: Iterable[Comparison]) -> None:
        """Keep how much each case scattered, for the next check. Where that cannot be written, it is not."""
        with contextlib.suppress(StoreError):
            remember_noise(self.cache, self.machine.name, spreads_of(comparisons))

    def ceilings(self, job: Job, measured: JobResult) -> Ceilings:
        """What the device of the head does at most, where a benchmark declares work to hold against it; none after Ctrl-C."""
        if measured.interrupted or not any(declares_work(round.facts) for round in measured.rounds):
            return Ceilings()
        between = any(moves_between(round.facts) and "gpu_time" in round.values for round in measured.rounds)
        return self.device_ceilings(job, measured.facts.get("head", {}), between and len(job.gpus) > 1)

    def device_ceilings(self, job: Job, facts: Mapping[str, Any], peer: bool = False) -> Ceilings:
        """What the device that these facts of a process name does at most, by a process of the job's last side; with `peer` to
        the next one of the job too."""
        from regress.run.ceilings import ceilings_of
        from regress.run.questions import ceilings

        own = [gpu for gpu in job.gpus if gpu.uuid == facts.get("gpu_uuid")]
        others = [gpu for gpu in job.gpus if gpu not in own][:1] if peer else []
        processes = job.processes([*own, *others])
        try:
            return ceilings_of(facts, self.cache.parent, lambda: ceilings(processes, job.sides[-1], peer), peer=peer)
        finally:
            processes.close()


def check_metric(name: str) -> None:
    """Raise RegressError, with the name that is near, for one that no benchmark can have; empty is none that was asked for."""
    known = (*METRICS, "value")
    if name and name not in known:
        fix = f"--metric {[*nearest(name, known), 'gpu_time'][0]}"
        raise RegressError(f"there is no metric {name}", why=f"known are {', '.join(known)}", fix=fix)


def reading(watcher: Watcher) -> Callable[[int, int], None]:
    """Takes how many bytes are read, and how many there are; tells it by the MiB, and less than one not at all."""
    told = -1

    def tell(read: int, wanted: int) -> None:
        nonlocal told
        if told < 0:
            if wanted >> 20:
                watcher.start(wanted >> 20, "reading results, MiB")
            told = 0
        if read >> 20 > told:
            watcher.advance("", (read >> 20) - told)
            told = read >> 20

    return tell
