from __future__ import annotations

import errno
import fcntl
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from regress.errors import StoreError
from regress.history import disk


@contextmanager
def room_for(size: int) -> Iterator[None]:
    """No file can grow beyond `size` bytes: what fits is written, then the write fails, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@contextmanager
def read_only_folder() -> Iterator[Path]:
    """A folder that may be read and not written; root, who may write everywhere, becomes somebody else meanwhile."""
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o555)
        root = os.geteuid() == 0
        if root:
            os.seteuid(65534)
        try:
            yield Path(name)
        finally:
            if root:
                os.seteuid(0)
            os.chmod(name, 0o755)


def failing(code: int) -> Any:
    def fail(*args: Any, **kwargs: Any) -> None:
        raise OSError(code, os.strerror(code))

    return fail


# -- replacing -----------------------------------------------------------------------------------------------------------


def test_replacing_leaves_the_new_content_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "machine" / "a.json"
    disk.replace_file(path, b"old")
    disk.replace_file(path, b"new")
    assert path.read_bytes() == b"new"
    assert os.listdir(path.parent) == ["a.json"]


def test_the_content_is_on_the_disk_before_it_has_the_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, order = tmp_path / "a.json", []
    sync, rename = os.fsync, os.replace

    def noted_sync(descriptor: int) -> None:
        order.append(os.readlink(f"/proc/self/fd/{descriptor}"))
        sync(descriptor)

    def noted_rename(source: Path, target: Path) -> None:
        order.append("rename")
        rename(source, target)

    monkeypatch.setattr(os, "fsync", noted_sync)
    monkeypatch.setattr(os, "replace", noted_rename)
    disk.replace_file(path, b"new")
    assert order == [str(tmp_path / ".a.json.tmp"), "rename", str(tmp_path)]


def test_a_file_that_stays_the_same_is_not_touched(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    disk.replace_file(path, b"same")
    inode = path.stat().st_ino
    disk.replace_file(path, b"same")
    assert path.stat().st_ino == inode


def test_a_writer_that_dies_before_the_rename_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(b"old")
    code = (
        "import os, signal, pathlib, sys\n"
        "from regress.history import disk\n"
        "os.replace = lambda *_: os.kill(os.getpid(), signal.SIGKILL)\n"
        "disk.replace_file(pathlib.Path(sys.argv[1]), b'new' * 1000)\n"
    )
    died = subprocess.run(
        [sys.executable, "-c", code, str(path)], check=False, env={**os.environ, "PYTHONPATH": _root()}
    )
    assert died.returncode == -9
    assert path.read_bytes() == b"old"
    disk.replace_file(path, b"new")
    assert path.read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["a.json"], "what the killed writer left is gone"


def test_a_full_disk_leaves_the_old_file_and_says_so(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(b"old")
    with room_for(100), pytest.raises(StoreError) as caught:
        disk.replace_file(path, b"x" * 1000)
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["a.json"]
    assert str(path) in caught.value.what
    assert "free some space" in caught.value.fix


@pytest.mark.parametrize(
    ("code", "why", "fix"),
    [
        (errno.ENOSPC, "no space left", "free some space"),
        (errno.EDQUOT, "quota", "free some space"),
        (errno.EROFS, "read-only", "chmod -R u+w"),
        (errno.EACCES, "permission denied", "chmod -R u+w"),
        (errno.EIO, "input/output", "choose another folder"),
    ],
)
def test_every_failure_to_write_says_what_why_and_fix(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, why: str, fix: str
) -> None:
    monkeypatch.setattr(os, "replace", failing(code))
    with pytest.raises(StoreError) as caught:
        disk.replace_file(tmp_path / "a.json", b"new")
    assert caught.value.what == f"cannot write {tmp_path / 'a.json'}"
    assert why in caught.value.why
    assert fix in caught.value.fix
    assert os.listdir(tmp_path) == []


# -- appending -----------------------------------------------------------------------------------------------------------


def test_an_append_to_a_torn_line_starts_a_new_one(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"whole": 1}\n{"tor')
    size = disk.append(path, b'{"next": 1}\n')
    assert path.read_bytes() == b'{"whole": 1}\n{"tor\n{"next": 1}\n'
    assert size == path.stat().st_size


def test_an_append_that_does_not_fit_is_taken_back_whole(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    disk.append(path, b"first\n")
    with room_for(10), pytest.raises(StoreError, match="cannot write"):
        disk.append(path, b"second line\n")
    assert path.read_bytes() == b"first\n"


# -- the lock ------------------------------------------------------------------------------------------------------------


def _root() -> str:
    return str(Path(disk.__file__).parents[2])


def test_the_lock_leaves_no_file(tmp_path: Path) -> None:
    with disk.locked(tmp_path / "results", 1):
        assert os.listdir(tmp_path / "results") == [disk.LOCK_NAME]
    assert os.listdir(tmp_path / "results") == []


def test_a_waiting_writer_names_the_process_that_holds_the_lock(tmp_path: Path) -> None:
    with disk.locked(tmp_path, 1):
        with pytest.raises(StoreError, match=f"is being written by process {os.getpid()} on ") as caught:
            with disk.locked(tmp_path, 0.02):
                pytest.fail("two writers at once")
    assert caught.value.fix.endswith(f"kill {os.getpid()}")


def test_the_file_of_a_dead_holder_does_not_block(tmp_path: Path) -> None:
    (tmp_path / disk.LOCK_NAME).write_text("1 elsewhere")
    with disk.locked(tmp_path, 0):
        pass


def test_a_lock_on_a_removed_file_does_not_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between a waiter's open and its lock the holder may remove the file: the waiter then has to start again."""
    original, first = fcntl.flock, True

    def remove_first(descriptor: int, operation: int) -> None:
        nonlocal first
        if first:
            (tmp_path / disk.LOCK_NAME).unlink()
            first = False
        original(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", remove_first)
    with disk.locked(tmp_path, 1):
        assert (tmp_path / disk.LOCK_NAME).exists()
    assert not first


def test_a_file_system_without_locks_is_locked_on_the_node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    results, node = tmp_path / "results", tmp_path / "node"
    node.mkdir()
    original = fcntl.flock

    def no_locks_in_results(descriptor: int, operation: int) -> None:
        if os.readlink(f"/proc/self/fd/{descriptor}").startswith(str(results)):
            raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))
        original(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", no_locks_in_results)
    monkeypatch.setattr("tempfile.tempdir", str(node))
    with disk.locked(results, 1):
        assert os.listdir(results) == []
        assert len(os.listdir(node)) == 1
        with pytest.raises(StoreError, match="is being written"):
            with disk.locked(results, 0.02):
                pytest.fail("two writers at once")
    assert os.listdir(node) == []


def test_a_folder_that_cannot_be_made_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="cannot write"):
        with disk.locked(tmp_path / "file" / "results", 1):
            pytest.fail("no folder, no lock")


