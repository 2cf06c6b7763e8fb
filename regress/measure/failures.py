"""Exceptions as data: their kind, their line, and where in the user's own code they came from."""

from __future__ import annotations

import os
import re
import traceback
from typing import Any, Sequence

from .wire import Failure

OUT_OF_MEMORY = re.compile("out[ _]?of[ _]?memory")
"""As frameworks say it, and as the driver calls it: CUDA_ERROR_OUT_OF_MEMORY."""


def failure_of(error: BaseException, places: Sequence[str]) -> Failure:
    """The exception as data: its kind, its line, and the innermost frame in one of the places (the suite's folder, the code
    under test), or else the innermost that is not ours."""
    from asv_runner.benchmarks.mark import SkipNotImplemented

    if isinstance(error, SkipNotImplemented):
        return Failure("skipped", last_line(error))
    text = f"{type(error).__name__} {last_line(error)}".lower()
    kind = "oom" if isinstance(error, MemoryError) or OUT_OF_MEMORY.search(text) else "error"
    detail = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    return Failure(kind, last_line(error), place_of(error, "", places), detail[-4000:])


LONGEST = 500
"""Characters of a message."""


def last_line(error: BaseException) -> str:
    """Its type and message on one line, without the notes that stand behind them: JAX adds some to every error. Of a message
    that has the traceback of another process in it, what that ends with; of a long one both ends."""
    told: Any = traceback.TracebackException(type(error), error, None)
    told.__notes__ = None
    text = str(list(told.format_exception_only())[-1]).strip()
    before, mark, others = text.partition("Traceback (most recent call last):")
    if mark:
        text = before + others.strip().splitlines()[-1]
    text = "; ".join(line.strip() for line in text.splitlines() if line.strip())
    return text if len(text) <= LONGEST else f"{text[: LONGEST // 2]} … {text[-LONGEST // 2 :]}"


def place_of(error: BaseException, otherwise: str, places: Sequence[str] = ()) -> str:
    """`file:line` of a syntax error, or of the innermost frame in one of the places, or else outside this package and the
    import machinery. The file is given from the top of its repository."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{_in_repository(error.filename)}:{error.lineno}"
    here = os.path.dirname(os.path.abspath(__file__))
    frames = list(reversed(traceback.extract_tb(error.__traceback__)))
    inside = [frame for frame in frames if frame.filename.startswith(tuple(place + os.sep for place in places))]
    for frame in inside + frames:
        outside = not frame.filename.startswith((here, "<")) and "asv_runner" not in frame.filename
        if outside and not frame.filename.endswith(os.path.join("importlib", "__init__.py")):
            return f"{_in_repository(frame.filename)}:{frame.lineno}"
    return otherwise


def _in_repository(path: str) -> str:
    """The path as the repository has it that the file is in: the same for both sides, whose worktrees lie elsewhere, and what
    others can open; else as it is."""
    top = os.path.dirname(path)
    while top != os.path.dirname(top):
        if os.path.exists(os.path.join(top, ".git")):  # a folder, or the file of a worktree
            return os.path.relpath(path, top)
        top = os.path.dirname(top)
    return path
