"""Where a process of ours begins: `--read N --write M` are the ends of its pipes, `--socket K` makes it a fork server, `--seat
NUMBER,PIPE,PIPE...` gives it a seat in a group.

Two kinds have no driver, and end as any program does: `--once OPEN ONCE`, two messages, runs one case, and
`--script TRACE FILE ARGUMENT...` profiles a script.
"""

from __future__ import annotations

import contextlib
import os
import socket
import sys
from typing import List

from .channel import Channel, moved
from .wire import ONCE, SCRIPT, decode
from .worker import converse


def main(argv: List[str]) -> int:
    """Serve the driver until it closes the pipe; the exit code."""
    options = dict(zip(argv[::2], argv[1::2]))
    channel = Channel(int(options["--read"]), int(options["--write"]))
    opening = channel.receive()
    if opening is None:
        return 0
    if "--socket" not in options:
        return converse(channel, opening, seat=[int(word) for word in options.get("--seat", "").split(",") if word])
    from .forkserver import ForkServer

    return ForkServer(channel, opening, socket.socket(fileno=moved(int(options["--socket"])))).run()


def start() -> None:
    """Run `main` and leave at once: what a suite registered for the interpreter's exit is not part of the protocol."""
    if sys.argv[1] == ONCE:
        from .once import run

        sys.exit(run(decode(sys.argv[2].encode()), decode(sys.argv[3].encode())))  # tools write their files at the exit
    if sys.argv[1] == SCRIPT:
        from . import script

        sys.exit(script.run(sys.argv[2], sys.argv[3:]))
    code = main(sys.argv[1:])
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):  # a benchmark may have closed it
            stream.flush()
    os._exit(code)
