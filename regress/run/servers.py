"""A worker process: started in a session of its own, talked to over private pipes, ended with everything it started."""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any
from typing import Protocol as Interface

from regress.files import scratch
from regress.measure.wire import (
    WIRE_VERSION,
    Broken,
    Fork,
    Forked,
    Importing,
    Open,
    Opened,
    Preload,
    Preloaded,
    Reap,
    Reaped,
    Suite,
    decode,
    encode,
    from_json,
)

START_TIMEOUT_S = 120.0
CLOSE_TIMEOUT_S = 5.0
LONGEST_WAIT_S = 3600.0
"""At a time: the system refuses very long ones, and a benchmark may have an infinite timeout."""
LOG_TAIL_BYTES = 4000
DRAIN_READS = 256
"""At most this many reads of the log at a time, so that a worker that prints without end delays no answer."""

REAPER = """
import os, shutil, signal, sys
left = {}
*lines, torn = sys.stdin.buffer.read().split(b"\\0")  # a folder may have any other character in its name
for line in lines:
    sign, group, home = line.split(b" ", 2)
    if sign == b"+":
        left[int(group)] = home
    else:
        left.pop(int(group), None)
for group, home in left.items():
    try:
        os.killpg(group, signal.SIGKILL)
    except OSError:
        pass
    shutil.rmtree(home, ignore_errors=True)
"""


class Died(Exception):
    """The worker ended without an answer. `returncode` is negative for a signal, as in subprocess; `log` is its end,
    `importing` the module that it was importing; `who` says which of several it was, `others` what became of those."""

    def __init__(self, returncode: int, log: str, who: str = "", others: str = "") -> None:
        self.returncode, self.log, self.importing = returncode, log, ""
        self._who, self._others = who, others
        super().__init__(self.reason)

    @property
    def reason(self) -> str:
        if self.returncode < 0:
            known = {member.value: f", {member.name}" for member in signal.Signals}
            how = f"failed (signal {-self.returncode}{known.get(-self.returncode, '')})"
        else:
            how = f"ended without a result (exit code {self.returncode})"
        return self._who + how + self._others

    @property
    def last_line(self) -> str:
        """Of what it has printed; empty for nothing."""
        lines = self.log.strip().splitlines()
        return lines[-1] if lines else ""


class TimedOut(Exception):
    """The worker gave no answer in time; it has been killed. `importing` is the module that it was importing. Of several,
    `where` says where they were, and `stacks` how they came there."""

    def __init__(self, seconds: float, where: str = "", stacks: str = "") -> None:
        self.seconds, self.importing = seconds, ""
        self.where, self.stacks = where, stacks
        super().__init__(f"no answer within {seconds:.3g} s")


class Reaper:
    """Ends the workers and removes their folders when the driver itself is killed: a process that waits for the driver's pipe
    to close."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def watch(self, group: int, home: Path) -> None:
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", REAPER],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        self._say(f"+ {group} {home}\0")

    def release(self, group: int) -> None:
        self._say(f"- {group} \0")

    def close(self) -> None:
        if self._process is not None and self._process.stdin is not None:
            with contextlib.suppress(OSError):
                self._process.stdin.close()
            self._process.wait()
            self._process = None

    def _say(self, line: str) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(os.fsencode(line))
            self._process.stdin.flush()


class Interrupt:
    """Ctrl-C for a thread that waits for a worker: the signal itself comes to the main thread alone."""

    def __init__(self) -> None:
        self.fd, self._write = os.pipe()

    def set(self) -> None:
        """Have the thread stop as Ctrl-C would stop it: once, wherever it waits next."""
        os.write(self._write, b".")

    def take(self) -> None:
        """Raise KeyboardInterrupt, once for each `set`."""
        os.read(self.fd, 1)
        raise KeyboardInterrupt

    def check(self) -> None:
        """`take`, where the thread waits for something else."""
        if select.select([self.fd], [], [], 0.0)[0]:
            self.take()

    def close(self) -> None:
        os.close(self.fd)
        os.close(self._write)


class Handle(Interface):
    """A started process. `poll` gives its exit code, negative for a signal, and None while it runs."""

    @property
    def pid(self) -> int: ...

    def poll(self) -> int | None: ...


@dataclass(frozen=True)
class GroupPlace:
    """A seat in a group: its number, the descriptor at which its turns arrive, and those that hand over to each seat."""

    number: int
    turn: int
    hands: tuple[int, ...]


@dataclass(frozen=True)
class WorkerEnds:
    """What a worker is given: its folder, and the descriptors it reads commands from, writes replies to, and prints to."""

    home: Path
    read: int
    write: int
    log: int


Start = Callable[[WorkerEnds], Handle]
"""Starts the process behind the ends."""


def seated(place: GroupPlace | None) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """The arguments and descriptors by which an interpreter gets its seat."""
    if place is None:
        return (), ()
    fds = place.turn, *place.hands
    return ("--seat", ",".join(map(str, (place.number, *fds)))), fds


def fresh(start: Path, python: str, variables: Mapping[str, str], *more: str, fds: tuple[int, ...] = ()) -> Start:
    """Starts an interpreter. `more` are further arguments, `fds` further descriptors that it inherits."""

    def launch(ends: WorkerEnds) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [python, "-X", "faulthandler", str(start), "--read", str(ends.read), "--write", str(ends.write), *more],
            cwd=ends.home / "cwd",
            env={**variables, "TMPDIR": str(ends.home)},
            stdin=subprocess.DEVNULL,
            stdout=ends.log,
            stderr=ends.log,
            pass_fds=(ends.read, ends.write, *fds),
            start_new_session=True,
        )

    return launch


def started_in(home: Path) -> list[int]:
    """Processes whose environment says that this is their folder for temporary files: what a worker has started, also where
    it has left the worker's group. Empty if there is no /proc."""
    mark, processes = os.fsencode(f"TMPDIR={home}"), []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended, or belongs to somebody else
            if mark in (entry / "environ").read_bytes().split(b"\0"):
                processes.append(int(entry.name))
    return processes


