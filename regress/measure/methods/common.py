"""What the methods share: the result of a visit, what a benchmark declares about sampling, the memory probe."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Callable, Dict, List, Optional

from ..backend import Backend
from ..memory import describe_output, memory_of_call
from ..runner import first_attr
from ..wire import Measured, Protocol, Task

Call = Callable[[], object]

ENDLESS_S = 1e9
"""No budget: the count alone decides. Not infinite, because JSON has no word for that."""


@dataclass
class Visited:
    """What a visit found, before it is put into a message."""

    protocol: Protocol
    values: Dict[str, Measured] = field(default_factory=dict)
    facts: Dict[str, Any] = field(default_factory=dict)
    flags: List[str] = field(default_factory=list)


def quick(protocol: Protocol, task: Task) -> Protocol:
    """The protocol, cut down to one sample where the task asks for it."""
    return replace(protocol, samples_min=1, samples_max=1, warmup_s=0.0) if task.quick else protocol


def declared(protocol: Protocol, benchmark: Any) -> Protocol:
    """The protocol with asv's `repeat` (a count, or fewest, most and seconds) and `warmup_time` honoured."""
    sources = benchmark._attr_sources
    warmup_s = first_attr(sources, "warmup_time", -1)
    if warmup_s >= 0:
        protocol = replace(protocol, warmup_s=float(warmup_s))
    repeat = first_attr(sources, "repeat", 0)
    if isinstance(repeat, (tuple, list)):
        fewest, most, seconds = repeat
        return replace(protocol, samples_min=int(fewest), samples_max=int(most), window_budget_s=float(seconds))
    if repeat:
        return replace(protocol, samples_min=int(repeat), samples_max=int(repeat), window_budget_s=ENDLESS_S)
    return protocol


def probe_memory(call: Call, task: Task, backend: Backend, reset: Optional[Call], visited: Visited) -> None:
    """Memory of a call and what it returns, where the task asks for it and the allocator in use can be read."""
    probe = backend.memory() if task.memory else None
    if probe is None:
        return
    visited.values.update(memory_of_call(call, backend, probe, reset))
    if reset is not None:
        reset()
    visited.facts["output"] = describe_output(call())
    probe.release()  # what one case keeps cached, the next one must not miss
