"""The output of `nsys stats --format csv`, read into totals: kernels, copies by direction, and API calls.

A text may contain several reports, each under a title; a file may contain one. Times are in nanoseconds unless `--timeunit`
said otherwise; the unit is in the name of the column.
"""

from __future__ import annotations

import csv
import math
import re
from dataclasses import dataclass, field, replace

from regress.errors import ProfileError
from regress.traces.timeline import Size3

KERNELS, COPIES, API_CALLS = "cuda_gpu_kern_sum", "cuda_gpu_mem_time_sum", "cuda_api_sum"
SIZED_KERNELS, SIZES = "cuda_gpu_kern_gb_sum", "cuda_gpu_mem_size_sum"
"""The kernels by grid and block, which is more than the other report has; and the bytes of the copies."""
FIX = f"nsys stats --report {SIZED_KERNELS},{COPIES},{SIZES},{API_CALLS} --format csv FILE.nsys-rep"

_TITLE = re.compile(r"\b(\w+_sum)\b")
_TOTAL = re.compile(r"Total Time \((ns|nsec|us|usec|ms|msec|s|sec)\)")
_SIZE = re.compile(r"Total \((B|KB|MB|GB)\)")
_SCALES = {"n": 1e-9, "u": 1e-6, "m": 1e-3, "s": 1.0, "B": 1.0, "K": 1e3, "M": 1e6, "G": 1e9}
_COUNTS = {"Instances": KERNELS, "Count": COPIES, "Operations": COPIES, "Num Calls": API_CALLS}
"""The count column -> the report that has it. Other reports share these columns, but then there is a title."""
_OLD_TITLES = {"gpukernsum": KERNELS, "gpukerngbsum": SIZED_KERNELS, "gpumemtimesum": COPIES, "cudaapisum": API_CALLS}


@dataclass(frozen=True)
class Total:
    """All occurrences of one name."""

    name: str
    count: int
    total_s: float
    bytes: float = 0.0
    """Of copies, where the report of sizes is there."""
    grid: Size3 | None = None
    block: Size3 | None = None


@dataclass(frozen=True)
class Stats:
    """The totals of a recording, in the order of the reports: what takes longest first."""

    kernels: tuple[Total, ...] = ()
    copies: tuple[Total, ...] = ()
    api_calls: tuple[Total, ...] = ()

    @property
    def device_s(self) -> float:
        """Kernels and copies; what ran side by side counts twice."""
        return sum(kernel.total_s for kernel in (*self.kernels, *self.copies))

    @property
    def api_s(self) -> float:
        return sum(call.total_s for call in self.api_calls)


@dataclass
class _Table:
    report: str
    columns: list[str]
    count: str
    total: str
    scale: float
    rows: list[Total] = field(default_factory=list)
    """In the report of sizes, `total_s` are bytes."""


def read(text: str, source: str = "the output of nsys stats") -> Stats:
    """The totals in one or several reports. Raises ProfileError if none of the three is present.

    `source` is named in errors; a file's name that contains that of its report serves as a title.
    """
    tables: dict[str, _Table] = {}
    title, table = _title(source), None
    for number, line in enumerate(text.splitlines(), 1):
        header = _header(line, title)
        if header is not None:
            title, table = "", tables.setdefault(header.report, header)
        elif table is None or not _add(table, line, source, number):
            title, table = _title(line) or title, None
    known = {name: tuple(tables[name].rows) for name in (SIZED_KERNELS, KERNELS, COPIES, API_CALLS) if name in tables}
    if not known:
        raise ProfileError(f"{source} holds no report of CUDA", why="it has none of those that are read", fix=FIX)
    sizes = {row.name: row.total_s for row in tables[SIZES].rows} if SIZES in tables else {}
    copies = tuple(replace(total, bytes=sizes.get(total.name, 0.0)) for total in known.get(COPIES, ()))
    return Stats(known.get(SIZED_KERNELS) or known.get(KERNELS, ()), copies, known.get(API_CALLS, ()))


def _title(line: str) -> str:
    for old, name in _OLD_TITLES.items():
        if old in line:
            return name
    match = _TITLE.search(line)
    return match[1] if match else ""


def _header(line: str, title: str) -> _Table | None:
    if "Total" not in line:
        return None
    columns = _fields(line)
    count = next((column for column in columns if column in _COUNTS), None)
    for total in columns:
        time, size = _TOTAL.fullmatch(total), _SIZE.fullmatch(total)
        unit = time or size
        if unit is not None and count is not None:
            report = SIZES if size else SIZED_KERNELS if "GridXYZ" in columns else _COUNTS[count]
            return _Table(title or report, columns, count, total, _SCALES[unit[1][0]])
    return None


def _add(table: _Table, line: str, source: str, number: int) -> bool:
    """Add a row; False if the line is not a row. Raises ProfileError for a truncated one."""
    fields = _fields(line)
    if not fields or not re.fullmatch(r"[\d.,]+", fields[0]):
        return False
    if len(fields) != len(table.columns):
        raise ProfileError(
            f"{source}, line {number}: {len(fields)} fields of {len(table.columns)}", why="it ends too early", fix=FIX
        )
    row = dict(zip(table.columns, fields, strict=True))
    try:
        count, total = round(_number(row[table.count])), _number(row[table.total]) * table.scale
    except ValueError as error:
        raise ProfileError(f"{source}, line {number}: {error}", why="a column of numbers holds none", fix=FIX) from None
    name, grid, block = row.get("Name") or row.get("Operation") or "", row.get("GridXYZ", ""), row.get("BlockXYZ", "")
    table.rows.append(Total(name, count, total, grid=_size(grid), block=_size(block)))
    return True


def _fields(line: str) -> list[str]:
    try:
        return next(csv.reader([line]), [])
    except csv.Error:  # a field of more than 131,072 letters
        return []


def _size(text: str) -> Size3 | None:
    numbers = [int(digits) for digits in re.findall(r"\d+", text)]
    return (numbers[0], numbers[1], numbers[2]) if len(numbers) == 3 else None


def _number(text: str) -> float:
    """Raises ValueError, also for what nothing can last or be counted."""
    number = float(text.replace(",", ""))
    if not 0 <= number < math.inf:
        raise ValueError(f"there is {text}")
    return number
