"""What the management library knows of a device: temperature, power, what holds its clocks back, who else computes on it.

NVML through ctypes. A library that is missing, a driver that is too old and a permission that is not given all answer alike:
the key is left out, the list is empty. Nothing here raises, and nothing here decides a value; it explains one.
"""

from __future__ import annotations

import ctypes
import os
import time
from dataclasses import dataclass
from typing import Any, Callable, Dict, List, Optional

REASONS = {0x8: "hw_slowdown", 0x20: "sw_thermal", 0x40: "hw_thermal", 0x80: "hw_power_brake"}
"""Bits of the clock event reasons that mean: the device protects itself, and its times are not the code's."""
SW_POWER_CAP = 0x4
"""The clocks are held at the power limit, which is normal for large matrix products."""
VIOLATIONS = {"power": 0, "thermal": 1}
"""Policies whose time of violation is counted, in nanoseconds since the driver was loaded."""
GRAPHICS_CLOCK, SM_CLOCK, GPU_TEMPERATURE = 0, 1, 0
INSUFFICIENT_SIZE = 7
NOT_AVAILABLE = 2**64 - 1
SETTLE_S = 0.1
"""What the driver may need to forget a process that has ended."""
INITIAL_PID_NAMESPACE = "pid:[4026531836]"
"""The kernel gives the namespace of the host this fixed number."""


class _ProcessInfo(ctypes.Structure):
    _fields_ = [
        ("pid", ctypes.c_uint),
        ("used_bytes", ctypes.c_ulonglong),
        ("gpu_instance", ctypes.c_uint),
        ("compute_instance", ctypes.c_uint),
    ]


class _ViolationTime(ctypes.Structure):
    _fields_ = [("reference_us", ctypes.c_ulonglong), ("violation_ns", ctypes.c_ulonglong)]


@dataclass(frozen=True)
class Foreign:
    """A process that computes on the device and is not one of ours. `str()` is the line for the reader."""

    pid: int
    name: str = ""
    bytes: Optional[int] = None
    unreliable: bool = False
    """We see the device from inside a container: the id is another namespace's, and the process may be one of ours."""

    def __str__(self) -> str:
        words = f"pid {self.pid}" + (f" ({self.name})" if self.name else "")
        if self.bytes is not None:
            words += f", {self.bytes / 2**30:.1f} GiB"
        return words + (" (seen from a container: it may be one of ours)" if self.unreliable else "")


