"""Programs that we start."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from regress import children

TERMINATE = subprocess.Popen.terminate


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[subprocess.Popen[bytes]]]:
    """What Popen has started. Ctrl-C comes before it returns, and is ours: a test process of several ignores it."""
    programs, popen = list[subprocess.Popen[bytes]](), subprocess.Popen

    def interrupted(*words: Any, **options: Any) -> subprocess.Popen[bytes]:
        programs.append(popen(*words, **options))
        signal.raise_signal(signal.SIGINT)
        return programs[-1]

    monkeypatch.setattr(subprocess, "Popen", interrupted)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield programs
    finally:
        signal.signal(signal.SIGINT, before)


def test_what_is_interrupted_while_it_starts_is_ended(started: list[subprocess.Popen[bytes]]) -> None:
    with pytest.raises(KeyboardInterrupt):
        children.start(["sleep", "600"])
    assert [program.returncode for program in started] == [-signal.SIGKILL]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_it_is_ended_in_the_way_that_is_asked_for(started: list[subprocess.Popen[bytes]]) -> None:
    with pytest.raises(KeyboardInterrupt):
        children.start(["sleep", "600"], end=TERMINATE)
    assert [program.returncode for program in started] == [-signal.SIGTERM]


def test_one_whose_code_was_lost_to_an_interrupt_counts_as_ended() -> None:
    """Popen would warn that it still runs, whenever it is collected."""
    program = children.start(["true"])
    os.waitpid(program.pid, 0)
    children.kill(program)
    assert program.returncode is not None


def test_the_program_has_signals_as_without_us() -> None:
    """Not blocked, and what we ignore is ignored."""
    code = "import signal; print(signal.pthread_sigmask(0, []), signal.getsignal(signal.SIGHUP).name)"
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        program = children.start([sys.executable, "-c", code], stdout=subprocess.PIPE)
    finally:
        signal.signal(signal.SIGHUP, before)
    assert program.communicate()[0] == b"set() SIG_IGN\n"


def test_a_thread_starts_programs_too() -> None:
    """Only the main thread may set handlers, and only it is interrupted."""
    codes = list[int]()
    thread = threading.Thread(target=lambda: codes.append(children.ended(children.start(["true"]), 60.0)))
    thread.start()
    thread.join()
    assert codes == [0]
