"""Programs that we start."""

from __future__ import annotations

import signal
import subprocess
import threading
from typing import Any

import pytest

from regress import children

TERMINATE = subprocess.Popen.terminate


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[subprocess.Popen[bytes]]:
    """What Popen has started. Ctrl-C comes before it returns."""
    programs, popen = list[subprocess.Popen[bytes]](), subprocess.Popen

    def interrupted(*words: Any, **options: Any) -> subprocess.Popen[bytes]:
        programs.append(popen(*words, **options))
        signal.raise_signal(signal.SIGINT)
        return programs[-1]

    monkeypatch.setattr(subprocess, "Popen", interrupted)
    return programs


def test_what_is_interrupted_while_it_starts_is_ended(started: list[subprocess.Popen[bytes]]) -> None:
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        children.start(["sleep", "600"])
    assert [program.returncode for program in started] == [-signal.SIGKILL]
    assert signal.getsignal(signal.SIGINT) is before


def test_it_is_ended_in_the_way_that_is_asked_for(started: list[subprocess.Popen[bytes]]) -> None:
    with pytest.raises(KeyboardInterrupt):
        children.start(["sleep", "600"], end=TERMINATE)
    assert [program.returncode for program in started] == [-signal.SIGTERM]


def test_the_program_has_signals_as_without_us() -> None:
    """Not blocked, and what we ignore is ignored."""
    code = "import signal; print(signal.pthread_sigmask(0, []), signal.getsignal(signal.SIGHUP).name)"
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        program = children.start(["python3", "-c", code], stdout=subprocess.PIPE)
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
