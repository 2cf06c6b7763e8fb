"""The process under test: answers the driver's commands until the pipe closes.

Standard input is empty and standard output goes to a log, so a benchmark may read, print or close them as it likes.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import hashlib
import importlib.metadata
import os
import pickle
import platform
import re
import sys
import time
from typing import Any, Dict, Mapping, Optional, Sequence

from .awaited import awaiting
from .backend import Backend, DeviceError, choose, imported_by_suites
from .backend.torch_events import built_for
from .channel import Channel
from .company import Company
from .failures import failure_of
from .project import ProjectCode
from .ranks import Ranks, join
from .seat import Seat
from .state import GENERATORS, AtImport, seed
from .suite import Suite
from .visit import Visitor
from .wire import (
    FRAMEWORKS,
    Begin,
    Broken,
    CacheReady,
    CaseRecorded,
    Discover,
    End,
    Failure,
    Importing,
    MeasureCeilings,
    Open,
    Opened,
    Record,
    Round,
    SetupCache,
    TryFork,
    Visit,
    Works,
    WrongCode,
)
from .wire import Suite as SuiteMessage


class Imported:
    """The suite of an opening, and what has to exist before it is imported."""

    def __init__(self, opening: Open) -> None:
        seed(opening.seed)
        # What a suite draws while it is imported repeats as well.
        sys.meta_path.insert(0, AtImport(GENERATORS, lambda name: seed(opening.seed, (name,))))
        self.backend: Optional[Backend] = imported_by_suites(opening.device, opening.seed, opening.side)
        self.suite = Suite(opening.suite_dir, opening.overrides, opening.import_roots, opening.cuda)


class Worker:
    """One side's process: a suite, a device, and the cases it is asked to visit."""

    def __init__(self, channel: Channel, opening: Open, imported: Imported, seat: Optional[Seat] = None) -> None:
        self._channel = channel
        self._seed = opening.seed
        seed(self._seed)
        self._backend: Backend = imported.backend or choose(opening.device, opening.rank.number % opening.rank.gpus)
        if opening.rank.size > 1:
            self._backend.ranks = Ranks(opening.rank, channel)
        self._suite = imported.suite
        ours = opening.rank.size if seat is None else 1 + seat.others
        company = Company(self._backend, opening.driver, ours)
        self._visitor = Visitor(self._suite, self._backend, opening.seed, os.getcwd(), company, seat)
        self._code = ProjectCode(opening.import_roots, self._suite.package, opening.named_in)
        self._roots = opening.import_roots
        # A forked process has them from the start, and says so once for all its rounds.
        self._imported = self._code.imported()
        project = {"project_files": self._imported} if self._imported else {}
        self._says_it = not self._imported
        channel.send(Opened(os.getpid(), {**facts(self._backend), **project}, company.warnings()))

    def answer(self, command: Any) -> None:
        if isinstance(command, Discover):
            benchmarks, problems = self._suite.discover(lambda module: self._channel.send(Importing(module)))
            self._channel.send(SuiteMessage(benchmarks, problems, programs=self._suite.programs))
        elif isinstance(command, TryFork):
            from . import probe  # one worker of a run is asked

            probe.tried(self._backend if command.device else None, self._channel.send)
            self._channel.send(Works())
        elif isinstance(command, SetupCache):
            self._channel.send(set_up_cache(self._suite, command, self._seed))
        elif isinstance(command, MeasureCeilings):
            from . import ceilings  # most workers are never asked

            self._channel.send(ceilings.measure(self._backend, command.peer))
        elif isinstance(command, Visit):
            self._visit(command)
        elif isinstance(command, Record):
            self._record(command)
        else:
            raise ValueError(f"unknown command {type(command).__name__}")

    def _visit(self, visit: Visit) -> None:
        for index, task in enumerate(visit.tasks):
            self._channel.send(Begin(index))
            reply: Any = self._visitor.propose(task) if task.protocol is None else self._visitor.measure(task)
            self._refuse_foreign()
            broken = self._visitor.broken()
            if broken is not None and reply.failure is None:
                # What the device did wrong shows late; until the next case begins it can only have been this one.
                failure = Failure("error", f"the device context is lost: {broken}")
                reply = dataclasses.replace(reply, failure=failure, values={}, protocol=task.protocol)
            self._channel.send(self._with_project(reply) if isinstance(reply, Round) else reply)
            if broken is not None:
                self._give_up(f"the device context is lost: {broken}")
            if self._visitor.at_work:
                self._give_up("threads were left at work")
        self._channel.send(End(self._code.imported(), self._visitor.late(), self._visitor.opening_s))

    def _give_up(self, why: str) -> None:
        """End, so that the next task starts in another process."""
        self._channel.send(Broken(Failure("error", why)))
        raise SystemExit(1)

    def _record(self, command: Record) -> None:
        reply = self._visitor.record(command)
        self._refuse_foreign()
        broken = self._visitor.broken()
        if broken is not None and reply.failure is None:
            reply = CaseRecorded(failure=Failure("error", f"the device context is lost: {broken}"))
        self._channel.send(reply)

    def _refuse_foreign(self) -> None:
        """End where the project was imported from elsewhere."""
        foreign = self._code.foreign()
        if foreign is not None:
            self._channel.send(WrongCode(*foreign, expected=self._roots))
            raise SystemExit(1)

    def _with_project(self, round: Round) -> Round:
        """The round with the files that the project was imported from, where the process did not have them from the start."""
        if not self._says_it:
            return round
        self._imported = self._imported or self._code.imported()
        return dataclasses.replace(round, facts={**round.facts, "project_files": self._imported})


