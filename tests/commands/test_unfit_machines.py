"""What `doctor` and the commands that record say of a machine that cannot measure, or not what it did before."""

from __future__ import annotations

import importlib.metadata
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pynvml
import pytest

from regress.commands import doctor as module
from regress.commands.session import Request
from regress.measure.backend import Backend, DeviceError
from regress.model import Check
from tests.conftest import Project
from tests.run.test_execute import Watch

H100 = {"gpu": "NVIDIA H100", "gpu_uuid": "GPU-2", "cuda": "12.4", "driver": "550.54.15"}
SUITE = "def time_work(): sum(range(1000))\n"


class Device(Backend):
    has_device = True

    def __init__(self, facts: Mapping[str, Any]) -> None:
        self._facts = dict(facts)

    def facts(self) -> dict[str, Any]:
        return self._facts


Look = Callable[..., dict[str, Check]]


@pytest.fixture
def look(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Look:
    """Runs doctor on a stand-in for the machine; gives the checks by name."""

    def run(device: Backend, built: tuple[str, str] = ("cuda", "12.4"), nvml_fails: bool = False) -> dict[str, Check]:
        def init() -> None:
            if nvml_fails:
                raise pynvml.NVMLError(pynvml.NVML_ERROR_LIBRARY_NOT_FOUND)

        def handle(uuid: str) -> str:
            return uuid

        versions = {"torch": "2.11.0"}
        monkeypatch.setattr(module, "choose", lambda kind: device)
        monkeypatch.setattr(module, "built_for", lambda: built)
        monkeypatch.setattr(importlib.metadata, "version", lambda name: _known(versions, name))
        monkeypatch.setattr(pynvml, "nvmlInit", init)
        monkeypatch.setattr(pynvml, "nvmlShutdown", lambda: None)
        monkeypatch.setattr(pynvml, "nvmlDeviceGetHandleByUUID", handle)
        monkeypatch.setattr(
            pynvml,
            "nvmlDeviceGetComputeRunningProcesses",
            lambda uuid: [SimpleNamespace(pid=812)] if uuid == "GPU-2" else [],
        )
        return {check.name: check for check in module.doctor(Request(tmp_path), Watch()).checks}

    return run


def _known(versions: Mapping[str, str], name: str) -> str:
    if name not in versions:
        raise importlib.metadata.PackageNotFoundError(name)
    return versions[name]


def test_a_fit_machine(look: Look) -> None:
    found = look(Device(H100))
    assert found["CUDA device"] == Check("CUDA device", "ok", "NVIDIA H100 (GPU-2), CUDA 12.4, driver 550.54.15")
    assert found["torch"].found == "2.11.0, built for CUDA 12.4"
    assert "812" in found["other processes"].found, "those of the device that is measured"


@pytest.mark.parametrize(
    ("built", "state", "words"),
    [
        (("cuda", "13.0"), "warn", "is built for CUDA 13.0, and the driver knows CUDA 12.4 only"),
        (("cuda", "12.8"), "ok", "built for CUDA 12.8"),
        (("", ""), "warn", "is built for the CPU only"),
        (("hip", "6.4"), "ok", "built for ROCm 6.4"),
    ],
)
def test_a_torch_that_the_driver_cannot_run_is_named(
    look: Look, built: tuple[str, str], state: str, words: str
) -> None:
    found = look(Device(H100), built)["torch"]
    assert (found.state, words in found.found) == (state, True), found
    assert bool(found.fix) is (state == "warn")


def test_without_nvml_it_is_said_what_will_not_be_noticed(look: Look) -> None:
    found = look(Device(H100), nvml_fails=True)["NVML"]
    assert found.state == "warn"
    assert "other processes" in found.found
    assert found.fix


def test_without_a_device_the_reason_is_given(look: Look) -> None:
    device = Backend()
    device.why_no_device = str(DeviceError("the CUDA driver sees no device (check CUDA_VISIBLE_DEVICES)"))
    found = look(device)["CUDA device"]
    assert found.state == "warn"
    assert "CUDA_VISIBLE_DEVICES" in found.found


def test_a_device_that_only_torch_can_name(look: Look) -> None:
    assert look(Device({}), ("hip", "6.4"))["device"].found == "an AMD device, timed by torch's events"


def test_numbers_of_the_cpu_are_not_filed_under_a_machine_with_a_device(project: Callable[..., Project]) -> None:
    p = project(device="cpu")
    p.commit({"proj/__init__.py": "", "benchmarks/b.py": SUITE})
    p.write({"history/box/machine.json": json.dumps({"machine": "box", "gpu": "NVIDIA H100", "version": 1})})
    result = p.regress("run", "--quick", "--machine", "box")
    assert result.code == 5
    assert "box is recorded as a machine with a device (NVIDIA H100), and none is used now" in result.err
    assert [path.name for path in (p.root / "history" / "box").iterdir()] == ["machine.json"]
    assert p.regress("run", "--quick", "--machine", "box-cpu").code == 0
