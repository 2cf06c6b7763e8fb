"""The processes that visit cases: fresh ones, or forked from one that has imported the suite, where a trial shows that this
works."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from regress.measure.wire import Broken, Discover, End, Proposal, Rank, TryFork, Trying, Works
from regress.measure.wire import Suite as SuiteMessage
from regress.model import Round
from regress.run.environments import Prepared
from regress.run.forks import ForkServer
from regress.run.origins import WITH_ZYGOTE, WITHOUT, Origin, common
from regress.run.ranks import Ranks
from regress.run.servers import Died, GroupPlace, Server, TimedOut, discovered
from regress.run.starting import SINGLE, NotStarted, Starter, starting

PROBE_STEP_S = 10.0
"""What a step of the probe may take in a forked process. Work on all processors takes milliseconds, or never ends."""
PROBE_DEVICE_S = 60.0
"""The same where a context is opened on the way."""
HANGS = "hangs in a forked process"


class _Unfit(Exception):
    """What was made ready to fork cannot be used."""


@dataclass
class Processes:
    """The processes of all sides. `facts` are those of the process that was started last."""

    starter: Starter
    kind: str = "fresh"
    """How the processes of rounds begin, on all sides; see `Protocol.process`."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    first_facts: dict[str, dict[str, Any]] = field(default_factory=dict)
    """By side: the facts of its first process."""
    importers: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    """By side: the facts of the process that has imported the suite first."""
    imported: dict[str, bool] = field(default_factory=dict)
    """By side, once a process of it has ended: whether any has imported code of the repository."""
    warnings: list[str] = field(default_factory=list)
    _origins: list[Origin] = field(default_factory=list)
    """What processes are forked from, in turn: one that the suite is discovered with, and then those of rounds."""
    _suites: Mapping[str, SuiteMessage] = field(default_factory=dict)
    _sides: Sequence[Prepared] = ()
    _device: bool = False
    """Whether device work is to be measured."""
    _late: dict[str, dict[str, None]] = field(default_factory=dict)
    """By side: modules of frameworks that its visits have imported, in their order; what `preload` is about."""
    _preloaded: set[str] = field(default_factory=set)
    """Those of them that what processes are forked from has been told to import."""
    _proven: bool = False
    """Whether forks from sides that share a zygote were tried, and work."""

    def close(self) -> None:
        """No process is started after this."""
        self._end_origins()
        self.starter.close()

    # -- one process -----------------------------------------------------------------------------------------------------

    def get(
        self,
        side: Prepared,
        order: int = 0,
        place: GroupPlace | None = None,
        rank: Rank = SINGLE,
        *,
        alone: bool = False,
        cold: bool = False,
    ) -> Server:
        """A process of the side, forked where that was found to work and it is not to be `alone` from the start. `order` is
        that of its round; the others are as in `Starter.fresh`."""
        if self.kind != "fresh" and not alone:
            return self._forked(side, self._origin(order), place, rank)
        return self._known(side, self.starter.fresh(side, place, rank, cold=cold))

    def ranks(self, side: Prepared, size: int, gpus: int, order: int, *, alone: bool) -> Ranks:
        """This many such processes, which visit a case together."""
        suite = self.starter.suite_of(side)
        started = Ranks(lambda rank: self.get(side, order, rank=rank, alone=alone), size, gpus, suite)
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
        if self.starter.settings.process != "fresh":
            self._origins = self._origins or [Origin()]
            server = self._parent(side, self._origins[0]).server
        else:
            server = ending.enter_context(self.get(side))
            _tell(server)
        self.importers[side.side.name] = server.opened.facts
        return server

    def python_of(self, side: Prepared) -> str:
        """The version of the Python that has imported the side's suite."""
        return str(self.importers[side.side.name].get("python", "")) or "unknown"

    # -- what they say ---------------------------------------------------------------------------------------------------

    def _known(self, side: Prepared, server: Server) -> Server:
        """The server, once its facts and warnings are noted."""
        self.facts = server.opened.facts
        self.warnings += [text for text in server.opened.warnings if text not in self.warnings]
        self.first_facts.setdefault(side.side.name, dict(server.opened.facts))
        return server

    def note_end(self, side: Prepared, end: End) -> None:
        """Take note of what a process of the side has done that has visited its cases."""
        name = side.side.name
        self.imported[name] = self.imported.get(name, False) or bool(end.project_files)
        self._late.setdefault(name, {}).update(dict.fromkeys(end.late))

    def note_program(self, side: Prepared, reply: Proposal | Round) -> None:
        """Take note of what a program of the side has measured. If no process of ours has visited anything, the side's facts
        are those of the process that imported the suite, and what the program says of the device."""
        name, importer = side.side.name, self.importers.get(side.side.name, {})
        self.imported[name] = True  # it runs what the side has built
        self.facts = self.facts or importer
        if isinstance(reply, Round):
            device = {key: reply.facts[key] for key in ("gpu",) if key in reply.facts}
            self.first_facts.setdefault(name, {**importer, **device})

    # -- how they begin --------------------------------------------------------------------------------------------------

    def settle(self, suites: Mapping[str, SuiteMessage], sides: Sequence[Prepared], device: bool) -> None:
        """Decide how the processes of rounds begin, once for all sides: forked where that works on each, else fresh. `device`:
        whether device work is to be measured."""
        self._suites, self._sides, self._device = suites, sides, device
        if not self._origins:
            return
        forkable = not any(suites[side.side.name].unforkable for side in sides)
        if forkable and len(sides) > 1 and self._with_zygotes():
            self.kind = "fork"
            return
        doubt = self._first_doubt()
        if not doubt:
            self.kind = "fork"
        elif HANGS in doubt and "torch" in doubt and self._works_serially():
            self.kind = "fork-serial"
        else:
            self._end_origins()
            self.warnings.append(f"every round imports the suite again instead of forking, which is slower: {doubt}")
        if self.kind != "fresh" and len(sides) > 1:
            self.begin_afresh()

    def preload(self) -> None:
        """Have the processes that fork import what the unmeasured visits have imported late (mostly compilers), so that no
        round has to. If a fork then stops working, its process is started again without that."""
        late = {name for modules in self._late.values() for name in modules}
        if self.kind == "fresh" or late <= self._preloaded:
            return
        self._preloaded = late
        if any(origin.zygote is not None for origin in self._origins):
            if not self._with_zygotes():
                self._late.clear()
                self.begin_afresh()
            return
        for origin in self._origins:
            for side in self._sides:
                self._preload(side, origin)

    def _preload(self, side: Prepared, origin: Origin) -> None:
        late = list(self._late.get(side.side.name, ()))
        try:
            doubt = late and origin.parents[side.side.name].preload(late, self.starter.settings.discover_timeout_s)
            doubt = doubt or (late and self._tried(side, origin))
        except (Died, TimedOut) as error:
            doubt = str(error)
        if doubt:
            self._restart(side, origin)

    def begin_afresh(self) -> None:
        """Have the processes that fork started again, so that rounds to come share nothing with those before. Raises
        NotStarted if a suite can no longer be imported."""
        if self.kind == "fresh" or self._with_zygotes():
            return
        self._end_origins()
        self._origins = [Origin() for _ in range(WITHOUT)]
        self._import(self._origins)
        for origin in self._origins:
            for side in self._sides:
                self._preload(side, origin)

    def _with_zygotes(self) -> bool:
        """Replace the origins by new ones with zygotes. Returns False, and changes nothing, where that is impossible: the sides
        import the frameworks in different ways, or forks do not work."""
        suites = [self._suites[side.side.name] for side in self._sides]
        shared = common(self._sides, [suite.variables for suite in suites])
        if shared is None:
            return False
        own = sorted({name for suite in suites for name in suite.own})
        modules = dict.fromkeys(name for suite in suites for name in suite.outside)
        modules.update((name, None) for late in self._late.values() for name in late)
        origins: list[Origin] = []
        try:
            for _ in range(WITH_ZYGOTE):
                origins.append(Origin(self.starter.zygote(self._sides[0], shared)))
                origins[-1].tell(list(modules), own)
            if any(origin.told(self.starter.settings.discover_timeout_s) for origin in origins):
                raise _Unfit
            self._import(origins)
            if not self._proven and any(self._tried(side, origins[0]) for side in self._sides):
                raise _Unfit
        except (Died, TimedOut, NotStarted, _Unfit):
            for origin in origins:
                origin.close()
            return False
        self._proven = True
        self._end_origins()
        self._origins = origins
        return True

    def _import(self, origins: Sequence[Origin]) -> None:
        """Start each side's process of these origins; all of them import their suites at once."""
        for origin in origins:
            for side in self._sides:
                self._parent(side, origin)
        for origin in origins:
            for side in self._sides:
                self._imported_again(side, origin)

    def _first_doubt(self) -> str:
        """Why a fork of any side's process cannot be trusted to measure; empty if all can."""
        return next(filter(None, map(self._doubt, self._sides)), "")

    def _works_serially(self) -> bool:
        """Whether a fork can be trusted where the suite is imported again, with torch at one thread. Tried only where it hangs
        otherwise: a number of threads that was set is not quite the same to torch as its own choice."""
        self.starter.one_thread = True
        try:
            for side in self._sides:
                self._restart(side, self._origins[0])
        except NotStarted:
            return False
        return not self._first_doubt()

    def _doubt(self, side: Prepared) -> str:
        suite = self._suites[side.side.name]
        if suite.unforkable:
            return suite.unforkable
        doubt = self._tried(side, self._origins[0])
        blamed = f"; {', '.join(suite.threads)} started threads when imported" if suite.threads else ""
        return doubt and doubt + (blamed if HANGS in doubt else "")

    def _tried(self, side: Prepared, origin: Origin) -> str:
        """What does not work in a fork of the side's process; empty if all does."""
        step = "start"
        try:
            with self._forked(side, origin) as child:
                child.send(TryFork(self._device))
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

    def _forked(self, side: Prepared, origin: Origin, place: GroupPlace | None = None, rank: Rank = SINGLE) -> Server:
        """A fork of the process that has imported the side's suite, which is started again where something has ended it."""
        try:
            server = self.starter.forked(side, origin.parents[side.side.name], place, rank)
        except NotStarted:
            server = self.starter.forked(side, self._restart(side, origin), place, rank)
        return self._known(side, server)

    def _restart(self, side: Prepared, origin: Origin) -> ForkServer:
        """The side's process that forks, started again. Raises NotStarted if it can no longer import the suite."""
        origin.parents[side.side.name].close()
        self._parent(side, origin)
        return self._imported_again(side, origin)

    def _imported_again(self, side: Prepared, origin: Origin) -> ForkServer:
        """The side's process that forks, once it has imported the suite."""
        parent = origin.parents[side.side.name]
        with starting(side):
            discovered(parent.server, self.starter.settings.discover_timeout_s)
        return parent

    def _parent(self, side: Prepared, origin: Origin) -> ForkServer:
        """A new process that is to fork for the side, told to import the suite."""
        parent = self.starter.parent(side, origin.zygote)
        origin.parents[side.side.name] = parent
        _tell(parent.server)
        return parent

    def _end_origins(self) -> None:
        while self._origins:
            self._origins.pop().close()


def _tell(server: Server) -> None:
    with contextlib.suppress(Died):  # which its answer will say
        server.send(Discover())
