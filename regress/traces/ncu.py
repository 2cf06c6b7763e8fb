"""Nsight Compute: the commands that run a program under it and print its report, and its output with `--csv`, read into
KernelMetrics: the pages `raw` and `details`.

The raw page has a column for each metric, a row of units, and then a row for each kernel; the details page has a row for each
kernel and metric. Lines of the profiler (`==PROF==`) and of the application may come before and between; numbers have
thousands separators, and units that fit their size.
"""

from __future__ import annotations

import csv
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from regress.errors import ProfileError
from regress.model import KernelMetrics
from regress.traces.timeline import Size3

Values = Mapping[tuple[str, str], float]
"""Metric and dimension ("s", "B", "B/s", "share" or "") -> value in that."""

_PEAK = "pct_of_peak_sustained"
_NAMES: dict[str, tuple[str, tuple[str, ...]]] = {
    "duration_s": ("s", ("gpu__time_duration.sum", "Duration")),
    "achieved_occupancy": ("share", (f"sm__warps_active.avg.{_PEAK}_active", "Achieved Occupancy")),
    "theoretical_occupancy": ("share", ("sm__maximum_warps_per_active_cycle_pct", "Theoretical Occupancy")),
    "memory_throughput": ("share", (f"gpu__compute_memory_throughput.avg.{_PEAK}_elapsed", "Memory Throughput")),
    "dram_throughput": (
        "share",
        (f"gpu__dram_throughput.avg.{_PEAK}_elapsed", f"dram__throughput.avg.{_PEAK}_elapsed", "DRAM Throughput"),
    ),
    "dram_bytes_s": ("B/s", ("dram__bytes.sum.per_second", "Memory Throughput")),
    "compute_throughput": (
        "share",
        (f"sm__throughput.avg.{_PEAK}_elapsed", "Compute (SM) Throughput", "SM Throughput"),
    ),
    "l1_hit_rate": ("share", ("l1tex__t_sector_hit_rate.pct", "L1/TEX Hit Rate")),
    "l2_hit_rate": ("share", ("lts__t_sector_hit_rate.pct", "L2 Hit Rate")),
    "registers": ("", ("launch__registers_per_thread", "Registers Per Thread")),
    "waves": ("", ("launch__waves_per_multiprocessor", "Waves Per SM")),
}
"""Field -> its dimension and its names, on the raw page and on the details page. The first that is there counts."""
_SHARED = (
    ("launch__shared_mem_per_block_static", "Static Shared Memory Per Block"),
    ("launch__shared_mem_per_block_dynamic", "Dynamic Shared Memory Per Block"),
)
_TENSOR = tuple(
    re.compile(rf"sm__{pipe}\.avg\.{_PEAK}_{of}")
    for pipe, of in (
        (r"pipe_tensor(_op_\w+)?_cycles_active", "active"),
        (r"pipe_tensor(_\w+)?_cycles_active", "elapsed"),
        (r"inst_executed_pipe_tensor(_\w+)?", "active"),
    )
)
"""Chips name their tensor pipes differently, and some have several. Instructions come last: one keeps a pipe busy for long."""

