"""Which environment of asv's a name or asv.conf.json means, and what is said where there is none. Nothing is installed."""

from __future__ import annotations

import functools
import json
import sys
from collections.abc import Callable

import pytest

from tests.commands.asv_suites import CODE, NAME, PYTHON, committed
from tests.commands.test_check import document, found
from tests.conftest import Project


@pytest.fixture
def suite(project: Callable[..., Project], tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Project]:
    """Makes a Project; keyword arguments are keys of asv's."""

    return functools.partial(committed, project, tmp_path_factory.getbasetemp() / "env")


def test_an_existing_interpreter_has_asvs_name(suite: Callable[..., Project]) -> None:
    p = suite()
    p.commit({"proj/__init__.py": CODE.format(seconds=65e-6)})
    words = ("--base-env", f"existing:{sys.executable}", "--head-env", "existing:same")
    report = document(p.regress("check", "HEAD~1", "HEAD", *words, "--format", "json"))
    name = f"existing-py{sys.executable.replace('/', '_')}"
    assert [report[side]["environment"] for side in ("base", "head")] == [name, name]
    assert found(report) == {("b.cudatime_work", "gpu_time"): "regressed"}
    assert p.regress("run", "--env", "existing", "--machine", "box").code == 0
    (recorded,) = (p.root / "history" / "box").glob("*-existing-*[!s].json")
    assert json.loads(recorded.read_text())["env_name"] == name


@pytest.mark.parametrize(
    ("asv", "settings"),
    [({"environment_type": "existing"}, {}), ({}, {"environment": "worktree"}), ({"environment_type": ""}, {})],
)
def test_where_asv_installs_nothing_or_is_not_wanted_a_worktree_is_measured(
    suite: Callable[..., Project], asv: dict[str, str], settings: dict[str, str]
) -> None:
    p = suite(**asv, regress={"device": "fake", **settings})
    report = document(p.regress("run", "--format", "json"))
    assert report["environment"] == f"worktree-py{PYTHON}"


@pytest.mark.parametrize(
    ("environment", "code", "error", "why", "fix"),
    [
        ("virtualenv-py3-nmpy", 2, "there is no environment virtualenv-py3-nmpy", f"asv.conf.json gives {NAME}", "name one"),
        ("virtualenv-py2.1", 2, "there is no environment virtualenv-py2.1", "No executable found for python 2.1", "name one"),
        ("virtualenv:2.1", 5, "asv has no environment virtualenv:2.1", "No executable found for python 2.1", "install that"),
        ("rattler", 5, "asv has no environment rattler", "Unknown environment type 'rattler'", "pip install py-rattler"),
        ("mamba", 5, "asv has no environment mamba", "Unknown environment type 'mamba'", '"environment_type" to conda'),
        ("conda", 5, f"asv cannot make the environment conda-py{PYTHON}", "conda", "install conda"),
        ("existing:python9", 5, "there is no interpreter for existing:python9", "python9 cannot be run", "existing:PATH"),
        ("next", 2, "there is no environment next", "the configuration has no environments", '"environments"'),
    ],
)  # fmt: skip
def test_an_environment_that_asv_does_not_have(
    suite: Callable[..., Project],
    monkeypatch: pytest.MonkeyPatch,
    environment: str,
    code: int,
    error: str,
    why: str,
    fix: str,
) -> None:
    monkeypatch.setenv("CONDA_EXE", "/nowhere/conda")
    result = suite().regress("run", "--env", environment)
    assert (result.code, result.out) == (code, "")
    lines = result.err.splitlines()[-3:]
    assert lines[0] == f"error: {error}"
    assert why in lines[1]
    assert fix in lines[2]
    if code == 5 and "existing" not in environment:
        assert '"environment": "worktree"' in lines[2]
