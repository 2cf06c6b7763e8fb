"""Which copy of an environment a side takes.

There are several (0, 1 and so on), as many as are in use at once. One that has what the side needs is taken first, else the
one that was not used for the longest time. It is locked for as long as the side is measured: shared by all who need the same.
"""

from __future__ import annotations

import fcntl
import itertools
import os
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any


class Lock:
    """A lock on a file, held for as long as this object lives."""

    def __init__(self, place: Path) -> None:
        place.parent.mkdir(parents=True, exist_ok=True)
        self._file = os.open(place, os.O_RDWR | os.O_CREAT, 0o644)
        weakref.finalize(self, os.close, self._file)

    def taken(self, kind: int) -> bool:
        """Whether the lock is free."""
        try:
            fcntl.flock(self._file, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def share(self) -> None:
        """Let others have it too who change nothing."""
        fcntl.flock(self._file, fcntl.LOCK_SH)
        os.utime(self._file)


def take(copy: Callable[[int], Any], has: Callable[[Any], bool]) -> tuple[int, Lock]:
    """The number of the copy, and the lock on it: shared if it `has` what is needed, else exclusive, to be changed."""
    ages: list[tuple[float, int]] = []
    for number in itertools.count():
        made = copy(number)
        place = _place(made)
        if not place.exists():
            break
        ages.append((place.stat().st_mtime, number))
        lock = Lock(place)
        if lock.taken(fcntl.LOCK_SH) and has(made):
            return number, lock
    for number in (*(number for _, number in sorted(ages)), len(ages)):
        lock = Lock(_place(copy(number)))
        if lock.taken(fcntl.LOCK_EX):
            return number, lock
    return take(copy, has)  # another process was faster with the new one


def _place(made: Any) -> Path:
    """The lock of one of asv's environments: beside its folder, which asv removes and makes again."""
    return Path(f"{made._path}.lock")
