"""A script profiled in a process of its own, whole."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from regress.measure.wire import SCRIPT
from regress.model import Failure

STDERR = 2


@dataclass(frozen=True)
class Scripted:
    """A script that has ended, and the trace of it; None if there is none."""

    trace: Path | None
    failure: Failure | None = None
    interrupted: bool = False


def scripted(python: str, start_file: Path, words: Sequence[str], trace: Path) -> Scripted:
    """Run the script with its arguments, from here, and wait for it. What it prints on stdout goes to stderr.

    Ctrl-C ends the script as it would without a profiler, and what was recorded until then is kept."""
    trace.parent.mkdir(parents=True, exist_ok=True)
    trace.unlink(missing_ok=True)
    interrupted = False
    process = subprocess.Popen([python, str(start_file), SCRIPT, str(trace), *words], stdout=STDERR)
    try:
        process.wait()
    except KeyboardInterrupt:  # it came to the script as well
        interrupted = True
        process.wait()
    code, kept = process.returncode, trace if trace.exists() else None
    failure = None
    if code and not interrupted:
        how = f"signal {-code}" if code < 0 else f"exit code {code}"
        failure = Failure("signal" if code < 0 else "error", f"the script ended with {how}")
    if kept is None and failure is None:
        failure = Failure("error", "the script ended before a trace was written")
    return Scripted(kept, failure, interrupted)
