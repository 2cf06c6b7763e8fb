"""What a process costs beside measuring its cases."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from regress.measure.wire import Proposal, Task
from regress.model import Duration, Round


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
        """Time until `resume` does not count."""
        self._paused = time.monotonic()

    def resume(self) -> None:
        self._start += time.monotonic() - self._paused

    def overhead(self, cases: int) -> Overhead:
        between_s = time.monotonic() - self._start - self.first_s - self.measuring_s
        return Overhead(self.first_s + self.opening_s, between_s, cases)


class OverheadClock:
    """Adds up where the time of each benchmark goes."""

    def __init__(self) -> None:
        self.spent: dict[str, Duration] = {}

    def answered(self, reply: Proposal | Round) -> None:
        """A visit has ended."""
        if isinstance(reply, Proposal):
            self.add(Duration(reply.name, 0, 0.0, reply.setup_s, reply.seconds - reply.setup_s))
        else:
            self.add(Duration(reply.name, 0, 0.0, reply.setup_s, 0.0, reply.duration_s - reply.setup_s))

    def unanswered(self, task: Task, seconds: float) -> None:
        """A visit has ended with its process, or was given up."""
        first = task.protocol is None
        self.add(Duration(task.name, first_visits_s=seconds if first else 0.0, rounds_s=0.0 if first else seconds))

    def add(self, more: Duration) -> None:
        had = self.spent.get(more.name, Duration(more.name))
        kinds = ("setup_cache_s", "setup_s", "first_visits_s", "rounds_s")
        self.spent[more.name] = replace(had, **{kind: getattr(had, kind) + getattr(more, kind) for kind in kinds})
