"""How much the framework's allocator has handed out: at the end of an entry, and at most while it was open.

An allocator keeps one peak. So it is set back when an entry begins, after all that are open have been told what it was until
then.
"""

from __future__ import annotations

from typing import Protocol

from regress.measure.backend import Backend, MemoryProbe


class Peaked(Protocol):
    """Something that is told of a peak while it is open."""

    peak_bytes: int | None


class Memory:
    """The caller holds a lock around every call."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._probe: MemoryProbe | None = None
        self._open: list[Peaked] = []

    def begin(self, entry: Peaked) -> None:
        if self._probe is None:
            self._probe = self._find()
        if self._probe is not None:
            if self._open:
                self._tell(self._probe.levels()[1])
            self._probe.reset_peak()
        self._open.append(entry)

    def end(self, entry: Peaked) -> int | None:
        """Bytes that are allocated now; what the entry has reached is told to it and to all that are open."""
        current = None
        if self._probe is not None:
            current, peak = self._probe.levels()
            self._tell(peak)
        if entry in self._open:
            self._open.remove(entry)
        return current

    def _tell(self, peak: int) -> None:
        for each in self._open:
            each.peak_bytes = max(each.peak_bytes or 0, peak)

    def _find(self) -> MemoryProbe | None:
        """Allocators that count by themselves; what would have to be hooked into, or stands for a whole device, is left
        alone."""
        probe = self._backend.memory()
        return probe if probe is not None and probe.name in ("torch", "scripted") else None
