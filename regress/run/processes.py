"""The processes that visit cases: fresh ones, or forked from one that has imported the suite, where a trial shows that this
works."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from regress.errors import NothingMeasured, quoted
from regress.measure.wire import Broken, Discover, Open, Probe, Trying, Works
from regress.measure.wire import Suite as SuiteMessage
from regress.model import Settings
from regress.run import caches
from regress.run.environments import Prepared
from regress.run.servers import Died, ForkServer, Interrupt, Reaper, Server, TimedOut, discovered, fresh

T = TypeVar("T")

PROBE_STEP_S = 10.0
"""What a step of the probe may take in a forked process. Work on all processors takes milliseconds, or for ever."""
PROBE_DEVICE_S = 60.0
"""The same where a context is opened on the way."""
HANGS = "hangs in a forked process"


class NotStarted(NothingMeasured):
    """No process of a side can be started, or import the suite, any more."""


@dataclass
class Processes:
    """Starts processes of any side for a suite. `facts` are those of the process that was started last."""

    suite: Path
    start_file: Path
    settings: Settings
    own_suites: Mapping[str, Path] = field(default_factory=dict)
    """By side: its suite, where it has another one."""
    visible: str = ""
    """The GPUs that the processes see, as CUDA_VISIBLE_DEVICES has them; empty: whatever the side's variables say."""
    kind: str = "fresh"
    """How the processes of rounds begin, on all sides; see `Protocol.process`."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    first_facts: dict[str, dict[str, Any]] = field(default_factory=dict)
    """By side: the facts of its first process."""
    warnings: list[str] = field(default_factory=list)
    interrupt: Interrupt = field(default_factory=Interrupt)
    """Stops the thread that waits for these processes."""
    _one_thread: bool = False
    """Whether the processes that fork keep torch at one thread while they import the suite."""
    _parents: dict[str, ForkServer] = field(default_factory=dict)
    """By side: the process that has imported the suite, and forks."""
    _late: dict[str, dict[str, None]] = field(default_factory=dict)
    """By side: modules of frameworks that its visits have imported, in their order."""
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

    # -- one process -----------------------------------------------------------------------------------------------------

    def get(self, side: Prepared, cold: bool = False, alone: bool = False) -> Server:
        """A process of the side, forked where that was found to work and it is not to be alone from the start; with `cold` its
        compile caches are empty, and nobody else's."""
        if self.kind != "fresh" and not alone:
            return self._forked(side)
        return self._known(side, self._started(side, _fresh_server, cold))

    def importing(self, side: Prepared, ending: contextlib.ExitStack) -> Server:
        """A process that has been told to import the suite; a fresh one ends with `ending`."""
        if self.settings.process != "fresh":
            return self._parent(side).server
        server = ending.enter_context(self.get(side))
        _tell(server)
        return server

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

    def release_locks(self) -> None:
        """Of compile caches, those that a process which was killed has left."""
        caches.release_locks(Path(self._caches.name))

    def note_late(self, side: Prepared, modules: Iterable[str]) -> None:
        """Modules of frameworks that a visit of the side has imported: what `preload` is about."""
        self._late.setdefault(side.side.name, {}).update(dict.fromkeys(modules))

    # -- how they begin --------------------------------------------------------------------------------------------------

    def settle(self, suites: Mapping[str, SuiteMessage], sides: Sequence[Prepared], device: bool) -> None:
        """Decide how the processes of rounds begin, once for all sides: forked where that works on each, else fresh. `device`:
        whether device work is to be measured."""
        if not self._parents:
            return
        doubt = self._first_doubt(suites, sides, device)
        if not doubt:
            self.kind = "fork"
        elif HANGS in doubt and "torch" in doubt and self._works_serially(suites, sides, device):
            self.kind = "fork-serial"
        else:
            self._end_parents()
            self.warnings.append(f"every round imports the suite anew instead of forking, which is slower: {doubt}")

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
        if self.kind != "fork":
            return
        self._end_parents()
        for side in sides:
            self._parent(side)
        for side in sides:
            self._imported_again(side)
        self.preload(sides, device)

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

    # -- started and forked ----------------------------------------------------------------------------------------------

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
        compiled = caches.compile_caches(Path(tempfile.mkdtemp(dir=root)) if cold else root / side.side.name)
        variables = {**self.variables(side), **compiled}
        try:
            return kind(self.start_file, side.python, variables, self.opening(side), self._reaper, self.interrupt)
        except (Died, TimedOut) as error:
            raise _not_started(side, error) from None

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
    return NotStarted(
        f"no process could be started for {side.side.name} {side.side.label}",
        why=(error.last_line or error.reason) if isinstance(error, Died) else str(error),
        fix=quoted(side.python, "--version"),
    )
