"""Turns of the lanes that work at the same time: all of them go on, but for a case that is measured alone.

The driver gives the turns, so if a process ends, its lane's thread still hands the turn back.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import NamedTuple

from regress.measure.wire import Task
from regress.model import Case
from regress.run.gpus import Gpu
from regress.run.homes import apart
from regress.run.interrupts import Interrupt

POLL_S = 0.2
"""How long a lane that waits for a turn may take to notice Ctrl-C."""


class TurnStep(NamedTuple):
    """What a process is asked to do at a time."""

    tasks: Sequence[Task]
    alone: bool = False


class Turns:
    """Who may work now. A lane that waits to be alone comes first: the others let it go ahead at the end of their step.

    `alone` are the cases that nothing may be beside, no other case and no process that starts or ends: the host has a part in
    their values. `lanes` are the GPUs of each lane that is at it; where there is no other, nobody waits.
    """

    def __init__(self, lanes: Sequence[Sequence[Gpu]] = ((),), alone: Collection[Case] = ()) -> None:
        self._lanes, self._cases = lanes, alone
        self._changed = threading.Condition()
        self._working = self._waiting = 0
        """Lanes that work beside each other, and those that wait to be alone."""
        self._alone = False

    def alone(self, task: Task) -> bool:
        """Whether the task has to wait until no other lane works."""
        return len(self._lanes) > 1 and Case.of(task) in self._cases

    def beside(self, task: Task, gpus: Sequence[Gpu]) -> int:
        """How many GPUs measure while the task is on these; 1 where it is all that is measured."""
        others = [lane for lane in self._lanes if not apart(lane, gpus)]
        return len({*gpus}.union(*others)) if len(self._lanes) > 1 and others and not self.alone(task) else 1

    def steps(self, tasks: Sequence[Task]) -> list[TurnStep]:
        """The tasks of one process, in their order. Between steps another lane may be alone, so one that is not is short;
        those that are come together, because each turn is waited for."""
        if len(self._lanes) < 2 or not self._cases:
            return [TurnStep(tasks)]
        alone = [task for task in tasks if self.alone(task)]
        return [
            *(TurnStep([task]) for task in tasks if not self.alone(task)),
            *([TurnStep(alone, alone=True)] if alone else ()),
        ]

    @contextlib.contextmanager
    def working(self, interrupt: Interrupt) -> Iterator[None]:
        """The lane works, beside others. Raises KeyboardInterrupt if the driver is interrupted, like all waiting here."""
        if len(self._lanes) < 2:
            yield
            return
        with self._changed:
            self._wait(lambda: not self._alone and not self._waiting, interrupt)
            self._working += 1
        try:
            yield
        finally:
            with self._changed:
                self._working -= 1
                self._changed.notify_all()

    @contextlib.contextmanager
    def taken(self, alone: bool, interrupt: Interrupt) -> Iterator[None]:
        """A step of a lane that works; after it, lanes that wait to be alone go first."""
        with self._by_itself(interrupt) if alone else contextlib.nullcontext():
            yield
        if self._waiting:
            with self._changed:
                self._step_aside(lambda: not self._alone and not self._waiting, interrupt)

    @contextlib.contextmanager
    def _by_itself(self, interrupt: Interrupt) -> Iterator[None]:
        with self._changed:
            self._waiting += 1
            try:
                self._step_aside(lambda: not self._alone and not self._working, interrupt)
                self._alone = True
            finally:
                self._waiting -= 1
                self._changed.notify_all()
        try:
            yield
        finally:
            with self._changed:
                self._alone = False
                self._changed.notify_all()

    def _step_aside(self, free: Callable[[], bool], interrupt: Interrupt) -> None:
        """Count as not working until it is free."""
        self._working -= 1
        self._changed.notify_all()
        try:
            self._wait(free, interrupt)
        finally:
            self._working += 1

    def _wait(self, free: Callable[[], bool], interrupt: Interrupt) -> None:
        while not self._changed.wait_for(free, POLL_S):
            interrupt.check()
