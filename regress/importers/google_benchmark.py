"""Google Benchmark's JSON (`--benchmark_out=FILE --benchmark_out_format=json`), by its user guide and what 1.5 to 1.9 write.

Each repetition is a sample, and their median the value of the run; where only aggregates were written, the median of these.
As Google Benchmark itself has it, a case is about its CPU time, and with `UseRealTime` or `UseManualTime` about that as
`wall_time`. The other one stands beside it, as do counters of the author's own.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from regress.importers.document import (
    SECONDS,
    Document,
    Given,
    Raw,
    known_version,
    measured,
    name_of,
    param,
    stem_of,
    struct,
)
from regress.model import Failure, Measured

SCHEMAS = ("1",)
"""`json_schema_version`; before 1.8 there was none."""
AGGREGATE = "median"
_NOT_COUNTERS = frozenset(
    {
        *(
            "name",
            "family_index",
            "per_family_instance_index",
            "run_name",
            "run_type",
            "repetitions",
            "repetition_index",
        ),
        *("threads", "iterations", "real_time", "cpu_time", "time_unit", "label", "aggregate_name", "aggregate_unit"),
        *(
            "error_occurred",
            "error_message",
            "skipped",
            "skip_message",
            "big_o",
            "rms",
            "cpu_coefficient",
            "real_coefficient",
        ),
        *("allocs_per_iter", "max_bytes_used", "total_allocated_bytes", "net_heap_growth"),
        *("bytes_per_second", "items_per_second"),
    }
)
_SETTING = re.compile(r"(real_time|process_time|manual_time|(repeats|iterations|min_time|min_warmup_time):.*)")
"""What Google Benchmark adds to the name of a case that says how it is run."""


class _Context(msgspec.Struct):
    date: str = ""
    executable: str = ""
    library_version: str = ""
    library_build_type: str = ""
    json_schema_version: int = 0
    cpu_scaling_enabled: bool = False
    host_name: str = ""


class _Entry(msgspec.Struct):
    name: str
    run_name: str = ""
    run_type: str = "iteration"
    aggregate_name: str = ""
    real_time: float | None = None
    cpu_time: float | None = None
    time_unit: str = "ns"
    label: str = ""
    error_occurred: bool = False
    error_message: str = ""
    skipped: bool = False
    skip_message: str = ""
    bytes_per_second: float | None = None
    items_per_second: float | None = None


class _Written(msgspec.Struct):
    context: _Context
    benchmarks: list[dict[str, Any]]


Entries = list[tuple[_Entry, dict[str, float]]]
"""Of one case: each repetition, or the aggregate, with the counters of the author's own."""


def knows(raw: Raw) -> bool:
    """Whether it is such a document: of those that have benchmarks, the one whose context names a library or a build."""
    content = raw.content
    context = content.get("context") if isinstance(content, dict) else None
    return isinstance(context, dict) and "benchmarks" in content and "executable" in context


def read(raw: Raw) -> Document:
    """The document. Raises ValueError."""
    written = struct(raw.content, _Written)
    context = written.context
    if context.json_schema_version:
        known_version(str(context.json_schema_version), SCHEMAS, "json_schema_version")
    debug = context.library_build_type == "debug"
    flags = [f"{context.executable}: its Google Benchmark says that it is a debug build"] if debug else []
    flags += [f"{context.executable}: the processor's clock was scaled"] if context.cpu_scaling_enabled else []
    return Document(
        tuple(_given(name, entries) for name, entries in _by_case(written.benchmarks).items()),
        stem_of(context.executable),
        _seconds(context.date),
        {"google_benchmark": context.library_version} if context.library_version else {},
        tuple(flags),
    )


def listed(raw: Raw) -> Document:
    """The cases that `--benchmark_list_tests` prints, a line each."""
    lines = [line.strip() for line in raw.data.decode(errors="replace").splitlines() if line.strip()]
    cases = map(_taken_apart, lines)
    return Document(tuple(Given(name, {}, params, _own(by_real_time)) for name, params, by_real_time in cases))


