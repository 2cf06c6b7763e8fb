"""What the measuring commands share: a project, the machine that measures it, and what is recorded of both.

recorder    results on their way into the history
checkout    the checkout as a side: what of it is measured, and what is kept of that
fitness     what a machine lacks for measuring on a device
throughput  what was achieved, from declared work
reading     how far the reading of results is
explanation  what regressed, profiled on both sides
metrics     the metric that was asked for
"""

from __future__ import annotations

import contextlib
import functools
import math
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regress import config as configuration
from regress.compare import Steps, spreads_of
from regress.compare.rule import is_critical
from regress.errors import NothingMeasured, RegressError, StoreError
from regress.errors import quoted as quoted
from regress.history import new_run, remember_noise, remembered_noise
from regress.measure.wire import Ceilings
from regress.model import Benchmark, Case, Comparison, Round, Side
from regress.project import Project
from regress.project import Request as Request
from regress.session.fitness import complaints, without_device
from regress.session.throughput import declares_work, moves_between
from regress.trends import past_of
from regress.units import counted as counted

if TYPE_CHECKING:  # what measures is imported where it is needed: many commands only read
    from regress.run.environments import Prepared
    from regress.run.execute import Job, Measured, Watcher
    from regress.run.gpus import Gpu
    from regress.run.plan import FixedRounds, Selection


