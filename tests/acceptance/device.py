"""The device in this process, for the parts that look at the timer itself."""

from __future__ import annotations

import importlib
from typing import Any

from regress.measure.backend import DeviceBackend, choose
from regress.measure.calibration import calibrate


def open_device() -> tuple[DeviceBackend, Any]:
    """The device, calibrated, and torch with its context open on it. Raises DeviceError without one."""
    torch = importlib.import_module("torch")
    torch.cuda.init()
    torch.zeros(1, device="cuda")
    device = choose("cuda")
    assert isinstance(device, DeviceBackend)
    calibrate(device)
    return device, torch
