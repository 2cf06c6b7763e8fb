"""Up to where the commits of the branches are measured, which is what NEW begins after, and what people know of their events.

    {"format": 1, "marks": {KEY: SHA}}        in a small file of the cache
    {"changes": […], "breakages": […]}        in a file of each request, from when its sweep begins until it has reported

A sweep sets the mark where it begins, and moves it when it has measured all that was new. A killed one leaves it behind, so
that the next one begins there too: the newest commit is measured first, and the others would be taken for old ones.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from dataclasses import dataclass

from regress.commands.sweep.choosing import Asked
from regress.history.kept import StateFile, read, write
from regress.model import Breakage, Changed
from regress.session import Session
from regress.trends.events import Events

FILE = "swept.json"
UNTOLD = "untold"
"""The folder of what people knew before sweeps that have not reported."""


class Mark:
    """The mark of one machine, environment and selection of cases."""

    def __init__(self, session: Session, environment: str) -> None:
        self._session = session
        self._kept = StateFile(session.cache / FILE, "marks", str)
        self._key = _key(session, environment)

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


class Untold:
    """What people knew before a sweep that has not reported: one that was killed leaves it to the next of the same request."""

    def __init__(self, session: Session, asked: Asked) -> None:
        self._path = session.cache / UNTOLD / f"{_key(session, asked)}.json"

    def read(self) -> Events | None:
        """None where the last sweep has reported."""
        told = read(self._path, Told)
        return told.events if told is not None else None

    def write(self, before: Events) -> None:
        """Raises StoreError."""
        self._path.parent.mkdir(exist_ok=True)
        write(self._path, Told(before.changes, before.breakages))

    def forget(self) -> None:
        """The sweep has reported."""
        self._path.unlink(missing_ok=True)


def _key(session: Session, asked: object) -> str:
    """That of what was asked for, of the same cases of this machine."""
    request = session.request
    key = (session.machine.name, asked, session.config.branches, request.patterns, request.tags)
    return hashlib.sha256(repr(key).encode()).hexdigest()[:16]
