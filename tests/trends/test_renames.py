from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from regress.history import Store
from regress.model import Benchmark, Case, Commit, Machine, Series, Settings, Side
from regress.trends import changes_of
from regress.trends.past import Past, past_of
from tests.history.samples import ENV, benchmark, taken, write_asv_file

OLD, NEW = "ops.cudatime_old", "ops.cudatime_new"
SHAS = [f"{place:08x}{'0' * 32}" for place in range(30)]
COMMITS = [Commit(sha, "", "Ada", float(place)) for place, sha in enumerate(SHAS)]


def record(tmp_path: Path, place: int, defined: Benchmark, value: float, *params: str) -> None:
    side = Side("head", COMMITS[place], "HEAD", ENV)
    store = Store(tmp_path / "results")
    store.append(side, Machine("box"), ENV, taken(defined.name, params, gpu_time=value), {}, defined)


def past(tmp_path: Path) -> Past:
    return past_of(tmp_path / "results", tmp_path / "cache", COMMITS, Settings())


def only(tmp_path: Path) -> Series:
    history = past(tmp_path)
    assert history.names == (NEW,)
    (series,) = history.series(NEW)
    return series


def old(**changes: Any) -> Benchmark:
    return benchmark(OLD, **{"version": "old", **changes})


def new(**changes: Any) -> Benchmark:
    return benchmark(NEW, **{"version": "new", "was": OLD, **changes})


def test_a_renamed_benchmark_goes_on_as_one_series(tmp_path: Path) -> None:
    for place in range(30):
        record(tmp_path, place, old() if place < 15 else new(), 1e-3 if place < 20 else 1.2e-3)
    series = only(tmp_path)
    assert series.case == Case(NEW)
    assert all(series.rounds)
    assert len(set(series.ways)) == 1, "the code is the same under both names"
    (change,) = changes_of(series, Settings())
    assert change.first == SHAS[20]
    last = past(tmp_path).benchmark(NEW)
    assert last is not None
    assert (last.name, last.version) == (NEW, "new")


def test_only_the_last_version_of_the_old_name_is_the_first_of_the_new(tmp_path: Path) -> None:
    versions = [old(version="1"), old(version="2"), new(version="3"), new(version="4")]
    for place, defined in enumerate(versions):
        record(tmp_path, place, defined, 1.0)
    assert [dict(way)["version"] for way in only(tmp_path).ways[:4]] == ["1", "3", "3", "4"]


def test_a_benchmark_that_was_renamed_twice(tmp_path: Path) -> None:
    middle = benchmark("ops.cudatime_middle", version="middle", was=OLD)
    last = new(was="ops.cudatime_middle")
    for place, defined in enumerate((old(), middle, last)):
        record(tmp_path, place, defined, float(place))
    series = only(tmp_path)
    assert series.rounds[:3] == ((0.0,), (1.0,), (2.0,))
    assert len(set(series.ways[:3])) == 1


def test_where_a_commit_has_both_names_the_new_one_counts(tmp_path: Path) -> None:
    """A later run measured an old commit with the suite of today."""
    record(tmp_path, 0, old(), 1.0)
    record(tmp_path, 0, new(), 2.0)
    record(tmp_path, 1, new(), 3.0)
    assert only(tmp_path).rounds[:2] == ((2.0,), (3.0,))


@pytest.mark.parametrize("claimed", ["in use", "twice", "itself"])
def test_a_rename_that_is_none_joins_nothing(tmp_path: Path, claimed: str) -> None:
    record(tmp_path, 0, old(), 1.0)
    if claimed == "itself":
        record(tmp_path, 0, old(was=OLD), 1.0)
    record(tmp_path, 1, new(), 2.0)
    others = {"in use": old(), "twice": benchmark("ops.cudatime_other", was=OLD), "itself": old(was=[OLD, NEW])}
    record(tmp_path, 1, others[claimed], 3.0)
    assert past(tmp_path).names == tuple(sorted({OLD, NEW, others[claimed].name}))


