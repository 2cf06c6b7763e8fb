"""The benchmark types as a plugin of an unmodified asv: found, listed, run, and light to import."""

from __future__ import annotations

import importlib.metadata
import json
import math
import os
import subprocess
import sys
from typing import Any

import pytest

CONFIG = {
    "version": 1,
    "project": "proj",
    "repo": ".",
    "branches": ["main"],
    "environment_type": "existing",
    "results_dir": "results",
}
SUITE = """
def cudatime_work(n): pass
cudatime_work.params = [1, 2]
class Suite:
    def cudatime_work(self): pass
    def CudaTimeWork(self): pass
    def time_work(self): sum(range(100))
def cudatimes(): raise AssertionError("no benchmark")
"""
MACHINE = {"arch": "any", "cpu": "any", "machine": "box", "num_cpu": "2", "os": "any", "ram": "1"}


def python(code: str) -> Any:
    """What the code prints as JSON in a process that has nothing of this repository but what is installed."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [sys.executable, "-I", "-c", code], env=environment, capture_output=True, text=True, timeout=120, check=True
    )
    return json.loads(done.stdout)


def test_the_distribution_has_the_name_that_asv_runner_looks_for() -> None:
    distribution = importlib.metadata.distribution("asv_bench_regress")
    assert distribution.metadata["Name"] == "asv_bench_regress", "with underscores: dashes are passed over in silence"


def test_asv_runner_finds_our_type() -> None:
    told = python(
        "import json, asv_runner.benchmarks as found\n"
        "print(json.dumps([[each.__module__, each.__name__] for each in found.benchmark_types]))"
    )
    names = [name for _, name in told]
    assert names.count("CudaTimeBenchmark") == 1
    assert {"TimeBenchmark", "TrackBenchmark", "PeakMemBenchmark"} <= set(names), "beside asv's own"
    assert ["regress.measure.bench_types", "CudaTimeBenchmark"] in told


def test_importing_the_plugin_loads_nothing_of_the_driver() -> None:
    loaded = python(
        "import json, sys, asv_runner.benchmarks\n"
        "import regress.asv_plugin.benchmarks.device, asv_bench_regress.benchmarks.device\n"
        "print(json.dumps(sorted(sys.modules)))"
    )
    ours = {name for name in loaded if name.split(".")[0] == "regress"}
    assert "regress.measure.bench_types" in ours
    allowed = ("regress.measure", "regress.asv_plugin")
    assert {name for name in ours if name != "regress" and not name.startswith(allowed)} == set()
    assert "regress.measure.worker" not in ours
    assert {"scipy", "torch", "asv", "click", "git", "rich", "msgspec", "json5"}.isdisjoint(loaded)


# -- a real run ----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def asv_run(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], dict[str, Any], str]:
    """`asv run` of a small suite without a device: the results by name, the benchmarks, and what was printed."""
    root, home = tmp_path_factory.mktemp("asv"), tmp_path_factory.mktemp("home")
    (home / ".asv-machine.json").write_text(json.dumps({"box": MACHINE, "version": 1}))
    (root / "asv.conf.json").write_text(json.dumps(CONFIG))
    (root / "benchmarks").mkdir()
    (root / "benchmarks" / "__init__.py").write_text("")
    (root / "benchmarks" / "b.py").write_text(SUITE)
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith(("GIT_", "ASV_", "PYTHONPATH"))},
        "HOME": str(home),
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        **{f"GIT_{role}_{what}": "ada" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
        "CUDA_VISIBLE_DEVICES": "",  # also where there is one
    }

    def call(*words: str, check: bool = True) -> str:
        done = subprocess.run(
            words, cwd=root, env=environment, capture_output=True, text=True, timeout=120, check=check
        )
        return done.stdout + done.stderr

    call("git", "init", "-q", "-b", "main")
    call("git", "add", "-A")
    call("git", "commit", "-q", "-m", "suite")
    sha = call("git", "rev-parse", "HEAD").strip()
    options = ("--python=same", "--quick", "--machine", "box", "--show-stderr", "--set-commit-hash", sha)
    printed = call(sys.executable, "-m", "asv", "run", *options, check=False)
    (path,) = (root / "results" / "box").glob(f"{sha[:8]}-*.json")
    results = {name: row[0] for name, row in json.loads(path.read_text())["results"].items()}
    return results, json.loads((root / "results" / "benchmarks.json").read_text()), printed


OURS = {"b.cudatime_work", "b.Suite.cudatime_work", "b.Suite.CudaTimeWork"}


@pytest.mark.slow
def test_an_unmodified_asv_runs_the_suite(asv_run: tuple[dict[str, Any], dict[str, Any], str]) -> None:
    results, benchmarks, printed = asv_run
    assert set(benchmarks) - {"version"} == {*OURS, "b.Suite.time_work"}
    assert {(benchmarks[name]["type"], benchmarks[name]["unit"]) for name in OURS} == {("time", "seconds")}
    assert benchmarks["b.cudatime_work"]["params"] == [["1", "2"]]
    assert results["b.Suite.time_work"][0] > 0
    for name in OURS:
        assert all(value is None or math.isnan(value) for value in results[name] or [None]), printed


@pytest.mark.slow
def test_without_a_device_asv_counts_our_benchmarks_as_skipped(
    asv_run: tuple[dict[str, Any], dict[str, Any], str],
) -> None:
    results, _, printed = asv_run
    assert "failed" not in printed
    for name in OURS:
        assert results[name] is not None
        assert all(isinstance(value, float) and math.isnan(value) for value in results[name]), name
