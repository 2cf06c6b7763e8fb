"""Which copy of an environment a side takes.

There are several (0, 1 and so on), as many as are in use at once. One that has what the side needs is taken first, else the
one that was not used for the longest time. It is locked for as long as the side is measured: shared by all who need the same.
"""

from __future__ import annotations

import itertools
import os
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

from regress.files import lock


class Lock:
    """A lock on a file, held for as long as this object lives."""

    def __init__(self, place: Path) -> None:
        place.parent.mkdir(parents=True, exist_ok=True)
        self._file = os.open(place, os.O_RDWR | os.O_CREAT, 0o644)
        self.close = weakref.finalize(self, os.close, self._file)

    def taken(self, *, shared: bool) -> bool:
        """Whether the lock was free, and is this one's now."""
        return lock(self._file, shared=shared, wait=False)

    def share(self) -> None:
        """Let others have it too who change nothing."""
        lock(self._file, shared=True)
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
        held = Lock(place)
        if held.taken(shared=True) and has(made):
            return number, held
    for number in (*(number for _, number in sorted(ages)), len(ages)):
        held = Lock(_place(copy(number)))
        if held.taken(shared=False):
            return number, held
    return take(copy, has)  # another process was faster with the new one


def _place(made: Any) -> Path:
    """The lock of one of asv's environments: beside its folder, which asv removes and makes again."""
    return Path(f"{made._path}.lock")
