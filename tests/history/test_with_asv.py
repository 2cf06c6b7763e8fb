"""What we write, read by asv itself: its loader, and its commands on a real repository."""

from __future__ import annotations

import itertools
import json
import math
import os
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from asv.benchmarks import Benchmarks
from asv.machine import Machine as AsvMachine
from asv.results import Results, iter_results
from hypothesis import given, settings
from hypothesis import strategies as st

from regress.history.reading import ASV_FLAG
from regress.model import Benchmark, Failure, Protocol, Round

from .samples import BOX, SHA, benchmark, fill, only, side, taken

ADD = "ops.cudatime_add"
SKIPPED, BROKEN = Failure("skipped", "no"), Failure("error", "boom")


def asv_benchmarks(root: Path) -> Any:
    return Benchmarks.load(SimpleNamespace(results_dir=str(root), benchmark_dir=str(root)))


def by_case(results: Any, listed: Any, name: str) -> dict[tuple[str, ...], float | None]:
    params = listed[name]["params"]
    return dict(zip(itertools.product(*params), results.get_result_value(name, params), strict=True))


# -- asv's loader --------------------------------------------------------------------------------------------------------

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
params = st.lists(st.lists(texts, min_size=1, max_size=3, unique=True), max_size=2)
values = st.floats(1e-9, 1e9)


@st.composite
def visits(draw: st.DrawFn) -> tuple[Benchmark, list[Round]]:
    """A benchmark with a few rounds of some of its cases, some of which failed or were skipped."""
    bench = benchmark(params=draw(params))
    rounds = []
    for case in itertools.product(*bench.params):
        for order in range(draw(st.integers(0, 4))):
            metrics = draw(
                st.dictionaries(st.sampled_from(["gpu_time", "wall_time", "peak_memory"]), values, max_size=3)
            )
            failure = None if metrics else draw(st.sampled_from([SKIPPED, BROKEN]))
            rounds.append(taken(ADD, case, order, failure=failure, values=metrics))
    return bench, rounds


def median(numbers: list[float]) -> float:
    ordered, half = sorted(numbers), len(numbers) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2


@settings(deadline=None, max_examples=25)
@given(visits())
def test_rounds_come_back_from_our_reader_and_medians_from_asvs(visited: tuple[Benchmark, list[Round]]) -> None:
    bench, rounds = visited
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        path = fill(root, rounds, [bench])
        if path is None:
            assert rounds == []
            return
        by_order = {(tuple(round.params), round.order): round for round in only(root).rounds}
        assert len(by_order) == len(rounds)
        for round in rounds:
            kept = by_order[tuple(round.params), round.order]
            assert {key: kept.values[key].value for key in kept.values} == {
                key: round.values[key].value for key in round.values
            }
            assert kept.failure == round.failure

        results, listed = Results.load(str(path), "gpu-box"), asv_benchmarks(root)
        assert results.get_result_keys(listed) == set(listed) == set(results.get_all_result_keys())
        for name in listed:
            metric = name.removeprefix(ADD + ".") if name != ADD else "gpu_time"
            for case, value in by_case(results, listed, name).items():
                mine = [round for round in rounds if tuple(round.params) == case]
                numbers = [round.values[metric].value for round in mine if metric in round.values]
                if numbers:
                    assert value == pytest.approx(median(numbers), rel=1e-12)
                elif all(round.failure == SKIPPED for round in mine):  # or there are none: not measured
                    assert value is not None
                    assert math.isnan(value)
                else:
                    assert value is None


