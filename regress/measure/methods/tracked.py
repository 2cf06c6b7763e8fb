"""Benchmarks that time themselves or nothing: `timeraw_*` in a child process, and `track_*`, `mem_*` and `peakmem_*`."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any, List

from ..declared import sampling
from ..memory import peak_rss
from ..runner import first_attr
from ..stopping import PATIENCE, round_value
from ..suite import unit_of
from ..wire import Measured, Protocol, Task
from .common import Call, Visited, quick


def in_child(benchmark: Any, task: Task) -> Visited:
    """`timeraw_*`: asv_runner times a statement in a separate Python process for each sample."""
    started = time.perf_counter()
    asked = sampling(Protocol("wall_time", samples_min=3, samples_max=5), benchmark)
    protocol = task.protocol or quick(replace(asked, calls=max(1, int(benchmark.number))), task)
    timer = benchmark._get_timer(*benchmark._build_params())
    samples: List[float] = []
    while len(samples) < (1 if task.protocol is None else protocol.samples_max):
        samples.append(timer.timeit(protocol.calls) / protocol.calls)
        spent_s = time.perf_counter() - started
        if spent_s + spent_s / len(samples) > PATIENCE * task.timeout_s:
            break
    return Visited(protocol, {"wall_time": Measured(round_value(samples), samples)})


def as_number(benchmark: Any, call: Call, task: Task, metric: str) -> Visited:
    """`track_*`, `mem_*` and `peakmem_*`: what the function returns, or what its process needed."""
    protocol = task.protocol or Protocol(metric)
    if metric == "peak_rss":
        call()
        value: Any = peak_rss()
    else:
        value = benchmark.do_run()
    if isinstance(value, bool) or not hasattr(value, "__float__"):
        raise TypeError(f"a {benchmark.type} benchmark has to return a number, not {type(value).__name__}")
    number, unit = float(value), unit_of(benchmark) if metric == "value" else "B"
    exact = first_attr([benchmark.func, *benchmark._attr_sources], "exact", None) is True
    return Visited(protocol, {metric: Measured(number, [number], unit=unit, exact=exact)})
