"""A table: rows with a mark each, as text for people and as JSON for what comes after."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

MARKS = {True: "ok", False: "FAIL", None: ""}


@dataclass(frozen=True)
class Row:
    """A line: its cells as shown, the figures behind them (seconds, bytes, shares), and whether its limit holds (None: it has
    none)."""

    cells: tuple[str, ...]
    passed: bool | None = None
    figures: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Table:
    title: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    notes: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether every limit holds; a table without rows has shown nothing."""
        return bool(self.rows) and all(row.passed is not False for row in self.rows)

    def markdown(self) -> str:
        """The table in Markdown, its columns aligned for readers of the plain text."""
        lines = [self.columns, *(row.cells for row in self.rows)]
        if any(row.passed is not None for row in self.rows):
            lines = [(*lines[0], ""), *((*row.cells, MARKS[row.passed]) for row in self.rows)]
        texts = [[cell.replace("|", "\\|").replace("\n", " ") for cell in line] for line in lines]
        widths = [max(3, *map(len, column)) for column in zip(*texts, strict=True)]
        texts.insert(1, ["-" * width for width in widths])
        drawn = ["| " + " | ".join(map(str.ljust, line, widths)) + " |" for line in texts]
        return "\n".join([f"## {self.title}", "", *drawn, *(f"\n{note}" for note in self.notes)]) + "\n"

    def data(self) -> dict[str, Any]:
        rows = [{"cells": row.cells, "passed": row.passed, **row.figures} for row in self.rows]
        return {"title": self.title, "columns": self.columns, "rows": rows, "notes": self.notes, "passed": self.passed}


def write(folder: Path, part: str, tables: Sequence[Table], facts: dict[str, Any]) -> None:
    """Write a part's tables as `PART.md` and `PART.json` into the folder, with the machine they are of."""
    folder.mkdir(parents=True, exist_ok=True)
    machine = ", ".join(f"{name} {value}" for name, value in facts.items())
    (folder / f"{part}.md").write_text("\n".join([f"{machine}\n", *(table.markdown() for table in tables)]), "utf-8")
    document = {"part": part, "machine": facts, "tables": [table.data() for table in tables]}
    (folder / f"{part}.json").write_text(json.dumps(document, indent=2) + "\n", "utf-8")


def variation(values: Sequence[float]) -> float:
    """Coefficient of variation: standard deviation over mean; NaN where there are fewer than two values."""
    return statistics.stdev(values) / statistics.fmean(values) if len(values) > 1 else math.nan
