"""What the methods share: the result of a visit, the cut for a quick look, the memory probe."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Callable, Dict, List, Optional

from ..backend import Backend
from ..memory import describe_output, memory_of_call
from ..wire import Measured, Protocol, Task

Call = Callable[[], object]

PATIENCE = 0.8
"""No sample is begun that may not end within this share of the case's timeout."""


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