def test_asv_reads_samples_statistics_and_facts(tmp_path: Path) -> None:
    rounds = [taken(ADD, ["1"], order, gpu_time=value, started_at=50.0) for order, value in enumerate([1.0, 3.0, 2.0])]
    path = fill(tmp_path, rounds, [benchmark(params=[["1", "2"]])])
    results = Results.load(str(path), "gpu-box")
    assert results.commit_hash == SHA
    assert results.date == 1_700_000_000_000
    assert results.params["gpu"] == "H100"
    assert results.get_result_samples(ADD, [["1", "2"]]) == [[1.0, 3.0, 2.0], None]
    stats = results.get_result_stats(ADD, [["1", "2"]])[0]
    assert (stats["repeat"], stats["number"], stats["q_25"]) == (3, 4, 1.5)
    assert stats["ci_99_a"] <= 1.0 < 3.0 <= stats["ci_99_b"]
    assert results.started_at[ADD] == 50_000
    assert [row.commit_hash for row in iter_results(str(tmp_path))] == [SHA]


def test_parameters_are_matched_by_value_by_asv_too(tmp_path: Path) -> None:
    fill(tmp_path, [taken(ADD, [n], gpu_time=float(n)) for n in "31"], [benchmark(params=[["3", "1"]])])
    path = fill(tmp_path, [taken(ADD, ["2"], gpu_time=2.0)], [benchmark(params=[["1", "2", "3"]])])
    listed = asv_benchmarks(tmp_path)
    assert by_case(Results.load(str(path)), listed, ADD) == {("1",): 1.0, ("2",): 2.0, ("3",): 3.0}


def test_what_asv_saves_after_us_and_before_us_is_all_there(tmp_path: Path) -> None:
    path = fill(tmp_path, [taken(ADD, gpu_time=1.0)], [benchmark()])
    assert path is not None
    bench = benchmark("x.time_f", metric="wall_time")
    results = Results.load(str(path))
    outcome = SimpleNamespace(result=[0.5], samples=[[0.4, 0.6]], number=[2], stderr="", errcode=0, profile=None)
    results.add_result(bench.asv, outcome, record_samples=True)
    results.save(str(tmp_path))
    recorded = only(tmp_path)
    assert {round.name: (ASV_FLAG in round.flags, round.process) for round in recorded.rounds} == {
        ADD: (False, 4242),  # the sidecar has survived that asv wrote its file anew
        "x.time_f": (True, 0),
    }
    fill(tmp_path, [taken("ops.cudatime_mul", gpu_time=2.0)], [benchmark("ops.cudatime_mul"), bench])
    again, listed = Results.load(str(path)), asv_benchmarks(tmp_path)
    values = {name: by_case(again, listed, name)[()] for name in again.get_result_keys(listed)}
    assert values == {ADD: 1.0, "x.time_f": 0.5, "ops.cudatime_mul": 2.0}


def test_a_time_of_asvs_under_the_device_protocol_keeps_its_wall_time(tmp_path: Path) -> None:
    """One and the same `time_f`, first as asv measures it and then under the device protocol: its series goes on."""
    name, wall, device = "x.time_f", Protocol("wall_time"), Protocol("gpu_time")
    before = benchmark(name, metric="wall_time")
    after = replace(before, metric="gpu_time", needs_device=True)
    fill(tmp_path, [taken(name, protocol=wall, wall_time=0.5)], [before])
    times = {"gpu_time": 0.25, "host_time": 0.125, "wall_time": 0.75}
    path = fill(tmp_path, [taken(name, protocol=device, values=times)], [after])
    results, listed = Results.load(str(path)), asv_benchmarks(tmp_path)
    assert {row: by_case(results, listed, row)[()] for row in listed} == {
        "x.time_f": 0.75,
        "x.time_f.gpu_time": 0.25,
        "x.time_f.host_time": 0.125,
    }
    assert listed["x.time_f"]["type"] == listed["x.time_f.gpu_time"]["type"] == "time"

    (round,) = only(tmp_path).rounds
    assert {metric: value.value for metric, value in round.values.items()} == times
    assert round.protocol == device
    for sidecar in tmp_path.rglob("*.rounds.jsonl"):
        sidecar.unlink()
    recorded = only(tmp_path)
    (read,) = recorded.rounds
    assert {metric: value.value for metric, value in read.values.items()} == times
    assert read.protocol is not None
    assert read.protocol.metric == "gpu_time", "the case is about its device time, which gates"
    assert (recorded.benchmarks[name].metric, recorded.benchmarks[name].needs_device) == ("gpu_time", True)


