"""The profiler inside a program: what its operations take on the device, without waiting for it.

    from regress.profiler import get_profiler

    profiler = get_profiler()

    @profiler.profile_function(operation="forward")
    def forward(x): ...

    with profiler.profile("optimizer", size=1024):
        step()
    profiler.print_summary()
    profiler.export_json("profile.json")

Importing it imports neither torch nor CuPy, and opens no device: the first entry does.

core       GPUProfiler
ledger     entries, from their events to the sums
timeline   events in the current stream, and when they passed
trace      what the device did between two moments
memory     allocated memory
running    an entry that is still open
totals     the sums of an operation

regress.profiles has the exported document, regress.traces.bottlenecks what limits an operation.
"""

from __future__ import annotations

import threading

from regress.profiler.core import GPUProfiler

__all__ = ["GPUProfiler", "get_profiler"]

_LOCK = threading.Lock()
_profiler: GPUProfiler | None = None


def get_profiler() -> GPUProfiler:
    """The one profiler of this program, made when it is asked for first."""
    global _profiler
    with _LOCK:
        if _profiler is None:
            _profiler = GPUProfiler()
        return _profiler
