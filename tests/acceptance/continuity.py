"""One call a window against many: around the change a case must not jump."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from regress.measure.backend import DeviceBackend
from regress.measure.loop import WINDOW_S, DeviceLoop
from regress.measure.wire import Protocol
from regress.units import format_percent, format_time

from . import limits
from .device import open_device
from .table import Row, Table


def run(scratch: Path) -> list[Table]:
    device, torch = open_device()
    clock_hz = _clock_hz(device)
    rows = tuple(_row(device, torch, seconds, clock_hz) for seconds in limits.CONTINUITY_AT_S)
    limit = f"{format_time(limits.CONTINUITY_S)} or {format_percent(limits.CONTINUITY_SHARE)}"
    columns = ("kernel", "one call a window", "calls", "many calls a window", "difference")
    return [Table("One call a window and many", columns, rows, (f"within {limit}",))]


def _row(device: DeviceBackend, torch: Any, seconds: float, clock_hz: float) -> Row:
    cycles = round(seconds * clock_hz)
    # Counts SM cycles: a spin that watches the nanosecond timer would end with that timer's steps, up to a microsecond each.
    loop = DeviceLoop(lambda: torch.cuda._sleep(cycles), device)
    loop.warm_up(1.0)
    calls = math.ceil(WINDOW_S / seconds)
    one, many = (_value(loop, number) for number in (1, calls))
    cells = (format_time(seconds), format_time(one), str(calls), format_time(many), f"{(many - one) * 1e6:+.2f} us")
    figures = {"kernel": seconds, "one": one, "calls": calls, "many": many}
    return Row(cells, limits.continuous(one, many), figures)


def _value(loop: DeviceLoop, calls: int) -> float:
    samples = loop.sample(Protocol("gpu_time", calls=calls))
    if samples is None:
        raise RuntimeError(f"the queue could not be kept full with {calls} calls a window")
    return samples.value(calls=calls)


def _clock_hz(device: DeviceBackend) -> float:
    """The SM clock now, from a spin."""
    device.spin(0.01)
    device.synchronize()
    return device.clocks_hz()[-1]
