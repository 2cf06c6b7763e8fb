"""The scripted device: code under test states its costs, a virtual clock adds them up.

Code reaches it as the module `regress_scripted` (the worker installs it when the device is `fake`):

    import regress_scripted
    buffer = regress_scripted.alloc(4096)          # device memory, freed when the object is dropped
    regress_scripted.kernel("softmax", 27.4e-6)    # enqueue device work
    regress_scripted.host(5e-6)                    # Python work
    regress_scripted.synchronize()                 # the host waits for the device

The device runs its queue in order while the host goes on, as a CUDA stream does; a stream that runs dry waits for the host.
Costs vary from round to round and from sample to sample by a noise that depends on the seed, the side, the case and the index
of the round only, so that a run repeats exactly.
"""

from __future__ import annotations

import random
import sys
import types
from typing import Any, Dict, List, Optional

from .base import DeviceBackend, MemoryProbe

LAUNCH_S = 4e-6
RECORD_S = 2e-6
QUERY_S = 1e-6
SYNCHRONIZE_S = 10e-6
CALL_S = 50e-9
"""What reading the host clock costs: no virtual time stands still."""
WINDOW_S = 1.25e-6
CLOCK_HZ = 1.98e9

ROUND_SD = 0.003
"""Standard deviation of a round's level."""
SAMPLE_SD = 0.002
HOST_SD = 0.03


class Buffer:
    """Scripted device memory; dropping the object frees it."""

    def __init__(self, probe: ScriptedMemory, nbytes: int) -> None:
        self._probe, self.nbytes = probe, nbytes
        probe.change(nbytes)

    def __del__(self) -> None:
        self._probe.change(-self.nbytes)


class ScriptedMemory(MemoryProbe):
    name = "scripted"

    def __init__(self) -> None:
        self._current = self._peak = 0

    def change(self, nbytes: int) -> None:
        self._current += nbytes
        self._peak = max(self._peak, self._current)

    def current(self) -> int:
        return self._current

    def reset_peak(self) -> None:
        self._peak = self._current

    def peak(self) -> int:
        return self._peak


class FakeBackend(DeviceBackend):
    """A device with a virtual clock. Times are seconds of virtual time; no real time passes."""

    name = "fake"
    window_overhead_s = WINDOW_S
    clock_step_s = 1e-9

    def __init__(self, seed: int = 0, side: str = "") -> None:
        self.seed, self.side = seed, side
        self.host_s = 0.0
        self.device_s = 0.0
        self._events: List[float] = []
        self.probe = ScriptedMemory()
        self._random = random.Random(seed)
        self._level = self._host_level = 1.0
        self._spun = False
        self.begin_case("", -1)

    def begin_case(self, name: str, order: int) -> None:
        # The side is part of the key: two sides with one noise would agree better than any real device.
        self._random = random.Random(f"{self.seed}/{self.side}/{name}/{order}")
        self._level = self._random.lognormvariate(0.0, ROUND_SD)
        self._host_level = self._random.lognormvariate(0.0, HOST_SD)

    # -- what code under test calls --------------------------------------------------------------------------------------

    def kernel(self, name: str, seconds: float) -> None:
        """Enqueue device work that takes `seconds`, give or take the noise. `name` is for readers of a trace."""
        self._enqueue(seconds * self._level * self._random.lognormvariate(0.0, SAMPLE_SD))

    def host(self, seconds: float) -> None:
        """Let the host work for `seconds`."""
        self.host_s += seconds * self._host_level

    def alloc(self, nbytes: int) -> Buffer:
        """Device memory of that many bytes."""
        return Buffer(self.probe, nbytes)

    def synchronize(self) -> None:
        self.host_s = max(self.host_s, self.device_s) + SYNCHRONIZE_S * self._host_level

    # -- what the measuring loop calls -----------------------------------------------------------------------------------

    def now(self) -> float:
        self.host_s += CALL_S
        return self.host_s

    def use_events(self, count: int) -> None:
        self._events.extend([0.0] * (count - len(self._events)))

    def record(self, event: int) -> None:
        self.host_s += RECORD_S
        self.device_s = max(self.device_s, self.host_s) + WINDOW_S / 2
        self._events[event] = self.device_s

    def elapsed(self, start: int, end: int) -> float:
        return self._events[end] - self._events[start] + WINDOW_S / 2

    def passed(self, event: int) -> bool:
        self.host_s += QUERY_S
        return self._events[event] <= self.host_s

    def spin(self, seconds: float) -> None:
        self._spun = True
        self._enqueue(seconds)

    def clocks_hz(self) -> List[float]:
        spun, self._spun = self._spun, False
        return [CLOCK_HZ] if spun else []

    def memory(self) -> Optional[MemoryProbe]:
        return self.probe

    def facts(self) -> Dict[str, Any]:
        return {"gpu": "scripted device", "gpu_uuid": "scripted", "scripted": True}

    def _enqueue(self, seconds: float) -> None:
        self.host_s += LAUNCH_S * self._host_level
        self.device_s = max(self.device_s, self.host_s) + seconds

    def install(self) -> None:
        """Offer the device to the code under test as the module `regress_scripted`."""
        module = types.ModuleType("regress_scripted", __doc__)
        for name in ("kernel", "host", "alloc", "synchronize"):
            setattr(module, name, getattr(self, name))
        sys.modules["regress_scripted"] = module
