"""The cluster that the file names: its kinds of nodes, and what reaches them."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

from regress.config.values import is_number, shown
from regress.errors import ConfigError
from regress.model import Cluster, Kind
from regress.text.wording import correction

ENGINES = ("slurm", "local")
_UNITS_S = {"s": 1.0, "m": 60.0, "h": 3600.0}
_EXPECTED = {
    "time": 'a duration such as "30m" or "1h"',
    "at_most": "a whole number above 0",
    "exclusive": "true or false",
    "build": "true or false",
    "options": "a list of strings",
    "setup": "a list of strings",
    "engine": f"one of {', '.join(ENGINES)}",
    "kinds": 'kinds of nodes by name, such as {"h100": {"partition": "gpu", "gres": "gpu:h100:1"}}',
}
"""What is expected of a key; of the others a string."""


def read_cluster(value: Any) -> Cluster:
    """The cluster of the setting `cluster`. Raises ConfigError if it is not one."""
    given = _checked('"cluster"', value, [field.name for field in dataclasses.fields(Cluster)])
    kinds = {name: _read_kind(name, kind) for name, kind in given.pop("kinds", {}).items()}
    return Cluster(**given, kinds=kinds)


def kinds_of(cluster: Cluster, words: str) -> list[Kind]:
    """The kinds that the words name, separated by commas, or all. Raises ConfigError for one that is not there."""
    names = list(cluster.kinds) if words == "all" else [name.strip() for name in words.split(",")]
    for name in names or [words]:
        if name not in cluster.kinds:
            known = f"the kinds are: {', '.join(cluster.kinds)}" if cluster.kinds else "the configuration has no kinds"
            fix = 'add it to "kinds" of "cluster" under "regress" in asv.conf.json'
            raise ConfigError(f"there is no kind of nodes {name!r}", why=known, fix=fix)
    return [cluster.kinds[name] for name in dict.fromkeys(names)]


def _read_kind(name: str, value: Any) -> Kind:
    where = f'"{name}" under "cluster"'
    if not re.fullmatch(r"[A-Za-z0-9][\w.+-]*", name) or name == "all":
        raise ConfigError(
            f"{where} cannot have this name",
            why='it names the machine in the history: letters, digits, "_", ".", "+" and "-", and not all',
            fix="rename it",
        )
    known = [
        "time" if field.name == "time_s" else field.name for field in dataclasses.fields(Kind) if field.name != "name"
    ]
    given = _checked(where, value, known)
    if "time" in given:
        given["time_s"] = given.pop("time")
    return Kind(name, **given)


def _checked(where: str, value: Any, known: list[str]) -> dict[str, Any]:
    """The values of an object by key, each with its type."""
    if not isinstance(value, dict):
        raise ConfigError(f"{where} is {shown(value)}", why="expected an object", fix=f"correct {where}")
    checked = {}
    for key, item in value.items():
        if key not in known:
            fix = correction(key.lower(), known, "remove it")
            raise ConfigError(f'{where} has "{key}"', why=f"known are {', '.join(sorted(known))}", fix=fix)
        checked[key] = _converted(key, item)
        if checked[key] is None:
            why = f"expected {_EXPECTED.get(key, 'a string')}"
            raise ConfigError(f"{where} has {shown({key: item})}", why=why, fix=f"correct {where}")
    return checked


def _converted(key: str, value: Any) -> Any:
    """The value in the key's type; None if it has another."""
    if key == "time":
        return _seconds(value)
    if key == "at_most":
        return value if type(value) is int and value > 0 else None
    if key in ("exclusive", "build"):
        return value if isinstance(value, bool) else None
    if key in ("options", "setup"):
        listed = isinstance(value, list) and all(isinstance(item, str) and item.strip() for item in value)
        return tuple(value) if listed else None
    if key == "kinds":
        return value if isinstance(value, dict) else None
    if key == "engine":
        return value if value in ENGINES else None
    return value if isinstance(value, str) else None


def _seconds(value: Any) -> float | None:
    if is_number(value):
        return float(value) if value > 0 else None
    match = re.fullmatch(r"(\d+\.?\d*)([smh])", value) if isinstance(value, str) else None
    return float(match[1]) * _UNITS_S[match[2]] or None if match else None
