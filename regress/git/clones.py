"""The clone of a project that is known by its address: bare, with all branches and tags, fetched again when asked.

It holds the branches and tags of the address under their own names, and its HEAD is the address's default branch.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from regress.errors import NoRepository, RegressError, without_password
from regress.files import lock as take
from regress.git.commits import shallow
from regress.git.running import attempt, line, text, transfer
from regress.text.wording import quoted, reason

_MARK = "regress-fetched"
"""A file in the clone whose age is that of the last fetch."""
_BRANCHES = "+refs/heads/*:refs/heads/*"
_OFFLINE = re.compile(
    r"could not resolve|couldn't resolve|name or service|network is unreachable|timed out|no route to host",
    re.IGNORECASE,
)
_REFUSED = re.compile(
    r"authentication failed|permission denied|could not read (user|pass)|terminal prompts disabled|host key|not found"
    r"|access denied|returned error: 40\d",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Clone:
    """The clone of `address` in the folder `place`. With `fetches` unset nothing is asked of the address."""

    address: str
    place: Path
    note: Callable[[str], None]
    """Takes a line on what takes its time."""
    fetches: bool = True

    @property
    def words(self) -> str:
        """The address without passwords."""
        return without_password(self.address)

    def ready(self) -> Path:
        """The folder, cloned if it does not exist. Raises NoRepository if that fails."""
        if not self.place.is_dir():
            with self._alone():
                if not self.place.is_dir():  # another process may have made it by now
                    self._clone()
        return self.place

    def fetch(self) -> None:
        """Fetch the branches, the tags and HEAD of the address. Raises NoRepository if that fails."""
        self.note(f"fetching {self.words}")
        with self._alone():
            self._transfer("fetch", self.place, "fetch", "--prune", "--tags", "--force", "origin", _BRANCHES)
            listed = self._transfer("fetch", self.place, "ls-remote", "--symref", "origin", "HEAD")
            head = re.search(r"^ref: (refs/heads/\S+)\tHEAD$", listed, re.MULTILINE)
            if head is not None:
                attempt(self.place, "symbolic-ref", "HEAD", head[1])
            (self.place / _MARK).touch()

    @property
    def fetched(self) -> str:
        """Date and time of the last fetch, or of the clone if there was none."""
        mark = self.place / _MARK
        return time.strftime("%Y-%m-%d %H:%M", time.localtime((mark if mark.exists() else self.place).stat().st_mtime))

    # -- parts -----------------------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """While the block runs no other process clones or fetches it."""
        try:
            self.place.parent.mkdir(parents=True, exist_ok=True)
            lock = os.open(self.place.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o644)
        except OSError as error:
            raise RegressError(
                f"cannot write to {self.place.parent}",
                why=reason(error),
                fix="set REGRESS_CACHE_DIR to a folder that you can write to",
            ) from error
        try:
            take(lock)
            yield
        finally:
            os.close(lock)

    def _clone(self) -> None:
        """Clone next to the place and move it there once complete, so an interruption leaves no partial clone."""
        if not self.fetches:
            raise NoRepository(
                f"there is no clone of {self.words} yet",
                why="nothing is fetched with --no-fetch",
                fix="leave --no-fetch out",
            )
        self.note(f"cloning {self.words}, once; it is kept in {self.place}")
        fresh = self.place.with_suffix(".new")
        shutil.rmtree(fresh, ignore_errors=True)
        try:
            self._transfer("clone", self.place.parent, "clone", "--quiet", "--bare", "--", self.address, str(fresh))
            if shallow(fresh):
                raise NoRepository(
                    f"{self.words} is a shallow clone",
                    why="it lacks the history that commits are compared in",
                    fix='git fetch --unshallow there, or name what it was cloned from as "repo"',
                )
            (fresh / _MARK).touch()
            fresh.rename(self.place)
        finally:
            shutil.rmtree(fresh, ignore_errors=True)

    def _transfer(self, what: str, directory: Path, *arguments: str) -> str:
        status, out, err = transfer(directory, *arguments)
        if status:
            raise self._error(what, err)
        return text(out)

    def _error(self, what: str, err: str) -> NoRepository:
        why = line(err).replace(self.address, self.words)
        kept = ", or --no-fetch to use what is here" if self.place.is_dir() else ""
        if _OFFLINE.search(err):
            return NoRepository(
                f"cannot {what} {self.words}: no network connection to it", why=why, fix=f"connect{kept}"
            )
        by_hand = quoted("git", "ls-remote", self.words)
        if _REFUSED.search(err):
            fix = f"let git log in automatically (a credential helper, an ssh agent) until this works: {by_hand}{kept}"
            return NoRepository(f"cannot {what} {self.words}: git has no permission to read it", why=why, fix=fix)
        return NoRepository(f"cannot {what} {self.words}", why=why, fix=f"see what is wrong with it: {by_hand}{kept}")
