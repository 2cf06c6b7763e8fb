"""asv's result file: text to rows and back. Reads version 1 too; writes version 2.

A file holds one row a benchmark; a row has one value a column, and most columns hold one item a parameter combination, in the
order of `itertools.product`. A row may be shorter than the columns, the columns come in any order, and bare `NaN` and
`Infinity` occur. Nothing here touches the disk.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from regress.history import first_format
from regress.history.json_text import loads

RESULTS_VERSION = 2
BENCHMARKS_VERSION = 2
MACHINE_VERSION = 1
LATEST_S = 253_402_300_800.0
"""The year 10,000: later times cannot become dates."""
MOST_EMPTY = 100_000
"""Limit of cases for a row that has no items for them: 2 kB of parameters can multiply to more than any memory holds."""

STATS = ("ci_99_a", "ci_99_b", "q_25", "q_75", "number", "repeat")
COLUMNS = (
    "result",
    "params",
    "version",
    "started_at",
    "duration",
    *(f"stats_{name}" for name in STATS),
    "samples",
    "profile",
)

Row = dict[str, Any]
"""A row by column, as in the file."""

Axes = Sequence[Sequence[str]]
"""The values of each parameter."""


class FormatError(Exception):
    """A file that is not what it should be; `fix` is what the user can do about it."""

    def __init__(self, why: str, fix: str) -> None:
        super().__init__(why)
        self.why, self.fix = why, fix


@dataclass(frozen=True)
class Cell:
    """A row's data for one parameter combination. `result`: None means failed, NaN skipped or not measured."""

    result: float | None
    samples: list[float] | None = None
    stats: Mapping[str, float] | None = None


@dataclass(frozen=True)
class ResultsFile:
    """The contents of a results file. `date` is the commit's, in milliseconds since the epoch."""

    commit_hash: str
    env_name: str
    date: int
    params: dict[str, Any]
    python: str
    requirements: Any = field(default_factory=dict)
    env_vars: dict[str, str] = field(default_factory=dict)
    rows: dict[str, Row] = field(default_factory=dict)
    durations: dict[str, float] = field(default_factory=dict)
    others: dict[str, Any] = field(default_factory=dict)
    """Keys that asv does not know."""
    malformed: tuple[str, ...] = ()
    """What is left out because it has the wrong type: "the row of x.time_f"."""


# -- names of files ------------------------------------------------------------------------------------------------------


def file_stem(commit_sha: str, environment: str) -> str:
    """The name of a commit's file without its ending: asv's eight digits, a dash, and the environment's safe name.

    asv replaces characters that file systems forbid, and names of 128 characters or more by their MD5. A name whose bytes
    would not fit (asv fails there) is replaced too.
    """
    safe = re.sub(r'[<>:"/\^|?*\x00-\x1f]', "_", environment)
    if re.fullmatch(r"CON|PRN|AUX|NUL|(COM|LPT)[1-9]", safe.upper()):
        safe += "_"
    if len(safe) >= 128 or len(safe.encode(errors="replace")) > 200:
        safe = "env-" + hashlib.md5(safe.encode(errors="replace"), usedforsecurity=False).hexdigest()
    return f"{commit_sha[:8]}-{safe}"


# -- reading -------------------------------------------------------------------------------------------------------------


RESTORE = "restore it with git checkout, or remove it"


def parse_json(data: bytes, version: int, oldest: int | None = None) -> dict[str, Any]:
    """The object in one of asv's files, less its version, which is `version` or from `oldest` on. Raises FormatError."""
    return _versioned(data, version, version if oldest is None else oldest)[0]


def _versioned(data: bytes, newest: int, oldest: int) -> tuple[dict[str, Any], int]:
    try:
        content = loads(data)
    except ValueError as error:
        raise FormatError(f"not JSON: {error}", RESTORE) from None
    if not isinstance(content, dict) or not isinstance(content.get("version"), int):
        raise FormatError("not a file of asv: it names no version", RESTORE)
    version = content.pop("version")
    if version < oldest:
        raise FormatError(f"format version {version} is older than {oldest}", "asv update")
    if version > newest:
        raise FormatError(f"format version {version} is newer than {newest}", "update regress")
    return content, version


