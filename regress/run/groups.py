"""Processes of several sides that are alive at once and take windows of the host's clock in turn, on one core.

What disturbs the host's clock belongs to the core and to the moment, so neighbouring windows share it: between two sides of the
same code the ratio of such windows varies by 1 % where that of rounds one after the other varies by 20 %. The driver says in
which order the windows come, and sleeps; each process hands over to the next by itself. Everything else in a visit (set-up,
device time, memory) is done by one side after the other.
"""

from __future__ import annotations

import contextlib
import math
import os
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from regress.measure.stopping import PATIENCE, error_of_median, windows_enough
from regress.measure.windows import least_disturbed
from regress.measure.wire import Enough, Ready, Taken, TakeWindows, Task, Visit
from regress.model import Against, Protocol, Round
from regress.run.environments import Prepared
from regress.run.processes import Processes
from regress.run.servers import GroupPlace, Server, arriving

BUSY = 0.1
"""A process whose threads compute for this share of the time while it waits disturbs the others' windows. Threads of CUDA and
of BLAS do so for 2 to 3 %."""
AT_A_TIME = 5
"""Windows of a side before another has its turn, where several threads have to rest in between."""
SEVERAL_BATCH, SEVERAL_LONGEST_S = 20, 0.5
"""After this many windows of several threads it is checked whether they are enough; and how long they may take: if others use
the cores, each takes some milliseconds."""
GRACE_S = 10.0
"""Beyond a case's timeout: what a worker may need around it."""


NextOf = Callable[[str, float], Ready | Round]
"""What the process of that side says next, within this many seconds."""


class Parted(Exception):
    """A case cannot be measured in turn with the other side's, at least this time; the message says why."""


@dataclass
class _Windows:
    """What one process has taken of a metric so far."""

    wall_s: list[float] = field(default_factory=list)
    net_s: list[float] = field(default_factory=list)

    def add(self, taken: Taken) -> None:
        self.wall_s += taken.wall_s
        self.net_s += taken.net_s


