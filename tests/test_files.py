"""What has the name of a file and is none: nothing waits for it, and nothing reads it without end."""

from __future__ import annotations

import contextlib
import fcntl
import gc
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from regress import acks, profiles
from regress.errors import ConfigError, RegressError
from regress.files import SCRATCH, made_at_once, open_file, read_bytes, scratch
from regress.history import Archive, Store, disk
from regress.history.kept import StateFile
from regress.traces import chrome, nsys

from .conftest import with_this_checkout


def a_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(os.path.relpath(path))


NONE: dict[str, Callable[[Path], None]] = {
    "pipe": os.mkfifo,
    "device": lambda path: path.symlink_to("/dev/zero"),
    "socket": a_socket,
    "folder": Path.mkdir,
    "loop": lambda path: path.symlink_to(path),
}


@pytest.fixture(params=NONE)
def none(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Path], Path]:
    """Makes something that is no file."""
    monkeypatch.chdir(tmp_path)

    def make(path: Path) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        NONE[request.param](path)
        return path

    return make


def test_what_is_no_file_is_not_opened(none: Callable[[Path], Path], tmp_path: Path) -> None:
    path = none(tmp_path / "x")
    for read in (read_bytes, open_file, lambda path: open_file(path, os.O_RDWR | os.O_CREAT)):
        with pytest.raises(OSError):
            read(path)
    gc.collect()  # what other tests have left does not go meanwhile
    left = os.listdir("/proc/self/fd")
    with pytest.raises(OSError):
        read_bytes(path)
    assert len(os.listdir("/proc/self/fd")) == len(left)


def test_in_results_it_is_named(none: Callable[[Path], Path], tmp_path: Path) -> None:
    root = tmp_path / "results"
    names = ("3f2c1ab9-e.json", "9d41e77c-e.rounds.jsonl", "machine.json")
    made = {none(root / "box" / name) for name in names} | {none(root / "benchmarks.json")}
    (root / "box" / "11111111-e.json").write_text("{")  # so that the machine is read
    archive = Archive(root, tmp_path / "cache", ())
    assert {file.path for file in archive.skipped} >= made - {root / "box" / "machine.json"}
    assert all(file.fix for file in archive.skipped)
    loaded = Store(root).load("3f2c1ab9")
    assert root / "box" / "3f2c1ab9-e.json" in {file.path for file in loaded.skipped}
    assert Store(root).commits() == ()


def test_nothing_is_written_over_it(none: Callable[[Path], Path], tmp_path: Path) -> None:
    path = none(tmp_path / "x")
    assert StateFile(path, "machines", int).read() == {}
    for write in (lambda: disk.replace_file(path, b"data"), lambda: disk.append(path, b"data")):
        with pytest.raises(RegressError):
            write()


def test_named_by_the_user_it_is_an_error(none: Callable[[Path], Path], tmp_path: Path) -> None:
    path = none(tmp_path / "x.json")
    for read in (profiles.read, chrome.read, nsys.read):
        with pytest.raises(RegressError):
            read(path)
    with pytest.raises(ConfigError):
        acks.read(path)


# -- what is temporary ---------------------------------------------------------------------------------------------------

HOLDS = (
    "import sys, time; from regress.files import scratch; print(scratch(), flush=True); time.sleep(float(sys.argv[1]))"
)


def holding(parent: Path, seconds: float) -> tuple[subprocess.Popen[str], Path]:
    """A process that has a folder below the parent, and the folder."""
    variables = {**with_this_checkout(), "TMPDIR": str(parent)}
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDS, str(seconds)], env=variables, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip())


def test_what_a_killed_process_has_left_is_removed_by_the_next_one(tmp_path: Path) -> None:
    killed, left = holding(tmp_path, 600)
    (left / "compiled").mkdir()
    killed.kill()
    killed.communicate()
    alive, held = holding(tmp_path, 600)
    try:
        assert not left.exists()
        link, other = tmp_path / f"{SCRATCH}link", tmp_path / "mine"
        other.mkdir()
        link.symlink_to(other)
        ended, own = holding(tmp_path, 0)
        ended.communicate()
        assert not own.exists(), "a process removes its own when it ends"
        assert held.is_dir(), "its process is alive"
        assert other.is_dir()
    finally:
        alive.kill()
        alive.communicate()


@pytest.mark.parametrize("moment", ["open", "flock"], ids=["before-it-is-opened", "before-it-is-locked"])
def test_a_new_folder_that_another_process_takes_for_left_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    module: Any = os if moment == "open" else fcntl
    real = getattr(module, moment)
    removed: list[Path] = []

    def after_the_other(*arguments: Any, **options: Any) -> Any:
        (made,) = tmp_path.iterdir()
        if not removed:
            removed.append(made)
            made.rmdir()
        return real(*arguments, **options)

    with monkeypatch.context() as patched:
        patched.setattr(module, moment, after_the_other)
        own = Path(scratch())
    assert own.is_dir()
    assert own not in removed
    assert len(removed) == 1


def test_a_folder_that_somebody_has_removed_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    first = scratch()
    assert scratch() == first
    os.rmdir(first)
    assert os.path.isdir(scratch())


def test_a_folder_is_there_whole_or_not_at_all(tmp_path: Path) -> None:
    folder = tmp_path / "in" / "folder"
    with contextlib.suppress(ValueError), made_at_once(folder) as fresh:
        (fresh / "part").write_text("")
        raise ValueError
    assert list(folder.parent.iterdir()) == []
    with made_at_once(folder) as late:
        (late / "late").write_text("")
        with made_at_once(folder) as first:
            (first / "first").write_text("")
    assert [path.name for path in folder.parent.rglob("*")] == ["folder", "first"]
