"""Up to where the commits of the branches are measured, which is what NEW begins after, and what people know of their events.

    {"format": 1, "marks": {KEY: SHA}}        in a small file of the cache
    {"changes": […], "breakages": […]}        in a file of each request, from when its sweep, or a merge, begins until it has
                                              reported; beside it the lock of the one that does

A sweep sets the mark where it begins, and moves it when it has measured all that was new. A killed one leaves it behind, so
that the next one begins there too: the newest commit is measured first, and the others would be taken for old ones.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection
from contextlib import ExitStack
from dataclasses import dataclass

from regress.history.disk import explained
from regress.history.kept import StateFile, one_at_a_time, read, write
from regress.model import Breakage, Changed, Report
from regress.session import Session
from regress.trends.events import Events

FILE = "swept.json"
UNTOLD = "untold"
"""The folder of what people knew before sweeps and merges that have not reported."""


class Mark:
    """The mark of one machine, environment and selection of cases."""

    def __init__(self, session: Session, environment: str) -> None:
        self._session = session
        self._kept = StateFile(session.cache / FILE, "marks", str)
        self._key = _key(session, session.machine.name, environment)

    def read(self, recorded: Collection[str]) -> str:
        """Its full hash; empty if there is none, or where its commit is not here or has no results any more."""
        sha = self._kept.read().get(self._key, "")
        if sha in recorded and self._session.repository.has(sha):
            return sha
        return ""

    def write(self, sha: str) -> None:
        with self._kept.changing() as marks:
            marks[self._key] = sha


@dataclass(frozen=True)
class Told:
    """What people know of already."""

    changes: tuple[Changed, ...] = ()
    breakages: tuple[Breakage, ...] = ()

    @property
    def events(self) -> Events:
        return Events(self.changes, self.breakages)


Reported = tuple[Report, Callable[[], None]]
"""A report, and what is to be called once people have it."""


class Untold:
    """What people knew before a command that has not reported: one that was killed leaves it to the next of the same request.

    `request` is what was asked for: with the same cases of the same history it is the same request.
    """

    def __init__(self, session: Session, *request: object) -> None:
        self._path = session.cache / UNTOLD / f"{_key(session, *request)}.json"

    def alone(self, note: Callable[[str], None], command: Callable[[], Reported]) -> Reported:
        """What the command returns, and until people have its report no other process is at this request: both would report
        the same, and the first to end would take away what the other has not reported."""
        words = "the same command is under way in another process; waiting until it ends"
        with ExitStack() as taken:
            taken.enter_context(one_at_a_time(self._path.with_suffix(".lock"), lambda: note(words)))
            report, told = command()
            held = taken.pop_all()

        def told_and_left() -> None:
            with held:
                told()

        return report, told_and_left

    def read(self) -> Events | None:
        """None where the last one has reported."""
        told = read(self._path, Told)
        return told.events if told is not None else None

    def write(self, before: Events) -> None:
        """Raises StoreError."""
        with explained(self._path):
            self._path.parent.mkdir(parents=True, exist_ok=True)
        write(self._path, Told(before.changes, before.breakages))

    def forget(self) -> None:
        """It has reported."""
        if self._path.exists():  # also where a cache that cannot be written could not keep it
            self._path.unlink(missing_ok=True)  # where nobody can lock it, another one may be first


def _key(session: Session, *request: object) -> str:
    """That of a request about the same cases of one history."""
    config, asked = session.config, session.request
    key = (str(config.results_dir), config.branches, asked.patterns, asked.tags, *request)
    return hashlib.sha256(repr(key).encode()).hexdigest()[:16]
