"""A suite in a repository of its own, whose `repo` is the address of the project: real git, worktrees and processes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from regress.history import Store
from regress.session import Request, Session
from tests.commands.test_check import SUITE, code, document
from tests.conftest import Project, Result


class Apart:
    """A project without a suite, and a repository with a suite and no project."""

    def __init__(self, upstream: Project, suite: Project, patch: pytest.MonkeyPatch) -> None:
        self.upstream, self.suite, self._patch, self._day = upstream, suite, patch, 0
        upstream.git("rm", "-rqf", "--ignore-unmatch", "benchmarks", "asv.conf.json")
        self.shas = [self.released(50e-6, "v1"), self.released(50e-6, "v2")]
        config = json.loads((suite.root / "asv.conf.json").read_text())
        self.address = f"file://{upstream.root}"
        suite.commit({"asv.conf.json": json.dumps({**config, "repo": self.address}), "benchmarks/b.py": SUITE})

    def released(self, seconds: float, tag: str) -> str:
        self._day += 1
        for role in ("AUTHOR", "COMMITTER"):
            self._patch.setenv(f"GIT_{role}_DATE", f"{1_700_000_000 + 86_400 * self._day} +0000")
        sha = self.upstream.commit({"proj/__init__.py": code(seconds), "NEWS": tag}, f"release {tag}")
        self.upstream.git("tag", tag)
        return sha

    def regress(self, *arguments: str) -> Result:
        return self.suite.regress(*arguments)

    def recorded(self) -> set[str]:
        return {commit.commit_sha for commit in Store(self.suite.root / "history").commits()}


@pytest.fixture
def apart(project: Callable[..., Project], monkeypatch: pytest.MonkeyPatch) -> Apart:
    return Apart(project("upstream"), project("suite", sweep_rounds=2, run_rounds=2), monkeypatch)


def test_commits_of_the_project_are_judged_with_the_suite_of_the_checkout(apart: Apart) -> None:
    done = apart.regress("check", "HEAD~1", "--format", "json")
    report = document(done)
    assert (done.code, report["base"]["sha"], report["head"]["sha"]) == (0, *apart.shas), done.err
    assert report["head"]["revision"] == "HEAD: branch main"
    assert f"cloning {apart.address}, once" in done.err
    assert f"the project is a clone of {apart.address}, fetched " in done.err
    assert "HEAD is its branch main" in done.err
    slower = apart.released(70e-6, "v3")
    again = apart.regress("check", "v1", "v3", "--format", "json")  # v3 is fetched, as it is not there
    assert (again.code, document(again)["head"]["sha"]) == (1, slower), again.err
    assert "cloning" not in again.err
    assert apart.regress("check", "--quick", "-q").code == 0  # without words: HEAD and its parent
    assert apart.recorded() == set()


@pytest.mark.slow
def test_a_sweep_fetches_what_is_new_and_the_history_lies_beside_the_suite(apart: Apart) -> None:
    assert apart.regress("sweep", "ALL", "-q").code == 0
    assert apart.recorded() == set(apart.shas)
    slower = [apart.released(70e-6, "v3"), apart.released(70e-6, "v4")]
    assert apart.regress("sweep", "--no-fetch", "-q").code == 0
    assert apart.recorded() == set(apart.shas)
    done = apart.regress("sweep", "NEW")
    assert apart.recorded() == {*apart.shas, *slower}, done.err
    result = apart.regress("bisect", "b.cudatime_work", "v1", "v4", "--format", "json")
    assert (result.code, document(result)["bisection"]["found"][0]["sha"]) == (0, slower[0]), result.err
    assert apart.regress("compare", "v2", "v3", "-q").code == 4, "of two sessions"
    assert apart.regress("report", "-q").code == 0
    assert apart.suite.git("status", "--porcelain", "--", "benchmarks") == ""


def test_where_the_project_is_out_of_reach_it_is_said_and_the_report_goes_by_dates(
    apart: Apart, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert apart.regress("sweep", "ALL", "-q").code == 0
    apart.upstream.root.rename(apart.upstream.root.with_name("gone"))
    refused = apart.regress("sweep")
    assert refused.code == 2
    assert f"error: cannot fetch {apart.address}" in refused.err
    assert "--no-fetch to use what is here" in refused.err
    assert apart.regress("sweep", "--no-fetch", "-q").code == 0
    monkeypatch.setenv("REGRESS_CACHE_DIR", str(tmp_path / "another machine"))
    assert "error: cannot clone" in apart.regress("check", "HEAD~1").err
    told = apart.regress("report", "--no-fetch")
    assert (told.code, "2 commits" in told.out) == (0, True), told.err
    assert "commits are ordered by date, without subjects and tags: there is no clone" in told.err
    assert apart.regress("report", "--since", apart.shas[1][:8]).out.count("1 commit;") == 1
    unknown = apart.regress("report", "--since", "v1")
    assert (unknown.code, "tags and branches are not known" in unknown.err) == (2, True)


def test_no_command_shows_a_token_of_the_address(apart: Apart) -> None:
    config = json.loads((apart.suite.root / "asv.conf.json").read_text())
    secret = "https://me:t0ken@localhost:1/owner/proj.git"
    apart.suite.write({"asv.conf.json": json.dumps({**config, "repo": secret})})
    for words in (["config"], ["check"], ["list"]):
        done = apart.regress(*words)
        assert "localhost:1/owner/proj.git" in done.out + done.err
        assert "t0ken" not in done.out + done.err


def test_the_clone_lies_in_the_cache_of_its_address(apart: Apart) -> None:
    session = Session(Request(apart.suite.root))
    assert session.repository.root == session.cache / "repository.git"
    assert session.cache.name.startswith("upstream-")
