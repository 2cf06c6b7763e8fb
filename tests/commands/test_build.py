"""`regress build`: real worktrees and shells, nothing measured."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from regress.report.json import schema
from tests.conftest import Project, Result, interrupted, start

ENVIRONMENTS = {"same": {"python": sys.executable}, "other": {"variables": {"FLAG": "1"}}}
BUILD = "echo building; test ! -e broken && cat number > proj/built.txt"
SUITE = "import proj\ndef track_built(): return proj.built()\n"
PROJ = """
from pathlib import Path
def built(): return float((Path(__file__).parent / "built.txt").read_text())
"""


def builds(result: Result) -> list[dict[str, Any]]:
    assert result.out, result.err
    data = json.loads(result.out)
    jsonschema.Draft202012Validator(schema()).validate(data)
    rows: list[dict[str, Any]] = data["builds"]
    return rows


def states(result: Result) -> list[str]:
    return [build["state"] for build in builds(result)]


@pytest.fixture
def p(project: Callable[..., Project]) -> Project:
    p = project(build=[BUILD], check_rounds=2, environments=ENVIRONMENTS)
    p.commit({"proj/__init__.py": PROJ, "number": "1", "benchmarks/b.py": SUITE, ".gitignore": "built.txt\n"})
    p.commit({"number": "2"})
    return p


def test_what_is_built_once_is_reused_by_the_next_build_and_by_a_check(p: Project) -> None:
    first = p.regress("build", "HEAD~1", "HEAD", "--format", "json")
    assert first.code == 0, first.err
    assert states(first) == ["built", "built"]
    assert all(build["seconds"] > 0 for build in builds(first))
    assert [Path(build["log"]).read_text() for build in builds(first)] == ["building\n"] * 2
    again = p.regress("build", "HEAD~1", "HEAD", "--format", "json")
    assert states(again) == ["reused", "reused"]
    assert "building " not in again.err.replace("building: ", "")
    check = p.regress("check", "HEAD~1", "HEAD", "--format", "json")
    assert "building " not in check.err
    (row,) = json.loads(check.out)["benchmarks"]
    assert (row["base"], row["head"]) == (1, 2)
    assert p.git("status", "--porcelain") == ""


def test_the_text_has_the_log_and_the_next_command(p: Project) -> None:
    head, base = p.git("rev-parse", "HEAD"), p.git("rev-parse", "HEAD~1")
    out = p.regress("build", "HEAD~1", "HEAD", "HEAD~0").out.splitlines()
    assert [line.split()[:2] for line in out[:2]] == [["built", base[:8]], ["built", head[:8]]]
    assert out[0].endswith(f"/builds/{base}.log")
    assert any(line.startswith("PASS  2 built") for line in out), "a commit is built once, however often it is named"
    assert out[-1].split() == ["next", "regress", "check", base[:8], head[:8]]


def test_a_commit_that_does_not_build_is_3_and_the_others_are_built(p: Project) -> None:
    broken = p.commit({"broken": "", "number": "3"})
    p.git("rm", "-q", "broken")
    p.commit({"number": "4"})
    result = p.regress("build", "HEAD~1", "HEAD", "--format", "json")
    assert result.code == 3
    failed, built = builds(result)
    assert (failed["state"], built["state"]) == ("failed", "built")
    assert failed["reason"] == f"commit {broken[:8]} does not build: {BUILD}: exit code 1: building"
    assert failed["fix"].startswith("cd ")
    assert Path(failed["log"]).read_text() == "building\n"
    text = p.regress("build", "HEAD~1", "-q")
    assert (text.code, text.out.splitlines()[0].split()[:3]) == (3, ["!", "failed", broken[:8]])


def test_environments_that_build_alike_share_a_build(p: Project) -> None:
    assert states(p.regress("build", "HEAD", "--format", "json")) == ["built"]
    named = [word for name in ("worktree", "same", "other") for word in ("--env", name)]
    result = p.regress("build", "HEAD", *named, "--format", "json")
    assert [(build["side"]["environment"], build["state"]) for build in builds(result)] == [
        ("worktree", "reused"),
        ("same", "reused"),
        ("other", "built"),
    ]


def test_where_nothing_is_to_be_built_it_says_so(project: Callable[..., Project]) -> None:
    p = project()
    p.commit({"proj/__init__.py": ""})
    result = p.regress("build", "HEAD")
    assert result.code == 0
    assert 'PASS  1 ready, nothing to build: "build" under "regress" is empty' in result.out


@pytest.mark.parametrize(
    ("arguments", "code", "error"),
    [
        ((), 2, "error: Missing argument 'REV...'"),
        (("HEAD", "nonsense"), 2, "error: unknown revision 'nonsense'"),
        (("HEAD~1..HEAD",), 2, "error: HEAD~1..HEAD is a range, and build takes commits"),
        (("HEAD", "--env", "worktree", "--env", "nightly"), 2, "error: there is no environment nightly"),
        (("HEAD", "--env", "gone"), 5, "error: there is no interpreter /nowhere/python"),
    ],
)
def test_what_cannot_be_built(
    project: Callable[..., Project], arguments: tuple[str, ...], code: int, error: str
) -> None:
    p = project(build=["touch made"], environments={"gone": {"python": "/nowhere/python"}})
    p.commit({})
    p.commit({})
    result = p.regress("build", *arguments)
    assert (result.code, result.out) == (code, "")
    assert result.err.splitlines()[[line[:6] for line in result.err.splitlines()].index("error:")].startswith(error)
    assert "building " not in result.err.replace("building: ", ""), "nothing is built before all are known"


def test_ctrl_c_keeps_what_is_built(project: Callable[..., Project], tmp_path: Path) -> None:
    started = tmp_path / "started"
    p = project(build=[f"test ! -e slow || {{ touch {started}; sleep 60; }}"])
    p.commit({"a": ""})
    p.commit({"slow": ""})
    result = interrupted(start(p.root, "build", "HEAD~1", "HEAD", "--format", "json"), started)
    assert result.code == 130, result.err
    assert states(result) == ["built"]
    assert states(p.regress("build", "HEAD~1", "--format", "json")) == ["reused"]