class Nvml:
    """One device of the management library, opened when it is first asked. `library` is the loaded library; tests bring one."""

    def __init__(self, uuid: str, library: Any = None) -> None:
        self._uuid, self._given = uuid, library
        self._library: Any = None
        self._device: Optional[ctypes.c_void_p] = None
        self._opened = False

    def driver_version(self) -> str:
        """The kernel driver's version (580.159.04); empty if it cannot be read."""
        self._open()
        text = ctypes.create_string_buffer(96)
        done = self._ask("nvmlSystemGetDriverVersion", text, ctypes.c_uint(len(text)))
        return text.value.decode(errors="replace") if done else ""

    def state(self) -> Dict[str, Any]:
        """Readings of this moment: `temperature_c`, `power_w`, `sm_clock_hz` (which may be the idle clock: the spin's is the
        one to trust), `reasons` (names of what holds the clocks back) and `violations_ns` (counters by policy)."""
        state: Dict[str, Any] = {}
        temperature = self._number("nvmlDeviceGetTemperature", GPU_TEMPERATURE)
        power_mw = self._number("nvmlDeviceGetPowerUsage")
        clock_mhz = self._number("nvmlDeviceGetClockInfo", SM_CLOCK)
        if temperature is not None:
            state["temperature_c"] = temperature
        if power_mw is not None:
            state["power_w"] = power_mw * 1e-3
        if clock_mhz is not None:
            state["sm_clock_hz"] = clock_mhz * 1e6
        reasons = self._reasons()
        if reasons is not None:
            state["reasons"] = reasons
        violations = {name: self._violation_ns(policy) for name, policy in VIOLATIONS.items()}
        counted = {name: count for name, count in violations.items() if count is not None}
        if counted:
            state["violations_ns"] = counted
        return state

    def limits(self) -> Dict[str, float]:
        """What somebody has limited the device to, other than the default: `power_limit_w`, `clock_limit_hz`. Locked clocks are
        not among it; the clock of a spin tells them."""
        limits: Dict[str, float] = {}
        limit_mw = self._number("nvmlDeviceGetEnforcedPowerLimit")
        usual_mw = self._number("nvmlDeviceGetPowerManagementDefaultLimit")
        if limit_mw is not None and usual_mw is not None and limit_mw != usual_mw:
            limits["power_limit_w"] = limit_mw * 1e-3
        limit_mhz = self._number("nvmlDeviceGetApplicationsClock", GRAPHICS_CLOCK)
        usual_mhz = self._number("nvmlDeviceGetDefaultApplicationsClock", GRAPHICS_CLOCK)
        if limit_mhz is not None and usual_mhz is not None and limit_mhz != usual_mhz:
            limits["clock_limit_hz"] = limit_mhz * 1e6
        return limits

    def energy_j(self) -> Optional[float]:
        """Joules that the device has taken since the driver was loaded; None if it does not count them."""
        millijoules = ctypes.c_ulonglong()
        counted = self._of_device("nvmlDeviceGetTotalEnergyConsumption", ctypes.byref(millijoules))
        return millijoules.value * 1e-3 if counted else None

    def processes(self, ours: Optional[int] = None) -> List[Foreign]:
        """Processes that compute on the device, without those descended from `ours` (by default our parent, the driver) and
        those that we descend from. In a container ours cannot be told from others, once its context is open."""
        unreliable = not _sees_the_hosts_ids()
        root = os.getppid() if ours is None else ours
        family = set(_ancestors(os.getpid()))
        foreign = []
        entries = self._compute_processes()
        if not unreliable and any(not os.path.exists(f"/proc/{entry.pid}") for entry in entries):
            time.sleep(SETTLE_S)  # one of ours that has just ended, as likely as not
            entries = self._compute_processes()
        for entry in entries:
            pid = int(entry.pid)
            line = [pid, *_ancestors(pid)]
            if not unreliable and (os.getpid() in line or root in line or pid in family):
                continue
            used = None if entry.used_bytes == NOT_AVAILABLE else int(entry.used_bytes)
            foreign.append(Foreign(pid, "" if unreliable else _name(pid), used, unreliable))
        return foreign

    # -- the library -----------------------------------------------------------------------------------------------------

    def _open(self) -> None:
        if self._opened:
            return
        self._opened = True
        try:
            self._library = self._given if self._given is not None else ctypes.CDLL("libnvidia-ml.so.1")
        except OSError:
            return
        if not self._ask("nvmlInit_v2"):
            self._library = None
            return
        # The driver names a slice of a device like a device; here the two have different prefixes.
        for name in (self._uuid, self._uuid.replace("GPU-", "MIG-", 1)) if self._uuid else ():
            device = ctypes.c_void_p()
            if self._ask("nvmlDeviceGetHandleByUUID", ctypes.c_char_p(name.encode()), ctypes.byref(device)):
                self._device = device
                return

    def _ask(self, function: str, *arguments: Any, fine: int = 0) -> bool:
        """Call a function of the library; whether it exists and answered with success (or with `fine`)."""
        call = getattr(self._library, function, None) if self._library is not None else None
        return call is not None and call(*arguments) in (0, fine)

    def _of_device(self, function: str, *arguments: Any, fine: int = 0) -> bool:
        self._open()
        return self._device is not None and self._ask(function, self._device, *arguments, fine=fine)

    def _number(self, function: str, *arguments: int) -> Optional[int]:
        value = ctypes.c_uint()
        return value.value if self._of_device(function, *arguments, ctypes.byref(value)) else None

    def _reasons(self) -> Optional[List[str]]:
        bits = ctypes.c_ulonglong()
        for function in ("nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons"):
            if self._of_device(function, ctypes.byref(bits)):
                names = [name for bit, name in REASONS.items() if bits.value & bit]
                return names + (["sw_power_cap"] if bits.value & SW_POWER_CAP else [])
        return None

    def _violation_ns(self, policy: int) -> Optional[int]:
        taken = _ViolationTime()
        done = self._of_device("nvmlDeviceGetViolationStatus", policy, ctypes.byref(taken))
        return int(taken.violation_ns) if done else None

    def _compute_processes(self) -> List[_ProcessInfo]:
        for function in ("nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetComputeRunningProcesses_v2"):
            count = ctypes.c_uint(0)
            if not self._of_device(function, ctypes.byref(count), None, fine=INSUFFICIENT_SIZE):
                continue
            if not count.value:
                return []
            count = ctypes.c_uint(2 * count.value + 5)  # some may start between the two calls
            entries = (_ProcessInfo * count.value)()
            if self._of_device(function, ctypes.byref(count), entries):
                return list(entries[: count.value])
        return []