def set_up_cache(suite: Suite, command: SetupCache, number: int) -> CacheReady:
    """Run a `setup_cache` in its folder, which becomes the current one. `number` is the seed."""
    start = time.perf_counter()
    try:
        os.chdir(command.directory)
        benchmark = suite.get(command.name)
        seed(number)
        with awaiting(benchmark):
            cache = benchmark.do_setup_cache()
        with open(os.path.join(command.directory, "cache.pickle"), "wb") as file:  # it may have left the folder
            pickle.dump(cache, file)
    except BaseException as error:  # whatever a suite raises is data
        return CacheReady(command.name, time.perf_counter() - start, failure_of(error, suite.places))
    return CacheReady(command.name, time.perf_counter() - start)


DISTRIBUTION = re.compile(r"(.+-.+)\.(?:dist|egg)-info")
"""The folder of what an installer knows of a distribution: name and version."""


def distributions() -> str:
    """A hash of the names and versions of everything installed, which changes whenever anything is installed or removed.
    Installations from a file or a folder are left out: that is mostly the project itself, which changes with every commit."""
    names = set()
    for place in sys.path:
        with contextlib.suppress(OSError), os.scandir(place or ".") as entries:
            for entry in entries:
                known = DISTRIBUTION.fullmatch(entry.name)
                if known and not os.path.exists(os.path.join(entry.path, "direct_url.json")):
                    names.add(known[1])
    return hashlib.sha256("\n".join(sorted(names)).encode(errors="surrogateescape")).hexdigest()[:12]


@functools.lru_cache(maxsize=None)
def installed() -> Mapping[str, Any]:
    """Interpreter and versions of the installed frameworks, what torch is built for (`torch_built`: "cuda 13.0", "hip 6.4",
    empty for the CPU only), and a hash of everything installed. Nothing is imported to find out. Cached, because a fork server
    asks once for all its children."""
    versions: Dict[str, Any] = {"python": platform.python_version(), "implementation": platform.python_implementation()}
    versions["installed"] = distributions()
    for name in FRAMEWORKS:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    if "torch" in versions:
        with contextlib.suppress(DeviceError, ValueError):  # of one that cannot be imported
            versions["torch_built"] = " ".join(built_for()).strip()
    return versions


def facts(backend: Backend) -> Dict[str, Any]:
    """Installed packages, processors and the device."""
    about: Dict[str, Any] = dict(installed())
    about["cpus"] = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    for variable in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "CUDA_VISIBLE_DEVICES"):
        if variable in os.environ:
            about[variable] = os.environ[variable]
    if not backend.has_device:
        about["no_device"] = backend.why_no_device
    about.update(backend.facts())
    return about


def converse(channel: Channel, opening: Open, imported: Optional[Imported] = None, seat: Sequence[int] = ()) -> int:
    """Answer until the driver closes the pipe; the exit code. A forked worker has its suite already; one in a group has a
    `seat`: its number, and the descriptors of its pipes."""
    join(opening.rank)
    try:
        place = Seat(channel, seat[0], seat[1], seat[2:]) if seat else None
        worker = Worker(channel, opening, imported or Imported(opening), place)
        command = channel.receive()
        while command is not None:
            worker.answer(command)
            command = channel.receive()
    except Exception as error:  # the driver must learn why
        channel.send(Broken(failure_of(error, [opening.suite_dir])))
        return 1
    return 0
