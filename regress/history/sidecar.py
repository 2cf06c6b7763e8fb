"""The sidecar of a commit: one line a round, with what asv's file has no place for.

It stands beside asv's file, is appended to while measuring, and is small enough to commit: no raw samples, and what many
rounds share (protocol, facts of the process, the benchmark) is a line of its own that they name by its `id`.

    {"is": "sidecar", "format": 1, "commit", "date", "machine", "environment", "dirty"}
    {"is": "protocol", "id", ...}  {"is": "process", "id", "facts"}  {"is": "benchmark", "id", ...}
    {"is": "round", "name", "params", "side", "order", "run", "protocol", "process_facts", "values": {metric: ...}, ...}
    {"is": "suite", "run", "benchmarks": {name: id}}     which benchmarks the rounds of a run were taken of

Times are seconds and sizes bytes; numbers that JSON lacks are the strings "NaN", "Infinity" and "-Infinity".
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec

from regress.history.json_text import loads
from regress.history.results_file import FormatError, is_seconds, shortened
from regress.model import DECLARED_SAMPLING, Benchmark, Ends, Measured, Protocol, Round, ends_of

FORMAT = 1
ENDING = ".rounds.jsonl"
RAW_ENDING = ".rounds.raw.jsonl.gz"
DETAIL_CHARACTERS = 4000
"""Of a failure's detail that the sidecar keeps (the end); the raw file keeps all of it."""

T = TypeVar("T")
Line = dict[str, Any]


@dataclass(frozen=True)
class Header:
    """The commit and machine of the rounds. `date` is the commit's, in seconds; with `dirty` they are not the commit's own,
    with `beside` the commit was measured again beside that one."""

    commit: str
    date: float
    machine: str
    environment: str
    dirty: bool = False
    beside: str = ""

    @property
    def is_result(self) -> bool:
        """Whether they are results of the commit."""
        return not self.dirty and not self.beside


@dataclass(frozen=True)
class Kept:
    """A stored round, without samples, and the benchmark it was taken of, if known."""

    round: Round
    benchmark: Benchmark | None = None

    @property
    def version(self) -> str:
        return "" if self.benchmark is None else self.benchmark.version

    @property
    def sampling(self) -> dict[str, Any]:
        """What the benchmark declared about how samples are taken."""
        declared = {} if self.benchmark is None else self.benchmark.declared
        return {name: declared[name] for name in DECLARED_SAMPLING if name in declared}


@dataclass(frozen=True)
class Sidecar:
    """A sidecar, read. `unreadable` are the numbers of malformed lines (a killed writer, a bad merge); `doubled` are those of
    repeated rounds (a union merge, a copy): each round counts once."""

    header: Header | None = None
    kept: tuple[Kept, ...] = ()
    ids: frozenset[str] = frozenset()
    unreadable: tuple[int, ...] = ()
    doubled: tuple[int, ...] = ()


# -- writing -------------------------------------------------------------------------------------------------------------


def round_lines(
    header: Header,
    round: Round,
    process_facts: Mapping[str, Any],
    benchmark: Benchmark | None,
    known: Collection[str],
) -> tuple[bytes, set[str]]:
    """The lines that record a round in a file that has the lines `known` already, and the ids of the new ones among them."""
    shared = {"protocol": _asdict_line("protocol", round.protocol)} if round.protocol is not None else {}
    if process_facts:
        shared["process_facts"] = _identified({"is": "process", "facts": dict(process_facts)})
    if benchmark is not None:
        shared["benchmark"] = _line_of(_Same(benchmark))
    names = {key: line["id"] for key, line in shared.items()}
    return _new_lines(header, shared.values(), [_round_line(round, names)], known)


def suite_lines(
    header: Header, runs: Collection[str], benchmarks: Collection[Benchmark], known: Collection[str]
) -> tuple[bytes, set[str]]:
    """The lines that say which benchmarks the rounds of these runs belong to."""
    definitions = [_benchmark_line(benchmark) for benchmark in benchmarks]
    ids = {line["name"]: line["id"] for line in definitions}
    return _new_lines(header, definitions, [{"is": "suite", "run": run, "benchmarks": ids} for run in runs], known)


def raw_line(round: Round) -> bytes:
    """The line of a round in the raw file: all samples, and the failure in full."""
    line: Line = {
        "name": round.name,
        "params": round.params,
        "side": round.side,
        "order": round.order,
        "process": round.process,
        "started_at": round.started_at,
        "samples": {metric: measured.samples for metric, measured in round.values.items()},
    }
    if round.failure is not None:
        line["failure"] = dataclasses.asdict(round.failure)
    return _encoded(line)


