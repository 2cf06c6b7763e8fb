"""What `init` writes: a configuration, a first suite, lines of .gitignore. A file that is there is added to at most."""

from __future__ import annotations

import importlib.util
import os
import re
from collections.abc import Iterable
from pathlib import Path

from regress.commands.init.text import configuration
from regress.errors import RegressError
from regress.git import Repository
from regress.text.wording import quoted, reason

USUAL_SUITES = ("benchmarks", "asv_bench/benchmarks", "asv_bench")
OWN_SUITE = "asv_benchmarks"
"""Where benchmarks/ holds something else."""
IGNORED = ("__pycache__", ".asv", "report")
BENCHMARK = re.compile(
    r"^\s*def\s+(cuda)?(time|timeraw|cold|mem|peakmem|track)_|^\s*class\s+(Cuda)?(Time|TimeRaw|Mem|PeakMem|Track)[A-Z_]",
    re.MULTILINE,
)

ABOUT = '''\
"""A first benchmark; call what your project does in its place.

The name says how a function is measured: cudatime_* on the device, time_* by the host's clock, peakmem_* its peak memory, and
track_* a number that it returns. `setup` runs before it, untimed, once for each of the parameters.
"""
'''
CPU = """

class Sorting:
    params = [1_000, 100_000]
    param_names = ["length"]

    def setup(self, length):
        self.values = [i * 7919 % length for i in range(length)]

    def time_sorted(self, length):
        sorted(self.values)
"""
TORCH = """
import torch


class Softmax:
    params = [1024, 4096]
    param_names = ["size"]

    def setup(self, size):
        self.x = torch.randn(size, size, device="cuda")

    def cudatime_forward(self, size):
        return torch.softmax(self.x, dim=-1)


class SoftmaxOnCpu:
    def setup(self):
        self.x = torch.randn(256, 256)

    def time_forward(self):
        torch.softmax(self.x, dim=-1)
"""


def write_configuration(folder: Path, repository: Repository, patterns: list[str] | None = None) -> Path:
    """Write asv.conf.json into a folder of the repository; with `patterns` again, for benchmarks that are known by now."""
    inside = folder.resolve().relative_to(repository.root)
    up = os.path.relpath(repository.root, folder.resolve())
    places = {
        "repo": Path(up).as_posix(),
        **({"repo_subdir": inside.as_posix()} if inside.parts else {}),
        "benchmark_dir": suite_of(folder),
        "results_dir": "history",
        "env_dir": ".asv/env",
        "html_dir": ".asv/html",
    }
    branch = repository.default_branch() or repository.current_branch() or "main"
    path = folder / "asv.conf.json"
    write(path, configuration(folder.resolve().name, places, branch, patterns or ()), overwrite=patterns is not None)
    return path


def suite_of(folder: Path) -> str:
    """The folder with asv benchmarks, or the one to make: scripts that only lie in a benchmarks/ are nobody's suite."""
    for name in USUAL_SUITES:
        if holds_benchmarks(folder / name):
            return name
    taken = next((folder / "benchmarks").rglob("*.py"), None) or (folder / "benchmarks").is_file()
    return OWN_SUITE if taken else "benchmarks"


def holds_benchmarks(suite: Path) -> bool:
    """Whether a file below has the name of a benchmark in it. Nothing is imported to find out."""
    return any(
        BENCHMARK.search(path.read_text(encoding="utf-8", errors="replace"))
        for path in suite.rglob("*.py")
        if path.is_file()
    )


def write_suite(suite: Path) -> list[Path]:
    """Write an example that runs with what is installed; the files."""
    example = ABOUT + (TORCH if importlib.util.find_spec("torch") else CPU)
    files = {suite / "__init__.py": "", suite / "example.py": example}
    for path, text in files.items():
        write(path, text)
    return list(files)


def ignore(folder: Path, names: Iterable[str], repository: Repository) -> list[str]:
    """Add the folders that git does not ignore yet to the .gitignore beside the configuration; its new lines."""
    inside = folder.resolve().relative_to(repository.root)
    lines = [f"{name}/" for name in names if not repository.ignores(f"{(inside / name).as_posix()}/")]
    path = folder / ".gitignore"
    if lines:
        before = path.read_bytes().decode(errors="surrogateescape") if path.is_file() else ""
        gap = "" if before.endswith("\n") or not before else "\n"
        write(path, before + gap + "".join(f"{line}\n" for line in lines), overwrite=True)
    return lines


def write(path: Path, text: str, overwrite: bool = False) -> None:
    """Write a text file, which may be there only with `overwrite`. Raises RegressError."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("w" if overwrite else "x", encoding="utf-8", errors="surrogateescape", newline="") as file:
            file.write(text)
    except OSError as error:
        raise RegressError(
            f"cannot write {path}", why=reason(error), fix=quoted("chmod", "u+w", path.parent)
        ) from error
