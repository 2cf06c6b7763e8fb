"""The process under test: answers the driver's commands until the pipe closes.

Started as a file with two file descriptors, `--read N --write M`. Standard input is empty and standard output goes to a log,
so a benchmark may read, print or close them as it likes.
"""

from __future__ import annotations

import contextlib
import fcntl
import importlib.metadata
import os
import pickle
import platform
import sys
import time
from typing import Any, BinaryIO, Dict, List

from .backend import Backend, choose
from .failures import failure_of
from .project import ProjectCode
from .state import SeedAtImport, seed
from .suite import Suite
from .visit import FRAMEWORKS, Visitor
from .wire import (
    Begin,
    Broken,
    CacheReady,
    Discover,
    End,
    Failure,
    MeasureCeilings,
    Open,
    Opened,
    SetupCache,
    Visit,
    WrongCode,
    decode,
    encode,
)
from .wire import Suite as SuiteMessage

FIRST_FD = 500


class Channel:
    """The private pipes. Children that a benchmark starts do not inherit them."""

    def __init__(self, read_fd: int, write_fd: int) -> None:
        # Out of the way of a benchmark that closes or writes to "all" small descriptors.
        read_fd, write_fd = _moved(read_fd), _moved(write_fd)
        self._in: BinaryIO = os.fdopen(read_fd, "rb")
        self._out: BinaryIO = os.fdopen(write_fd, "wb")
        self._owner = os.getpid()
        # A forked child holds no end of the pipes: the driver sees at once when this process has died.
        os.register_at_fork(after_in_child=lambda: os.closerange(read_fd, write_fd + 1))

    def receive(self) -> Any:
        """The next command; None when the driver has closed the pipe."""
        line = self._in.readline()
        return decode(line) if line else None

    def send(self, message: Any) -> None:
        if os.getpid() != self._owner:
            os._exit(0)  # a child that a benchmark forked has come back from its function; it is not the worker
        self._out.write(encode(message))
        self._out.flush()


def _moved(fd: int) -> int:
    moved = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, FIRST_FD)
    os.close(fd)
    return moved


class Worker:
    """One side's process: a suite, a device, and the cases it is asked to visit."""

    def __init__(self, channel: Channel, opening: Open) -> None:
        self._channel = channel
        self._seed = opening.seed
        seed(self._seed)
        sys.meta_path.insert(0, SeedAtImport(self._seed))
        self._backend: Backend = choose(opening.device, opening.seed, opening.side)
        self._suite = Suite(opening.suite_dir, opening.overrides, opening.import_roots, opening.cuda)
        # Asked before a context of ours is open; where an id may be one of ours, it is no evidence.
        foreign = self._backend.processes()
        certain = [str(each) for each in foreign if not each.unreliable]
        self._visitor = Visitor(self._suite, self._backend, opening.seed, os.getcwd(), certain)
        self._code = ProjectCode(opening.import_roots, self._suite.package)
        self._roots = opening.import_roots
        warnings = [f"on the device when a round began: {each}" for each in foreign if each.unreliable]
        channel.send(Opened(os.getpid(), facts(self._backend), warnings))

    def answer(self, command: Any) -> None:
        if isinstance(command, Discover):
            benchmarks, problems = self._suite.discover()
            self._channel.send(SuiteMessage(benchmarks, problems))
        elif isinstance(command, SetupCache):
            self._channel.send(self._setup_cache(command))
        elif isinstance(command, MeasureCeilings):
            from . import ceilings  # most workers are never asked

            self._channel.send(ceilings.measure(self._backend))
        elif isinstance(command, Visit):
            self._visit(command)
        else:
            raise ValueError(f"unknown command {type(command).__name__}")

    def _visit(self, visit: Visit) -> None:
        for index, task in enumerate(visit.tasks):
            self._channel.send(Begin(index))
            reply: Any = self._visitor.propose(task) if task.protocol is None else self._visitor.measure(task)
            foreign = self._code.foreign()
            if foreign is not None:
                self._channel.send(WrongCode(*foreign, expected=self._roots))
                raise SystemExit(1)
            self._channel.send(reply)
            broken = self._visitor.broken()
            if broken is not None:
                self._channel.send(Broken(Failure("error", f"the device context is lost: {broken}")))
                raise SystemExit(1)
        self._channel.send(End(self._code.imported()))

    def _setup_cache(self, command: SetupCache) -> CacheReady:
        start = time.perf_counter()
        try:
            os.chdir(command.directory)
            benchmark = self._suite.get(command.name)
            seed(self._seed)
            cache = benchmark.do_setup_cache()
            with open("cache.pickle", "wb") as file:
                pickle.dump(cache, file)
        except BaseException as error:  # whatever a suite raises is data
            return CacheReady(command.name, time.perf_counter() - start, failure_of(error, self._suite.places))
        return CacheReady(command.name, time.perf_counter() - start)


def facts(backend: Backend) -> Dict[str, Any]:
    """Interpreter, device and the versions of the frameworks that are installed. Nothing is imported to find out."""
    found: Dict[str, Any] = {"python": platform.python_version(), "implementation": platform.python_implementation()}
    for name in FRAMEWORKS:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    found["cpus"] = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    for variable in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "CUDA_VISIBLE_DEVICES"):
        if variable in os.environ:
            found[variable] = os.environ[variable]
    if not backend.has_device:
        found["no_device"] = backend.why_no_device
    found.update(backend.facts())
    return found


def main(argv: List[str]) -> int:
    channel = Channel(int(argv[argv.index("--read") + 1]), int(argv[argv.index("--write") + 1]))
    opening = channel.receive()
    if opening is None:
        return 0
    try:
        worker = Worker(channel, opening)
        command = channel.receive()
        while command is not None:
            worker.answer(command)
            command = channel.receive()
    except Exception as error:  # the driver must learn why
        channel.send(Broken(failure_of(error, [opening.suite_dir])))
        return 1
    return 0


def start() -> None:
    """Run `main` and leave at once: what a suite registered for the interpreter's exit is not part of the protocol."""
    code = main(sys.argv[1:])
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):  # a benchmark may have closed it
            stream.flush()
    os._exit(code)
