"""A script under torch.profiler, in a process of its own: the whole program, as `python SCRIPT` would run it."""

from __future__ import annotations

import os
import runpy
import sys
import traceback
from typing import List

from .backend.recording import NoProfiler, TorchProfiler

NO_PROFILER, INTERRUPTED = 250, 130
"""Exit codes beside the script's own."""


def run(trace: str, words: List[str]) -> int:
    """Run the script with its arguments, and write the trace, however it ends; the exit code."""
    sys.argv[:] = words
    sys.path.insert(0, os.path.dirname(os.path.abspath(words[0])))
    try:
        profiler = TorchProfiler()
    except NoProfiler as why:
        sys.stderr.write(f"{why}\n")
        return NO_PROFILER
    with profiler:
        code = _ran(words[0])
    profiler.write(trace)
    return code


def _ran(script: str) -> int:
    try:
        runpy.run_path(script, run_name="__main__")
    except SystemExit as left:
        if left.code is None or isinstance(left.code, int):
            return left.code or 0
        sys.stderr.write(f"{left.code}\n")
        return 1
    except KeyboardInterrupt:
        return INTERRUPTED
    except BaseException:  # it ends as under Python alone
        traceback.print_exc()
        return 1
    return 0
