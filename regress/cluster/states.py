"""How a task stands, from what its folder says and what the engine knows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from regress.cluster.engine import Gone, Place, Queued
from regress.cluster.runs import Attempt, Submitted

TRIES = 3
"""Attempts at a task that may die before it is given up."""
DEATHS_OF_A_NODE = 2
"""After this many deaths on a node nothing more is submitted there."""


@dataclass(frozen=True)
class TaskState:
    """A task now."""

    kind: str
    task: int
    state: Literal["new", "waiting", "running", "in", "again", "cancelled", "given up"]
    """new: not submitted; in: an attempt is whole; again: to be submitted once more."""
    why: str = ""
    deaths: int = 0
    attempt: Attempt | None = None
    """The one that is whole, or the last."""
    on: tuple[str, ...] = ()
    """The nodes on which it died."""
    late: bool = False
    """Whether its end may be written and not be seen here yet."""

    @property
    def place(self) -> Place:
        return self.kind, self.task


def state_of(
    kind: str,
    task: int,
    attempts: Sequence[Attempt],
    jobs: Sequence[Submitted],
    queued: Queued | None,
    gone: Callable[[str], Gone],
) -> TaskState:
    """How the task stands. `jobs` are those that it was submitted with, the last one last; `gone` says of one of them what
    became of the task, and is asked only where it is not queued."""
    whole = next((attempt for attempt in attempts if attempt.end is not None and attempt.end.is_whole), None)
    last = attempts[-1] if attempts else None
    if whole is not None:
        return TaskState(kind, task, "in", attempt=whole)
    if not jobs:
        return TaskState(kind, task, "new")
    running = queued is not None and queued.state == "running"
    dead = [
        attempt for attempt in attempts if _died(attempt) and not (running and attempt is last and attempt.end is None)
    ]
    nodes = tuple(attempt.began.node for attempt in dead if attempt.began is not None)
    deaths = len(dead)
    if queued is not None and deaths < TRIES:
        why = _words(dead[-1], "it died") if dead else queued.why
        return TaskState(kind, task, queued.state, why, deaths, last, nodes)
    if queued is not None:
        return TaskState(kind, task, "given up", _words(last, "it died"), deaths, last, nodes)
    fate = gone(jobs[-1].job)
    if fate.how == "back":
        return TaskState(kind, task, "waiting", "", deaths, last, nodes)
    began = any(attempt.began is not None and attempt.began.job == jobs[-1].job for attempt in attempts)
    ended = last is not None and last.end is not None
    late = fate.how in ("ended", "unknown") and not ended
    if fate.how == "cancelled" or (fate.how == "unknown" and not began):
        return TaskState(kind, task, "cancelled", fate.why, deaths, last, nodes, late)
    if not began:  # it died in its set-up, this time and before
        deaths += len(
            {job.job for job in jobs} - {attempt.began.job for attempt in attempts if attempt.began is not None}
        )
    why = _words(last, fate.why or "it ended without a message") if began else fate.why
    return TaskState(kind, task, "given up" if deaths >= TRIES else "again", why, deaths, last, nodes, late)


def _died(attempt: Attempt) -> bool:
    """Whether it came to nothing by itself; who was told to end has not."""
    return attempt.end is None or attempt.end.code not in (0, 3, 130)


def _words(attempt: Attempt | None, otherwise: str) -> str:
    """What is known of a death."""
    if attempt is None or attempt.end is None or attempt.end.error is None:
        return otherwise
    return ": ".join(filter(None, attempt.end.error[:2]))
