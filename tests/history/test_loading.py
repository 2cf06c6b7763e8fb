from __future__ import annotations

import json
import math
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from regress.history import Archive, CommitResults, Store, left_out
from regress.history.reading import ASV_FLAG, ASV_HARNESS
from regress.model import Machine, Protocol

from .samples import BOX, ENV, OTHER_SHA, SHA, benchmark, fill, only, side, taken, write_asv_file

ADD = "ops.cudatime_add"


def list_benchmarks(root: Path, *entries: dict[str, Any]) -> None:
    (root / "benchmarks.json").write_text(json.dumps({**{entry["name"]: entry for entry in entries}, "version": 2}))


# -- results of asv ------------------------------------------------------------------------------------------------------


def test_a_result_of_asv_is_one_round_and_says_so(tmp_path: Path) -> None:
    row = {"result": [0.5], "params": [], "version": "w", "started_at": 1_700_000_000_500, "duration": 3.0,
           "samples": [[0.4, 0.5, 0.6]], "stats_number": [7], "stats_repeat": [3]}  # fmt: skip
    path = write_asv_file(tmp_path, {"x.time_f": row})
    list_benchmarks(tmp_path, {**benchmark("x.time_f", metric="wall_time").asv, "number": 0})
    recorded = only(tmp_path)
    (round,) = recorded.rounds
    assert (round.name, round.params, round.order, round.flags) == ("x.time_f", [], 0, [ASV_FLAG])
    assert (round.started_at, round.duration_s) == (1_700_000_000.5, 3.0)
    assert round.protocol == Protocol("wall_time", calls=7, harness=ASV_HARNESS)
    assert round.values["wall_time"].value == 0.5
    assert round.values["wall_time"].samples == [0.4, 0.5, 0.6]
    assert round.values["wall_time"].unit == "s"
    assert round.failure is None
    assert (recorded.commit_sha, recorded.environment, recorded.source) == (SHA, ENV, path)
    assert recorded.machine == Machine("gpu-box", {"cpu": "Some CPU"})
    assert recorded.benchmarks["x.time_f"].version == "w"
    assert recorded.benchmarks["x.time_f"].declared == {"number": 0}


def test_null_has_failed_and_nan_was_skipped(tmp_path: Path) -> None:
    write_asv_file(tmp_path, {"x.time_f": {"result": [0.5, None, math.nan], "params": [["1", "2", "3"]]}})
    failures = {tuple(round.params): round.failure for round in only(tmp_path).rounds}
    assert failures["1",] is None
    failed, skipped = failures["2",], failures["3",]
    assert failed is not None
    assert skipped is not None
    assert (failed.kind, failed.message) == ("error", "failed (recorded without a reason)")
    assert skipped.kind == "skipped"


def test_a_benchmark_that_failed_as_a_whole_has_failed_in_each_case(tmp_path: Path) -> None:
    write_asv_file(tmp_path, {"x.time_f": {"result": None, "params": [["1", "2"]], "version": "w"}})
    assert [round.failure.kind for round in only(tmp_path).rounds if round.failure] == ["error", "error"]


@pytest.mark.parametrize(
    ("name", "kind", "unit", "metric", "base_unit"),
    [
        ("x.time_f", "time", "seconds", "wall_time", "s"),
        ("x.peakmem_f", "peakmemory", "bytes", "peak_rss", "B"),
        ("x.mem_f", "memory", "bytes", "object_size", "B"),
        ("x.track_f", "track", "GFLOP/s", "value", "GFLOP/s"),
        ("x.track_s", "track", "seconds", "value", "s"),
        ("x.cudatime_f", "time", "seconds", "gpu_time", "s"),
    ],
)
def test_the_metric_and_unit_follow_from_asvs_type(
    tmp_path: Path, name: str, kind: str, unit: str, metric: str, base_unit: str
) -> None:
    write_asv_file(tmp_path, {name: {"result": [2.5], "params": []}})
    list_benchmarks(tmp_path, benchmark(name, kind=kind, unit=unit).asv)
    (round,) = only(tmp_path).rounds
    assert {key: value.unit for key, value in round.values.items()} == {metric: base_unit}


def test_infinity_is_a_value_and_text_is_none(tmp_path: Path) -> None:
    write_asv_file(tmp_path, {"x.track_f": {"result": [math.inf, "text", True], "params": [["1", "2", "3"]]}})
    infinite, text, boolean = only(tmp_path).rounds
    assert infinite.values["value"].value == math.inf
    for round in (text, boolean):
        assert round.failure is not None
        assert "is not a number" in round.failure.message


