from __future__ import annotations

import json
import math
import multiprocessing
import os
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regress.errors import StoreError
from regress.history import Merging, Store
from regress.history.names import FURTHER_FILE
from regress.model import Machine, Merged, Round

from .samples import (
    BOX,
    ENV,
    OTHER_SHA,
    SHA,
    WALL,
    benchmark,
    column,
    fill,
    only,
    side,
    taken,
    write_asv_file,
)

ADD, MUL = "ops.cudatime_add", "ops.cudatime_mul"
STEM = f"{SHA[:8]}-{ENV}"


def merge(root: Path, *sources: Path) -> tuple[Merged, ...]:
    merging = Merging(root, sources)
    for result in merging.results:
        merging.take(*result)
    assert merging.skipped == ()
    return merging.finish()


def contents(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


def shard(root: Path, name: str, *values: float, at: float = 100.0, order: int = 0) -> Path:
    """What one run leaves that measured one benchmark."""
    rounds = [taken(name, order=order + n, started_at=at + n, gpu_time=value) for n, value in enumerate(values)]
    fill(root, rounds, [benchmark(name)])
    return root


# -- what comes out ------------------------------------------------------------------------------------------------------


def test_shards_of_a_suite_become_one_result(tmp_path: Path) -> None:
    shards = [shard(tmp_path / str(n), f"ops.cudatime_{n}", 1.0 + n, 2.0 + n) for n in range(12)]
    merged = merge(tmp_path / "all", *shards)
    assert [(part.machines, part.commits, part.added, part.known) for part in merged] == [(("gpu-box",), 1, 2, 0)] * 12
    recorded = only(tmp_path / "all")
    assert sorted((round.name, round.values["gpu_time"].value) for round in recorded.rounds) == sorted(
        (f"ops.cudatime_{n}", value) for n in range(12) for value in (1.0 + n, 2.0 + n)
    )
    assert set(recorded.benchmarks) == {f"ops.cudatime_{n}" for n in range(12)}
    file = tmp_path / "all" / "gpu-box" / f"{STEM}.json"
    assert [column(file, f"ops.cudatime_{n}", "result") for n in range(12)] == [[1.5 + n] for n in range(12)]
    entries = json.loads((tmp_path / "all" / "benchmarks.json").read_text())
    assert set(entries) == {*recorded.benchmarks, "version"}


def test_rounds_of_one_case_from_two_runs_are_pooled(tmp_path: Path) -> None:
    a = shard(tmp_path / "a", ADD, 1.0, 3.0, at=200.0)
    b = shard(tmp_path / "b", ADD, 2.0, 4.0, 5.0, at=100.0)
    merge(tmp_path / "all", a, b)
    values = [round.values["gpu_time"].value for round in only(tmp_path / "all").rounds]
    assert values == [2.0, 4.0, 5.0, 1.0, 3.0], "in the order measured, not merged"
    file = tmp_path / "all" / "gpu-box" / f"{STEM}.json"
    assert column(file, ADD, "result") == [3.0]
    assert column(file, ADD, "samples") == [values]


def test_what_is_there_already_is_not_taken_twice(tmp_path: Path) -> None:
    a, b = shard(tmp_path / "a", ADD, 1.0, 2.0), shard(tmp_path / "b", MUL, 3.0)
    merge(tmp_path / "all", a, b)
    before = contents(tmp_path / "all")
    assert [(merged.added, merged.known) for merged in merge(tmp_path / "all", a, b, a)] == [(0, 2), (0, 1)]
    assert contents(tmp_path / "all") == before


def test_a_run_that_went_on_brings_what_is_new(tmp_path: Path) -> None:
    a = shard(tmp_path / "a", ADD, 1.0)
    merge(tmp_path / "all", a)
    shard(a, ADD, 2.0, at=300.0, order=7)
    (merged,) = merge(tmp_path / "all", a)
    assert (merged.added, merged.known) == (1, 1)
    assert [round.values["gpu_time"].value for round in only(tmp_path / "all").rounds] == [1.0, 2.0]


def test_a_newer_version_of_a_benchmark_wins_whichever_is_merged_last(tmp_path: Path) -> None:
    new, old = tmp_path / "new", tmp_path / "old"
    fill(new, [taken(ADD, started_at=500.0, gpu_time=1.0)], [benchmark(ADD, version="v2")])
    fill(old, [taken(ADD, started_at=100.0, gpu_time=9.0)], [benchmark(ADD, version="v1")])
    for first, second in ((new, old), (old, new)):
        root = tmp_path / f"{first.name}-first"
        merge(root, first)
        merge(root, second)
        assert [round.values["gpu_time"].value for round in only(root).rounds] == [1.0]
        assert json.loads((root / "benchmarks.json").read_text())[ADD]["version"] == "v2"
        assert column(root / "gpu-box" / f"{STEM}.json", ADD, "version") == "v2"


def test_machines_commits_and_environments_stand_side_by_side(tmp_path: Path) -> None:
    store = Store(tmp_path / "b")
    other = Machine("cpu-box", {**BOX.facts, "cpu": "Another"})
    a = shard(tmp_path / "a", ADD, 1.0)
    shard(a, ADD, 2.0)
    for machine, env, of in ((other, ENV, side()), (BOX, "next-py3.12", side()), (BOX, ENV, side(OTHER_SHA))):
        store.append(of, machine, env, taken(ADD, started_at=5.0, gpu_time=7.0))
        store.finish(of, machine, env, python="3.11", benchmarks={ADD: benchmark(ADD)})
    merged = merge(tmp_path / "all", a, tmp_path / "b")
    assert merged[1].machines == ("cpu-box", "gpu-box")
    assert merged[1].commits == 2
    recorded = Store(tmp_path / "all").load(SHA).recorded
    counts = {(result.machine.name, result.environment): len(result.rounds) for result in recorded}
    assert counts == {("gpu-box", ENV): 2, ("cpu-box", ENV): 1, ("gpu-box", "next-py3.12"): 1}


def test_what_was_measured_again_beside_a_commit_is_merged_too(tmp_path: Path) -> None:
    again = replace(side(), beside="f" * 40)
    for number in range(2):
        source = tmp_path / str(number)
        shard(source, ADD, 1.0)
        Store(source).append(
            again, BOX, ENV, taken(ADD, order=0, started_at=500.0 + number, gpu_time=2.0), {}, benchmark(ADD)
        )
    root = tmp_path / "all"
    for _ in range(2):
        merge(root, tmp_path / "0", tmp_path / "1")
        (anchor,) = Store(root).anchors()
        assert (anchor.recorded.commit_sha, anchor.beside) == (side().commit.sha, "f" * 40)
        assert [round.values["gpu_time"].value for round in anchor.recorded.rounds] == [2.0, 2.0]
        assert [round.values["gpu_time"].value for round in only(root).rounds] == [1.0] * 2, (
            "its own results are its own"
        )


def test_further_metrics_keep_their_names(tmp_path: Path) -> None:
    fill(tmp_path / "a", [taken(ADD, gpu_time=1.0, host_time=2.0)], [benchmark(ADD)])
    fill(tmp_path / "b", [taken(MUL, gpu_time=1.0, peak_memory=64.0)], [benchmark(MUL)])
    merge(tmp_path / "all", tmp_path / "a", tmp_path / "b")
    entries = json.loads((tmp_path / "all" / "benchmarks.json").read_text())
    assert {f"{ADD}.host_time", f"{MUL}.peak_memory"} <= set(entries)
    lines = (tmp_path / "all" / FURTHER_FILE).read_text().splitlines()
    assert [json.loads(line)["name"] for line in lines] == [ADD, MUL]
    (tmp_path / "all" / "benchmarks.json").unlink()
    merge(tmp_path / "all", tmp_path / "b")
    assert f"{MUL}.peak_memory" in json.loads((tmp_path / "all" / "benchmarks.json").read_text())


def asv_row(result: list[Any], *params: list[str], at: int = 1000, version: str = "v1") -> dict[str, Any]:
    return {"result": result, "params": list(params), "version": version, "started_at": at, "duration": 1.0}


def test_asvs_own_results_are_merged_by_parameters(tmp_path: Path) -> None:
    name = "ops.time_add"
    write_asv_file(tmp_path / "a", {name: asv_row([1.0, None, 5.0], ["8", "16", "32"], at=1000)})
    write_asv_file(tmp_path / "b", {name: asv_row([4.0, 2.0, math.nan], ["32", "16", "64"], at=2000)})
    for order in (("a", "b"), ("b", "a")):
        root = tmp_path / "-".join(order)
        merge(root, *(tmp_path / name for name in order))
        rounds = {round.params[0]: round for round in only(root).rounds}
        values = {key: round.values["wall_time"].value for key, round in rounds.items() if round.values}
        assert values == {"8": 1.0, "16": 2.0, "32": 4.0}, "of the case that both have, the newer"
        assert rounds["64"].failure is not None
        assert rounds["64"].failure.kind == "skipped"


def test_asvs_later_result_stays_beside_merged_rounds(tmp_path: Path) -> None:
    name = "ops.time_add"
    ours = [taken(name, started_at=10.0, protocol=WALL, wall_time=1.0)]
    fill(tmp_path / "a", ours, [benchmark(name, metric="wall_time")])
    write_asv_file(tmp_path / "b", {name: asv_row([2.0], at=50_000)})
    merge(tmp_path / "all", tmp_path / "a", tmp_path / "b")
    (only_round,) = only(tmp_path / "all").rounds
    assert only_round.values["wall_time"].value == 2.0


def test_a_machine_that_was_updated_has_the_later_versions(tmp_path: Path) -> None:
    for name, kernel in (("a", "Linux 6.10"), ("b", "Linux 6.9")):
        box = replace(BOX, facts={**BOX.facts, "os": kernel})
        Store(tmp_path / name).append(side(), box, ENV, taken(ADD, started_at=1.0, gpu_time=1.0))
        Store(tmp_path / name).finish(side(), box, ENV, python="3.11", benchmarks={ADD: benchmark(ADD)})
    for order in (("a", "b"), ("b", "a")):
        root = tmp_path / "-".join(order)
        for part in order:
            merge(root, tmp_path / part)
        assert only(root).machine.facts["os"] == "Linux 6.10"


# -- laws ----------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def unsynced() -> Iterator[None]:
    """Many small files are written here, and no power is lost."""
    with mock.patch("os.fsync"):
        yield


_rounds = st.lists(
    st.builds(
        lambda name, size, order, at, value: taken(name, [size], order, started_at=at, gpu_time=value, host_time=1.0),
        st.sampled_from([ADD, MUL]),
        st.sampled_from(["8", "16"]),
        st.integers(0, 3),
        st.sampled_from([0.0, 10.0, 20.0, 30.0]),
        st.floats(1e-6, 1.0),
    ),
    max_size=4,
)
_cell = st.one_of(st.none(), st.floats(1e-6, 1.0), st.just(math.nan))
_asv = st.dictionaries(
    st.sampled_from(["ops.time_a", "ops.time_b"]),
    st.builds(
        lambda results, sizes, at, version: asv_row(results, sizes, at=at, version=version),
        st.lists(_cell, min_size=2, max_size=2),
        st.permutations(["8", "16", "32"]).map(lambda sizes: list(sizes[:2])),
        st.sampled_from([1000, 2000]),
        st.sampled_from(["v1", "v2"]),
    ),
)


def written(root: Path, rounds: Iterable[Round], rows: dict[str, dict[str, Any]], version: str) -> Path:
    """A folder of results as asv and we leave it, one after the other."""
    shutil.rmtree(root, ignore_errors=True)
    write_asv_file(root, rows)
    suite = [benchmark(name, [["8", "16"]], version=version) for name in (ADD, MUL)]
    fill(root, list(rounds), suite)
    return root


def reading(root: Path) -> Any:
    recorded = only(root)
    rounds = sorted(map(repr, recorded.rounds))
    kept = {name: replace(benchmark, asv={}) for name, benchmark in recorded.benchmarks.items()}
    return recorded.machine, rounds, repr(sorted(kept.items()))


@pytest.mark.usefixtures("unsynced")
@settings(max_examples=40)
@given(st.lists(st.tuples(_rounds, _asv, st.sampled_from(["v1", "v2"])), min_size=2, max_size=2))
def test_the_order_of_merging_does_not_matter_and_once_is_enough(
    tmp_path_factory: pytest.TempPathFactory, folders: list[tuple[list[Round], dict[str, Any], str]]
) -> None:
    base = tmp_path_factory.mktemp("laws")
    a, b = (written(base / str(n), *folder) for n, folder in enumerate(folders))
    merge(base / "ab", a, b)
    merge(base / "ba", b)
    merge(base / "ba", a)
    assert reading(base / "ab") == reading(base / "ba")
    once = contents(base / "ab")
    merge(base / "ab", b, a)
    assert contents(base / "ab") == once
    merge(base / "again", base / "ab")
    assert reading(base / "again") == reading(base / "ab")
    shutil.rmtree(base)


@pytest.mark.usefixtures("unsynced")
@settings(max_examples=20)
@given(st.lists(_rounds, min_size=3, max_size=3), st.permutations(range(3)))
def test_three_shards_in_any_order_are_one_history(
    tmp_path_factory: pytest.TempPathFactory, shards: list[list[Round]], order: list[int]
) -> None:
    base = tmp_path_factory.mktemp("three")
    folders = [written(base / str(n), rounds, {}, "v1") for n, rounds in enumerate(shards)]
    merge(base / "all", *folders)
    for place in order:
        merge(base / "one by one", folders[place])
    assert contents(base / "one by one") == contents(base / "all")
    shutil.rmtree(base)


# -- what goes wrong -----------------------------------------------------------------------------------------------------


def test_files_that_cannot_be_read_are_named_and_the_rest_is_merged(tmp_path: Path) -> None:
    a = shard(tmp_path / "a", ADD, 1.0)
    shard(tmp_path / "twin", ADD, 1.0)
    (a / "gpu-box" / f"{OTHER_SHA[:8]}-{ENV}.json").write_text('{"torn')
    moved = a / "moved-box"
    shutil.copytree(tmp_path / "twin" / "gpu-box", moved)
    merging = Merging(tmp_path / "all", [a])
    for result in merging.results:
        merging.take(*result)
    merging.finish()
    twin, _, torn = merging.skipped
    assert {file.path.parent.name for file in merging.skipped} == {"gpu-box", "moved-box"}
    assert "not JSON" in torn.why
    assert "of the same commit, machine and environment as one in" in twin.why
    assert f"mv {moved}" in twin.fix
    assert len(only(tmp_path / "all").rounds) == 1
    assert not (tmp_path / "all" / "moved-box").exists()


def test_a_malformed_row_and_asvs_first_format_cost_nothing_else(tmp_path: Path) -> None:
    path = write_asv_file(tmp_path / "a", {"ops.time_a": asv_row([1.0]), "ops.time_b": asv_row([2.0])})
    content = json.loads(path.read_text())
    content["results"]["ops.time_b"] = "torn"
    path.write_text(json.dumps(content))
    first = {key: content[key] for key in ("commit_hash", "env_name", "date", "params", "python", "requirements")}
    (tmp_path / "b" / "gpu-box").mkdir(parents=True)
    first |= {"version": 1, "results": {"ops.time_c": 3.0}, "params": {"machine": "gpu-box"}}
    (tmp_path / "b" / "gpu-box" / path.name).write_text(json.dumps(first))
    merging = Merging(tmp_path / "all", [tmp_path / "a", tmp_path / "b"])
    merging.take(*merging.results[0])
    assert [(file.path, "ops.time_b" in file.why) for file in merging.skipped] == [(path, True)]
    values = {round.name: round.values["wall_time"].value for round in only(tmp_path / "all").rounds}
    assert values == {"ops.time_a": 1.0, "ops.time_c": 3.0}
    shutil.copy(path, tmp_path / "all" / "gpu-box" / path.name)
    assert "ops.time_b" in refused(tmp_path / "all", tmp_path / "b").why, "a row of results_dir would be lost"


def test_lines_that_are_none_are_named_and_left_out(tmp_path: Path) -> None:
    a = shard(tmp_path / "a", ADD, 1.0, 2.0)
    path = a / "gpu-box" / f"{STEM}.rounds.jsonl"
    path.write_bytes(path.read_bytes().replace(b'{"is":"round"', b'<<<<<<< ours\n{"is":"round"', 1) + b'{"is":"rou')
    merging = Merging(tmp_path / "all", [a])
    merging.take(*merging.results[0])
    merging.finish()
    assert ["2 of its lines" in file.why for file in merging.skipped] == [True]
    assert len(only(tmp_path / "all").rounds) == 2


def refused(root: Path, *sources: Path) -> StoreError:
    before = contents(root) if root.exists() else {}
    with pytest.raises(StoreError) as caught:
        Merging(root, sources)
    assert (contents(root) if root.exists() else {}) == before, "nothing was written"
    assert caught.value.why or caught.value.what.startswith("there is no")
    assert caught.value.fix
    return caught.value


def test_two_commits_or_environments_of_one_name_are_refused(tmp_path: Path) -> None:
    a = shard(tmp_path / "a", ADD, 1.0)
    fill(tmp_path / "b", [taken(ADD, gpu_time=2.0)], [benchmark(ADD)], of=side(SHA[:8] + "0" * 32))
    fill(tmp_path / "c", [taken(ADD, gpu_time=2.0)], [benchmark(ADD)], env="a:b")
    fill(tmp_path / "d", [taken(ADD, gpu_time=2.0)], [benchmark(ADD)], env="a?b")
    error = refused(tmp_path / "all", a, tmp_path / "b")
    assert SHA in error.why
    assert str(tmp_path / "b") in error.what
    assert "a?b" in refused(tmp_path / "all", tmp_path / "c", tmp_path / "d").why
    merge(tmp_path / "all", a)
    refused(tmp_path / "all", tmp_path / "b")


def test_two_machines_of_one_name_are_refused(tmp_path: Path) -> None:
    a = shard(tmp_path / "a", ADD, 1.0)
    other = replace(BOX, facts={**BOX.facts, "cpu": "Another CPU"})
    Store(tmp_path / "b").append(side(OTHER_SHA), other, ENV, taken(ADD, gpu_time=2.0))
    Store(tmp_path / "b").finish(side(OTHER_SHA), other, ENV, python="3.11", benchmarks={ADD: benchmark(ADD)})
    error = refused(tmp_path / "all", a, tmp_path / "b")
    assert "another machine" in error.what
    assert "'Another CPU'" in error.why
    assert "--machine" in error.fix


def test_a_folder_may_lie_in_results_dir(tmp_path: Path) -> None:
    inside = shard(tmp_path / "all" / ".incoming" / "a", ADD, 1.0)
    shutil.copytree(inside / "gpu-box", inside / "stray")
    merging = Merging(tmp_path / "all", [inside])
    for result in merging.results:
        merging.take(*result)
    merging.finish()
    assert len(only(tmp_path / "all").rounds) == 1
    assert {file.path.parent.name for file in merging.skipped} == {"stray"}


def test_a_folder_that_is_none_of_results_is_refused(tmp_path: Path) -> None:
    a = shard(tmp_path / "archive" / "history", ADD, 1.0)
    assert refused(tmp_path / "all", tmp_path / "missing").what.startswith("there is no folder")
    assert refused(tmp_path / "all", tmp_path / "archive").fix == f"regress merge {a}"
    assert "itself" in refused(a, tmp_path / "archive" / "." / "history").what


def test_a_file_of_results_dir_that_cannot_be_read_is_not_written_over(tmp_path: Path) -> None:
    a = shard(tmp_path / "a", ADD, 1.0)
    broken = tmp_path / "all" / "gpu-box" / f"{STEM}.json"
    broken.parent.mkdir(parents=True)
    broken.write_text('{"torn')
    assert str(broken) in refused(tmp_path / "all", a).what
    write_asv_file(tmp_path / "all", {}, machine="somebody")
    assert "somebody" in refused(tmp_path / "all", a).why


def one_by_one(root: Path, sources: list[Path]) -> None:
    for source in sources:
        merge(root, source)


def test_who_is_interrupted_anywhere_runs_it_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sources = [shard(tmp_path / "a", ADD, 1.0, 2.0, at=200.0), shard(tmp_path / "b", ADD, 3.0), tmp_path / "c"]
    fill(tmp_path / "c", [taken(ADD, gpu_time=2.0, host_time=1.0)], [benchmark(ADD)], of=side(OTHER_SHA))
    merge(tmp_path / "whole", *sources)
    writes = len(list((tmp_path / "whole").rglob("*.json*"))) + 2  # of the result that two sources have
    really = os.replace
    for stop in range(writes):
        root, done = tmp_path / f"stopped {stop}", 0

        def replacing(source: Any, target: Any, stop: int = stop) -> None:
            nonlocal done
            if done == stop:
                raise KeyboardInterrupt
            done += 1
            really(source, target)

        monkeypatch.setattr(os, "replace", replacing)
        with pytest.raises(KeyboardInterrupt):
            one_by_one(root, sources)
        monkeypatch.setattr(os, "replace", really)
        if root.exists():
            assert Store(root).load(SHA).skipped == ()
        merge(root, *sources)
        assert contents(root) == contents(tmp_path / "whole")
        for source in (*sources, *sources):
            merge(root, source)
        assert contents(root) == contents(tmp_path / "whole")


def _merge_beside(root: Path, source: Path, barrier: Any) -> None:
    barrier.wait()
    merge(root, source)


def test_two_merges_and_a_run_at_once_lose_nothing(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(3)
    shards = [shard(tmp_path / str(n), name, *[1.0] * 20, at=100.0 * n) for n, name in enumerate([ADD, MUL])]
    root = tmp_path / "all"
    merges = [context.Process(target=_merge_beside, args=(root, path, barrier)) for path in shards]
    for merging in merges:
        merging.start()
    store = Store(root)
    barrier.wait()
    for order in range(20):
        store.append(side(), BOX, ENV, taken(ADD, order=order, started_at=900.0 + order, gpu_time=3.0), {"driver": "5"})
    store.finish(side(), BOX, ENV, python="3.11", benchmarks={ADD: benchmark(ADD)})
    for process in merges:
        process.join(120)
        assert process.exitcode == 0
    assert sorted(round.name for round in only(root).rounds) == [ADD] * 40 + [MUL] * 20
