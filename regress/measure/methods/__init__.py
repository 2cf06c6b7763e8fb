"""How each kind of benchmark is measured.

common      the result of a visit, the cut for a quick look, windows of the host's clock, the memory probe, a rank's own work
device      `cudatime_*`, and `time_*` under the device protocol
jax_arrays  the same for calls that return JAX arrays
host        `time_*`, and calls that block the host
cold        `cudacold_*`
tracked     `timeraw_*`, `track_*`, `mem_*`, `peakmem_*`
"""

from __future__ import annotations

from typing import Any, Optional

from ..backend import Backend, DeviceBackend
from ..seat import Seat
from ..wire import Task
from .cold import cold_start
from .common import Call, Visited, own_seconds
from .device import on_device
from .host import on_host
from .jax_arrays import is_jax, on_jax
from .tracked import as_number, in_child

__all__ = ["Visited", "measured", "own_seconds"]


def measured(
    benchmark: Any, call: Call, task: Task, backend: Backend, metric: str, started: float, seat: Optional[Seat] = None
) -> Visited:
    """The visit to a benchmark that is set up, by the method for its metric. `started` is the backend's clock before the
    benchmark was imported; windows are taken in turn with others from the `seat` where the task says so."""
    if metric == "cold_time":
        return cold_start(benchmark, call, task, backend, started)
    if metric == "gpu_time":
        assert isinstance(backend, DeviceBackend)
        if is_jax(benchmark, call):
            if backend.ranks.several:
                raise TypeError("a call that returns arrays of JAX cannot be measured on several ranks")
            return on_jax(benchmark, call, task, seat)
        return on_device(benchmark, call, task, backend, seat)
    if hasattr(benchmark, "_timeraw_env"):
        return in_child(benchmark, task)
    if metric == "wall_time":
        return on_host(benchmark, call, task, backend, seat)
    return as_number(benchmark, call, task, metric)
