"""pytest-benchmark's JSON (`--benchmark-json=FILE`, or what `--benchmark-autosave` writes), of versions 3 to 5.

A test is a case, its parameters those of the test. The median of its rounds is the value; they are there as samples where
`--benchmark-save-data` has kept them.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping
from typing import Any

import msgspec

from regress.importers.document import Document, Given, Raw, known_version, name_of, param, struct
from regress.model import Measured

VERSIONS = ("3", "4", "5")


class _Stats(msgspec.Struct):
    min: float
    max: float
    median: float
    rounds: int
    data: list[float] | None = None


class _Test(msgspec.Struct):
    fullname: str
    stats: _Stats
    params: dict[str, Any] | None = None
    param: str | None = None
    group: str | None = None
    extra_info: dict[str, Any] | None = None


class _Written(msgspec.Struct):
    version: str
    benchmarks: list[_Test]
    datetime: str = ""
    machine_info: dict[str, Any] | None = None


def knows(raw: Raw) -> bool:
    """Whether it is such a document."""
    content = raw.content
    return isinstance(content, dict) and "benchmarks" in content and "machine_info" in content


def read(raw: Raw) -> Document:
    """The document. Raises ValueError."""
    written = struct(raw.content, _Written)
    known_version(written.version, VERSIONS, "pytest-benchmark")
    facts: dict[str, Any] = {"pytest_benchmark": written.version}
    if python := (written.machine_info or {}).get("python_version"):
        facts["python"] = str(python)
    return Document(tuple(map(_given, written.benchmarks)), started_at=_seconds(written.datetime), facts=facts)


def _given(test: _Test) -> Given:
    values = {"wall_time": _time(test.stats)}
    for name, value in (test.extra_info or {}).items():
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            values[name_of(name)] = Measured(float(value), [float(value)], unit="")
    return Given(_name(test), values, _params(test))


def _time(stats: _Stats) -> Measured:
    if stats.data:
        return Measured(stats.median, stats.data)
    return Measured(stats.median, [], ends=None)


def _name(test: _Test) -> str:
    """ "tests/test_sort.py::TestSort::test_small[3]" is tests.test_sort.TestSort.test_small."""
    file, *parts = test.fullname.split("::")
    words = [file.removesuffix(".py"), *parts]
    return name_of("/".join(words).partition("[")[0])


def _params(test: _Test) -> dict[str, str]:
    """The parameters of the test, or the text of all of them where their values are not kept: then they are no plain values."""
    given: Mapping[str, Any] = test.params or {}
    if given and all(_is_plain(value) for value in given.values()):
        return {name: param(value) for name, value in given.items()}
    return {"param": param(test.param)} if test.param is not None else {}


def _is_plain(value: Any) -> bool:
    """pytest-benchmark writes "UNSERIALIZABLE[...]", and what repr gives of it, for what JSON does not have."""
    if isinstance(value, str):
        return not value.startswith("UNSERIALIZABLE[") and not re.search(r" at 0x[0-9A-Fa-f]+", value)
    return isinstance(value, (int, float, bool, type(None)))


def _seconds(date: str) -> float:
    """Since the epoch. Without a zone it is in UTC."""
    try:
        moment = datetime.datetime.fromisoformat(date.replace("Z", "+00:00"))
    except ValueError:
        return 0.0
    return (moment if moment.tzinfo else moment.replace(tzinfo=datetime.timezone.utc)).timestamp()
