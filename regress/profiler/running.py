"""An entry on its way: what is known of it so far. Slots and plain sums, for this is what an entry costs the program."""

from __future__ import annotations

from typing import Any, Protocol

from regress.profiler.timeline import EntryEvents
from regress.profiler.trace import TraceSums
from regress.profiles import Entry


class Host(Protocol):
    """Who begins and ends an entry."""

    def begin(self, entry: Running) -> None: ...
    def end(self, entry: Running) -> None: ...


class Running:
    """The context manager that `profile` returns, and afterwards the record of the entry."""

    __slots__ = (
        "backend", "busy_s", "children_s", "copied_bytes", "depth", "details", "device", "duration_s", "failed", "host",
        "host_s", "idle_s", "level", "mark", "memory_bytes", "on_device", "operation", "parent", "peak_bytes", "self_s",
        "start_s", "thread", "transfer_s",
    )  # fmt: skip

    def __init__(self, host: Host, operation: str, on_device: bool, details: dict[str, Any]) -> None:
        self.host, self.operation, self.on_device, self.details = host, operation, on_device, details
        self.mark: EntryEvents | None = None
        self.level: TraceSums | None = None
        """The sums of the trace at the beginning, where they were noted early."""
        self.parent: Running | None = None
        self.busy_s: float | None = None
        self.transfer_s: float | None = None
        self.idle_s: float | None = None
        self.copied_bytes: int | None = None
        self.memory_bytes: int | None = None
        self.peak_bytes: int | None = None
        self.start_s = self.duration_s = self.self_s = self.host_s = self.children_s = 0.0
        self.failed, self.depth = False, 0
        self.thread, self.device, self.backend = "", "cpu", ""

    def __enter__(self) -> Running:
        self.host.begin(self)
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self.failed = kind is not None
        self.host.end(self)

    def done(self) -> None:
        """The device is done with it, and its breakdown is there or will never be: work out the rest."""
        mark, duration_s = self.mark, self.host_s
        if mark is not None and mark.span_s is not None:
            duration_s, self.device = mark.span_s, "gpu"
        else:
            self.backend = "cpu"
        self.duration_s = duration_s
        self.self_s = duration_s - self.children_s if duration_s > self.children_s else 0.0
        parent = self.parent
        if parent is not None:
            if parent.mark is None:
                parent.children_s += self.host_s
            elif mark is not None:
                parent.children_s += duration_s
            self.parent = None  # or else all entries hold on to each other

    def broken_down(self, done: TraceSums) -> None:
        """Where the span went."""
        idle_s = self.duration_s - done.busy_s - done.transfer_s
        self.busy_s, self.transfer_s, self.idle_s = done.busy_s, done.transfer_s, idle_s if idle_s > 0 else 0.0
        self.copied_bytes = round(done.copied_bytes)

    def entry(self, epoch_s: float, shift_s: float) -> Entry:
        """As it is exported; device times are behind by the shift."""
        mark, start_s = self.mark, self.start_s
        if mark is not None and mark.start_s is not None:
            start_s = mark.start_s + shift_s
        work = number(self.details.get("bytes"))
        seconds = self.duration_s
        if work is None:
            work, seconds = self.copied_bytes, self.transfer_s or 0.0
        used = self.idle_s is not None and self.duration_s > 0
        return Entry(
            operation=self.operation,
            start_s=start_s - epoch_s,
            end_s=start_s - epoch_s + self.duration_s,
            duration_s=self.duration_s,
            self_s=self.self_s,
            host_s=self.host_s,
            device=self.device,
            backend=self.backend,
            thread=self.thread,
            depth=self.depth,
            busy_s=self.busy_s,
            transfer_s=self.transfer_s,
            idle_s=self.idle_s,
            copied_bytes=self.copied_bytes,
            memory_bytes=self.memory_bytes,
            peak_bytes=self.peak_bytes,
            utilization=1 - self.idle_s / self.duration_s if used and self.idle_s is not None else None,
            bandwidth_bytes_s=work / seconds if work and seconds > 0 else None,
            details=self.details,
            failed=self.failed,
        )


def number(value: object) -> float | None:
    """A declared amount of work; None if the value is not one."""
    good = isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value < float("inf")
    return float(value) if good else None  # type: ignore[arg-type]
