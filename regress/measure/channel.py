"""The private pipes between driver and worker, and the descriptors that a fork server is handed."""

from __future__ import annotations

import array
import fcntl
import os
import resource
import socket
from typing import Any, BinaryIO, List

from .wire import decode, encode

FIRST_FD = 500


class Channel:
    """The private pipes. Children that a benchmark starts do not inherit them."""

    def __init__(self, read_fd: int, write_fd: int) -> None:
        # Out of the way of a benchmark that closes or writes to "all" small descriptors.
        read_fd, write_fd = moved(read_fd), moved(write_fd)
        self._in: BinaryIO = os.fdopen(read_fd, "rb")
        self._out: BinaryIO = os.fdopen(write_fd, "wb")
        self._owner = os.getpid()
        # A forked child holds no end of the pipes: the driver sees at once when this process has died.
        os.register_at_fork(after_in_child=lambda: os.closerange(read_fd, write_fd + 1))

    def receive(self) -> Any:
        """The next command; None when the driver has closed the pipe."""
        line = self._in.readline()
        return decode(line) if line else None

    def send(self, message: Any) -> None:
        if os.getpid() != self._owner:
            os._exit(0)  # a child that a benchmark forked has come back from its function; it is not the worker
        self._out.write(encode(message))
        self._out.flush()


def moved(fd: int) -> int:
    """Moves the descriptor to an unpredictable number; the old one is closed."""
    try:
        far = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, FIRST_FD)
    except OSError as error:
        most = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        raise OSError(error.errno, f"only {most} files may be open at once; allow more: ulimit -n 4096") from None
    os.close(fd)
    return far


def receive_descriptors(connection: socket.socket, count: int) -> List[int]:
    """`count` descriptors that were sent through a Unix socket with one byte. Raises OSError if fewer arrived."""
    room = socket.CMSG_SPACE(count * array.array("i").itemsize)
    _, ancillary, _, _ = connection.recvmsg(1, room)
    descriptors = array.array("i")
    for level, kind, data in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            descriptors.frombytes(data[: len(data) - len(data) % descriptors.itemsize])
    if len(descriptors) != count:
        raise OSError(f"{len(descriptors)} of {count} descriptors arrived")
    return list(descriptors)