def _by_case(entries: Sequence[dict[str, Any]]) -> dict[str, Entries]:
    """By the name of the run: its repetitions, or if there are none the median of them."""
    by_run: dict[str, tuple[Entries, Entries]] = {}
    for raw in entries:
        entry = struct(raw, _Entry)
        counters = {
            name: float(value)
            for name, value in raw.items()
            if name not in _NOT_COUNTERS and isinstance(value, (int, float)) and not isinstance(value, bool)
        }
        single, aggregates = by_run.setdefault(entry.run_name or entry.name, ([], []))
        if entry.run_type == "iteration":
            single.append((entry, counters))
        elif entry.aggregate_name == AGGREGATE:
            aggregates.append((entry, counters))
    return {name: own for name, (single, aggregates) in by_run.items() if (own := single or aggregates)}


def _given(run_name: str, entries: Entries) -> Given:
    name, params, by_real_time = _taken_apart(run_name)
    own, first = _own(by_real_time), entries[0][0]
    failed = next((entry for entry, _ in entries if entry.error_occurred or entry.skipped), None)
    if failed is not None:
        kind, message = ("error", failed.error_message) if failed.error_occurred else ("skipped", failed.skip_message)
        return Given(name, {}, params, own, failure=Failure(kind, message or f"{kind}, it does not say why"))
    values = dict(_values(entries))
    if own not in values:
        raise ValueError(f"{run_name} has no {'real' if by_real_time else 'cpu'}_time")
    facts: dict[str, Any] = {"label": first.label} if first.label else {}
    if first.bytes_per_second:
        facts["bytes"] = first.bytes_per_second * (values[own].samples or [values[own].value])[0]
    return Given(name, values, params, own, facts)


def _values(entries: Entries) -> Iterator[tuple[str, Measured]]:
    unit = SECONDS.get(entries[0][0].time_unit)
    if unit is None:
        raise ValueError(f"time_unit {entries[0][0].time_unit!r}, and known are {', '.join(SECONDS)}")
    several = entries[0][0].run_type == "iteration"
    for metric, field in (
        ("wall_time", "real_time"),
        ("cpu_time", "cpu_time"),
        ("items_per_second", "items_per_second"),
    ):
        values = [value for entry, _ in entries if (value := getattr(entry, field)) is not None]
        if values:
            scaled = [value * (1.0 if metric == "items_per_second" else unit) for value in values]
            own = "1/s" if metric == "items_per_second" else "s"
            yield metric, measured(scaled, own) if several else Measured(scaled[0], [], unit=own)
    for counter in dict.fromkeys(name for _, counters in entries for name in counters):
        counts = [counters[counter] for _, counters in entries if counter in counters]
        yield name_of(counter), measured(counts, "") if several else Measured(counts[0], [], unit="")


def _own(by_real_time: bool) -> str:
    """What a case is about."""
    return "wall_time" if by_real_time else "cpu_time"


def _taken_apart(run_name: str) -> tuple[str, dict[str, str], bool]:
    """The name of the family, its arguments, and whether rates of it are by real time."""
    family, *words = run_name.split("/")
    params: dict[str, str] = {}
    by_real_time = False
    for word in words:
        if _SETTING.fullmatch(word):
            by_real_time |= word in ("real_time", "manual_time")
            continue
        key, colon, value = word.rpartition(":")
        if colon and key and "::" not in word:
            params[name_of(key)] = param(value)
        elif re.fullmatch(r"-?\d+", word):
            params["arg" if "arg" not in params else f"arg{len(params) + 1}"] = word
        else:
            family = f"{family}.{word}"
    return name_of(family), params, by_real_time


def _seconds(date: str) -> float:
    """Since the epoch, of a date with or without a zone; 0 for none."""
    try:
        return datetime.datetime.fromisoformat(date.replace("Z", "+00:00")).timestamp()
    except ValueError:
        return 0.0
