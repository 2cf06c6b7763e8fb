"""What changed is what is said to have changed: a check of two commits with a host delay, a longer kernel and a hidden wait."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from regress.units import format_change, format_time
from tests.conftest import Project

from . import bench, limits
from .table import Row, Table

ELEMENTS = 1 << 25
CODE = """
import time


def delayed(x):
    {delay}return x + x


def longer(x):
    part = x[:{elements}]
    return part + part


def waiting(x):
    return x.sum(){wait}
"""
BASE = CODE.format(delay="", elements=ELEMENTS, wait="")
HEAD = CODE.format(
    delay=f"time.sleep({limits.SLEEP_S})\n    ", elements=round(limits.LONGER * ELEMENTS), wait=".item()"
)
SUITE = f"""
import proj
import torch


class Changed:
    def setup(self):
        self.x = torch.randn({2 * ELEMENTS}, device="cuda")

    def cudatime_delayed(self): return proj.delayed(self.x)
    def cudatime_longer(self): return proj.longer(self.x)
    def cudatime_waiting(self): return proj.waiting(self.x)
"""
IDENTITY = {f"GIT_{role}_{what}": "acceptance" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
TIMEOUT_S = 400.0

Found = Mapping[tuple[str, str], Mapping[str, Any]]
"""Rows of the check's document, by benchmark (without its class) and metric."""


def run(scratch: Path) -> list[Table]:
    os.environ.update(IDENTITY)
    project = Project(scratch / "attribution", {"device": "cuda", "cache_dir": str(scratch / "attribution-cache")})
    project.commit({"proj/__init__.py": BASE, "benchmarks/b.py": SUITE}, "base")
    project.commit({"proj/__init__.py": HEAD}, "delay, a longer kernel, and a wait")
    words = [sys.executable, "-m", "regress", "check", "HEAD~1", "HEAD", "--format", "json"]
    said = bench.run(words, project.root, TIMEOUT_S, allowed=(0, 1, 4))
    return [table(by_metric(json.loads(said)))]


def by_metric(document: Mapping[str, Any]) -> Found:
    return {(row["name"].rpartition("cudatime_")[2], row["metric"]): row for row in document["benchmarks"]}


def table(row: Found) -> Table:
    """The three changes, with what each has to move and what it has to leave."""
    rows = (
        _row("a sleep of 20 us", row, "delayed", "host_time", _raised_by_the_sleep),
        _row("a sleep of 20 us", row, "delayed", "gpu_time", _left),
        _row("a kernel 7 % longer", row, "longer", "gpu_time", _longer),
        _row("a kernel 7 % longer", row, "longer", "host_time", _no_regression),
        _row("an .item()", row, "waiting", "wall_time", _became_synchronous),
    )
    columns = ("change", "metric", "base", "head", "change", "verdict", "reason")
    return Table("Attribution", columns, rows)


def _row(change: str, row: Found, name: str, metric: str, holds: Any) -> Row:
    measured = row.get((name, metric))
    if measured is None:
        return Row((change, metric, "", "", "", "", "is not in the check's document"), False)
    values = [format_time(measured[side]) for side in ("base", "head")]
    cells = (change, metric, *values, format_change(measured["ratio"]), measured["verdict"], measured["reason"])
    return Row(
        cells, bool(holds(measured)), {key: measured[key] for key in ("base", "head", "ratio", "verdict", "reason")}
    )


def _raised_by_the_sleep(row: Mapping[str, Any]) -> bool:
    return row["base"] is not None and row["head"] is not None and row["head"] - row["base"] >= limits.SLEEP_S


def _left(row: Mapping[str, Any]) -> bool:
    near = row["ratio"] is not None and abs(row["ratio"] - 1) <= limits.LEFT_SHARE
    return near and row["verdict"] not in ("regressed", "improved")


def _longer(row: Mapping[str, Any]) -> bool:
    low, high = limits.LONGER_SEEN
    return row["ratio"] is not None and low <= row["ratio"] <= high and row["verdict"] == "regressed"


def _no_regression(row: Mapping[str, Any]) -> bool:
    return bool(row["ratio"] is not None and row["verdict"] != "regressed")


def _became_synchronous(row: Mapping[str, Any]) -> bool:
    return "became synchronous" in row["reason"]
