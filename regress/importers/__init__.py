"""What other suites have written of a run -> a Document: cases with values, whatever the format.

document          Document and Given, and what every format needs: names, parameters, units
taking            Documents -> Benchmarks and Rounds
google_benchmark  Google Benchmark's JSON
nvbench           nvbench's JSON, with its files of samples
pytest_benchmark  pytest-benchmark's JSON
hyperfine         hyperfine's JSON

A format is a module with `knows`, whether what was read is such a document, and `read`, which gives its Document or raises
ValueError. choices.IMPORTED has their names; a module is imported when a document of its format is read.
"""

from __future__ import annotations

import hashlib
import importlib
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from regress.choices import IMPORTED
from regress.errors import DocumentError
from regress.files import read_bytes
from regress.importers.document import Document, Given, Raw, param
from regress.importers.taking import benchmarks_of, rounds_of
from regress.model import from_json

__all__ = ["Document", "Given", "benchmarks_of", "param", "read", "read_list", "rounds_of"]


def read(path: Path, kind: str = "") -> Document:
    """The document in a file, of that format; where none is named, of the one that knows it.

    Raises DocumentError where the file cannot be read, is cut off, or is of a version that is not known.
    """
    try:
        data = read_bytes(path)
    except OSError as error:
        raise DocumentError(
            f"cannot read {path}", why=(error.strerror or str(error)).lower(), fix="name a file that is there"
        ) from None
    raw = Raw(data, _parsed(path, data), path)
    kind = kind or _kind_of(raw)
    try:
        found: Document = _module(kind).read(raw)
    except (ValueError, OSError) as error:
        raise DocumentError(
            f"{path} is no document of {kind}", why=str(error), fix="run what wrote it again, or name its format"
        ) from None
    if not found.cases:
        raise DocumentError(f"{path} has no case", why="nothing in it was measured", fix="run what wrote it again")
    found = replace(found, cases=tuple(_apart(found.cases)))
    digest = hashlib.sha256(b"\0".join((data, *found.further))).hexdigest()[:16]
    return replace(found, format=kind, digest=digest)


def read_list(path: Path, kind: str) -> Document:
    """The cases that a program lists, in the file that it has written or that took what it printed. Raises DocumentError."""
    data = read_bytes(path)
    try:
        content = from_json(data)
    except ValueError:
        content = None  # a list of names, mostly
    listed = getattr(_module(kind), "listed", None)
    if listed is None:
        raise DocumentError(f"{path} is no list", why=f"{kind} lists no cases", fix="leave list_command out")
    try:
        found: Document = listed(Raw(data, content, path))
    except ValueError as error:
        raise DocumentError(f"{path} is no list of {kind}", why=str(error), fix="correct list_command") from None
    return replace(found, cases=tuple(_apart(found.cases)), format=kind)


def _apart(cases: Iterable[Given]) -> Iterator[Given]:
    """The cases, each under a name of its own: of two that are called the same the second one gets a number."""
    seen: dict[tuple[str, tuple[tuple[str, str], ...]], int] = {}
    for each in cases:
        key = each.name, tuple(each.params.items())
        seen[key] = seen.get(key, 0) + 1
        yield each if seen[key] == 1 else replace(each, name=f"{each.name}_{seen[key]}")


def _module(kind: str) -> Any:
    return importlib.import_module(IMPORTED[kind])


def _parsed(path: Path, data: bytes) -> Any:
    try:
        return from_json(data)
    except ValueError as error:
        raise DocumentError(
            f"{path} is no JSON", why=f"{error}; it may have been cut off", fix="run what wrote it again"
        ) from None


def _kind_of(raw: Raw) -> str:
    for kind in IMPORTED:
        if _module(kind).knows(raw.content):
            return kind
    raise DocumentError(
        f"{raw.path} is of no format that is known",
        why=f"known are {', '.join(IMPORTED)}",
        fix="write it with one of these, or correct it",
    )
