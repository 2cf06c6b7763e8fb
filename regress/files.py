"""Opening what should be a file, locks, folders that are made at once, and the one for what is temporary.

What has the name of a file may be a pipe, which is waited for without end, or a link to a device, which has none.
"""

from __future__ import annotations

import atexit
import contextlib
import errno
import fcntl
import functools
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
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
    raise OSError(errno.EINVAL, f"it is {named}; not a file", str(path))


def read_bytes(path: Path) -> bytes:
    """The content of the file. Raises OSError, also for what is no file."""
    with open(open_file(path), "rb", buffering=0) as file:
        return file.read()


def lock(descriptor: int, *, shared: bool = False, wait: bool = True) -> bool:
    """Take flock's lock on an open file, alone or `shared`, in place of one that it may have. The kernel drops it when the file
    is closed, or its process is killed. Returns whether it was taken: without `wait` it may not be, and a shared one is lost.
    Raises OSError where the file system has no locks."""
    try:
        fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    return True


@contextlib.contextmanager
def locked(path: Path, *, shared: bool = False) -> Iterator[None]:
    """While the block runs, this process has the lock on the file, which is made if there is none; it waits for it."""
    with path.open("a") as file:
        lock(file.fileno(), shared=shared)
        yield


@contextlib.contextmanager
def made_at_once(folder: Path) -> Iterator[Path]:
    """A new folder to be filled, which gets this name when the block ends, unless another process was first: a folder of that
    name is always complete. Raises OSError where none can be made beside it."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    fresh = Path(tempfile.mkdtemp(prefix=".", dir=folder.parent))
    try:
        yield fresh
        try:
            fresh.rename(folder)
        except OSError:
            if not folder.is_dir():  # else another process was first
                raise
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


# -- what is temporary ---------------------------------------------------------------------------------------------------

SCRATCH = "regress-run-"


def scratch() -> str:
    """The folder for what is temporary of this process, which has its lock for as long as it lives. Removed when the process
    ends; if it is killed, by the next process of the same user that asks for one. Raises OSError."""
    folder = _scratch(tempfile.gettempdir(), os.getpid())
    if not os.path.isdir(folder):  # somebody has cleaned up
        _scratch.cache_clear()
        folder = _scratch(tempfile.gettempdir(), os.getpid())
    return folder


@functools.cache
def _scratch(parent: str, process: int) -> str:
    _remove_left(parent)
    while True:
        folder = tempfile.mkdtemp(prefix=SCRATCH, dir=parent)
        if _hold(folder):
            atexit.register(_remove_own, folder, process)
            return folder


def _hold(folder: str) -> bool:
    """Take the lock of a new folder until this process ends. False if another process took it for left, and removed it."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    with contextlib.suppress(OSError):  # of a file system without locks; nobody gets one there, and nobody removes it
        lock(descriptor)
    with contextlib.suppress(FileNotFoundError):  # the other process had the lock first
        if os.path.samestat(os.stat(folder), os.fstat(descriptor)):
            return True
    os.close(descriptor)
    return False


def _remove_own(folder: str, process: int) -> None:
    if os.getpid() == process:  # and not one that was forked from it
        shutil.rmtree(folder, ignore_errors=True)


def _remove_left(parent: str) -> None:
    """Remove the folders of this user's whose processes are gone: nobody has their locks. A number of a process would say
    little, as others may have it by now."""
    with contextlib.suppress(OSError), os.scandir(parent) as entries:
        for entry in entries:
            with contextlib.suppress(OSError):
                if entry.name.startswith(SCRATCH) and entry.stat(follow_symlinks=False).st_uid == os.geteuid():
                    _remove_unlocked(entry.path)


def _remove_unlocked(folder: str) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        if lock(descriptor, wait=False):
            shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(descriptor)
