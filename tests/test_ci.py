"""The recipes of docs/ci.md: they are what their hosts read, and their commands are run, on the demo."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from regress.commands.demo import create
from tests.conftest import Result, regress, with_this_checkout
from tests.report.readers import assert_harmless, commands, junit

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "ci.md").read_text()
RECIPES = {
    name: text
    for text in re.findall(r"^```(?:yaml|groovy|sh)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    for name in re.findall(r"^(?:#|//) (\S+)$", text, re.MULTILINE)[:1]
}
"""File -> its text."""
CHECK, COMMENT = ".github/workflows/performance.yml", ".github/workflows/performance-comment.yml"
GATE = ".github/workflows/release-gate.yml"
GITLAB, JENKINS, CRON = ".gitlab-ci.yml", "Jenkinsfile", "/srv/bench/check-new.sh"


def github(name: str) -> dict[str, Any]:
    """The only job of a workflow."""
    (job,) = yaml.safe_load(RECIPES[name])["jobs"].values()
    return dict(job)


def commands_of(job: dict[str, Any]) -> str:
    (text,) = (step["run"] for step in job["steps"] if "run" in step)
    return str(text)


class Runner:
    """A machine on which the commands of a recipe run: regress is this checkout's, and who would be called is a stub."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.bin = folder / "bin"
        self.bin.mkdir()
        self.program("regress", f'exec {shlex.quote(sys.executable)} -m regress "$@"')
        create(folder / "origin", scripted=True)
        self.git(folder / "origin", "checkout", "-q", "-b", "topic")
        self.git(folder / "origin", "branch", "-f", "main", "HEAD~1")

    def program(self, name: str, script: str) -> None:
        path = self.bin / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)

    def git(self, folder: Path, *arguments: str) -> str:
        done = subprocess.run(["git", *arguments], cwd=folder, check=True, capture_output=True, text=True)
        return done.stdout.strip()

    def clone(self, *arguments: str) -> Path:
        self.git(self.folder, "clone", "-q", *arguments, f"file://{self.folder}/origin", "work")
        return self.folder / "work"

    def run(self, script: str, folder: Path, shell: str = "bash -e", **variables: str) -> Result:
        done = subprocess.run(
            [*shell.split(), "-c", script.replace("/srv/bench", str(self.folder))],
            cwd=folder,
            env={**with_this_checkout(), "PATH": f"{self.bin}{os.pathsep}{os.environ['PATH']}", **variables},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        return Result(done.returncode, done.stdout, done.stderr)


@pytest.fixture
def runner(tmp_path: Path) -> Runner:
    return Runner(tmp_path)


def test_all_recipes_are_tested() -> None:
    assert set(RECIPES) == {CHECK, COMMENT, GATE, GITLAB, JENKINS, CRON}


# -- GitHub --------------------------------------------------------------------------------------------------------------


def test_the_workflow_that_runs_foreign_code_can_write_nothing_and_the_other_runs_none() -> None:
    first, second = (yaml.safe_load(RECIPES[name]) for name in (CHECK, COMMENT))
    assert first["permissions"] == {"contents": "read"}
    assert first[True] == "pull_request", "YAML 1.1 reads the key `on` as true"
    assert second[True]["workflow_run"]["workflows"] == [first["name"]]
    assert all("checkout" not in step.get("uses", "") for step in github(COMMENT)["steps"])
    for name in (CHECK, COMMENT):
        assert "${{" not in commands_of(github(name)), "the name of a branch would become a part of the script"
    (checkout,) = [step for step in github(CHECK)["steps"] if "checkout" in step.get("uses", "")]
    assert checkout["with"]["fetch-depth"] == 0


def test_the_check_on_github(runner: Runner) -> None:
    work = runner.clone()
    temporary, summary = runner.folder / "temporary", runner.folder / "summary"
    temporary.mkdir()
    variables = {"RUNNER_TEMP": str(temporary), "GITHUB_STEP_SUMMARY": str(summary)}
    done = runner.run(commands_of(github(CHECK)), work, **variables)
    assert done.code == 1, done.err
    assert [each.name for each in commands(done.out)][:1] == ["error"]
    assert summary.read_text() == (temporary / "performance" / "comment.md").read_text()
    assert_harmless(summary.read_text())
    assert len(junit((temporary / "performance" / "check.xml").read_text()).findall(".//failure")) == 2
    assert runner.git(work, "status", "--porcelain") == "", "nothing is left in the workspace"


def test_the_gate_holds_a_candidate_against_the_last_release(runner: Runner) -> None:
    assert yaml.safe_load(RECIPES[GATE])["permissions"] == {"contents": "read"}
    for name, revision in (("v1.0", "HEAD~9"), ("v1.1", "HEAD~3"), ("v1.2-rc1", "HEAD~2"), ("v1.2-rc2", "HEAD")):
        runner.git(runner.folder / "origin", "tag", name, revision)
    work = runner.clone()
    temporary = runner.folder / "temporary"
    temporary.mkdir()
    done = runner.run(commands_of(github(GATE)), work, RUNNER_TEMP=str(temporary))
    assert done.code == 1, done.err
    page = (temporary / "gate" / "gate.md").read_text()
    assert page.startswith("### ❌ FAIL")
    assert f"{runner.git(work, 'rev-parse', '--short=8', 'v1.1')} " in page


@pytest.mark.parametrize("known", ["", "4711"], ids=["first", "again"])
def test_the_comment_on_github(runner: Runner, known: str) -> None:
    work = runner.folder / "artifact"
    work.mkdir()
    (work / "comment.md").write_text("### FAIL\n" + "x" * 100_000)
    log = runner.folder / "log"
    runner.program("gh", f'echo "$@" >> {log}\ncase "$*" in *pulls*) echo 7;; *--jq*) echo {known};; esac')
    done = runner.run(commands_of(github(COMMENT)), work, REPOSITORY="o/r", HEAD_OWNER="me", HEAD_BRANCH="$(touch x)")
    assert done.code == 0, done.err
    asked, listed, written = log.read_text().splitlines()
    assert "head=me:$(touch x)" in asked
    assert "repos/o/r/issues/7/comments" in listed
    method, place = ("PATCH", f"comments/{known}") if known else ("POST", "7/comments")
    assert written == f"api -X {method} repos/o/r/issues/{place} -F body=@body.md --silent"
    body = (work / "body.md").read_text()
    assert body.startswith("<!-- performance -->\n### FAIL\n")
    assert len(body) < 65_536
    assert not (work / "x").exists()


def test_no_comment_on_a_commit_that_is_no_longer_the_newest(runner: Runner) -> None:
    log = runner.folder / "log"
    runner.program("gh", f'echo "$@" >> {log}')
    done = runner.run(commands_of(github(COMMENT)), runner.folder, REPOSITORY="o/r", HEAD_OWNER="a", HEAD_BRANCH="b")
    assert (done.code, len(log.read_text().splitlines())) == (0, 1)


def test_a_shallow_clone_says_what_is_shown(runner: Runner) -> None:
    work = runner.clone("--depth", "1")
    done = runner.run(commands_of(github(CHECK)), work, RUNNER_TEMP=str(runner.folder))
    assert done.code == 2
    shown = re.search(r"(^ +error: .*?)\n\n", PAGE, re.MULTILINE | re.DOTALL)
    assert shown is not None
    lines = [re.sub(r"[0-9a-f]{8}", "SHA", line.strip()) for line in shown[1].splitlines()]
    assert [re.sub(r"[0-9a-f]{8}", "SHA", line) for line in done.err.splitlines()] == lines
    (error,) = junit((runner.folder / "performance" / "check.xml").read_text()).iter("error")
    assert "no parent in this shallow clone" in error.get("message")


# -- others --------------------------------------------------------------------------------------------------------------


def test_gitlab(runner: Runner) -> None:
    (job,) = yaml.safe_load(RECIPES[GITLAB]).values()
    work = runner.clone()
    log = runner.folder / "log"
    runner.program("curl", f'echo "$@" >> {log}')
    variables = {name: value for name, value in job["variables"].items() if name != "REGRESS_CACHE_DIR"}
    variables["CI_MERGE_REQUEST_DIFF_BASE_SHA"] = runner.git(work, "rev-parse", "HEAD~1")
    done = runner.run("\n".join(job["script"]), work, **variables)
    assert done.code == 1, done.err
    assert len(junit((work / job["artifacts"]["reports"]["junit"]).read_text()).findall(".//failure")) == 2
    assert_harmless((work / job["artifacts"]["paths"][0]).read_text())
    assert job["artifacts"]["when"] == "always"
    assert job["variables"]["GIT_DEPTH"] == "0"
    assert runner.run("\n".join(job["after_script"]), work).code == 0
    assert not log.exists(), "without a token there is no comment"
    api = {"CI_API_V4_URL": "https://x/api", "CI_PROJECT_ID": "3", "CI_MERGE_REQUEST_IID": "5"}
    assert runner.run("\n".join(job["after_script"]), work, COMMENT_TOKEN="t", **api).code == 0
    assert log.read_text().endswith("body@performance.md https://x/api/projects/3/merge_requests/5/notes\n")


def test_jenkins(runner: Runner) -> None:
    text = RECIPES[JENKINS]
    assert text.count("{") == text.count("}")
    (script,) = re.findall(r"sh '''(.*?)'''", text, re.DOTALL)
    (document,) = re.findall(r"junit '(.+?)'", text)
    work = runner.clone()
    done = runner.run(script, work, "sh -xe", CHANGE_TARGET="main")
    assert done.code == 1, done.err
    assert len(junit((work / document).read_text()).findall(".//failure")) == 2
    again = runner.run(
        script.replace("HEAD --budget", "HEAD -b nothing --budget"), work, "sh -xe", CHANGE_TARGET="main"
    )
    assert again.code == 5
    assert junit((work / document).read_text()).findall(".//error"), "and not the failures of the build before"


def test_cron(runner: Runner) -> None:
    runner.git(runner.folder, "clone", "-q", "-b", "main", f"file://{runner.folder}/origin", "mylib")
    script = RECIPES[CRON]
    nothing = runner.run(script, runner.folder, "sh")
    assert (nothing.code, nothing.out) == (0, ""), "nothing is new"
    runner.git(runner.folder / "origin", "branch", "-f", "main", "topic")
    done = runner.run(script, runner.folder, "sh")
    assert done.code == 1, done.err
    assert "FAIL" in done.out
    assert_harmless((runner.folder / "last.md").read_text())
    assert regress(runner.folder / "mylib", "list", "-q").code == 0


def test_the_exit_code_of_a_recipe_is_that_of_the_check() -> None:
    """The check is the last command of its step: nothing after it decides."""
    (gitlab,) = yaml.safe_load(RECIPES[GITLAB]).values()
    (jenkins,) = re.findall(r"sh '''(.*?)'''", RECIPES[JENKINS], re.DOTALL)
    for script in (commands_of(github(CHECK)), "\n".join(gitlab["script"]), jenkins, RECIPES[CRON]):
        last = script.strip().replace("\\\n", " ").splitlines()[-1]
        assert last.strip().startswith("regress check "), last
