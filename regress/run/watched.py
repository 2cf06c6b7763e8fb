"""A tool that is run with a program below it: watched while it works, and ended with all that it has started."""

from __future__ import annotations

import contextlib
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from regress.children import exit_code, kill, send_signal, start

GRACE_S = 10.0
"""After Ctrl-C, for the tool to write down what it has."""


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
        process = start(
            list(words),
            env=dict(variables),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
        )
        lines, timed_out, interrupted = _Lines(told, seen), False, False
        try:
            timed_out = exit_code(process, timeout_s, lines.hand_on) is None
        except KeyboardInterrupt:
            interrupted = True
            with contextlib.suppress(KeyboardInterrupt):  # a second one does not wait for it
                send_signal(process, signal.SIGINT)
                exit_code(process, GRACE_S, lines.hand_on)
        kill(process)  # or what it has left running
        lines.hand_on()
    return Ended(process.returncode, log.read_text(encoding="utf-8", errors="replace"), timed_out, interrupted)


class _Lines:
    """The lines of a file that grows."""

    def __init__(self, file: TextIO, seen: Callable[[str], None]) -> None:
        self._file, self._seen, self._begun = file, seen, ""

    def hand_on(self) -> None:
        *lines, self._begun = (self._begun + self._file.read()).split("\n")
        for line in lines:
            self._seen(line)
