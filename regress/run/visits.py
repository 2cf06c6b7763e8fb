"""Visits to cases in worker processes: whatever a case does to its process becomes its own failure, and the rest goes on."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from regress.errors import NothingMeasured, RegressError
from regress.measure.wire import (
    Begin,
    Broken,
    CacheReady,
    Ceilings,
    Discover,
    End,
    MeasureCeilings,
    Open,
    Probe,
    Proposal,
    Record,
    Recorded,
    SetupCache,
    Task,
    Trying,
    Visit,
    Works,
    WrongCode,
)
from regress.measure.wire import Suite as SuiteMessage
from regress.model import Benchmark, Failure, Round, Settings
from regress.run import plan
from regress.run.caches import compile_caches, release_locks
from regress.run.environments import Prepared
from regress.run.overhead import Overhead, Spent
from regress.run.servers import Died, ForkServer, Interrupt, Reaper, Server, TimedOut, discovered, fresh
from regress.run.turns import Turns

T = TypeVar("T")

GRACE_S = 10.0
"""Beyond a case's timeout: what the worker may need around it."""
CEILINGS_TIMEOUT_S = 60.0
RECORD_GRACE_S = 120.0
"""Beyond a case's timeout, where it is profiled: for calling it several times as often, and for writing the trace."""
PROBE_STEP_S = 10.0
"""What a step of the probe may take in a forked process. Work on all processors takes milliseconds, or for ever."""
HANGS = "hangs in a forked process"
PROBE_DEVICE_S = 60.0
"""The same where a context is opened on the way."""


class NotStarted(NothingMeasured):
    """No process of a side can be started, or import the suite, any more."""


class _GaveUp(Exception):
    """A process cannot go on. `begun`: with a task that it has begun, so that there is no reply to it; else because of the task
    before."""

    def __init__(self, failure: Failure, begun: bool) -> None:
        self.failure, self.begun = failure, begun
        super().__init__(failure.message)


