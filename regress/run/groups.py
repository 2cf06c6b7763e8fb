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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from regress.measure.stopping import PATIENCE, error_of_median, windows_enough
from regress.measure.windows import least_disturbed
from regress.measure.wire import Enough, Ready, Taken, TakeWindows, Task, Visit
from regress.model import Against, Protocol, Round
from regress.run.deadline import Deadline
from regress.run.environments import Prepared
from regress.run.overhead import OverheadClock, Spent
from regress.run.processes import Processes
from regress.run.replies import Replies, limit_s
from regress.run.servers import GroupPlace, Server, arriving

BUSY = 0.1
"""A process whose threads compute for this share of the time while it waits disturbs the others' windows. Threads of CUDA and
of BLAS do so for 2 to 3 %."""
AT_A_TIME = 5
"""Windows of a side before another has its turn, where several threads have to rest in between."""
SEVERAL_BATCH, SEVERAL_LONGEST_S = 20, 0.5
"""After this many windows of several threads it is checked whether they are enough; and how long they may take: if others use
the cores, each takes some milliseconds."""


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
    """One process of each side. Use it as a context manager: leaving it ends them. `spent` is where their time goes."""

    def __init__(
        self,
        processes: Processes,
        sides: Sequence[Prepared],
        order: int,
        clock: OverheadClock,
        deadline: Deadline,
    ) -> None:
        self.spent = Spent()
        self._origin, self._deadline = processes.origin(order), deadline
        self.seats = {side.side.name: number for number, side in enumerate(sides)}
        self._commits = {side.side.name: side.side.full_label for side in sides}
        self.servers: dict[str, Server] = {}
        self._replies: dict[str, Replies] = {}
        self._ending = contextlib.ExitStack()
        pipes = [os.pipe() for _ in sides]
        self._hands = tuple(write for _, write in pipes)
        try:
            for number, side in enumerate(sides):
                name, place = side.side.name, GroupPlace(number, pipes[number][0], self._hands)
                self.servers[name] = self._ending.enter_context(processes.get(side, order, place))
                self._replies[name] = Replies(processes, side, self.servers[name], self.spent, clock, deadline)
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

    def measure(self, tasks: Sequence[Task], references: Sequence[str]) -> list[Round]:
        """The rounds of the tasks of one case, one a side, whose windows come in this order and its reverse. Those of
        `references` are what the others are compared with; where none of them has the case, its first side is.

        Raises Parted if the case cannot be measured so, and what `Replies` does if a process ends, hangs or gives up.
        """
        return _CaseInTurn(self, tasks, references).measured()

    def next(self, task: Task, timeout_s: float) -> Ready | Round:
        """What the process of the task's side says next: that it is ready for windows, or at last its round."""
        replies = self._replies[task.side]
        said = replies.next(task, timeout_s)
        assert isinstance(said, (Ready, Round))
        if isinstance(said, Round):
            replies.end()
        return said

    def take_windows(
        self, sides: Sequence[str], count: int, at_a_time: int, timeout_s: float
    ) -> Iterator[tuple[str, Any]]:
        """Have the sides take this many windows in turn; their answers, as they come. If one does not take them, the others are
        given all turns: none waits for one that never comes."""
        order = _in_order([self.seats[side] for side in sides], count, at_a_time)
        names = {self.servers[side]: side for side in sides}
        for server in reversed(names):  # the one that begins is told last: then the others are waiting
            server.send(TakeWindows(order))
        for server, answer in arriving(list(names), self._deadline.within(timeout_s)):
            side = names[server]
            if not isinstance(answer, Taken):
                del names[server]
                for other in names.values():
                    os.write(self._hands[self.seats[other]], b"." * len(order))
            yield side, answer

    def against(self, metric: str, reference: str, ratio: float, error: float, count: int) -> Against:
        """A side's windows of the metric compared with those of a reference: the logarithm of their ratio, its standard error,
        and how many windows it rests on."""
        return Against(metric, reference, self._commits[reference], ratio, error, count, *self._origin)


