"""One commit in two environments, and released wheels as sides, as a user asks for them."""

from __future__ import annotations

import json
import sys
import sysconfig
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.commands.test_check import KERNEL, document, found
from tests.conftest import Project

READS = """
import os
import regress_scripted as d
def work(): d.kernel("k", float(os.environ.get("SECONDS_OF_A_CALL", "50e-6")))
"""
SUITE = "import proj\ndef cudatime_work(): proj.work()\n"


def wheel(path: Path, code: str, data: str = "") -> Path:
    """A wheel with the package `proj`; with `data` its files lie in that scheme of the .data folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as content:
        content.writestr(f"proj-1.data/{data}/proj/__init__.py" if data else "proj/__init__.py", code)
        content.writestr("proj-1.dist-info/METADATA", "Metadata-Version: 2.1\nName: proj\nVersion: 1\n")
    return path


@pytest.fixture
def p(project: Callable[..., Project]) -> Project:
    return project(
        environments={
            "plain": {"python": sys.executable},
            "slow": {"variables": {"SECONDS_OF_A_CALL": "60e-6"}},
            "old": {"wheel": "dist/proj-1-py3-none-any.whl"},
            "new": {"wheel": "dist/proj-2-py3-none-any.whl"},
            "fetched": {"fetch": "cp dist/proj-2-py3-none-any.whl $WHEELS && echo once >> fetches"},
            "broken": {"fetch": "echo no such release >&2; exit 3"},
            "nothing": {"fetch": "true"},
        }
    )


@pytest.mark.slow
def test_one_commit_in_two_environments(p: Project) -> None:
    p.commit({"proj/__init__.py": READS, "benchmarks/b.py": SUITE})
    sha = p.git("rev-parse", "HEAD")[:8]
    result = p.regress("check", "--base-env", "plain", "--head-env", "slow", "--format", "json")
    report = document(result)
    assert result.code == 1
    assert found(report) == {("b.cudatime_work", "gpu_time"): "regressed"}
    assert report["base"]["sha"] == report["head"]["sha"] == p.git("rev-parse", "HEAD")
    name = f"py{sys.version_info[0]}.{sys.version_info[1]}"
    assert [report[side]["environment"] for side in ("base", "head")] == [f"plain-{name}", f"slow-{name}"]
    (row,) = [entry for entry in report["benchmarks"] if entry["gates"] and entry["verdict"] == "regressed"]
    assert row["ratio"] == pytest.approx(1.2, rel=0.02)
    assert "--base-env plain --head-env slow" in row["repro"]
    again = p.regress("check", "--base-env", f"plain-{name}", "--head-env", f"slow-{name}")
    assert again.code == 1, "the names as they are recorded are understood too"
    assert f"check {sha} {sha} --base-env plain-{name} --head-env slow-{name} -b" in again.out
    (measured,) = [
        row for row in document(p.regress("run", "--env", "slow", "--format", "json"))["benchmarks"] if row["primary"]
    ]
    assert f"run {sha} --env slow -b" in measured["repro"]


def test_what_is_recorded_says_which_environment(p: Project) -> None:
    sha = p.commit({"proj/__init__.py": READS, "benchmarks/b.py": SUITE})
    assert p.regress("run", "--env", "slow", "--machine", "box").code == 0
    assert p.regress("run", "--machine", "box").code == 0
    named, usual = sorted((p.root / "history" / "box").glob(f"{sha[:8]}-*[0-9].json"))
    assert (named.name[9:14], usual.name[9:18]) == ("slow-", "worktree-")
    named_data, usual_data = json.loads(named.read_text()), json.loads(usual.read_text())
    assert named_data["params"]["environment"] == "slow"
    assert named_data["env_vars"] == {"SECONDS_OF_A_CALL": "60e-6"}
    assert "environment" not in usual_data["params"]


@pytest.mark.parametrize(("head", "data"), [("new", ""), ("new", "platlib"), ("fetched", "")])
@pytest.mark.slow
def test_two_wheels_as_sides(p: Project, head: str, data: str) -> None:
    """Whatever the tree holds: its package would fail."""
    p.commit(
        {
            "proj/__init__.py": "raise RuntimeError('the tree')",
            "benchmarks/b.py": SUITE,
            ".gitignore": "dist/\nfetches\n",
        }
    )
    wheel(p.root / "dist" / "proj-1-py3-none-any.whl", KERNEL.format(seconds=50e-6))
    wheel(p.root / "dist" / "proj-2-py3-none-any.whl", KERNEL.format(seconds=60e-6), data)
    for _ in range(2):
        result = p.regress("check", "--base-env", "old", "--head-env", head, "--format", "json")
        assert result.code == 1, result.err
        assert found(document(result)) == {("b.cudatime_work", "gpu_time"): "regressed"}
    if head == "fetched":
        assert (p.root / "fetches").read_text() == "once\n"


def test_a_wheel_against_the_tree(p: Project) -> None:
    p.commit({"proj/__init__.py": KERNEL.format(seconds=50e-6), "benchmarks/b.py": SUITE, ".gitignore": "dist/\n"})
    wheel(p.root / "dist" / "proj-1-py3-none-any.whl", KERNEL.format(seconds=50e-6))
    result = p.regress("check", "--base-env", "old")
    assert result.code == 0, result.out + result.err
    assert "in old-py" in result.out
    assert "in worktree-py" in result.out


@pytest.mark.parametrize(
    ("name", "code", "lines"),
    [
        (
            "next",
            2,
            ["error: there is no environment next", "why:   the configuration has broken, fetched, new, nothing, old"],
        ),
        ("old", 5, ['error: environment "old" has no wheel', "why:   there is no file"]),
        ("broken", 5, ['error: environment "broken" has no wheel', "exit code 3 (no such release)"]),
        (
            "nothing",
            5,
            ['error: environment "nothing" has no wheel', "no wheel into $WHEELS, and one wheel is expected"],
        ),
    ],
)
def test_an_environment_that_is_not_to_be_had(p: Project, name: str, code: int, lines: list[str]) -> None:
    p.commit({"proj/__init__.py": READS, "benchmarks/b.py": SUITE})
    result = p.regress("check", "--head-env", name)
    assert result.code == code
    for line in lines:
        assert line in result.err


@pytest.mark.parametrize(
    ("file", "words", "said"),
    [
        ("docs/requirements-build.txt", (), True),
        ("uv.lock", (), True),
        ("docs/requirements.md", (), False),
        ("uv.lock", ("--base-env", "plain"), False),
    ],
)
def test_other_requirements_in_one_environment_are_said(
    p: Project, file: str, words: tuple[str, ...], said: bool
) -> None:
    p.commit({"proj/__init__.py": READS, "benchmarks/b.py": SUITE})
    p.commit({file: "torch\n"})
    result = p.regress("check", "HEAD~1", "HEAD", *words)
    assert result.code == 0, result.err
    line = (
        f"warning: {file} differ between the sides, but both run in one environment, and regress installs nothing there"
    )
    assert (line in result.out) is said


def test_a_base_whose_extension_was_not_built_is_refused(project: Callable[..., Project]) -> None:
    """The compiled file lies in the working tree alone."""
    p = project()
    native = f"_native{sysconfig.get_config_var('EXT_SUFFIX')}"
    code = "from proj import _native\n" + KERNEL.format(seconds=50e-6)
    p.commit({"proj/__init__.py": code, "benchmarks/b.py": SUITE, "benchmarks/c.py": "def track_x(): return 1\n",
              ".gitignore": "*.so\n"})  # fmt: skip
    p.write(
        {f"proj/{native}": "it is not loaded: the base comes first", "benchmarks/c.py": "def track_x(): return 2\n"}
    )
    result = p.regress("check")
    assert result.code == 5
    assert f"error: base {p.git('rev-parse', 'HEAD')[:8]} has no built extension: proj/{native}" in result.err
    assert '"build" under "regress" in asv.conf.json' in result.err
    assert p.regress("check", "HEAD", "HEAD").code == 5, "a head from a worktree has none either"


@pytest.mark.parametrize(
    ("environments", "said"),
    [
        ({"x": {"pyton": "3"}}, 'environment "x" has {"pyton": "3"}'),
        ({"x": {"variables": {"A": 1}}}, 'environment "x" has {"variables": {"A": 1}}'),
        ({"x": "python3"}, 'environment "x" has "python3"'),
        ({"a/b": {}}, 'environment "a/b" cannot have this name'),
        ({"worktree": {}}, 'environment "worktree" cannot have this name'),
        ({"x": {"wheel": "a.whl", "fetch": "b"}}, 'environment "x" has both a wheel and a command'),
        ({"x": {"asv": "virtualenv", "python": "python3"}}, 'environment "x" has both "asv" and "python"'),
        (["x"], '"environments" is ["x"]'),
    ],
)
def test_an_entry_that_is_none_is_named(project: Callable[..., Project], environments: Any, said: str) -> None:
    p = project(environments=environments)
    p.commit({})
    result = p.regress("list")
    assert result.code == 2
    assert said in result.err


def test_the_setting_says_which_environment_is_the_usual_one(project: Callable[..., Project]) -> None:
    p = project(environment="slow", environments={"slow": {"variables": {"SECONDS_OF_A_CALL": "60e-6"}}})
    p.commit({"proj/__init__.py": READS, "benchmarks/b.py": SUITE})
    p.commit({"README": ""})
    report = document(p.regress("check", "--base-env", "slow", "--format", "json"))
    assert report["base"]["sha"] == p.git("rev-parse", "HEAD~1"), "both are in the usual one, so they are two commits"
    assert {report[side]["environment"][:5] for side in ("base", "head")} == {"slow-"}
    assert document(p.regress("run", "--env", "worktree", "--format", "json"))["environment"].startswith("worktree-")
    result = p.regress("run", "--env", "fast")
    assert (result.code, "there is no environment fast" in result.err) == (2, True)
