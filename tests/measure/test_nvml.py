from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from regress.measure.backend import nvml
from regress.measure.backend.fake import FakeBackend
from regress.measure.backend.nvml import DeviceWatch, Foreign, Nvml, grown

UUID = "GPU-1234"


class Library:
    """The functions of the management library that are asked, over readings that a test sets."""

    def __init__(self, **readings: Any) -> None:
        self.readings = {
            "uuids": [UUID],
            "temperature": 61,
            "power_mw": 312_500,
            "clock_mhz": 345,
            "limit_mw": 700_000,
            "usual_mw": 700_000,
            "limit_mhz": 1980,
            "usual_mhz": 1980,
            "reasons": 0,
            "violations": {0: 100, 1: 200},
            "processes": [],
            **readings,
        }
        self.opened = 0

    def nvmlInit_v2(self) -> int:
        self.opened += 1
        return int(self.readings.get("init", 0))

    def nvmlSystemGetDriverVersion(self, text: Any, size: Any) -> int:
        text.value = b"580.159.04"
        return 0

    def nvmlDeviceGetHandleByUUID(self, uuid: Any, device: Any) -> int:
        if uuid.value.decode() not in self.readings["uuids"]:
            return 6
        device._obj.value = 77
        return 0

    def _put(self, out: Any, name: str) -> int:
        value = self.readings[name]
        if value is None:
            return 3  # not supported
        out._obj.value = value
        return 0

    def nvmlDeviceGetTemperature(self, device: Any, sensor: int, out: Any) -> int:
        return self._put(out, "temperature")

    def nvmlDeviceGetEnforcedPowerLimit(self, device: Any, out: Any) -> int:
        return self._put(out, "limit_mw")

    def nvmlDeviceGetPowerManagementDefaultLimit(self, device: Any, out: Any) -> int:
        return self._put(out, "usual_mw")

    def nvmlDeviceGetApplicationsClock(self, device: Any, clock: int, out: Any) -> int:
        return self._put(out, "limit_mhz") if clock == nvml.GRAPHICS_CLOCK else 2

    def nvmlDeviceGetDefaultApplicationsClock(self, device: Any, clock: int, out: Any) -> int:
        return self._put(out, "usual_mhz") if clock == nvml.GRAPHICS_CLOCK else 2

    def nvmlDeviceGetTotalEnergyConsumption(self, device: Any, out: Any) -> int:
        return self._put(out, "energy_mj")

    def nvmlDeviceGetPowerUsage(self, device: Any, out: Any) -> int:
        return self._put(out, "power_mw")

    def nvmlDeviceGetClockInfo(self, device: Any, clock: int, out: Any) -> int:
        return self._put(out, "clock_mhz")

    def nvmlDeviceGetCurrentClocksEventReasons(self, device: Any, out: Any) -> int:
        return self._put(out, "reasons")

    def nvmlDeviceGetViolationStatus(self, device: Any, policy: int, out: Any) -> int:
        if self.readings["violations"] is None:
            return 4  # no permission
        out._obj.violation_ns = self.readings["violations"][policy]
        return 0

    def nvmlDeviceGetComputeRunningProcesses_v3(self, device: Any, count: Any, entries: Any) -> int:
        return self._list(count, entries)

    def _list(self, count: Any, entries: Any) -> int:
        listed = self.readings["processes"]
        if entries is None:
            count._obj.value = len(listed)
            return 7 if listed else 0
        for entry, (pid, used) in zip(entries, listed, strict=False):
            entry.pid, entry.used_bytes = pid, used
        count._obj.value = len(listed)
        return 0


def test_limits_are_told_where_somebody_has_set_them() -> None:
    """So what was recorded before anybody asked is what was measured without."""
    assert Nvml(UUID, Library()).limits() == {}
    assert Nvml(UUID, Library(limit_mw=None, usual_mhz=None)).limits() == {}
    lower = Library(limit_mw=500_000, limit_mhz=1410)
    assert Nvml(UUID, lower).limits() == {"power_limit_w": 500.0, "clock_limit_hz": 1.41e9}


