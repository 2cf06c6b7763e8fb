"""A device is held by one process: who comes second learns who has it, or waits, and a dead holder holds nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from regress.errors import NothingMeasured, RegressError
from regress.run import device_lock
from regress.run.device_lock import held

UUID = "GPU-1234"
HOLDER = """
import sys, time
from pathlib import Path
from regress.run.device_lock import held
with held("GPU-1234", Path(sys.argv[1]), print):
    print("held", flush=True)
    time.sleep(600)
"""


def ignore(text: str) -> None: ...


@pytest.fixture
def holder(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that holds the device."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path / "locks")], stdout=subprocess.PIPE, text=True, cwd=tmp_path
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.wait()
    process.stdout.close()


def test_who_holds_it_is_named(tmp_path: Path, holder: subprocess.Popen[str]) -> None:
    with pytest.raises(NothingMeasured) as caught:
        with held(UUID, tmp_path / "locks", ignore):
            raise AssertionError("it is held")
    assert caught.value.what.startswith(f"{UUID} is being measured by process {holder.pid} of ")
    assert caught.value.what.endswith(f", in {tmp_path}")
    assert "--wait-lock" in caught.value.fix


def test_another_device_is_free(tmp_path: Path, holder: subprocess.Popen[str]) -> None:
    with held("GPU-5678", tmp_path / "locks", ignore):
        assert holder.poll() is None


def test_a_killed_holder_holds_nothing(tmp_path: Path, holder: subprocess.Popen[str]) -> None:
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    with held(UUID, tmp_path / "locks", ignore):
        pass


def test_waiting_is_said_once_and_ends_with_the_holder(
    tmp_path: Path, holder: subprocess.Popen[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(device_lock, "POLL_S", 0.01)
    notes: list[str] = []

    def note(text: str) -> None:
        notes.append(text)
        threading.Timer(0.1, holder.kill).start()

    with held(UUID, tmp_path / "locks", note, wait=True):
        pass
    assert len(notes) == 1
    assert notes[0].startswith(f"waiting for {UUID}, which is being measured by process {holder.pid}")


def test_others_can_lock_too_and_nothing_stays_in_the_file(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        with held(UUID, tmp_path / "locks", ignore):
            path = tmp_path / "locks" / f"{UUID}.lock"
            assert path.stat().st_mode & 0o777 == 0o666
            assert path.parent.stat().st_mode & 0o7777 == 0o1777
            assert str(os.getpid()) in path.read_text()
        assert path.read_text() == ""
    finally:
        os.umask(before)


def test_a_folder_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    (tmp_path / "locks").write_text("a file")
    with pytest.raises(RegressError, match=r"the lock of GPU-1234 cannot be used") as caught:
        with held(UUID, tmp_path / "locks", ignore):
            pass
    assert "Not a directory" in caught.value.why
    assert "lock_dir" in caught.value.fix


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    """A file of the user's that nobody else may change."""
    path = tmp_path / "mine"
    path.write_text("dear")
    (tmp_path / "locks").mkdir()
    return path


@pytest.mark.parametrize("link", ["symlink_to", "hardlink_to"])
def test_a_link_in_the_place_of_a_lock_changes_no_file_of_somebodys(tmp_path: Path, mine: Path, link: str) -> None:
    getattr(tmp_path / "locks" / f"{UUID}.lock", link)(mine)
    with pytest.raises(RegressError, match="cannot be used"):
        with held(UUID, tmp_path / "locks", ignore):
            raise AssertionError("it is held")
    assert mine.read_text() == "dear"


def test_a_link_to_nowhere_in_the_place_of_a_lock_makes_no_file(tmp_path: Path) -> None:
    (tmp_path / "locks").mkdir()
    (tmp_path / "locks" / f"{UUID}.lock").symlink_to(tmp_path / "made")
    with pytest.raises(RegressError, match="cannot be used"):
        with held(UUID, tmp_path / "locks", ignore):
            raise AssertionError("it is held")
    assert not (tmp_path / "made").exists()


def test_a_pipe_in_the_place_of_a_lock_is_not_waited_for(tmp_path: Path) -> None:
    (tmp_path / "locks").mkdir()
    os.mkfifo(tmp_path / "locks" / f"{UUID}.lock")
    with pytest.raises(RegressError, match="cannot be used"):
        with held(UUID, tmp_path / "locks", ignore):
            raise AssertionError("it is held")
