"""cutlass_profiler's CSV (`--output=FILE`, to which it appends ".gemm.csv"), by the header of its performance_report.

An operation is a case, the provider and the problem its parameters. What describes the tile stands in the operation's name.
"""

from __future__ import annotations

import csv
import io

from regress.importers.document import Document, Given, Raw, measured, name_of, param
from regress.model import Failure

FIRST = ("Problem", "Provider", "OperationKind", "Operation", "Disposition", "Status")
LAST = ("Bytes", "Flops", "Flops/Byte", "Runtime")
TILE = "op_class"
"""The first column of those that are in the operation's name."""
SKIPPED, FAILED = ("not_run", "not_supported"), ("failed", "incorrect", "invalid_problem", "invalid")


def knows(raw: Raw) -> bool:
    """Whether it is such a table."""
    header = raw.data.partition(b"\n")[0].decode(errors="replace").strip().split(",")
    return all(name in header for name in (*FIRST, *LAST))


def read(raw: Raw) -> Document:
    """The document. Raises ValueError."""
    if not knows(raw):
        raise ValueError(f"its first line lacks one of {', '.join((*FIRST, *LAST))}")
    rows = csv.DictReader(io.StringIO(raw.data.decode()), strict=True)
    names = list(rows.fieldnames or ())
    problem = names[names.index("Status") + 1 : names.index(TILE if TILE in names else "Bytes")]
    tags = names[: names.index("Problem")]
    try:
        cases = tuple(_given(row, [*tags, "Provider", *problem]) for row in rows)
    except (csv.Error, TypeError) as error:
        raise ValueError(f"a line is cut off, or no CSV: {error}") from None
    return Document(cases, needs_device=True)


def _given(row: dict[str, str], names: list[str]) -> Given:
    name, params = name_of(row["Operation"]), {column: param(row[column]) for column in names if row[column]}
    disposition = row["Disposition"]
    if disposition in (*SKIPPED, *FAILED):
        failure = Failure("skipped" if disposition in SKIPPED else "error", f"{disposition}, {row['Status']}")
        return Given(name, {}, params, "gpu_time", failure=failure)
    facts = {key: float(row[column]) for key, column in (("bytes", "Bytes"), ("flops", "Flops"))}
    return Given(name, {"gpu_time": measured([float(row["Runtime"]) * 1e-3])}, params, "gpu_time", facts)
