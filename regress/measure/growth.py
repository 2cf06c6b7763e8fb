"""Signs that a call has not settled yet: memory taken from the device, something compiled."""

from __future__ import annotations

import sys
from typing import Tuple


def growth() -> Tuple[int, ...]:
    """Counts that stand still once a call is warm: device allocations of torch's caching allocator, and graphs that
    torch.compile made. Asks only frameworks that are loaded."""
    return _device_allocations(), _compiled_graphs()


def _device_allocations() -> int:
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_initialized():
        return 0
    return int(torch.cuda.memory_stats().get("num_device_alloc", 0))


def _compiled_graphs() -> int:
    dynamo = sys.modules.get("torch._dynamo.utils")
    return int(dynamo.counters["stats"]["unique_graphs"]) if dynamo is not None else 0
