"""What a benchmark declares about how it is measured, read from its attributes.

As in asv, the function comes first, then its class, then its module. Names of our methods are never taken from a module, where
a helper may have the same name by chance.
"""

from __future__ import annotations

import time
from dataclasses import replace
from types import ModuleType
from typing import Any, Callable, Dict, List, Optional

from .awaited import Awaited
from .backend import DeviceBackend
from .loop import DeviceLoop
from .runner import first_attr
from .wire import Protocol

Call = Callable[[], object]

ENDLESS_S = 1e9
"""No budget: the count alone decides. Not infinite, because JSON has no word for that."""


def number(benchmark: Any) -> int:
    """Calls a window that the author wants; 0 leaves it to us."""
    return int(first_attr(benchmark._attr_sources, "number", 0))


def sampling(protocol: Protocol, benchmark: Any) -> Protocol:
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


def device_protocol(benchmark: Any) -> Protocol:
    """The protocol for device time, before the call itself was asked. Raises ValueError for caches that are neither hot nor
    cold."""
    cache = first_attr(benchmark._attr_sources, "cache", "hot")
    if not isinstance(cache, str):  # functools.cache, say, in a module that imports it
        cache = "hot"
    if cache not in ("hot", "cold"):
        raise ValueError(f'cache = {cache!r}: the caches are "hot" or "cold"')
    setup_each = redone_setup(benchmark) is not None
    return sampling(Protocol("gpu_time", cache=cache, setup_each=setup_each), benchmark)


def device_loop(benchmark: Any, call: Call, backend: DeviceBackend) -> DeviceLoop:
    """The loop for a benchmark that is set up, with its `reset`, `streams` and `cache`, and its setup before every sample if
    required."""
    return DeviceLoop(
        call,
        backend,
        reset_of(benchmark),
        prepare=redone_setup(benchmark),
        streams=streams_of(benchmark, backend),
        cold=device_protocol(benchmark).cache == "cold",
    )


def streams_of(benchmark: Any, backend: DeviceBackend) -> List[int]:
    """The handles of the streams that the benchmark uses besides the current one."""
    streams = _method(benchmark, "streams")
    return [backend.stream_handle(stream) for stream in streams()] if streams is not None else []


def wants_energy(benchmark: Any) -> bool:
    """Whether the energy of a call is to be measured. What a module happens to call so is no declaration."""
    return first_attr(benchmark._attr_sources, "energy", False) is True


def reset_of(benchmark: Any) -> Optional[Call]:
    """The benchmark's `reset`, which puts inputs back before each sample on the device; None if it has none."""
    reset: Optional[Call] = _method(benchmark, "reset")
    return reset


def bound(benchmark: Any) -> Call:
    """The benchmark's function with its parameters."""
    params, func, redone = benchmark._build_params(), benchmark.func, redone_setup(benchmark) is not None

    def called() -> None:
        benchmark._used = True

    if isinstance(func, Awaited):
        return func.call(params, called if redone else None)
    if not redone:
        return (lambda: func(*params)) if params else func

    def call() -> object:
        benchmark._used = True
        return func(*params)

    return call


def redone_setup(benchmark: Any) -> Optional[Call]:
    """Teardown and setup, for a benchmark that has them before every sample: because its author says how many calls that has
    (asv's `number`), or because a look has settled it (`inplace`); else None. A setup that no call has used yet is left as it
    is."""
    if not benchmark._setups or not getattr(benchmark, "_setup_each", number(benchmark) > 0):
        return None

    def again() -> None:
        if getattr(benchmark, "_used", False):
            renew(benchmark)
            benchmark._used = False

    return again


def renew(benchmark: Any) -> None:
    """Tear the benchmark down and set it up again."""
    _clocked(benchmark, benchmark.do_teardown)
    _clocked(benchmark, benchmark.do_setup)


def set_up(benchmark: Any) -> bool:
    """Set the benchmark up; whether it does not apply here."""
    return bool(_clocked(benchmark, benchmark.do_setup))


def _clocked(benchmark: Any, call: Call) -> object:
    """What the call gives, after its seconds have been added to those of the benchmark's setups."""
    start = time.perf_counter()
    try:
        return call()
    finally:
        benchmark._setup_s = setup_s(benchmark) + time.perf_counter() - start


def setup_s(benchmark: Any) -> float:
    """Seconds for which it was set up in this process so far."""
    return float(getattr(benchmark, "_setup_s", 0.0))


def ready(benchmark: Any) -> Optional[Call]:
    """What has to run before a call on the device to restore its inputs: setup, `reset`, both, or None."""
    steps = [step for step in (redone_setup(benchmark), reset_of(benchmark)) if step is not None]
    if not steps:
        return None

    def run() -> None:
        for step in steps:
            step()

    return run


def work(benchmark: Any) -> Dict[str, float]:
    """`bytes` and `flops` of one call, as far as they are declared, as a number or a function of the parameters."""
    declared: Dict[str, float] = {}
    for name in ("bytes", "flops"):
        amount = first_attr([benchmark.func, *benchmark._attr_sources], name, None)
        if amount is not None:
            declared[name] = float(amount(*benchmark._build_params()) if callable(amount) else amount)
    return declared


def _method(benchmark: Any, name: str) -> Any:
    """The function or method of that name, bound to the benchmark's parameters, or None."""
    sources: List[Any] = [source for source in benchmark._attr_sources if not isinstance(source, ModuleType)]
    method = first_attr(sources, name, None)
    params = benchmark._build_params()
    return None if method is None else (lambda: method(*params))