def _new_lines(
    header: Header, shared: Collection[Line], lines: list[Line], known: Collection[str]
) -> tuple[bytes, set[str]]:
    first: Line = {"is": "sidecar", "id": "sidecar", "format": FORMAT, **dataclasses.asdict(header)}
    new = {line["id"]: line for line in [first, *shared] if line["id"] not in known}
    return b"".join(_encoded(line) for line in [*new.values(), *lines]), set(new)


def _round_line(round: Round, names: Mapping[str, str]) -> Line:
    line: Line = {"is": "round", "name": round.name, "params": round.params, "side": round.side, "order": round.order}
    line.update(
        process=round.process, run=round.run, started_at=round.started_at, duration_s=shortened(round.duration_s, 6)
    )
    line.update(names)
    line["values"] = {metric: _measured_line(measured) for metric, measured in round.values.items()}
    if round.failure is not None:
        line["failure"] = {**dataclasses.asdict(round.failure), "detail": round.failure.detail[-DETAIL_CHARACTERS:]}
    if round.flags:
        line["flags"] = round.flags
    if round.facts:
        line["facts"] = round.facts
    if round.against:
        line["against"] = [dataclasses.asdict(against) for against in round.against]
    return line


def _measured_line(measured: Measured) -> Line:
    line: Line = {"value": measured.value, "n": len(measured.samples), "unit": measured.unit}
    spread = _spread(measured.samples)
    if spread is not None:
        line["spread"] = shortened(spread, 3)
    ends = ends_of(measured)
    if ends is not None:
        line["ends"] = [shortened(value, 4) for value in (ends.low, ends.p95, ends.high)]
    if measured.invalid:
        line["invalid"] = measured.invalid
    if measured.exact:
        line["exact"] = True
    return line


def _spread(samples: list[float]) -> float | None:
    """Standard deviation of the logarithms of the samples, or None without samples."""
    if len(samples) < 2 or not all(0 < sample < math.inf for sample in samples):
        return None
    logs = [math.log(sample) for sample in samples]
    mean = math.fsum(logs) / len(logs)
    return math.sqrt(math.fsum((value - mean) ** 2 for value in logs) / (len(logs) - 1))


def _benchmark_line(benchmark: Benchmark) -> Line:
    """A benchmark without asv's entry, which contains its code and is in benchmarks.json."""
    return _asdict_line("benchmark", dataclasses.replace(benchmark, asv={}))


class _Same:
    """A benchmark as a key, equal only to the same object."""

    def __init__(self, benchmark: Benchmark) -> None:
        self.benchmark = benchmark

    def __hash__(self) -> int:
        return id(self.benchmark)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.benchmark is self.benchmark


@functools.lru_cache(maxsize=256)
def _line_of(same: _Same) -> Line:
    """The line of a benchmark, made once for all its rounds: it has all parameters, and there is a round or more for each."""
    return _benchmark_line(same.benchmark)


def _asdict_line(kind: str, value: Any) -> Line:
    return _identified({"is": kind, **dataclasses.asdict(value)})


def _identified(line: Line) -> Line:
    text = json.dumps(_plain(line), sort_keys=True)
    return {**line, "id": hashlib.sha256(text.encode()).hexdigest()[:12]}


def _encoded(line: Line) -> bytes:
    return (json.dumps(_plain(line), separators=(",", ":"), allow_nan=False) + "\n").encode()


def _plain(value: Any) -> Any:
    """The value with numbers that JSON lacks as strings, which `float` reads back."""
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value


# -- reading -------------------------------------------------------------------------------------------------------------


def parse(data: bytes) -> Sidecar:
    """A sidecar. A torn last line is ignored, any other line that cannot be read is named. Raises FormatError for a newer
    format than this one."""
    *whole, torn = data.split(b"\n")
    read = _Reader()
    for number, line in enumerate(whole, 1):
        if line:
            read.line(number, line)
    sidecar = read.sidecar()
    read.line(len(whole) + 1, torn)  # complete but for its newline, or torn
    return dataclasses.replace(read.sidecar(), unreadable=sidecar.unreadable)


def parse_header(data: bytes) -> Header | None:
    """Only the header of a sidecar: the first line, unless a writer was killed just there."""
    for line in data.split(b"\n"):
        if b'"is":"sidecar"' in line:
            return parse(line).header
    return None