class DeviceWatch:
    """Compares two readings of a device around a stretch of measuring. `read` is `Backend.device_state`."""

    def __init__(self, read: Callable[[], Dict[str, Any]]) -> None:
        self._read = read
        self._before: Dict[str, Any] = {}

    def before(self) -> None:
        self._before = self._read()

    def after(self) -> Dict[str, Any]:
        """`throttled` (hardware and thermal slowdowns) and `power_capped`, each if it was on at either end or its counter grew
        in between; `temperature_c` and `power_w` at the end. What could not be read is left out."""
        now = self._read()
        seen: Dict[str, Any] = {}
        for key in ("temperature_c", "power_w"):
            if key in now:
                seen[key] = now[key]
        if "reasons" not in now and "violations_ns" not in now:
            return seen
        reasons = list(dict.fromkeys([*self._before.get("reasons", ()), *now.get("reasons", ())]))
        violated = grown(self._before.get("violations_ns", {}), now.get("violations_ns", {}))
        slowed = [reason for reason in reasons if reason != "sw_power_cap"]
        if "thermal" in violated and not any("thermal" in reason for reason in slowed):
            slowed.append("thermal")
        seen["throttled"] = slowed
        seen["power_capped"] = "sw_power_cap" in reasons or "power" in violated
        return seen


def grown(before: Dict[str, int], after: Dict[str, int]) -> Dict[str, int]:
    """Nanoseconds that each violation counter has grown by between two readings; those that stood still are left out."""
    return {name: count - before[name] for name, count in after.items() if name in before and count > before[name]}


# -- processes -----------------------------------------------------------------------------------------------------------


def _sees_the_hosts_ids() -> bool:
    """Whether our process ids are the host's, which are the ones the management library speaks of."""
    try:
        return os.readlink("/proc/self/ns/pid") == INITIAL_PID_NAMESPACE
    except OSError:
        return False


def _ancestors(pid: int) -> List[int]:
    """The process's parent, its parent and so on, without the first process of the system."""
    ancestors: List[int] = []
    while True:
        try:
            with open(f"/proc/{pid}/stat", "rb") as stat:
                # The name in brackets may hold anything, brackets and blanks too.
                pid = int(stat.read().rpartition(b")")[2].split()[1])
        except (OSError, ValueError, IndexError):
            return ancestors
        if pid <= 1 or pid in ancestors:
            return ancestors
        ancestors.append(pid)


def _name(pid: int) -> str:
    try:
        with open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as comm:
            return comm.read().strip()
    except OSError:
        return ""
