"""How a process of a side is started: what it is given, and what it is told first."""

from __future__ import annotations

import contextlib
import os
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType

from regress.errors import NothingMeasured
from regress.files import scratch
from regress.measure.wire import Open, Rank
from regress.model import Settings
from regress.run import caches
from regress.run.environments import Prepared
from regress.run.forks import ForkServer
from regress.run.interrupts import Interrupt, Reaper
from regress.run.origins import own_variables
from regress.run.servers import Died, GroupPlace, Server, Start, TimedOut, WorkerEnds
from regress.text.wording import quoted

SINGLE = Rank()
CUT_SHORT = "marshal data too short"
"""What Python says of a compiled file that is incomplete."""


class NotStarted(NothingMeasured):
    """No process of a side can be started, or import the suite, again."""


@dataclass
class Starter:
    """Starts processes of any side for a suite. Raises NotStarted where one does not start."""

    suite: Path
    start_file: Path
    settings: Settings
    own_suites: Mapping[str, Path] = field(default_factory=dict)
    """By side: its suite, where it has another one."""
    visible: str = ""
    """The GPUs that the processes see, as CUDA_VISIBLE_DEVICES has them; empty: whatever the side's variables say."""
    one_thread: bool = False
    """Whether the processes that fork keep torch at one thread while they import the suite."""
    interrupt: Interrupt = field(default_factory=Interrupt)
    """Stops the thread that waits for these processes."""
    _reaper: Reaper = field(default_factory=Reaper)
    _caches: tempfile.TemporaryDirectory[str] = field(
        default_factory=lambda: tempfile.TemporaryDirectory(
            prefix="compiled-", dir=scratch(), ignore_cleanup_errors=True
        )
    )
    """Compile caches: a folder a side, filled by the unmeasured visit."""

    def close(self) -> None:
        """No process is started after this."""
        self._reaper.close()
        self.interrupt.close()
        self._caches.cleanup()

    def fresh(
        self, side: Prepared, place: GroupPlace | None = None, rank: Rank = SINGLE, *, cold: bool = False
    ) -> Server:
        """A worker with an interpreter of its own. With `cold` its compile caches are empty, and nobody else's; `place` is its
        seat in a group, `rank` which of the processes it is that visit a case together."""
        words, fds = _seated(place)
        start = self._interpreter(side, {**self.variables(side), **self._compile_caches(side, cold)}, *words, fds=fds)
        with starting(side):
            return Server(start, self.opening(side, rank=rank), self._reaper, self.interrupt)

    def forked(self, side: Prepared, parent: ForkServer, place: GroupPlace | None, rank: Rank) -> Server:
        """The same, forked from a process that has imported the side's suite."""
        with starting(side):
            return Server(parent.forking(place), self.opening(side, rank=rank), self._reaper, self.interrupt)

    def parent(self, side: Prepared, zygote: ForkServer | None) -> ForkServer:
        """A process of the side that is to fork workers: with an interpreter of its own, or forked from a zygote."""
        if zygote is None:
            return self._forking(side, {**self.variables(side), **self._compile_caches(side)}, self.opening(side))
        opening = self.opening(side, {**own_variables(side), **self._compile_caches(side)})
        with starting(side):
            return ForkServer(zygote.serving, opening, self._reaper, self.interrupt)

    def zygote(self, side: Prepared, variables: Mapping[str, str]) -> ForkServer:
        """A process to fork the parents of all sides: with these variables over those of one side, and none of its code."""
        opening = replace(self.opening(side), import_roots=[], side="")
        return self._forking(side, {**self.variables(side), **variables}, opening)

    def variables(self, side: Prepared) -> dict[str, str]:
        """The environment of the side's processes, but for compile caches."""
        # A set has one order in all of them: it is no difference between sides, and the text of a parameter may have one in it.
        variables = {"PYTHONHASHSEED": str(self.settings.seed), **side.variables}
        if self.visible:
            variables["CUDA_VISIBLE_DEVICES"] = self.visible
        return variables

    def opening(self, side: Prepared, variables: Mapping[str, str] = MappingProxyType({}), rank: Rank = SINGLE) -> Open:
        """What a process of the side is told first; `variables` for one that forks and was forked."""
        return Open(
            suite_dir=str(self.suite_of(side)),
            import_roots=[str(root) for root in side.import_roots],
            side=side.side.name,
            named_in=[str(root) for root in side.named_in],
            # A GPU that is named is never replaced by the CPU.
            device="cuda" if self.visible and self.settings.device == "auto" else self.settings.device,
            seed=self.settings.seed,
            cuda=list(self.settings.cuda),
            one_thread=self.one_thread,
            variables=dict(variables),
            driver=os.getpid(),
            rank=rank,
        )

    def suite_of(self, side: Prepared) -> Path:
        """The folder of the side's benchmarks."""
        return self.own_suites.get(side.side.name, self.suite)

    @contextlib.contextmanager
    def watched(self, group: int, home: Path) -> Iterator[None]:
        """While the block runs, that group of processes and their folder go if the driver is killed."""
        self._reaper.watch(group, home)
        try:
            yield
        finally:
            self._reaper.release(group)

    def release_locks(self) -> None:
        """Remove the locks that killed processes have left in compile caches."""
        caches.release_locks(Path(self._caches.name))

    def _compile_caches(self, side: Prepared, cold: bool = False) -> dict[str, str]:
        root = Path(self._caches.name)
        return caches.compile_caches(Path(tempfile.mkdtemp(dir=root)) if cold else root / side.side.name)

    def _forking(self, side: Prepared, variables: Mapping[str, str], opening: Open) -> ForkServer:
        def start(end: int) -> Start:
            return self._interpreter(side, variables, "--socket", str(end), fds=(end,))

        with starting(side):
            return ForkServer(start, opening, self._reaper, self.interrupt)

    def _interpreter(
        self, side: Prepared, variables: Mapping[str, str], *more: str, fds: tuple[int, ...] = ()
    ) -> Start:
        """Starts an interpreter. `more` are further arguments, `fds` further descriptors that it inherits."""
        words = [side.python, "-X", "faulthandler", str(self.start_file)]

        def start(ends: WorkerEnds) -> subprocess.Popen[bytes]:
            return subprocess.Popen(
                [*words, "--read", str(ends.read), "--write", str(ends.write), *more],
                cwd=ends.home / "cwd",
                env={**variables, "TMPDIR": str(ends.home)},
                stdin=subprocess.DEVNULL,
                stdout=ends.log,
                stderr=ends.log,
                pass_fds=(ends.read, ends.write, *fds),
                start_new_session=True,
            )

        return start


@contextlib.contextmanager
def starting(side: Prepared) -> Iterator[None]:
    """Raises NotStarted if a process of the side ends, or does not answer, while the block starts it."""
    try:
        yield
    except (Died, TimedOut) as error:
        why = (error.last_line or error.reason) if isinstance(error, Died) else str(error)
        compiled = side.variables.get("PYTHONPYCACHEPREFIX", "")
        if compiled and CUT_SHORT in why:
            why = f"{why}: a compiled file in {compiled} is incomplete, as a full disk leaves it"
            fix = quoted("rm", "-r", compiled)
        else:
            fix = quoted(side.python, "--version")
        raise NotStarted(
            f"no process could be started for {side.side.name} {side.side.label}", why=why, fix=fix
        ) from None


def _seated(place: GroupPlace | None) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """The arguments and descriptors by which an interpreter gets its seat."""
    if place is None:
        return (), ()
    fds = place.turn, *place.hands
    return ("--seat", ",".join(map(str, (place.number, *fds)))), fds
