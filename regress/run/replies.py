"""What a process answers to the tasks that it was sent, and where its time goes."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import TypeGuard

from regress.errors import NothingMeasured, RegressError
from regress.measure.wire import Begin, Broken, End, Proposal, Ready, Task, WrongCode
from regress.model import Failure, Round
from regress.run.deadline import Deadline
from regress.run.environments import Prepared
from regress.run.overhead import OverheadClock, Spent
from regress.run.processes import Processes
from regress.run.ranks import Ranks
from regress.run.servers import Died, Server, TimedOut
from regress.text.wording import quoted

GRACE_S = 10.0
"""Beyond a case's timeout: what a worker may need around it."""


def limit_s(tasks: Iterable[Task]) -> float:
    """How long processes that visit these tasks at once may take to answer."""
    return sum(task.timeout_s + GRACE_S for task in tasks)


class GaveUp(Exception):
    """A process cannot go on: with a task that it has `begun`, which gets no reply, or else because of the task before."""

    def __init__(self, failure: Failure, begun: bool) -> None:
        self.failure, self.begun = failure, begun
        super().__init__(failure.message)


class Replies:
    """The replies of one process of a side, in the order of its tasks. Raises TimeIsOver at the deadline, Died and TimedOut if
    the process ends or hangs, and NothingMeasured if it would measure the wrong code."""

    def __init__(
        self,
        processes: Processes,
        side: Prepared,
        server: Server | Ranks,
        spent: Spent,
        clock: OverheadClock,
        deadline: Deadline,
    ) -> None:
        self._processes, self._side, self._server = processes, side, server
        self._spent, self._clock, self._deadline = spent, clock, deadline

    def next(self, task: Task, seconds: float) -> Proposal | Round | Ready:
        """The reply to the next task, which takes at most that long. Raises GaveUp if the process cannot give one."""
        began_s = time.monotonic()
        try:
            reply = self._reply(task, seconds)
        except (GaveUp, TimedOut, Died):
            self._clock.unanswered(task, time.monotonic() - began_s)
            raise
        if not isinstance(reply, Ready):
            self._clock.answered(reply)
        return reply

    def end(self) -> None:
        """Take note of what all cases together have done. Raises GaveUp if the last one was too much for the process."""
        end = self._server.receive(self._deadline.within(GRACE_S))
        if isinstance(end, Broken):
            raise GaveUp(end.failure, begun=False)
        if not isinstance(end, End):
            raise self._server.strange(end)
        self._processes.note_end(self._side, end)
        self._spent.opening_s = end.opening_s

    def _reply(self, task: Task, seconds: float) -> Proposal | Round | Ready:
        begun = False
        while True:
            message = self._server.receive(self._deadline.within(seconds))
            if isinstance(message, WrongCode):
                raise wrong_code(self._side, message)
            if isinstance(message, Broken):
                raise GaveUp(message.failure, begun)
            if not isinstance(message, Begin):
                break
            begun = True
            self._spent.begin()
        if not _answers(message, task):
            raise self._server.strange(message)
        if not isinstance(message, Ready):
            self._spent.measuring_s += message.seconds if isinstance(message, Proposal) else message.duration_s
        return message


def _answers(message: object, task: Task) -> TypeGuard[Proposal | Round | Ready]:
    if isinstance(message, Ready):
        return task.in_turn
    return isinstance(message, Proposal if task.protocol is None else Round) and (
        (message.name, message.params, message.side) == (task.name, task.params, task.side)
    )


def wrong_code(side: Prepared, wrong: WrongCode) -> RegressError:
    """The error where code was imported that is not of the commit."""
    own = [root / f"{wrong.module}{ending}" for root in side.import_roots for ending in ("", ".py")]
    if not any(path.exists() for path in own):
        return NothingMeasured(
            f"{side.side.name} {side.side.label} would not be measured: it has no {wrong.module} to import",
            why=f"{wrong.file} was imported, which is not of the commit; looked in {', '.join(wrong.expected)}",
            fix='leave the commit out, or say where its packages are: "package_dir" under "regress" in asv.conf.json',
        )
    return NothingMeasured(
        f"{side.side.name} {side.side.label} would not be measured: {wrong.module} was imported from elsewhere",
        why=f"{wrong.file} is outside {', '.join(wrong.expected)}; an editable install or a path hook wins over it",
        fix=quoted(side.python, "-m", "pip", "uninstall", wrong.module),
    )