class Log:
    """The end of what a worker prints, read from its pipe: however much it is, nothing is kept on disk."""

    def __init__(self, fd: int) -> None:
        self.fd = fd
        """-1 once nobody can print any more, or it was closed."""
        os.set_blocking(fd, False)
        self._kept = b""
        self._cut = 0

    def drain(self) -> None:
        """Take what has been printed so far."""
        for _ in range(DRAIN_READS if self.fd >= 0 else 0):
            try:
                chunk = os.read(self.fd, 1 << 16)
            except BlockingIOError:
                return
            if not chunk:
                self.close()
                return
            kept = self._kept + chunk
            self._cut += max(0, len(kept) - LOG_TAIL_BYTES)
            self._kept = kept[-LOG_TAIL_BYTES:]

    def close(self) -> None:
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1

    def text(self) -> str:
        note = f"[{self._cut:,} earlier bytes omitted]\n" if self._cut else ""
        return note + self._kept.decode(errors="replace")


class Server:
    """One worker process. Use it as a context manager: leaving it ends the process and its children."""

    def __init__(self, start: Start, opening: Open, reaper: Reaper, interrupt: Interrupt) -> None:
        self._reaper, self._interrupt = reaper, interrupt
        self._home = Path(tempfile.mkdtemp(prefix="home-", dir=scratch()))
        (self._home / "cwd").mkdir()
        command_read, self._write = os.pipe()
        self._read, reply_write = os.pipe()
        log_read, log_write = os.pipe()
        self._log, self._killed = Log(log_read), False
        try:
            self._process = start(WorkerEnds(self._home, command_read, reply_write, log_write))
        except BaseException:
            self._release()
            raise
        finally:
            for fd in (command_read, reply_write, log_write):
                os.close(fd)
        reaper.watch(self._process.pid, self._home)
        self._buffer = b""
        try:
            self.send(opening)
            self.opened: Opened = self._first_answer()
        except BaseException:
            self.kill()
            raise

    def _first_answer(self) -> Opened:
        answer = self.receive(START_TIMEOUT_S)
        if isinstance(answer, Opened) and answer.wire == WIRE_VERSION:
            return answer
        if isinstance(answer, Broken):
            raise Died(1, answer.failure.detail or answer.failure.message)
        raise Died(1, f"unexpected first answer {type(answer).__name__}")

    def send(self, message: Any) -> None:
        """Raises Died if the worker has ended."""
        if self._killed:
            raise Died(self._process.poll() or 0, self.log())
        try:
            view = memoryview(encode(message))
            while view:
                view = view[os.write(self._write, view) :]
        except BrokenPipeError:
            raise self._died() from None

    def receive(self, timeout_s: float, ending: bool = False) -> Any:
        """The next message. Raises TimedOut (and kills the worker) or Died, and KeyboardInterrupt where that was asked for, but
        not while something is being ended."""
        deadline = time.monotonic() + timeout_s
        while b"\n" not in self._buffer:
            left = deadline - time.monotonic()
            ready = self._ready(max(0.0, left), ending)
            if self._read not in ready:
                if left > 0:
                    continue  # it has only printed something
                self.kill()
                raise TimedOut(timeout_s)
            self._fill()
        return self._next()

    def _fill(self) -> None:
        """Take what the worker has written. Raises Died if that is its end."""
        chunk = os.read(self._read, 1 << 16)
        if not chunk:
            raise self._died()
        self._buffer += chunk

    def _next(self) -> Any:
        line, _, self._buffer = self._buffer.partition(b"\n")
        try:
            return decode(line, from_json)
        except ValueError:
            raise self.strange(line) from None

    def strange(self, written: object) -> Died:
        """The error where something else wrote into the pipe: nothing after it can be trusted."""
        self.kill()
        return Died(1, f"wrote into the harness's pipe: {str(written)[:200]}")

    def _ready(self, seconds: float, ending: bool) -> list[int]:
        """The descriptors that can be read; what has been printed is taken along."""
        waited = [fd for fd in (self._read, self._log.fd, -1 if ending else self._interrupt.fd) if fd >= 0]
        ready, _, _ = select.select(waited, [], [], min(seconds, LONGEST_WAIT_S))
        self._log.drain()
        if self._interrupt.fd in ready:
            self._interrupt.take()
        return ready

    def _died(self) -> Died:
        self._wait(CLOSE_TIMEOUT_S)
        returncode = self._process.poll()
        log = self.log()
        self.kill()
        return Died(0 if returncode is None else returncode, log)

    @property
    def ended(self) -> bool:
        """Whether it was ended, or found to be."""
        return self._killed

    def log(self) -> str:
        """The end of what the worker printed."""
        self._log.drain()
        return self._log.text()

    def close(self) -> None:
        """Let the worker finish, then end its group."""
        if self._write >= 0:
            os.close(self._write)
            self._write = -1
            self._wait(CLOSE_TIMEOUT_S)
        self.kill()

    def _wait(self, seconds: float) -> None:
        """Wait for the worker's end. Polling, because Ctrl-C within `Popen.wait` can leave its lock taken, for good."""
        deadline = time.monotonic() + seconds
        while self._process.poll() is None and time.monotonic() < deadline:
            self._log.drain()  # it may have to get rid of what it has printed before it can end
            time.sleep(0.002)

    def kill(self) -> None:
        """End the worker and everything it started; safe to call twice."""
        if self._killed:
            return
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        if self._process.poll() is None:  # a child that was forked a moment ago may not lead its group yet
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._process.pid, signal.SIGKILL)
        self._wait(CLOSE_TIMEOUT_S)
        for pid in started_in(self._home):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        self._reaper.release(self._process.pid)
        self._release()
        self._killed = True

    def _release(self) -> None:
        """Close the ends that are ours, and remove the folder."""
        for name in ("_write", "_read"):
            if getattr(self, name) >= 0:
                os.close(getattr(self, name))
                setattr(self, name, -1)
        self._log.close()
        shutil.rmtree(self._home, ignore_errors=True)

    def __enter__(self) -> Server:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.close()
        else:
            self.kill()


