"""A tool that is run with a program below it: watched while it works, and ended with all that it has started."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

POLL_S = 0.05
GRACE_S = 10.0
"""After Ctrl-C, for the tool to write down what it has; a second one does not wait for it."""


@dataclass(frozen=True)
class Ended:
    """How the tool ended, and what it and its program have printed."""

    code: int
    """Negative: the number of the signal."""
    output: str
    timed_out: bool = False
    interrupted: bool = False


def watched(
    words: Sequence[str], variables: Mapping[str, str], log: Path, timeout_s: float, seen: Callable[[str], None]
) -> Ended:
    """Run the tool and wait for it. Both streams go into the file `log`, and each line, as it comes, to `seen`.

    Ctrl-C is passed on, so that the tool can end in its own way. Raises OSError if it cannot be started."""
    with log.open("wb") as out, log.open(encoding="utf-8", errors="replace") as told:
        process = subprocess.Popen(
            list(words),
            env=dict(variables),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        lines, timed_out, interrupted = _Lines(told, seen), False, False
        try:
            code = _end(process.pid, timeout_s, lines)
            timed_out = code is None
        except KeyboardInterrupt:
            interrupted = True
            code = _asked_to_end(process.pid, lines)
        if code is None:
            _signal(process.pid, signal.SIGKILL)
            code = _end(process.pid, float("inf"), lines)
            assert code is not None
        _signal(process.pid, signal.SIGKILL)  # what it may have left running
        process.returncode = code
        lines.hand_on()
    return Ended(code, log.read_text(encoding="utf-8", errors="replace"), timed_out, interrupted)


def _asked_to_end(pid: int, lines: _Lines) -> int | None:
    """The code of a tool that ends on Ctrl-C; None if it does not, or a second one comes."""
    with contextlib.suppress(KeyboardInterrupt):
        _signal(pid, signal.SIGINT)
        return _end(pid, GRACE_S, lines)
    return None


def _end(pid: int, timeout_s: float, lines: _Lines) -> int | None:
    """The code with which the process ends; None if it does not in that time.

    Not Popen.wait(): an interrupt inside a wait may leave its lock taken, and the next would wait forever."""
    until = time.monotonic() + timeout_s
    while True:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        lines.hand_on()
        if time.monotonic() >= until:
            return None
        time.sleep(POLL_S)


def _signal(group: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


class _Lines:
    """The lines of a file that grows."""

    def __init__(self, file: TextIO, seen: Callable[[str], None]) -> None:
        self._file, self._seen, self._begun = file, seen, ""

    def hand_on(self) -> None:
        *lines, self._begun = (self._begun + self._file.read()).split("\n")
        for line in lines:
            self._seen(line)