_UNIT = re.compile(r"([numKMGT]?)(byte|second|s)(/\w+)?")
_SCALES = {"": 1.0, "n": 1e-9, "u": 1e-6, "m": 1e-3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
_HEADER = '"ID",'
_ROW = re.compile(r'"\d+",')


def read(text: str, source: str = "the output of ncu") -> tuple[KernelMetrics, ...]:
    """The launches, in the order in which they were profiled. Raises ProfileError, which names `source`."""
    launches: dict[tuple[str, ...], tuple[dict[str, str], dict[tuple[str, str], float]]] = {}
    for row, metrics in _rows(text, source):
        key = tuple(row.get(name, "") for name in ("Process ID", "ID"))
        known = launches.setdefault(key, (row, {}))[1]
        for name, unit, value in metrics:
            _add(known, name, unit, value)
    if not launches:
        raise failure(text, source)
    return tuple(_metrics(row, values) for row, values in launches.values())


def _rows(text: str, source: str) -> Iterator[tuple[dict[str, str], list[tuple[str, str, str]]]]:
    """Each row of the table by the names of its columns, and the metrics in it as names, units and values."""
    columns: list[str] = []
    units: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith(_HEADER):
            columns, units = _fields(line), {}
            continue
        if not columns or not line.startswith('"'):
            continue
        fields = _fields(line)
        if not _complete(fields, columns):
            if _ROW.match(line):
                raise ProfileError(
                    f"{source}, line {number}: {len(fields)} fields of {len(columns)}",
                    why="it ends too early: the profiler was stopped, or the disk is full",
                    fix="profile again",
                )
            continue  # the application printed it
        row = dict(zip(columns, fields, strict=False))
        if "Metric Name" in row:
            yield row, [(row["Metric Name"], row.get("Metric Unit", ""), row.get("Metric Value", ""))]
        elif row["ID"] == "":
            units = row
        else:
            yield row, [(name, units.get(name, ""), row[name]) for name in columns if "__" in name]


def _complete(fields: list[str], columns: list[str]) -> bool:
    """Whether a row has all required fields; rows of the details page omit the rule columns if there is no rule."""
    return len(fields) == len(columns) or (
        "Metric Value" in columns and columns.index("Metric Value") < len(fields) < len(columns)
    )


def _fields(line: str) -> list[str]:
    return next(csv.reader([line]), [])


def _add(values: dict[tuple[str, str], float], name: str, unit: str, value: str) -> None:
    """Remember a metric in base units, unless it is known already or is no number."""
    try:
        number = float(value.replace(",", ""))
    except ValueError:
        return  # "n/a", an empty field, or a word
    if number != number or abs(number) == float("inf"):
        return
    scale, dimension = scale_of(unit)
    values.setdefault((name, dimension), number * scale)


def scale_of(unit: str) -> tuple[float, str]:
    """The factor to base units, and the dimension: "usecond" -> (1e-6, "s"), "Kbyte/block" -> (1e3, "B")."""
    if unit == "%":
        return 0.01, "share"
    matched = _UNIT.fullmatch(unit)
    if matched is None:
        return 1.0, ""
    prefix, base, over = matched.groups()
    dimension = "B" if base == "byte" else "s"
    return _SCALES[prefix], dimension + ("/s" if over in ("/s", "/second") else "")


def _metrics(row: Mapping[str, str], values: Values) -> KernelMetrics:
    fields = {field: _first(values, names, dimension) for field, (dimension, names) in _NAMES.items()}
    registers = fields.pop("registers")
    tensor = [[value for (name, _), value in values.items() if pattern.fullmatch(name)] for pattern in _TENSOR]
    shared = [part for names in _SHARED if (part := _first(values, names, "B")) is not None]
    return KernelMetrics(
        kernel=row.get("Kernel Name", ""),
        grid=_size(row.get("Grid Size", "")),
        block=_size(row.get("Block Size", "")),
        registers=None if registers is None else round(registers),
        shared_bytes=round(sum(shared)) if shared else None,
        tensor_use=next((max(pipe) for pipe in tensor if pipe), None),
        device=row.get("device__attribute_display_name", ""),
        **fields,
    )


def _first(values: Values, names: tuple[str, ...], dimension: str) -> float | None:
    return next((values[name, dimension] for name in names if (name, dimension) in values), None)


def _size(text: str) -> Size3 | None:
    numbers = [int(digits) for digits in re.findall(r"\d+", text)]
    return (numbers[0], numbers[1], numbers[2]) if len(numbers) == 3 else None


# -- what went wrong -----------------------------------------------------------------------------------------------------

_ERROR = re.compile(r"^==ERROR== (.+)", re.MULTILINE)
_DENIED = "ERR_NVGPUCTRPERM"
_UNREACHABLE = ("LibraryNotLoaded", "Failed to initialize the profiler")


def is_of_the_machine(text: str) -> bool:
    """Whether what the profiler printed says that it cannot measure here, whatever the program."""
    return any(sign in text for sign in (_DENIED, *_UNREACHABLE))


def failure(text: str, source: str = "ncu") -> ProfileError:
    """Why there is no table, by what the profiler printed."""
    said = _ERROR.search(text)
    if _DENIED in text:
        return ProfileError(
            "ncu may not read the GPU's performance counters (ERR_NVGPUCTRPERM)",
            why="the driver keeps them for administrators",
            fix="run it as root, or set NVreg_RestrictProfilingToAdminUsers=0 for the nvidia module and reload it",
        )
    if "No kernels were profiled" in text:
        return ProfileError(
            "ncu has profiled no kernel",
            why="no kernel was launched in the profiled range, or none has a selected name",
            fix="profile without a filter of names, and see that the profiled range holds the calls",
        )
    if is_of_the_machine(text):
        return ProfileError(
            f"ncu cannot reach the GPU's counters: {said[1] if said else 'the profiler does not start'}",
            why="the driver is older than this ncu, or the container or virtual machine hides the counters",
            fix="run it on the host itself, or with an ncu as old as the driver",
        )
    if said:
        return ProfileError(f"ncu failed: {said[1]}", fix="run the command by hand to see the rest of its output")
    return ProfileError(
        f"{source} holds no table of Nsight Compute",
        why='no line starts with "ID"',
        fix="export a report with: ncu --import FILE.ncu-rep --csv --page raw",
    )


SECTIONS = ("SpeedOfLight", "ComputeWorkloadAnalysis", "MemoryWorkloadAnalysis", "LaunchStats", "Occupancy")
"""Sections rather than metrics: their metrics fit the chip, where a name that a chip lacks is an error."""
PLACES = ("/usr/local/cuda/bin/ncu", "/opt/nvidia/nsight-compute/*/ncu")
"""Where installers put it without putting it on the path."""

_KERNEL = re.compile(r'^==PROF== Profiling "(.+?)"', re.MULTILINE)


def find(places: Sequence[str] = PLACES) -> str:
    """The installed ncu, the one on the path or else the newest. Raises ProfileError."""
    on_path = shutil.which("ncu")
    if on_path is not None:
        return on_path
    paths = [path for place in places for path in sorted(Path("/").glob(place.lstrip("/")), key=_version)]
    if not paths:
        raise ProfileError(
            "Nsight Compute is not installed here: there is no ncu",
            why="it comes with the CUDA toolkit, not with the driver",
            fix="install it (package nsight-compute), or put its folder on PATH",
        )
    return str(paths[-1])


def _version(path: Path) -> list[int]:
    return [int(digits) for digits in re.findall(r"\d+", str(path))]


def record(program: Sequence[str], report: Path, *, ncu: str, launch_count: int) -> list[str]:
    """The arguments that profile a program with its child processes and write the report.

    The clock is left alone, as in every measurement: ncu would set it to its base. Everything between cudaProfilerStart and
    cudaProfilerStop is profiled, at most `launch_count` launches.
    """
    options = ["--export", str(report), "--force-overwrite", "--target-processes", "all"]
    options += ["--clock-control", "none", "--profile-from-start", "off", "--launch-count", str(launch_count)]
    for section in SECTIONS:
        options += ["--section", section]
    return [ncu, *options, *program]


def show(report: Path, *, ncu: str) -> list[str]:
    """The arguments that print the raw page of a report."""
    return [ncu, "--import", str(report), "--csv", "--page", "raw", "--print-units", "base", "--rename-kernels", "no"]


def kernel_of(line: str) -> str | None:
    """The kernel that ncu says it is profiling, if that is what it says."""
    said = _KERNEL.match(line)
    return said[1] if said else None
