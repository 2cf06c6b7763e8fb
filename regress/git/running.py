"""How git is run, what it printed, and its errors in our words."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from regress.children import start
from regress.errors import NoRepository, RegressError
from regress.text.wording import quoted

_GIT = ("git", "-c", f"core.hooksPath={os.devnull}", "-c", "core.fsmonitor=false")
_HALF_MADE = re.compile(r"failed to read \S*worktrees/\S+/commondir")
"""What git says, whatever it is doing, where it meets a worktree that another process makes at that moment."""
_PAUSES_S = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5)


def attempt(directory: Path, *arguments: str, variables: Mapping[str, str] | None = None) -> tuple[int, bytes, str]:
    """Run git in a folder: exit status, output without its last newline, messages in English."""
    try:
        import git
    except ModuleNotFoundError:
        raise
    except ImportError as error:  # what GitPython raises if there is no git
        raise _no_git() from error
    if not directory.is_dir():
        return 128, b"", f"fatal: there is no folder {directory}"
    command = [*_GIT, *arguments]
    settings = {"GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0", **(variables or {})}

    def run() -> tuple[int, bytes, str]:
        status, out, err = git.Git(str(directory)).execute(
            command, with_extended_output=True, with_exceptions=False, stdout_as_string=False, env=settings
        )
        return status, out, os.fsencode(err).decode("utf-8", "replace")

    try:
        return _again(run)
    except git.GitCommandNotFound as error:
        raise _no_git() from error


def _again(run: Callable[[], tuple[int, bytes, str]]) -> tuple[int, bytes, str]:
    """What git gives, which is run again where it met a worktree that was half made."""
    for pause_s in _PAUSES_S:
        status, out, err = run()
        if not status or not _HALF_MADE.search(err):
            return status, out, err
        time.sleep(pause_s)
    return run()


def output(directory: Path, *arguments: str, variables: Mapping[str, str] | None = None) -> bytes:
    """The output of a git command that should succeed; RegressError with git's own words if it does not."""
    status, out, err = attempt(directory, *arguments, variables=variables)
    if status:
        raise git_error(directory, arguments, err)
    return out


def transfer(directory: Path, *arguments: str) -> tuple[int, bytes, str]:
    """Run a git command that talks to another repository: exit status, output, messages in English.

    It logs in as the user's git does, and asks for a password only at a terminal. It ends when we are interrupted, by a signal
    that makes git remove partial results; GitPython would let it continue.
    """
    return _again(lambda: _transfer(directory, *arguments))


def _transfer(directory: Path, *arguments: str) -> tuple[int, bytes, str]:
    settings = {"LANGUAGE": "C", "LC_ALL": "C", **({} if _is_terminal() else {"GIT_TERMINAL_PROMPT": "0"})}
    pipe, null = subprocess.PIPE, subprocess.DEVNULL
    words, variables = [*_GIT, *arguments], {**os.environ, **settings}
    try:  # in the terminal's session: it may ask for a password there
        process = start(
            words,
            alone=False,
            end=subprocess.Popen.terminate,
            cwd=directory,
            env=variables,
            stdin=null,
            stdout=pipe,
            stderr=pipe,
        )
    except FileNotFoundError as error:
        raise _no_git() from error
    with process:
        try:
            out, err = process.communicate()
        except BaseException:
            process.terminate()
            process.wait()
            raise
    return process.returncode, out, err.decode("utf-8", "replace")


def _is_terminal() -> bool:
    return all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stderr))


def top(directory: Path) -> Path:
    """The top folder of the repository or submodule that contains the folder."""
    return Path(os.fsdecode(output(directory, "rev-parse", "--show-toplevel")))


def git_error(directory: Path, arguments: Sequence[str], err: str) -> RegressError:
    """The error where git, run in that folder with these arguments, says this."""
    if "dubious ownership" in err or "safe.directory" in err:
        fix = quoted("git", "config", "--global", "--add", "safe.directory", directory)
        return RegressError(f"git refuses to read {directory}", why="it belongs to another user", fix=fix)
    if "not a git repository" in err:
        return NoRepository(
            f"{directory} is not in a git repository",
            why="regress compares commits",
            fix='run it inside the project, or set "repo" in asv.conf.json to its folder',
        )
    if _DAMAGED.search(err):
        return damaged(directory, line(err))
    by_hand = quoted("git", "-C", directory, *arguments)
    return RegressError(f"git {arguments[0]} failed in {directory}", why=line(err), fix=f"see what git says: {by_hand}")


_DAMAGED = re.compile(
    r"corrupt|bad object|inflate: |unable to (read|unpack)|packfile .* (cannot|does not)|is empty$", re.MULTILINE
)
"""What git says of objects that are there in part."""


def damaged(directory: Path, why: str) -> RegressError:
    fix = f"{quoted('git', '-C', directory, 'fsck', '--full')} lists what is lost; fetch it again, or clone again"
    return RegressError(f"the repository of {directory} is damaged", why=why, fix=fix)


def _no_git() -> RegressError:
    return RegressError("there is no git", why="the command git is not on the PATH", fix="install git")


def text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def line(err: str) -> str:
    return " ".join(line.strip() for line in err.splitlines() if line.strip())