def test_a_read_only_folder_says_so() -> None:
    with read_only_folder() as folder, pytest.raises(StoreError, match="cannot write") as caught:
        disk.replace_file(folder / "a.json", b"new")
    assert "permission denied" in caught.value.why
    assert "chmod -R u+w" in caught.value.fix


def test_a_read_only_folder_cannot_be_locked_and_says_so() -> None:
    with read_only_folder() as folder, pytest.raises(StoreError, match="cannot write") as caught:
        with disk.locked(folder, 1):
            pytest.fail("locked without a file")
    assert "chmod -R u+w" in caught.value.fix


def test_what_a_killed_writer_left_goes_even_where_nothing_changes(tmp_path: Path) -> None:
    path, left = tmp_path / "a.json", tmp_path / ".a.json.tmp"
    disk.replace_file(path, b"{}")
    left.write_bytes(b"{")
    disk.replace_file(path, b"{}")
    assert path.read_bytes() == b"{}"
    assert not left.exists()


def test_a_link_in_the_place_of_a_file_of_ours_changes_no_file_of_somebodys(tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.write_text("dear")
    for name in (".regress.lock", ".x.json.tmp", "x.json", "x.rounds.jsonl"):
        (tmp_path / name).symlink_to(mine)
    with pytest.raises(StoreError):
        with disk.locked(tmp_path, 0.1):
            raise AssertionError("it is locked")
    with pytest.raises(StoreError):
        disk.append(tmp_path / "x.rounds.jsonl", b"line\n")
    disk.replace_file(tmp_path / "x.json", b"{}")
    assert (mine.read_text(), (tmp_path / "x.json").read_text()) == ("dear", "{}")
    assert not (tmp_path / "x.json").is_symlink()
