"""Memory probes: what one call needs at its peak, on the device or of the whole process."""

from __future__ import annotations

import gc
from typing import Callable, Optional

from .backend import Backend, MemoryProbe
from .wire import Measured

WARM_CALLS = 2


def peak_of_call(
    call: Callable[[], object], backend: Backend, probe: MemoryProbe, reset: Optional[Callable[[], object]] = None
) -> Measured:
    """Peak of the requested bytes of one call above what was there before it.

    Two calls come first, so that caches and workspaces that are made once do not count; their outputs are dropped and cached
    blocks given back.
    """
    for _ in range(WARM_CALLS):
        if reset is not None:
            reset()
        call()
    if reset is not None:
        reset()
    gc.collect()
    backend.synchronize()
    probe.release()
    before = probe.current()
    probe.reset_peak()
    output = call()
    backend.synchronize()
    peak = probe.peak() - before
    del output
    return Measured(float(peak), [float(peak)], unit="B", exact=True)


def peak_rss() -> int:
    """Largest resident set of this process in bytes.

    On Linux the kernel's `VmHWM` is read: it belongs to the address space, so it starts anew at exec. `ru_maxrss`, which
    asv_runner reads elsewhere, is inherited: a bare Python started by a large parent reports the parent's size.
    """
    try:
        with open("/proc/self/status", "rb") as status:
            for line in status:
                if line.startswith(b"VmHWM:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    from asv_runner.benchmarks._maxrss import get_maxrss

    return int(get_maxrss())
