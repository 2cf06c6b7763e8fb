"""Writing that leaves either the old file or the new one, by one writer at a time, and errors that say what to do."""

from __future__ import annotations

import errno
import hashlib
import os
import socket
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from regress.errors import StoreError
from regress.files import lock, open_file, read_bytes
from regress.text.wording import quoted, reason

LOCK_NAME = ".regress.lock"
POLL_S = 0.01
"""How long to wait for another process that writes a small state file."""

_CANNOT_LOCK = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_FORBIDDEN = (errno.EROFS, errno.EACCES, errno.EPERM)


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turn an OSError of writing `path` into a StoreError that says why and what to do."""
    try:
        yield
    except OSError as error:
        elsewhere = 'choose another folder ("results_dir", or "cache_dir" under "regress", in asv.conf.json)'
        if error.errno in _FULL:
            fix = f"free some space there, or {elsewhere}"
        elif error.errno in _FORBIDDEN:
            fix = f"{quoted('chmod', '-R', 'u+w', path.parent)}, or {elsewhere}"
        else:
            fix = f"{quoted('ls', '-la', path.parent)}, or {elsewhere}"
        why = reason(error)
        raise StoreError(f"cannot write {path}", why=f"{why}: {error.filename or path}", fix=fix) from error


def replace_file(path: Path, data: bytes) -> None:
    """Make `data` the content of `path`; a reader always finds either the old or the new content, complete.

    The caller holds the lock of the folder, so the temporary file can have one fixed name, and leftovers of a killed writer
    are overwritten or removed. Nothing is written if nothing changes. Raises StoreError.
    """
    temporary = _temporary(path)
    with explained(path):
        try:
            if read_bytes(path) == data:
                temporary.unlink(missing_ok=True)
                return
        except FileNotFoundError:
            path.parent.mkdir(parents=True, exist_ok=True)
        try:
            temporary.unlink(missing_ok=True)  # and not written into: it may be a link to another file
            with open(temporary, "xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        _sync_folder(path.parent)


def is_unfinished(path: Path) -> bool:
    """Whether a writer was killed while it replaced the file, and nobody has written it since."""
    return _temporary(path).exists()


def _temporary(path: Path) -> Path:
    return path.with_name(f".{path.name}.tmp")


def append(path: Path, data: bytes, *, lines: bool = True) -> int:
    """Append `data` to `path` and return the file's new size; a partial write is undone.

    With `lines`, a line that a killed writer left without its newline gets one first, so it spoils no other line. The bytes
    are with the operating system afterwards: they survive the death of this process, but not a power failure, because syncing
    would put disk activity between two rounds. Raises StoreError.
    """
    with explained(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = open_file(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW)
        try:
            size = os.fstat(descriptor).st_size
            if lines and size and os.pread(descriptor, 1, size - 1) != b"\n":
                data = b"\n" + data
            try:
                _write_all(descriptor, data)
            except BaseException:
                os.ftruncate(descriptor, size)
                raise
            return size + len(data)
        finally:
            os.close(descriptor)


def _write_all(descriptor: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


# -- the lock ------------------------------------------------------------------------------------------------------------


@contextmanager
def locked(folder: Path, timeout_s: float) -> Iterator[None]:
    """Be the only writer of `folder` on this node. Raises StoreError, which names the holder, after `timeout_s`.

    The lock is flock's on a file in the folder, so containers that share the folder exclude each other; the kernel releases it
    with the process. The file is removed afterwards, because results_dir is committed. If the file system has no locks (some
    network drives), the file is in the node's temporary folder instead.
    """
    with explained(folder / LOCK_NAME):
        folder.mkdir(parents=True, exist_ok=True)
        path, descriptor = _acquire(folder, time.monotonic() + timeout_s, timeout_s)
    try:
        yield
    finally:
        # Removed while still held: a waiter that has this very file open sees that the name is gone and starts again.
        path.unlink(missing_ok=True)
        os.close(descriptor)


def _acquire(folder: Path, deadline: float, timeout_s: float) -> tuple[Path, int]:
    path = folder / LOCK_NAME
    while True:
        descriptor = open_file(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW)
        try:
            taken = lock(descriptor, wait=False)
        except OSError as error:
            if error.errno not in _CANNOT_LOCK or path.parent != folder:
                os.close(descriptor)
                raise
            path.unlink(missing_ok=True)
            path = _node_local(folder)
            os.close(descriptor)
            continue
        if taken and _still_there(path, descriptor):
            os.ftruncate(descriptor, 0)
            os.write(descriptor, f"{os.getpid()} {socket.gethostname()}".encode())
            return path, descriptor
        holder = os.pread(descriptor, 300, 0).decode(errors="replace")
        os.close(descriptor)
        if not taken and time.monotonic() > deadline:
            raise _held(folder, holder, timeout_s)
        time.sleep(POLL_S)


def _still_there(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(os.stat(path), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _node_local(folder: Path) -> Path:
    digest = hashlib.sha256(str(folder.resolve()).encode()).hexdigest()[:16]
    return Path(tempfile.gettempdir()) / f"regress-{os.getuid()}-{digest}.lock"


def _held(folder: Path, holder: str, timeout_s: float) -> StoreError:
    pid, _, host = holder.partition(" ")
    who = f"process {pid} on {host}" if pid else "another process"
    return StoreError(
        f"{folder} is being written by {who}",
        why=f"it has held the lock for more than {timeout_s:g} s",
        fix=f"wait until it has ended, or end it: kill {pid}" if pid else "wait until it has ended",
    )
