"""Implementations side by side, after `regress run` and by `regress fastest` from what is recorded."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from regress.commands.fastest import fastest
from regress.errors import NothingMeasured
from regress.git import open_repository
from regress.history import Store
from regress.model import Report, Side
from regress.report.json import schema
from regress.session import Request
from tests.commands.test_compare import document
from tests.conftest import Project

SUITE = """import regress_scripted as d
class Norm:
    param_names = ["dtype", "implementation", "n"]
    params = [["f32", "f16"], ["torch", "triton", "cupy"], [256, 1024, 4096]]
    def setup(self, dtype, implementation, n):
        if implementation == "cupy":
            raise NotImplementedError("cupy is not installed")
        per_element = {"torch": 10e-9, "triton": 16e-9}[implementation]
        start = {"torch": 20e-6, "triton": 8e-6}[implementation]
        self.seconds = start + per_element * n + (40e-6 if dtype == "f16" and implementation == "torch" else 0)
    def cudatime_norm(self, dtype, implementation, n):
        d.kernel("norm", self.seconds)
def cudatime_plain():
    d.kernel("plain", 20e-6)
"""
NORM = "b.Norm.cudatime_norm"
WORDS = ["triton up to 1024, torch from 4096", "triton at every n"]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the one project of this module is measured, by the first test that wants it."""
    return tmp_path_factory.mktemp("fastest")


@pytest.fixture
def measured(made: Path, tmp_path: Path) -> tuple[Project, dict[str, Any], str]:
    """A copy of a project that `regress run` has measured, what it said as JSON, and what it printed."""
    first, said, printed = made / "project", made / "run.json", made / "run.txt"
    if not said.exists():
        p = Project(first, {"run_rounds": 3, "machine": "box"})
        p.commit({"proj/__init__.py": "", "benchmarks/b.py": SUITE})
        printed.write_text(p.regress("run", "--output", f"json={said}").out)
    copy: Project = Project.__new__(Project)
    copy.root = Path(shutil.copytree(first, tmp_path / "project"))
    return copy, json.loads(said.read_text()), printed.read_text()


Measured = tuple[Project, dict[str, Any], str]


def test_a_run_names_the_fastest_at_each_size_and_the_crossover(measured: Measured) -> None:
    _, data, printed = measured
    jsonschema.Draft202012Validator(schema()).validate(data)
    (implementation,) = data["implementations"]
    assert (implementation["name"], implementation["metric"], implementation["size"]) == (NORM, "gpu_time", "n")
    assert implementation["implementations"] == ["torch", "triton", "cupy"]
    assert implementation["param_names"] == ["dtype", "n"]
    assert [(standing["params"], standing["fastest"]) for standing in implementation["standings"]] == [
        (["'f32'", "256"], "triton"),
        (["'f32'", "1024"], "triton"),
        (["'f32'", "4096"], "torch"),
        (["'f16'", "256"], "triton"),
        (["'f16'", "1024"], "triton"),
        (["'f16'", "4096"], "triton"),
    ]
    assert [crossover["words"] for crossover in implementation["crossovers"]] == WORDS
    kinds = {
        contender["failure"] and contender["failure"]["kind"]
        for contender in implementation["standings"][0]["contenders"]
    }
    assert kinds == {None, "skipped"}
    lines = [" ".join(line.split()) for line in printed.splitlines()]
    assert f"{NORM}: implementations by gpu time" in lines
    assert "dtype, n torch triton cupy fastest" in lines
    row = r"'f32', 4096 [\d.]+ us \* [\d.]+ us skipped torch, then triton \+[\d.]+ %"
    assert any(re.fullmatch(row, line) for line in lines)
    assert "fastest by n, dtype 'f32': triton up to 1024, torch from 4096" in lines


def test_what_is_recorded_says_the_same_without_measuring(measured: Measured) -> None:
    p, ran, printed = measured
    data = document(p.regress("fastest", "--format", "json"))
    assert data["implementations"] == ran["implementations"]
    assert data["schema"] == "regress.fastest/1"
    assert (data["exit_code"], data["machine"]["name"]) == (0, "box")
    shown = p.regress("fastest").out
    table = printed[printed.index(f"  {NORM}: implementations") :]
    assert table[: table.index("\n\n")] in shown
    assert p.regress("fastest", "-q", "-b", NORM).out.splitlines() == [
        f"{NORM}: fastest by n, dtype 'f32': {WORDS[0]}",
        f"{NORM}: fastest by n, dtype 'f16': {WORDS[1]}",
        "18 cases",
    ]


def test_a_later_commit_without_results_shows_the_newest_that_has_some(measured: Measured) -> None:
    p, _, _ = measured
    sha = p.git("rev-parse", "HEAD")
    p.commit({"proj/other.py": ""})
    shown = fastest(Request(start=p.root), None)
    assert shown.head is not None
    assert (shown.head.commit.sha, shown.head.revision) == (sha, "newest with results")
    with pytest.raises(NothingMeasured, match="no results of"):
        fastest(Request(start=p.root), "HEAD")


def test_a_part_of_the_cases_can_be_chosen(measured: Measured) -> None:
    p, _, _ = measured
    shown = fastest(Request(start=p.root, patterns=(r"'f16', '\w+', (256|1024)\b",)), None)
    assert [standing.params for standing in shown.implementations[0].standings] == [("'f16'", "256"), ("'f16'", "1024")]
    with pytest.raises(NothingMeasured, match="no benchmark"):
        fastest(Request(start=p.root, patterns=("no such thing",)), None)


def test_what_has_no_implementations_says_what_to_do(measured: Measured) -> None:
    p, _, _ = measured
    result = p.regress("fastest", "-b", "plain")
    assert result.code == 5
    assert "has no implementations to compare" in result.err
    assert "fewer than two have a time" in result.err
    other = Project(p.root.parent / "other", {"run_rounds": 2, "machine": "box"})
    other.commit({"proj/__init__.py": "", "benchmarks/b.py": SUITE.replace('"implementation", "n"', '"library", "n"')})
    assert other.regress("fastest").code == 5
    assert "implementations" not in other.regress("run", "-b", "f32").out
    assert "none of the benchmarks has a parameter named implementation" in other.regress("fastest").err


def test_environments_are_not_mixed(measured: Measured) -> None:
    p, _, _ = measured
    store = Store(p.root / "history")
    side = Side("head", open_repository(p.root).resolve("HEAD"), "HEAD")
    (recorded,) = store.load(side.commit.sha).recorded
    for round in recorded.rounds:
        values = {name: replace(one, value=2 * one.value) for name, one in round.values.items()}
        store.append(side, recorded.machine, "other", replace(round, values=values))
    store.finish(side, recorded.machine, "other", python="3.9", benchmarks=recorded.benchmarks)

    def shown(environment: str | None = None) -> Report:
        return fastest(Request(start=p.root), "HEAD", environment)

    with pytest.raises(NothingMeasured, match="results in several environments") as raised:
        shown()
    assert f"--environment {min('other', recorded.environment)}" in raised.value.fix
    with pytest.raises(NothingMeasured, match="has no results in third"):
        shown("third")
    one, other = (
        shown(environment).implementations[0].standings[0].contenders[0].summary
        for environment in (recorded.environment, "other")
    )
    assert one is not None
    assert other is not None
    assert other.center == pytest.approx(2 * one.center)
