"""The same operations by several tools on one machine in one run: value, spread between fresh processes, seconds spent."""

from __future__ import annotations

import json
import os
import shutil
import statistics
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from regress.units import format_duration, format_percent, format_time
from tests.conftest import Project

from . import bench, limits
from .attribution import IDENTITY
from .operations import OPERATIONS
from .others import DO_BENCH, TIMER
from .table import Row, Table, variation

PLAIN, SYNCHRONIZED, OURS = "asv, no synchronize", "asv, synchronize", "regress"
TOOLS = (PLAIN, SYNCHRONIZED, TIMER, DO_BENCH, OURS)
ASV = {PLAIN: "time_plain", SYNCHRONIZED: "time_synchronized"}
TIMEOUT_S = 600.0
MACHINE = {"machine": "here", "arch": "", "cpu": "", "num_cpu": "", "os": "", "ram": ""}


@dataclass
class Timed:
    """What one tool found: by operation the value of each process, and what it took in all."""

    values: dict[str, list[float]] = field(default_factory=dict)
    spent_s: float = 0.0
    """Wall-clock seconds with the processes' start."""


def run(scratch: Path) -> list[Table]:
    folder = scratch / "side-by-side"
    project = _project(folder)
    by_tool = {tool: _by_asv(project, benchmark) for tool, benchmark in ASV.items()}
    by_tool.update(_by_others(folder))
    by_tool[OURS] = _by_us(scratch, folder / "benchmarks")
    return [table(by_tool)]


def table(row: Mapping[str, Timed]) -> Table:
    """A row an operation and a column a tool; the seconds that each tool took stand below."""
    tools = [tool for tool in TOOLS if tool in row]
    rows = [
        _row(operation.title, {tool: row[tool].values.get(operation.__name__, []) for tool in tools})
        for operation in OPERATIONS
    ]
    spent = {tool: row[tool].spent_s for tool in tools}
    rows.append(
        Row(("spent in all", *(format_duration(seconds) for seconds in spent.values())), None, {"spent": spent})
    )
    missing = tuple(f"{tool} is not installed." for tool in TOOLS if tool not in row)
    title = f"Side by side: median and spread between {limits.FEW_PROCESSES} processes"
    return Table(title, ("operation", *tools), tuple(rows), missing)


def _row(title: str, values: Mapping[str, Sequence[float]]) -> Row:
    cells = (f"{format_time(statistics.median(samples))}, {format_percent(variation(samples))}" if samples else "failed"
             for samples in values.values())  # fmt: skip
    return Row((title, *cells), None, {"values": {tool: list(samples) for tool, samples in values.items()}})


# -- the tools -----------------------------------------------------------------------------------------------------------


def _project(folder: Path) -> Project:
    """A repository with the operations as its suite, for asv and for us."""
    os.environ.update(IDENTITY)
    project = Project(folder, {})
    shutil.copy(Path(__file__).with_name("operations.py"), folder / "benchmarks" / "operations.py")
    config = {"version": 1, "project": "operations", "repo": ".", "branches": ["main"], "results_dir": "results"}
    (folder / ".asv-machine.json").write_text(json.dumps({"here": MACHINE, "version": 1}))
    project.commit({"asv.conf.json": json.dumps({**config, "environment_type": "existing"})}, "the operations")
    return project


def _by_asv(project: Project, benchmark: str) -> Timed:
    """An unmodified asv, each round in a process of its own. Its fork server spares it importing torch for each."""
    start = time.monotonic()
    sha = project.git("rev-parse", "HEAD")
    options = ["--python=same", "--machine", "here", "--set-commit-hash", sha, "--record-samples"]
    options += ["--launch-method", "forkserver", "--bench", rf"{benchmark}$"]
    path = bench.environment()["PYTHONPATH"]
    words = [sys.executable, "-m", "asv", "run", *options]
    bench.run(words, project.root, TIMEOUT_S, allowed=(0, 2), HOME=str(project.root), ASV_PYTHONPATH=path)
    (file,) = (project.root / "results" / "here").glob(f"{sha[:8]}-*.json")
    data = json.loads(file.read_text())
    timed = Timed(spent_s=time.monotonic() - start)
    column = data["result_columns"].index("samples")
    for name, cells in data["results"].items():
        _, operation, function = name.split(".")
        samples = cells[column][0] if len(cells) > column and cells[column] else None
        if function == benchmark and samples:
            timed.values[operation] = medians(samples, limits.FEW_PROCESSES)
    return timed


def medians(samples: Sequence[float], processes: int) -> list[float]:
    """The median of each process's samples, which asv keeps in one list, equally many of each."""
    share, rest = divmod(len(samples), processes)
    if rest or not share:
        raise ValueError(f"{len(samples)} samples of asv's are not those of {processes} processes")
    return [statistics.median(samples[index : index + share]) for index in range(0, len(samples), share)]


def _by_others(folder: Path) -> dict[str, Timed]:
    by_tool: dict[str, Timed] = {}
    start = time.monotonic()
    for _ in range(limits.FEW_PROCESSES):
        said = bench.run([sys.executable, "-m", "tests.acceptance.others"], folder, TIMEOUT_S)
        for tool, operations in json.loads(said.splitlines()[-1]).items():
            timed = by_tool.setdefault(tool, Timed())
            for operation, (seconds, spent_s) in operations.items():
                timed.values.setdefault(operation, []).append(seconds)
                timed.spent_s += spent_s
    # The processes are shared: what is not measuring is starting, and each tool would have had to do it by itself.
    starting_s = time.monotonic() - start - sum(timed.spent_s for timed in by_tool.values())
    for timed in by_tool.values():
        timed.spent_s += starting_s
    return by_tool


def _by_us(scratch: Path, folder: Path) -> Timed:
    start = time.monotonic()
    measured = bench.measured(scratch, folder, ["cudatime_ours"], limits.FEW_PROCESSES)
    by_case = bench.values(measured.rounds, "gpu_time")
    values = {case.name.split(".")[1]: samples for case, samples in by_case.items()}
    return Timed(values, time.monotonic() - start)
