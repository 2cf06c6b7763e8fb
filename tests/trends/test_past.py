from __future__ import annotations

import itertools
import json
import math
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regress.history import Store
from regress.model import Case, Commit, Failure, Machine, Round, Settings, Side
from regress.trends import series_of
from regress.trends.past import Past, past_of
from tests.history.samples import BOX, ENV, benchmark, fill, taken, write_asv_file

SHAS = [f"{digit * 8}{'0' * 32}" for digit in "abc"]


def commits(shas: Sequence[str] = SHAS) -> list[Commit]:
    """The later, the older its date: the order is the caller's."""
    return [Commit(sha, f"commit {place}", "Ada", 1e9 - place) for place, sha in enumerate(shas)]


def past(tmp_path: Path, shas: Sequence[str] = SHAS, **options: Any) -> Past:
    return past_of(tmp_path / "results", tmp_path / "cache", commits(shas), Settings(), **options)


def measured(tmp_path: Path, sha: str, value: float, name: str = "ops.cudatime_add", env: str = ENV) -> None:
    commit = next((one for one in commits() if one.sha == sha), Commit(sha, "elsewhere", "Ada", 5.0))
    taken_twice = [taken(name, order=order, gpu_time=value + order) for order in range(2)]
    fill(tmp_path / "results", taken_twice, [benchmark(name)], of=Side("head", commit, "HEAD", ENV), env=env)


def test_a_series_follows_the_order_of_the_caller(tmp_path: Path) -> None:
    for value, sha in enumerate(SHAS):
        measured(tmp_path, sha, float(value))
    (series,) = past(tmp_path).series("ops.cudatime_add")
    assert series.commits == tuple(SHAS)
    assert series.rounds == ((0.0, 1.0), (1.0, 2.0), (2.0, 3.0))
    (backwards,) = past(tmp_path, SHAS[::-1]).series("ops.cudatime_add")
    assert backwards.rounds == ((2.0, 3.0), (1.0, 2.0), (0.0, 1.0))


def test_what_there_is(tmp_path: Path) -> None:
    measured(tmp_path, SHAS[0], 1.0)
    measured(tmp_path, SHAS[1], 2.0, "ops.cudatime_mul", "other")
    history = past(tmp_path)
    assert history.names == ("ops.cudatime_add", "ops.cudatime_mul")
    assert history.environments == ("other", ENV)
    assert [(machine.name, machine.facts["gpu"]) for machine in history.machines] == [(BOX.name, "H100")]
    assert (history.skipped, history.unknown) == ((), ())
    assert history.series("ops.cudatime_gone") == ()
    assert past(tmp_path, environment="other").names == ("ops.cudatime_mul",)
    assert past(tmp_path, machine="elsewhere").names == ()


def test_results_of_other_commits_are_named(tmp_path: Path) -> None:
    measured(tmp_path, SHAS[0], 1.0)
    measured(tmp_path, "d" * 40, 2.0, "ops.cudatime_lost")
    history = past(tmp_path)
    assert history.names == ("ops.cudatime_add",)
    (unknown,) = history.unknown
    assert (unknown.commit_sha, unknown.date) == ("d" * 40, 5.0)
    assert [file.file for file in unknown.files] == [f"dddddddd-{ENV}.rounds.jsonl"]


def test_a_benchmark_is_as_it_was_recorded_last(tmp_path: Path) -> None:
    for sha, version in zip(SHAS[:2], ("old", "new"), strict=True):
        side = Side("head", commits([sha])[0], "HEAD", ENV)
        fill(tmp_path / "results", [taken("ops.cudatime_add", gpu_time=1.0)], [benchmark(version=version)], of=side)
    history = past(tmp_path)
    last = history.benchmark("ops.cudatime_add")
    assert last is not None
    assert (last.version, last.type, last.unit) == ("new", "time", "seconds")
    assert "def cudatime_add" in last.asv["code"]
    assert history.benchmark("ops.cudatime_gone") is None


def test_the_stamp_follows_what_the_series_is_made_of(tmp_path: Path) -> None:
    measured(tmp_path, SHAS[0], 1.0)
    measured(tmp_path, SHAS[0], 1.0, "ops.cudatime_mul")
    names = ("ops.cudatime_add", "ops.cudatime_mul")
    before = [past(tmp_path).stamp(name) for name in names]
    assert before == [past(tmp_path).stamp(name) for name in names]
    assert len(set(before)) == 2
    measured(tmp_path, SHAS[1], 2.0, "ops.cudatime_mul")
    after = [past(tmp_path).stamp(name) for name in names]
    assert (after[0] == before[0], after[1] == before[1]) == (True, False)
    other_order = [past(tmp_path, SHAS[::-1]).stamp(name) for name in names]
    assert not set(other_order) & set(after)


def test_failed_and_skipped_results_are_crosses(tmp_path: Path) -> None:
    measured(tmp_path, SHAS[0], 1.0)
    failed = taken("ops.cudatime_add", failure=Failure("oom", "out of memory"))
    fill(tmp_path / "results", [failed], [benchmark()], of=Side("head", commits()[2], "HEAD", ENV))
    (series,) = past(tmp_path).series("ops.cudatime_add")
    assert (series.at, series.failures) == ((0, 2), ("", "oom"))
    assert [len(round) for round in series.rounds] == [2, 0]


