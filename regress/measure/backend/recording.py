"""Profilers that write a Chrome trace in torch.profiler's format: torch's own, and that of the scripted device."""

from __future__ import annotations

import contextlib
import gzip
import importlib
import json
import os
from typing import Any, ContextManager, Dict, Iterator, List, Protocol

MICRO = 1e6
BETWEEN_S = 1e-9
"""From the end of what the host did to what it did next, which would else seem to lie inside it."""
COPY_NAME = "Memcpy HtoD (Pinned -> Device)"
"""The scripted device does not record the direction of copies."""


class NoProfiler(RuntimeError):
    """Calls cannot be profiled in this process; the message says why."""


class Profiler:
    """Records what host and device do while it is open; `write` is for afterwards."""

    def __enter__(self) -> Profiler:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def marked(self, name: str) -> ContextManager[object]:
        """What happens while it is open is in a range of that name."""
        raise NotImplementedError

    def write(self, path: str) -> None:
        """Write the Chrome trace, gzipped; the name ends in .gz."""
        raise NotImplementedError


class TorchProfiler(Profiler):
    """torch.profiler. It sees kernels launched by any library. Raises NoProfiler without torch."""

    def __init__(self) -> None:
        try:
            torch: Any = importlib.import_module("torch")
            importlib.import_module("torch.profiler")
        except ImportError as error:
            fix = "install torch for the interpreter under test"
            raise NoProfiler(f"torch.profiler cannot be imported: {error}; fix: {fix}") from None
        kinds = torch.profiler.ProfilerActivity
        self._record_function = torch.profiler.record_function
        self._profile = torch.profiler.profile(
            activities=[kinds.CPU, *([kinds.CUDA] if torch.cuda.is_available() else [])],
            record_shapes=True,
            profile_memory=True,
        )

    def __enter__(self) -> TorchProfiler:
        self._profile.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._profile.__exit__(*error)

    def marked(self, name: str) -> ContextManager[object]:
        mark: ContextManager[object] = self._record_function(name)
        return mark

    def write(self, path: str) -> None:
        self._profile.export_chrome_trace(path)


class ScriptedClock(Protocol):
    """The host's clock of the scripted device."""

    host_s: float

    def now(self) -> float: ...


class ScriptedProfiler(Profiler):
    """What code under test asks of the scripted device, as the device reports it; `clock` is the device."""

    def __init__(self, clock: ScriptedClock, device: str) -> None:
        self._clock, self._device = clock, device
        self._events: List[Dict[str, Any]] = []
        self._calls = self._allocated = 0
        self._on = False

    def __enter__(self) -> ScriptedProfiler:
        self._on = True
        return self

    def __exit__(self, *_: object) -> None:
        self._on = False

    @contextlib.contextmanager
    def marked(self, name: str) -> Iterator[None]:
        start_s = self._clock.now()
        yield
        end_s = self._clock.now()
        self._clock.now()  # what comes next begins after the range, not with its end
        self._span("user_annotation", name, start_s, end_s, os.getpid(), {})

    # -- what the device tells -------------------------------------------------------------------------------------------

    def worked(
        self, kind: str, name: str, asked_s: float, start_s: float, end_s: float, stream: int, size: int
    ) -> None:
        """The host asked for work from `asked_s` until now, and the device does it from `start_s` to `end_s`."""
        if not self._on:
            return
        self._calls += 1
        category, api = {
            "kernel": ("kernel", "cudaLaunchKernel"),
            "copy": ("gpu_memcpy", "cudaMemcpyAsync"),
            "fill": ("gpu_memset", "cudaMemsetAsync"),
        }[kind]
        now_s, ids = self._clock.host_s, {"External id": self._calls, "correlation": self._calls}
        self._span("cpu_op", f"scripted::{name}", asked_s, now_s, os.getpid(), {"External id": self._calls})
        self._span("cuda_runtime", api, asked_s, now_s, os.getpid(), ids)
        sized = {"bytes": size} if kind != "kernel" else {}
        shown = COPY_NAME if kind == "copy" else name
        self._span(category, shown, start_s, end_s, stream, {**ids, "device": 0, "stream": stream, **sized})

    def hosted(self, start_s: float) -> None:
        """The host worked from then until now."""
        if not self._on:
            return
        self._calls += 1
        self._span("cpu_op", "scripted::host", start_s, self._clock.host_s, os.getpid(), {"External id": self._calls})

    def waited(self, start_s: float) -> None:
        """The host waited for the device from then until now."""
        if not self._on:
            return
        self._calls += 1
        args = {"correlation": self._calls}
        self._span("cuda_runtime", "cudaDeviceSynchronize", start_s, self._clock.host_s, os.getpid(), args)

    def changed(self, nbytes: int, allocated: int) -> None:
        """`nbytes` were allocated, or freed if negative; `allocated` is the total."""
        if not self._on:
            return
        args = {"Device Type": 1, "Bytes": nbytes, "Total Allocated": allocated, "Total Reserved": allocated}
        at = self._clock.host_s * MICRO
        self._events.append({"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "ts": at, "args": args})

    def _span(self, category: str, name: str, start_s: float, end_s: float, thread: int, args: Dict[str, Any]) -> None:
        short = BETWEEN_S if category in ("cpu_op", "cuda_runtime") else 0.0
        times = {"ts": start_s * MICRO, "dur": max(0.0, end_s - start_s - short) * MICRO}
        self._events.append({"ph": "X", "cat": category, "name": name, "tid": thread, "args": args, **times})

    def write(self, path: str) -> None:
        properties = [{"id": 0, "name": self._device}]
        with gzip.open(path, "wt") as file:
            json.dump({"schemaVersion": 1, "deviceProperties": properties, "traceEvents": self._events}, file)
