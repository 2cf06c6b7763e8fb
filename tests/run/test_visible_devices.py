"""Which device is measured, and what is said where there is none or where it cannot be used: stand-ins for the driver, and
real workers on the scripted device."""

from __future__ import annotations

import importlib.util
import uuid
from pathlib import Path
from typing import Any

import pytest

from regress.measure.backend import DeviceError, choose
from regress.measure.backend.cuda import NO_DEVICE, CudaBackend
from regress.measure.worker import facts
from tests.libcuda import put
from tests.run.test_execute import Bench, failures, good

FIRST, SECOND, SLICE = (str(uuid.UUID(int=number)) for number in (1 << 100 | 1, 1 << 100 | 2, 1 << 101 | 1))
DRIVER_MISMATCH = 803


class OlderDriver:
    """libcuda of before CUDA 11.4, with devices of these UUIDs in the order in which it shows them."""

    def __init__(self, *uuids: str, init: int = 0) -> None:
        self._uuids, self._init = uuids, init

    def cuInit(self, flags: int) -> int:
        return self._init or (0 if self._uuids else NO_DEVICE)

    def cuDeviceGetCount(self, count: Any) -> int:
        count._obj.value = len(self._uuids)
        return 0

    def cuDeviceGet(self, device: Any, ordinal: int) -> int:
        device._obj.value = ordinal
        return 0

    def cuDeviceGetUuid(self, buffer: Any, device: Any) -> int:
        buffer[:] = uuid.UUID(self._uuids[device.value]).bytes
        return 0

    def cuDeviceGetName(self, name: Any, size: int, device: Any) -> int:
        name.value = b"NVIDIA H100"
        return 0

    def cuDriverGetVersion(self, version: Any) -> int:
        version._obj.value = 13000
        return 0

    def cuGetErrorName(self, code: int, name: Any) -> int:
        name._obj.value = b"CUDA_ERROR_SYSTEM_DRIVER_MISMATCH"
        return 0

    def cuGetErrorString(self, code: int, text: Any) -> int:
        text._obj.value = b"system has unsupported display driver / cuda driver combination"
        return 0


class Driver(OlderDriver):
    """The same today. `slices` are parts of a device by the name that they have themselves (MIG)."""

    def __init__(self, *uuids: str, slices: tuple[str, ...] = (), init: int = 0) -> None:
        super().__init__(*uuids, init=init)
        self._slices = slices or uuids

    def cuDeviceGetUuid_v2(self, buffer: Any, device: Any) -> int:
        buffer[:] = uuid.UUID(self._slices[device.value]).bytes
        return 0


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Makes a stand-in the machine's libcuda; there is no NVML beside it."""
    return lambda driver: put(driver, monkeypatch)


def test_of_two_devices_the_first_that_is_shown_is_measured(load: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", f"GPU-{SECOND},GPU-{FIRST}")
    load(Driver(SECOND, FIRST))  # as the driver shows them then
    known = facts(choose("auto"))
    assert known["gpu_uuid"] == f"GPU-{SECOND}"
    assert known["CUDA_VISIBLE_DEVICES"] == f"GPU-{SECOND},GPU-{FIRST}"
    assert "no_device" not in known


def test_a_slice_of_a_device_is_known_by_its_own_name(load: Any) -> None:
    load(Driver(FIRST, slices=(SLICE,)))
    assert CudaBackend().facts()["gpu_uuid"] == f"GPU-{SLICE}"
    load(OlderDriver(FIRST))
    assert CudaBackend().facts()["gpu_uuid"] == f"GPU-{FIRST}"


def test_where_all_devices_are_hidden_it_is_said_which_variable_may_do_it(load: Any) -> None:
    load(Driver())
    assert choose("auto").why_no_device == "the CUDA driver sees no device (check CUDA_VISIBLE_DEVICES)"
    with pytest.raises(DeviceError, match="CUDA_VISIBLE_DEVICES"):
        choose("cuda")


def test_a_driver_that_does_not_start_gives_its_reason(load: Any) -> None:
    load(Driver(FIRST, init=DRIVER_MISMATCH))
    why = choose("auto").why_no_device
    assert "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH" in why
    assert "unsupported display driver" in why


def test_without_nvml_a_device_is_measured_and_less_is_known_of_it(load: Any) -> None:
    load(Driver(FIRST))
    backend = CudaBackend()
    assert backend.facts() == {"gpu": "NVIDIA H100", "gpu_uuid": f"GPU-{FIRST}", "cuda": "13.0"}
    assert (backend.device_state(), backend.processes()) == ({}, [])


@pytest.mark.parametrize(
    "value", ["", "-1", "1,0", f"GPU-{FIRST}", f"MIG-{SLICE}", f"MIG-GPU-{FIRST}/1/0", " GPU-1234 , junk"]
)
def test_the_choice_of_devices_reaches_the_code_under_test_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", value)
    bench = Bench(tmp_path)
    bench.write(f"""
import os
def track_as_it_is(): return os.environ["CUDA_VISIBLE_DEVICES"] == {value!r} and 1.0 or 0.0
""")
    measured = bench.run(rounds=1)
    assert [round.values["value"].value for round in measured.rounds] == [1.0]
    assert bench.kept[0][1]["CUDA_VISIBLE_DEVICES"] == value


CHOOSES = """
import torch

class Chooses:
    def setup(self): self.x = torch.ones(8, device="cuda")
    def cudatime_on_the_device(self): return self.x + self.x
"""


@pytest.mark.slow
def test_a_torch_for_the_cpu_beside_a_device_fails_with_what_torch_says(tmp_path: Path) -> None:
    if importlib.util.find_spec("torch") is None or choose("auto").has_device:
        pytest.skip("needs a torch that is built for the CPU")
    bench = Bench(tmp_path)
    bench.write(CHOOSES)
    measured = bench.run(rounds=1)  # the scripted device answers, and torch does not know it
    failure = failures(measured)["b.Chooses.cudatime_on_the_device"]
    assert failure.kind == "error"
    assert "Torch not compiled with CUDA enabled" in failure.message
    assert failure.where.endswith("b.py:5")
    assert good(measured) == {}
