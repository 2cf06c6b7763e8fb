"""The recipes of docs/ci.md, the action, the component: they are what their hosts read, and their commands run, on the demo."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from functools import cached_property
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
ACTION = ROOT / ".github" / "actions" / "regress"
COMPONENT = ROOT / "templates" / "regress.yml"
LINTERS = ROOT / "build" / "linters" / "bin"
"""In an environment of their own, which `make test` sets up: check-jsonschema brings another package that is called regress."""


def github(name: str) -> dict[str, Any]:
    """The only job of a workflow."""
    (job,) = yaml.safe_load(RECIPES[name])["jobs"].values()
    return dict(job)


def commands_of(job: dict[str, Any]) -> str:
    (text,) = (step["run"] for step in job["steps"] if "run" in step)
    return str(text)


def step(name: str) -> dict[str, Any]:
    """A step of the action."""
    steps = yaml.safe_load((ACTION / "action.yml").read_text())["runs"]["steps"]
    return dict(next(step for step in steps if step["name"] == name))


def component() -> dict[str, Any]:
    """The job of the component, with the defaults of its inputs filled in as GitLab does."""
    header, text = COMPONENT.read_text().split("\n---\n")
    given = {name: row["default"] for name, row in yaml.safe_load(header)["spec"]["inputs"].items()}
    assert set(re.findall(r"\$\[\[ inputs\.(\w+) \]\]", text)) == set(given)

    def filled(value: Any) -> Any:
        if isinstance(value, dict):
            return {filled(name): filled(threshold) for name, threshold in value.items()}
        if isinstance(value, list):
            return [filled(row) for row in value]
        if isinstance(value, str) and (whole := re.fullmatch(r"\$\[\[ inputs\.(\w+) \]\]", value)):
            return given[whole[1]]
        if isinstance(value, str):
            return re.sub(r"\$\[\[ inputs\.(\w+) \]\]", lambda match: str(given[match[1]]), value)
        return value

    (job,) = filled(yaml.safe_load(text)).values()
    return dict(job)


class Runner:
    """A machine on which the commands of a recipe run: regress is this checkout's, and who would be called is a stub."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.bin = folder / "bin"
        self.bin.mkdir()
        self.program("regress", f'exec {shlex.quote(sys.executable)} -m regress "$@"')

    @cached_property
    def origin(self) -> Path:
        """The demo, with its last commit on a branch of its own."""
        folder = self.folder / "origin"
        create(folder, scripted=True)
        self.git(folder, "checkout", "-q", "-b", "topic")
        self.git(folder, "branch", "-f", "main", "HEAD~1")
        return folder

    def program(self, name: str, script: str) -> None:
        path = self.bin / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)

    def git(self, folder: Path, *arguments: str) -> str:
        done = subprocess.run(["git", *arguments], cwd=folder, check=True, capture_output=True, text=True)
        return done.stdout.strip()

    def clone(self, *arguments: str) -> Path:
        self.git(self.folder, "clone", "-q", *arguments, f"file://{self.origin}", "work")
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


def test_the_workflow_for_forks_runs_nothing_foreign() -> None:
    first, second = (yaml.safe_load(RECIPES[name]) for name in (CHECK, COMMENT))
    assert first[True] == "pull_request", "YAML 1.1 reads the key `on` as true"
    assert second[True]["workflow_run"]["workflows"] == [first["name"]]
    (fetched,) = [row for row in github(COMMENT)["steps"] if "checkout" in row.get("uses", "")]
    assert set(fetched["with"]) == {"sparse-checkout"}, "with a ref it would be the code of the pull request"
    (artifact,) = [row for row in github(COMMENT)["steps"] if "download" in row.get("uses", "")]
    assert artifact["with"]["path"] != ".", "what is in the artifact would replace the script"
    (checkout,) = [row for row in github(CHECK)["steps"] if "checkout" in row.get("uses", "")]
    assert checkout["with"]["fetch-depth"] == 0


