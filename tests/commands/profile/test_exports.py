"""`regress profile`: shown, judged, recorded."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
from click.testing import CliRunner, Result

from regress.cli import regress
from regress.commands.demo import create
from regress.history import Store
from tests.traces.exports import export
from tests.traces.test_documents import SCHEMA

OLD, NEW = (
    ("old-1.json", "old-2.json", "old-3.json", "old-4.json"),
    ("new-1.json", "new-2.json", "new-3.json", "new-4.json"),
)


@pytest.fixture(scope="module")
def exports(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("exports")
    for seed, name in enumerate(OLD):
        export(folder / name, seed)
    for seed, name in enumerate(NEW):
        export(folder / name, seed + 10, slower=1.2)
    return folder


def invoke(*words: str) -> Result:
    return CliRunner().invoke(regress, ["profile", *words])


@pytest.fixture(autouse=True)
def _here(exports: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(exports)


def against(*names: str) -> list[str]:
    return [word for name in names for word in ("--against", name)]


def test_an_export_is_shown() -> None:
    done = invoke("old-1.json")
    assert done.exit_code == 0
    lines = done.stdout.splitlines()
    assert lines[0].startswith("on ")
    row = next(line.split() for line in lines if line.strip().startswith("attention"))
    assert row[:3] == ["attention", "gpu", "60"]
    assert "1. attention: " in done.stdout
    assert "by its kernels: 100 % of their time is in such as flash_fwd_kernel" in done.stdout
    assert "optimizer: " in done.stdout
    assert "warning: the device is scripted" in done.stdout
    assert lines[-1] == "6 operations, 210 entries"


def test_the_json_is_an_export() -> None:
    done = invoke("old-1.json", "--format", "json")
    data = json.loads(done.stdout)
    jsonschema.Draft202012Validator(SCHEMA).validate(data)
    assert data["exit_code"] == 0
    assert data["entries"] == json.loads(Path("old-1.json").read_text())["entries"]


def test_several_runs_a_side_give_verdicts() -> None:
    done = invoke(*NEW, *against(*OLD), "--format", "json")
    assert done.exit_code == 1, done.stdout
    rows = {(row["name"], tuple(row["params"]), row["metric"]): row for row in json.loads(done.stdout)["benchmarks"]}
    for size in (1024, 2048):
        row = rows["attention", (f"size={size}",), "gpu_time"]
        assert row["verdict"] == "regressed"
        assert row["ratio"] == pytest.approx(1.2, abs=0.02)
        assert row["n"] == {"base": 4, "head": 4}
    assert rows["to_device", (), "gpu_time"]["verdict"] == "unchanged"
    assert rows["load", (), "wall_time"]["verdict"] in ("unchanged", "undecided")


def test_entries_of_one_run_are_no_rounds() -> None:
    """120 entries a side, 20 % apart and hardly any spread: still one round each."""
    done = invoke("new-1.json", *against("old-1.json"))
    assert done.exit_code == 4, "nothing was decided"
    assert "regressed" not in done.stdout
    assert "n = 1 on the base and the head" in done.stdout
    assert "an export is one round, and there is 1 on the base and 1 on the head" in done.stdout
    assert invoke("new-1.json", *against("old-1.json"), "--strict").exit_code == 4


def test_swapping_the_sides_mirrors_the_verdict() -> None:
    done = invoke(*OLD, *against(*NEW))
    assert done.exit_code == 0
    assert "improved" in done.stdout


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (("nothing.json",), "nothing.json is not an export of GPUProfiler"),
        (("old-1.json", "--against", "old.js"), "old.js is not an export of GPUProfiler"),
        ((".",), ". is not an export of GPUProfiler"),
        (("old-1.json", "old-2.json"), "2 exports and nothing to compare them with"),
        (("broken.json",), "broken.json is not an export of GPUProfiler"),
        (("old-1.json", "--record", "HEAD", "--against", "old-2.json"), "--record and --against cannot be combined"),
    ],
)
def test_what_cannot_be_shown_says_why(words: tuple[str, ...], what: str) -> None:
    Path("broken.json").write_text('{"schema": "regress.profile/1"}')
    done = invoke(*words)
    assert done.exit_code == 2
    assert what in done.stderr


def test_an_export_becomes_a_commits_result(exports: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    create(tmp_path / "d", scripted=True)
    monkeypatch.chdir(tmp_path / "d")
    words = [str(exports / name) for name in (*OLD, *NEW)]
    for names, revision in ((words[:4], "HEAD~1"), (words[4:], "HEAD")):
        done = invoke(*names, "--record", revision)
        assert done.exit_code == 0, done.stderr
        again = invoke(*names, "--record", revision)
        assert again.exit_code == 0, again.stderr
    (newest,) = Store(Path("history")).load(Store(Path("history")).commits()[-1].commit_sha).recorded
    assert newest.environment == "profiled"
    assert {round.name for round in newest.rounds} >= {"profiled.attention", "profiled.to_device"}
    compared = CliRunner().invoke(regress, ["compare", "HEAD~1", "HEAD", "--format", "json"])
    rows = {
        (row["name"], tuple(row["params"]), row["metric"]): row for row in json.loads(compared.stdout)["benchmarks"]
    }
    attention = rows["profiled.attention", ("size=1024",), "gpu_time"]
    assert (attention["verdict"], attention["n"]["base"]) == ("regressed", 4), "each export once"
    assert compared.exit_code == 1


def test_an_export_of_another_machine_needs_its_name(
    exports: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(tmp_path / "d", scripted=True)
    monkeypatch.chdir(tmp_path / "d")
    data = json.loads((exports / "old-1.json").read_text()) | {"machine": "elsewhere"}
    Path("other.json").write_text(json.dumps(data))
    done = invoke("other.json", "--record", "HEAD")
    assert done.exit_code == 2
    assert "the export is of another machine: elsewhere" in done.stderr
    assert invoke("other.json", "--record", "HEAD", "--machine", "elsewhere").exit_code == 0
