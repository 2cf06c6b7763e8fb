"""The file of a Chrome trace as torch.profiler writes it, plain or gzipped: its events, with the fields that are read."""

from __future__ import annotations

import gzip
import json
import zlib
from pathlib import Path
from typing import Annotated, Any

import msgspec

from regress.errors import ProfileError
from regress.files import read_bytes

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


class Trace(msgspec.Struct):
    traceEvents: list[TraceEvent]
    deviceProperties: list[dict[str, Any]] = []


def load(path: Path) -> Trace:
    """The trace in the file. Raises ProfileError."""
    data = _bytes(path)
    try:
        return msgspec.json.decode(data, type=Trace)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        pass  # a bare NaN, which torch writes sometimes, or something that is no trace
    try:
        loose = json.loads(data.decode(errors="replace"))
        return msgspec.convert({"traceEvents": loose} if isinstance(loose, list) else loose, Trace, strict=False)
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