def test_parameters_in_another_order_are_matched_by_their_names(tmp_path: Path) -> None:
    def named(defined: Benchmark, *names: str) -> Benchmark:
        axes = {"n": ["64"], "dtype": ["'fp16'"]}
        fields = {"params": [axes[name] for name in names], "param_names": list(names)}
        return Benchmark(**{**vars(defined), **fields})

    record(tmp_path, 0, named(old(), "n", "dtype"), 1.0, "64", "'fp16'")
    record(tmp_path, 1, named(new(), "n", "dtype"), 2.0, "64", "'fp16'")
    record(tmp_path, 2, named(new(), "dtype", "n"), 3.0, "'fp16'", "64")
    series = only(tmp_path)
    assert series.case.params == ("'fp16'", "64")
    assert series.rounds[:3] == ((1.0,), (2.0,), (3.0,))


def test_results_of_asv_are_joined_too(tmp_path: Path) -> None:
    root = tmp_path / "results"
    for place, (name, version) in enumerate([("time_old", "1"), ("time_new", "2")]):
        rows = {name: {"result": [1.0, 2.0], "params": [["a", "b"]], "version": version}}
        write_asv_file(root, rows, sha=SHAS[place])
    entry = {**benchmark("time_new").asv, "was": ["time_old"], "version": "2"}
    (root / "benchmarks.json").write_text(json.dumps({"time_new": entry, "version": 2}))
    history = past(tmp_path)
    assert history.names == ("time_new",)
    assert [
        (str(series.case), series.rounds[:2], len(set(series.ways[:2]))) for series in history.series("time_new")
    ] == [
        ("time_new(a)", ((1.0,), (1.0,)), 1),
        ("time_new(b)", ((2.0,), (2.0,)), 1),
    ]


def test_the_stamp_follows_the_old_name_too(tmp_path: Path) -> None:
    record(tmp_path, 0, old(), 1.0)
    record(tmp_path, 5, new(), 1.0)
    before = past(tmp_path).stamp(NEW)
    assert past(tmp_path).stamp(NEW) == before
    record(tmp_path, 1, old(), 1.0)
    assert past(tmp_path).stamp(NEW) != before


def coded(version: str, word: str) -> Benchmark:
    return replace(benchmark(NEW, version=version), uses={"ops.py": word} if word else {})


@pytest.mark.parametrize(
    ("before", "after", "ways"),
    [
        (("v1", "a"), ("v2", "a"), 1),  # a comment
        (("v1", "a"), ("v1", "b"), 2),  # a helper
        (("v1", "a"), ("v2", "b"), 2),
        (("v1", ""), ("v1", "a"), 1),  # recorded before its code was
        (("v1", ""), ("v2", "a"), 2),
    ],
)
def test_the_code_tells_what_is_one_benchmark(
    tmp_path: Path, before: tuple[str, str], after: tuple[str, str], ways: int
) -> None:
    for place in range(30):
        record(tmp_path, place, coded(*(before if place < 15 else after)), 1e-3 if place < 15 else 1.2e-3)
    series = only(tmp_path)
    assert len(set(series.ways)) == ways
    assert [point.first for point in changes_of(series, Settings())] == ([SHAS[15]] if ways == 1 else [])


def test_a_result_of_asv_s_has_the_code_of_the_version_it_was_of(tmp_path: Path) -> None:
    """asv knows the text alone: with a comment more it is another version, of a code that we have recorded."""
    for place in range(20):
        record(tmp_path, place, coded("v1" if place < 10 else "v2", "a"), 1e-3)
    for place in range(20, 24):
        rows = {NEW: {"result": [1e-3], "params": [], "version": "v2"}}
        write_asv_file(tmp_path / "results", rows, sha=SHAS[place], machine="box", folder="box")
    every = past(tmp_path).series(NEW)
    assert sum(len(series.at) for series in every) == 24
    assert {dict(way)["version"] for series in every for way in series.ways} == {"v1"}
