"""The processes that visit cases: fresh ones, or forked from one that has imported the suite, where a trial shows that this
works."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

from regress.errors import NothingMeasured
from regress.files import scratch
from regress.measure.wire import Broken, Discover, Open, Rank, TryFork, Trying, Works
from regress.measure.wire import Suite as SuiteMessage
from regress.model import Settings
from regress.run import caches
from regress.run.environments import Prepared
from regress.run.forks import ForkServer
from regress.run.interrupts import Interrupt, Reaper
from regress.run.origins import WITH_ZYGOTE, WITHOUT, Common, Origin, common, own_variables
from regress.run.ranks import Ranks
from regress.run.servers import Died, GroupPlace, Server, TimedOut, discovered, fresh, seated
from regress.text.wording import quoted

T = TypeVar("T")

PROBE_STEP_S = 10.0
"""What a step of the probe may take in a forked process. Work on all processors takes milliseconds, or never ends."""
PROBE_DEVICE_S = 60.0
"""The same where a context is opened on the way."""
HANGS = "hangs in a forked process"


class NotStarted(NothingMeasured):
    """No process of a side can be started, or import the suite, again."""


class _Unfit(Exception):
    """What was made ready to fork cannot be used."""


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
    _origins: list[Origin] = field(default_factory=list)
    """What processes are forked from, in turn: one that the suite is discovered with, and then those of rounds."""
    _suites: Mapping[str, SuiteMessage] = field(default_factory=dict)
    _late: dict[str, dict[str, None]] = field(default_factory=dict)
    """By side: modules of frameworks that its visits have imported, in their order."""
    _preloaded: set[str] = field(default_factory=set)
    """Those of them that what processes are forked from has been told to import."""
    _proven: bool = False
    """Whether forks from sides that share a zygote were tried, and work."""
    _reaper: Reaper = field(default_factory=Reaper)
    _caches: tempfile.TemporaryDirectory[str] = field(
        default_factory=lambda: tempfile.TemporaryDirectory(
            prefix="compiled-", dir=scratch(), ignore_cleanup_errors=True
        )
    )
    """Compile caches: a folder a side, filled by the unmeasured visit."""

    def close(self) -> None:
        """No process is started after this."""
        self._end_origins()
        self._reaper.close()
        self.interrupt.close()
        self._caches.cleanup()

    # -- one process -----------------------------------------------------------------------------------------------------

    def get(
        self,
        side: Prepared,
        cold: bool = False,
        alone: bool = False,
        order: int = 0,
        place: GroupPlace | None = None,
        rank: Rank = Rank(),  # noqa: B008  # frozen
    ) -> Server:
        """A process of the side, forked where that was found to work and it is not to be alone from the start; with `cold` its
        compile caches are empty, and nobody else's. `order` is that of its round, `place` its seat in a group, `rank` which of
        the processes it is that visit a case together."""
        if self.kind != "fresh" and not alone:
            return self._forked(side, self._origin(order), place, rank)
        return self._known(side, self._started(side, _fresh_server(place), cold, rank))

    def ranks(self, side: Prepared, size: int, gpus: int, alone: bool, order: int) -> Ranks:
        """This many such processes, which visit a case together."""
        suite = self.own_suites.get(side.side.name, self.suite)
        started = Ranks(lambda rank: self.get(side, alone=alone, order=order, rank=rank), size, gpus, suite)
        self.facts = started.servers[0].opened.facts
        return started

    def origin(self, order: int) -> tuple[str, bool]:
        """What the processes of rounds of that order are forked from, and whether the sides share a zygote there; an origin of
        its own for each order where they begin afresh."""
        if self.kind == "fresh":
            return f"{os.getpid()}/{order}", True
        origin = self._origin(order)
        return origin.name, origin.zygote is not None

    def _origin(self, order: int) -> Origin:
        return self._origins[max(order, 0) % len(self._origins)]

    def importing(self, side: Prepared, ending: contextlib.ExitStack) -> Server:
        """A process that has been told to import the suite; a fresh one ends with `ending`."""
        if self.settings.process != "fresh":
            self._origins = self._origins or [Origin()]
            return self._parent(side, self._origins[0]).server
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

    def opening(
        self,
        side: Prepared,
        variables: Mapping[str, str] = MappingProxyType({}),
        rank: Rank = Rank(),  # noqa: B008  # frozen
    ) -> Open:
        """What a process of the side is told first; `variables` for one that forks and was forked."""
        return Open(
            suite_dir=str(self.own_suites.get(side.side.name, self.suite)),
            import_roots=[str(root) for root in side.import_roots],
            side=side.side.name,
            named_in=[str(root) for root in side.named_in],
            # A GPU that is named is never replaced by the CPU.
            device="cuda" if self.visible and self.settings.device == "auto" else self.settings.device,
            seed=self.settings.seed,
            cuda=list(self.settings.cuda),
            one_thread=self._one_thread,
            variables=dict(variables),
            driver=os.getpid(),
            rank=rank,
        )

    @contextlib.contextmanager
    def watched(self, group: int, home: Path) -> Iterator[None]:
        """While the block runs: a driver that is killed takes with it that group of processes and their folder."""
        self._reaper.watch(group, home)
        try:
            yield
        finally:
            self._reaper.release(group)

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
        self._suites = suites
        if not self._origins:
            return
        forkable = not any(suites[side.side.name].unforkable for side in sides)
        if forkable and len(sides) > 1 and self._with_zygotes(sides, device):
            self.kind = "fork"
            return
        doubt = self._first_doubt(suites, sides, device)
        if not doubt:
            self.kind = "fork"
        elif HANGS in doubt and "torch" in doubt and self._works_serially(suites, sides, device):
            self.kind = "fork-serial"
        else:
            self._end_origins()
            self.warnings.append(f"every round imports the suite again instead of forking, which is slower: {doubt}")
        if self.kind != "fresh" and len(sides) > 1:
            self.begin_afresh(sides, device)

    def preload(self, sides: Sequence[Prepared], device: bool) -> None:
        """Have the processes that fork import what the unmeasured visits have imported late (mostly compilers), so that no
        round has to. If a fork then stops working, its process is started again without that."""
        late = {name for modules in self._late.values() for name in modules}
        if self.kind == "fresh" or late <= self._preloaded:
            return
        self._preloaded = late
        if any(origin.zygote is not None for origin in self._origins):
            if not self._with_zygotes(sides, device):
                self._late.clear()
                self.begin_afresh(sides, device)
            return
        for origin in self._origins:
            for side in sides:
                self._preload(side, origin, device)

    def _preload(self, side: Prepared, origin: Origin, device: bool) -> None:
        late = list(self._late.get(side.side.name, ()))
        try:
            doubt = late and origin.parents[side.side.name].preload(late, self.settings.discover_timeout_s)
            doubt = doubt or (late and self._tried(side, origin, device))
        except (Died, TimedOut) as error:
            doubt = str(error)
        if doubt:
            self._restart(side, origin)

    def begin_afresh(self, sides: Sequence[Prepared], device: bool) -> None:
        """Have the processes that fork started again, so that rounds to come share nothing with those before. Raises
        NotStarted if a suite can no longer be imported."""
        if self.kind == "fresh" or self._with_zygotes(sides, device):
            return
        self._end_origins()
        self._origins = [Origin() for _ in range(WITHOUT)]
        self._import(sides, self._origins)
        for origin in self._origins:
            for side in sides:
                self._preload(side, origin, device)

    def _with_zygotes(self, sides: Sequence[Prepared], device: bool) -> bool:
        """Have new origins with zygotes instead of those there are; False, and nothing is changed, where that cannot be: sides
        import in unlike ways what they share, or forks do not work."""
        suites = [self._suites[side.side.name] for side in sides]
        shared = common(sides, [suite.variables for suite in suites])
        if shared is None:
            return False
        own = sorted({name for suite in suites for name in suite.own})
        modules = dict.fromkeys(name for suite in suites for name in suite.outside)
        modules.update((name, None) for late in self._late.values() for name in late)
        origins: list[Origin] = []
        try:
            for _ in range(WITH_ZYGOTE):
                origins.append(Origin(self._zygote(sides[0], shared)))
                origins[-1].tell(list(modules), own)
            if any(origin.told(self.settings.discover_timeout_s) for origin in origins):
                raise _Unfit
            self._import(sides, origins)
            if not self._proven and any(self._tried(side, origins[0], device) for side in sides):
                raise _Unfit
        except (Died, TimedOut, NotStarted, _Unfit):
            for origin in origins:
                origin.close()
            return False
        self._proven = True
        self._end_origins()
        self._origins = origins
        return True

    def _zygote(self, side: Prepared, shared: Common) -> ForkServer:
        opening = replace(self.opening(side), import_roots=[], side="")
        variables = {**self.variables(side), **shared.variables}
        return ForkServer.interpreter(self.start_file, shared.python, variables, opening, self._reaper, self.interrupt)

    def _import(self, sides: Sequence[Prepared], origins: Sequence[Origin]) -> None:
        """Have the sides' processes of these origins started, and import their suites, all at once."""
        for origin in origins:
            for side in sides:
                self._parent(side, origin)
        for origin in origins:
            for side in sides:
                self._imported_again(side, origin)

    def _first_doubt(self, suites: Mapping[str, SuiteMessage], sides: Sequence[Prepared], device: bool) -> str:
        doubts = (self._doubt(side, suites[side.side.name], device) for side in sides)
        return next(filter(None, doubts), "")

    def _works_serially(self, suites: Mapping[str, SuiteMessage], sides: Sequence[Prepared], device: bool) -> bool:
        """Whether a fork can be trusted where the suite is imported again, with torch at one thread. Tried only where it hangs
        otherwise: a number of threads that was set is not quite the same to torch as its own choice."""
        self._one_thread = True
        try:
            for side in sides:
                self._restart(side, self._origins[0])
        except NotStarted:
            return False
        return not self._first_doubt(suites, sides, device)

    def _doubt(self, side: Prepared, suite: SuiteMessage, device: bool) -> str:
        """Why a fork of the side's process cannot be trusted to measure; empty if it can."""
        if suite.unforkable:
            return suite.unforkable
        doubt = self._tried(side, self._origins[0], device)
        blamed = f"; {', '.join(suite.threads)} started threads when imported" if suite.threads else ""
        return doubt and doubt + (blamed if HANGS in doubt else "")

    def _tried(self, side: Prepared, origin: Origin, device: bool) -> str:
        """What does not work in a fork of the side's process; empty if all does."""
        step = "start"
        try:
            with self._forked(side, origin) as child:
                child.send(TryFork(device))
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

    def _forked(
        self,
        side: Prepared,
        origin: Origin,
        place: GroupPlace | None = None,
        rank: Rank = Rank(),  # noqa: B008  # frozen
    ) -> Server:
        """A fork of the process that has imported the side's suite, which is started again where something has ended it."""
        parent, opening = origin.parents[side.side.name], self.opening(side, rank=rank)
        try:
            return self._known(side, Server(parent.forking(place), opening, self._reaper, self.interrupt))
        except (Died, TimedOut):
            pass
        parent = self._restart(side, origin)
        try:
            return self._known(side, Server(parent.forking(place), opening, self._reaper, self.interrupt))
        except (Died, TimedOut) as error:
            raise _not_started(side, error) from None

    def _restart(self, side: Prepared, origin: Origin) -> ForkServer:
        """The side's process that forks, started again. Raises NotStarted if it can no longer import the suite."""
        origin.parents[side.side.name].close()
        self._parent(side, origin)
        return self._imported_again(side, origin)

    def _imported_again(self, side: Prepared, origin: Origin) -> ForkServer:
        """The side's process that forks, once it has imported the suite."""
        parent = origin.parents[side.side.name]
        try:
            discovered(parent.server, self.settings.discover_timeout_s)
        except (Died, TimedOut) as error:
            raise _not_started(side, error) from None
        return parent

    def _parent(self, side: Prepared, origin: Origin) -> ForkServer:
        """A process for the side that forks, which has been told to import the suite."""
        if origin.zygote is None:
            parent = self._started(side, ForkServer.interpreter)
        else:
            opening = self.opening(side, {**own_variables(side), **self._compile_caches(side)})
            try:
                parent = ForkServer(origin.zygote.serving, opening, self._reaper, self.interrupt)
            except (Died, TimedOut) as error:
                raise _not_started(side, error) from None
        origin.parents[side.side.name] = parent
        _tell(parent.server)
        return parent

    def _compile_caches(self, side: Prepared, cold: bool = False) -> dict[str, str]:
        root = Path(self._caches.name)
        return caches.compile_caches(Path(tempfile.mkdtemp(dir=root)) if cold else root / side.side.name)

    def _started(
        self,
        side: Prepared,
        kind: Callable[..., T],
        cold: bool = False,
        rank: Rank = Rank(),  # noqa: B008  # frozen
    ) -> T:
        """A `Server` or `ForkServer` with an interpreter of its own."""
        variables, opening = {**self.variables(side), **self._compile_caches(side, cold)}, self.opening(side, rank=rank)
        try:
            return kind(self.start_file, side.python, variables, opening, self._reaper, self.interrupt)
        except (Died, TimedOut) as error:
            raise _not_started(side, error) from None

    def _known(self, side: Prepared, server: Server) -> Server:
        """The server, after what it said of itself was noted."""
        self.facts = server.opened.facts
        self.warnings += [text for text in server.opened.warnings if text not in self.warnings]
        self.first_facts.setdefault(side.side.name, dict(server.opened.facts))
        return server

    def _end_origins(self) -> None:
        while self._origins:
            self._origins.pop().close()


def _fresh_server(place: GroupPlace | None) -> Callable[..., Server]:
    words, fds = seated(place)

    def start(
        file: Path, python: str, variables: Mapping[str, str], opening: Open, reaper: Reaper, interrupt: Interrupt
    ) -> Server:
        return Server(fresh(file, python, variables, *words, fds=fds), opening, reaper, interrupt)

    return start


def _tell(server: Server) -> None:
    with contextlib.suppress(Died):  # which its answer will say
        server.send(Discover())


def _not_started(side: Prepared, error: Died | TimedOut) -> NotStarted:
    return NotStarted(
        f"no process could be started for {side.side.name} {side.side.label}",
        why=(error.last_line or error.reason) if isinstance(error, Died) else str(error),
        fix=quoted(side.python, "--version"),
    )
