"""A tool with a program below it. Real processes: what they leave running would be left on the machine."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from regress.run.watched import Ended, watched

SLEEPER = """
import pathlib, subprocess, sys
beside = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
pathlib.Path({pid!r}).write_text(str(beside.pid))
print("==PROF== started", flush=True)
beside.wait()
"""


def run(code: str, log: Path, timeout_s: float = 60.0) -> tuple[Ended, list[str]]:
    seen: list[str] = []
    return watched([sys.executable, "-c", textwrap.dedent(code)], os.environ, log, timeout_s, seen.append), seen


def running(pid: int) -> bool:
    """Whether it runs; one that has ended and is not yet waited for does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def gone(pid: int) -> bool:
    until = time.monotonic() + 30
    while running(pid) and time.monotonic() < until:
        time.sleep(0.02)
    return not running(pid)


def test_lines_of_both_streams_are_handed_on_and_kept(tmp_path: Path) -> None:
    code = "import sys; print('one', flush=True); print('two', file=sys.stderr); sys.stdout.write('half'); sys.exit(3)"
    ended, seen = run(code, tmp_path / "log")
    assert seen == ["one", "two"]
    assert (ended.code, ended.timed_out, ended.interrupted) == (3, False, False)
    assert ended.output == (tmp_path / "log").read_text() == "one\ntwo\nhalf"


def test_a_signal_is_a_negative_code(tmp_path: Path) -> None:
    assert run("import os; os.kill(os.getpid(), 11)", tmp_path / "log")[0].code == -signal.SIGSEGV


def test_what_is_late_is_ended_with_all_that_it_started(tmp_path: Path) -> None:
    ended, _ = run(SLEEPER.format(pid=str(tmp_path / "pid")), tmp_path / "log", timeout_s=3.0)
    assert (ended.code, ended.timed_out) == (-signal.SIGKILL, True)
    assert gone(int((tmp_path / "pid").read_text()))


def test_what_is_left_running_is_ended(tmp_path: Path) -> None:
    code = SLEEPER.format(pid=str(tmp_path / "pid")).replace("beside.wait()", "")
    ended, seen = run(code, tmp_path / "log")
    assert (ended.code, seen) == (0, ["==PROF== started"])
    assert gone(int((tmp_path / "pid").read_text()))


@pytest.mark.parametrize(("stops", "code"), [(True, 7), (False, -signal.SIGKILL)])
def test_an_interrupt_lets_the_tool_write_down_what_it_has(tmp_path: Path, stops: bool, code: int) -> None:
    """Ctrl-C comes to us alone, as the tool has a session of its own; a tool that does not listen is ended at the second."""
    tool = f"""
        import pathlib, signal, sys, time
        def stop(*_):
            pathlib.Path({str(tmp_path / "asked")!r}).touch()
            if {stops}: print("written"); sys.exit(7)
        signal.signal(signal.SIGINT, stop)
        pathlib.Path({str(tmp_path / "mark")!r}).touch()
        while True: time.sleep(0.05)
    """
    driver = f"""
        import os, pathlib, sys
        from regress.run.watched import watched
        words = [sys.executable, "-c", {textwrap.dedent(tool)!r}]
        ended = watched(words, os.environ, pathlib.Path({str(tmp_path / "log")!r}), 60.0, lambda line: None)
        print(ended.code, ended.interrupted, ended.output.strip())
    """
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(driver)],
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    for mark in ("mark", "asked")[: 1 if stops else 2]:
        while not (tmp_path / mark).exists():
            assert process.poll() is None
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    assert out.split() == [str(code), "True", *(["written"] if stops else [])]