def test_a_file_of_ours_without_its_sidecar_gives_all_metrics_of_a_case_in_one_round(tmp_path: Path) -> None:
    rounds = [taken(ADD, ["1"], gpu_time=1.0, host_time=2.0), taken(ADD, ["2"], host_time=3.0)]
    fill(tmp_path, rounds, [benchmark(params=[["1", "2"]])])
    (tmp_path / "gpu-box" / f"{SHA[:8]}-{ENV}.rounds.jsonl").unlink()
    first, second = only(tmp_path).rounds
    assert {metric: value.value for metric, value in first.values.items()} == {"gpu_time": 1.0, "host_time": 2.0}
    assert {metric: value.value for metric, value in second.values.items()} == {"host_time": 3.0}
    assert second.failure is None, "it became synchronous, it did not fail"
    assert set(only(tmp_path).benchmarks) == {ADD}


def test_a_benchmark_whose_name_only_looks_like_a_further_one_stays_itself(tmp_path: Path) -> None:
    write_asv_file(
        tmp_path,
        {"x.track_f": {"result": [1.0], "params": [], "version": "w"},
         "x.track_f.track_g": {"result": [2.0], "params": [], "version": "w"}},
    )  # fmt: skip
    assert [round.name for round in only(tmp_path).rounds] == ["x.track_f", "x.track_f.track_g"]


# -- a sidecar and asv's results together --------------------------------------------------------------------------------


def test_benchmarks_that_only_asv_measured_stand_beside_ours(tmp_path: Path) -> None:
    write_asv_file(tmp_path, {"x.time_f": {"result": [0.5], "params": [], "version": "w"}})
    path = fill(tmp_path, [taken(ADD, gpu_time=1.0, host_time=2.0)], [benchmark()])
    recorded = only(tmp_path)
    assert [(round.name, ASV_FLAG in round.flags) for round in recorded.rounds] == [(ADD, False), ("x.time_f", True)]
    assert {name: benchmark.version for name, benchmark in recorded.benchmarks.items()} == {ADD: "v1", "x.time_f": "w"}
    assert path is not None
    assert recorded.source == path.with_name(path.name.replace(".json", ".rounds.jsonl"))


def test_cases_that_only_asv_measured_stand_beside_ours(tmp_path: Path) -> None:
    row = {"result": [10.0, 20.0, math.nan, None], "params": [["1", "2", "3", "4"]], "version": "v1"}
    write_asv_file(tmp_path, {"x.time_f": row})
    bench = benchmark("x.time_f", [["1", "2", "3", "4"]], metric="wall_time")
    fill(tmp_path, [taken("x.time_f", ["1"], wall_time=1.0)], [bench])
    rounds = {tuple(round.params): round for round in only(tmp_path).rounds}
    assert rounds["1",].values["wall_time"].value == 1.0
    assert rounds["2",].values["wall_time"].value == 20.0
    assert rounds.keys() == {("1",), ("2",)}, "without a number beside our rounds is a case that nobody measured"


# -- which files ---------------------------------------------------------------------------------------------------------


def test_machines_and_environments_are_kept_apart(tmp_path: Path) -> None:
    other = Machine("cpu-box")
    for machine, env, value in ((BOX, ENV, 1.0), (BOX, "other-env", 2.0), (other, ENV, 3.0)):
        Store(tmp_path).append(side(), machine, env, taken(ADD, gpu_time=value))
    recorded = Store(tmp_path).load(SHA).recorded
    values = {
        (result.machine.name, result.environment): result.rounds[0].values["gpu_time"].value for result in recorded
    }
    assert values == {("gpu-box", ENV): 1.0, ("gpu-box", "other-env"): 2.0, ("cpu-box", ENV): 3.0}
    assert [recorded.environment for recorded in Store(tmp_path).load(SHA, "gpu-box").recorded] == ["other-env", ENV]
    assert len(Store(tmp_path).load(SHA, "gpu-box", "other-env").recorded) == 1
    assert Store(tmp_path).load(SHA, "unknown").recorded == ()


def test_other_commits_are_not_loaded(tmp_path: Path) -> None:
    fill(tmp_path, [taken(ADD, gpu_time=1.0)], [benchmark()])
    assert Store(tmp_path).load(OTHER_SHA).recorded == ()
    assert Store(tmp_path / "nowhere").load(SHA).recorded == ()


