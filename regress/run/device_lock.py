"""One measuring process at a time on a device: two that share it would measure each other.

The lock is flock's on a file named by the device's UUID, in a folder of this node that all its users share; the kernel drops it
with its process, however that ends. Containers exclude each other where they share the folder.
"""

from __future__ import annotations

import contextlib
import errno
import getpass
import json
import os
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from regress.errors import NothingMeasured, RegressError
from regress.files import lock, open_file

ENDING = ".lock"
POLL_S = 0.5
FOLDER_MODE, FILE_MODE = 0o1777, 0o666
"""Other users have to be able to lock as well."""


@contextlib.contextmanager
def held(uuid: str, folder: Path, note: Callable[[str], None], wait: bool = False) -> Iterator[None]:
    """Be the only one that measures on the device while the block runs.

    If somebody else is measuring, raises NothingMeasured, which names them; with `wait` notes it once and waits as long as it
    takes. Raises RegressError if the folder cannot be used.
    """
    path = folder / (uuid + ENDING)
    try:
        descriptor = _opened(path)
    except OSError as error:
        raise RegressError(
            f"the lock of {uuid} cannot be used",
            why=f"{path}: {error.strerror}",
            fix='name a folder of this node that you can write to: "lock_dir" under "regress" in asv.conf.json',
        ) from None
    try:
        _take(descriptor, uuid, note, wait)
        os.ftruncate(descriptor, 0)
        holder = {
            "pid": os.getpid(),
            "user": _user(),
            "host": socket.gethostname(),
            "since": time.time(),
            "in": os.getcwd(),
        }
        os.pwrite(descriptor, json.dumps(holder).encode(), 0)
        try:
            yield
        finally:
            os.ftruncate(descriptor, 0)
    finally:
        os.close(descriptor)


def _opened(path: Path) -> int:
    """A descriptor of the file. Where it is, it is opened without O_CREAT: the kernel may refuse that on another user's file
    in a folder that all can write to (fs.protected_regular)."""
    flags = os.O_RDWR | os.O_NOFOLLOW
    folder = path.parent.lstat() if path.parent.is_symlink() else None
    if folder is not None and folder.st_uid not in (0, os.getuid()):
        raise OSError(errno.EPERM, "its folder is a link of somebody else's")
    try:
        return _only_name_of(open_file(path, flags))
    except FileNotFoundError:
        pass
    if not path.parent.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(PermissionError):  # somebody else was first, and has done it
            path.parent.chmod(FOLDER_MODE)
    descriptor = _only_name_of(open_file(path, flags | os.O_CREAT, FILE_MODE))
    with contextlib.suppress(PermissionError):
        os.fchmod(descriptor, FILE_MODE)  # whatever the umask
    return descriptor


def _only_name_of(descriptor: int) -> int:
    """The descriptor of a file that has no other name: somebody may have put a link to another file in the place of a lock."""
    if os.fstat(descriptor).st_nlink > 1:
        os.close(descriptor)
        raise OSError(errno.EPERM, "it is another file, too, under another name")
    return descriptor


def _take(descriptor: int, uuid: str, note: Callable[[str], None], wait: bool) -> None:
    noted = False
    while True:
        if lock(descriptor, wait=False):
            return
        who = _holder(descriptor)
        if not wait:
            raise NothingMeasured(
                f"{uuid} is being measured by {who}",
                why="two runs on one device would disturb each other",
                fix="try again later, or wait for it: --wait-lock",
            )
        if not noted:
            note(f"waiting for {uuid}, which is being measured by {who}")
            noted = True
        time.sleep(POLL_S)


def _holder(descriptor: int) -> str:
    """Who has the lock, in words."""
    try:
        holder = json.loads(os.pread(descriptor, 4000, 0))
        since = time.strftime("%H:%M", time.localtime(holder["since"]))
        return f"process {holder['pid']} of {holder['user']} on {holder['host']}, since {since}, in {holder['in']}"
    except (ValueError, KeyError, TypeError):  # it has the lock, and has not written yet
        return "another regress"


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # no name for this number, as in containers
        return str(os.getuid())
