"""`python -m tests.acceptance [--only PART,...] [--out DIR]`: measure and print the tables.

Exit code 0 when every limit holds, 1 when one does not or a part could not be measured, 5 without a GPU.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import tempfile
import time
import traceback
from collections.abc import Sequence
from pathlib import Path

from regress.measure.backend import DeviceError
from regress.measure.backend.cuda import CudaBackend

from .table import Row, Table, write

# The last ones open a context in this process: to the workers of the others it would be a foreign process on the device.
PARTS = ("spread", "memory", "side-by-side", "attribution", "explaining", "profiler", "spin", "continuity")


def chosen(only: str) -> list[str]:
    """The parts of a list like "spin,profiler", in the order in which they can run; all of an empty one.

    Raises ValueError for a part that is none.
    """
    wanted = [name.strip() for name in only.split(",") if name.strip()]
    unknown = set(wanted) - set(PARTS)
    if unknown:
        raise ValueError(f"no part {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    return [name for name in PARTS if name in wanted or not wanted]


def measure(part: str, scratch: Path) -> list[Table]:
    """The part's tables; a part that fails is a table that says why."""
    try:
        module = importlib.import_module(f"tests.acceptance.{part.replace('-', '_')}")
        tables: list[Table] = module.run(scratch)
        return tables
    except Exception as error:  # the other parts are still worth measuring
        traceback.print_exc()
        return [Table(part, ("could not be measured",), (Row((f"{type(error).__name__}: {error}",), False),))]


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.acceptance", description=__doc__)
    parser.add_argument("--only", default="", metavar="PART,...", help=f"of {', '.join(PARTS)}")
    parser.add_argument("--out", type=Path, metavar="DIR", help="write PART.md and PART.json there")
    options = parser.parse_args(arguments)
    try:
        parts = chosen(options.only)
    except ValueError as error:
        parser.error(str(error))
    try:
        facts = CudaBackend().facts()
    except DeviceError as error:
        print(f"nothing can be measured here: {error}", file=sys.stderr)
        return 5
    passed = True
    with tempfile.TemporaryDirectory(prefix="regress-acceptance-", ignore_cleanup_errors=True) as scratch:
        for part in parts:
            start = time.monotonic()
            tables = measure(part, Path(scratch))
            print("\n".join(table.markdown() for table in tables), flush=True)
            print(f"{part}: {time.monotonic() - start:.0f} s", file=sys.stderr, flush=True)
            passed = passed and all(table.passed for table in tables)
            if options.out is not None:
                write(options.out, part, tables, facts)
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
