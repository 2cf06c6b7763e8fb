"""What it costs beside asv: one suite, one machine, one run.

    python benchmarks/versus/against_asv.py            200 tiny functions on the CPU, torch imported
    python benchmarks/versus/against_asv.py --cuda     18 cells on a CUDA device

`asv run` with its defaults measures one commit; `regress run` measures it with five rounds, `regress check` two commits with
five rounds each. Prints the seconds of each from start to end, and how many times less they are than asv's. asv times `time_*`
with a synchronize in it, regress `cudatime_*` of the same operation. torch is imported once before, so that nobody pays for
reading its files from a cold disk; the first `regress run` has no cache of its own yet, either. Needs asv and torch here.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[2]
ROUNDS = 5

TINY = """
import torch


class Tiny:
    params = [list(range(20))]
    param_names = ["elements"]

    def setup(self, elements):
        self.x = torch.ones(elements + 1)
""" + "".join(
    f"\n    def time_add_{number}(self, elements):\n        return self.x + {number}\n" for number in range(10)
)

CUDA = """
import torch

OPERATIONS = {
    "add": lambda x: x + x,
    "softmax": lambda x: torch.softmax(x, dim=-1),
    "matmul": lambda x: x @ x,
}


class Cells:
    params = [list(OPERATIONS), [512, 1024, 4096], ["float32", "bfloat16"]]
    param_names = ["operation", "side", "dtype"]

    def setup(self, operation, side, dtype):
        self.call = OPERATIONS[operation]
        self.x = torch.randn(side, side, device="cuda", dtype=getattr(torch, dtype))

    def cudatime_cell(self, operation, side, dtype):
        return self.call(self.x)

    def time_cell(self, operation, side, dtype):
        self.call(self.x)
        torch.cuda.synchronize()
"""

CONFIG = {"version": 1, "project": "cells", "repo": ".", "branches": ["main"], "results_dir": "results"}
ASV = ("--python=same", "--machine", "here")
MACHINE = {"machine": "here", "arch": "", "cpu": "", "num_cpu": "", "os": "", "ram": ""}


class Repository:
    """A repository of two commits with the suite in it, and the environment that commands run in there."""

    def __init__(self, folder: Path, suite: str) -> None:
        self.folder = folder
        identity = {f"GIT_{role}_{what}": "versus" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
        paths = filter(None, (str(ROOT), os.environ.get("PYTHONPATH", "")))
        own = {"HOME": str(folder), "REGRESS_CACHE_DIR": str(folder / "cache"), "PYTHONPATH": os.pathsep.join(paths)}
        self.environment = {**os.environ, **identity, **own}
        (folder / "benchmarks").mkdir()
        files = {
            "benchmarks/__init__.py": "",
            "benchmarks/cells.py": suite,
            "asv.conf.json": json.dumps({**CONFIG, "environment_type": "existing"}),
            ".gitignore": "results/\ncache/\n.asv-machine.json\n",
            ".asv-machine.json": json.dumps({"here": MACHINE, "version": 1}),
        }
        for name, text in files.items():
            (folder / name).write_text(text)
        self.run("git", "init", "-q", "-b", "main")
        self.run("git", "add", "-A")
        for subject in ("the suite", "nothing"):
            self.run("git", "commit", "-q", "--allow-empty", "-m", subject)

    def run(self, *words: str, allowed: Sequence[int] = (0,)) -> float:
        """Run a command; the seconds it took. Exits with what it printed where its exit code is not an allowed one."""
        start = time.monotonic()
        done = subprocess.run(
            words,
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        seconds = time.monotonic() - start
        if done.returncode not in allowed:
            sys.exit(f"{' '.join(words)}: exit code {done.returncode}\n{done.stdout}")
        return seconds

    def head(self) -> str:
        """The newest commit."""
        words = ["git", "rev-parse", "HEAD"]
        return subprocess.run(words, cwd=self.folder, capture_output=True, text=True, check=True).stdout.strip()

    def cells_of_asv(self) -> int:
        """How many cells asv has a value for. It ends with 0 also where it measured nothing."""
        (file,) = (self.folder / "results" / "here").glob(f"{self.head()[:8]}-existing*.json")
        data = json.loads(file.read_text())
        values = data["result_columns"].index("result")
        return sum(value is not None for cells in data["results"].values() for value in cells[values] or ())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cuda", action="store_true", help="18 cells on a CUDA device in place of 200 on the CPU")
    cuda = parser.parse_args().cuda
    python = sys.executable
    ours = ("-b", "cudatime") if cuda else ()
    theirs = ("--bench", r"\.time_cell") if cuda else ()
    with tempfile.TemporaryDirectory(prefix="versus-") as folder:
        repository = Repository(Path(folder), CUDA if cuda else TINY)
        regress = (python, "-m", "regress")
        run = (*regress, "run", "--rounds", str(ROUNDS), *ours)
        commands = {
            f"regress run, {ROUNDS} rounds, the first": run,
            f"regress run, {ROUNDS} rounds": run,
            f"regress check, {ROUNDS} rounds a side": (
                *regress,
                "check",
                "HEAD~1",
                "HEAD",
                "--rounds",
                str(ROUNDS),
                *ours,
            ),
            "asv run": (python, "-m", "asv", "run", *ASV, "--set-commit-hash", repository.head(), *theirs),
        }
        repository.run(python, "-c", "import torch; torch.cuda.is_available()")
        # A verdict of `check` is no error here: 0 and 1 by what it found, 4 where a case is undecided.
        spent = {name: repository.run(*words, allowed=(0, 1, 4)) for name, words in commands.items()}
        cells = repository.cells_of_asv()
        if cells != (18 if cuda else 200):
            sys.exit(f"asv has measured {cells} cells only")
    print("18 cells on a CUDA device" if cuda else "200 cases on the CPU")
    for name, seconds in spent.items():
        print(f"{name:35} {seconds:8.1f} s   {spent['asv run'] / seconds:5.1f} times less than asv")


if __name__ == "__main__":
    main()
