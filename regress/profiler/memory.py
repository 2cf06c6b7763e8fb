"""How much the framework's allocator has handed out: at the end of an entry, and at most while it was open.

An allocator keeps one peak. So it is set back when an entry begins, after all that are open have been told what it was until
then. Reading it costs more than the rest of an entry: torch tells all its statistics or none. So the first entries of an
operation are read, and later ones now and then, by lot: in turn, one layer of a network might always be the one.
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
        """Tell the entry what is allocated now, and what was reached to all that are open; where it is one that is read."""
        if self._probe is None or entry not in self._open:
            return
        entry.memory_bytes, peak = self._probe.levels()
        self._tell(peak)
        self._open.remove(entry)

    def _tell(self, peak: int) -> None:
        for each in self._open:
            if each.peak_bytes is None or peak > each.peak_bytes:
                each.peak_bytes = peak

    def _find(self) -> MemoryProbe | None:
        """Allocators that count by themselves; what would have to be hooked into, or stands for a whole device, is left
        alone."""
        probe = self._backend.memory()
        return probe if probe is not None and probe.name in ("torch", "scripted") else None