class Session(Project):
    """A project that is measured on this machine, opened once a command."""

    def __init__(self, request: Request) -> None:
        super().__init__(request)
        self.run = new_run()
        """What tells the rounds that it records from those of other runs."""

    @cached_property
    def gpus(self) -> tuple[Gpu, ...]:
        """The GPUs that were named to be measured on, ordered by UUID; empty where none was: then it is the first one."""
        if not self.request.gpus:
            return ()
        from regress.measure.backend import DeviceError
        from regress.run.gpus import named, shown

        try:
            return named(self.request.gpus, shown(self.config.settings.device))
        except DeviceError as error:
            fix = without_device(str(error))
            raise NothingMeasured("there is no GPU to measure on", why=str(error), fix=fix) from None

    def recorded(self, machine: str | None = None) -> frozenset[str]:
        """The full hashes of all commits with results, on a machine or on any."""
        # Of no commits at all everything is unknown: so it says which have results.
        found = past_of(self.config.results_dir, self.cache, (), self.config.settings, machine)
        return frozenset(each.commit_sha for each in found.unknown)

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
            commits = {each.side.commit.sha for each in sides}
            files = frozenset(changed).union(*(self.repository.contents(sha) for sha in commits))
        own_suites = {side.side.name: self._own_suite(side) for side in sides} if self.request.own_suite else {}
        if not own_suites and not suite.is_dir():
            raise NothingMeasured(
                f"there is no folder {suite}",
                why='"benchmark_dir" of asv.conf.json names it',
                fix="regress init",
            )
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
            gpus=self.gpus,
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
            why = f"the suite lies in {suite}, outside the repository"
            raise RegressError("no commit has a suite of its own", why=why, fix="leave --suite own out")
        tree = side.tree
        if not (tree / ".git").exists():
            folder = suite.relative_to(root)
            tree = self.repository.worktree(
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

    @contextlib.contextmanager
    def device(self, watcher: Watcher) -> Iterator[str]:
        """Has the measured GPUs for this process alone while the block runs, with their clocks locked if that was asked for;
        yields in words what was locked, else nothing. Nothing is held where there is no GPU.

        They are held in the order of their UUIDs, so that of two who wait for the same ones each gets all of them in the end.
        Clocks that a run which was killed has left locked are given back in any case.
        """
        from regress.run import clocks, device_lock

        folder = self.cache.parent / "clocks"
        clocks.restore_left(folder, watcher.note)
        uuids, without = self._device_uuids()
        with contextlib.ExitStack() as held:
            for uuid in uuids:
                own = configuration.lock_dir(self.config)
                held.enter_context(device_lock.held(uuid, own, watcher.note, self.request.wait_lock))
            words: list[str] = []
            if self.request.lock_clocks:
                if not uuids:
                    raise RegressError("there are no clocks to lock", why=without, fix="leave --lock-clocks out")
                words += [held.enter_context(clocks.locked(uuid, folder, watcher.note)) for uuid in uuids]
                for each in dict.fromkeys(words):
                    watcher.note(each)
            yield "; ".join(dict.fromkeys(words))

    def _device_uuids(self) -> tuple[list[str], str]:
        """UUIDs of the GPUs that are measured on, in order; empty where there is none, and then why."""
        from regress.measure.backend import DeviceError
        from regress.measure.backend.cuda import CudaBackend

        device = self.config.settings.device
        if device not in ("auto", "cuda"):
            return [], f"the device is set to {device}"
        if self.gpus:
            return [each.uuid for each in self.gpus], ""
        try:
            return [str(CudaBackend().facts()["gpu_uuid"])], ""  # asking opens no context
        except DeviceError as error:
            return [], str(error)

    @property
    def devices(self) -> tuple[str, ...]:
        """UUIDs of the devices that are measured on, scripted ones too: what belongs to one card is not another's."""
        from regress.run.gpus import scripted

        named = [each.uuid for each in self.gpus] or self._device_uuids()[0]
        return tuple(named) or ((scripted(),) if self.config.settings.device == "fake" else ())

    def require_gpu(self, what: str) -> None:
        """Raise NothingMeasured, which says that nothing can be done `what`, where no GPU of NVIDIA's is measured on."""
        uuids, why = self._device_uuids()
        if not uuids:
            chosen = self.config.settings.device not in ("auto", "cuda")
            fix = "--device cuda on a machine with a GPU" if chosen else without_device(why)
            raise NothingMeasured(f"there is no GPU {what}", why=why, fix=fix)

    def steps(self, job: Job) -> Steps | FixedRounds:
        """The steps of a check that begins now: the rounds of the job, which a budget bounds that was asked for; where it has
        none, as many as are needed, planned by what past checks on this machine have seen."""
        from regress.run.plan import FixedRounds

        settings = self.config.settings
        if job.rounds:
            asked_for = "budget_s" in self.request.overrides
            return FixedRounds(job.rounds, time.monotonic() + settings.budget_s if asked_for else math.inf)
        return Steps(settings, time.monotonic, remembered_noise(self.cache, self.machine.name), len(self.gpus))

    def remember(self, comparisons: Iterable[Comparison]) -> None:
        """Keep how much each case scattered, for the next check. Where that cannot be written, it is not."""
        with contextlib.suppress(StoreError):
            remember_noise(self.cache, self.machine.name, spreads_of(comparisons))

    def ceilings(self, job: Job, measured: Measured) -> Ceilings:
        """What the device of the head does at most, where a benchmark declares work to hold against it; none after Ctrl-C."""
        if measured.interrupted or not any(declares_work(each.facts) for each in measured.rounds):
            return Ceilings()
        between = any(moves_between(each.facts) and "gpu_time" in each.values for each in measured.rounds)
        return self.device_ceilings(job, measured.facts.get("head", {}), between and len(job.gpus) > 1)

    def device_ceilings(self, job: Job, facts: Mapping[str, Any], peer: bool = False) -> Ceilings:
        """What the device that these facts of a process name does at most, by a process of the job's last side; with `peer` to
        the next one of the job too."""
        from regress.run.ceilings import ceilings_of

        own = [each for each in job.gpus if each.uuid == facts.get("gpu_uuid")]
        others = [each for each in job.gpus if each not in own][:1] if peer else []
        visits = job.visits([*own, *others])
        try:
            return ceilings_of(facts, self.cache.parent, lambda: visits.ceilings(job.sides[-1], peer), peer=peer)
        finally:
            visits.close()

    def warnings(self, measured: Measured, job: Job, ceilings: Ceilings) -> list[str]:
        """What the reader should know about how it was measured."""
        told = [text for each in job.sides for text in each.warnings]
        found = [*self.config.warnings, *dict.fromkeys(told), *measured.warnings]
        if ceilings.failure is not None:
            found.append(f"shares of what the device does at most are not all known: {ceilings.failure.message}")
        skipped = {(each.name, *each.params) for each in measured.rounds if needs_device(each)}
        if skipped:
            facts: Mapping[str, Any] = next(iter(measured.facts.values()), {})
            why = str(facts.get("no_device", "no device"))
            found.append(f"{len(skipped)} CUDA cases were skipped: {why}; fix: {without_device(why)}")
        if any(map(_on_device, measured.rounds)):
            torch = any(each.failure is not None or "torch" in each.facts.get("loaded", ()) for each in measured.rounds)
            found += dict.fromkeys(each for facts in measured.facts.values() for each in complaints(facts, torch))
        beside = {(each.name, *each.params) for each in measured.rounds if "beside" in each.facts}
        if beside:
            several = f"{counted(len(beside), 'case')} measured while other GPUs were"
            found.append(f"host_time and wall_time are left out of {several}: they share the host")
        if any(facts.get("scripted") for facts in measured.facts.values()):
            found.append("the device is scripted: times are stated by the code, not measured")
        return found


def require_values(measured: Measured) -> None:
    """Raise NothingMeasured where not one round gave a value for want of a device."""
    if any(each.values for each in measured.rounds) or measured.interrupted:
        return
    refused = [each for each in measured.rounds if needs_device(each)]
    if refused and len(refused) == len(measured.rounds):
        cases = len({(each.name, *each.params) for each in refused})
        failure = refused[0].failure
        assert failure is not None
        raise NothingMeasured(
            f"none of the {cases} cases could be measured",
            why=f"every one of them {failure.message}",
            fix=without_device(failure.message),
        )


def _on_device(round: Round) -> bool:
    """Whether a device may have had a part in the round, or should have had."""
    return round.protocol is None or round.protocol.metric == "gpu_time" or "torch" in round.facts.get("loaded", ())


def needs_device(round: Round) -> bool:
    """Whether it was skipped for want of a device."""
    return (
        round.failure is not None and round.failure.kind == "skipped" and "needs a CUDA device" in round.failure.message
    )


def device_uuid(measured: Measured) -> str:
    """UUID of the device that was there to measure on, as processes or (AMD) rounds name it; empty where there was none."""
    named = [*measured.facts.values(), *(each.facts for each in measured.rounds)]
    return next((str(facts["gpu_uuid"]) for facts in named if facts.get("gpu_uuid")), "")


def throttled(measured: Measured) -> list[str]:
    """The warning that the device slowed itself down, and in how many cases."""
    slowed = [each for each in measured.rounds if each.facts.get("throttled")]
    if not slowed:
        return []
    reasons = dict.fromkeys(str(reason) for each in slowed for reason in each.facts["throttled"])
    cases = len({(each.name, *each.params) for each in slowed})
    return [f"throttled ({', '.join(reasons)}): {counted(cases, 'case')} measured while the device slowed itself down"]


def imported_by(measured: Measured) -> dict[str, tuple[str, ...]]:
    """By side: the files that the project's packages were imported from, a file each."""
    told = [(each.side, each.facts.get("project_files", ())) for each in measured.rounds]
    told += [(side, facts.get("project_files", ())) for side, facts in measured.facts.items()]
    sides = dict.fromkeys(side for side, _ in told)
    return {name: tuple(sorted({file for side, files in told if side == name for file in files})) for name in sides}


def device_line(facts: Mapping[str, Any], rounds: list[Round]) -> str:
    """One line about what was measured on: GPU, driver, CUDA, frameworks, SM clock."""
    parts = []
    if "gpu" in facts:
        parts.append(str(facts["gpu"]))
    parts += [f"{word} {facts[name]}" for name, word in (("driver", "driver"), ("cuda", "CUDA")) if name in facts]
    loaded = {name for each in rounds for name in each.facts.get("loaded", ())}
    parts += [f"{name} {facts[name]}" for name in ("torch", "cupy", "jax") if name in facts and name in loaded]
    parts += [f"Python {facts['python']}"] if "python" in facts else []
    clocks = sorted(each.facts["sm_clock_hz"] for each in rounds if "sm_clock_hz" in each.facts)
    if clocks:
        parts.append(f"SM clock {clocks[len(clocks) // 2] / 1e6:.0f} MHz")
    return "  ".join(parts)