def test_what_comes_from_outside_is_no_part_of_a_script() -> None:
    scripts = [
        row["run"] for row in yaml.safe_load((ACTION / "action.yml").read_text())["runs"]["steps"] if "run" in row
    ]
    assert len(scripts) == 4
    for script in (*scripts, commands_of(github(COMMENT))):
        assert "${{" not in script, "the name of a branch would become a part of the script"


def check(runner: Runner, work: Path, **variables: str) -> tuple[Result, dict[str, str]]:
    """The step of the action that checks, and what it hands on."""
    outputs = runner.folder / "outputs"
    outputs.unlink(missing_ok=True)
    inputs = yaml.safe_load((ACTION / "action.yml").read_text())["inputs"]
    given = {
        name: re.sub(r"\$\{\{ inputs\.(\w+) \}\}", lambda m: inputs[m[1]]["default"], text)
        for name, text in step("check")["env"].items()
    }
    given |= {"RUNNER_TEMP": str(runner.folder / "temporary"), "GITHUB_OUTPUT": str(outputs), **variables}
    done = runner.run(step("check")["run"], work, "bash --noprofile --norc -e -o pipefail", **given)
    return done, dict(line.split("=", 1) for line in outputs.read_text().splitlines())


def test_the_check_on_github(runner: Runner) -> None:
    work, summary = runner.clone(), runner.folder / "summary"
    done, handed = check(runner, work, GITHUB_STEP_SUMMARY=str(summary))
    assert (done.code, handed["code"]) == (0, "1"), done.err
    folder = Path(handed["folder"])
    assert [command.name for command in commands(done.out)][:1] == ["error"]
    assert summary.read_text() == (folder / "comment.md").read_text()
    assert_harmless(summary.read_text())
    assert len(junit((folder / "check.xml").read_text()).findall(".//failure")) == 2
    assert runner.git(work, "status", "--porcelain") == "", "nothing is left in the workspace"
    assert runner.run(step("verdict")["run"], work, CODE=handed["code"]).code == 1


def test_options_of_the_action_are_quoted_as_in_a_shell(runner: Runner) -> None:
    runner.program("regress", f'printf "%s\\n" "$@" > {runner.folder}/words; exit 5')
    _, handed = check(runner, runner.folder, OPTIONS="-b 'Softmax (a|b)' --explain", BASE="$(touch x)")
    assert handed["code"] == "5"
    words = (runner.folder / "words").read_text().splitlines()
    assert words[:6] == ["check", "$(touch x)", "HEAD", "-b", "Softmax (a|b)", "--explain"]


def test_the_action_sets_up_what_it_is_told_to(runner: Runner) -> None:
    done = runner.run(step("set up")["run"], runner.folder, INSTALL="false\ntouch there")
    assert done.code == 1
    assert not (runner.folder / "there").exists()


def test_the_gate_holds_a_candidate_against_the_last_release(runner: Runner) -> None:
    assert yaml.safe_load(RECIPES[GATE])["permissions"] == {"contents": "read"}
    for name, revision in (("v1.0", "HEAD~9"), ("v1.1", "HEAD~3"), ("v1.2-rc1", "HEAD~2"), ("v1.2-rc2", "HEAD")):
        runner.git(runner.origin, "tag", name, revision)
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
    report, log = runner.folder / "comment.md", runner.folder / "log"
    report.write_text("### FAIL\n" + "x" * 100_000)
    keep = f'case "$*" in *body=@*) cp "${{6#body=@}}" {runner.folder}/body;; esac'
    runner.program("gh", f'echo "$@" >> {log}\n{keep}\ncase "$*" in *--jq*) echo {known};; esac')
    place = {"GITHUB_ACTION_PATH": str(ACTION), "REPOSITORY": "o/r", "NUMBER": "7"}
    done = runner.run(step("comment")["run"], runner.folder, FILE=str(report), NAME="performance", **place)
    assert done.code == 0, done.err
    listed, written = log.read_text().splitlines()
    assert "repos/o/r/issues/7/comments" in listed
    method, where = ("PATCH", f"comments/{known}") if known else ("POST", "7/comments")
    assert written.startswith(f"api -X {method} repos/o/r/issues/{where} -F body=@")
    body = (runner.folder / "body").read_text()
    assert body.startswith("<!-- regress: performance -->\n### FAIL\n")
    assert len(body) < 65_536


