"""Shell commands of the user's: a build, the fetching of a wheel, or who is told of what is new."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from pathlib import Path
from typing import BinaryIO


def shell(
    command: str,
    folder: Path,
    variables: dict[str, str],
    out: BinaryIO,
    timeout_s: float,
    given: BinaryIO | None = None,
) -> str:
    """Run a command line, with `given` on its stdin. Returns what went wrong, or nothing. Late or interrupted, all that it
    started is ended."""
    process = subprocess.Popen(
        command,
        shell=True,
        cwd=folder,
        env=variables,
        stdin=subprocess.DEVNULL if given is None else given,
        stdout=out,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        code = process.wait(timeout_s)
    except BaseException as error:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        # Not process.wait(): an interrupt inside a wait may leave its lock taken, and the next would wait for ever.
        with contextlib.suppress(ChildProcessError):
            os.waitpid(process.pid, 0)
        process.returncode = -signal.SIGKILL
        if isinstance(error, subprocess.TimeoutExpired):
            return f"timed out after {timeout_s:.3g} s"
        raise
    return f"ended by signal {-code}" if code < 0 else f"exit code {code}" if code else ""
