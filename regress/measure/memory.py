"""Memory: what one call needs on the device, what its output holds, what it leaves; and the peak of a process."""

from __future__ import annotations

import contextlib
import gc
import itertools
from typing import Callable, Dict, Optional

from .backend import Backend, MemoryProbe
from .wire import Measured

WARM_CALLS = 2
LEAK_CALLS = 5
LONGEST_DESCRIPTION = 200


def memory_of_call(
    call: Callable[[], object], backend: Backend, probe: MemoryProbe, reset: Optional[Callable[[], object]] = None
) -> Dict[str, Measured]:
    """Bytes of one call by metric:

    `peak_memory`    the most it needs above what was there before it
    `output_memory`  what is given back when its output is dropped
    `left_memory`    what stays after five more calls whose outputs are dropped and collected; a leak grows with the calls

    Two calls come first, so that caches and workspaces that are made once do not count; their outputs are dropped and cached
    blocks given back.
    """

    def once() -> object:
        if reset is not None:
            reset()
        return call()

    def settled() -> int:
        gc.collect()
        backend.synchronize()
        return probe.current()

    with probe:
        for _ in range(WARM_CALLS):
            once()
        if reset is not None:
            reset()
        settled()
        probe.release()
        before = probe.current()
        probe.reset_peak()
        output = call()
        backend.synchronize()
        peak = probe.peak() - before
        held = settled()
        del output
        dropped = settled()
        for _ in range(LEAK_CALLS):
            once()
        left = settled() - dropped
    numbers = {"peak_memory": peak, "output_memory": held - dropped, "left_memory": left}
    return {name: _bytes(max(0, number), probe.exact) for name, number in numbers.items()}


def _bytes(number: int, exact: bool) -> Measured:
    return Measured(float(number), [float(number)], unit="B", exact=exact)


def describe_output(value: object) -> str:
    """Type and shape of what a call returns: "float32[4096, 4096]" for an array of any framework, one after the other for a
    tuple or list of them, else the type's name; at most 200 characters."""
    if isinstance(value, (tuple, list)) and value:
        words = ", ".join(_describe(part) for part in itertools.islice(value, LONGEST_DESCRIPTION))
    else:
        words = _describe(value)
    return words if len(words) <= LONGEST_DESCRIPTION else words[: LONGEST_DESCRIPTION - 1] + "…"


def _describe(value: object) -> str:
    dtype, shape = getattr(value, "dtype", None), getattr(value, "shape", None)
    if isinstance(value, type) or dtype is None or not isinstance(shape, tuple):
        return "None" if value is None else type(value).__name__
    return f"{str(dtype).rpartition('.')[2]}[{', '.join(map(str, shape))}]"


def forget_peak_rss() -> None:
    """Let `peak_rss` count from now on, where the system can."""
    with contextlib.suppress(OSError), open("/proc/self/clear_refs", "w") as file:
        file.write("5")


def peak_rss() -> int:
    """Largest resident set of this process in bytes.

    On Linux the kernel's `VmHWM` is read: it belongs to the address space, so it starts again at exec. `ru_maxrss`, which
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
