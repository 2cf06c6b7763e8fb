"""Processes that fork others, and what is forked from them."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from regress.measure.wire import Fork, Forked, Open, Preload, Preloaded, Reap, Reaped
from regress.run.interrupts import Interrupt, Reaper
from regress.run.servers import START_TIMEOUT_S, Died, GroupPlace, Server, Start, TimedOut, WorkerEnds


class ForkServer:
    """A process that forks others. It has imported the suite of a side and forks its workers; or it is a zygote, which has
    imported the frameworks and forks such processes for all sides. `server` talks to it; `starting` makes its `Start` from its
    end of a socket."""

    def __init__(self, starting: Callable[[int], Start], opening: Open, reaper: Reaper, interrupt: Interrupt) -> None:
        self._socket, theirs = socket.socketpair()
        try:
            with theirs:
                self.server = Server(starting(theirs.fileno()), opening, reaper, interrupt)
        except BaseException:
            self._socket.close()
            raise

    def forking(self, place: GroupPlace | None) -> Start:
        """Starts a worker, with a seat in a group where that is given."""
        more = (place.turn, *place.hands) if place is not None else ()
        return lambda ends: self._fork(ends, more, seat=0 if place is None else place.number)

    def serving(self, end: int) -> Start:
        """Starts a process that forks, with that end of a socket."""
        return lambda ends: self._fork(ends, (end,), serves=True)

    def _fork(self, ends: WorkerEnds, more: tuple[int, ...], **how: Any) -> Child:
        """Raises Died or TimedOut if the server no longer answers."""
        fds = [ends.read, ends.write, ends.log, *more]
        self.server.send(Fork(str(ends.home), len(fds), **how))
        with contextlib.suppress(OSError):  # the server has ended, which its answer will tell
            socket.send_fds(self._socket, [b"."], fds)
        answer = self.server.receive(START_TIMEOUT_S)
        if not isinstance(answer, Forked):
            raise self.server.strange(answer)
        return Child(answer.pid, self)

    def preload(self, modules: Sequence[str], timeout_s: float) -> str:
        """Import more, for the children to come; returns why a fork could no longer measure. Raises Died and TimedOut."""
        self.server.send(Preload(list(modules)))
        return self.preloaded(timeout_s)

    def preloaded(self, timeout_s: float) -> str:
        """The answer to a `Preload` that was sent before."""
        answer = self.server.receive(timeout_s)
        if not isinstance(answer, Preloaded):
            raise self.server.strange(answer)
        return answer.unforkable

    def ended(self, pid: int) -> int | None:
        """Exit code of a child, None while it runs."""
        try:
            self.server.send(Reap(pid))
            answer = self.server.receive(START_TIMEOUT_S, ending=True)
            if not isinstance(answer, Reaped):
                raise self.server.strange(answer)
        except (Died, TimedOut):  # the child's parent is gone; nobody can tell the code now
            return None if Path(f"/proc/{pid}").exists() else 0
        return answer.returncode

    def close(self) -> None:
        self.server.close()
        self._socket.close()


class Child:
    """A forked worker, as a `Handle`."""

    def __init__(self, pid: int, parent: ForkServer) -> None:
        self.pid, self._parent = pid, parent
        self._code: int | None = None

    def poll(self) -> int | None:
        if self._code is None:
            self._code = self._parent.ended(self.pid)
        return self._code
