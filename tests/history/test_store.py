from __future__ import annotations

import gzip
import json
import math
import os
from pathlib import Path
from typing import Any

import pytest

from regress.errors import StoreError
from regress.history import Store, disk
from regress.history.names import FURTHER_FILE
from regress.model import Failure, Machine

from .samples import BOX, ENV, OTHER_SHA, SHA, WALL, benchmark, column, fill, only, side, taken, write_asv_file
from .test_disk import failing, read_only_folder, room_for

ADD = "ops.cudatime_add"


def entries(root: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((root / "benchmarks.json").read_text())
    assert content.pop("version") == 2
    return content


# -- appending -----------------------------------------------------------------------------------------------------------


def test_a_round_is_on_disk_at_once(tmp_path: Path) -> None:
    store = Store(tmp_path)
    for order in range(3):
        store.append(side(), BOX, ENV, taken(ADD, order=order, gpu_time=1.0 + order), benchmark=benchmark())
        assert [round.values["gpu_time"].value for round in only(tmp_path).rounds] == [
            1.0 + step for step in range(order + 1)
        ]
    assert os.listdir(tmp_path / "gpu-box") == [f"{SHA[:8]}-{ENV}.rounds.jsonl"]


def test_what_finish_adds_is_not_read_again_by_the_next_round(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(tmp_path)
    store.append(side(), BOX, ENV, taken(ADD, gpu_time=1.0))
    store.finish(side(), BOX, ENV, python="3.11", benchmarks={ADD: benchmark()})
    monkeypatch.delattr(Store, "_sidecar")  # what reads the whole of it
    store.append(side(), BOX, ENV, taken(ADD, order=1, gpu_time=2.0))
    assert [round.values["gpu_time"].value for round in only(tmp_path).rounds] == [1.0, 2.0]


def test_all_samples_go_to_the_journal_and_survive_as_one_stream(tmp_path: Path) -> None:
    store = Store(tmp_path / "results", tmp_path / "journal")
    for order in range(3):
        store.append(side(), BOX, ENV, taken(ADD, order=order, gpu_time=2.0))
    path = tmp_path / "journal" / "gpu-box" / f"{SHA[:8]}-{ENV}.rounds.raw.jsonl.gz"
    lines = [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]
    assert [(line["order"], line["samples"]["gpu_time"]) for line in lines] == [(n, [2.0, 2.0, 2.04]) for n in range(3)]
    assert b'"samples":' not in (tmp_path / "results" / "gpu-box" / f"{SHA[:8]}-{ENV}.rounds.jsonl").read_bytes()


def test_a_torn_last_line_costs_its_own_round_only(tmp_path: Path) -> None:
    fill(tmp_path, [taken(ADD, order=0, gpu_time=1.0)], [benchmark()])
    path = tmp_path / "gpu-box" / f"{SHA[:8]}-{ENV}.rounds.jsonl"
    with open(path, "ab") as file:
        file.write(b'{"is":"round","name":"ops.cuda')
    assert [round.order for round in only(tmp_path).rounds] == [0]
    fill(tmp_path, [taken(ADD, order=1, gpu_time=1.0)], [benchmark()])
    loaded = Store(tmp_path).load(SHA)
    assert [round.order for round in loaded.recorded[0].rounds] == [0, 1]
    assert [(file.path, "1 of its lines" in file.why) for file in loaded.skipped] == [(path, True)]


def test_a_store_goes_on_when_its_sidecar_was_removed_meanwhile(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.append(side(), BOX, ENV, taken(ADD, order=0, gpu_time=1.0), {"driver": "580"})
    (tmp_path / "gpu-box" / f"{SHA[:8]}-{ENV}.rounds.jsonl").unlink()
    store.append(side(), BOX, ENV, taken(ADD, order=1, gpu_time=1.0), {"driver": "580"})
    assert [(round.order, round.facts) for round in only(tmp_path).rounds] == [(1, {"driver": "580"})]


def test_a_disk_that_gets_full_leaves_whole_rounds(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.append(side(), BOX, ENV, taken(ADD, order=0, gpu_time=1.0))
    path = tmp_path / "gpu-box" / f"{SHA[:8]}-{ENV}.rounds.jsonl"
    before = path.read_bytes()
    with room_for(len(before) + 50), pytest.raises(StoreError, match="cannot write"):
        store.append(side(), BOX, ENV, taken(ADD, order=1, gpu_time=1.0, protocol=WALL))
    assert path.read_bytes() == before
    store.append(side(), BOX, ENV, taken(ADD, order=1, gpu_time=1.0, protocol=WALL))
    assert only(tmp_path).rounds[-1].protocol == WALL, "a line that did not arrive is not taken for written"


def test_a_read_only_results_dir_is_an_error_with_a_fix() -> None:
    with read_only_folder() as folder, pytest.raises(StoreError) as caught:
        Store(folder).append(side(), BOX, ENV, taken(ADD))
    assert caught.value.what.startswith("cannot write")
    assert "permission denied" in caught.value.why
    assert "chmod" in caught.value.fix


@pytest.mark.parametrize("name", ["", "..", ".hidden", "a/b", "a\\b"])
def test_a_name_that_is_no_folder_cannot_name_a_machine(tmp_path: Path, name: str) -> None:
    with pytest.raises(StoreError, match="cannot name a machine"):
        Store(tmp_path).append(side(), Machine(name), ENV, taken(ADD))
    assert not list(tmp_path.rglob("*.jsonl"))


def test_two_commits_that_share_a_file_name_are_not_mixed(tmp_path: Path) -> None:
    fill(tmp_path, [taken(ADD, gpu_time=1.0)], [benchmark()])
    twin = side(SHA[:8] + "0" * 32)
    with pytest.raises(StoreError, match="cannot add results") as caught:
        Store(tmp_path).append(twin, BOX, ENV, taken(ADD, gpu_time=2.0))
    assert SHA in caught.value.why
    assert only(tmp_path).rounds[0].values["gpu_time"].value == 1.0
    assert Store(tmp_path).load(twin.commit.sha).recorded == ()


def test_a_tree_with_changes_is_kept_apart_and_never_the_commits_result(tmp_path: Path) -> None:
    written = fill(tmp_path, [taken(ADD, gpu_time=9.0)], [benchmark()], of=side(dirty=True))
    assert written is None
    assert os.listdir(tmp_path / "gpu-box") == [f"{SHA[:8]}+changes-{ENV}.rounds.jsonl"]
    assert Store(tmp_path).load(SHA).recorded == ()
    assert Store(tmp_path).commits() == ()


# -- finishing -----------------------------------------------------------------------------------------------------------


def test_what_was_appended_and_never_finished_is_unfinished(tmp_path: Path) -> None:
    store = Store(tmp_path)
    assert not store.is_unfinished(side(), BOX, ENV), "nothing is recorded"
    store.append(side(), BOX, ENV, taken(ADD, gpu_time=1.0), benchmark=benchmark())
    assert store.is_unfinished(side(), BOX, ENV)
    path = store.finish(side(), BOX, ENV, python="3.11", benchmarks={})
    assert path is not None
    assert not store.is_unfinished(side(), BOX, ENV)
    assert set(entries(tmp_path)) == {ADD}, "as the rounds say themselves"
    for file in (path, tmp_path / "gpu-box" / "machine.json", tmp_path / "benchmarks.json"):
        left = file.with_name(f".{file.name}.tmp")
        left.write_bytes(b'{"half')
        assert store.is_unfinished(side(), BOX, ENV), "a writer of it was killed"
        store.finish(side(), BOX, ENV, python="3.11", benchmarks={})
        assert not left.exists()
        assert not store.is_unfinished(side(), BOX, ENV)


def test_finishing_writes_the_files_of_asv(tmp_path: Path) -> None:
    rounds = [taken(ADD, order=order, gpu_time=value, wall_time=9.0) for order, value in enumerate([1.0, 3.0, 2.0])]
    store = Store(tmp_path)
    for round in rounds:
        store.append(side(), BOX, ENV, round)
    path = store.finish(
        side(),
        BOX,
        ENV,
        python="3.11",
        benchmarks={ADD: benchmark()},
        requirements={"numpy": "2"},
        env_vars={"OMP_NUM_THREADS": "1"},
        durations={"<build>": 2.5},
    )
    assert path == tmp_path / "gpu-box" / f"{SHA[:8]}-{ENV}.json"
    content = json.loads(path.read_text())
    assert content["commit_hash"] == SHA
    assert content["env_name"] == ENV
    assert content["date"] == 1_700_000_000_000
    assert content["params"] == {**BOX.facts, "machine": "gpu-box", "python": "3.11", "numpy": "2"}
    assert (content["python"], content["requirements"]) == ("3.11", {"numpy": "2"})
    assert (content["env_vars"], content["durations"]) == ({"OMP_NUM_THREADS": "1"}, {"<build>": 2.5})
    assert column(path, ADD, "result") == [2.0]
    assert column(path, ADD, "samples") == [[1.0, 3.0, 2.0]]
    assert json.loads((tmp_path / "gpu-box" / "machine.json").read_text()) == {
        **BOX.facts,
        "machine": "gpu-box",
        "version": 1,
    }
    assert set(entries(tmp_path)) == {ADD, f"{ADD}.wall_time"}


def test_finishing_twice_changes_nothing(tmp_path: Path) -> None:
    fill(tmp_path, [taken(ADD, gpu_time=1.0, host_time=2.0)], [benchmark()])
    before = {path: (path.stat().st_ino, path.read_bytes()) for path in tmp_path.rglob("*.json*")}
    fill(tmp_path, [], [benchmark()])
    assert {path: (path.stat().st_ino, path.read_bytes()) for path in tmp_path.rglob("*.json*")} == before


def test_a_second_run_of_another_benchmark_leaves_the_first(tmp_path: Path) -> None:
    fill(tmp_path, [taken(ADD, gpu_time=1.0)], [benchmark()])
    path = fill(tmp_path, [taken("ops.cudatime_mul", gpu_time=2.0)], [benchmark("ops.cudatime_mul")])
    assert path is not None
    assert (column(path, ADD, "result"), column(path, "ops.cudatime_mul", "result")) == ([1.0], [2.0])
    assert {round.name for round in only(tmp_path).rounds} == {ADD, "ops.cudatime_mul"}
    assert {ADD, "ops.cudatime_mul"} <= set(entries(tmp_path))


def test_a_second_run_of_the_same_benchmark_adds_rounds(tmp_path: Path) -> None:
    fill(tmp_path, [taken(ADD, order=0, gpu_time=1.0)], [benchmark()])
    path = fill(tmp_path, [taken(ADD, order=0, gpu_time=2.0)], [benchmark()])
    assert path is not None
    assert column(path, ADD, "samples") == [[1.0, 2.0]]


def test_a_new_version_of_a_benchmark_starts_anew(tmp_path: Path) -> None:
    fill(tmp_path, [taken(ADD, gpu_time=1.0)], [benchmark(version="v1")])
    path = fill(tmp_path, [taken(ADD, gpu_time=2.0)], [benchmark(version="v2")])
    assert path is not None
    assert (column(path, ADD, "samples"), column(path, ADD, "version")) == ([[2.0]], "v2")
    recorded = only(tmp_path)
    assert [round.values["gpu_time"].value for round in recorded.rounds] == [2.0]
    assert recorded.benchmarks[ADD].version == "v2"
    assert recorded.notes == (f"{ADD}: 1 older rounds were measured differently (other version) and are left out",)


def test_other_declared_sampling_starts_anew_and_asvs_cells_of_the_old_go(tmp_path: Path) -> None:
    params = [["1", "2"]]
    first = [taken(ADD, [value], gpu_time=1.0) for value in params[0]]
    fill(tmp_path, first, [benchmark(params=params, number=5)])
    path = fill(tmp_path, [taken(ADD, ["1"], gpu_time=2.0)], [benchmark(params=params)])
    assert path is not None
    assert column(path, ADD, "result") == [2.0, pytest.approx(math.nan, nan_ok=True)]
    recorded = only(tmp_path)
    assert [(round.params, round.values["gpu_time"].value) for round in recorded.rounds] == [(["1"], 2.0)]
    assert recorded.benchmarks[ADD].declared == {}
    assert recorded.notes == (
        f"{ADD}: 2 older rounds were measured differently (other declared number) and are left out",
    )
    # Declared as at first again: what the sidecar says last of the benchmark is not what it says of the newest round.
    fill(tmp_path, [taken(ADD, ["2"], gpu_time=3.0)], [benchmark(params=params, number=5)])
    assert only(tmp_path).benchmarks[ADD].declared == {"number": 5}
    assert [round.values["gpu_time"].value for round in only(tmp_path).rounds] == [1.0, 1.0, 3.0]


def test_finishing_another_benchmark_does_not_give_old_rounds_the_new_version(tmp_path: Path) -> None:
    fill(tmp_path, [taken(ADD, gpu_time=1.0)], [benchmark(version="v1")])
    mul = benchmark("ops.cudatime_mul")
    path = fill(tmp_path, [taken(mul.name, gpu_time=2.0)], [benchmark(version="v2"), mul])
    assert path is not None
    assert column(path, ADD, "version") == "v1"
    assert only(tmp_path).benchmarks[ADD].version == "v1"


def test_results_of_asv_stay_untouched_beside_ours(tmp_path: Path) -> None:
    theirs: dict[str, dict[str, Any]] = {
        "x.time_f": {"result": [0.5, None], "params": [["1", "2"]], "version": "w", "samples": [[0.4, 0.6], None],
                     "stats_repeat": [2, None], "profile": "eJw="},
        "x.track_g": {"result": [math.nan], "params": [], "version": "w"},
    }  # fmt: skip
    path = write_asv_file(tmp_path, theirs)
    before = json.loads(path.read_text())
    fill(tmp_path, [taken(ADD, gpu_time=1.0)], [benchmark()])
    after = json.loads(path.read_text())
    for name in theirs:
        assert repr(after["results"][name]) == repr(before["results"][name])
    assert after["result_columns"] == before["result_columns"]
    assert after["durations"] == before["durations"]
    assert ADD in after["results"]


def test_parameters_of_the_environment_that_asv_recorded_stay(tmp_path: Path) -> None:
    path = write_asv_file(tmp_path, {})
    content = json.loads(path.read_text())
    content["params"]["numpy"] = "1.26"
    path.write_text(json.dumps(content))
    fill(tmp_path, [taken(ADD, gpu_time=1.0)], [benchmark()])
    assert json.loads(path.read_text())["params"] == {
        **BOX.facts,
        "machine": "gpu-box",
        "python": "3.11",
        "numpy": "1.26",
    }


def test_a_result_that_asv_took_later_is_not_overwritten(tmp_path: Path) -> None:
    bench = benchmark("x.time_f", metric="wall_time")
    path = fill(tmp_path, [taken("x.time_f", protocol=WALL, wall_time=1.0, started_at=100.0)], [bench])
    assert path is not None
    write_asv_file(
        tmp_path,
        {"x.time_f": {"result": [2.0], "params": [], "version": "v1", "started_at": 200_000, "samples": [[2.0]]}},
    )
    fill(tmp_path, [taken(ADD, gpu_time=1.0, started_at=300.0)], [benchmark()])
    assert column(path, "x.time_f", "result") == [2.0]
    recorded = only(tmp_path)
    (round,) = [round for round in recorded.rounds if round.name == "x.time_f"]
    assert round.values["wall_time"].value == 2.0
    assert "x.time_f: asv measured it later, its result is used" in recorded.notes


def test_names_that_asv_run_dropped_come_back_with_the_next_write(tmp_path: Path) -> None:
    fill(tmp_path, [taken(ADD, gpu_time=1.0, host_time=2.0)], [benchmark(version="v1")])
    native = {"x.time_f": {"name": "x.time_f", "type": "time", "unit": "seconds", "params": [], "param_names": []}}
    rewritten = {ADD: {**benchmark(version="v2").asv}, **native, "version": 2}
    (tmp_path / "benchmarks.json").write_text(json.dumps(rewritten))
    mul = benchmark("ops.cudatime_mul")
    fill(
        tmp_path,
        [taken(mul.name, gpu_time=1.0, peak_memory=64.0, units={"peak_memory": "B"})],
        [mul],
        of=side(OTHER_SHA),
    )
    listed = entries(tmp_path)
    assert set(listed) == {ADD, f"{ADD}.host_time", mul.name, f"{mul.name}.peak_memory", "x.time_f"}
    assert listed[f"{ADD}.host_time"]["version"] == "v2:host_time", "as the entry of the benchmark is now"
    assert listed[f"{mul.name}.peak_memory"]["unit"] == "bytes"
    assert not [path.name for path in tmp_path.iterdir() if path.suffix == ".json" and path.name != "benchmarks.json"]
    assert (tmp_path / FURTHER_FILE).exists()


def test_metrics_that_a_later_run_does_not_probe_keep_their_names(tmp_path: Path) -> None:
    fill(tmp_path, [taken(ADD, gpu_time=1.0, peak_memory=64.0)], [benchmark()])
    fill(tmp_path, [taken(ADD, gpu_time=1.0)], [benchmark()], of=side(OTHER_SHA))
    (tmp_path / "benchmarks.json").write_text(json.dumps({ADD: benchmark().asv, "version": 2}))
    fill(tmp_path, [], [], of=side(OTHER_SHA))
    assert set(entries(tmp_path)) == {ADD, f"{ADD}.peak_memory"}


def test_the_code_in_an_entry_survives_a_finish_without_its_benchmark(tmp_path: Path) -> None:
    fill(tmp_path, [taken(ADD, gpu_time=1.0)], [benchmark()])
    fill(tmp_path, [], [])
    assert entries(tmp_path)[ADD] == benchmark().asv


def test_a_benchmark_that_only_the_sidecar_knows_is_listed_again(tmp_path: Path) -> None:
    fill(tmp_path, [taken(ADD, gpu_time=1.0)], [benchmark()])
    (tmp_path / "benchmarks.json").unlink()
    fill(tmp_path, [], [])
    assert entries(tmp_path)[ADD]["version"] == "v1"


def test_facts_that_were_told_to_asv_stay_in_machine_json(tmp_path: Path) -> None:
    (tmp_path / "gpu-box").mkdir()
    (tmp_path / "gpu-box" / "machine.json").write_text(
        '{"machine": "gpu-box", "rack": "7", "cpu": "old", "version": 1}'
    )
    fill(tmp_path, [taken(ADD, gpu_time=1.0)], [benchmark()])
    assert only(tmp_path).machine == Machine("gpu-box", {**BOX.facts, "rack": "7"})


def test_rounds_of_a_run_that_was_killed_are_in_the_next_finish(tmp_path: Path) -> None:
    Store(tmp_path).append(side(), BOX, ENV, taken(ADD, gpu_time=1.0))
    path = fill(tmp_path, [taken("ops.cudatime_mul", gpu_time=2.0)], [benchmark(), benchmark("ops.cudatime_mul")])
    assert path is not None
    assert column(path, ADD, "result") == [1.0]


def test_nothing_measured_writes_no_file_of_results(tmp_path: Path) -> None:
    assert fill(tmp_path, [], [benchmark()]) is None
    assert not list(tmp_path.glob("gpu-box/*-*"))


# -- files that are in the way -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [f"gpu-box/{SHA[:8]}-{ENV}.json", "benchmarks.json", "gpu-box/machine.json"])
@pytest.mark.parametrize("content", ["", "<<<<<<< HEAD\n{}", '{"version": 99}'])
def test_a_file_that_cannot_be_read_is_named_and_never_overwritten(tmp_path: Path, name: str, content: str) -> None:
    fill(tmp_path, [taken(ADD, order=0, gpu_time=1.0)], [benchmark()])
    (tmp_path / name).write_text(content)
    with pytest.raises(StoreError) as caught:
        fill(tmp_path, [taken(ADD, order=1, gpu_time=1.0)], [benchmark()])
    assert str(tmp_path / name) in caught.value.what
    assert caught.value.why
    assert caught.value.fix
    assert (tmp_path / name).read_text() == content
    recorded = Store(tmp_path).load(SHA).recorded[0]
    assert [round.order for round in recorded.rounds] == [0, 1], "the rounds are in the sidecar"
    assert recorded.benchmarks[ADD].version == "v1"


def test_a_file_of_another_machine_is_not_merged_with(tmp_path: Path) -> None:
    path = write_asv_file(tmp_path, {}, machine="elsewhere")
    before = path.read_bytes()
    with pytest.raises(StoreError, match="cannot add results") as caught:
        fill(tmp_path, [taken(ADD, gpu_time=1.0)], [benchmark()])
    assert "elsewhere" in caught.value.why
    assert path.read_bytes() == before


@pytest.mark.parametrize("dies_at", [1, 2, 3])
def test_a_writer_that_dies_in_the_middle_leaves_whole_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dies_at: int
) -> None:
    """Each replacement in turn fails, and takes the temporary file with it no more than a killed process would."""
    fill(tmp_path, [taken(ADD, order=0, gpu_time=1.0)], [benchmark()])
    before = {path: path.read_bytes() for path in tmp_path.rglob("*.json")}
    replaced = 0
    original = os.replace

    def dies(source: Path, target: Path) -> None:
        nonlocal replaced
        replaced += 1
        if replaced == dies_at:
            raise KeyboardInterrupt
        original(source, target)

    monkeypatch.setattr(os, "replace", dies)
    with pytest.raises(KeyboardInterrupt):
        fill(tmp_path, [taken(ADD, order=1, gpu_time=3.0, wall_time=1.0)], [benchmark(version="v2"), benchmark("new")])
    monkeypatch.undo()
    after = {path: path.read_bytes() for path in tmp_path.rglob("*.json")}
    assert set(after) == set(before)
    for data in after.values():
        json.loads(data)
    assert (
        after[tmp_path / "gpu-box" / f"{SHA[:8]}-{ENV}.json"] == before[tmp_path / "gpu-box" / f"{SHA[:8]}-{ENV}.json"]
    )
    path = fill(tmp_path, [], [benchmark(version="v2"), benchmark("new")])
    assert path is not None
    assert column(path, ADD, "samples") == [[3.0]]


def test_another_writer_that_holds_on_for_long_is_named(tmp_path: Path) -> None:
    store = Store(tmp_path, lock_timeout_s=0.02)
    with disk.locked(tmp_path, 1), pytest.raises(StoreError, match=f"process {os.getpid()}"):
        store.append(side(), BOX, ENV, taken(ADD))


def test_a_disk_that_is_full_at_the_end_keeps_the_rounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", failing(28))
    with pytest.raises(StoreError, match="cannot write"):
        fill(tmp_path, [taken(ADD, gpu_time=1.0, failure=None)], [benchmark()])
    monkeypatch.undo()
    assert len(only(tmp_path).rounds) == 1
    assert not list(tmp_path.rglob("*.tmp"))


def test_a_failure_is_null_a_skip_is_nan_and_a_reader_is_told_why(tmp_path: Path) -> None:
    bench = benchmark(params=[["1", "2", "3"]])
    rounds = [
        taken(ADD, ["1"], gpu_time=1.0),
        taken(ADD, ["2"], failure=Failure("skipped", "no tensor cores")),
        taken(ADD, ["3"], failure=Failure("oom", "asked 60 GiB")),
    ]
    path = fill(tmp_path, rounds, [bench])
    assert path is not None
    value, skipped, failed = column(path, ADD, "result")
    assert (value, failed) == (1.0, None)
    assert math.isnan(skipped)
    assert [round.failure for round in only(tmp_path).rounds] == [round.failure for round in rounds]
