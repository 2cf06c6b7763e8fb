"""Clocks are locked while a block runs and given back whatever happens, on a stand-in for NVML."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from regress.errors import RegressError
from regress.files import lock
from regress.run import clocks

UUID = "GPU-1234"
ROOT = Path(__file__).parents[2]


class Nvml:
    """One device. `denied` and `unsupported` are names of functions that fail so; `calls` is what changed anything."""

    NVML_CLOCK_GRAPHICS, NVML_CLOCK_MEM, NVML_CLOCK_LIMIT_ID_TDP = 0, 2, 0xFFFFFF01
    NVML_ERROR_NOT_SUPPORTED, NVML_ERROR_NO_PERMISSION, NVML_ERROR_NOT_FOUND, NVML_ERROR_FUNCTION_NOT_FOUND = (
        3,
        4,
        6,
        13,
    )

    class NVMLError(Exception):
        def __init__(self, value: int) -> None:
            super().__init__(value)
            self.value = value

        def __str__(self) -> str:
            return {3: "Not Supported", 4: "Insufficient Permissions", 6: "Not Found"}.get(self.value, "Unknown Error")

    def __init__(self, *denied: str, unsupported: tuple[str, ...] = (), default: bool = True) -> None:
        self.denied, self.unsupported, self.default = denied, unsupported, default
        self.calls: list[tuple[str, Any]] = []
        self.open = 0

    def nvmlInit(self) -> None:
        self._check("Init")
        self.open += 1

    def nvmlShutdown(self) -> None:
        self.open -= 1

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> str:
        if uuid != UUID:
            raise self.NVMLError(self.NVML_ERROR_NOT_FOUND)
        return "handle"

    def nvmlDeviceGetDefaultApplicationsClock(self, device: str, kind: int) -> int:
        if not self.default:
            raise self.NVMLError(self.NVML_ERROR_NOT_SUPPORTED)
        return {self.NVML_CLOCK_GRAPHICS: 1980, self.NVML_CLOCK_MEM: 2619}[kind]

    def nvmlDeviceGetMaxClockInfo(self, device: str, kind: int) -> int:
        assert kind == self.NVML_CLOCK_MEM
        return 2700

    def nvmlDeviceSetGpuLockedClocks(self, device: str, low: int, high: int) -> None:
        self._change("SetGpu", (low, high))

    def nvmlDeviceSetMemoryLockedClocks(self, device: str, low: int, high: int) -> None:
        self._change("SetMemory", (low, high))

    def nvmlDeviceResetGpuLockedClocks(self, device: str) -> None:
        self._change("ResetGpu", ())

    def nvmlDeviceResetMemoryLockedClocks(self, device: str) -> None:
        self._change("ResetMemory", ())

    def _check(self, name: str) -> None:
        for names, code in (
            (self.denied, self.NVML_ERROR_NO_PERMISSION),
            (self.unsupported, self.NVML_ERROR_NOT_SUPPORTED),
        ):
            if name in names:
                raise self.NVMLError(code)

    def _change(self, name: str, value: Any) -> None:
        self._check(name)
        self.calls.append((name, value))


RESETS: list[tuple[str, Any]] = [("ResetGpu", ()), ("ResetMemory", ())]


class Notes(list[str]):
    def __call__(self, text: str) -> None:
        self.append(text)


@pytest.fixture
def notes() -> Notes:
    return Notes()


def left(folder: Path) -> str:
    """What the file of the device says."""
    return (folder / (UUID + clocks.ENDING)).read_text()


def test_both_clocks_are_locked_and_given_back(tmp_path: Path, notes: Notes) -> None:
    nvml = Nvml()
    with clocks.locked(UUID, tmp_path / "new", notes, nvml) as words:
        assert words == "SM clock locked at 1980 MHz (default application clock), memory clock locked at 2619 MHz"
        assert nvml.calls == [("SetGpu", (1980, 1980)), ("SetMemory", (2619, 2619))]
        assert json.loads(left(tmp_path / "new")) == {"uuid": UUID, "pid": os.getpid()}
    assert nvml.calls[2:] == RESETS
    assert (nvml.open, left(tmp_path / "new"), notes) == (0, "", [])


class Newer(Nvml):
    """A version of the library that no longer has the function."""

    nvmlDeviceGetDefaultApplicationsClock = None  # type: ignore[assignment]


@pytest.mark.parametrize("nvml", [Nvml(default=False), Newer()])
def test_where_no_application_clock_is_reported_the_rated_power_decides(
    tmp_path: Path, notes: Notes, nvml: Nvml
) -> None:
    with clocks.locked(UUID, tmp_path, notes, nvml) as words:
        assert words == "SM clock locked at the TDP limit, memory clock locked at 2700 MHz"
    assert nvml.calls == [("SetGpu", (0xFFFFFF01, 0xFFFFFF01)), ("SetMemory", (2700, 2700)), *RESETS]


def test_a_device_without_a_memory_lock_has_its_sm_clock_locked(tmp_path: Path, notes: Notes) -> None:
    nvml = Nvml(unsupported=("SetMemory", "ResetMemory"))
    with clocks.locked(UUID, tmp_path, notes, nvml) as words:
        assert words.endswith("memory clock left alone (Not Supported)")
    assert nvml.calls == [("SetGpu", (1980, 1980)), ("ResetGpu", ())]
    assert (left(tmp_path), notes) == ("", [])


@pytest.mark.parametrize("raised", [KeyboardInterrupt, ZeroDivisionError, SystemExit])
def test_they_are_given_back_however_the_block_ends(tmp_path: Path, notes: Notes, raised: type[BaseException]) -> None:
    nvml = Nvml()
    with pytest.raises(raised):
        with clocks.locked(UUID, tmp_path, notes, nvml):
            raise raised
    assert nvml.calls[2:] == RESETS
    assert left(tmp_path) == ""


@pytest.mark.parametrize("denied", [("SetGpu", "SetMemory", "ResetGpu", "ResetMemory"), ("SetMemory",)])
def test_without_permission_nothing_stays_locked(tmp_path: Path, notes: Notes, denied: tuple[str, ...]) -> None:
    nvml = Nvml(*denied)
    with pytest.raises(RegressError) as caught:
        with clocks.locked(UUID, tmp_path, notes, nvml):
            raise AssertionError("it must not run")
    assert caught.value.what == f"the clocks of {UUID} cannot be locked"
    assert caught.value.why == "Insufficient Permissions: only an administrator may change clocks"
    assert caught.value.fix.startswith(f"sudo nvidia-smi -i {UUID} -l")
    assert caught.value.fix.endswith("by an administrator, or leave --lock-clocks out")
    assert (left(tmp_path), notes, nvml.open) == ("", [], 0)
    assert [name for name, _ in nvml.calls if name.startswith("Set")] == [
        name for name in ("SetGpu", "SetMemory") if name not in denied
    ]


@pytest.mark.parametrize(("uuid", "nvml"), [("GPU-other", Nvml()), (UUID, Nvml("Init"))])
def test_what_nvml_cannot_do_is_an_error_in_words(tmp_path: Path, notes: Notes, uuid: str, nvml: Nvml) -> None:
    with pytest.raises(RegressError, match="cannot be locked") as caught:
        with clocks.locked(uuid, tmp_path, notes, nvml):
            raise AssertionError("it must not run")
    assert "NVML" in caught.value.why
    assert "--lock-clocks" in caught.value.fix
    assert nvml.calls == []


def test_clocks_that_cannot_be_given_back_are_said_and_tried_again(tmp_path: Path, notes: Notes) -> None:
    nvml = Nvml("ResetGpu")
    with clocks.locked(UUID, tmp_path, notes, nvml):
        pass
    (said,) = notes
    assert "may still be locked (Insufficient Permissions)" in said
    assert f"sudo nvidia-smi -i {UUID} -rgc && sudo nvidia-smi -i {UUID} -rmc" in said
    assert json.loads(left(tmp_path))["uuid"] == UUID
    clocks.restore_left(tmp_path, notes, nvml)
    assert len(notes) == 2
    nvml.denied = ()
    clocks.restore_left(tmp_path, notes, nvml)
    assert notes[2] == f"the clocks of {UUID} were still locked by a run that was killed; released now"
    clocks.restore_left(tmp_path, notes, nvml)
    assert (len(notes), left(tmp_path)) == (3, "")


def test_ctrl_c_right_behind_the_call_that_locked_keeps_the_claim(tmp_path: Path, notes: Notes) -> None:
    nvml = Nvml("ResetGpu", "ResetMemory")
    lock = nvml.nvmlDeviceSetGpuLockedClocks

    def interrupted(*of: Any) -> None:
        lock(*of)
        raise KeyboardInterrupt

    nvml.nvmlDeviceSetGpuLockedClocks = interrupted  # type: ignore[assignment]
    with pytest.raises(KeyboardInterrupt), clocks.locked(UUID, tmp_path, notes, nvml):
        pass
    assert "may still be locked" in notes[0]
    assert UUID in left(tmp_path)


def test_a_run_that_goes_on_keeps_its_clocks(tmp_path: Path, notes: Notes) -> None:
    first, second = Nvml(), Nvml()
    with clocks.locked(UUID, tmp_path, notes, first):
        clocks.restore_left(tmp_path, notes, second)
        with pytest.raises(RegressError, match="locked by another regress"):
            with clocks.locked(UUID, tmp_path, notes, second):
                raise AssertionError("it must not run")
    assert (second.calls, notes) == ([], [])


def test_a_look_at_what_is_left_is_in_the_way_of_no_run_that_begins(
    tmp_path: Path, notes: Notes, monkeypatch: pytest.MonkeyPatch
) -> None:
    with clocks.locked(UUID, tmp_path, notes, Nvml()):
        pass
    refused: list[str] = []

    def begin_then(descriptor: int, **how: bool) -> bool:
        """Whenever the one that looks has the file, another begins."""
        taken = lock(descriptor, **how)
        with monkeypatch.context() as patch:
            patch.setattr(clocks, "lock", lock)
            try:
                with clocks.locked(UUID, tmp_path, notes, Nvml()):
                    pass
            except RegressError as error:
                refused.append(error.what)
        return taken

    monkeypatch.setattr(clocks, "lock", begin_then)
    clocks.restore_left(tmp_path, notes, Nvml())
    assert (refused, notes) == ([], [])


def test_nothing_left_asks_nothing(tmp_path: Path, notes: Notes) -> None:
    class Forbidden:
        def __getattr__(self, name: str) -> Any:
            raise AssertionError(name)

    clocks.restore_left(tmp_path / "never made", notes, Forbidden())
    for text in ("", "{", "[]", '{"pid": 3}'):
        (tmp_path / (UUID + clocks.ENDING)).write_text(text)
        clocks.restore_left(tmp_path, notes, Forbidden())
    assert notes == []


def test_a_device_that_is_not_here_is_left_to_where_it_is(tmp_path: Path, notes: Notes) -> None:
    """The cache may be shared by several machines."""
    (tmp_path / ("GPU-far" + clocks.ENDING)).write_text(json.dumps({"uuid": "GPU-far", "pid": 1}))
    nvml = Nvml()
    clocks.restore_left(tmp_path, notes, nvml)
    assert (nvml.calls, notes) == ([], [])
    assert "GPU-far" in (tmp_path / ("GPU-far" + clocks.ENDING)).read_text()


@pytest.mark.parametrize("ending", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_process_that_is_ended(tmp_path: Path, notes: Notes, ending: signal.Signals) -> None:
    """Told to end, it gives the clocks back itself; killed, it leaves them to the next run. pynvml is found by its name."""
    script = f"""
