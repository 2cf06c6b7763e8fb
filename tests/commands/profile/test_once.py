"""`regress once`: a plain process that runs one case."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from regress.commands.demo import create

ROOT = Path(__file__).parents[3]
SUITE = """
import os, sys, time
def setup_cache(): return "weights"
class Case:
    params = [["prints", "fails", "skips", "dies", "waits"]]
    def setup(self, weights, what):
        if what == "skips": raise NotImplementedError
        self.calls = 0
    def time_it(self, weights, what):
        self.calls += 1
        if what == "fails": raise ValueError("not today")
        if what == "dies": os.kill(os.getpid(), 11)
        if what == "waits" and self.calls > 3:
            print("waiting", flush=True)
            time.sleep(600)
    def teardown(self, weights, what):
        print(weights, "stdin" if sys.stdin.isatty() else "no terminal")
"""


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("once") / "d"
    create(folder, scripted=True)
    (folder / "benchmarks" / "own.py").write_text(SUITE)
    return folder


def start(demo: Path, *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "regress", "once", *words],
        cwd=demo,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a shell's background jobs ignore it
    )


def run(demo: Path, *words: str) -> tuple[int, str, str]:
    process = start(demo, *words)
    out, err = process.communicate(timeout=120)
    return process.returncode, out, err


def test_what_the_case_prints_is_all_that_is_on_stdout(demo: Path) -> None:
    code, out, err = run(demo, "own.Case.time_it('prints')", "--calls", "3")
    assert (code, out) == (0, "weights no terminal\n"), err
    assert err.startswith("regress: 3 calls of own.Case.time_it('prints'), ")
    assert len(err.splitlines()) == 1


def test_a_case_of_another_commit(demo: Path) -> None:
    code, out, err = run(demo, "ops.Linear.cudatime_forward(2048)", "HEAD~1")
    assert (code, out) == (0, ""), err
    assert err.startswith("regress: 1 call of ops.Linear.cudatime_forward(2048), ")


@pytest.mark.parametrize(
    ("case", "code", "said"),
    [
        ("own.Case.time_it('fails')", 3, "not today"),
        ("own.Case.time_it('skips')", 5, "skipped by its setup"),
        ("own.Case.time_it('dies')", -11, "Segmentation fault"),
        ("own.Case.time_it", 2, "5 cases match"),
        ("linear_forward", 5, "no benchmark matches"),
    ],
)
def test_exit_codes(demo: Path, case: str, code: int, said: str) -> None:
    exit_code, _, err = run(demo, case)
    assert exit_code == code, err
    assert said in err


def test_an_interrupt_ends_it(demo: Path) -> None:
    process = start(demo, "own.Case.time_it('waits')")
    assert process.stdout is not None
    assert process.stdout.readline() == "waiting\n"
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=120)
    assert process.returncode == -signal.SIGINT
