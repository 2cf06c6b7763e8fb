"""The process that ends workers when the driver was killed, and the pipe in which only the harness may write."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from regress.measure.wire import Open, Opened, encode
from regress.run.interrupts import Interrupt, Reaper
from regress.run.servers import Server, TimedOut, WorkerEnds, arriving
from tests.conftest import Project

CODE = "import regress_scripted as d\ndef work(): d.kernel('k', 50e-6)\n"
ODD_NAMES = ["a\nb", "a\n- 1 x", "a\n+ 1 /x", "caf\udce9", "a\u2028b", " two  spaces "]


@pytest.mark.parametrize("name", ODD_NAMES)
def test_whatever_the_folder_is_called_its_worker_is_ended_and_it_alone_removed(tmp_path: Path, name: str) -> None:
    homes = [tmp_path / name / word for word in ("lost", "done")]
    for path in (*homes, tmp_path / name.partition("\n")[0] / "other"):
        path.mkdir(parents=True, exist_ok=True)
    workers = [subprocess.Popen(["sleep", "600"], start_new_session=True) for _ in homes]
    reaper = Reaper()
    try:
        for worker, home in zip(workers, homes, strict=True):
            reaper.watch(worker.pid, home)
        reaper.release(workers[1].pid)
        reaper.close()
        assert workers[0].wait(timeout=120) == -9
        assert workers[1].poll() is None
        assert [home.exists() for home in homes] == [False, True]
        assert (tmp_path / name.partition("\n")[0] / "other").exists()
    finally:
        for worker in workers:
            worker.kill()
            worker.wait()


PRINTS = "import os; os.write({0}, {1!r})\nwhile True: os.write({2}, b'x' * 4096)"


def test_what_is_printed_without_end_is_no_answer() -> None:
    def start(ends: WorkerEnds) -> subprocess.Popen[bytes]:
        code = PRINTS.format(ends.write, encode(Opened(0, {})), ends.log)
        words = [sys.executable, "-I", "-S", "-c", code]
        return subprocess.Popen(words, pass_fds=(ends.read, ends.write, ends.log), start_new_session=True)

    reaper, interrupt = Reaper(), Interrupt()
    try:
        with pytest.raises(TimedOut), Server(start, Open("", [], ""), reaper, interrupt) as server:
            next(arriving([server], 0.05))
    finally:
        reaper.close()
        interrupt.close()


@pytest.mark.parametrize("name", ["a\nb", "caf\udce9"])
def test_what_temporary_files_are_in_may_have_any_name(
    project: Callable[..., Project], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str
) -> None:
    p = project(run_rounds=2)
    p.commit({"proj/__init__.py": CODE, "benchmarks/b.py": "import proj\ndef cudatime_work(): proj.work()\n"})
    (tmp_path / name).mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / name))
    result = p.regress("run", "-q")
    assert result.code == 0, result.err
    assert list((tmp_path / name).iterdir()) == []


WRITES = """
import os
import proj
def cudatime_a(): proj.work()
def track_z():
    for fd in os.listdir("/proc/self/fd"):
        try:
            if int(fd) > 2 and os.readlink(f"/proc/self/fd/{fd}").startswith("pipe:"):
                os.write(int(fd), LINE)
        except OSError:
            pass
    return 1
"""


@pytest.mark.parametrize(
    "line",
    [
        b'{"is": "Works"}',
        b'{"is": []}',
        b"[" * 3_000,
        b'{"is": "Round", "name": "b.cudatime_a", "params": [], "side": "x", "order": 0}',
    ],
)
def test_what_a_benchmark_writes_into_the_pipe_costs_itself(project: Callable[..., Project], line: bytes) -> None:
    p = project(run_rounds=2)
    p.commit({"proj/__init__.py": CODE, "benchmarks/b.py": WRITES.replace("LINE", repr(line + b"\n"))})
    result = p.regress("run")
    assert (result.code, "internal error" in result.err) == (3, False), result.err
    assert "b.cudatime_a" in result.out
    assert "wrote into the harness's pipe" in result.out or "ended without a result" in result.out, result.out


def test_a_long_time_limit_is_told_in_digits() -> None:
    assert str(TimedOut(3600.0)) == "no answer within 3600 s"