def test_a_cold_start_is_a_time_to_asv(tmp_path: Path) -> None:
    name = "x.Model.cudacold_forward"
    times = {"cold_time": 8.5, "compile_time": 6.0}
    bench = benchmark(name, metric="cold_time")
    path = fill(tmp_path, [taken(name, protocol=Protocol("cold_time"), values=times)], [bench])
    results, listed = Results.load(str(path)), asv_benchmarks(tmp_path)
    assert {row: by_case(results, listed, row)[()] for row in listed} == {name: 8.5, f"{name}.compile_time": 6.0}
    assert {row: entry["unit"] for row, entry in listed.items()} == dict.fromkeys(listed, "seconds")
    for sidecar in tmp_path.rglob("*.rounds.jsonl"):
        sidecar.unlink()
    (read,) = only(tmp_path).rounds
    assert read.protocol is not None
    assert (read.protocol.metric, read.values["cold_time"].value) == ("cold_time", 8.5)


def test_asv_reads_our_machine(tmp_path: Path) -> None:
    fill(tmp_path, [taken(ADD, gpu_time=1.0)], [benchmark()])
    from asv.util import load_json

    machine = load_json(str(tmp_path / "gpu-box" / "machine.json"), AsvMachine.api_version)
    assert machine == {"machine": "gpu-box", **BOX.facts}


# -- asv's commands ------------------------------------------------------------------------------------------------------


