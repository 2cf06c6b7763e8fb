"""What all tests share: no user's git configuration, no user's cache, and small repositories on the scripted device."""

from __future__ import annotations

import gc
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, settings

from regress.measure.backend import DeviceError
from regress.measure.backend.cuda import visible_uuids

# No clock and no dice decide whether a test passes.
settings.register_profile("suite", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("suite")

LIMIT_S = 120.0
"""After which what a test waits for is taken to hang, on a busy machine too."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Torch's profiler never lets go of CUPTI, so what counts launches comes first in a process. What needs a device is skipped
    where there is none, unless it was asked for by its mark: then it is to fail."""
    items.sort(key=lambda item: item.path.name != "test_counters.py")
    asked = re.search(r"(?<!not )\bgpu\b", config.option.markexpr)
    if not asked and any(item.get_closest_marker("gpu") for item in items) and (why := _no_device()):
        for item in items:
            if item.get_closest_marker("gpu"):
                item.add_marker(pytest.mark.skip(reason=why))


def _no_device() -> str:
    """Why nothing that needs a CUDA device can run here; empty where there is one."""
    try:
        visible_uuids()
    except DeviceError as error:
        return str(error)
    return ""


@pytest.fixture(autouse=True, scope="module")
def _little_garbage() -> None:
    """What is loaded by now is left out of garbage collections, as in a worker. Where something is measured one comes before
    every block; with all tests and torch loaded it would take a hundred times as long as the block."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def _isolated(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Git without the user's configuration, an empty home, and a cache that the session's tests share."""
    base = tmp_path_factory.getbasetemp()
    home = base / "home"
    home.mkdir(exist_ok=True)
    for name in [name for name in os.environ if name.startswith(("GIT_", "ASV_", "REGRESS_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    for role in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{role}_NAME", "Ada Lovelace")
        monkeypatch.setenv(f"GIT_{role}_EMAIL", "ada@example.org")
    monkeypatch.setenv("REGRESS_CACHE_DIR", str(base / "cache"))


@pytest.fixture
def dated(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commits have one name in every run of a test: the scripted noise of a sweep depends on their names, and these on when
    they were made."""
    for role in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{role}_DATE", "1700000000 +0000")


@dataclass(frozen=True)
class Result:
    """What a command printed and its exit code."""

    code: int
    out: str
    err: str


def with_this_checkout() -> dict[str, str]:
    """The environment in which `python -m regress` is this checkout's."""
    paths = filter(None, (str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")))
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}


def regress(folder: Path, *arguments: str, timeout_s: float = LIMIT_S) -> Result:
    """Run the command line in a folder, as a user would."""
    done = subprocess.run(
        [sys.executable, "-m", "regress", *arguments],
        cwd=folder,
        env=with_this_checkout(),
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )
    return Result(done.returncode, done.stdout, done.stderr)


def ended(pid: int) -> bool:
    """Whether the process ends in time, as one does that was killed; init may not have collected it yet."""
    until = time.monotonic() + LIMIT_S
    while time.monotonic() < until:
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except (FileNotFoundError, ProcessLookupError):  # the second one where it goes while this is read
            return True
        time.sleep(0.02)
    return False


def inside(p: Project, *arguments: str) -> Result:
    """The command line in the project, run by this process: what a test has put in the place of time is in force."""
    from regress.cli import regress as command_line

    config = "--config", str(p.root / "asv.conf.json")
    done = CliRunner().invoke(command_line, [*arguments, *config])
    return Result(done.exit_code, done.stdout, done.stderr)


def start(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    """The command line in a process of its own, not waited for, that Ctrl-C ends even where the tests run in the background."""
    return subprocess.Popen(
        [sys.executable, "-m", "regress", *arguments],
        cwd=folder,
        env=with_this_checkout(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # A shell starts background jobs with SIGINT ignored, and children inherit that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


def interrupted(process: subprocess.Popen[str], mark: Path, number: signal.Signals = signal.SIGINT) -> Result:
    """What a process says that gets Ctrl-C, or another signal, once the file is there."""
    while not mark.exists():
        assert process.poll() is None, process.communicate()[1]
        time.sleep(0.02)
    process.send_signal(number)
    out, err = process.communicate(timeout=LIMIT_S)
    return Result(process.returncode, out, err)


class Project:
    """A git repository with a project, a suite and a configuration for the scripted device."""

    def __init__(self, root: Path, settings: Mapping[str, object]) -> None:
        self.root = root
        root.mkdir(parents=True)
        self.git("init", "-q", "-b", "main")
        config = {
            "version": 1,
            "project": "proj",
            "repo": ".",
            "results_dir": "history",
            "regress": {"device": "fake", **settings},
        }
        self.write({"asv.conf.json": json.dumps(config), ".gitignore": "__pycache__/\n", "benchmarks/__init__.py": ""})

    def git(self, *arguments: str) -> str:
        return subprocess.run(
            ["git", *arguments], cwd=self.root, check=True, capture_output=True, text=True
        ).stdout.strip()

    def write(self, files: Mapping[str, str]) -> None:
        for name, text in files.items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    def commit(self, files: Mapping[str, str], subject: str = "change") -> str:
        self.write(files)
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", subject)
        return self.git("rev-parse", "HEAD")

    def regress(self, *arguments: str) -> Result:
        return regress(self.root, *arguments)


@pytest.fixture
def project(tmp_path: Path) -> Callable[..., Project]:
    """Makes a Project; keyword arguments are settings under "regress"."""

    def make(name: str = "project", **settings: object) -> Project:
        return Project(tmp_path / name, settings)

    return make


def closed(described: Any, inside: str = "") -> Any:
    """The schema, but that no object may have further keys. What a command adds belongs to the whole document."""
    if isinstance(described, list):
        return [closed(row) for row in described]
    if not isinstance(described, dict):
        return described
    types = {key: closed(row, key) for key, row in described.items()}
    return types | ({"unevaluatedProperties": False} if "required" in types and inside != "then" else {})