def test_the_state_of_a_device() -> None:
    assert Nvml(UUID, Library(reasons=0x44)).state() == {
        "temperature_c": 61,
        "power_w": pytest.approx(312.5),
        "sm_clock_hz": 345e6,
        "reasons": ["hw_thermal", "sw_power_cap"],
        "violations_ns": {"power": 100, "thermal": 200},
    }


@pytest.mark.parametrize(
    "bits, names",
    [
        (0x0, []),
        (0x1, []),  # idle
        (0x8, ["hw_slowdown"]),
        (0x20, ["sw_thermal"]),
        (0x40, ["hw_thermal"]),
        (0x80, ["hw_power_brake"]),
        (0x4, ["sw_power_cap"]),
        (0x102, []),  # clocks that the user or a display has set
    ],
)
def test_what_holds_the_clocks_back(bits: int, names: list[str]) -> None:
    assert Nvml(UUID, Library(reasons=bits)).state()["reasons"] == names


def test_an_older_driver_has_the_reasons_under_an_older_name() -> None:
    class Older(Library):
        def nvmlDeviceGetCurrentClocksThrottleReasons(self, device: Any, out: Any) -> int:
            return super().nvmlDeviceGetCurrentClocksEventReasons(device, out)

        nvmlDeviceGetCurrentClocksEventReasons = None  # type: ignore[assignment]

    assert Nvml(UUID, Older(reasons=0x8)).state()["reasons"] == ["hw_slowdown"]


def test_what_cannot_be_read_is_left_out() -> None:
    state = Nvml(UUID, Library(power_mw=None, reasons=None, violations=None)).state()
    assert set(state) == {"temperature_c", "sm_clock_hz"}


@pytest.mark.parametrize("library", [SimpleNamespace(), Library(init=9), Library(uuids=[])])
def test_without_a_library_a_driver_or_the_device_nothing_is_known(library: Any) -> None:
    device = Nvml(UUID, library)
    assert (device.state(), device.processes()) == ({}, [])


def test_the_drivers_version_needs_no_device() -> None:
    assert Nvml("", Library()).driver_version() == "580.159.04"
    assert Nvml("", SimpleNamespace()).driver_version() == ""


def test_a_slice_of_a_device_is_found_by_its_own_prefix() -> None:
    assert Nvml(UUID, Library(uuids=["MIG-1234"])).state()["temperature_c"] == 61


def test_the_library_is_opened_once() -> None:
    library = Library()
    device = Nvml(UUID, library)
    assert library.opened == 0
    device.state()
    device.processes()
    assert library.opened == 1


# -- the watch -----------------------------------------------------------------------------------------------------------


