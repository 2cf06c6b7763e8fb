"""Sides in environments that asv makes: real virtual environments, real builds. Making one takes ten seconds, so these tests
share them and are for one process."""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.commands import test_compiled_extensions as compiled
from tests.commands.asv_suites import BUILD, CODE, NAME, PYTHON, committed, configure
from tests.commands.test_check import document, found
from tests.conftest import Project, Result, ended, interrupted, regress, start

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900), pytest.mark.xdist_group("asv environments")]


def slowly(p: Project, *words: str) -> Result:
    return regress(p.root, *words, timeout_s=400)


@pytest.fixture
def suite(
    project: Callable[..., Project], tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Project]:
    """Makes a Project; keyword arguments are keys of asv's."""
    monkeypatch.setenv("PIP_NO_COMPILE", "1")

    return functools.partial(committed, project, tmp_path_factory.getbasetemp() / "env")


def test_two_commits_are_installed_side_by_side(suite: Callable[..., Project]) -> None:
    p = suite(build_command=[BUILD])
    sha = p.commit({"proj/__init__.py": CODE.format(seconds=65e-6)})
    result = slowly(p, "check", "--format", "json")
    report = document(result)
    assert result.code == 1, result.err
    assert found(report) == {("b.cudatime_work", "gpu_time"): "regressed"}
    assert [report[side]["environment"] for side in ("base", "head")] == [NAME, NAME]
    assert f"head: Installing {sha[:8]} <main> into {NAME}" in result.err

    again = slowly(p, "run", "--machine", "box")
    assert (again.code, "Installing" in again.err) == (0, False), "the commit is installed already"
    (recorded,) = (p.root / "history" / "box").glob(f"{sha[:8]}-{NAME}.json")
    written = json.loads(recorded.read_text())
    assert (written["env_name"], written["params"]["python"]) == (NAME, PYTHON)
    assert (written["requirements"], written["env_vars"]) == ({}, {}), "as asv has it: its series goes on"
    (log,) = Path(os.environ["REGRESS_CACHE_DIR"]).glob(f"{p.root.name}-*/builds/{sha}.log")
    assert "Installing" in log.read_text()
    assert os.environ["HOME"] not in log.read_text(), "variables are nothing for a log"

    p.commit({"proj/__init__.py": CODE.format(seconds=50e-6)})
    p.write(
        {
            "proj/more.py": "SECONDS = 80e-6\n",
            "proj/__init__.py": "from proj.more import SECONDS\n" + CODE.format(seconds="SECONDS"),
        }
    )
    staged = p.git("ls-files", "--stage")
    changed = document(slowly(p, "check", "--format", "json"))
    (timed,) = [row for row in changed["benchmarks"] if row["metric"] == "gpu_time"]
    assert timed["head"] == pytest.approx(80e-6, rel=0.03), "with its new file, as it is in the tree"
    assert p.git("ls-files", "--stage") == staged
    undone = p.git("rev-parse", "HEAD")
    assert f"Building {undone[:8]}" not in slowly(p, "check", "HEAD~2", "HEAD").err, "the same files were built before"


def test_one_commit_in_two_environments_of_the_matrix(suite: Callable[..., Project]) -> None:
    named = {"double": {"asv": f"{NAME}-FACTOR2"}}
    p = suite(
        build_command=[BUILD],
        matrix={"env_nobuild": {"FACTOR": ["1", "2"]}},
        regress={"device": "fake", "environments": named},
    )
    result = slowly(p, "check", "--head-env", "double", "--format", "json")
    report = document(result)
    assert [report[side]["environment"] for side in ("base", "head")] == [f"{NAME}-FACTOR1", f"{NAME}-FACTOR2"]
    assert report["base"]["sha"] == report["head"]["sha"]
    (timed,) = [row for row in report["benchmarks"] if row["metric"] == "gpu_time"]
    assert timed["ratio"] == pytest.approx(2, rel=0.03)
    assert report["warnings"][0] == (
        f"asv.conf.json gives 2 environments, and {NAME}-FACTOR1 was taken; "
        f"by name (--env, --base-env, --head-env): {NAME}-FACTOR2"
    )
    assert result.err.count("Installing") <= 2, "both have what one copy has installed"


def test_a_commit_that_cannot_be_installed(suite: Callable[..., Project]) -> None:
    p = suite(build_command=["python -c \"raise SystemExit('nvcc is not there')\""])
    p.commit({"README": ""})
    result = slowly(p, "check", "HEAD~1", "HEAD")
    base = p.git("rev-parse", "HEAD~1")[:8]
    assert result.code == 5
    error, why, fix = result.err.splitlines()[-3:]
    assert error.startswith(f"error: base {base} cannot be installed in {NAME}: ")
    assert why == "why:   exit code 1: nvcc is not there"
    assert fix.startswith('fix:   correct "build_command" or "install_command" in asv.conf.json')
    assert "nvcc is not there" in Path(fix.rpartition("log: ")[2]).read_text()


def test_ctrl_c_ends_what_asv_started_and_the_next_run_begins_again(
    suite: Callable[..., Project], tmp_path: Path
) -> None:
    pid = tmp_path / "pid"
    waits = (
        f"import os, time; open({str(pid)!r} + '.new', 'w').write(str(os.getpid())); os.rename({str(pid)!r} + '.new', "
    )
    p = suite(build_command=[f'python -c "{waits}{str(pid)!r}); time.sleep(600)"'])
    result = interrupted(start(p.root, "run", "--machine", "box"), pid)
    assert (result.code, result.out, result.err.split()[-1]) == (130, "", "interrupted")
    assert ended(int(pid.read_text()))
    place = json.loads((p.root / "asv.conf.json").read_text())["env_dir"]
    configure(p, Path(place), build_command=[BUILD])
    p.commit({})
    assert "Building" in slowly(p, "run", "--machine", "box").err


@compiled.needs_compiler
def test_each_side_has_its_own_compiled_code_installed(suite: Callable[..., Project]) -> None:
    p = suite(build_command=[BUILD])
    for value in (41, 42):
        p.commit(
            {**compiled.FILES, "src_c/native.c": compiled.C.format(value=value), "benchmarks/b.py": compiled.SUITE}
        )
    assert compiled.values(p) == (41, 42)
    p.write({"src_c/native.c": compiled.C.format(value=43)})
    assert compiled.values(p) == (42, 43), "the working tree with its changes"
