"""A spin of a known length: the timer against the device's own clock."""

from __future__ import annotations

from pathlib import Path

from regress.measure.loop import DeviceLoop
from regress.measure.wire import Protocol
from regress.units import format_percent, format_time

from . import limits
from .device import open_device
from .table import Row, Table


def run(scratch: Path) -> list[Table]:
    device, _ = open_device()
    loop = DeviceLoop(lambda: device.spin(limits.SPIN_S), device)
    loop.warm_up(1.0)
    samples = loop.sample(Protocol("gpu_time"))
    if samples is None:
        raise RuntimeError("the queue could not be kept full behind a spin")
    seconds = samples.value()
    error = seconds / limits.SPIN_S - 1
    clock = sorted(samples.clocks_hz)[len(samples.clocks_hz) // 2] if samples.clocks_hz else 0.0
    row = Row(
        (format_time(limits.SPIN_S), format_time(seconds), f"{error:+.2%}", f"{clock / 1e6:.0f} MHz"),
        abs(error) <= limits.SPIN_SHARE,
        {"seconds": seconds, "error": error, "sm_clock_hz": clock},
    )
    note = f"within {format_percent(limits.SPIN_SHARE)}"
    return [Table("A spin of a known length", ("spin", "read", "error", "SM clock"), (row,), (note,))]
