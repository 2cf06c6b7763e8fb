"""The command line: the commands with their options and help, and the start and end of the program. Only this folder and
__main__.py print or exit.

program     the program itself
options     the options, and groups of options that several commands share
invocation  around every command: options -> Request, errors -> messages and exit codes, delivery of the report
notification  the command that runs if something is new
judging     check, gate, bisect, compare, fastest, ack
recording   run, sweep, merge, export, report
profiling   profile, explain, once
project     init, build, list, config, doctor, demo

Nothing heavy is imported here: each command imports what it needs when it is called.
"""

from __future__ import annotations

import os
import signal
import stat
import sys
from types import FrameType
from typing import NoReturn

import click

from regress.cli import judging, profiling, project, recording
from regress.cli.invocation import say
from regress.cli.program import regress
from regress.errors import Exit, RegressError

__all__ = ["main", "regress"]

_COMMANDS = (judging, profiling, project, recording)
"""Whoever imports them has registered their commands."""


def _hold_standard_streams() -> None:
    """Open those that are closed, or else a pipe to a worker gets the number of one, and is lost when the worker starts."""
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(descriptor)


def _stands_somewhere() -> bool:
    try:
        os.getcwd()
    except FileNotFoundError:
        return False
    return True


def _lost_terminal(number: int, frame: FrameType | None) -> NoReturn:
    """Ends as Ctrl-C does, and keeps what was measured. What would be printed goes nowhere: writing to that terminal fails."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):
        if stat.S_ISCHR(os.fstat(stream).st_mode):  # a file or pipe still takes it
            os.dup2(nowhere, stream)
    os.close(nowhere)
    signal.default_int_handler(number, frame)


def main() -> None:
    """Run the command line and exit.

    Not with click's own endings: after Ctrl-C it would exit with 1, which means "regressed" here.
    """
    _hold_standard_streams()
    if not _stands_somewhere():
        what = "the current folder is gone"
        say(
            RegressError(what, why="it was removed while this shell was in it", fix="cd to a folder that is there"),
            {},
        )
        sys.exit(Exit.ERROR)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # being told to end keeps what was measured
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # as under nohup
        signal.signal(signal.SIGHUP, _lost_terminal)
    try:
        code = regress(prog_name="regress", standalone_mode=False)
    except click.UsageError as error:
        if error.ctx is None or isinstance(error, getattr(click.exceptions, "NoArgsIsHelpError", ())):
            error.show()
        else:
            say(RegressError(error.format_message(), fix=f"{error.ctx.command_path} --help"), {})
        code = Exit.ERROR
    except click.Abort:
        click.echo("interrupted", err=True)
        code = Exit.INTERRUPTED
    sys.exit(code)