class Group:
    """One process of each side. Use it as a context manager: leaving it ends them. `within` bounds what is waited for."""

    def __init__(
        self, processes: Processes, sides: Sequence[Prepared], order: int, within: Callable[[float], float]
    ) -> None:
        self._origin, self._within = processes.origin(order), within
        self._seats = {side.side.name: number for number, side in enumerate(sides)}
        self._commits = {side.side.name: side.side.full_label for side in sides}
        self.servers: dict[str, Server] = {}
        self._ending = contextlib.ExitStack()
        pipes = [os.pipe() for _ in sides]
        self._hands = tuple(write for _, write in pipes)
        try:
            for number, side in enumerate(sides):
                place = GroupPlace(number, pipes[number][0], self._hands)
                server = self._ending.enter_context(processes.get(side, order, place))
                self.servers[side.side.name] = server
        except BaseException:
            self._close_hands()
            self._ending.close()
            raise
        finally:
            for read, _ in pipes:
                os.close(read)

    def __enter__(self) -> Group:
        return self

    def __exit__(self, *error: Any) -> None:
        self._close_hands()
        self._ending.__exit__(*error)

    def _close_hands(self) -> None:
        for fd in self._hands:
            os.close(fd)

    def measure(self, tasks: Sequence[Task], references: Sequence[str], next_of: NextOf) -> list[Round]:
        """The rounds of one case, one a side, whose windows come in this order and its reverse. Those of `references` are what
        the others are compared with; where none of them has the case, its first side is.

        Raises Parted if the case cannot be measured so, Died and TimedOut if a process ends or hangs.
        """
        limit_s = sum(task.timeout_s + GRACE_S for task in tasks)
        by_side, protocol = {task.side: task for task in tasks}, tasks[0].protocol
        assert protocol is not None
        compared_with = [reference for reference in references if reference in by_side] or [
            min(by_side, key=self._seats.__getitem__)
        ]
        said: dict[str, Ready | Round] = {}
        against: dict[str, list[Against]] = {side: [] for side in by_side}

        def listen(side: str) -> None:
            said[side] = next_of(side, limit_s)
            failed = said[side]
            if isinstance(failed, Round) and failed.failure is not None:
                self._end_visits(
                    [other for other, message in said.items() if isinstance(message, Ready)], next_of, limit_s
                )
                raise Parted(_why(failed))

        for side, task in by_side.items():
            self.servers[side].send(Visit([task]))
            listen(side)
        while ready := [side for side, message in said.items() if isinstance(message, Ready)]:
            metrics = {message.metric for message in said.values() if isinstance(message, Ready)}
            metric = min(metrics)  # host_time, which a side that waits for the device has not, comes before wall_time
            at_it = [side for side in ready if said[side] == Ready(metric)]
            windows = self._taken([by_side[side] for side in at_it], protocol, limit_s, next_of)
            for side in at_it:
                against[side] += self._against(metric, side, windows, compared_with, protocol)
                self.servers[side].send(Enough())
                listen(side)
        rounds = [message for message in said.values() if isinstance(message, Round)]
        return [replace(round, against=against[round.side]) for round in rounds]

    def _end_visits(self, sides: Sequence[str], next_of: NextOf, limit_s: float) -> None:
        """Let sides that are ready end their visits without windows, so that they give back what another may have lacked."""
        for side in sides:
            self.servers[side].send(Enough())
            while isinstance(next_of(side, limit_s), Ready):
                self.servers[side].send(Enough())

    def _taken(self, tasks: Sequence[Task], protocol: Protocol, limit_s: float, next_of: NextOf) -> dict[str, _Windows]:
        """By side: windows, until the difference of each side to the first is known, or there are as many as may be."""
        by_side = {task.side: _Windows() for task in tasks}
        began, (first, *others) = time.monotonic(), by_side.values()
        batch = protocol.windows if protocol.pinned else min(protocol.windows, SEVERAL_BATCH)
        longest_s = PATIENCE * tasks[0].timeout_s * len(tasks) / 2
        if not protocol.pinned:
            longest_s = min(longest_s, SEVERAL_LONGEST_S)
        while True:
            self._add_windows(by_side, protocol, batch, limit_s, next_of)
            error = max((_difference(other, first, protocol)[1] for other in others), default=0.0)
            if windows_enough(protocol, len(first.wall_s), batch, error) or time.monotonic() - began > longest_s:
                return by_side

    def _add_windows(
        self, by_side: Mapping[str, _Windows], protocol: Protocol, count: int, limit_s: float, next_of: NextOf
    ) -> None:
        """Have this many more windows taken by each side."""
        order = _in_order([self._seats[side] for side in by_side], count, 1 if protocol.pinned else AT_A_TIME)
        names = {self.servers[side]: side for side in by_side}
        for server in reversed(names):  # the one that begins is told last: then the others are waiting
            server.send(TakeWindows(order))
        failed = None
        for server, taken in arriving(list(names), self._within(limit_s)):
            if isinstance(taken, Taken):
                by_side[names[server]].add(taken)
                if protocol.pinned and taken.busy > BUSY:
                    failed = failed or f"it computes for {taken.busy:.0%} of the time while it waits for its turn"
                continue
            failed = _why(taken)
            del names[server]
            for side in names.values():  # they may wait for a turn that never comes
                os.write(self._hands[self._seats[side]], b"." * len(order))
        if failed is not None:
            self._end_visits(list(names.values()), next_of, limit_s)
            raise Parted(failed)

    def _against(
        self, metric: str, side: str, windows: Mapping[str, _Windows], references: Sequence[str], protocol: Protocol
    ) -> Iterator[Against]:
        """How the side's windows stand to those of each reference that has some."""
        for reference in references:
            if reference != side and reference in windows:
                ratio, error, count = _difference(windows[side], windows[reference], protocol)
                if count:
                    yield Against(metric, reference, self._commits[reference], ratio, error, count, *self._origin)


def _why(said: Any) -> str:
    """Why a process has given something else than was asked for."""
    failure = getattr(said, "failure", None)
    where = f" ({said.side})" if isinstance(said, Round) else ""
    return f"{failure.message or failure.kind}{where}" if failure is not None else f"its process said {said}"


def _in_order(seats: Sequence[int], windows: int, at_a_time: int) -> list[int]:
    """Seats, as many windows of each: an order and its reverse in turn, so that a drift of the core hits all alike."""
    order: list[int] = []
    for index, first in enumerate(range(0, windows, at_a_time)):
        for seat in seats if index % 2 == 0 else reversed(seats):
            order += [seat] * min(at_a_time, windows - first)
    return order


def _difference(one: _Windows, other: _Windows, protocol: Protocol) -> tuple[float, float, int]:
    """Logarithm of the ratio of a side's windows to another's, its standard error, and how many windows a side it rests on.

    Of one thread: the median over neighbouring windows. Where several threads work, that of each side's least disturbed ones.
    """
    if protocol.pinned:
        pairs = zip(one.net_s, other.net_s, strict=True)
        differences = [math.log(mine / theirs) for mine, theirs in pairs if mine > 0 and theirs > 0]
        if not differences:
            return math.nan, math.inf, 0
        return statistics.median(differences), error_of_median(differences), len(differences)
    mine, theirs = (_undisturbed(windows) for windows in (one, other))
    if not mine or not theirs:
        return math.nan, math.inf, 0
    error = math.hypot(error_of_median(mine), error_of_median(theirs))
    return statistics.median(mine) - statistics.median(theirs), error, min(len(mine), len(theirs))


def _undisturbed(windows: _Windows) -> list[float]:
    """Logarithms of the side's windows."""
    return [math.log(seconds) for seconds in least_disturbed(windows.wall_s, windows.net_s)]
