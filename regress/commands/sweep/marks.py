"""Up to where the commits of the branches are measured: what NEW begins after.

    {"format": 1, "marks": {KEY: SHA}}        in a small file of the cache

A sweep sets the mark where it begins, and moves it when it has measured all that was new. A killed one leaves it behind, so
that the next one begins there too: the newest commit is measured first, and the others would be taken for old ones.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection

from regress.history.kept import StateFile
from regress.session import Session

FILE = "swept.json"


class Mark:
    """The mark of one machine, environment and selection of cases."""

    def __init__(self, session: Session, environment: str) -> None:
        self._session = session
        self._kept = StateFile(session.cache / FILE, "marks", str)
        request = session.request
        key = (session.machine.name, environment, session.config.branches, request.patterns, request.tags)
        self._key = hashlib.sha256(repr(key).encode()).hexdigest()[:16]

    def read(self, recorded: Collection[str]) -> str:
        """Its full hash; empty if there is none, or where its commit is not here or has no results any more."""
        sha = self._kept.read().get(self._key, "")
        if sha in recorded and self._session.repository.has(sha):
            return sha
        return ""

    def write(self, sha: str) -> None:
        with self._kept.changing() as marks:
            marks[self._key] = sha
