"""A tool with a program below it. Real processes: what they leave running would be left on the machine."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from regress import children
from regress.run.watched import Ended, watched
from tests.conftest import ended

SLEEPER = """
import pathlib, subprocess, sys
beside = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
pathlib.Path({pid!r}).write_text(str(beside.pid))
print("==PROF== started", flush=True)
beside.wait()
"""


def run(code: str, log: Path, timeout_s: float = 120.0) -> tuple[Ended, list[str]]:
    seen: list[str] = []
    return watched([sys.executable, "-c", textwrap.dedent(code)], os.environ, log, timeout_s, seen.append), seen


def test_lines_of_both_streams_are_handed_on_and_kept(tmp_path: Path) -> None:
    code = "import sys; print('one', flush=True); print('two', file=sys.stderr); sys.stdout.write('half'); sys.exit(3)"
    done, seen = run(code, tmp_path / "log")
    assert seen == ["one", "two"]
    assert (done.code, done.timed_out, done.interrupted) == (3, False, False)
    assert done.output == (tmp_path / "log").read_text() == "one\ntwo\nhalf"


def test_a_signal_is_a_negative_code(tmp_path: Path) -> None:
    assert run("import os; os.kill(os.getpid(), 11)", tmp_path / "log")[0].code == -signal.SIGSEGV


def test_what_is_late_is_ended_with_all_that_it_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its time is over once it has started what it starts."""
    pid = tmp_path / "pid"
    clock = SimpleNamespace(monotonic=lambda: 3.0 if pid.exists() and pid.read_text() else 0.0, sleep=time.sleep)
    monkeypatch.setattr(children, "time", clock)
    late, _ = run(SLEEPER.format(pid=str(pid)), tmp_path / "log", timeout_s=3.0)
    monkeypatch.undo()
    assert (late.code, late.timed_out) == (-signal.SIGKILL, True)
    assert ended(int(pid.read_text()))


def test_what_is_left_running_is_ended(tmp_path: Path) -> None:
    code = SLEEPER.format(pid=str(tmp_path / "pid")).replace("beside.wait()", "")
    done, seen = run(code, tmp_path / "log")
    assert (done.code, seen) == (0, ["==PROF== started"])
    assert ended(int((tmp_path / "pid").read_text()))


@pytest.mark.parametrize(("stops", "code"), [(True, 7), (False, -signal.SIGKILL)])
def test_an_interrupt_lets_the_tool_write_down_what_it_has(tmp_path: Path, stops: bool, code: int) -> None:
    """Ctrl-C comes to us alone, as the tool has a session of its own; a tool that does not listen is ended at the second."""
    tool = f"""
        import pathlib, signal, sys, time
        def stop(*_):
            pathlib.Path({str(tmp_path / "asked")!r}).touch()
            if {stops}: print("written"); sys.exit(7)
        signal.signal(signal.SIGINT, stop)
        print("listens", flush=True)
        while True: time.sleep(0.05)
    """
    driver = f"""
        import os, pathlib, sys
        from regress.run.watched import watched
        words = [sys.executable, "-c", {textwrap.dedent(tool)!r}]
        seen = lambda line: pathlib.Path({str(tmp_path / "mark")!r}).touch()  # it is waited for by now
        ended = watched(words, os.environ, pathlib.Path({str(tmp_path / "log")!r}), 120.0, seen)
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
    out, _ = process.communicate(timeout=120)
    assert out.split() == [str(code), "True", "listens", *(["written"] if stops else [])]