@dataclass
class Visits:
    """Starts worker processes of any side for a suite. `facts` are those of the process that was started last."""

    suite: Path
    start_file: Path
    settings: Settings
    default_timeout_s: float = 60.0
    own_suites: Mapping[str, Path] = field(default_factory=dict)
    """By side: its suite, where it has another one."""
    visible: str = ""
    """The GPUs that the processes see, as CUDA_VISIBLE_DEVICES has them; empty: whatever the side's variables say."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    first_facts: dict[str, dict[str, Any]] = field(default_factory=dict)
    """By side: the facts of its first process."""
    interpreters: dict[str, str] = field(default_factory=dict)
    """By side: the version of the Python that imported the suite."""
    warnings: list[str] = field(default_factory=list)
    overheads: list[Overhead] = field(default_factory=list)
    """Of each process that visited all its cases."""
    imported: bool | None = None
    """Whether any process has imported code of the repository; None before the first has ended."""
    process: str = "fresh"
    """How the processes of rounds begin, on all sides; see `Protocol.process`."""
    _one_thread: bool = False
    """Whether the processes that fork keep torch at one thread while they import the suite."""
    _parents: dict[str, ForkServer] = field(default_factory=dict)
    """By side: the process that has imported the suite, and forks."""
    _late: dict[str, dict[str, None]] = field(default_factory=dict)
    """By side: modules of frameworks that its visits have imported, in their order."""
    _leaving: set[str] = field(default_factory=set)
    """Benchmarks that change the state of their process and leave it so."""
    interrupt: Interrupt = field(default_factory=Interrupt)
    """Stops the thread that waits for these processes."""
    _reaper: Reaper = field(default_factory=Reaper)
    _caches: tempfile.TemporaryDirectory[str] = field(
        default_factory=lambda: tempfile.TemporaryDirectory(prefix="regress-compiled-", ignore_cleanup_errors=True)
    )
    """Compile caches: a folder a side, filled by the unmeasured visit."""

    def close(self) -> None:
        """No process is started after this."""
        self._end_parents()
        self._reaper.close()
        self.interrupt.close()
        self._caches.cleanup()

    # -- the suite -------------------------------------------------------------------------------------------------------

    def discover(
        self, sides: Sequence[Prepared], meanwhile: Callable[[], object] = lambda: None
    ) -> dict[str, SuiteMessage]:
        """By side: the suite as it is found with the side's code. All of them import it at once, and `meanwhile` is called.

        Raises NothingMeasured where it cannot be imported at all. The process that imports it stays, to fork the workers,
        unless the settings want fresh ones.
        """
        with contextlib.ExitStack() as ending:
            servers = [self._importing(side, ending) for side in sides]
            meanwhile()
            return {side.side.name: self._found(side, server) for side, server in zip(sides, servers, strict=True)}

    def _importing(self, side: Prepared, ending: contextlib.ExitStack) -> Server:
        """A process that has been told to import the suite; a fresh one ends with `ending`."""
        if self.settings.process != "fresh":
            return self._parent(side).server
        server = ending.enter_context(self._server(side))
        _tell(server)
        return server

    def _found(self, side: Prepared, server: Server) -> SuiteMessage:
        timeout_s, where = self.settings.discover_timeout_s, f"{side.side.name} {side.side.label}"
        self.interpreters[side.side.name] = str(server.opened.facts.get("python", "")) or "unknown"
        try:
            found = discovered(server, timeout_s)
        except TimedOut as late:
            what = f"the import of {late.importing}" if late.importing else "the import of the suite"
            raise NothingMeasured(
                f"{what} did not end within {timeout_s:.0f} s on {where}",
                why="it hangs, or it is slow",
                fix='mend the import, or raise "discover_timeout_s" under "regress" in asv.conf.json',
            ) from None
        except Died as died:
            module = died.importing or self.suite.name
            raise NothingMeasured(
                f"the process that imports the suite died on {where}, in {module}: {died.reason}",
                why=_last_line(died.log) or "it printed nothing",
                fix=f"{side.starts_python} -c 'import {module}'",
            ) from None
        if isinstance(found, Broken):
            raise RegressError("the suite could not be read", why=found.failure.message, fix="see --debug")
        return found

    def settle_process(self, suites: Mapping[str, SuiteMessage], sides: Sequence[Prepared], device: bool) -> None:
        """Decide how the processes of rounds begin, once for all sides: forked where that works on each, else fresh. `device`:
        whether device work is to be measured."""
        if not self._parents:
            return
        doubt = self._first_doubt(suites, sides, device)
        if not doubt:
            self.process = "fork"
        elif HANGS in doubt and "torch" in doubt and self._works_serially(suites, sides, device):
            self.process = "fork-serial"
        else:
            self._end_parents()
            self.warnings.append(f"every round imports the suite anew instead of forking, which is slower: {doubt}")

    def _first_doubt(self, suites: Mapping[str, SuiteMessage], sides: Sequence[Prepared], device: bool) -> str:
        doubts = (self._doubt(side, suites[side.side.name], device) for side in sides)
        return next(filter(None, doubts), "")

    def _works_serially(self, suites: Mapping[str, SuiteMessage], sides: Sequence[Prepared], device: bool) -> bool:
        """Whether a fork can be trusted where the suite is imported again, with torch at one thread. Tried only where it hangs
        otherwise: a number of threads that was set is not quite the same to torch as its own choice."""
        self._one_thread = True
        try:
            for side in sides:
                self._restart(side)
        except NotStarted:
            return False
        return not self._first_doubt(suites, sides, device)

    def preload(self, sides: Sequence[Prepared], device: bool) -> None:
        """Have the processes that fork import what the unmeasured visits have imported late (compilers, mostly), so that rounds
        do not. Where a fork does not work after that, the side's process is started again without it."""
        for side in sides:
            name = side.side.name
            late, parent = list(self._late.get(name, ())), self._parents.get(name)
            if parent is None or not late:
                continue
            try:
                doubt = parent.preload(late, self.settings.discover_timeout_s) or self._tried(side, device)
            except (Died, TimedOut) as error:
                doubt = str(error)
            if doubt:
                self._restart(side)

    def begin_afresh(self, sides: Sequence[Prepared], device: bool) -> None:
        """Have the processes that fork started again, so that rounds to come share nothing with those before. Raises
        NotStarted where a suite cannot be imported any more."""
        if self.process != "fork":
            return
        self._end_parents()
        for side in sides:
            self._parent(side)
        for side in sides:
            self._imported_again(side)
        self.preload(sides, device)

    def _doubt(self, side: Prepared, suite: SuiteMessage, device: bool) -> str:
        """Why a fork of the side's process cannot be trusted to measure; empty where it can."""
        if suite.unforkable:
            return suite.unforkable
        doubt = self._tried(side, device)
        blamed = f"; {', '.join(suite.threads)} started threads when imported" if suite.threads else ""
        return doubt and doubt + (blamed if HANGS in doubt else "")

    def _tried(self, side: Prepared, device: bool) -> str:
        """What does not work in a fork of the side's process; empty where all does."""
        step = "start"
        try:
            with self._forked(side) as child:
                child.send(Probe(device))
                while True:
                    answer = child.receive(PROBE_DEVICE_S if step.startswith("device") else PROBE_STEP_S)
                    if isinstance(answer, Works):
                        return ""
                    if isinstance(answer, Broken):
                        return f"{step} fails in a forked process: {answer.failure.message}"
                    assert isinstance(answer, Trying)
                    step = answer.step
        except TimedOut:
            return f"{step} {HANGS}"
        except (Died, NotStarted) as error:
            return f"{step} ends a forked process: {error}"

    def setup_cache(self, side: Prepared, benchmark: Benchmark, directory: Path) -> Failure | None:
        """Run the benchmark's setup_cache in the directory; None when it worked."""
        declared = benchmark.setup_cache_timeout_s
        limit_s = self.default_timeout_s if declared is None else declared
        try:
            with self._server(side) as server:
                server.send(SetupCache(benchmark.name, str(directory)))
                ready = server.receive(limit_s)
        except TimedOut:
            return Failure("timeout", f"setup_cache took longer than {limit_s:.3g} s")
        except Died as died:
            return Failure("signal" if died.returncode < 0 else "error", f"setup_cache: {died.reason}", detail=died.log)
        failure = ready.failure if isinstance(ready, (CacheReady, Broken)) else None
        if failure is None:
            return None
        return Failure(failure.kind, f"setup_cache: {failure.message}", failure.where, failure.detail)

    def ceilings(self, side: Prepared) -> Ceilings:
        """What the device does at most, measured in a process of its own; without some of it, the reason."""
        try:
            with self._server(side) as server:
                server.send(MeasureCeilings())
                found = server.receive(CEILINGS_TIMEOUT_S)
        except TimedOut as late:
            return Ceilings(failure=Failure("timeout", f"took longer than {late.seconds:.3g} s"))
        except Died as died:
            return Ceilings(failure=Failure("error", died.reason, detail=died.log))
        return found if isinstance(found, Ceilings) else Ceilings(failure=Failure("error", found.failure.message))

    def record(self, side: Prepared, record: Record) -> Recorded:
        """What came of profiling a case in a process of its own."""
        limit_s = record.task.timeout_s + RECORD_GRACE_S
        try:
            with self._server(side, alone=True) as server:
                server.send(record)
                found = server.receive(limit_s)
        except TimedOut:
            return Recorded(failure=Failure("timeout", f"took longer than {limit_s:.3g} s"))
        except Died as died:
            kind = "signal" if died.returncode < 0 else "error"
            return Recorded(failure=Failure(kind, died.reason, detail=died.log))
        if isinstance(found, WrongCode):
            raise _wrong_code(side, found)
        return found if isinstance(found, Recorded) else Recorded(failure=found.failure)

    # -- cases -----------------------------------------------------------------------------------------------------------

    def visit(
        self, side: Prepared, tasks: Sequence[Task], benchmarks: Mapping[str, Benchmark], turns: Turns | None = None
    ) -> Iterator[tuple[Task, Proposal | Round]]:
        """Each task and its reply. Tasks that need a process of their own come last: by their metric, or because the benchmark
        was found to change what others in its process would notice. Of the others those come last that take a turn alone."""
        turns = turns or Turns()
        own = {task.name for task in tasks if benchmarks[task.name].metric in plan.ALONE} | self._leaving
        together = sorted((task for task in tasks if task.name not in own), key=turns.alone)
        with turns.working(self.interrupt):
            yield from self._group(side, together, benchmarks, turns)
            for task in tasks:
                if task.name in own:
                    # Its process is its own, and so is the turn: from the start, which is part of what is measured.
                    with turns.taken(turns.alone(task), self.interrupt):
                        yield from self._group(side, [task], benchmarks, Turns())

    def _group(
        self, side: Prepared, tasks: Sequence[Task], benchmarks: Mapping[str, Benchmark], turns: Turns
    ) -> Iterator[tuple[Task, Proposal | Round]]:
        """Replies to tasks that share a process, and another one wherever something ends it."""
        left = list(tasks)
        while left:
            done = 0
            for task, reply in self._one_process(side, left, benchmarks, turns):
                done += 1
                if self._leaves(reply):
                    self._leaving.add(task.name)
                yield task, reply
            left = left[done:]

    def _leaves(self, reply: Proposal | Round) -> bool:
        """Whether the case changes its process whenever it is visited. What an import does is done for good once the process
        that forks has imported the module as well: then the first round tells."""
        if isinstance(reply, Round):
            return bool(reply.facts.get("leaves"))
        return bool(reply.leaves) and not (reply.late and self.process != "fresh")

    def _one_process(
        self, side: Prepared, tasks: Sequence[Task], benchmarks: Mapping[str, Benchmark], turns: Turns
    ) -> Iterator[tuple[Task, Proposal | Round]]:
        """Replies to as many of the tasks as one process lives for; the one that kills it gets the failure as its reply."""
        limits = [plan.timeout_of(benchmarks[task.name], self.default_timeout_s) for task in tasks]
        current, spent, metric = 0, Spent(), benchmarks[tasks[0].name].metric
        try:
            with self._server(side, metric == "cold_time", metric in plan.ALONE) as server:
                spent.pause()
                for step in turns.steps(tasks):
                    with turns.taken(step.alone, self.interrupt):
                        spent.resume()
                        server.send(Visit(list(step.tasks)))
                        for task in step.tasks:
                            reply = self._reply(side, server, limits[current] + GRACE_S, spent)
                            current += 1
                            yield task, reply
                        self._note_end(side, server, spent)
                        spent.pause()
                spent.resume()
            self.overheads.append(spent.overhead(len(tasks)))
        except _GaveUp as ended:
            if ended.begun or not current:
                yield tasks[current], plan.unanswered(tasks[current], ended.failure)
        except TimedOut:
            release_locks(Path(self._caches.name))
            if current < len(tasks):
                yield (
                    tasks[current],
                    plan.unanswered(tasks[current], Failure("timeout", f"took longer than {limits[current]:.3g} s")),
                )
        except Died as died:
            if current < len(tasks):
                kind = "signal" if died.returncode < 0 else "error"
                yield tasks[current], plan.unanswered(tasks[current], Failure(kind, died.reason, detail=died.log))

    def _reply(self, side: Prepared, server: Server, timeout_s: float, spent: Spent) -> Proposal | Round:
        """What the process answers to the task that comes next. Raises _GaveUp in place of that."""
        begun = False
        while not isinstance(message := server.receive(timeout_s), (Proposal, Round)):
            if isinstance(message, WrongCode):
                raise _wrong_code(side, message)
            if isinstance(message, Broken):
                raise _GaveUp(message.failure, begun)
            assert isinstance(message, Begin), message
            begun = True
            spent.begin()
        spent.measuring_s += message.seconds if isinstance(message, Proposal) else message.duration_s
        return message

    def _note_end(self, side: Prepared, server: Server, spent: Spent) -> None:
        """Take note of what all cases together have done. Raises _GaveUp where the last one was too much for the process."""
        end = server.receive(GRACE_S)
        if isinstance(end, Broken):
            raise _GaveUp(end.failure, begun=False)
        assert isinstance(end, End), end
        self.imported = bool(self.imported or end.project_files)
        known = self._late.setdefault(side.side.name, {})
        known.update(dict.fromkeys(end.late))
        spent.opening_s = end.opening_s

    # -- processes -------------------------------------------------------------------------------------------------------

    def _server(self, side: Prepared, cold: bool = False, alone: bool = False) -> Server:
        """A process of the side, forked where that was found to work and it is not to be alone from the start; with `cold` its
        compile caches are empty, and nobody else's."""
        if self.process != "fresh" and not alone:
            return self._forked(side)
        return self._known(side, self._started(side, _fresh_server, cold))

    def _forked(self, side: Prepared) -> Server:
        """A fork of the process that has imported the side's suite, which is started anew where something has ended it."""
        parent = self._parents[side.side.name]
        try:
            return self._known(side, Server(parent.fork, self.opening(side), self._reaper, self.interrupt))
        except (Died, TimedOut):
            pass
        parent = self._restart(side)
        try:
            return self._known(side, Server(parent.fork, self.opening(side), self._reaper, self.interrupt))
        except (Died, TimedOut) as error:
            raise _not_started(side, error) from None

    def _restart(self, side: Prepared) -> ForkServer:
        """The side's process that forks, started again. Raises NotStarted where it cannot import the suite any more."""
        self._parents[side.side.name].close()
        self._parent(side)
        return self._imported_again(side)

    def _imported_again(self, side: Prepared) -> ForkServer:
        """The side's process that forks, once it has imported the suite."""
        parent = self._parents[side.side.name]
        try:
            discovered(parent.server, self.settings.discover_timeout_s)
        except (Died, TimedOut) as error:
            raise _not_started(side, error) from None
        return parent

    def _parent(self, side: Prepared) -> ForkServer:
        """A process for the side that forks, which has been told to import the suite."""
        self._parents[side.side.name] = parent = self._started(side, ForkServer)
        _tell(parent.server)
        return parent

    def _started(self, side: Prepared, kind: Callable[..., T], cold: bool = False) -> T:
        """A `Server` or `ForkServer` with an interpreter of its own."""
        root = Path(self._caches.name)
        caches = compile_caches(Path(tempfile.mkdtemp(dir=root)) if cold else root / side.side.name)
        variables = {**self.variables(side), **caches}
        try:
            return kind(self.start_file, side.python, variables, self.opening(side), self._reaper, self.interrupt)
        except (Died, TimedOut) as error:
            raise _not_started(side, error) from None

    def variables(self, side: Prepared) -> dict[str, str]:
        """The environment of the side's processes, but for compile caches."""
        # A set has one order in all of them: it is no difference between sides, and the text of a parameter may have one in it.
        variables = {"PYTHONHASHSEED": str(self.settings.seed), **side.variables}
        if self.visible:
            variables["CUDA_VISIBLE_DEVICES"] = self.visible
        return variables

    def opening(self, side: Prepared) -> Open:
        """What a process of the side is told first."""
        return Open(
            suite_dir=str(self.own_suites.get(side.side.name, self.suite)),
            import_roots=[str(root) for root in side.import_roots],
            side=side.side.name,
            # A GPU that is named is never replaced by the CPU.
            device="cuda" if self.visible and self.settings.device == "auto" else self.settings.device,
            seed=self.settings.seed,
            cuda=list(self.settings.cuda),
            one_thread=self._one_thread,
        )

    def _known(self, side: Prepared, server: Server) -> Server:
        """The server, after what it said of itself was noted."""
        self.facts = server.opened.facts
        self.warnings += [text for text in server.opened.warnings if text not in self.warnings]
        self.first_facts.setdefault(side.side.name, dict(server.opened.facts))
        return server

    def _end_parents(self) -> None:
        while self._parents:
            self._parents.popitem()[1].close()


def _fresh_server(
    start: Path, python: str, variables: Mapping[str, str], opening: Open, reaper: Reaper, interrupt: Interrupt
) -> Server:
    return Server(fresh(start, python, variables), opening, reaper, interrupt)


def _tell(server: Server) -> None:
    with contextlib.suppress(Died):  # which its answer will say
        server.send(Discover())


def _not_started(side: Prepared, error: Died | TimedOut) -> NotStarted:
    why = error.reason if isinstance(error, Died) else str(error)
    return NotStarted(
        f"no process could be started for {side.side.name} {side.side.label}",
        why=_last_line(error.log) or why if isinstance(error, Died) else why,
        fix=f"{side.python} --version",
    )


def _wrong_code(side: Prepared, found: WrongCode) -> RegressError:
    return NothingMeasured(
        f"{side.side.name} {side.side.label} would not be measured: {found.module} was imported from elsewhere",
        why=f"{found.file} is outside {', '.join(found.expected)}; an editable install or a path hook wins over it",
        fix=f"{side.python} -m pip uninstall {found.module}",
    )


def _last_line(log: str) -> str:
    lines = log.strip().splitlines()
    return lines[-1] if lines else ""
