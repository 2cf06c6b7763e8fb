"""How a command ends, and what can go wrong because of the user's input or machine: what was seen, why, and one command or edit
that mends it.

    RegressError              exit code 2 unless its class says otherwise
    ├── ConfigError           asv.conf.json is missing, or it or the acknowledgement file says something unknown
    ├── RevisionError         a revision, range or parent that does not exist
    ├── NoRepository          the repository under test is not at hand
    ├── StoreError            the history cannot be read or written
    ├── DocumentError        what another suite has written cannot be read
    ├── ProfileError          a trace or an export that cannot be read, or a profiler that cannot run
    ├── BuildFailed           code 3: the head does not build
    └── NothingMeasured       code 5: nothing could be measured or compared

Failures of benchmarks are not here: they are values on a Round.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Iterable
from typing import Literal

State = Literal["", "PASS", "FAIL", "UNDECIDED", "NOTHING", "INTERRUPTED", "ERROR", "FOUND"]
"""The word of the last line; empty for commands that judge nothing."""


class Exit(enum.IntEnum):
    """The exit codes of the process. They stand as they rank: of several that hold the process exits with the first."""

    INTERRUPTED = 130
    ERROR = 2
    """Usage, or configuration."""
    NOTHING = 5
    """Nothing could be measured or compared."""
    REGRESSED = 1
    FAILED = 3
    UNDECIDED = 4
    PASSED = 0

    @property
    def word(self) -> State:
        """What the last line says of it."""
        return _WORDS[self]


_WORDS: dict[Exit, State] = {
    Exit.INTERRUPTED: "INTERRUPTED",
    Exit.ERROR: "ERROR",
    Exit.NOTHING: "NOTHING",
    Exit.REGRESSED: "FAIL",
    Exit.FAILED: "FAIL",
    Exit.UNDECIDED: "UNDECIDED",
    Exit.PASSED: "PASS",
}


def ranked(codes: Iterable[Exit]) -> tuple[Exit, ...]:
    """Those that are not PASSED, as they rank; PASSED alone if there are none."""
    held = set(codes) - {Exit.PASSED}
    return tuple(code for code in Exit if code in held) or (Exit.PASSED,)


def exits(*, interrupted: bool = False, nothing: bool = False, failed: bool = False) -> tuple[Exit, ...]:
    """The codes of a command that measures or takes something and compares nothing."""
    held = {Exit.INTERRUPTED: interrupted, Exit.NOTHING: nothing, Exit.FAILED: failed}
    return ranked(code for code, holds in held.items() if holds)


class RegressError(Exception):
    """An error that the user can mend. `what` was seen, `why`, and the `fix` (a command or an edit), each one line."""

    exit_code = Exit.ERROR

    def __init__(self, what: str, *, why: str = "", fix: str = "") -> None:
        super().__init__(what)
        self.what, self.why, self.fix = what, why, fix

    @property
    def cause(self) -> str:
        """What was seen and why, to be followed by more: without the period that another program's words may end with."""
        return f"{self.what}: {self.why.removesuffix('.')}" if self.why else self.what


class ConfigError(RegressError):
    pass


class RevisionError(RegressError):
    pass


class NoRepository(RegressError):
    pass


class StoreError(RegressError):
    pass


class DocumentError(RegressError):
    pass


class ProfileError(RegressError):
    pass


class BuildFailed(RegressError):
    exit_code = Exit.FAILED


class NothingMeasured(RegressError):
    exit_code = Exit.NOTHING


class NoDevice(NothingMeasured):
    """The machine lacks the device that it is recorded with: nothing can be measured on it, whatever the commit."""


# -- what messages name --------------------------------------------------------------------------------------------------


def without_password(address: str) -> str:
    """The address of a repository as it may be shown: of one of the web without user, password or token."""
    return re.sub(r"^(https?://)[^/@]*@", r"\1", address)
