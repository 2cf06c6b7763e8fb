"""Shell commands of the user's: a build, the fetching of a wheel, or who is told of what is new. And why one failed."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import BinaryIO

from regress.children import ended, start

_ERROR = re.compile(r"error: *\S", re.IGNORECASE)
_OF_A_FRONTEND = re.compile(
    r"subprocess-exited-with-error|metadata-generation-failed|failed (building|to build)|could not build|CalledProcessError"
    r"|command .* failed with",
    re.IGNORECASE,
)
"""Says only that something below it failed."""


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
    process = start(
        command,
        shell=True,
        cwd=folder,
        env=variables,
        stdin=subprocess.DEVNULL if given is None else given,
        stdout=out,
        stderr=subprocess.STDOUT,
    )
    try:
        code = ended(process, timeout_s)
    except subprocess.TimeoutExpired:
        return f"timed out after {timeout_s:g} s"
    return f"ended by signal {-code}" if code < 0 else f"exit code {code}" if code else ""


def why(problem: str, *printed: str) -> str:
    """What went wrong with a command, as `shell` says it, and the line of what it printed that says why: the first with an
    error in it, else the last. Build tools end with words of their own about the tool below them that failed."""
    lines = [[line.strip() for line in text.splitlines() if line.strip()] for text in printed]
    errors = [line for block in lines for line in block if _ERROR.search(line) and not _OF_A_FRONTEND.search(line)]
    last = [block[-1] for block in lines if block]
    return f"{problem}: {(errors or last)[0]}" if last else f"{problem}, and nothing was printed"