def git(repository: Path, *arguments: str, date: int = 0) -> str:
    who = {f"GIT_{role}_{what}": "Ada" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    when = {f"GIT_{role}_DATE": f"{date} +0000" for role in ("AUTHOR", "COMMITTER")}
    env = {**os.environ, **who, **when, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    return subprocess.run(
        ["git", *arguments], cwd=repository, env=env, check=True, capture_output=True, text=True
    ).stdout.strip()


def asv(repository: Path, *arguments: str) -> str:
    """The output of an asv command; it has to succeed and to warn of nothing."""
    env = {**os.environ, "HOME": str(repository), "GIT_CONFIG_GLOBAL": os.devnull, "COLUMNS": "200"}
    done = subprocess.run(
        [sys.executable, "-m", "asv", *arguments], cwd=repository, env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Skipping" not in done.stdout + done.stderr
    assert "Error" not in done.stdout + done.stderr
    return done.stdout


@pytest.fixture
def history(tmp_path: Path) -> tuple[Path, list[str]]:
    """A repository with three commits, and recorded rounds of each."""
    git(tmp_path, "init", "--initial-branch", "main")
    (tmp_path / "benchmarks").mkdir()
    (tmp_path / "benchmarks" / "__init__.py").write_text("")
    conf = {"version": 1, "project": "tiny", "repo": ".", "branches": ["main"], "results_dir": "history",
            "html_dir": "html", "benchmark_dir": "benchmarks", "environment_type": "virtualenv"}  # fmt: skip
    (tmp_path / "asv.conf.json").write_text(json.dumps(conf))
    git(tmp_path, "add", ".")
    shas = []
    for index, micros in enumerate((20.0, 20.0, 30.0)):
        date = 1_700_000_000 + index * 86_400
        git(tmp_path, "commit", "--allow-empty", "-m", f"commit {index}", date=date)
        shas.append(git(tmp_path, "rev-parse", "HEAD"))
        fill(tmp_path / "history", _rounds(micros * 1e-6), _suite(), of=side(shas[-1], date=date))
    return tmp_path, shas


def _suite() -> list[Benchmark]:
    return [
        benchmark("ops.Softmax.cudatime_fwd", [["1024", "4096"], ["'fp16'", "'fp32'"]]),
        benchmark("ops.track_rate", kind="track", unit="GFLOP/s", metric="value"),
        benchmark("ops.cudatime_broken"),
    ]


def _rounds(seconds: float) -> list[Round]:
    name = "ops.Softmax.cudatime_fwd"
    rounds = []
    for order in range(5):
        jitter = 1 + 0.001 * order
        for size, factor in (("1024", 1.0), ("4096", 4.0)):
            value = seconds * factor * jitter
            values = {"gpu_time": value, "wall_time": 2 * value, "peak_memory": 65536 * factor}
            rounds.append(taken(name, [size, "'fp16'"], order, values=values, units={"peak_memory": "B"}))
        rounds.append(taken(name, ["1024", "'fp32'"], order, failure=SKIPPED))
        rounds.append(taken(name, ["4096", "'fp32'"], order, failure=BROKEN))
        rounds.append(taken("ops.track_rate", order=order, protocol=Protocol("value"), value=321.5))
        rounds.append(taken("ops.cudatime_broken", order=order, failure=BROKEN))
    return rounds


@pytest.mark.slow
def test_asv_show_prints_our_numbers(history: tuple[Path, list[str]]) -> None:
    repository, shas = history
    listed = asv(repository, "show")
    assert all(sha[:8] in listed for sha in shas)
    shown = asv(repository, "show", "--details", shas[-1])
    for expected in ("30.1±0.03μs", "120±", "n/a", "failed", "321.5", "65.5±0k", "262±0k", "60.1±0.06μs", "repeat: 5"):
        assert expected in shown, expected
    assert "ops.Softmax.cudatime_fwd.peak_memory [gpu-box/worktree-py3.11]" in shown


@pytest.mark.slow
def test_asv_compare_sees_the_regression(history: tuple[Path, list[str]]) -> None:
    repository, shas = history
    compared = asv(repository, "compare", shas[1], shas[2], "--factor", "1.05")
    rows = {line.split("|")[-2].strip(): line for line in compared.splitlines() if "ops." in line}
    slower = rows["ops.Softmax.cudatime_fwd(1024, 'fp16')"]
    assert slower.split("|")[1].strip() == "+"
    assert ("20.0" in slower, "30.1" in slower, "1.5" in slower) == (True, True, True)
    assert rows["ops.track_rate"].split("|")[1].strip() == ""
    assert rows["ops.Softmax.cudatime_fwd.peak_memory(4096, 'fp16')"].split("|")[1].strip() == ""


@pytest.mark.slow
def test_asv_publish_draws_our_numbers(history: tuple[Path, list[str]]) -> None:
    repository, shas = history
    before = {path: path.read_bytes() for path in (repository / "history").rglob("*") if path.is_file()}
    asv(repository, "publish", "--no-pull")
    assert {path: path.read_bytes() for path in (repository / "history").rglob("*") if path.is_file()} == before
    index = json.loads((repository / "html" / "index.json").read_text())
    assert set(shas) <= set(index["revision_to_hash"].values())
    assert index["params"]["gpu"] == ["H100"]
    names = {"ops.Softmax.cudatime_fwd", "ops.track_rate", "ops.cudatime_broken"}
    further = {f"ops.Softmax.cudatime_fwd.{metric}" for metric in ("wall_time", "peak_memory")}
    assert set(index["benchmarks"]) == names | further
    graphs = {path.stem: json.loads(path.read_text()) for path in (repository / "html" / "graphs").rglob("ops.*.json")
              if "summary" not in path.parts}  # fmt: skip
    first = [values[0] for _, values in graphs["ops.Softmax.cudatime_fwd"]]
    assert first == pytest.approx([20.04e-6, 20.04e-6, 30.06e-6], rel=1e-6)
    assert [values[2] for _, values in graphs["ops.Softmax.cudatime_fwd.peak_memory"]] == [262144.0] * 3
    assert [value for _, value in graphs["ops.track_rate"]] == [321.5] * 3
