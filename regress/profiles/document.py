"""What GPUProfiler exports: the nouns of the document `regress.profile/1`, and how it is read and written.

    Profile      one run of a program: where, when, totals by operation, the last entries, bottlenecks
    Operation    all entries of one name, added up
    Entry        one use of `profile`, or one call of a decorated function
    Bottleneck   an operation that takes much of the time: what limits it, and what to try
    Variant      all entries of one operation with the same details (`size=1024`), as two exports are compared

Times are seconds, sizes bytes; what is not known is None (null in the document), never 0. Only the standard library is used,
for this is imported into programs that are profiled.
"""

from __future__ import annotations

import json
import math
import os
import secrets
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from regress.errors import RegressError
from regress.files import read_bytes
from regress.text.wording import reason

SCHEMA = "regress.profile/1"
KIND = "regress.profile/"

T = TypeVar("T")


@dataclass(frozen=True)
class Entry:
    """One use of an operation. `duration_s` of GPU work is the device's span, from the event before it to the event after it;
    of anything else the host's time. `busy_s`, `transfer_s` and `idle_s` add up to the span."""

    operation: str
    start_s: float
    """Since the profile began, on the host's clock; of GPU work, when the device began with it."""
    end_s: float
    duration_s: float
    self_s: float
    """Without the entries inside it."""
    host_s: float
    """Host time, which overlaps `duration_s`."""
    device: str
    """gpu or cpu."""
    backend: str
    """torch, cupy, numba, warp, cuda; cpu."""
    thread: str
    depth: int
    """0: inside no other entry."""
    busy_s: float | None = None
    """The device ran at least one kernel, whichever stream it was on."""
    transfer_s: float | None = None
    """It ran none, and copied."""
    idle_s: float | None = None
    """It did neither: it waited for the host, or for an event."""
    copied_bytes: int | None = None
    memory_bytes: int | None = None
    """Allocated on the device at the end."""
    peak_bytes: int | None = None
    """The most that was allocated on the device in between."""
    utilization: float | None = None
    """Share of the span in which the device was not idle."""
    bandwidth_bytes_s: float | None = None
    """Declared bytes a second of the span or, without a declaration, copied bytes a second of transfers."""
    details: dict[str, Any] = field(default_factory=dict)
    """Details given by the program: `size=1024`."""
    failed: bool = False
    """It was left with an exception."""


@dataclass(frozen=True)
class Kernel:
    """A kernel that ran in an operation's entries; its time counts even if another one ran at the same time."""

    name: str
    calls: int
    total_s: float


@dataclass(frozen=True)
class Operation:
    """All entries of one name. Sums of the breakdown are over the `broken_down` entries for which it is known."""

    operation: str
    device: str
    """gpu, cpu or mixed."""
    backend: str
    calls: int
    failed: int
    total_s: float
    self_s: float
    share: float
    """Of the summed self times of all operations."""
    mean_s: float
    min_s: float
    max_s: float
    host_s: float
    broken_down: int
    span_s: float
    """Of the entries that are broken down."""
    busy_s: float | None = None
    transfer_s: float | None = None
    idle_s: float | None = None
    copied_bytes: int | None = None
    memory_bytes: int | None = None
    """At the end of the last entry."""
    peak_bytes: int | None = None
    utilization: float | None = None
    bandwidth_bytes_s: float | None = None
    flops_s: float | None = None
    kernels: tuple[Kernel, ...] = ()
    """The longest ones."""


@dataclass(frozen=True)
class Variant:
    """The entries of one operation with the same details. `durations_s` are those of its last entries."""

    operation: str
    details: dict[str, Any]
    device: str
    calls: int
    durations_s: tuple[float, ...]
    hosts_s: tuple[float, ...]
    peak_bytes: int | None = None


@dataclass(frozen=True)
class Bottleneck:
    """One of the operations that take the most time."""

    operation: str
    share: float
    self_s: float
    bound: str
    """memory, compute, transfer, overhead, host or unknown."""
    evidence: str
    advice: tuple[str, ...]


@dataclass(frozen=True)
class Profile:
    """One run of a program, as far as it was profiled."""

    started_at: float
    """Seconds since the epoch."""
    duration_s: float
    process: int
    program: str
    machine: str
    facts: dict[str, Any]
    """Device, driver, framework versions, as found."""
    limits: dict[str, float]
    """What the device could do at most."""
    entries_total: int
    entries_kept: int
    """The number of last entries in `entries`."""
    pending: int
    """Entries that the device had not done when this was written; they are not counted above."""
    lost: int
    """Entries whose device time could not be read; their durations are the host's."""
    no_breakdown: str
    """Why the device's time is not broken down; empty if it is."""
    operations: tuple[Operation, ...]
    variants: tuple[Variant, ...]
    bottlenecks: tuple[Bottleneck, ...]
    entries: tuple[Entry, ...]
    schema: str = SCHEMA