import os, signal, sys
from pathlib import Path
from tests.run.test_clocks import Nvml, UUID
nvml = Nvml()
sys.modules["pynvml"] = nvml
signal.signal(signal.SIGTERM, signal.default_int_handler)  # as the command line does
signal.signal(signal.SIGINT, signal.default_int_handler)
from regress.run import clocks
try:
    with clocks.locked(UUID, Path({str(tmp_path)!r}), print):
        os.kill(os.getpid(), {int(ending)})
        while True:
            signal.pause()
except KeyboardInterrupt:
    print([name for name, _ in nvml.calls])
"""
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False, timeout=120
    )
    nvml = Nvml()
    clocks.restore_left(tmp_path, notes, nvml)
    if ending == signal.SIGKILL:
        assert done.returncode == -signal.SIGKILL
        assert nvml.calls == RESETS
        assert len(notes) == 1
    else:
        assert done.stdout.strip() == "['SetGpu', 'SetMemory', 'ResetGpu', 'ResetMemory']", done.stderr
        assert (nvml.calls, notes) == ([], [])


def test_a_file_that_cannot_be_used_is_named(tmp_path: Path, notes: Notes) -> None:
    path = tmp_path / (UUID + clocks.ENDING)
    path.mkdir()
    clocks.restore_left(tmp_path, notes, Nvml())
    assert "may still be locked" in notes[0]
    with pytest.raises(RegressError, match="cannot use") as caught:
        with clocks.locked(UUID, tmp_path, notes, Nvml()):
            raise AssertionError("it must not run")
    assert caught.value.fix == f"rm -f {path}"


def test_the_file_is_free_again_afterwards(tmp_path: Path, notes: Notes) -> None:
    with clocks.locked(UUID, tmp_path, notes, Nvml()):
        pass
    with (tmp_path / (UUID + clocks.ENDING)).open() as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
