"""Whatever a file holds, it is read or named, and what is kept can be written again: files that somebody has changed at random.

Each seed is one changed file. A seed that fails becomes a small test of what it has found, beside the code.
"""

from __future__ import annotations

import copy
import json
import math
import random
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from regress.errors import StoreError
from regress.history import Archive, Merging, Store, loading, sidecar
from regress.history.names import benchmark_of, parse_further, serialize_further, with_further
from regress.history.reading import AsvRow, TableReader
from regress.history.recorded import SkippedFile
from regress.history.results_file import (
    BENCHMARKS_VERSION,
    FormatError,
    parse_json,
    parse_results,
    serialize_json,
    serialize_results,
)
from regress.history.rows import RowReader, packed
from regress.history.sources import Rounds, State, read_source
from regress.history.store import rows_of_sidecar
from regress.history.uniting import lines_of, united_entries, united_lines, united_results
from regress.model import Failure

from .samples import ENV, OTHER_SHA, SHA, benchmark, fill, taken, write_asv_file

FEW, MANY = 1500, 33_000
"""Seeds of each kind of file: in every run of the tests, and in the slow one."""
SEEDS = [pytest.param(range(FEW), id="few"), pytest.param(range(FEW, MANY), id="many", marks=pytest.mark.slow)]

ROWS: dict[str, dict[str, Any]] = {
    "x.time_f": {
        "result": [0.5, math.nan, None, 2.5],
        "params": [["1", "2"], ["'a'", "'b'"]],
        "version": "v",
        "started_at": 1_700_000_000_000,
        "duration": 0.25,
        "stats_ci_99_a": [0.4, None, None, -math.inf],
        "stats_ci_99_b": [0.6, None, None, math.inf],
        "samples": [[0.5, 0.6], None, None, [2.5]],
    },
    "x.time_f.launches": {"result": [3], "params": [], "version": "v:launches"},
    "x.track_g": {"result": [1.5e-7], "params": [], "version": "w", "started_at": 1_700_000_000_000},
}
ODD: list[Any] = [None, True, -1, 0, 3, 1e-310, 1e300, 10**18, 2**64 - 1, math.nan, -math.inf, "", "x", "1", "é\U0001f600",
                  "\ud83d", [], {}, [[]], [["a"]], {"a": 1}, [None, "n"]]  # fmt: skip
HUGE = ["1e400", "-1e999", "1" + "0" * 400, "18446744073709551616", "[" * 3000, "[" * 300 + "]" * 300]
"""In place of a value, as text: Python writes none of these."""
MARK = "\x01huge\x01"


def folder(root: Path) -> Path:
    """Results of asv and of ours; the sidecar has a failure, and a benchmark under two protocols."""
    failure = Failure("error", "boom", "a.py:3", "Traceback")
    taken_here = [taken("ops.cudatime_add", ["8"], order, started_at=1.7e9 + order, gpu_time=1.0) for order in range(3)]
    failed = taken("ops.cudatime_add", ["9"], failure=failure, started_at=1.7e9)
    fill(root, [*taken_here, failed], [benchmark(params=[["8", "9"]], tags=["core"])])
    write_asv_file(root, ROWS, sha=OTHER_SHA, env="asv")
    return root / "gpu-box"


def changed(data: bytes, seed: int) -> bytes:
    """The file with one to three changes: of its bytes, or of the tree that its lines are."""
    dice = random.Random(seed)
    for _ in range(dice.choice([1, 1, 1, 2, 3])):
        data = _bytes_changed(data, dice) if dice.random() < 0.4 else _tree_changed(data, dice)
    return data


def _bytes_changed(data: bytes, dice: random.Random) -> bytes:
    at, length = dice.randrange(len(data) + 1), dice.choice([0, 1, 1, 2, 10, 200])
    part = data[at : at + length]
    piece = dice.choice(
        [
            b"",
            part * 2,
            bytes([dice.randrange(256)]),
            b"\n",
            b'"',
            b"[",
            b"}",
            b"1e999",
            rb"\ud800",
            b"\xed\xa0\x80",
            b"9" * 30,
        ]
    )
    return data[:at] + piece + data[at + length :]


def _tree_changed(data: bytes, dice: random.Random) -> bytes:
    lines = data.split(b"\n") if data.startswith(b'{"is"') or b'\n{"' in data else [data]
    number = dice.randrange(len(lines))
    try:
        tree = json.loads(lines[number])
    except (ValueError, RecursionError):
        return data
    places = list(_places(tree))
    if not places:
        return data
    holder, key = dice.choice(places)
    way = dice.random()
    if way < 0.15:
        del holder[key]
    elif way < 0.3:
        other, there = dice.choice(places)
        holder[key] = copy.deepcopy(other[there])
    else:
        holder[key] = dice.choice([MARK, *ODD])
    lines[number] = json.dumps(tree).replace(json.dumps(MARK), dice.choice(HUGE)).encode()
    return b"\n".join(lines)


def _places(tree: Any) -> Iterator[tuple[Any, Any]]:
    keys: Any = tree if isinstance(tree, dict) else range(len(tree)) if isinstance(tree, list) else ()
    for key in list(keys):
        yield tree, key
        yield from _places(tree[key])


