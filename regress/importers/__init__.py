"""Files of other suites -> a Document: cases with values, independent of the format.

document          Document and Given, and helpers of all formats: names, parameters, units
taking            Documents -> Benchmarks and Rounds
google_benchmark  Google Benchmark's JSON
nvbench           nvbench's JSON, with its files of samples
pytest_benchmark  pytest-benchmark's JSON
hyperfine         hyperfine's JSON
cutlass           cutlass_profiler's CSV
mapped            JSON of the author's own, who declares what stands where

A format is a module with `knows`, which recognizes its documents, and `read`, which returns a Document or raises ValueError;
with `listed` if its programs list their cases. choices.IMPORTED and MAPPED have their names; a module is imported when a
document of its format is read.
"""

from __future__ import annotations

import hashlib
import importlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from regress.choices import IMPORTED, MAPPED
from regress.errors import DocumentError
from regress.files import read_bytes
from regress.importers.document import Document, Given, Raw, param
from regress.importers.taking import benchmarks_of, rounds_of
from regress.model import from_json
from regress.text.wording import reason

CSV = "cutlass"
"""The one format that is no JSON."""

__all__ = ["Document", "Given", "benchmarks_of", "param", "read", "read_list", "rounds_of"]


def read(path: Path, kind: str = "", mapping: Mapping[str, Any] = MappingProxyType({})) -> Document:
    """The document in a file, of that format; where none is named, of the one that knows it. `mapping` says what stands where,
    in a format that does not say so itself.

    Raises DocumentError where the file cannot be read, is cut off, or is of a version that is not known.
    """
    try:
        raw = _raw(path, mapping)
    except OSError as error:
        raise DocumentError(f"cannot read {path}", why=reason(error), fix="name an existing file") from None
    kind = kind or _kind_of(raw)
    if raw.content is None and not kind == CSV:
        raise _no_json(raw)
    try:
        document: Document = _module(kind).read(raw)
    except (ValueError, OSError) as error:
        raise DocumentError(
            f"{path} is not a document of {kind}", why=str(error), fix="run the program again, or name the format"
        ) from None
    if not document.cases:
        raise DocumentError(f"{path} has no case", why="nothing in it was measured", fix="run the program again")
    document = replace(document, cases=tuple(_apart(document.cases)))
    digest = hashlib.sha256(b"\0".join((raw.data, *document.further))).hexdigest()[:16]
    return replace(document, format=kind, digest=digest)


def _raw(path: Path, mapping: Mapping[str, Any]) -> Raw:
    data = read_bytes(path)
    try:
        return Raw(data, from_json(data), path, mapping)
    except ValueError as error:
        return Raw(data, None, path, mapping, str(error))


def _no_json(raw: Raw) -> DocumentError:
    return DocumentError(
        f"{raw.path} is not JSON", why=f"{raw.wrong}; it may have been cut off", fix="run the program again"
    )


def read_list(path: Path, kind: str) -> Document:
    """The cases that a program lists, in the file that it has written or that took what it printed. Raises DocumentError."""
    listed = getattr(_module(kind), "listed", None)
    if listed is None:
        raise DocumentError(f"{path} is not a list", why=f"{kind} lists no cases", fix="leave list_command out")
    try:
        document: Document = listed(_raw(path, {}))
    except ValueError as error:
        raise DocumentError(f"{path} is not a list of {kind}", why=str(error), fix="correct list_command") from None
    return replace(document, cases=tuple(_apart(document.cases)), format=kind)


def _apart(cases: Iterable[Given]) -> Iterator[Given]:
    """The cases, each under a name of its own: of two that are called the same the second one gets a number."""
    seen: dict[tuple[str, tuple[tuple[str, str], ...]], int] = {}
    for case in cases:
        key = case.name, tuple(case.params.items())
        seen[key] = seen.get(key, 0) + 1
        yield case if seen[key] == 1 else replace(case, name=f"{case.name}_{seen[key]}")


def _module(kind: str) -> Any:
    return importlib.import_module({**IMPORTED, **MAPPED}[kind])


def _kind_of(raw: Raw) -> str:
    for kind in IMPORTED:
        if _module(kind).knows(raw):
            return kind
    if raw.content is None:
        raise _no_json(raw)
    raise DocumentError(
        f"{raw.path} is not in a known format",
        why=f"known are {', '.join(IMPORTED)}",
        fix="write it with one of these, or correct it",
    )
