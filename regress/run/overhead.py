"""What a process costs beside measuring its cases."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import NamedTuple


class Overhead(NamedTuple):
    """What a process has cost beside measuring its cases; not what it waited for other lanes."""

    first_s: float
    """From its start until the device was open and the first case could be measured."""
    between_s: float
    """Between its cases and at its end."""
    cases: int


@dataclass
class Spent:
    """Where the time of a process goes, which starts when this is made."""

    first_s: float = 0.0
    opening_s: float = 0.0
    """Of its first case: opening the device."""
    measuring_s: float = 0.0
    _start: float = field(default_factory=time.monotonic)
    _paused: float = 0.0

    def begin(self) -> None:
        """A case has begun."""
        self.first_s = self.first_s or time.monotonic() - self._start

    def pause(self) -> None:
        """What comes until `resume` is nothing that it costs."""
        self._paused = time.monotonic()

    def resume(self) -> None:
        self._start += time.monotonic() - self._paused

    def overhead(self, cases: int) -> Overhead:
        between_s = time.monotonic() - self._start - self.first_s - self.measuring_s
        return Overhead(self.first_s + self.opening_s, between_s, cases)