def test_a_file_of_another_machine_is_skipped_and_named(tmp_path: Path) -> None:
    path = write_asv_file(tmp_path, {"x.time_f": {"result": [1.0], "params": []}}, machine="elsewhere")
    loaded = Store(tmp_path).load(SHA)
    assert loaded.recorded == ()
    ((skipped),) = loaded.skipped
    assert skipped.path == path
    assert "'elsewhere'" in skipped.why
    assert "gpu-box" in skipped.why
    assert skipped.fix.endswith('machine.json to "elsewhere"')


@pytest.mark.parametrize("folder", ["gpu-box-old", "2024/gpu-box"])
def test_a_machine_is_what_its_machine_json_says_wherever_the_folder_is(tmp_path: Path, folder: str) -> None:
    """As asv reads it: a folder that was renamed, or moved to another one, keeps its results."""
    row = {"result": [1.0], "params": []}
    write_asv_file(tmp_path, {"x.time_f": row}, folder=folder)
    (tmp_path / folder / "machine.json").write_text('{"machine": "gpu-box", "cpu": "Some CPU", "version": 1}')
    write_asv_file(tmp_path, {"x.time_f": row}, sha=OTHER_SHA)
    store, box = Store(tmp_path), Machine("gpu-box", {"cpu": "Some CPU"})
    for sha in (SHA, OTHER_SHA):
        loaded = store.load(sha, "gpu-box")
        assert {recorded.machine.name for recorded in loaded.recorded} == {"gpu-box"}
        assert box in [recorded.machine for recorded in loaded.recorded]
        assert loaded.skipped == ()
    assert {commit.commit_sha for commit in store.commits("gpu-box")} == {SHA, OTHER_SHA}
    archive = Archive(tmp_path, tmp_path / "cache", ())
    assert (archive.skipped, archive.lost, len(archive.places)) == ((), (), 2)
    assert {place.machine.name for place in archive.places.values()} == {"gpu-box"}


def test_a_machine_json_that_says_something_else_makes_the_archive_anew(tmp_path: Path) -> None:
    """The files are as they were, and what they are is another thing now."""
    write_asv_file(tmp_path, {"x.time_f": {"result": [1.0], "params": []}}, folder="new")
    lost = [Archive(tmp_path, tmp_path / "cache", ()).lost]
    (tmp_path / "new" / "machine.json").write_text('{"machine": "gpu-box", "version": 1}')
    lost.append(Archive(tmp_path, tmp_path / "cache", ()).lost)
    assert lost == [(tmp_path / "new" / f"{SHA[:8]}-{ENV}.json",), ()]


def test_what_is_left_out_is_one_line_a_folder_and_reason(tmp_path: Path) -> None:
    for sha in (SHA, OTHER_SHA):
        write_asv_file(tmp_path, {"x.time_f": {"result": [1.0], "params": []}}, sha=sha, folder="new")
    one, *others = left_out(Archive(tmp_path, tmp_path / "cache", ()).skipped)
    assert (one.path, one.files, others) == (tmp_path / "new", 2, [])
    assert "2 files, such as" in one.words
    assert "it is of machine 'gpu-box', and its folder is of 'new'" in one.words


@pytest.mark.parametrize("content", ["", "{", "[]", '{"version": 1}', "<<<<<<< HEAD"])
def test_a_file_that_cannot_be_read_is_named_and_the_others_are_used(tmp_path: Path, content: str) -> None:
    broken = write_asv_file(tmp_path, {}, env="broken")
    broken.write_text(content)
    write_asv_file(tmp_path, {"x.time_f": {"result": [1.0], "params": []}})
    loaded = Store(tmp_path).load(SHA)
    assert [recorded.environment for recorded in loaded.recorded] == [ENV]
    assert [file.path for file in loaded.skipped] == [broken]
    assert loaded.skipped[0].why
    assert loaded.skipped[0].fix


def test_a_file_that_may_not_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "gpu-box" / f"{SHA[:8]}-folder.json").mkdir(parents=True)
    loaded = Store(tmp_path).load(SHA)
    assert loaded.recorded == ()
    assert loaded.skipped[0].fix.startswith("ls -ld ")


