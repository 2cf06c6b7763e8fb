"""`cudacold_*`: from nothing to the first result."""

from __future__ import annotations

import statistics
from typing import Any

from ..backend import Backend
from ..declared import ready, sampling
from ..wire import Measured, Protocol, Task
from .common import Call, Visited

COLD_CALLS = 5
STEADY_FROM = 2
"""The first calls of a cold start that are left out of its steady time."""


def cold_start(benchmark: Any, call: Call, task: Task, backend: Backend, started: float) -> Visited:
    """Seconds from nothing to the first result, and what compiling cost of it. The process is fresh, and so are its
    compile caches; `started` is the host clock before the suite was imported."""
    before = ready(benchmark)
    visited = Visited(task.protocol or sampling(Protocol("cold_time"), benchmark))
    if task.protocol is None:
        call()
        backend.synchronize()
        return visited
    taken = []
    for _ in range(COLD_CALLS):
        if before is not None:
            before()
        backend.synchronize()
        start = backend.now()
        call()
        backend.synchronize()
        taken.append(backend.now() - start)
        if len(taken) == 1:
            first_result_s = backend.now() - started
    steady = taken[STEADY_FROM:]
    compiling_s = max(0.0, taken[0] - statistics.median(steady))
    visited.values = {
        "cold_time": Measured(first_result_s, [first_result_s]),
        "compile_time": Measured(compiling_s, [compiling_s]),
        "wall_time": Measured(statistics.median(steady), steady),
    }
    return visited
