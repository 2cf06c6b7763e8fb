"""Programs in a session of their own: waited for, and ended with all that they have started."""

from __future__ import annotations

import contextlib
import math
import os
import signal
import subprocess
import time
from collections.abc import Callable

FIRST_POLL_S, LONGEST_POLL_S = 0.001, 0.05


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
    with contextlib.suppress(ChildProcessError):
        exit_code(process, math.inf)
