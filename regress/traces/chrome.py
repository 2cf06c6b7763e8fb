"""torch.profiler's Chrome trace, plain or gzipped, read into a Timeline.

The file is a list of events with times in microseconds. Operators are nested events of a thread; a kernel, copy or memset has
the correlation id of the API call that requested it, and that call has the id of its operator.
"""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections import defaultdict
from pathlib import Path
from typing import Annotated, Any

import msgspec

from regress.errors import ProfileError
from regress.files import read_bytes
from regress.traces.timeline import (
    Allocation,
    ApiCall,
    Copy,
    CopyKind,
    HostEvent,
    Launch,
    MarkedRange,
    Operator,
    Size3,
    Sync,
    Timeline,
    is_sync,
    plain_api_name,
)

MICRO = 1e-6
_COPY = re.compile(r"\b([HDP])to([HDP])\b")
_KINDS: dict[tuple[str, str], CopyKind] = {
    ("H", "D"): "host to device",
    ("D", "H"): "device to host",
    ("D", "D"): "device to device",
    ("H", "H"): "host to host",
    ("P", "P"): "peer to peer",
}
_API = ("cuda_runtime", "cuda_driver")


def read(path: Path) -> Timeline:
    """The timeline of a whole trace, as one call. Raises ProfileError.

    `timeline.between` takes the marked calls out of it."""
    trace = load(path)
    events = [event for event in trace.traceEvents if event.ph == "X"]
    moments = [event for event in trace.traceEvents if event.ph == "i" and event.name == "[memory]"]
    if not events:
        raise ProfileError(f"{path} holds no events", why="nothing ran while it was recorded", fix=AGAIN)
    # Subtracting first keeps the nanoseconds: the trace counts microseconds since the machine started.
    origin = min(event.ts for event in events)
    by_category: dict[str, list[TraceEvent]] = defaultdict(list)
    for event in events:
        by_category[event.cat].append(event)
    for column in by_category.values():
        column.sort(key=lambda event: (event.ts, -event.dur))
    return _timeline(by_category, moments, origin, trace.deviceProperties)


def _timeline(
    events: dict[str, list[TraceEvent]], moments: list[TraceEvent], origin: float, devices: list[dict[str, Any]]
) -> Timeline:
    operators, by_id = _operators(events["cpu_op"], origin)
    api = sorted((event for name in _API for event in events[name]), key=lambda event: event.ts)
    asked_in = {event.args.correlation: event for event in api if event.args.correlation is not None}

    def operator_of(work: TraceEvent) -> _Found:
        call = asked_in.get(work.args.correlation) if work.args.correlation is not None else None
        for event in (call, work):
            known = by_id.get(event.args.id) if event is not None else None
            if known is not None:
                return known
        return _Found()

    launches = tuple(_launch(event, origin, operator_of(event)) for event in events["kernel"])
    copied = sorted(events["gpu_memcpy"] + events["gpu_memset"], key=lambda event: event.ts)
    copies = tuple(_copy(event, origin, operator_of(event)) for event in copied)
    missing = []
    if not launches and not copies:
        missing.append("no device work was recorded")
    if not operators:
        missing.append("no operators were recorded")
    used = {piece.device for piece in (*launches, *copies)}
    return Timeline(
        start_s=0.0,
        end_s=max((event.ts + event.dur - origin) * MICRO for column in events.values() for event in column),
        launches=launches,
        copies=copies,
        syncs=tuple(
            Sync(
                plain_api_name(event.name),
                *_times(event, origin),
                thread=_number(event.tid),
                operators=operator_of(event).path,
            )
            for event in api
            if is_sync(plain_api_name(event.name))
        ),
        api_calls=tuple(
            ApiCall(
                plain_api_name(event.name),
                *_times(event, origin),
                thread=_number(event.tid),
                correlation=event.args.correlation,
            )
            for event in api
        ),
        operators=operators,
        ranges=tuple(
            MarkedRange(event.name, *_times(event, origin), thread=_number(event.tid))
            for event in events["user_annotation"]
        ),
        allocations=_allocations(moments, origin),
        overheads=tuple(
            HostEvent(event.name, *_times(event, origin), thread=_number(event.tid)) for event in events["overhead"]
        ),
        device=", ".join(
            sorted({str(device.get("name")) for device in devices if not used or _number(device.get("id")) in used})
        ),
        gaps_in_record=tuple(missing),
    )


class _Found(msgspec.Struct, frozen=True):
    """The operator that something belongs to, as far as it is known."""

    path: tuple[str, ...] = ()
    shapes: str = ""
    """Of the outermost one's arguments, as the types."""
    dtypes: str = ""


def _operators(events: list[TraceEvent], origin: float) -> tuple[tuple[Operator, ...], dict[Any, _Found]]:
    """The operators, each with those around it, and by the trace's id what belongs to one. `events` are in order."""
    operators, by_id = [], {}
    open_by_thread: dict[Any, list[tuple[float, _Found]]] = defaultdict(list)
    for event in events:
        around = open_by_thread[event.tid]
        while around and around[-1][0] <= event.ts:
            around.pop()
        outer = around[-1][1] if around else None
        shapes, dtypes = _shapes(event.args.shapes), _dtypes(event.args.dtypes, event.args.shapes)
        if outer is None:
            inner = _Found((event.name,), shapes, dtypes)
        else:
            inner = _Found((*outer.path, event.name), outer.shapes, outer.dtypes)
        around.append((event.ts + event.dur, inner))
        by_id[event.args.id] = inner
        operators.append(
            Operator(
                event.name,
                *_times(event, origin),
                thread=_number(event.tid),
                path=inner.path,
                shapes=shapes,
                dtypes=dtypes,
            )
        )
    return tuple(operators), by_id