def test_a_broken_list_of_benchmarks_costs_their_entries_only(tmp_path: Path) -> None:
    write_asv_file(tmp_path, {"x.time_f": {"result": [1.0], "params": [], "version": "w"}})
    (tmp_path / "benchmarks.json").write_text("{")
    loaded = Store(tmp_path).load(SHA)
    assert [file.path.name for file in loaded.skipped] == ["benchmarks.json"]
    assert loaded.recorded[0].rounds[0].values["wall_time"].value == 1.0
    assert loaded.recorded[0].benchmarks["x.time_f"].version == "w"


def test_a_sidecar_of_a_newer_format_is_named_and_asvs_file_is_used(tmp_path: Path) -> None:
    fill(tmp_path, [taken(ADD, gpu_time=1.0)], [benchmark()])
    path = tmp_path / "gpu-box" / f"{SHA[:8]}-{ENV}.rounds.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"format":1', b'"format":2'))
    loaded = Store(tmp_path).load(SHA)
    assert [(file.path, file.fix) for file in loaded.skipped] == [(path, "update regress")]
    assert loaded.recorded[0].rounds[0].flags == [ASV_FLAG]


def test_commits_are_listed_oldest_first(tmp_path: Path) -> None:
    fill(tmp_path, [taken(ADD, gpu_time=1.0)], [benchmark()], of=side(date=1_800_000_000.0))
    write_asv_file(tmp_path, {}, sha=OTHER_SHA, folder="cpu-box", machine="cpu-box")
    write_asv_file(tmp_path, {}, sha="b" * 40, machine="elsewhere")
    (tmp_path / "gpu-box" / f"{'c' * 8}-{ENV}.json").write_text("{")
    first = CommitResults(OTHER_SHA, 1_700_000_000.0, "cpu-box", ENV)
    last = CommitResults(SHA, 1_800_000_000.0, "gpu-box", ENV)
    assert Store(tmp_path).commits() == (first, last)
    assert Store(tmp_path).commits("gpu-box") == (last,)


def test_files_that_are_none_of_results_are_passed_over(tmp_path: Path) -> None:
    fill(tmp_path, [taken(ADD, gpu_time=1.0)], [benchmark()])
    for name in (".3f2c1ab9-env.json.tmp", "notes.json", "3f2c1ab9-notes.txt", "readme"):
        (tmp_path / "gpu-box" / name).write_text("x")
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / f"{SHA[:8]}-{ENV}.json").write_text("x")
    assert len(only(tmp_path).rounds) == 1
    assert os.path.exists(tmp_path / "gpu-box" / "notes.json")


def test_a_folder_that_was_copied_under_another_name_has_no_rounds_of_that_machine(tmp_path: Path) -> None:
    fill(tmp_path, [taken(ADD, gpu_time=1.0)], [benchmark()])
    shutil.copytree(tmp_path / "gpu-box", tmp_path / "other-box")
    (tmp_path / "other-box" / "machine.json").unlink(missing_ok=True)  # it would say that both are of that machine
    loaded = Store(tmp_path).load(SHA)
    assert [recorded.machine.name for recorded in loaded.recorded] == ["gpu-box"]
    assert {file.path.parent.name for file in loaded.skipped} == {"other-box"}


def test_a_folder_that_was_copied_with_its_machine_file_counts_once(tmp_path: Path) -> None:
    fill(tmp_path, [taken(ADD, gpu_time=1.0)], [benchmark()])
    (tmp_path / "gpu-box" / "machine.json").write_text('{"machine": "gpu-box", "version": 1}')
    once = Store(tmp_path).load(SHA)
    shutil.copytree(tmp_path / "gpu-box", tmp_path / "a-backup")
    loaded = Store(tmp_path).load(SHA)
    assert loaded.recorded == once.recorded
    (left,) = loaded.skipped
    assert left.path.parent.name == "a-backup", "what is called after the machine counts"
    assert "another folder of 'gpu-box' has results of that commit" in left.why


def test_rounds_that_stand_in_a_file_twice_are_read_once_and_named(tmp_path: Path) -> None:
    fill(tmp_path, [taken(ADD, order=order, gpu_time=1.0) for order in range(5)], [benchmark()])
    path = tmp_path / "gpu-box" / f"{SHA[:8]}-{ENV}.rounds.jsonl"
    path.write_bytes(path.read_bytes() * 3)
    loaded = Store(tmp_path).load(SHA)
    assert [round.order for round in loaded.recorded[0].rounds] == [0, 1, 2, 3, 4]
    (skipped,) = loaded.skipped
    assert (skipped.path, "10 of its lines repeat rounds" in skipped.why) == (path, True)