def watched(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    readings = iter([before, after])
    watch = DeviceWatch(lambda: next(readings))
    watch.before()
    return watch.after()


def test_a_quiet_stretch() -> None:
    state = {"temperature_c": 50, "power_w": 300.0, "reasons": [], "violations_ns": {"power": 5, "thermal": 7}}
    assert watched(state, {**state, "temperature_c": 55}) == {
        "temperature_c": 55,
        "power_w": 300.0,
        "throttled": [],
        "power_capped": False,
    }


@pytest.mark.parametrize(
    "before, after", [(["hw_thermal"], []), ([], ["hw_thermal"]), (["hw_thermal"], ["hw_thermal"])]
)
def test_a_slowdown_counts_when_it_is_seen_at_either_end(before: list[str], after: list[str]) -> None:
    assert watched({"reasons": before}, {"reasons": after})["throttled"] == ["hw_thermal"]


def test_a_slowdown_in_between_is_known_by_its_counter() -> None:
    state = watched(
        {"reasons": [], "violations_ns": {"power": 5, "thermal": 7}},
        {"reasons": [], "violations_ns": {"power": 9, "thermal": 8}},
    )
    assert (state["throttled"], state["power_capped"]) == (["thermal"], True)


def test_a_counter_adds_no_second_name_for_one_slowdown() -> None:
    state = watched(
        {"reasons": [], "violations_ns": {"thermal": 7}}, {"reasons": ["sw_thermal"], "violations_ns": {"thermal": 8}}
    )
    assert state["throttled"] == ["sw_thermal"]


def test_a_power_cap_is_no_slowdown() -> None:
    state = watched({"reasons": []}, {"reasons": ["sw_power_cap"]})
    assert (state["throttled"], state["power_capped"]) == ([], True)


def test_nothing_is_claimed_of_a_device_that_does_not_tell() -> None:
    assert watched({}, {}) == {}
    assert watched({}, {"temperature_c": 50}) == {"temperature_c": 50}


def test_counters_that_started_anew_have_not_grown() -> None:
    assert grown({"power": 9, "thermal": 1}, {"power": 2, "thermal": 4, "other": 1}) == {"thermal": 3}


def test_the_scripted_device_can_be_held_back() -> None:
    device = FakeBackend()
    watch = DeviceWatch(device.device_state)
    device.hold_back("hw_thermal", 2)
    for expected in (["hw_thermal"], []):
        watch.before()
        assert watch.after()["throttled"] == expected


# -- processes -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def on_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvml, "_sees_the_hosts_ids", lambda: True)


def listed(*processes: tuple[int, int]) -> list[Foreign]:
    return Nvml(UUID, Library(processes=list(processes))).processes()


@pytest.mark.usefixtures("on_host")
def test_a_foreign_process_is_named() -> None:
    with open("/proc/1/comm", encoding="utf-8") as comm:
        name = comm.read().strip()
    processes = listed((1, 4 << 30))
    assert processes == [Foreign(1, name, 4 << 30)]
    assert str(processes[0]) == f"pid 1 ({name}), 4.0 GiB"


@pytest.mark.usefixtures("on_host")
def test_our_own_family_is_not_foreign() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        assert listed((os.getpid(), 5), (os.getppid(), 5), (child.pid, 5)) == []
        child.communicate(b"\n")


@pytest.mark.usefixtures("on_host")
def test_a_process_that_is_gone_or_hides_its_memory_is_still_listed() -> None:
    gone = 2**22 + 1  # above the kernel's largest process id
    processes = listed((gone, 2**64 - 1))
    assert processes == [Foreign(gone)]
    assert str(processes[0]) == f"pid {gone}"


def test_from_a_container_ids_mean_nothing_and_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvml, "_sees_the_hosts_ids", lambda: False)
    processes = listed((os.getpid(), 1 << 30))  # the same number, another process
    assert processes == [Foreign(os.getpid(), "", 1 << 30, unreliable=True)]
    assert str(processes[0]).endswith("1.0 GiB (seen from a container: it may be one of ours)")


@pytest.mark.usefixtures("on_host")
def test_an_older_driver_lists_processes_by_an_older_function() -> None:
    class Older(Library):
        nvmlDeviceGetComputeRunningProcesses_v3 = None  # type: ignore[assignment]

        def nvmlDeviceGetComputeRunningProcesses_v2(self, device: Any, count: Any, entries: Any) -> int:
            return self._list(count, entries)

    assert [entry.pid for entry in Nvml(UUID, Older(processes=[(1, 1)])).processes()] == [1]


def test_the_structures_have_the_librarys_sizes() -> None:
    assert (ctypes.sizeof(nvml._ProcessInfo), ctypes.sizeof(nvml._ViolationTime)) == (24, 16)


@pytest.mark.gpu
def test_a_real_device_tells() -> None:
    from regress.measure.backend.cuda import CudaBackend

    device = CudaBackend()
    assert {"temperature_c", "power_w", "reasons"} <= set(device.device_state())
    assert device.facts()["driver"]
    assert all(isinstance(process, Foreign) for process in device.processes())
