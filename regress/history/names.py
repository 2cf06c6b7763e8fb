"""Which metric has which name in asv's files, and the entries of benchmarks.json.

asv keeps one value for each name. A benchmark's own name has what asv itself would measure or, for our types, the main metric;
every further metric is called `name.metric`. `asv run` rewrites benchmarks.json without those names and then hides them, so we
keep the list in a file of our own, and the next write restores them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from regress.history.json_text import loads
from regress.model import METRICS, PROGRAM, Benchmark, Round

FURTHER_FILE = "further_metrics.jsonl"
"""In results_dir, beside benchmarks.json: one line a benchmark, `{"name": ..., "metrics": {metric: unit}}`."""

Further = dict[str, dict[str, str]]
"""The further metrics of each benchmark, with their units."""

OUR_METRICS = {"cudatime": "gpu_time", "cudacold": "cold_time"}
"""The types that asv does not have, by the beginning of the function's name (in any case: CudaTimeX too): what each is about.
To asv they are of type "time"."""

_ASV_METRICS = {"time": "wall_time", "memory": "object_size", "peakmemory": "peak_rss", "track": "value"}
_ASV_UNITS = {"s": "seconds", "B": "bytes"}
_OUR_UNITS = {asv: ours for ours, asv in _ASV_UNITS.items()}
_ASV_TYPES = {"time": "time", "host": "time", "memory": "memory", "count": "track", "tracked": "track"}
_PLAIN = (
    "name",
    "type",
    "unit",
    "params",
    "param_names",
    "version",
    "timeout",
    "setup_cache_key",
    "code",
    "pretty_name",
    PROGRAM,
    "metric",
)


# -- which metric --------------------------------------------------------------------------------------------------------


def own_metric(name: str, kind: str) -> str:
    """The metric under the own name of a benchmark of asv's type `kind`, if nothing else is known about it."""
    return _our_metric(name) or _ASV_METRICS.get(kind, "value")


def _our_metric(name: str) -> str:
    """What a benchmark of a type of ours is about; empty for the types that are asv's own."""
    function = name.rpartition(".")[2].lower()
    return next((metric for start, metric in OUR_METRICS.items() if function.startswith(start)), "")


def own_metric_of(benchmark: Benchmark, rounds: Iterable[Round]) -> str:
    """The metric under the benchmark's own name.

    A type that is asv's own keeps what asv measures, also when the device protocol measures more of it; for a type of ours it
    is what the newest protocol says the case is about. What a program measures is no type of either.
    """
    if benchmark.program:
        return benchmark.metric
    if not _our_metric(benchmark.name):
        return own_metric(benchmark.name, benchmark.type)
    about = [round.protocol.metric for round in rounds if round.protocol is not None]
    return about[-1] if about else benchmark.metric


def further_name(name: str, metric: str) -> str:
    return f"{name}.{metric}"


def further_version(version: str, metric: str) -> str:
    """The version of a further name: another version of the benchmark is another version of it."""
    return f"{version}:{metric}"


def our_unit(unit: str) -> str:
    """The base unit for one of asv's ("seconds" is "s"); others stay as they are."""
    return _OUR_UNITS.get(unit, unit)


# -- entries of benchmarks.json ------------------------------------------------------------------------------------------


def entry_of(benchmark: Benchmark) -> dict[str, Any]:
    """The entry that asv would write, completed where discovery did not bring it along."""
    entry: dict[str, Any] = {
        "name": benchmark.name,
        "type": benchmark.type,
        "unit": benchmark.unit,
        "params": benchmark.params,
        "param_names": benchmark.param_names,
        "version": benchmark.version,
    }
    if benchmark.timeout_s is not None:
        entry["timeout"] = benchmark.timeout_s
    if benchmark.program:
        entry.update({PROGRAM: benchmark.program, "metric": benchmark.metric})
    return {**entry, **benchmark.asv}


def further_entry(name: str, entry: Mapping[str, Any], metric: str, unit: str) -> dict[str, Any]:
    """The entry of a further metric of the benchmark that has `entry`: its parameters and code, another type and unit."""
    known = METRICS.get(metric)
    further: dict[str, Any] = {
        "name": further_name(name, metric),
        "type": _ASV_TYPES[known.kind] if known is not None else "track",
        "unit": _ASV_UNITS.get(unit, unit) or "unit",
        "params": entry.get("params", []),
        "param_names": entry.get("param_names", []),
        "version": further_version(entry.get("version", ""), metric),
    }
    if entry.get("code"):
        further["code"] = entry["code"]
    if entry.get("pretty_name"):
        further["pretty_name"] = f"{entry['pretty_name']} ({metric})"
    return further


def benchmark_of(name: str, entry: Mapping[str, Any], version: str | None, params: list[list[str]]) -> Benchmark:
    """The benchmark behind a row of asv's file.

    `version` and `params` come from the row, because benchmarks.json only knows the newest; if `entry` is empty, the name
    gives the type. Free declarations of authors (a type, a unit) are ignored if they have the wrong type.
    """
    kind, program = _text(entry, "type") or _type_by_name(name), _text(entry, PROGRAM)
    metric = (program and _text(entry, "metric")) or own_metric(name, kind)
    unit = _ASV_UNITS.get(METRICS[metric].unit) if metric in METRICS else None
    names, timeout = entry.get("param_names"), entry.get("timeout")
    if not isinstance(names, list) or len(names) != len(params):
        names = [f"param{i + 1}" for i in range(len(params))]
    return Benchmark(
        name=name,
        type=kind,
        unit=_text(entry, "unit") or unit or "unit",
        params=params,
        param_names=[str(param) for param in names],
        version=version or _text(entry, "version"),
        metric=metric,
        needs_device=metric in OUR_METRICS.values(),
        timeout_s=timeout if isinstance(timeout, (int, float)) else None,
        setup_cache_key=_text(entry, "setup_cache_key") or None,
        declared={key: value for key, value in entry.items() if key not in _PLAIN},
        asv=dict(entry),
        program=program,
    )


def _text(entry: Mapping[str, Any], key: str) -> str:
    value = entry.get(key)
    return value if isinstance(value, str) else ""


def _type_by_name(name: str) -> str:
    function = name.rpartition(".")[2].lower()
    kinds = {"peakmem": "peakmemory", "mem": "memory", "time": "time", **dict.fromkeys(OUR_METRICS, "time")}
    return next((kind for start, kind in kinds.items() if function.startswith(start)), "track")


# -- the further names there are -----------------------------------------------------------------------------------------


class _FurtherLine(msgspec.Struct):
    name: str
    metrics: dict[str, str]


def parse_further(data: bytes) -> Further:
    """The content of FURTHER_FILE. A line that cannot be read is left out: the next run of its benchmark brings it back."""
    further: Further = {}
    for line in data.splitlines():
        try:
            written = msgspec.convert(loads(line), _FurtherLine)
        except (ValueError, msgspec.ValidationError):
            continue
        further.setdefault(written.name, {}).update(written.metrics)
    return further


def serialize_further(further: Further) -> bytes:
    lines = [json.dumps({"name": name, "metrics": further[name]}, sort_keys=True) for name in sorted(further)]
    return "".join(line + "\n" for line in lines).encode()


def with_further(entries: Mapping[str, dict[str, Any]], further: Further) -> dict[str, dict[str, Any]]:
    """`entries` with those of the further metrics; benchmarks that are no longer there get none."""
    merged = dict(entries)
    for name, metrics in further.items():
        if name in entries:
            for metric, unit in metrics.items():
                merged[further_name(name, metric)] = further_entry(name, entries[name], metric, unit)
    return merged