def test_the_comment_on_a_pull_request_from_a_fork(runner: Runner) -> None:
    work, log = runner.folder, runner.folder / "log"
    (work / ".github").symlink_to(ROOT / ".github")
    (work / "performance").mkdir()
    (work / "performance" / "comment.md").write_text("### FAIL\n")
    runner.program("gh", f'echo "$@" >> {log}\ncase "$*" in *pulls*) echo 7;; esac')
    done = runner.run(commands_of(github(COMMENT)), work, REPOSITORY="o/r", HEAD_OWNER="me", HEAD_BRANCH="$(touch x)")
    assert done.code == 0, done.err
    asked, _, written = log.read_text().splitlines()
    assert "head=me:$(touch x)" in asked
    assert written.startswith("api -X POST repos/o/r/issues/7/comments ")
    assert not (work / "x").exists()


def test_no_comment_on_a_commit_that_is_no_longer_the_newest(runner: Runner) -> None:
    log = runner.folder / "log"
    runner.program("gh", f'echo "$@" >> {log}')
    done = runner.run(commands_of(github(COMMENT)), runner.folder, REPOSITORY="o/r", HEAD_OWNER="a", HEAD_BRANCH="b")
    assert (done.code, len(log.read_text().splitlines())) == (0, 1)


def test_a_shallow_clone_says_what_is_shown(runner: Runner) -> None:
    work = runner.clone("--depth", "1")
    done, handed = check(runner, work)
    assert handed["code"] == "2"
    shown = re.search(r"(^ +error: .*?)\n\n", PAGE, re.MULTILINE | re.DOTALL)
    assert shown is not None
    lines = [re.sub(r"[0-9a-f]{8}", "SHA", line.strip()) for line in shown[1].splitlines()]
    assert [re.sub(r"[0-9a-f]{8}", "SHA", line) for line in done.err.splitlines()] == lines
    (error,) = junit((Path(handed["folder"]) / "check.xml").read_text()).iter("error")
    assert "no parent in this shallow clone" in error.get("message")


# -- others --------------------------------------------------------------------------------------------------------------


def test_gitlab(runner: Runner) -> None:
    job, work = component(), runner.clone()
    variables = {name: value for name, value in job["variables"].items() if name != "REGRESS_CACHE_DIR"}
    variables["CI_MERGE_REQUEST_DIFF_BASE_SHA"] = runner.git(work, "rev-parse", "HEAD~1")
    done = runner.run("\n".join([*job["before_script"], *job["script"]]), work, **variables)
    assert done.code == 1, done.err
    assert len(junit((work / job["artifacts"]["reports"]["junit"]).read_text()).findall(".//failure")) == 2
    assert_harmless((work / job["artifacts"]["paths"][0]).read_text())
    assert job["artifacts"]["when"] == "always"
    assert job["variables"]["GIT_DEPTH"] == "0"


MINE, THEIRS = (
    {"id": number, "author": {"id": who}, "body": "<!-- regress: performance -->\nold"}
    for number, who in ((8, 3), (9, 4))
)