class _CaseInTurn:
    """One case, visited by a process of each side at once."""

    def __init__(self, group: Group, tasks: Sequence[Task], references: Sequence[str]) -> None:
        protocol = tasks[0].protocol
        assert protocol is not None
        self._group, self._protocol = group, protocol
        self._tasks = {task.side: replace(task, in_turn=True) for task in tasks}
        self._limit_s = limit_s(tasks)
        self._references = [reference for reference in references if reference in self._tasks] or [
            min(self._tasks, key=group.seats.__getitem__)
        ]
        self._said: dict[str, Ready | Round] = {}
        """By side: what it has said last."""

    def measured(self) -> list[Round]:
        """The round of each side. Raises Parted if the case cannot be measured so."""
        against: dict[str, list[Against]] = {side: [] for side in self._tasks}
        for side, task in self._tasks.items():
            self._group.servers[side].send(Visit([task]))
            self._listen(side)
        while ready := self._ready():
            # host_time, which a side that waits for the device has not, comes before wall_time
            metric = min(message.metric for message in ready.values())
            at_it = [side for side, message in ready.items() if message.metric == metric]
            windows = self._windows(at_it)
            for side in at_it:
                against[side] += self._against(metric, side, windows)
                self._group.servers[side].send(Enough())
                self._listen(side)
        rounds = [message for message in self._said.values() if isinstance(message, Round)]
        return [replace(round, against=against[round.side]) for round in rounds]

    def _ready(self) -> dict[str, Ready]:
        return {side: message for side, message in self._said.items() if isinstance(message, Ready)}

    def _listen(self, side: str) -> None:
        said = self._said[side] = self._group.next(self._tasks[side], self._limit_s)
        if isinstance(said, Round) and said.failure is not None:
            self._end_visits(self._ready())
            raise Parted(_why(said))

    def _end_visits(self, sides: Iterable[str]) -> None:
        """Let sides that are ready end their visits without windows, so that they give back what another may have lacked."""
        for side in sides:
            self._group.servers[side].send(Enough())
            while isinstance(self._group.next(self._tasks[side], self._limit_s), Ready):
                self._group.servers[side].send(Enough())

    def _windows(self, sides: Sequence[str]) -> dict[str, _Windows]:
        """By side: windows, until the difference of each side to the first is known, or there are as many as may be."""
        protocol, windows = self._protocol, {side: _Windows() for side in sides}
        began, (first, *others) = time.monotonic(), windows.values()
        batch = protocol.windows if protocol.pinned else min(protocol.windows, SEVERAL_BATCH)
        longest_s = PATIENCE * self._tasks[sides[0]].timeout_s * len(sides) / 2
        if not protocol.pinned:
            longest_s = min(longest_s, SEVERAL_LONGEST_S)
        while True:
            self._add_windows(windows, batch)
            error = max((_difference(other, first, protocol)[1] for other in others), default=0.0)
            if windows_enough(protocol, len(first.wall_s), batch, error) or time.monotonic() - began > longest_s:
                return windows

    def _add_windows(self, windows: Mapping[str, _Windows], count: int) -> None:
        """Have this many more windows taken by each side."""
        pinned, left, failed = self._protocol.pinned, list(windows), None
        taking = self._group.take_windows(list(windows), count, 1 if pinned else AT_A_TIME, self._limit_s)
        for side, answer in taking:
            if not isinstance(answer, Taken):
                failed = _why(answer)
                left.remove(side)
                continue
            windows[side].add(answer)
            if pinned and answer.busy > BUSY:
                failed = failed or f"it computes for {answer.busy:.0%} of the time while it waits for its turn"
        if failed is not None:
            self._end_visits(left)
            raise Parted(failed)

    def _against(self, metric: str, side: str, windows: Mapping[str, _Windows]) -> Iterator[Against]:
        """The side's windows compared with those of each reference that has some."""
        for reference in self._references:
            if reference != side and reference in windows:
                ratio, error, count = _difference(windows[side], windows[reference], self._protocol)
                if count:
                    yield self._group.against(metric, reference, ratio, error, count)


def _why(said: Any) -> str:
    """Why a process did not answer what it was asked."""
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
