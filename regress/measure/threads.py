"""Threads that a case leaves at work: those behind it would be measured beside them, or wait for them."""

from __future__ import annotations

import contextlib
import re
import threading
import time
from typing import Dict, Iterator, List, Set

LOOK_S = 0.05
"""How long a thread that is new is watched. A pool that waits for work costs a case this much, and is no one's trouble."""
BUSY_SHARE = 0.1


@contextlib.contextmanager
def at_work() -> Iterator[List[str]]:
    """The list holds, once this is closed, the threads that were started meanwhile and are still working. Nothing but the end
    of the process ends them."""
    known = set(threading.enumerate())
    found: List[str] = []
    try:
        yield found
    finally:
        found += _busy(set(threading.enumerate()) - known)


def _busy(threads: Set[threading.Thread]) -> List[str]:
    before = _wanted_s(threads)
    if not before:
        return []
    time.sleep(LOOK_S)
    after = _wanted_s(threads)
    return sorted(name for name in after if after[name] - before.get(name, 0.0) > BUSY_SHARE * LOOK_S)


def _wanted_s(threads: Set[threading.Thread]) -> Dict[str, float]:
    """By name, without the numbers that Python counts up, the seconds for which threads have run or waited for a processor.
    Empty if the system does not tell; Linux does."""
    found: Dict[str, float] = {}
    for thread in threads:
        with contextlib.suppress(OSError, ValueError):  # it has ended
            with open(f"/proc/self/task/{thread.native_id}/schedstat") as file:
                ran_ns, waited_ns, _ = map(int, file.read().split())
            name = re.sub(r"[-_]\d+", "", thread.name)
            found[name] = found.get(name, 0.0) + (ran_ns + waited_ns) * 1e-9
    return found
