"""A worker process: started in a session of its own, talked to over private pipes, ended with everything it started."""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Any

from regress.measure.wire import WIRE_VERSION, Broken, Open, Opened, decode, encode

START_TIMEOUT_S = 120.0
CLOSE_TIMEOUT_S = 5.0
LOG_TAIL_BYTES = 4000

REAPER = """
import os, shutil, signal, sys
left = {}
for line in sys.stdin:
    sign, group, home = line.rstrip("\\n").split(" ", 2)
    if sign == "+":
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
    """The worker ended without an answer. `returncode` is negative for a signal, as in subprocess; `log` is its end."""

    def __init__(self, returncode: int, log: str) -> None:
        self.returncode, self.log = returncode, log
        super().__init__(self.reason)

    @property
    def reason(self) -> str:
        if self.returncode < 0:
            known = {each.value: f", {each.name}" for each in signal.Signals}
            return f"failed (signal {-self.returncode}{known.get(-self.returncode, '')})"
        return f"ended without a result (exit code {self.returncode})"


class TimedOut(Exception):
    """The worker gave no answer in time; it has been killed."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
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
        self._say(f"+ {group} {home}\n")

    def release(self, group: int) -> None:
        self._say(f"- {group} \n")

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
            self._process.stdin.write(line.encode())
            self._process.stdin.flush()


class Server:
    """One worker process. Use it as a context manager: leaving it ends the process and its children."""

    def __init__(self, start: Path, python: str, environment: dict[str, str], opening: Open, reaper: Reaper) -> None:
        self._reaper = reaper
        self._home = Path(tempfile.mkdtemp(prefix="regress-"))
        self._log = self._home / "log"
        (self._home / "cwd").mkdir()
        command_read, self._write = os.pipe()
        self._read, reply_write = os.pipe()
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [python, "-X", "faulthandler", str(start), "--read", str(command_read), "--write", str(reply_write)],
                cwd=self._home / "cwd",
                env={**environment, "TMPDIR": str(self._home)},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                pass_fds=(command_read, reply_write),
                start_new_session=True,
            )
        os.close(command_read)
        os.close(reply_write)
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
        try:
            view = memoryview(encode(message))
            while view:
                view = view[os.write(self._write, view) :]
        except BrokenPipeError:
            raise self._died() from None

    def receive(self, timeout_s: float) -> Any:
        """The next message. Raises TimedOut (and kills the worker) or Died."""
        deadline = time.monotonic() + timeout_s
        while b"\n" not in self._buffer:
            left = deadline - time.monotonic()
            ready, _, _ = select.select([self._read], [], [], max(0.0, left))
            if not ready:
                self.kill()
                raise TimedOut(timeout_s)
            chunk = os.read(self._read, 1 << 16)
            if not chunk:
                raise self._died()
            self._buffer += chunk
        line, _, self._buffer = self._buffer.partition(b"\n")
        try:
            return decode(line)
        except ValueError:  # something else wrote into the pipe; nothing after it can be trusted
            self.kill()
            raise Died(1, f"wrote into the harness's pipe: {line[:200]!r}") from None

    def _died(self) -> Died:
        self._wait(CLOSE_TIMEOUT_S)
        returncode = self._process.returncode
        log = self.log()
        self.kill()
        return Died(0 if returncode is None else returncode, log)

    def log(self) -> str:
        """The end of what the worker printed."""
        try:
            with self._log.open("rb") as log:
                log.seek(max(0, self._log.stat().st_size - LOG_TAIL_BYTES))
                return log.read().decode(errors="replace")
        except OSError:
            return ""

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
            time.sleep(0.002)

    def kill(self) -> None:
        """End the worker and everything it started; safe to call twice."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._wait(CLOSE_TIMEOUT_S)
        self._reaper.release(self._process.pid)
        for name in ("_write", "_read"):
            if getattr(self, name) >= 0:
                os.close(getattr(self, name))
                setattr(self, name, -1)
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
