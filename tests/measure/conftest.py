"""The device of the machine, for tests that are marked `gpu`."""

from __future__ import annotations

import gc
from typing import Any

import pytest

from regress.measure.backend import choose
from regress.measure.backend.cuda import CudaBackend
from regress.measure.calibration import calibrate


@pytest.fixture(scope="module")
def torch() -> Any:
    """torch, with its context open on the device."""
    module = pytest.importorskip("torch")
    module.cuda.init()
    return module


@pytest.fixture(scope="module")
def device(torch: Any) -> CudaBackend:
    """The CUDA device, calibrated. What is there by now is left out of garbage collections, as in a worker: with torch loaded
    one before every block would take longer than the block."""
    gc.collect()
    gc.freeze()
    backend = choose("cuda")
    assert isinstance(backend, CudaBackend)
    calibrate(backend)
    return backend