def parse_results(data: bytes) -> ResultsFile:
    """A file of results, of either version. Raises FormatError; a row that is malformed is only named."""
    content, version = _versioned(data, RESULTS_VERSION, 1)
    try:
        if version == 1:
            content = first_format.updated(content)
        columns, rows = content.pop("result_columns"), content.pop("results")
        if not all(isinstance(column, str) for column in columns):
            raise ValueError("a column is not text")
        table = {name: _row(columns, row) for name, row in rows.items()}
        env_vars, durations = content.pop("env_vars", {}), content.pop("durations", {})
        wrong = [f"the row of {name}" for name, row in table.items() if row is None]
        wrong += [f"{column} of {name}" for name, row in table.items() if row is not None for column in _taken_out(row)]
        wrong += [
            name for name, value in (("env_vars", env_vars), ("durations", durations)) if not isinstance(value, dict)
        ]
        results = ResultsFile(
            commit_hash=content.pop("commit_hash"),
            env_name=content.pop("env_name"),
            date=content.pop("date"),
            params=content.pop("params"),
            python=content.pop("python"),
            requirements=content.pop("requirements"),
            env_vars=env_vars if isinstance(env_vars, dict) else {},
            rows={name: row for name, row in table.items() if row is not None},
            durations=durations if isinstance(durations, dict) else {},
            others=content,
            malformed=tuple(wrong),
        )
    except KeyError as error:
        raise FormatError(f"it has no {error}", RESTORE) from None
    except (AttributeError, TypeError, ValueError):
        raise FormatError("its results are not a table of rows", RESTORE) from None
    named = isinstance(results.commit_hash, str) and bool(results.commit_hash) and isinstance(results.env_name, str)
    if not named or not isinstance(results.params, dict) or not _is_time(results.date):
        raise FormatError("its commit, its environment or its machine is malformed", RESTORE)
    return results


def parse_whole_results(data: bytes) -> ResultsFile:
    """A file of results that is going to be written again. Raises FormatError also for a row that would be lost."""
    results = parse_results(data)
    if results.malformed:
        raise FormatError(malformed(results.malformed), RESTORE)
    return results


def malformed(parts: Sequence[str]) -> str:
    """The error, in words, of a file with such parts."""
    if len(parts) == 1:
        return f"{parts[0]} is malformed"
    return f"{len(parts)} parts of it are malformed, the first is {parts[0]}"


def _row(columns: Sequence[str], values: Any) -> Row | None:
    """The row by column, None if the columns that are read do not have the shape they should."""
    if not isinstance(values, list):
        return None
    row = dict(zip(columns, values, strict=False))
    if isinstance(row.get("result"), (int, float)):  # of a plain benchmark, alone
        row["result"] = [row["result"]]
    lists = [row.get(column) for column in ("result", "params", "stats_ci_99_a", "stats_ci_99_b")]
    good = (
        all(value is None or isinstance(value, list) for value in lists)
        and _is_time(row.get("started_at"))
        and (row.get("duration") is None or is_seconds(row["duration"]))
        and all(isinstance(axis, list) for axis in row.get("params") or [])
        and isinstance(row.get("version"), (str, type(None)))
        and not too_many(row.get("params") or [], len(row.get("result") or []))
    )
    return row if good else None


def _taken_out(row: Row) -> list[str]:
    """The columns of a row that nothing hangs on and that are of another kind than they should be: it is one without them."""
    named = ("samples", *(f"stats_{name}" for name in STATS))
    wrong = [column for column in named if not isinstance(row.get(column), (list, type(None)))]
    if "samples" not in wrong and not all(isinstance(cell, (list, type(None))) for cell in row.get("samples") or []):
        wrong.append("samples")
    for column in wrong:
        del row[column]
    return wrong


def too_many(axes: Sequence[Sequence[Any]], items: int) -> bool:
    """Whether parameters multiply to more cases than `items` items justify."""
    return math.prod(map(len, axes)) > max(items, MOST_EMPTY)