class _Reader:
    """Puts together again what the lines refer to."""

    def __init__(self) -> None:
        self._header: Header | None = None
        self._lines: dict[tuple[str, str], Line] = {}
        """By kind and id."""
        self._benchmarks: dict[str, Benchmark] = {}
        self._rounds: dict[str, tuple[Round, str]] = {}
        """With the id of their benchmark, by all that their line says."""
        self._suites: dict[tuple[str, str], str] = {}
        self._unreadable: list[int] = []
        self._doubled: list[int] = []

    def line(self, number: int, text: bytes) -> None:
        """Add a line, or note that it is malformed."""
        try:
            self._take(number, _a(dict, loads(text)))
        except (ValueError, KeyError):
            self._unreadable.append(number)

    def _take(self, number: int, line: Line) -> None:
        kind = _a(str, line["is"])
        if kind == "sidecar":
            if _a(int, line["format"]) > FORMAT:
                raise FormatError(f"format {line['format']} is newer than {FORMAT}", "update regress")
            self._header = _dated(_known(Header, line), "date")
        elif kind == "round":
            self._add_round(number, line)
            return
        elif kind == "protocol":
            _known(Protocol, line)
        elif kind == "process":
            _a(dict, line["facts"])
        elif kind == "benchmark":
            self._benchmarks[_a(str, line["id"])] = _known(Benchmark, {**line, "declared": _numbers(line["declared"])})
        elif kind == "suite":
            of = _known(dict[str, str], line["benchmarks"])
            self._suites.update(((_a(str, line["run"]), name), version) for name, version in of.items())
            return
        if "id" in line:
            self._lines[kind, _a(str, line["id"])] = line

    def _add_round(self, number: int, line: Line) -> None:
        entry = self._round(line), str(line.get("benchmark", ""))
        key = json.dumps(line, sort_keys=True)
        if key in self._rounds:
            self._doubled.append(number)
        self._rounds.setdefault(key, entry)

    def _round(self, line: Line) -> Round:
        shared = self._lines["process", _a(str, line["process_facts"])]["facts"] if "process_facts" in line else {}
        protocol = self._lines["protocol", _a(str, line["protocol"])] if "protocol" in line else None
        facts = {**_a(dict, shared), **_a(dict, line.get("facts", {}))}
        run = line.get("run")
        named = run if isinstance(run, str) else ""
        round = _known(Round, {**line, "run": named, "protocol": protocol, "values": {}, "facts": facts})
        values = {metric: _measured(_a(dict, measured)) for metric, measured in _a(dict, line["values"]).items()}
        return dataclasses.replace(_dated(round, "started_at", "duration_s"), values=values)

    def sidecar(self) -> Sidecar:
        kept = [
            Kept(round, self._benchmarks.get(of or self._suites.get((round.run, round.name), "")))
            for round, of in self._rounds.values()
        ]
        return Sidecar(
            self._header,
            tuple(kept),
            frozenset(name for _, name in self._lines),
            tuple(self._unreadable),
            tuple(self._doubled),
        )


def _a(kind: type[T], value: Any) -> T:
    """The value, which is of that type. Raises ValueError."""
    if not isinstance(value, kind):
        raise ValueError(f"{value!r} is not a {kind.__name__}")
    return value


def _dated(value: T, *names: str) -> T:
    """Check that these fields hold seconds that can become a date. Raises ValueError."""
    if not all(is_seconds(getattr(value, name)) for name in names):
        raise ValueError(f"no seconds in {' or '.join(names)}")
    return value


def _measured(line: Line) -> Measured:
    """A stored value, integers as integers; without samples."""
    value = float(line["value"]) if isinstance(line["value"], str) else line["value"]
    if isinstance(value, bool):
        raise ValueError("a value is a number")
    measured = _known(Measured, {**line, "value": value, "samples": [], "ends": None})
    return dataclasses.replace(measured, value=value, ends=_ends(line))


def _ends(line: Line) -> Ends | None:
    if "ends" not in line:
        return None
    numbers = zip(("low", "p95", "high"), _a(list, line["ends"]), strict=True)
    return _known(Ends, {"n": line["n"], **dict(numbers)})


def _known(kind: type[T], line: Any) -> T:
    """A dataclass from the keys of the line that it knows: a later version may have added some. Raises ValueError if a value
    has the wrong type; a number may be the text that `_plain` made of it."""
    try:
        return msgspec.convert(line, kind, strict=False)
    except msgspec.ValidationError as error:  # a ValueError in later versions
        raise ValueError(str(error)) from None


def _numbers(value: Any) -> Any:
    """The value with the numbers that `_plain` turned into text restored, if the type does not tell. NaN stays text, because
    it would not equal itself when two rounds' declarations are compared."""
    if isinstance(value, str):
        return float(value) if value in ("Infinity", "-Infinity") else value
    if isinstance(value, Mapping):
        return {key: _numbers(item) for key, item in value.items()}
    return [_numbers(item) for item in value] if isinstance(value, list) else value
