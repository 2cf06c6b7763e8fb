"""Programs that we start: none is left behind when we are interrupted, or when it takes too long."""

from __future__ import annotations

import contextlib
import math
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

FIRST_POLL_S, LONGEST_POLL_S = 0.001, 0.05
INTERRUPTS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def start(
    words: str | Sequence[str],
    *,
    alone: bool = True,
    end: Callable[[subprocess.Popen[bytes]], object] | None = None,
    **options: Any,
) -> subprocess.Popen[bytes]:
    """Start a program, with the options of subprocess.Popen: `alone` in a session of its own, which no Ctrl-C in the terminal
    reaches.

    Popen leaves behind what it has started when Ctrl-C comes before it returns; here `end` ends it, or else `kill`. Raises
    OSError.
    """
    process = None
    try:
        with _interrupted_later():
            process = subprocess.Popen(words, start_new_session=alone, **options)
    except BaseException:
        if process is not None:
            (end or kill)(process)
            process.wait()
        raise
    return process


@contextlib.contextmanager
def _interrupted_later() -> Iterator[None]:
    """What interrupts us while the block runs does so at its end. Not by blocking the signals: a program would inherit that."""
    handlers, came = dict[signal.Signals, Any](), list[int]()
    try:
        if threading.current_thread() is threading.main_thread():  # the others are not interrupted
            for number in INTERRUPTS:
                if callable(handler := signal.getsignal(number)):
                    handlers[number] = handler
                    signal.signal(number, lambda number, _: came.append(number))
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        for again in came:
            signal.raise_signal(again)


def ended(process: subprocess.Popen[bytes], timeout_s: float, check: Callable[[], None] = lambda: None) -> int:
    """The exit code of a program, once it has one; late (TimeoutExpired) or interrupted, it is killed. `check` is called now
    and then, and may raise what interrupts."""
    try:
        code = exit_code(process, timeout_s, check)
    except BaseException:
        kill(process)
        raise
    if code is None:
        kill(process)
        raise subprocess.TimeoutExpired(process.args, timeout_s)
    return code


def exit_code(
    process: subprocess.Popen[bytes], timeout_s: float, meanwhile: Callable[[], None] = lambda: None
) -> int | None:
    """The code with which a program ends, negative for a signal; None if it does not in that time. `meanwhile` is called now
    and then.

    Not Popen.wait(): an interrupt inside a wait may leave its lock taken, and the next would wait forever."""
    until, poll_s = time.monotonic() + timeout_s, FIRST_POLL_S
    while True:
        pid, status = os.waitpid(process.pid, os.WNOHANG)
        if pid:
            process.returncode = os.waitstatus_to_exitcode(status)
            return process.returncode
        meanwhile()
        if time.monotonic() >= until:
            return None
        time.sleep(poll_s)
        poll_s = min(2 * poll_s, LONGEST_POLL_S)


def send_signal(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    """Send it to a program and all that it has started."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)


def kill(process: subprocess.Popen[bytes]) -> None:
    """End a program and all that it has started."""
    send_signal(process, signal.SIGKILL)
    try:
        exit_code(process, math.inf)
    except ChildProcessError:  # it has been waited for; if we were interrupted right then, Popen does not know it yet
        process.poll()
