"""Combines several files about one result into one, for merging: pure functions, from contents to content.

The result does not depend on the order of the inputs and is itself a valid input, so folders may be merged in any order, and
again. asv's format allows one exception: if three of asv's own files have the same case with different values, and asv did not
record when each was measured, the last one merged may win.
"""

from __future__ import annotations

import itertools
import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from regress.history.json_text import loads
from regress.history.names import Further
from regress.history.results_file import (
    STATS,
    Cell,
    ResultsFile,
    Row,
    axes_of,
    cells_of,
    merged_axes,
    row_from,
    too_many,
)

Entries = Mapping[str, Mapping[str, Any]]
"""Of benchmarks.json, by name."""

_CELL_COLUMNS = {"result", "params", "samples", *(f"stats_{name}" for name in STATS)}
_KINDS = ("sidecar", "protocol", "process", "benchmark", "suite")
"""Kinds of lines that rounds refer to; they come first."""


# -- sidecars ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Lines:
    """A sidecar by its lines. `unreadable` are those that are none, and are left out."""

    places: Mapping[bytes, tuple[Any, ...]]
    unreadable: int = 0

    @property
    def rounds(self) -> frozenset[bytes]:
        return frozenset(text for text, place in self.places.items() if place[1] == "round")


def lines_of(data: bytes) -> Lines:
    """The lines of a sidecar, each with its place in a united one."""
    texts = [text for text in data.split(b"\n") if text]
    places = {text: place for text in texts if (place := _place(text)) is not None}
    return Lines(places, sum(text not in places for text in texts))


def united_lines(parts: Iterable[Lines]) -> bytes:
    """One sidecar: every line once, definitions before references, and rounds in the order measured."""
    places = {text: place for part in parts for text, place in part.places.items()}
    return b"".join(text + b"\n" for text in sorted(places, key=lambda text: (places[text], text)))


def _place(text: bytes) -> tuple[Any, ...] | None:
    try:
        line = loads(text)
        kind, started_at = str(line["is"]), float(line.get("started_at", 0.0))
        order = int(line.get("order", 0))
    except (ValueError, KeyError, TypeError, OverflowError):
        return None
    rank = _KINDS.index(kind) if kind in _KINDS else len(_KINDS)
    return rank, kind, started_at if math.isfinite(started_at) else 0.0, str(line.get("run", "")), order


# -- asv's files ---------------------------------------------------------------------------------------------------------


def united_results(files: Sequence[ResultsFile]) -> ResultsFile:
    """One file with the rows of all. They are of one commit, machine and environment."""
    names = dict.fromkeys(name for file in files for name in sorted(file.rows))
    return replace(
        files[0],
        date=max(file.date or 0 for file in files),
        params=united_facts([file.params for file in files]),
        python=_later(file.python for file in files),
        requirements=_later(file.requirements for file in files),
        env_vars=united_facts([file.env_vars for file in files]),
        rows={name: united_row([file.rows[name] for file in files if name in file.rows]) for name in sorted(names)},
        durations=united_facts([file.durations for file in files]),
        others=united_facts([file.others for file in files]),
    )


def united_row(rows: Sequence[Row]) -> Row:
    """One row with the cells of the rows whose version was measured last; if several have a case, the cell measured last. A
    null may mean that nobody measured the case, so it never replaces a value. If all parameters would multiply to too many
    cases, only the newest row counts."""
    if all(row == rows[0] for row in rows):
        return rows[0]
    newest = max(rows, key=lambda row: (_started(row), _rank(_plain_columns(row))))
    alike = [row for row in rows if row.get("version") == newest.get("version")]
    laid_out = sorted((axes_of(row) for row in alike), key=_extent)
    ages = {id(row): _started(row) for row in alike}
    by_params: dict[tuple[str, ...], list[tuple[bool, float, str, Cell]]] = {}
    for row in alike:
        for params, cell in cells_of(row).items():
            by_params.setdefault(params, []).append((cell.result is not None, ages[id(row)], repr(cell), cell))
    cells = {params: max(candidates, key=lambda one: one[:3])[3] for params, candidates in by_params.items()}
    points = [[[value] for value in params] for params in sorted(cells)]
    axes = merged_axes(laid_out[-1], *laid_out[-2::-1], *points)
    return newest if too_many(axes, len(cells)) else row_from(axes, cells, **_plain_columns(newest))


def _plain_columns(row: Row) -> dict[str, Any]:
    """What a row says once: version, times, and what other writers have put there."""
    return {column: value for column, value in row.items() if column not in _CELL_COLUMNS}


def _started(row: Row) -> float:
    return float(row.get("started_at") or 0)


def _extent(axes: Sequence[Sequence[str]]) -> tuple[int, str]:
    return len(list(itertools.chain(*axes))), repr(axes)


# -- what is there once --------------------------------------------------------------------------------------------------


def united_facts(parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """All facts; of one that differs, such as a driver, the later version."""
    values: dict[str, list[Any]] = {}
    for part in parts:
        for key, value in part.items():
            values.setdefault(key, []).append(value)
    return {key: _later(own) for key, own in sorted(values.items())}


def united_further(parts: Sequence[Further]) -> Further:
    """The further metrics of each benchmark that any of them has."""
    names = {name for part in parts for name in part}
    return {name: united_facts([part[name] for part in parts if name in part]) for name in sorted(names)}


def united_entries(parts: Sequence[Entries], measured: Callable[[], Mapping[tuple[str, str], float]]) -> Entries:
    """The entries of benchmarks.json: of a benchmark that differs, the one whose version was measured last.

    `measured` gives that time by name and version; it is only asked where something differs.
    """
    versions: dict[str, list[Mapping[str, Any]]] = {}
    for part in parts:
        for name, entry in part.items():
            if entry not in versions.setdefault(name, []):
                versions[name].append(entry)
    times = measured() if any(len(entries) > 1 for entries in versions.values()) else {}
    return {
        name: max(entries, key=lambda entry: (times.get((name, str(entry.get("version"))), 0.0), _rank(entry)))
        for name, entries in sorted(versions.items())
    }


def _later(values: Iterable[Any]) -> Any:
    return max(values, key=_rank)


def _rank(value: Any) -> tuple[Any, ...]:
    """Orders anything that JSON has, and versions by their numbers: 6.9 before 6.10."""
    text = value if isinstance(value, str) else json.dumps(value, sort_keys=True)
    parts = re.split(r"([0-9]+)", text)  # text and digits in turn
    return tuple((len(digits := part.lstrip("0")), digits) if at % 2 else part for at, part in enumerate(parts)), text
