"""Exact counts of one call: what it asks of the device, of the allocator and of the compiler, while nothing is timed.

They repeat exactly while the code is the same, so one call is enough, and they are often the first sign of a change.
"""

from __future__ import annotations

import contextlib
import sys
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, List, Mapping, Optional

from .backend import Backend
from .wire import Measured


@dataclass(frozen=True)
class Counted:
    """Counts by metric, the names of the kernels that were launched, and why the device's calls could not be counted."""

    values: Dict[str, Measured] = field(default_factory=dict)
    kernels: List[str] = field(default_factory=list)
    """In the order of their first launch, as the binary spells them. The contents of a graph are not listed."""
    unavailable: str = ""


def count(call: Callable[[], object], backend: Backend, reset: Optional[Callable[[], object]] = None) -> Counted:
    """Count one call, which has been called before: `launches`, `synchronizations`, `copies` and `allocations`.

    A count that cannot be had is left out. Waiting for the device afterwards is not part of the call.
    """
    if reset is not None:
        reset()
    backend.synchronize()
    probe = backend.memory()
    with probe or contextlib.nullcontext(), backend.counting() as calls:
        before = probe.allocations() if probe is not None else None
        output = call()
        after = probe.allocations() if probe is not None else None
    del output
    backend.synchronize()
    values: Dict[str, Measured] = {}
    if not calls.unavailable:
        values = {
            "launches": exact(calls.launches),
            "synchronizations": exact(calls.synchronizations),
            "copies": exact(calls.copies),
        }
    if before is not None and after is not None:
        values["allocations"] = exact(after - before)
    return Counted(values, list(calls.kernels), calls.unavailable)


def exact(number: int) -> Measured:
    """A count as a value of a round."""
    return Measured(float(number), [float(number)], unit="count", exact=True)


class CompileWatch:
    """Counts what torch.compile does between `start` and `stop`; wrap the warm-up and the counted call in it.

    Compilations are counted by frame: each after a frame's first is a recompilation. A graph break is counted every time that
    a frame with one is compiled.
    """

    def __init__(self) -> None:
        self._frames: Dict[Any, int] = {}
        self._breaks = 0

    def start(self) -> None:
        self._frames, self._breaks = _compilations(), _graph_breaks()

    def stop(self) -> Dict[str, Measured]:
        """`recompiles` and `graph_breaks`; nothing if nothing was compiled."""
        frames = _compilations()
        grown = {frame: number for frame, number in frames.items() if number > self._frames.get(frame, 0)}
        if not grown:
            return {}
        again = sum(number - max(1, self._frames.get(frame, 0)) for frame, number in grown.items())
        return {"recompiles": exact(again), "graph_breaks": exact(_graph_breaks() - self._breaks)}


def _compilations() -> Dict[Any, int]:
    """How often dynamo has compiled each frame. The counter is limited to that, and no public interface has the total."""
    module = sys.modules.get("torch._dynamo.convert_frame")
    counter: Mapping[Any, int] = getattr(module, "FRAME_COMPILE_COUNTER", {})
    return dict(counter)


def _graph_breaks() -> int:
    counters = getattr(sys.modules.get("torch._dynamo.utils"), "counters", {})
    return sum(counters["graph_break"].values()) if "graph_break" in counters else 0
