"""GPUProfiler: what a program calls."""

from __future__ import annotations

import contextlib
import functools
import inspect
import os
import platform
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

from regress.measure.backend import Backend, DeviceBackend, DeviceError
from regress.profiler.ledger import CLOSING_S, Ledger
from regress.profiler.running import Running
from regress.profiles import Bottleneck, Operation, Profile, write
from regress.profiles.lines import bottleneck_lines, operation_lines
from regress.text.style import Style
from regress.traces.bottlenecks import bottlenecks

KEEP = 10_000
SETTLING_S = 0.2
"""How long an export, which waits for the device, waits for the trace to catch up."""

Function = TypeVar("Function", bound=Callable[..., Any])

OFF: contextlib.AbstractContextManager[None] = contextlib.nullcontext()


class GPUProfiler:
    """Times operations of the program it runs in, on the device and on the host.

    `device_id` is the number of the CUDA device among the visible ones. `breakdown` traces kernels and copies through CUPTI,
    so that an entry's span is told apart into busy, transfers and idle. `memory` reads the allocator, of the first entries of
    an operation and of some of the later ones; its peak is set back for that (what `torch.cuda.max_memory_allocated()` says
    is then about the last entry that was read). `keep` is how many entries are kept one by one; totals are of all. `backend`
    takes the place of what is found.

    Without a CUDA device entries have the host's times. Where a stream is being captured as a graph, they have too.
    """

    def __init__(
        self,
        enabled: bool = True,
        device_id: int = 0,
        *,
        breakdown: bool = True,
        memory: bool = True,
        keep: int = KEEP,
        backend: Backend | None = None,
    ) -> None:
        self._enabled = enabled
        self._ledger = Ledger(backend, device_id, breakdown, memory, keep)

    @property
    def enabled(self) -> bool:
        """Whether entries are made; can be set at any time. Those that are open are finished. What the device has not done when
        it is switched off has no breakdown."""
        return self._enabled

    @enabled.setter
    def enabled(self, on: bool) -> None:
        self._enabled = on
        self._ledger.switch(on)

    def enable(self) -> None:
        self.enabled = True

    def disable(self) -> None:
        self.enabled = False

    # -- entries ---------------------------------------------------------------------------------------------------------

    def profile(
        self, name: str, device: str = "gpu", **details: Any
    ) -> Running | contextlib.AbstractContextManager[None]:
        """A context; what is done inside is an entry of that name. `device` is gpu or cpu. `details` are kept with the entry;
        `bytes` and `flops` among them are its work, of which bandwidth and arithmetic are worked out."""
        if not self._enabled:
            return OFF
        return Running(self._ledger, name, device != "cpu", details)

    def profile_function(
        self, operation: str | None = None, device: str = "gpu", **details: Any
    ) -> Callable[[Function], Function]:
        """A decorator; every call of the function, a coroutine too, is an entry."""

        def decorate(function: Function) -> Function:
            name, on_device = operation or function.__qualname__, device != "cpu"
            if inspect.iscoroutinefunction(function):

                @functools.wraps(function)
                async def awaited(*args: Any, **kwargs: Any) -> Any:
                    with self.profile(name, device, **details):
                        return await function(*args, **kwargs)

                return cast(Function, awaited)

            @functools.wraps(function)
            def called(*args: Any, **kwargs: Any) -> Any:
                if not self._enabled:
                    return function(*args, **kwargs)
                with Running(self._ledger, name, on_device, details):
                    return function(*args, **kwargs)

            return cast(Function, called)

        return decorate

    # -- what has come of it ---------------------------------------------------------------------------------------------

    def get_summary(self) -> dict[str, Operation]:
        """By operation the totals of all entries that the device is done with, the most time first. It waits for none."""
        with self._ledger.lock:
            self._ledger.catch_up(CLOSING_S)
            return {operation.operation: operation for operation in self._ledger.summary()}

    def get_bottlenecks(self, top_n: int = 5) -> list[Bottleneck]:
        """The operations with the most time of their own, with what holds them back and what to try."""
        return list(bottlenecks(self.get_summary().values(), self._limits(), top_n))

    def print_summary(self) -> None:
        """Print a table of the operations."""
        summary = self.get_summary()
        lines = operation_lines(summary.values(), Style()) if summary else []
        if not lines and not self.pending:
            lines.append("nothing was profiled")
        if self.pending:
            lines.append(f"{self.pending} entries are not done on the device, and not counted")
        if self._ledger.why_no_breakdown and any(operation.device != "cpu" for operation in summary.values()):
            lines.append(f"busy, copies and idle are unknown: {self._ledger.why_no_breakdown}")
        print("\n".join(lines))

    def print_bottlenecks(self, top_n: int = 5) -> None:
        """Print the largest operations with what holds them back and what to try."""
        print("\n".join(bottleneck_lines(self.get_bottlenecks(top_n), Style()) or ["nothing was profiled"]))

    @property
    def pending(self) -> int:
        """Entries that are closed and not counted yet, because the device has not done them."""
        return self._ledger.pending

    def synchronize(self) -> None:
        """Wait until the device has done all entries that are closed, and count them."""
        self._ledger.catch_up(SETTLING_S, wait=True)

    def export_json(self, path: str | os.PathLike[str]) -> Path:
        """Write everything as a document `regress.profile/1`, for `regress profile` and its page. Waits for what is pending."""
        self.synchronize()
        target = Path(path)
        with self._ledger.lock:
            write(self._profile(), target)
        return target

    def reset(self) -> None:
        """Forget all entries, when the device has done them; those that are open are finished."""
        with self._ledger.lock:
            self.synchronize()
            self._ledger.clear()

    def _profile(self) -> Profile:
        ledger = self._ledger
        summary, limits = ledger.summary(), self._limits()
        return Profile(
            started_at=ledger.started_at,
            duration_s=ledger.now() - ledger.epoch_s if ledger.opened else 0.0,
            process=os.getpid(),
            program=" ".join(sys.argv[:1]),
            machine=platform.node(),
            facts=self._facts(),
            limits=limits,
            entries_total=ledger.counted,
            entries_kept=len(ledger.kept),
            pending=ledger.pending,
            lost=ledger.lost,
            no_breakdown=ledger.why_no_breakdown,
            operations=tuple(summary),
            variants=tuple(variant for totals in ledger.operations.values() for variant in totals.variants_of()),
            bottlenecks=bottlenecks(summary, limits),
            entries=tuple(running.entry(ledger.epoch_s, ledger.shift_s) for running in ledger.kept),
        )

    def _limits(self) -> dict[str, float]:
        backend = self._ledger.backend
        if not self._ledger.opened or not isinstance(backend, DeviceBackend):
            return {}
        try:
            return backend.limits()
        except DeviceError:
            return {}

    def _facts(self) -> dict[str, Any]:
        facts: dict[str, Any] = {"python": platform.python_version()}
        for name in ("torch", "cupy"):
            version = getattr(sys.modules.get(name), "__version__", None)
            if version is not None:
                facts[name] = str(version)
                facts.setdefault("loaded", []).append(name)
        backend = self._ledger.backend
        try:
            facts.update(backend.facts() if self._ledger.opened else {})
        except DeviceError as error:
            facts["no_device"] = str(error)
        if self._ledger.opened and not backend.has_device:
            facts["no_device"] = backend.why_no_device
        return facts
