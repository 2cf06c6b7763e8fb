"""What `doctor` and the commands that record say of a machine that cannot measure, or not what it did before."""

from __future__ import annotations

import dataclasses
import importlib.metadata
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pynvml
import pytest

from regress.commands.doctor import machine as module
from regress.errors import NothingMeasured
from regress.measure.backend import Backend, DeviceError
from regress.model import Benchmark, Check, Environment, Round
from regress.run.execute import JobResult
from regress.session import Request, Session
from regress.session.fitness import complaints
from regress.session.recorder import Recorder
from tests.conftest import Project
from tests.run.test_execute import Watch

H100 = {"gpu": "NVIDIA H100", "gpu_uuid": "GPU-2", "cuda": "12.4", "driver": "550.54.15"}
SUITE = "def time_work(): sum(range(1000))\n"
DEFINITION = Benchmark("b.time_work", "time", "seconds", [], [], "1", metric="wall_time", needs_device=False)


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
    checks = look(Device(H100))
    assert checks["CUDA device"] == Check("CUDA device", "ok", "NVIDIA H100 (GPU-2), CUDA 12.4, driver 550.54.15")
    assert checks["torch"].found == "2.11.0, built for CUDA 12.4"
    assert "812" in checks["other processes"].found, "those of the device that is measured"


@pytest.mark.parametrize(
    ("built", "state", "words"),
    [
        (("cuda", "13.0"), "warn", "is built for CUDA 13.0, but the driver supports only CUDA 12.4"),
        (("cuda", "12.8"), "ok", "built for CUDA 12.8"),
        (("", ""), "warn", "is built for the CPU only"),
        (("hip", "6.4"), "ok", "built for ROCm 6.4"),
    ],
)
def test_a_torch_that_the_driver_cannot_run_is_named(
    look: Look, built: tuple[str, str], state: str, words: str
) -> None:
    check = look(Device(H100), built)["torch"]
    assert (check.state, words in check.found) == (state, True), check
    assert bool(check.fix) is (state == "warn")


def test_without_nvml_it_is_said_what_will_not_be_noticed(look: Look) -> None:
    NVML = look(Device({name: value for name, value in H100.items() if name != "driver"}), nvml_fails=True)["NVML"]
    assert NVML.state == "warn"
    assert "other processes" in NVML.found
    assert NVML.fix
    assert look(Device(H100), nvml_fails=True)["other processes"].state == "warn"


def test_without_a_device_the_reason_is_given(look: Look) -> None:
    device = Backend()
    device.why_no_device = str(DeviceError("the CUDA driver sees no device (check CUDA_VISIBLE_DEVICES)"))
    check = look(device)["CUDA device"]
    assert check.state == "warn"
    assert "CUDA_VISIBLE_DEVICES" in check.found
    assert check.fix == "set CUDA_VISIBLE_DEVICES to one that nvidia-smi -L lists, or unset it"


def test_a_device_that_only_torch_can_name(look: Look) -> None:
    assert look(Device({}), ("hip", "6.4"))["device"].found == "an AMD device, timed by torch's events"


def test_numbers_of_the_cpu_are_not_filed_under_a_machine_with_a_device(project: Callable[..., Project]) -> None:
    p = project(device="cpu")
    p.commit({"proj/__init__.py": "", "benchmarks/b.py": SUITE})
    p.write({"history/box/machine.json": json.dumps({"machine": "box", "gpu": "NVIDIA H100", "version": 1})})
    result = p.regress("run", "--quick", "--machine", "box")
    assert result.code == 5
    assert "box is recorded as a machine with a device (NVIDIA H100), but none is used now" in result.err
    assert [path.name for path in (p.root / "history" / "box").iterdir()] == ["machine.json"]
    assert p.regress("run", "--quick", "--machine", "box-cpu").code == 0


# -- beside the results of a run -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("facts", "words", "fix"),
    [
        ({"torch": "2.11.0", "torch_built": "cuda 12.8"}, "", ""),
        (
            {"torch": "2.11.0", "torch_built": "cuda 13.0"},
            "the driver supports only CUDA 12.4",
            "update the NVIDIA driver",
        ),
        ({"torch": "2.11.0", "torch_built": ""}, "2.11.0 is built for the CPU only", "pip install"),
        ({"driver": None}, "NVML: not available", "install the libnvidia-ml"),
    ],
)
def test_a_run_says_what_a_machine_with_a_device_lacks(facts: dict[str, Any], words: str, fix: str) -> None:
    known = {name: value for name, value in {**H100, **facts}.items() if value is not None}
    lacks = complaints(known, with_torch=True)
    assert complaints(known, with_torch=False) == [lack for lack in lacks if "NVML" in lack]
    assert [(words in lack, f"; fix: {fix}" in lack) for lack in lacks] == ([(True, True)] if words else [])


WITHOUT = (
    "no CUDA driver: libcuda.so.1 cannot be loaded; fix: install the NVIDIA driver",
    "the CUDA driver sees no device (check CUDA_VISIBLE_DEVICES); fix: set CUDA_VISIBLE_DEVICES to one",
)


@pytest.mark.parametrize("command", ["run", "check"])
def test_a_run_without_a_device_says_why_and_what_to_do(
    project: Callable[..., Project], monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")  # where there is one, it is hidden
    p = project(device="auto")
    p.commit({"proj/__init__.py": "", "benchmarks/b.py": SUITE + "def cudatime_work(): pass\n"})
    p.commit({})
    result = p.regress(command, "--quick")
    assert result.code == 0, result.err
    assert any(f"warning: 1 CUDA cases were skipped: {words}" in result.out for words in WITHOUT), result.out
    alone = p.regress(command, "-b", "cudatime")
    assert alone.code == 5
    assert any(alone.err.splitlines()[-1].startswith(f"fix:   {words.split('fix: ')[1]}") for words in WITHOUT), (
        alone.err
    )


def test_a_torch_for_the_cpu_files_nothing_under_a_machine_whose_torch_had_a_device(
    project: Callable[..., Project], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What takes the device that torch offers would go on with numbers of another one."""
    p = project(machine="box")
    p.commit({"proj/__init__.py": "", "benchmarks/b.py": SUITE})
    with_cuda = {**H100, "python": "3.11.7", "torch": "2.11.0", "torch_built": "cuda 12.4"}
    for_cpu, loaded = {**with_cuda, "torch_built": ""}, {"loaded": ["torch", "numpy"]}
    visited = Round("b.time_work", [], "head", 0)

    def take(facts: dict[str, Any], round: Round, environment: str = "worktree") -> None:
        session = Session(Request(start=p.root))
        prepared: Any = SimpleNamespace(
            side=session.tree_side("head"), environment=Environment(environment), identity=None
        )
        recorder = Recorder(session, p.root / "history", (prepared,))
        recorder.take(round, facts, DEFINITION)
        recorder.finish(JobResult({"head": {}}))

    with_torch = dataclasses.replace(visited, facts=loaded)
    take(for_cpu, with_torch)
    take(with_cuda, with_torch)
    with pytest.raises(NothingMeasured, match="recorded as a machine with a torch for the device") as refused:
        take(for_cpu, with_torch)
    assert refused.value.why.startswith("torch 2.11.0 is built for the CPU only")
    assert "--machine NAME" in refused.value.fix
    take(for_cpu, visited)  # nothing in that process asked torch for a device
    take(for_cpu, with_torch, "cpu")  # a series of its own
