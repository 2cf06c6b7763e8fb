"""How much the framework's allocator has handed out: at the end of an entry, and at most while it was open.

An allocator keeps one peak. So it is reset when an entry begins, after all open entries have noted the peak so far. Reading it
costs more than the rest of an entry, because torch returns all its statistics at once. So the first entries of an operation are
read, and a random share of later ones: at fixed intervals it might always be the same layer of a network.
"""

from __future__ import annotations

import random
from collections import defaultdict

from regress.measure.backend import Backend, MemoryProbe
from regress.profiler.running import Running

FIRST = 32
SHARE = 0.1


class Memory:
    """The caller holds a lock around every call."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._probe: MemoryProbe | None = None
        self._open: list[Running] = []
        self._seen: defaultdict[str, int] = defaultdict(int)
        self._random = random.Random(0)

    def begin(self, entry: Running) -> None:
        seen = self._seen[entry.operation]
        if seen >= FIRST and self._random.random() >= SHARE:
            return
        self._seen[entry.operation] = seen + 1
        if self._probe is None:
            self._probe = self._find()
            if self._probe is None:
                return
        if self._open:
            self._tell(self._probe.levels()[1])
        self._probe.reset_peak()
        self._open.append(entry)

    def end(self, entry: Running) -> None:
        """Note what is allocated now in the entry, and the peak in all open ones, if the entry is one that is read."""
        if self._probe is None or entry not in self._open:
            return
        entry.memory_bytes, peak = self._probe.levels()
        self._tell(peak)
        self._open.remove(entry)

    def _tell(self, peak: int) -> None:
        for entry in self._open:
            if entry.peak_bytes is None or peak > entry.peak_bytes:
                entry.peak_bytes = peak

    def _find(self) -> MemoryProbe | None:
        """Only allocators that count by themselves, not those that need a hook or stand for a whole device."""
        probe = self._backend.memory()
        return probe if probe is not None and probe.name in ("torch", "scripted") else None
