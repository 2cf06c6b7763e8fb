"""What the files of this suite share: the device, inputs on it, reasons to skip a case, and a timer for ratios."""

from __future__ import annotations

import importlib
import importlib.util
import os
import shutil
import statistics
from collections.abc import Callable
from typing import Any

import torch

DEVICE = "cuda"
"""Where the inputs of CUDA benchmarks are. Named in one place, so that the tests can run every body on the CPU."""

Call = Callable[[], object]


def randn(*shape: int, dtype: str = "float32") -> torch.Tensor:
    """Normal numbers on the device; the harness seeds torch, so they are the same in every round."""
    return torch.randn(*shape, device=DEVICE, dtype=getattr(torch, dtype))


def itemsize(dtype: str) -> int:
    """Bytes of one element."""
    return int(getattr(torch, dtype).itemsize)


# -- reasons to skip a case: NotImplementedError from a setup, as in asv -------------------------------------------------


def needs_gpu() -> None:
    """For `track_*` of a CUDA operation; `cudatime_*` and `cudacold_*` are skipped by the harness."""
    if DEVICE == "cuda" and not torch.cuda.is_available():
        raise NotImplementedError("needs a CUDA device")


def needs_compiler() -> None:
    """For torch.compile, which on a GPU needs Triton, and Triton a C compiler."""
    if DEVICE != "cuda":
        return
    if importlib.util.find_spec("triton") is None:
        raise NotImplementedError("torch.compile needs Triton")
    if not (os.environ.get("CC") or shutil.which("gcc") or shutil.which("clang")):
        raise NotImplementedError("Triton needs a C compiler: gcc, clang, or the one that CC names")


def compiled(function: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    """What torch.compile makes of it, for each size by itself: else the code would depend on which one came first."""
    needs_compiler()
    made: Callable[..., torch.Tensor] = torch.compile(function, dynamic=False)
    return made


def package(name: str) -> Any:
    """The package of that name, for benchmarks of libraries that not everybody has."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise NotImplementedError(f"{name} cannot be imported: {error}") from error


# -- ratios --------------------------------------------------------------------------------------------------------------


def event_seconds(call: Call, calls: int = 50) -> float:
    """Seconds a call between two events around `calls` calls in a row: host or device, whichever is the slower."""
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    for _ in range(calls):
        call()
    end.record()
    end.synchronize()
    return float(start.elapsed_time(end)) / 1e3 / calls


def ratio(call: Call, reference: Call, pairs: int = 11) -> float:
    """How many times longer `call` takes than `reference`: median over pairs measured one right after the other.

    Which of the two goes first alternates, so that a drift of the clock takes nothing from either side.
    """
    event_seconds(call), event_seconds(reference)  # warm both up
    ratios = []
    for pair in range(pairs):
        if pair % 2:
            below, above = event_seconds(reference), event_seconds(call)
        else:
            above, below = event_seconds(call), event_seconds(reference)
        ratios.append(above / below)
    return statistics.median(ratios)
