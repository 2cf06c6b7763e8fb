"""What the timer itself costs on this device, measured once a process and taken off every window."""

from __future__ import annotations

import statistics

from .backend import DeviceBackend, DeviceError
from .blocks import LONGEST_SPIN_S

CALIBRATION_WINDOWS = 64
CLOCKS_UP_S = 0.1
LEAST_STEP_S = 1e-12
"""Smaller differences are rounding, not steps of a clock."""


def calibrate(backend: DeviceBackend) -> None:
    """Measure what an empty window reads and the clock's step, and bring the device's clocks up. Once a process.

    Behind a spin and with the same proof as a block: where the queue ran dry, an empty window reads the host's time between
    two records, and every device time of the process would be too short by that. Raises DeviceError if no try was full.
    """
    gate = 2 * CALIBRATION_WINDOWS
    backend.use_events(gate + 1)
    backend.spin(CLOCKS_UP_S)
    backend.synchronize()
    spin_s = 1e-3
    while spin_s <= LONGEST_SPIN_S:
        backend.spin(spin_s)
        backend.record(gate)
        for index in range(CALIBRATION_WINDOWS):
            backend.record(2 * index)
            backend.record(2 * index + 1)
        full = not backend.passed(gate)
        backend.synchronize()
        if full:
            windows = sorted(backend.elapsed(2 * index, 2 * index + 1) for index in range(CALIBRATION_WINDOWS))
            steps = [later - earlier for earlier, later in zip(windows, windows[1:]) if later - earlier > LEAST_STEP_S]
            backend.window_overhead_s = statistics.median(windows)
            backend.clock_step_s = min(steps, default=backend.clock_step_s)
            backend.clocks_hz()
            return
        spin_s *= 2
    raise DeviceError("the host is too slow to keep the device's queue full, even for empty windows")
