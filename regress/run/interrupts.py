"""What becomes of workers when the driver is stopped: by Ctrl-C, which every thread that waits for one must notice, or by a
kill, after which a process of its own ends them."""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
import sys
from pathlib import Path

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
