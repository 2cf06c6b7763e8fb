"""Other tools on the same operations, in this process: prints tool -> operation -> [seconds, seconds spent] as JSON."""

from __future__ import annotations

import importlib
import json
import time
from collections.abc import Callable
from typing import Any

from tests.acceptance.operations import OPERATIONS

TIMER, DO_BENCH = "torch.utils.benchmark", "triton.testing.do_bench"


def blocked_autorange(call: Callable[[], object]) -> float:
    """Median seconds by torch's Timer at its default."""
    timer: Any = importlib.import_module("torch.utils.benchmark").Timer
    return float(timer("call()", globals={"call": call}).blocked_autorange().median)


def do_bench(call: Callable[[], object]) -> float:
    """Median seconds by Triton at its default."""
    testing = importlib.import_module("triton.testing")
    return float(testing.do_bench(call, return_mode="median")) * 1e-3


TOOLS = {TIMER: blocked_autorange, DO_BENCH: do_bench}


def main() -> None:
    by_tool: dict[str, dict[str, list[float]]] = {}
    for tool, measure in TOOLS.items():
        try:
            importlib.import_module(tool.removesuffix(".do_bench"))
        except ImportError:
            continue
        for operation in OPERATIONS:
            ready = operation()
            ready.setup()
            start = time.perf_counter()
            seconds = measure(ready.call)
            by_tool.setdefault(tool, {})[operation.__name__] = [seconds, time.perf_counter() - start]
    print(json.dumps(by_tool))


if __name__ == "__main__":
    main()
