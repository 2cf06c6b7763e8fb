"""A report is delivered: in every format, to every file, to GitHub's summary; and an error is told to machines too."""

from __future__ import annotations

import csv
import errno
import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from regress.choices import FORMATS
from regress.cli.invocation import _explained, finish, write_table
from tests.conftest import Project, interrupted, regress, start, with_this_checkout
from tests.report import sample
from tests.report.readers import assert_harmless, commands, junit

SUITE = "import proj\ndef cudatime_work(): proj.work()\n"
CODE = "import regress_scripted as d\ndef work(): d.kernel('k', {seconds})\n"


@pytest.fixture
def p(project: Callable[..., Project], monkeypatch: pytest.MonkeyPatch) -> Project:
    """Two commits, the second one 20 % slower."""
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    made = project(check_rounds=2, run_rounds=2)
    made.commit({"proj/__init__.py": CODE.format(seconds=50e-6), "benchmarks/b.py": SUITE})
    made.commit({"proj/__init__.py": CODE.format(seconds=60e-6)}, "fix #1 for @octocat | <img>")
    return made


def test_every_format_goes_to_a_file_of_its_own(p: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    summary = tmp_path / "summary"
    summary.write_text("# from an earlier command\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    files = {form: tmp_path / f"report.{form}" for form in FORMATS}
    result = p.regress("check", "-q", *(f"--output={form}={file}" for form, file in files.items()))
    assert result.code == 1
    assert json.loads(files["json"].read_text())["verdict"] == "FAIL"
    assert_harmless(files["markdown"].read_text())
    assert [row.get("type") for row in junit(files["junit"].read_text()).iter("failure")] == ["regressed"]
    assert [command.name for command in commands(files["github"].read_text())] == ["error", "warning", "notice"]
    added = summary.read_text().removeprefix("# from an earlier command\n")
    assert "| regressed |" in added, "-q is for the output, not for the summary"
    assert_harmless(added)


@pytest.mark.parametrize(("command", "wrong"), [("cat > told.json", ""), ("echo no >&2; exit 7", "exit code 7: no")])
def test_who_is_to_be_told_gets_the_document_and_changes_no_verdict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], command: str, wrong: str
) -> None:
    monkeypatch.chdir(tmp_path)
    report = replace(sample.sweep(), notify=command)
    with pytest.raises(SystemExit) as ended:
        finish(report, {})
    assert ended.value.code == 1
    said = [line for line in capsys.readouterr().out.splitlines() if "nobody was notified" in line]
    assert [f'"notify_command": {wrong}' in line for line in said] == [True] * bool(wrong)
    if not wrong:
        assert json.loads((tmp_path / "told.json").read_text())["remark"] == report.remark


@pytest.mark.parametrize("form", [form for form in FORMATS if form != "github"])
def test_only_github_adds_to_its_summary(
    p: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary"))
    p.regress("list", "--format", form)
    assert not (tmp_path / "summary").exists()


def test_a_summary_that_cannot_be_written_is_no_verdict(
    p: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "nowhere" / "summary"))
    result = p.regress("check", "--format", "github")
    assert result.code == 2
    assert "cannot write" in result.err


def test_an_error_replaces_what_an_earlier_run_has_written(p: Project, tmp_path: Path) -> None:
    """A workspace that is used again would show the last run's green document."""
    files = {form: tmp_path / f"report.{form}" for form in FORMATS}
    for file in files.values():
        file.write_text("PASS of yesterday")
    result = p.regress("check", "-b", "nothing", *(f"--output={form}={file}" for form, file in files.items()))
    assert (result.code, result.out) == (5, "")
    document = json.loads(files["json"].read_text())
    assert (document["verdict"], document["exit_code"]) == ("NOTHING", 5)
    assert document["errors"][0]["message"] == "no benchmark matches 'nothing'"
    (error,) = junit(files["junit"].read_text()).iter("error")
    assert error.get("message") == "no benchmark matches 'nothing'"
    assert "### ⛔ NOTHING · no benchmark matches 'nothing'" in files["markdown"].read_text()
    assert files["text"].read_text().splitlines() == [
        "NOTHING  no benchmark matches 'nothing'",
        f"      why: searched in {p.root}/benchmarks",
        "      fix: regress list",
    ]
    (annotation,) = commands(files["github"].read_text())
    assert annotation.data.splitlines()[-1] == "fix: regress list"