def _is_time(value: Any) -> bool:
    """Whether it is None, or milliseconds since the epoch."""
    return value is None or (type(value) in (int, float) and is_seconds(value / 1000))


def is_seconds(value: Any) -> bool:
    """Whether it is a time since the epoch, or a duration, that can become a date."""
    return type(value) in (int, float) and abs(value) < LATEST_S


def axes_of(row: Row) -> list[list[str]]:
    """The row's parameters; none for a plain benchmark."""
    return [[str(value) for value in axis] for axis in row.get("params") or []]


def cells_of(row: Row) -> dict[tuple[str, ...], Cell]:
    """The row's cells by parameter values. Columns that are short or missing leave their part of a cell empty."""
    combinations = list(itertools.product(*axes_of(row)))
    results = _column(row, "result", len(combinations))
    samples = _column(row, "samples", len(combinations))
    stats = {name: _column(row, f"stats_{name}", len(combinations)) for name in STATS}
    cells = {}
    for index, combination in enumerate(combinations):
        known = {name: column[index] for name, column in stats.items() if column[index] is not None}
        cells[combination] = Cell(results[index], samples[index], known or None)
    return cells


def _column(row: Row, name: str, length: int) -> list[Any]:
    value = row.get(name)
    items = list(value) if isinstance(value, list) else [value]
    return (items + [None] * length)[:length]


# -- writing -------------------------------------------------------------------------------------------------------------


def row_from(axes: Axes, cells: Mapping[tuple[str, ...], Cell], /, **columns: Any) -> Row:
    """A row with these cells laid out over `axes`; combinations without a cell are NaN, as null would read as failed. `columns`
    are the plain ones."""
    laid_out = [cells.get(combination, Cell(math.nan)) for combination in itertools.product(*axes)]
    stats = {f"stats_{name}": _shortened([(cell.stats or {}).get(name) for cell in laid_out], 5) for name in STATS}
    return {
        "result": _or_none([cell.result for cell in laid_out]),
        "params": [list(axis) for axis in axes],
        **columns,
        **stats,
        "samples": _or_none([cell.samples for cell in laid_out]),
    }


def merged_axes(first: Axes, *others: Axes) -> list[list[str]]:
    """The values of `first`, then those that only the others have; others with another number of parameters do not count."""
    merged = [list(axis) for axis in first]
    for other in others:
        if len(other) == len(merged):
            for axis, values in zip(merged, other, strict=True):
                axis.extend(value for value in values if value not in axis)
    return merged


def serialize_results(file: ResultsFile) -> bytes:
    """The file as asv writes it: one line, and no nulls at the end of a row. Columns of other writers come last."""
    others = {column: None for row in file.rows.values() for column in row if column not in COLUMNS}
    columns = [*COLUMNS, *others]
    table = {}
    for name, row in file.rows.items():
        values = [row.get(column) for column in columns]
        while values and values[-1] is None:
            values.pop()
        table[name] = values
    content = {
        **file.others,
        "commit_hash": file.commit_hash,
        "env_name": file.env_name,
        "date": file.date,
        "params": file.params,
        "python": file.python,
        "requirements": file.requirements,
        "env_vars": file.env_vars,
        "result_columns": columns,
        "results": table,
        "durations": file.durations,
        "version": RESULTS_VERSION,
    }
    return json.dumps(content).encode()


def serialize_json(content: Mapping[str, Any], version: int) -> bytes:
    """machine.json or benchmarks.json as asv writes them: indented and sorted."""
    return json.dumps({**content, "version": version}, indent=4, sort_keys=True).encode()


def shortened(value: float, digits: int) -> float:
    """The value rounded to `digits` significant digits, as asv shortens values that nobody reads to the last digit."""
    return float(f"{value:.{digits}g}")


def _shortened(values: list[Any], digits: int) -> list[Any] | None:
    return _or_none([shortened(value, digits) if isinstance(value, float) else value for value in values])


def _or_none(values: list[Any]) -> list[Any] | None:
    return values if any(value is not None for value in values) else None