def said(rows: dict[str, AsvRow]) -> dict[str, str]:
    """What is in the rows as far as a history needs it, as numbers are written."""
    return {
        name: repr(
            (row.axes, row.version, row.started_ms, row.duration_s, *map(_listed, (row.results, row.lows, row.highs)))
        )
        for name, row in (
            (name, row._replace(started_ms=_real(row.started_ms), duration_s=_real(row.duration_s)))
            for name, row in rows.items()
        )
    }


def _real(value: float | None) -> float | None:
    return None if value is None else float(value)


def _listed(values: Any) -> list[str] | None:
    number = (int, float)
    return (
        None if values is None else [repr(float(row)) if type(row) in number else type(row).__name__ for row in values]
    )


@pytest.mark.parametrize("seeds", [*SEEDS, pytest.param((2827, 5273), id="a column twice, no commit")])
def test_files_of_results(tmp_path: Path, seeds: Iterable[int]) -> None:
    box = folder(tmp_path)
    path = box / f"{OTHER_SHA[:8]}-asv.json"
    good = path.read_bytes()
    for seed in seeds:
        data = changed(good, seed)
        path.write_bytes(data)
        skipped: list[SkippedFile] = []
        careful = loading.read_results(path, box.name, skipped)
        content = read_source(State(box, box.name, path.stem, (len(data), 1), None), ())
        assert bool(content.source.commit) == (careful is not None), seed
        # Of what a history does not need, only a comparison and a merge take note.
        assert {why for _, why, _ in content.source.skipped} <= {file.why for file in skipped}, seed
        assert content.source.skipped or not any("row of" in file.why for file in skipped), seed
        if careful is None:
            continue
        kept = list(content.rows.values())
        fast = dict(zip(content.rows, RowReader().rows(packed(kept)), strict=True)) if kept else {}
        slow = {name: AsvRow.of(row)._replace(samples=None) for name, row in careful.rows.items()}
        assert said(fast) == said(slow), seed
        for table in TableReader({}).read(slow):
            list(table.rounds())
        again = parse_results(serialize_results(united_results([careful, parse_results(good), careful])))
        assert set(again.rows) >= set(careful.rows), seed


@pytest.mark.parametrize("seeds", SEEDS)
def test_files_of_rounds(tmp_path: Path, seeds: range) -> None:
    good = (folder(tmp_path) / f"{SHA[:8]}-{ENV}{sidecar.ENDING}").read_bytes()
    for seed in seeds:
        data = changed(good, seed)
        try:
            content = sidecar.parse(data)
        except FormatError:
            continue
        assert len(content.kept) <= data.count(b"round"), seed
        rows, further = rows_of_sidecar(content, {})
        serialize_further(further)
        json.dumps([rows, [record.round.facts for record in content.kept]])
        msgspec.msgpack.encode(Rounds.packed(content.kept, ("driver",)))
        united = sidecar.parse(united_lines([lines_of(data), lines_of(good)]))
        assert len(united.kept) >= 4, seed


@pytest.mark.parametrize("seeds", SEEDS)
def test_lists_of_benchmarks_and_of_further_names(tmp_path: Path, seeds: range) -> None:
    folder(tmp_path)
    good, further = (
        (tmp_path / "benchmarks.json").read_bytes(),
        b'{"name":"ops.cudatime_add","metrics":{"launches":"count"}}\n',
    )
    for seed in seeds:
        known = parse_further(changed(further, seed))
        serialize_further(known)
        try:
            parse_json(changed(good, seed), BENCHMARKS_VERSION)
        except FormatError:
            continue
        (tmp_path / "benchmarks.json").write_bytes(changed(good, seed))
        entries = loading.read_benchmarks(tmp_path, [])
        for name, entry in entries.items():
            repr(benchmark_of(name, entry, None, [["8"]]))
        united = united_entries([entries, parse_json(good, BENCHMARKS_VERSION)], dict)
        serialize_json(with_further({name: dict(row) for name, row in united.items()}, known), BENCHMARKS_VERSION)


WHOLE = [pytest.param(range(60), id="few"), pytest.param(range(60, 1500), id="many", marks=pytest.mark.slow)]


@pytest.mark.parametrize("seeds", WHOLE)
def test_every_reader_and_a_merge_go_on_with_the_rest(tmp_path: Path, seeds: range) -> None:
    box = folder(tmp_path / "shard")
    names = sorted(
        path.relative_to(tmp_path / "shard") for path in (*box.iterdir(), tmp_path / "shard" / "benchmarks.json")
    )
    good = {name: (tmp_path / "shard" / name).read_bytes() for name in names}
    for seed in seeds:
        name = names[seed % len(names)]
        (tmp_path / "shard" / name).write_bytes(changed(good[name], seed))
        store, reading = Store(tmp_path / "shard"), Archive(tmp_path / "shard", tmp_path / f"cache{seed}", ("driver",))
        for benchmark_name in reading.names():
            for _, recorded in reading.recorded(benchmark_name):
                repr(recorded.as_rounds())
        assert store.commits(), seed
        for sha in (SHA, OTHER_SHA):
            repr(store.load(sha))
        whole = fill(
            tmp_path / f"root{seed}", [taken("ops.cudatime_mul", gpu_time=1.0)], [benchmark("ops.cudatime_mul")]
        )
        assert whole is not None
        try:
            merging = Merging(tmp_path / f"root{seed}", [tmp_path / "shard"])
            for machine, stem in merging.results:
                merging.take(machine, stem)
            merging.finish()
        except StoreError:  # it is of another machine by now, or of another commit
            pass
        (tmp_path / "shard" / name).write_bytes(good[name])
