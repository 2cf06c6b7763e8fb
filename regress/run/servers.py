"""A worker process: started in a session of its own, talked to over private pipes, ended with everything it started."""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any
from typing import Protocol as Interface

from regress.files import scratch
from regress.measure.wire import (
    WIRE_VERSION,
    Broken,
    Importing,
    Open,
    Opened,
    Suite,
    decode,
    encode,
    from_json,
)
from regress.model import Failure
from regress.run.interrupts import Interrupt, Reaper

START_TIMEOUT_S = 120.0
CLOSE_TIMEOUT_S = 5.0
LONGEST_WAIT_S = 3600.0
"""At a time: the system refuses very long ones, and a benchmark may have an infinite timeout."""
LOG_TAIL_BYTES = 4000
DRAIN_READS = 256
"""At most this many reads of the log at a time, so that a worker that prints without end delays no answer."""


class Died(Exception):
    """The worker ended without an answer. `returncode` is negative for a signal, as in subprocess; `log` is the end of what it
    printed, `importing` the module that it was importing. Of several workers, `who` names this one, and `others` says what the
    rest were doing."""

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
    def failure(self) -> Failure:
        """How the task has failed that the worker was at."""
        return Failure("signal" if self.returncode < 0 else "error", self.reason, detail=self.log)

    @property
    def last_line(self) -> str:
        """The last line that it printed; empty for none."""
        lines = self.log.strip().splitlines()
        return lines[-1] if lines else ""


class TimedOut(Exception):
    """The worker gave no answer in time. `importing` is the module that it was importing. Of several workers, `where` says what
    each was doing, and `stacks` has their stacks."""

    def __init__(self, seconds: float, where: str = "", stacks: str = "") -> None:
        self.seconds, self.importing = seconds, ""
        self.where, self.stacks = where, stacks
        super().__init__(f"no answer within {seconds:g} s")


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
        """The next message. Raises Died, TimedOut (and kills the worker), and KeyboardInterrupt if the driver is interrupted,
        unless something is being ended (`ending`)."""
        try:
            ((_, message),) = arriving([self], timeout_s, ending=ending)
        except TimedOut:
            self.kill()
            raise
        return message

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

    def _died(self) -> Died:
        self._wait(CLOSE_TIMEOUT_S)
        returncode = self._process.poll()
        log = self.log()
        self.kill()
        return Died(0 if returncode is None else returncode, log)

    @property
    def ended(self) -> bool:
        """Whether the worker has been ended; one that has ended by itself counts once that was noticed."""
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
    servers: Sequence[Server], timeout_s: float, beside: Sequence[Server] = (), ending: bool = False
) -> Iterator[tuple[Server, Any]]:
    """The next message of each server, as it comes. Raises TimedOut if they take longer than that together, and Died if one
    ends, of these or of those `beside`, which are only watched. Raises KeyboardInterrupt if the driver is interrupted, unless
    something is being ended (`ending`)."""
    deadline, waiting = time.monotonic() + timeout_s, list(servers)
    every = list(dict.fromkeys((*servers, *beside)))
    while waiting:
        for server in [candidate for candidate in waiting if b"\n" in candidate._buffer]:
            waiting.remove(server)
            yield server, server._next()
        if not waiting:
            return
        silent = [server for server in beside if server not in waiting and not server._buffer and not server.ended]
        left_s = deadline - time.monotonic()
        written = _written([*waiting, *silent], every, left_s, ending)
        if not written and left_s <= 0:
            raise TimedOut(timeout_s)
        for server in written:
            server._fill()


def _written(watched: Sequence[Server], every: Sequence[Server], left_s: float, ending: bool) -> list[Server]:
    """Those of the watched servers that write something, or end, within that time. Also takes what every one has printed."""
    by_fd, interrupt = {server._read: server for server in watched}, watched[0]._interrupt
    waited = [*by_fd, *(server._log.fd for server in every if server._log.fd >= 0), *([] if ending else [interrupt.fd])]
    ready, _, _ = select.select(waited, [], [], min(max(0.0, left_s), LONGEST_WAIT_S))
    for server in every:
        server._log.drain()
    if interrupt.fd in ready:
        interrupt.take()
    return [by_fd[fd] for fd in ready if fd in by_fd]


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