@pytest.mark.parametrize(
    "pages, method, place",
    [
        ([[]], "", ""),
        ([[THEIRS], []], "", ""),
        ([[THEIRS], [MINE], []], "--request PUT", "/8"),
    ],
    ids=["first", "somebody else's", "again"],
)
def test_the_comment_on_gitlab(runner: Runner, pages: list[list[object]], method: str, place: str) -> None:
    (work := runner.folder / "work").mkdir()
    (work / "performance.md").write_text("### FAIL\n")
    for number, page in enumerate(pages, 1):
        (runner.folder / f"page{number}").write_text(json.dumps(page))
    log = runner.folder / "log"
    answers = (
        f'*/user) echo \'{{"id": 3}}\';; *page=*) cat {runner.folder}/page"${{last##*page=}}";; *) echo "$@" >> {log};;'
    )
    runner.program("curl", f'for last; do :; done\ncase "$last" in {answers} esac')
    script = "\n".join(component()["after_script"])
    assert runner.run(script, work).code == 0
    assert not log.exists(), "without a token there is no comment"
    api = {"CI_API_V4_URL": "https://x/api", "CI_PROJECT_ID": "3", "CI_MERGE_REQUEST_IID": "5", "COMMENT_TOKEN": "t"}
    done = runner.run(script, work, **api)
    assert done.code == 0, done.err
    (written,) = log.read_text().splitlines()
    assert method in written
    assert written.endswith(f"body@performance-note.md https://x/api/projects/3/merge_requests/5/notes{place}")
    assert (work / "performance-note.md").read_text() == "<!-- regress: performance -->\n### FAIL\n"


def test_an_api_that_does_not_answer_ends_the_comment(runner: Runner) -> None:
    runner.program("curl", "exit 22")
    assert runner.run("\n".join(component()["after_script"]), runner.folder, COMMENT_TOKEN="t").code == 1


def test_the_recipe_gives_the_component_inputs_that_it_has() -> None:
    (included,) = yaml.safe_load(RECIPES[GITLAB])["include"]
    assert ROOT / included["local"].lstrip("/") == COMPONENT
    assert set(included["inputs"]) <= set(
        yaml.safe_load(COMPONENT.read_text().partition("\n---\n")[0])["spec"]["inputs"]
    )
    (used,) = [row for row in github(CHECK)["steps"] if "actions/regress" in row.get("uses", "")]
    assert set(used["with"]) <= set(yaml.safe_load((ACTION / "action.yml").read_text())["inputs"])


@pytest.mark.skipif(not LINTERS.exists(), reason="make test installs the linters")
def test_schemas_and_linters_find_nothing(tmp_path: Path) -> None:
    job = tmp_path / ".gitlab-ci.yml"
    job.write_text(yaml.safe_dump({"performance": component()}))
    workflows = [tmp_path / f"{number}.yml" for number in range(3)]
    for path, name in zip(workflows, (CHECK, COMMENT, GATE), strict=True):
        path.write_text(RECIPES[name])
    kinds = {"github-actions": [ACTION / "action.yml"], "github-workflows": workflows, "gitlab-ci": [job]}
    for kind, paths in kinds.items():
        command = [str(LINTERS / "check-jsonschema"), "--builtin-schema", f"vendor.{kind}", *map(str, paths)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout
    scripts = [ACTION / "comment.sh"]
    for number, text in enumerate([step("check")["run"], commands_of(github(COMMENT)), *component()["after_script"]]):
        scripts.append(tmp_path / f"{number}.sh")
        scripts[-1].write_text(f"#!/bin/bash\n{text}")
    done = subprocess.run([LINTERS / "shellcheck", *scripts], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.slow
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


@pytest.mark.slow
def test_cron(runner: Runner) -> None:
    runner.git(runner.folder, "clone", "-q", "-b", "main", f"file://{runner.origin}", "mylib")
    script = RECIPES[CRON]
    nothing = runner.run(script, runner.folder, "sh")
    assert (nothing.code, nothing.out) == (0, ""), "nothing is new"
    runner.git(runner.origin, "branch", "-f", "main", "topic")
    done = runner.run(script, runner.folder, "sh")
    assert done.code == 1, done.err
    assert "FAIL" in done.out
    assert_harmless((runner.folder / "last.md").read_text())
    assert regress(runner.folder / "mylib", "list", "-q").code == 0


def test_the_exit_code_of_a_recipe_is_that_of_the_check() -> None:
    """The check is the last command of its step: nothing after it decides."""
    (jenkins,) = re.findall(r"sh '''(.*?)'''", RECIPES[JENKINS], re.DOTALL)
    for script in ("\n".join(component()["script"]), jenkins, RECIPES[CRON]):
        last = script.strip().replace("\\\n", " ").splitlines()[-1]
        assert last.strip().startswith("regress check "), last