# -- the document --------------------------------------------------------------------------------------------------------


def write(profile: Profile, path: Path) -> None:
    """Write the document, whole or not at all. Raises OSError."""
    text = json.dumps(_plain(asdict(profile)), allow_nan=False)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        temporary.write_text(f"{text}\n", encoding="utf-8", errors="backslashreplace")
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def read(path: Path) -> Profile:
    """The export in that file. Raises RegressError if it is invalid."""
    try:
        data = json.loads(read_bytes(path))
    except OSError as error:
        why = reason(error)
        raise RegressError(
            f"cannot read {path}", why=why, fix="name a file that GPUProfiler.export_json wrote"
        ) from None
    except (ValueError, RecursionError) as error:
        raise _broken(path, f"it is not JSON: {error}") from None
    schema = data.get("schema") if isinstance(data, dict) else None
    if not isinstance(schema, str) or not schema.startswith(KIND):
        raise _broken(path, f'it is not a profile: its "schema" is {schema!r}, not {SCHEMA!r}')
    if schema != SCHEMA:
        raise RegressError(
            f"{path} is of another version: {schema}", why=f"this is read here: {SCHEMA}", fix="export it again"
        )
    try:
        profile = build(Profile, data, "the profile")
        _look_over(profile)
    except (TypeError, ValueError) as error:
        raise _broken(path, str(error)) from None
    return profile


def _look_over(profile: Profile) -> None:
    """Raise ValueError for what no program and no clock has."""
    for variant in profile.variants:
        if variant.device not in ("gpu", "cpu"):
            raise ValueError(f"{variant.operation} ran on {_word(variant.device)}, neither gpu nor cpu")
        if min((*variant.durations_s, *variant.hosts_s), default=0.0) < 0:
            raise ValueError(f"{variant.operation} has a time below zero")
        if variant.device == "gpu" and len(variant.hosts_s) != len(variant.durations_s):
            raise ValueError(
                f"{variant.operation} has {len(variant.hosts_s)} host times for {len(variant.durations_s)} entries"
            )


def _broken(path: Path, why: str) -> RegressError:
    return RegressError(
        f"{path} is not an export of GPUProfiler", why=why, fix="export it again: profiler.export_json(path)"
    )


def build(kind: type[T], data: Any, where: str) -> T:
    """A dataclass of this file from plain data. Raises TypeError or ValueError, which say what is wrong and where."""
    if not isinstance(data, dict):
        raise TypeError(f"{where} is {_word(data)}, not an object")
    hints = get_type_hints(kind)
    values = {}
    for item in fields(kind):  # type: ignore[arg-type]
        if item.name in data:
            values[item.name] = _value(hints[item.name], data[item.name], f"{where}: {item.name}")
    try:
        return kind(**values)
    except TypeError as error:
        raise TypeError(f"{where}: {str(error).partition('() ')[2]}") from None


def _value(kind: Any, data: Any, where: str) -> Any:
    if get_origin(kind) is tuple:
        if not isinstance(data, list):
            raise TypeError(f"{where} is {_word(data)}, not a list")
        return tuple(_value(get_args(kind)[0], item, f"{where}[{at}]") for at, item in enumerate(data))
    if get_origin(kind) is dict:
        if not isinstance(data, dict):
            raise TypeError(f"{where} is {_word(data)}, not an object")
        inner = get_args(kind)[1]
        return {key: item if inner is Any else _value(inner, item, f"{where}[{key}]") for key, item in data.items()}
    options = get_args(kind) or (kind,)
    if type(None) in options and data is None:
        return None
    (wanted,) = (option for option in options if option is not type(None))
    if hasattr(wanted, "__dataclass_fields__"):
        return build(wanted, data, where)
    if wanted is float and isinstance(data, int) and not isinstance(data, bool):
        data = float(data) if abs(data) < 2**64 else math.inf
    if not isinstance(data, wanted) or (isinstance(data, bool) and wanted is not bool):
        raise TypeError(f"{where} is {_word(data)}, not {_NAMES[wanted]}")
    if isinstance(data, float) and not math.isfinite(data):
        raise ValueError(f"{where} is not a finite number")
    return data


_NAMES = {float: "a number", int: "a whole number", str: "text", bool: "true or false"}


def _word(data: Any) -> str:
    text = json.dumps(data)
    return text if len(text) < 30 else f"{text[:30]}…"


def _plain(data: Any) -> Any:
    """Without numbers that JSON lacks; a program's details may be anything."""
    if isinstance(data, Mapping):
        return {str(key): _plain(item) for key, item in data.items()}
    if isinstance(data, (list, tuple)):
        return [_plain(item) for item in data]
    if isinstance(data, float):
        return data if math.isfinite(data) else None
    return data if data is None or isinstance(data, (bool, int, str)) else str(data)
