"""Opening what should be a file: what has its name may be a pipe, which is waited for without end, or a link to a device, which
has none."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


def open_file(path: Path, flags: int = os.O_RDONLY, mode: int = 0o666) -> int:
    """A descriptor of the file, as `os.open` gives it. Raises OSError, also for what is no file (a link, with O_NOFOLLOW)."""
    # A pipe is opened without waiting for who has its other end; of a file the flag says nothing.
    try:
        descriptor = os.open(path, flags | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY, mode)
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        raise OSError(errno.ELOOP, "it is a link that is not followed", str(path)) from None
    kind = os.fstat(descriptor).st_mode
    if stat.S_ISREG(kind):
        return descriptor
    os.close(descriptor)
    named = next((words for is_it, words in _KINDS if is_it(kind)), "something else")
    raise OSError(errno.EINVAL, f"it is {named}, and no file", str(path))


def read_bytes(path: Path) -> bytes:
    """The content of the file. Raises OSError, also for what is no file."""
    with open(open_file(path), "rb", buffering=0) as file:
        return file.read()
