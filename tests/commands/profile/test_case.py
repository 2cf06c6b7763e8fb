"""`regress profile CASE` on the demo's scripted device, and with torch on the CPU."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from click.testing import CliRunner, Result

from regress.cli import regress
from regress.commands.demo import create
from regress.report.json import schema
from tests.conftest import closed

CASE = "ops.Linear.cudatime_forward(2048)"


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("profiled") / "d"
    create(folder, scripted=True)
    return folder


@pytest.fixture(autouse=True)
def _here(demo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(demo)


def invoke(*words: str) -> Result:
    return CliRunner().invoke(regress, ["profile", *words])


def document(*words: str) -> dict[str, Any]:
    done = invoke(*words, "--format", "json")
    data: dict[str, Any] = json.loads(done.stdout)
    jsonschema.Draft202012Validator(closed(schema())).validate(data)
    return data


def test_a_case_in_full() -> None:
    done = invoke(CASE)
    assert done.exit_code == 0, done.output
    lines = [" ".join(line.split()) for line in done.stdout.splitlines()]
    assert lines[0].startswith("rev ")
    assert any(line.startswith("device busy") and "launch" in line and "0 copies" in line for line in lines)
    assert any(line.startswith("matmul 1 ") and line.endswith("scripted::matmul") for line in lines), done.stdout
    assert any(line.startswith("bottleneck matmul, ") for line in lines)
    assert "warning: the device is scripted" in done.stdout
    (trace,) = (line.split()[1] for line in lines if line.startswith("trace "))
    assert Path(trace).is_file()


def test_the_document_says_all_and_fulfils_its_schema() -> None:
    data = document(CASE, "--calls", "3")
    assert data["schema"] == "regress.profiled/1"
    (profile,) = data["profiles"]
    assert (profile["name"], profile["params"]) == ("ops.Linear.cudatime_forward", ["2048"])
    assert profile["calls"] == 3
    assert profile["totals"]["launches"] == sum(kernel["launches"] for kernel in profile["kernels"])
    assert profile["totals"]["launches"] == pytest.approx(
        sum(operator["launches"] for operator in profile["operators"])
    )
    assert profile["on_device"] is True
    assert profile["kernels"][0]["name"] == "matmul"
    assert profile["call_s"] == pytest.approx(profile["totals"]["span_s"], rel=0.5)


def test_several_cases_stand_side_by_side() -> None:
    done = invoke("LayerNorm")
    assert done.exit_code == 0
    rows = [line.split() for line in done.stdout.splitlines() if line.startswith("  ops.LayerNorm.")]
    assert len(rows) == 4
    assert all(" ".join(row[2:]).find("mul, ") > 0 for row in rows)
    assert "operator, alone" not in done.stdout
    assert "operator, alone" in invoke("LayerNorm", "-v").stdout


def test_one_case_against_another() -> None:
    raw = "ops.Softmax.cudatime_forward(4096)"
    data = document("ops.Softmax.cudatime_forward(8192)", "--against", raw)
    base, head = data["profiles"]
    assert (base["params"], head["params"]) == (["4096"], ["8192"])
    difference = data["difference"]
    assert difference["head_s"] - difference["base_s"] == pytest.approx(
        difference["kernels_s"] + difference["idle_s"], rel=0.01
    )
    assert {kernel["matched"] for kernel in difference["kernels"]} == {"name"}
    assert {kernel["kind"] for kernel in difference["kernels"]} == {"slower"}
    lines = [
        line.split() for line in invoke("ops.Softmax.cudatime_forward(8192)", "--against", raw).stdout.splitlines()
    ]
    assert ["base", raw] in lines
    assert ["launches", "5", "5", "+0"] in lines
    assert any(line[:1] == ["exp"] and line[-1] == "%)" for line in lines)


def test_another_commit() -> None:
    (first,) = document(CASE, "HEAD~11")["profiles"]
    assert first["totals"]["launches"] >= 1
    assert first["trace"] != document(CASE)["profiles"][0]["trace"]


def test_the_page_is_written_too(tmp_path: Path) -> None:
    done = invoke("LayerNorm", "--html", str(tmp_path / "page.html"))
    assert done.exit_code == 0, done.output
    page = (tmp_path / "page.html").read_text()
    assert page.count('"name":"ops.LayerNorm.cudatime_forward"') == 4


def test_markdown_has_the_tables() -> None:
    done = invoke(CASE, "--format", "markdown")
    assert "```text" in done.stdout
    assert "bottleneck" in done.stdout


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("softmax",), 5, "did you mean ops.Softmax.cudatime_forward?"),
        (("cudatime_forwrd",), 5, "did you mean "),
        (("zzz",), 5, "fix:   regress list"),
        ((CASE, "nosuch"), 2, "nosuch"),
        ((CASE, "--against", "Softmax"), 2, "2 cases match 'Softmax'; --against compares one with another"),
        ((CASE, "--against", "zzz"), 2, "0 cases match 'zzz'"),
        ((CASE, "--against", "a", "--against", "b"), 2, "--against names 2 cases"),
        ((CASE, "HEAD", "HEAD~1"), 2, "2 revisions and one case"),
        (("nosuch.py", "--", "--steps", "1"), 2, "there is no script nosuch.py"),
    ],
)
def test_what_cannot_be_profiled_says_why(words: tuple[str, ...], code: int, said: str) -> None:
    done = invoke(*words)
    assert done.exit_code == code, done.output
    assert said in done.stderr


SUITE = """
import torch