def _launch(event: TraceEvent, origin: float, operator: _Found) -> Launch:
    args = event.args
    return Launch(
        event.name,
        *_times(event, origin),
        device=_number(args.device),
        stream=_number(args.stream),
        correlation=args.correlation,
        operators=operator.path,
        shapes=operator.shapes,
        dtypes=operator.dtypes,
        grid=_size(args.grid),
        block=_size(args.block),
        registers=args.registers,
        shared_bytes=args.shared_bytes,
        occupancy=_share(args.occupancy),
    )


def _copy(event: TraceEvent, origin: float, operator: _Found) -> Copy:
    ways = _COPY.search(event.name)
    kind: CopyKind = _KINDS.get((ways[1], ways[2]), "other") if ways else "other"
    return Copy(
        event.name,
        *_times(event, origin),
        device=_number(event.args.device),
        stream=_number(event.args.stream),
        correlation=event.args.correlation,
        operators=operator.path,
        shapes=operator.shapes,
        dtypes=operator.dtypes,
        kind="memset" if event.cat == "gpu_memset" else kind,
        bytes=_number(event.args.bytes),
    )


def _allocations(moments: list[TraceEvent], origin: float) -> tuple[Allocation, ...]:
    allocations = [
        Allocation(
            at_s=(moment.ts - origin) * MICRO,
            bytes=_number(moment.args.changed_bytes),
            allocated_bytes=_number(moment.args.allocated_bytes),
            reserved_bytes=_number(moment.args.reserved_bytes),
            on_device=moment.args.device_type != 0,
        )
        for moment in moments
    ]
    return tuple(sorted(allocations, key=lambda allocation: allocation.at_s))


def _times(event: TraceEvent, origin: float) -> tuple[float, float]:
    return (event.ts - origin) * MICRO, event.dur * MICRO


def _number(value: object) -> int:
    return value if isinstance(value, int) and abs(value) < 2**63 else 0


def _share(percent: object) -> float | None:
    """None for zero too, which the profiler writes if it can make no estimate."""
    return percent / 100 if isinstance(percent, (int, float)) and percent else None


def _size(value: Any) -> Size3 | None:
    return (value[0], value[1], value[2]) if isinstance(value, list) and len(value) == 3 else None


def _shapes(dims: Any) -> str:
    return ", ".join(str(dim) for dim in dims if dim) if isinstance(dims, list) else ""


def _dtypes(types: Any, dims: Any) -> str:
    """The types of the arguments that have a shape."""
    if not isinstance(types, list) or not isinstance(dims, list):
        return ""
    return ", ".join(str(kind) for kind, shape in zip(types, dims, strict=False) if shape)


AGAIN = "record it again with torch.profiler, and export it with export_chrome_trace"


MOST_US = 1e18
"""30,000 years: no clock counts to there."""


class TraceArgs(msgspec.Struct, gc=False):
    """The arguments of an event that are read; skipping all others makes reading several times as fast."""

    id: int | str | None = msgspec.field(default=None, name="External id")
    correlation: int | None = None
    device: Any = 0
    stream: Any = 0
    grid: Any = None
    block: Any = None
    registers: Any = msgspec.field(default=None, name="registers per thread")
    shared_bytes: Any = msgspec.field(default=None, name="shared memory")
    occupancy: Any = msgspec.field(default=None, name="est. achieved occupancy %")
    bytes: Any = 0
    shapes: Any = msgspec.field(default=None, name="Input Dims")
    dtypes: Any = msgspec.field(default=None, name="Input type")
    changed_bytes: Any = msgspec.field(default=0, name="Bytes")
    allocated_bytes: Any = msgspec.field(default=0, name="Total Allocated")
    reserved_bytes: Any = msgspec.field(default=0, name="Total Reserved")
    device_type: Any = msgspec.field(default=0, name="Device Type")


class TraceEvent(msgspec.Struct, gc=False):
    ph: str = ""
    cat: str = ""
    name: str = ""
    tid: int | str = 0
    ts: Annotated[float, msgspec.Meta(ge=-MOST_US, le=MOST_US)] = 0.0
    dur: Annotated[float, msgspec.Meta(ge=0, le=MOST_US)] = 0.0
    args: TraceArgs = msgspec.field(default_factory=TraceArgs)


class TraceFile(msgspec.Struct):
    traceEvents: list[TraceEvent]
    deviceProperties: list[dict[str, Any]] = []


def load(path: Path) -> TraceFile:
    """The trace in the file. Raises ProfileError."""
    data = _bytes(path)
    try:
        return msgspec.json.decode(data, type=TraceFile)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        pass  # a bare NaN, which torch writes sometimes, or something that is no trace
    try:
        loose = json.loads(data.decode(errors="replace"))
        return msgspec.convert({"traceEvents": loose} if isinstance(loose, list) else loose, TraceFile, strict=False)
    except (ValueError, msgspec.MsgspecError, RecursionError) as error:
        raise ProfileError(
            f"{path} is not a Chrome trace: {_first_line(error)}", why=_why(data, error), fix=AGAIN
        ) from error


def _bytes(path: Path) -> bytes:
    try:
        data = read_bytes(path)
        return gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise ProfileError(f"{path} ends too early, or is damaged: {error}", fix=AGAIN) from error
    except OSError as error:
        raise ProfileError(
            f"{path} cannot be read: {error.strerror or error}", fix="name the file of a trace"
        ) from error


def _why(data: bytes, error: Exception) -> str:
    if isinstance(error, msgspec.ValidationError) and "$.traceEvents[" in str(error):
        return "an event in it is not as torch writes it"
    if b'"traceEvents"' in data[: 1 << 16] or data.lstrip()[:1] == b"[":
        return "the file ends too early, or is damaged"
    return "it has no traceEvents, the list that such a file consists of"


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]