def test_ctrl_c_replaces_it_too(p: Project, tmp_path: Path) -> None:
    mark, file = tmp_path / "mark", tmp_path / "report.xml"
    file.write_text("PASS of yesterday")
    p.write({"benchmarks/b.py": f"import pathlib, time\npathlib.Path({str(mark)!r}).touch()\ntime.sleep(600)\n"})
    result = interrupted(start(p.root, "list", "--output", f"junit={file}"), mark)
    assert result.code == 130
    (error,) = junit(file.read_text()).iter("error")
    assert error.get("type") == "INTERRUPTED"


@pytest.mark.parametrize(
    ("error", "what", "code"),
    [
        (PermissionError(errno.EACCES, "Permission denied", "/srv/x"), "cannot use /srv/x", 2),
        (OSError(errno.EROFS, "Read-only file system", "/srv/x"), "cannot use /srv/x", 2),
        (OSError(errno.ENOSPC, "No space left on device"), "the disk is full", 2),
        (OSError(errno.EMFILE, "Too many open files"), "no more files can be opened", 2),
        (FileNotFoundError(errno.ENOENT, "No such file", "x"), "an internal error: FileNotFoundError: ", 5),
    ],
)
def test_what_the_machine_refuses_is_no_fault_of_ours(error: OSError, what: str, code: int) -> None:
    explained = _explained(error, {})
    assert (explained.what.startswith(what), explained.exit_code) == (True, code)
    assert explained.fix


def test_a_machine_that_reads_the_output_is_told_of_an_error_there(p: Project) -> None:
    result = p.regress("run", "nowhere", "--format", "json")
    document = json.loads(result.out)
    assert (result.code, document["schema"], document["exit_code"]) == (2, "regress.run/1", 2)
    assert "fix:" in result.err


def test_formats_are_loaded_before_anything_is_measured() -> None:
    """Who installs another version meanwhile must not lose the report."""
    code = (
        "import sys; from regress.cli.invocation import invoked\n"
        "with invoked({'form': 'github', 'outputs': [('junit', 'x')]}): print(sorted(name for name in sys.modules "
        "if name in ('regress.report.github', 'regress.report.junit', 'regress.report.markdown')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.count("regress.report.") == 3


def test_sweep_run_and_build_have_all_formats_too(p: Project, tmp_path: Path) -> None:
    for arguments in (["run"], ["sweep", "ALL"], ["build", "HEAD"], ["compare", "HEAD~1", "HEAD"]):
        xml, markdown = tmp_path / f"{arguments[0]}.xml", tmp_path / f"{arguments[0]}.md"
        result = regress(
            p.root, *arguments, f"--output=junit={xml}", f"--output=markdown={markdown}", "--format", "github"
        )
        red = [row for row in junit(xml.read_text()).iter() if row.tag in ("error", "failure")]
        assert bool(red) is bool(result.code), arguments
        assert any(command.name == "error" for command in commands(result.out)) is bool(result.code), arguments
        assert_harmless(markdown.read_text())


def test_no_name_in_a_table_is_a_formula(tmp_path: Path) -> None:
    rows = [["=HYPERLINK(1)", "@SUM(1)", "+x", "-x", "\t=1", "\r=1"], ["-1.5", "+2e-3", "-inf", "a=b", "", "x-y"]]
    write_table(rows, str(tmp_path / "t.csv"))
    with (tmp_path / "t.csv").open(newline="") as file:
        assert list(csv.reader(file)) == [[f"'{row}" for row in rows[0]], rows[1]]


@pytest.mark.parametrize("words", [("check",), ("config",), ("export", "--csv"), ("profile", "x.json")])
def test_a_current_folder_that_is_gone_is_said(tmp_path: Path, words: tuple[str, ...]) -> None:
    folder = tmp_path / "gone"
    folder.mkdir()
    code = "import os, sys; os.rmdir(os.getcwd()); sys.argv = ['regress', *sys.argv[1:]]; from regress.cli import main; main()"
    env = with_this_checkout()
    done = subprocess.run(
        [sys.executable, "-c", code, *words], cwd=folder, env=env, capture_output=True, text=True, check=False
    )
    assert (done.returncode, "the current folder is gone" in done.stderr) == (2, True), done.stderr