def arriving(
    servers: Sequence[Server], timeout_s: float, beside: Sequence[Server] = ()
) -> Iterator[tuple[Server, Any]]:
    """The next message of each as it comes, of processes that work at once. Raises TimedOut if they take longer than that
    together, and Died of the first that ends: of these, or of those `beside` that have no more to say."""
    deadline, waiting = time.monotonic() + timeout_s, list(servers)
    every = list(dict.fromkeys((*servers, *beside)))
    while waiting:
        for server in [candidate for candidate in waiting if b"\n" in candidate._buffer]:
            waiting.remove(server)
            yield server, server._next()
        if not waiting:
            return
        left, interrupt = deadline - time.monotonic(), waiting[0]._interrupt
        watched = [
            *waiting,
            *(server for server in beside if server not in waiting and not server._buffer and not server.ended),
        ]
        by_fd, logs = (
            {server._read: server for server in watched},
            [server._log.fd for server in every if server._log.fd >= 0],
        )
        ready, _, _ = select.select([*by_fd, *logs, interrupt.fd], [], [], min(max(0.0, left), LONGEST_WAIT_S))
        for server in every:
            server._log.drain()
        if interrupt.fd in ready:
            interrupt.take()
        if not ready and left <= 0:
            raise TimedOut(timeout_s)
        for fd in by_fd.keys() & set(ready):
            by_fd[fd]._fill()


def discovered(server: Server, timeout_s: float) -> Suite | Broken:
    """The suite that a process has been told to discover. Raises TimedOut and Died, which name the module that was being
    imported."""
    importing, deadline = "", time.monotonic() + timeout_s
    try:
        while True:
            message = server.receive(max(0.0, deadline - time.monotonic()))
            if not isinstance(message, Importing):
                if not isinstance(message, (Suite, Broken)):
                    raise server.strange(message)
                return message
            importing = message.module
    except (TimedOut, Died) as error:
        error.importing = importing
        raise


class ForkServer:
    """A process that forks others: the workers of a side whose suite it has imported, or such processes themselves, of all
    sides, for which it has imported the frameworks. `server` talks to it; `starting` makes its `Start` from its end of a
    socket."""

    def __init__(self, starting: Callable[[int], Start], opening: Open, reaper: Reaper, interrupt: Interrupt) -> None:
        self._socket, theirs = socket.socketpair()
        try:
            with theirs:
                self.server = Server(starting(theirs.fileno()), opening, reaper, interrupt)
        except BaseException:
            self._socket.close()
            raise

    @classmethod
    def interpreter(
        cls,
        start: Path,
        python: str,
        variables: Mapping[str, str],
        opening: Open,
        reaper: Reaper,
        interrupt: Interrupt,
    ) -> ForkServer:
        """One with an interpreter of its own."""

        def starting(end: int) -> Start:
            return fresh(start, python, variables, "--socket", str(end), fds=(end,))

        return cls(starting, opening, reaper, interrupt)

    def forking(self, place: GroupPlace | None = None) -> Start:
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