def test_a_case_that_never_worked_is_a_series_of_crosses(tmp_path: Path) -> None:
    failed = taken("ops.track_x", protocol=None, failure=Failure("error", "ValueError"))
    defined = benchmark("ops.track_x", metric="value", kind="track", unit="GB/s")
    fill(tmp_path / "results", [failed], [defined], of=Side("head", commits()[1], "HEAD", ENV))
    (series,) = past(tmp_path).series("ops.track_x")
    assert (series.metric.name, series.metric.unit, series.metric.better) == ("value", "GB/s", "higher")
    assert (series.at, series.failures, series.rounds) == ((1,), ("error",), ((),))


def test_asvs_results_come_with_its_interval_and_its_failures(tmp_path: Path) -> None:
    rows = {
        "time_x": {
            "result": [1.0, None, math.nan, 4.0],
            "params": [["1", "2", "3", "4"]],
            "version": "v",
            "stats_ci_99_a": [0.9, None, None, -math.inf],
            "stats_ci_99_b": [1.1, None, None, math.inf],
            "samples": [[0.95, 1.0, 1.05], None, None, [4.0]],
        }
    }
    write_asv_file(tmp_path / "results", rows, sha=SHAS[1])
    (tmp_path / "results" / "benchmarks.json").write_text(json.dumps({"version": 2}))
    series = past(tmp_path).series("time_x")
    told = {
        one_series.case: (one_series.rounds[0], one_series.intervals[0], one_series.failures[0])
        for one_series in series
    }
    assert told == {
        Case("time_x", ("1",)): ((1.0,), (0.9, 1.1), ""),
        Case("time_x", ("2",)): ((), None, "error"),
        Case("time_x", ("3",)): ((), None, "skipped"),
        Case("time_x", ("4",)): ((4.0,), None, ""),  # one sample has no interval
    }
    assert all(one_series.at == (1,) for one_series in series)


@pytest.mark.parametrize("facts", [{"gpu": "H100"}, {}])
def test_a_failure_without_a_device_is_one_of_the_devices_there_are(tmp_path: Path, facts: dict[str, str]) -> None:
    store = Store(tmp_path / "results")
    failed = taken("ops.cudatime_add", failure=Failure("signal", "it was killed"))
    for place, round in enumerate((taken("ops.cudatime_add", gpu_time=1.0), failed)):
        side = Side("head", commits()[place], "HEAD", ENV)
        store.append(side, Machine("gpu-box"), ENV, round, {"gpu": "H100"} if place == 0 else facts, benchmark())
    (series,) = past(tmp_path).series("ops.cudatime_add")
    assert (series.device, series.rounds, series.failures) == ("H100", ((1.0,), ()), ("", "signal"))


# -- what was read at once is what was read of one commit after the other ------------------------------------------------

cells = st.none() | st.just(math.nan) | st.just(math.inf) | st.just(-1.0) | st.floats(1e-9, 1e9) | st.just("text")


@st.composite
def rows(draw: st.DrawFn) -> dict[str, Any]:
    params = draw(st.sampled_from([[], [["1", "2"]], [["2", "1"]], [["1", "2", "3"]]]))
    n = math.prod(map(len, params))
    row = {"result": draw(st.lists(cells, min_size=n, max_size=n)), "params": params}
    if draw(st.booleans()):
        row["version"] = draw(st.sampled_from(["1", "2"]))
        row["started_at"] = draw(st.integers(1, 3)) * 1000
    return row


@st.composite
def rounds_of_ours(draw: st.DrawFn) -> Round:
    metrics = draw(st.dictionaries(st.sampled_from(["gpu_time", "host_time"]), st.floats(1e-9, 1e9), max_size=2))
    failure = None if metrics else draw(st.sampled_from([Failure("error", "boom"), Failure("skipped", "no")]))
    params = draw(st.sampled_from([["1"], ["2"]]))
    return taken("a.cudatime_x", params, failure=failure, started_at=draw(st.integers(0, 3)), values=metrics)


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_the_past_is_what_the_store_holds_of_every_commit(data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "results"
        root.mkdir()
        for sha, env in itertools.product(SHAS[:2], ["one", "two"]):
            if data.draw(st.booleans(), "rows"):
                names = st.sampled_from(["b.time_x", "b.track_y", "a.cudatime_x"])
                write_asv_file(root, data.draw(st.dictionaries(names, rows())), sha=sha, env=env)
            if ours := data.draw(st.lists(rounds_of_ours(), max_size=3), "rounds"):
                side = Side("head", Commit(sha, "", "", 0.0), "HEAD", env)
                fill(root, ours, [benchmark("a.cudatime_x", [["1", "2"]])], of=side, env=env)
        store = Store(root)
        expected = series_of([(sha, store.load(sha).recorded) for sha in SHAS], Settings())
        history = past_of(root, Path(folder) / "cache", commits(), Settings())
        series = [one_series for name in history.names for one_series in history.series(name)]
        bare = [replace(one_series, intervals=(None,) * len(one_series.at)) for one_series in series]
        key = lambda series: (series.case, series.machine, series.environment, series.device, series.metric.name)  # noqa: E731
        assert sorted(bare, key=key) == sorted(expected, key=key)
