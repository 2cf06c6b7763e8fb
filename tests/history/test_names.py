from __future__ import annotations

from typing import Any

import pytest

from regress.history.names import (
    benchmark_of,
    entry_of,
    further_entry,
    own_metric,
    parse_further,
    serialize_further,
    with_further,
)
from regress.model import Benchmark

from .samples import benchmark


@pytest.mark.parametrize(
    ("name", "kind", "metric"),
    [
        ("a.time_f", "time", "wall_time"),
        ("a.timeraw_f", "time", "wall_time"),
        ("a.Suite.cudatime_f", "time", "gpu_time"),
        ("a.CudaTimeF", "time", "gpu_time"),
        ("a.Suite.cudacold_f", "time", "cold_time"),
        ("a.CudaColdF", "time", "cold_time"),
        ("a.mem_f", "memory", "object_size"),
        ("a.peakmem_f", "peakmemory", "peak_rss"),
        ("a.track_f", "track", "value"),
        ("cudatime_module.track_f", "throughput", "value"),
    ],
)
def test_the_metric_under_a_name(name: str, kind: str, metric: str) -> None:
    assert own_metric(name, kind) == metric


@pytest.mark.parametrize(
    ("metric", "unit", "kind", "asv_unit"),
    [
        ("gpu_time", "s", "time", "seconds"),
        ("host_time", "s", "time", "seconds"),
        ("peak_memory", "B", "memory", "bytes"),
        ("launches", "count", "track", "count"),
        ("novel", "GB/s", "track", "GB/s"),
        ("novel", "", "track", "unit"),
    ],
)
def test_the_entry_of_a_further_metric(metric: str, unit: str, kind: str, asv_unit: str) -> None:
    base = {**entry_of(benchmark(params=[["1"]], version="abc")), "pretty_name": "Add"}
    assert further_entry("ops.cudatime_add", base, metric, unit) == {
        "name": f"ops.cudatime_add.{metric}",
        "type": kind,
        "unit": asv_unit,
        "params": [["1"]],
        "param_names": ["p0"],
        "version": f"abc:{metric}",
        "code": base["code"],
        "pretty_name": f"Add ({metric})",
    }


def test_an_entry_is_asvs_own_where_discovery_brought_it() -> None:
    assert entry_of(benchmark()) == benchmark().asv


def test_an_entry_without_asvs_has_what_asv_needs() -> None:
    bare = Benchmark("a.time_f", "time", "seconds", [["1"]], ["n"], "v", "wall_time", False, timeout_s=5.0)
    assert entry_of(bare) == {
        "name": "a.time_f",
        "type": "time",
        "unit": "seconds",
        "params": [["1"]],
        "param_names": ["n"],
        "version": "v",
        "timeout": 5.0,
    }


def test_further_names_survive_their_file_and_lines_that_are_none() -> None:
    further = {"a.f": {"host_time": "s"}, "b.g": {"peak_memory": "B"}}
    none = [
        b"<<<<<<< HEAD",
        b"5",
        b"[" * 100_000,
        b'{"name": "x", "metrics": {"y": []}}',
        b'{"name": 7, "metrics": {}}',
    ]
    assert parse_further(b"\n".join([*none, serialize_further(further)])) == further


def test_an_entry_without_a_name_has_that_of_its_place() -> None:
    merged = with_further({"a.f": {"version": "1"}}, {"a.f": {"launches": "count"}})
    assert merged["a.f.launches"]["name"] == "a.f.launches"


def test_further_entries_are_made_for_benchmarks_that_are_there() -> None:
    entries = {"ops.cudatime_add": entry_of(benchmark())}
    merged = with_further(entries, {"ops.cudatime_add": {"host_time": "s"}, "ops.gone": {"host_time": "s"}})
    assert set(merged) == {"ops.cudatime_add", "ops.cudatime_add.host_time"}


# -- benchmarks behind rows ----------------------------------------------------------------------------------------------


def test_a_benchmark_of_a_row_has_the_rows_version_and_parameters() -> None:
    entry = {
        **entry_of(benchmark("a.time_f", [["1", "2"]], version="new", metric="wall_time")),
        "number": 7,
        "repeat": 0,
    }
    definition = benchmark_of("a.time_f", entry, "old", [["1"]])
    assert (definition.version, definition.params, definition.param_names) == ("old", [["1"]], ["p0"])
    assert (definition.metric, definition.unit, definition.declared) == (
        "wall_time",
        "seconds",
        {"number": 7, "repeat": 0},
    )


@pytest.mark.parametrize(
    ("name", "kind", "unit", "metric"),
    [
        ("a.time_f", "time", "seconds", "wall_time"),
        ("a.cudatime_f", "time", "seconds", "gpu_time"),
        ("a.cudacold_f", "time", "seconds", "cold_time"),
        ("a.peakmem_f", "peakmemory", "bytes", "peak_rss"),
        ("a.mem_f", "memory", "bytes", "object_size"),
        ("a.track_f", "track", "unit", "value"),
    ],
)
def test_a_benchmark_that_is_no_longer_listed_is_told_by_its_name(name: str, kind: str, unit: str, metric: str) -> None:
    definition = benchmark_of(name, {}, None, [["1"]])
    assert (definition.type, definition.unit, definition.metric, definition.version) == (kind, unit, metric, "")
    assert definition.needs_device is (metric in ("gpu_time", "cold_time"))
    assert definition.param_names == ["param1"]


@pytest.mark.parametrize("odd", [None, 7, [1], {"a": 1}, True])
def test_an_entry_with_values_of_another_kind_is_told_by_its_name(odd: Any) -> None:
    entry = dict.fromkeys(("type", "unit", "param_names", "version", "timeout", "setup_cache_key"), odd)
    definition = benchmark_of("x.track_f", entry, None, [["1", "2"]])
    assert (definition.type, definition.unit, definition.version, definition.setup_cache_key) == (
        "track",
        "unit",
        "",
        None,
    )
    assert all(isinstance(name, str) for name in definition.param_names)
    assert len(definition.param_names) == 1
