"""A process's place in a group of processes that take windows in turn on one core.

The driver gives the order, and sleeps. After its turn, a process writes a byte into the next one's pipe, which takes some
microseconds: neighbouring windows find the core in the same state.
"""

from __future__ import annotations

import contextlib
import os
import time
from typing import List, Sequence, Tuple

from .channel import Channel, moved
from .windows import HostWindows, Window, others_s
from .wire import Enough, Ready, Taken, TakeWindows

LEAST_WAITED_S = 5e-3
"""Of less it cannot be told whether the process has rested."""


class Seat:
    """The place of this process: its number, the pipe from which its turns come, and all the pipes to hand over by."""

    def __init__(self, channel: Channel, number: int, turn: int, hands: Sequence[int]) -> None:
        self._channel, self._number = channel, number
        self._turn, self._hands = moved(turn), [moved(fd) for fd in hands]
        self.waited_s = 0.0
        """Seconds for which this process was not at work because others were, so far."""
        own = [self._turn, *self._hands]
        # Children that a benchmark starts hold no pipe that somebody waits at.
        os.register_at_fork(after_in_child=lambda: _close(own))

    @property
    def others(self) -> int:
        return len(self._hands) - 1

    def windows(self, metric: str, windows: HostWindows) -> List[Window]:
        """Windows of this process, taken as the driver says; it is asked first."""
        collected: List[Window] = []
        asked = time.perf_counter()
        self._channel.send(Ready(metric))
        while not isinstance(command := self._channel.receive(), Enough):
            self.waited_s += time.perf_counter() - asked
            if not isinstance(command, TakeWindows):
                raise EOFError("the driver has gone")
            taken, busy = self._taken(command.order, windows)
            collected += taken
            asked = time.perf_counter()
            self._channel.send(Taken([window.wall_s for window in taken], [window.net_s for window in taken], busy))
        self.waited_s += time.perf_counter() - asked
        return collected

    def _taken(self, order: Sequence[int], windows: HostWindows) -> Tuple[List[Window], float]:
        """The windows, and the share of the time at others' turns in which this process computed all the same."""
        own: List[Window] = []
        waited_s = computed_s = 0.0
        for place, whose in enumerate(order):
            if whose != self._number:
                continue
            if place and order[place - 1] != self._number:
                start, before_s = time.perf_counter(), others_s()
                os.read(self._turn, 1)
                waited_s += time.perf_counter() - start
                computed_s += others_s() - before_s
            own.append(windows.take())
            if place + 1 < len(order) and order[place + 1] != self._number:
                windows.rest()
                os.write(self._hands[order[place + 1]], b".")
        self.waited_s += waited_s
        return own, computed_s / waited_s if waited_s > LEAST_WAITED_S else 0.0


def _close(descriptors: Sequence[int]) -> None:
    for fd in descriptors:
        with contextlib.suppress(OSError):
            os.close(fd)
