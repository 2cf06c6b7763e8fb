"""JSON of the author's own, with a declaration of what stands where.

    mapping = {
        "cases": "results.kernels",      # where the list of cases stands; of an object its keys are the names
        "name": "kernel",                # the keys of a case: its name,
        "params": ["n", "dtype"],        # its parameters,
        "values": {"gpu_time": ["ms", "ms"], "rate": ["gflops", "GFLOP/s"]},  # and of each metric the key and the unit
        "error": "error",                # and why there is none
    }

The first of the values is what a case is about; a list of numbers are samples. Keys in keys are joined by dots.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from regress.importers.document import SECONDS, Document, Given, Raw, measured, name_of, param, struct
from regress.model import Failure


class _Mapping(msgspec.Struct, forbid_unknown_fields=True):
    values: dict[str, list[str]]
    cases: str = ""
    name: str = ""
    params: list[str] = []
    error: str = ""


def knows(raw: Raw) -> bool:
    """Whether it is one by itself: only its author says so."""
    return False


def read(raw: Raw) -> Document:
    """The document. Raises ValueError, also for a mapping that cannot be used."""
    try:
        mapping = struct(dict(raw.mapping), _Mapping)
    except ValueError as error:
        raise ValueError(f"its mapping cannot be used: {error}") from None
    if not mapping.values or any(len(value) != 2 for value in mapping.values.values()):
        raise ValueError("its mapping has no values, each with a key and a unit")
    cases = _at(raw.content, mapping.cases)
    named = cases.items() if isinstance(cases, dict) else [("", case) for case in cases if isinstance(cases, list)]
    return Document(tuple(_given(name, case, mapping) for name, case in named))


def _given(key: str, case: Any, mapping: _Mapping) -> Given:
    name = str(_at(case, mapping.name)) if mapping.name else key
    if not name:
        raise ValueError('a case has no name: the mapping lacks "name"')
    params = {param_name: param(_at(case, param_name)) for param_name in mapping.params}
    own = next(iter(mapping.values))
    if mapping.error and isinstance(case, dict) and (why := case.get(mapping.error)):
        return Given(name_of(name), {}, params, own, failure=Failure("error", str(why)))
    values = {}
    for metric, (where, unit) in mapping.values.items():
        value = _at(case, where)
        numbers = value if isinstance(value, list) else [value]
        if not numbers or not all(type(number) in (int, float) for number in numbers):
            raise ValueError(f"{where} of {name} is {str(value)[:100]!r}, not a number")
        scaled = [number * SECONDS.get(unit, 1.0) for number in numbers]
        values[metric] = measured(scaled, "s" if unit in SECONDS else unit)
    return Given(name_of(name), values, params, own)


def _at(content: Any, path: str) -> Any:
    """What stands there. Raises ValueError."""
    for key in path.split(".") if path else ():
        if not isinstance(content, Mapping) or key not in content:
            raise ValueError(f"there is no {path}")
        content = content[key]
    return content
