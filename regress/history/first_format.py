"""Converts asv's first format of results (until 2019) into the second, as `asv update` does.

A result was a number, or an object of `result`, `params`, `samples` and `stats`; versions, starts and durations were separate,
by name. Fields that a file of that time may lack stay empty.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

COLUMNS = ("result", "params", "version", "started_at", "duration")
STATS = ("ci_99_a", "ci_99_b", "q_25", "q_75", "number", "repeat")


def updated(content: Mapping[str, Any]) -> dict[str, Any]:
    """The content of a file of version 2. Raises KeyError, TypeError or AttributeError if the input is not of version 1."""
    beside = {
        name: content.get(key) or {} for name, key in (("version", "benchmark_version"), ("started_at", "started_at"))
    }
    durations = content.get("duration") or {}
    rows = {}
    for name, value in content["results"].items():
        told = value if isinstance(value, dict) else {"result": value}
        row = {
            "result": _listed(told["result"]),
            "params": told.get("params") or [],
            **{column: values.get(name) for column, values in beside.items()},
            "duration": durations.get(name),
            **_stats(_listed(told.get("stats"))),
            "samples": told.get("samples"),
            "profile": (content.get("profiles") or {}).get(name),
        }
        rows[name] = list(row.values())
    kept = {key: content[key] for key in ("commit_hash", "date", "params", "python", "requirements")}
    return {
        **kept,
        "env_name": content["env_name"]
        if "env_name" in content
        else _environment(kept["python"], kept["requirements"]),
        "env_vars": content.get("env_vars") or {},
        "result_columns": [*COLUMNS, *(f"stats_{name}" for name in STATS), "samples", "profile"],
        "results": rows,
        "durations": {key: seconds for key, seconds in durations.items() if key.startswith("<")},
    }


def _listed(value: Any) -> Any:
    """A value a case: a plain benchmark had its value alone."""
    return value if isinstance(value, list) or value is None else [value]


def _stats(stats: list[Any] | None) -> dict[str, Any]:
    if stats is None or not any(stats):
        return {f"stats_{name}": None for name in STATS}
    cells = [stat or {} for stat in stats]
    ends = [cell.get("ci_99") or (None, None) for cell in cells]
    columns = {"ci_99_a": [low for low, _ in ends], "ci_99_b": [high for _, high in ends]}
    columns.update((name, [cell.get(name) for cell in cells]) for name in STATS[2:])
    return {f"stats_{name}": columns[name] for name in STATS}


def _environment(python: str, requirements: Mapping[str, str]) -> str:
    """The name of an environment as asv made it then: Python and the installed packages."""
    return "-".join([f"py{python}", *(f"{name}{version or ''}" for name, version in sorted(requirements.items()))])
