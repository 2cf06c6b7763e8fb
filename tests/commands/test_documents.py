"""`regress import` and `regress compare` of files: what other suites have written, as history and as sides."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from regress.history import Store
from tests.conftest import Project, inside

WRITTEN = Path(__file__).parents[1] / "importers" / "written"
GOOGLE = WRITTEN / "google_benchmark-1.json"


def timed(folder: Path, name: str, runs: Sequence[Sequence[float]]) -> Path:
    """A folder with a document of hyperfine for each run, which have these seconds."""
    (folder / name).mkdir(parents=True)
    for number, times in enumerate(runs):
        result: dict[str, Any] = {"command": "./sort big", "median": sorted(times)[len(times) // 2], "times": times}
        (folder / name / f"{number}.json").write_text(json.dumps({"results": [result]}))
    return folder / name


def recorded(p: Project, sha: str, machine: str = "box") -> list[Any]:
    (result,) = Store(p.root / "history").load(sha, machine).recorded
    return [(str(round.name), round.values) for round in result.rounds]


def test_documents_become_results_once(project: Callable[..., Project]) -> None:
    p = project(machine="box")
    sha = p.commit({})
    first = inside(p, "import", "google-benchmark", str(GOOGLE), "--commit", "HEAD")
    assert (first.code, "1 file: 6 rounds added" in first.out) == (0, True), first.err
    files = {path: path.read_bytes() for path in (p.root / "history").rglob("*.*")}
    again = inside(p, "import", "google-benchmark", str(GOOGLE), "--commit", "HEAD")
    assert "1 file: 0 rounds added, 6 already present" in again.out
    assert {path: path.read_bytes() for path in (p.root / "history").rglob("*.*")} == files
    values = dict(recorded(p, sha))
    assert values["sums.Stack.Push"]["cpu_time"].value == pytest.approx(11.2e-9, rel=0.01)
    more = inside(p, "import", "google-benchmark", str(WRITTEN / "google_benchmark-2.json"), "--commit", "HEAD")
    assert "6 rounds added" in more.out
    assert len([name for name, values in recorded(p, sha) if values]) == 10


def test_what_asv_holds_of_them_comes_back(project: Callable[..., Project]) -> None:
    """Without the sidecar too, names, parameters and what each is about are those of the document."""
    p = project(machine="box")
    sha = p.commit({})
    assert inside(p, "import", "google-benchmark", str(GOOGLE), "--commit", "HEAD").code == 0
    with_sidecar = {(name, metric) for name, values in recorded(p, sha) for metric in values}
    next((p.root / "history" / "box").glob("*.rounds.jsonl")).unlink()
    (result,) = Store(p.root / "history").load(sha, "box").recorded
    own = {(round.name, next(iter(round.values))) for round in result.rounds if round.values}
    assert {("sums.BM_sum<int>", "cpu_time"), ("sums.BM_sum<double>", "wall_time")} <= own
    assert {entry for entry in with_sidecar if entry[1] == result.benchmarks[entry[0]].metric} == own & with_sidecar
    assert result.benchmarks["sums.BM_sum<double>"].param_names == ["n", "arg"]


def test_another_machine_and_name_are_said(project: Callable[..., Project]) -> None:
    p = project(machine="box")
    sha = p.commit({})
    words = ("--machine", "gpu-2", "--env", "plain", "--as", "suite.Sums")
    assert inside(p, "import", "google-benchmark", str(GOOGLE), "--commit", "HEAD", *words).code == 0
    assert {name for name, _ in recorded(p, sha, "gpu-2")} >= {"suite.Sums.BM_copy.short"}
    assert json.loads((p.root / "history" / "gpu-2" / "machine.json").read_text()) == {"machine": "gpu-2", "version": 1}


def test_nothing_is_recorded_where_one_of_them_cannot_be_read(project: Callable[..., Project], tmp_path: Path) -> None:
    p = project()
    p.commit({})
    cut = tmp_path / "cut.json"
    cut.write_bytes(GOOGLE.read_bytes()[:3000])
    for kind, bad, words in (
        ("google-benchmark", cut, "it may have been cut off"),
        ("nvbench", GOOGLE, "Object missing required field `meta`"),
        ("google-benchmark", tmp_path / "none.json", "no such file"),
    ):
        done = inside(p, "import", kind, str(GOOGLE), str(bad), "--commit", "HEAD")
        assert (done.code, words in done.err) == (2, True), done.err
        assert not (p.root / "history").exists()


def test_files_of_runs_are_judged_as_rounds(project: Callable[..., Project], tmp_path: Path) -> None:
    p = project()
    base = [[1.0 + 0.001 * run, 1.01] for run in range(6)]
    old = timed(tmp_path, "old", base)
    new = timed(tmp_path, "new", [[1.08 * value for value in run] for run in base])
    done = inside(p, "compare", f"{old}/", f"{new}/", "--format", "json")
    (case,) = json.loads(done.out)["benchmarks"]
    assert (case["name"], case["verdict"], done.code) == ("./sort_big".removeprefix("./"), "regressed", 1)
    assert case["ratio"] == pytest.approx(1.08)
    assert inside(p, "compare", f"{old}/*.json", f"{old}/").code == 0


def test_with_one_file_a_side_nothing_is_claimed_and_its_samples_are_shown(
    project: Callable[..., Project], tmp_path: Path
) -> None:
    p = project()
    old, new = timed(tmp_path, "old", [[1.0, 1.01, 1.02]]), timed(tmp_path, "new", [[2.0, 2.01, 2.02]])
    done = inside(p, "compare", str(old / "0.json"), str(new / "0.json"))
    assert done.code == 4
    assert "the spread between runs is unknown, 3 samples of the base 1.00 s … 1.02 s" in done.out
    assert "regressed" not in done.out


def test_places_of_recorded_results_are_refused_for_files(project: Callable[..., Project], tmp_path: Path) -> None:
    old = str(timed(tmp_path, "old", [[1.0]]) / "0.json")
    done = inside(project(), "compare", old, old, "--machine", "x", "--head-env", "y")
    assert (done.code, "--machine, --head-env chooses among recorded results" in done.err) == (2, True), done.err


def test_a_case_of_one_side_is_new_or_gone_and_one_that_fails_fails(
    project: Callable[..., Project], tmp_path: Path
) -> None:
    p = project()
    good, bad = {"command": "a", "median": 1.0, "times": [1.0]}, {"command": "a", "median": 1.0, "exit_codes": [1]}
    files = []
    for name, results in (("base", [good, {**good, "command": "b"}]), ("head", [bad, {**good, "command": "c"}])):
        files.append(str(tmp_path / f"{name}.json"))
        Path(files[-1]).write_text(json.dumps({"results": results}))
    done = inside(p, "compare", *files, "--format", "json")
    verdicts = {row["name"]: row["verdict"] for row in json.loads(done.out)["benchmarks"]}
    assert (verdicts, done.code) == ({"a": "failed", "b": "gone", "c": "new"}, 3)
    assert "no benchmark matches 'x'" in inside(p, "compare", *files, "-b", "x").err


def test_a_revision_that_is_no_file_is_still_a_revision(project: Callable[..., Project]) -> None:
    p = project()
    p.commit({})
    assert "no baseline" in inside(p, "compare", "HEAD", "HEAD").err