class Layer:
    params = [["projection", "softmax"], [64]]
    param_names = ["component", "n"]
    def setup(self, component, n):
        self.x = torch.randn(n, n)
    def time_part(self, component, n):
        with torch.profiler.record_function("the middle"):
            return self.x @ self.x if component == "projection" else torch.softmax(self.x, -1)

def time_fails(): raise ValueError("not today")
"""


@pytest.fixture
def layer(demo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    pytest.importorskip("torch")
    suite = tmp_path / "suite"
    suite.mkdir()
    (suite / "__init__.py").write_text("")
    (suite / "layer.py").write_text(SUITE)
    config = {
        "version": 1,
        "project": "d",
        "repo": str(demo),
        "benchmark_dir": str(suite),
        "regress": {"device": "cpu"},
    }
    (tmp_path / "asv.conf.json").write_text(json.dumps(config))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.slow
def test_components_are_parts_of_a_whole(layer: Path) -> None:
    profiles = document("time_part")["profiles"]
    parts = {row["component"]: row["share"] for row in profiles}
    assert set(parts) == {"projection", "softmax"}
    assert sum(parts.values()) == pytest.approx(1.0)
    assert list(parts.values()) == sorted(parts.values(), reverse=True)
    rows = [line.split()[:1] for line in invoke("time_part").stdout.splitlines()]
    assert ["projection"] in rows
    assert ["softmax"] in rows


def test_what_the_program_marks_is_a_component_and_the_cpu_has_no_device_part(layer: Path) -> None:
    data = document("layer.Layer.time_part('softmax', 64)")
    (profile,) = data["profiles"]
    assert [part["name"] for part in profile["parts"]] == ["the middle"]
    assert (profile["on_device"], profile["bound"], profile["kernels"]) == (False, None, [])
    assert "aten::softmax" in {operator["name"] for operator in profile["operators"]}
    assert any("no device work was recorded" in text for text in data["warnings"])


@pytest.mark.slow
def test_what_fails_is_told_beside_the_rest(layer: Path) -> None:
    done = invoke("time_")
    assert done.exit_code == 3
    assert "not today" in done.stdout
    assert "projection" in done.stdout
    assert invoke("time_fails").exit_code == 5


PROGRAM = """
import sys, pathlib, torch
import beside
print("arguments", sys.argv[1:])
x = torch.randn(64, 64)
for _ in range(3):
    x = torch.softmax(x @ x, -1)
sys.exit(beside.code)
"""


def script(folder: Path, *words: str, code: int = 0) -> Result:
    (folder / "beside.py").write_text(f"code = {code}\n")
    (folder / "program.py").write_text(PROGRAM)
    return invoke("program.py", *words)


@pytest.mark.slow
def test_a_script_is_profiled_as_a_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("torch")
    monkeypatch.chdir(tmp_path)  # there is no configuration here
    done = script(tmp_path, "--format", "json", "--", "--steps", "3")
    assert done.exit_code == 0, done.output
    data = json.loads(done.stdout)
    jsonschema.Draft202012Validator(schema()).validate(data)
    (profile,) = data["profiles"]
    calls = {operator["name"]: operator["calls"] for operator in profile["operators"]}
    assert calls["aten::softmax"] == calls["aten::mm"] == 3
    assert Path(profile["trace"]).is_file()
    assert "arguments ['--steps', '3']" in capfd.readouterr().err
    assert "of the program" in script(tmp_path).stdout


def test_a_script_that_fails_is_told_with_what_was_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    monkeypatch.chdir(tmp_path)
    done = script(tmp_path, code=7)
    assert done.exit_code == 3
    assert "the script ended with exit code 7" in done.stdout
    assert "aten::softmax" in done.stdout
