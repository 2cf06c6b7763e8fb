"""The command line itself: help, options, streams, colours, files, and how it ends when something goes wrong."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from regress import __version__
from regress.cli import regress as command_line
from regress.cli.options import Output, Percent, Target
from tests.conftest import LIMIT_S, Project, Result, regress

ROOT = Path(__file__).parents[2]
CODE = "import regress_scripted as d\ndef work(): d.kernel('k', 50e-6)\n"
SUITE = "import proj\ndef cudatime_work(): proj.work()\n"
ESCAPE = "\x1b["


def filled(project: Callable[..., Project]) -> Project:
    """A project of two commits that is quick to measure."""
    p = project(run_rounds=2, check_rounds=2)
    p.commit({"proj/__init__.py": CODE, "benchmarks/b.py": SUITE})
    p.commit({})
    return p


def shell(folder: Path, line: str) -> Result:
    """A shell's command line, in which `regress` is ours."""
    script = f'regress() {{ "{sys.executable}" -m regress "$@"; }}; set -o pipefail; {line}'
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        ["bash", "-c", script], cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    return Result(done.returncode, done.stdout, done.stderr)


# -- help and options ----------------------------------------------------------------------------------------------------


SHOWN = sorted(name for name, command in command_line.commands.items() if not command.hidden)
"""Without what nodes of a cluster are started with."""


@pytest.mark.parametrize("name", SHOWN)
def test_help_of_each_command_shows_how_to_use_it(name: str) -> None:
    result = CliRunner().invoke(command_line, [name, "--help"], prog_name="regress", terminal_width=110)
    assert result.exit_code == 0
    assert f"Usage: regress {name}" in result.output
    assert re.search(r"^  (Examples?|Exit codes):", result.output, re.MULTILINE)
    summary = result.output.splitlines()[2].strip()
    assert summary.endswith((".", "?")), "the first sentence fits on one line"


def test_help_lists_every_command_and_some_examples() -> None:
    result = CliRunner().invoke(command_line, ["-h"], prog_name="regress", terminal_width=80)
    assert result.exit_code == 0
    assert "..." not in result.output.partition("Set up:")[2], "what a command is for is cut short"
    for name in SHOWN:
        assert re.search(rf"^  {name} ", result.output, re.MULTILINE)
    assert "regress demo d && cd d && regress check HEAD~1" in result.output
    for example in re.findall(r"^ +regress (\w+)", result.output.partition("Examples:")[2], re.MULTILINE):
        assert example in command_line.commands


def test_an_environment_is_named_alike_by_every_command() -> None:
    named = {
        name: option.opts
        for name, command in command_line.commands.items()
        for option in command.params
        if option.name in ("environment", "environments")
    }
    assert len(named) >= 9
    assert all("--env" in names for names in named.values()), named


def test_version(tmp_path: Path) -> None:
    assert regress(tmp_path, "--version").out.split()[-1] == __version__


@pytest.mark.parametrize(
    ("arguments", "what", "fix"),
    [
        (["check", "--strct"], "No such option '--strct'", "regress check --help"),
        (["chek"], "No such command 'chek'", "regress --help"),
        (["compare", "HEAD"], "Missing argument 'HEAD'", "regress compare --help"),
        (["check", "a", "b", "c"], "unexpected extra argument", "regress check --help"),
        (["check", "--rounds", "1"], "1 is not in the range", "regress check --help"),
        (["check", "--time-threshold", "fast"], "'fast' is not a percentage", "regress check --help"),
        (["check", "--budget", "soon"], "'soon' is not a duration; write 90s, 10m or 1.5h", "regress check --help"),
        (["check", "--budget", "0m"], "'0m' is out of range", "regress check --help"),
        (["ack", "x", "--level", "9"], "'9' is not a level; write +9.4% or 1.094", "regress ack --help"),
        (["check", "--device", "gpu"], "'gpu' is not one of", "regress check --help"),
        (["run", "--format", "xml"], "'xml' is not one of", "regress run --help"),
        (["run", "--output", "json=."], "'.' is a folder", "regress run --help"),
    ],
)
def test_wrong_usage_is_2_in_words(tmp_path: Path, arguments: list[str], what: str, fix: str) -> None:
    result = regress(tmp_path, *arguments)
    assert (result.code, result.out) == (2, "")
    error, *_, last = result.err.splitlines()
    assert error.startswith("error: ")
    assert what in error
    assert last == f"fix:   {fix}"


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        (["ack", "", "--reason", "r"], "CASE"),
        (["ack", "x", "--reason", " "], "--reason"),
        (["bisect", "x", "", "HEAD"], "GOOD"),
        (["build", "HEAD", ""], "REV..."),
        (["check", "-b", "x", "-b", ""], "-b / --bench"),
        (["demo", ""], "DIRECTORY"),
        (["export", "--csv", ""], "--csv"),
        (["import", "nvbench", "x.json", "--commit="], "--commit"),
        (["once", "x", ""], "REV"),
        (["run", "--machine="], "--machine"),
    ],
)
def test_an_empty_word_is_refused_by_every_command(tmp_path: Path, arguments: list[str], name: str) -> None:
    result = regress(tmp_path, *arguments)
    assert (result.code, result.out) == (2, "")
    what = f"error: {name} is empty: perhaps a shell variable is not set"
    assert result.err.splitlines() == [what, f"fix:   regress {arguments[0]} --help"]


def test_an_error_is_told_with_the_warnings_of_the_configuration(project: Callable[..., Project]) -> None:
    p = filled(project)
    configuration = p.root / "asv.conf.json"
    configuration.write_text(configuration.read_text().replace('"regress"', '"regres"'))
    for command in (["list", "-b", "nothing"], ["report"]):
        result = p.regress(*command)
        assert result.code == 5
        assert [line for line in result.err.splitlines() if not line.startswith("why:")][:2] == [
            'warning: asv.conf.json has "regres", which neither asv nor regress reads; fix: write "regress"',
            "error: no benchmark matches 'nothing'" if command[0] == "list" else "error: there is nothing to report",
        ]


def test_empty_words_that_say_something_are_taken(tmp_path: Path) -> None:
    (tmp_path / "print_words.py").write_text("import sys; sys.exit(f'words: {sys.argv[1:]}')")
    assert "words: ['']" in regress(tmp_path, "profile", "print_words.py", "--", "").err
    assert "asv.conf.json" in regress(tmp_path, "sweep", "--notify-command", "").err.splitlines()[0]


def test_a_file_that_cannot_be_written_is_told_before_anything_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = [
        param for one in command_line.commands.values() for param in one.params if param.metavar in ("FILE", "[FILE]")
    ]
    assert len(files) >= 4
    assert all(isinstance(file.type, Target) for file in files)
    (tmp_path / "file").touch()
    with pytest.raises(click.BadParameter, match="file is not a folder"):
        Target().convert(str(tmp_path / "file" / "x"), None, None)
    monkeypatch.setattr("regress.cli.options.os.access", lambda *_: False)
    with pytest.raises(click.BadParameter, match="is write-protected"):
        Target().convert(str(tmp_path / "x"), None, None)
    with pytest.raises(click.BadParameter, match="is write-protected"):
        Output().convert(f"json={tmp_path / 'x'}", None, None)


def test_ctrl_c_while_the_program_is_loaded_is_130() -> None:
    code = (
        "import sys\n"
        "class Interrupts:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'click': raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Interrupts())\n"
        "from regress.__main__ import main\n"
        "main()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (130, "interrupted\n")


@pytest.mark.parametrize("platform", ["darwin", "win32"])
def test_another_system_is_told_what_it_lacks(platform: str) -> None:
    """There is no fcntl there: nothing that imports it may be in the way of the message."""
    code = (
        f"import sys; sys.platform = {platform!r}; sys.modules['fcntl'] = sys.modules['resource'] = None\n"
        "import regress.__main__; regress.__main__.main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    first, *_ = done.stderr.splitlines()
    assert (done.returncode, first) == (2, f"error: regress needs Linux, and this is {platform}")
    assert "Traceback" not in done.stderr


def test_without_a_command_it_shows_the_commands(tmp_path: Path) -> None:
    result = regress(tmp_path)
    assert result.code == 2
    assert "Set up:" in result.out + result.err


@pytest.mark.parametrize(
    ("text", "value"), [("7%", 0.07), ("0.07", 0.07), (" 7.5 % ", 0.075), ("100%", 1.0), (".5%", 0.005)]
)
def test_a_percentage(text: str, value: float) -> None:
    assert Percent().convert(text, None, None) == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize("text", ["", "%", "7 percent", "0", "0%", "-5%", "7", "101%", "nan", "inf", "1e400"])
def test_what_is_no_percentage(text: str) -> None:
    with pytest.raises(click.BadParameter, match=r"write 5% or 0\.05|5% and 0\.05 mean the same"):
        Percent().convert(text, None, None)


def test_a_threshold_decides(project: Callable[..., Project]) -> None:
    p = project(check_rounds=3)
    p.commit({"proj/__init__.py": CODE, "benchmarks/b.py": SUITE})
    p.commit({"proj/__init__.py": CODE.replace("50e-6", "55e-6")})
    assert p.regress("check", "-q", "--record").code == 1
    assert p.regress("compare", "HEAD~1", "HEAD", "-q").code == 1
    assert p.regress("compare", "HEAD~1", "HEAD", "-q", "--time-threshold", "20%").code == 0


def test_a_pattern_that_is_neither_a_name_nor_an_expression_is_2(project: Callable[..., Project]) -> None:
    p = project()
    suite = "def track_it(text): return len(text)\ntrack_it.params = ['(']\n"
    p.commit({"proj/__init__.py": "", "benchmarks/b.py": suite})
    result = p.regress("list", "-b", "b.track_it(")
    assert (result.code, result.out) == (2, "")
    assert (
        result.err.splitlines()[0] == "error: 'b.track_it(' is neither the name of a benchmark nor a regular expression"
    )
    assert p.regress("list", "-q", "-b", "b.track_it('(')").out == "b.track_it('(')\n", "the name of one is exact"


# -- streams and files ---------------------------------------------------------------------------------------------------


def test_results_go_to_stdout_and_progress_to_stderr(project: Callable[..., Project]) -> None:
    p = filled(project)
    result = p.regress("run")
    assert result.code == 0
    assert [line.partition(":")[0] for line in result.err.splitlines()] == ["trial runs"] * 2 + ["measuring"] * 2
    assert "b.cudatime_work" in result.out
    assert "measuring:" not in result.out
    data = p.regress("run", "--format", "json")
    json.loads(data.out)
    assert data.err.startswith("trial runs: ")


def test_quiet_is_one_line(project: Callable[..., Project]) -> None:
    p = filled(project)
    for arguments in (["run", "-q"], ["check", "-q"], ["compare", "HEAD", "HEAD", "-q"]):
        result = p.regress(*arguments)
        assert (result.code, result.err) == (0, ""), arguments
        assert re.fullmatch(r"PASS  1 case.*\n", result.out), arguments


def test_several_files_are_written_beside_stdout(project: Callable[..., Project], tmp_path: Path) -> None:
    p = filled(project)
    text, data = tmp_path / "seen.txt", tmp_path / "seen.json"
    result = p.regress("run", "--color", "always", "--output", f"text={text}", "--output", f"json={data}")
    assert result.code == 0
    assert ESCAPE in result.out
    assert ESCAPE not in text.read_text(), "a file is never coloured"
    plain = re.sub(r"\x1b\[[0-9;]*m", "", result.out)
    assert plain.splitlines()[1:] == text.read_text().splitlines()[1:], "but for the age of the commit, the same"
    (benchmark,) = [row for row in json.loads(data.read_text())["benchmarks"] if row["primary"]]
    assert benchmark["value"] == pytest.approx(50e-6, rel=0.02)


def test_what_cannot_be_delivered_does_not_look_like_a_verdict(project: Callable[..., Project], tmp_path: Path) -> None:
    p = filled(project)
    good = tmp_path / "good.json"
    result = p.regress("config", "--output", "text=/dev/full", "--output", f"json={good}", "--format", "json")
    assert result.code == 2
    assert result.err.splitlines()[:2] == ["error: cannot write /dev/full", "why:   no space left on device"]
    assert json.loads(result.out) == json.loads(good.read_text()), "everything else is delivered"
    full = shell(p.root, "regress config > /dev/full")
    assert full.code == 2
    assert full.err.splitlines()[0] == "error: cannot print the report"
    assert "Traceback" not in full.err + result.err


def test_a_reader_that_leaves_and_closed_streams_change_nothing(project: Callable[..., Project]) -> None:
    p = filled(project)
    left = shell(p.root, "regress config -v | true")
    assert (left.code, left.err) == (0, "")
    closed = shell(p.root, "regress list >&-")
    assert (closed.code, closed.err) == (0, "")
    no_stderr = shell(p.root, "regress list -q 2>&-")
    assert (no_stderr.code, no_stderr.out) == (0, "b.cudatime_work\n")
    assert shell(p.root, "regress run --quick --output text=seen.txt <&- >&- 2>&-").code == 0
    assert "b.cudatime_work" in (p.root / "seen.txt").read_text()


# -- colour --------------------------------------------------------------------------------------------------------------


def on_a_terminal(folder: Path, arguments: Sequence[str], **environment: str) -> str:
    """What the command line writes to a terminal."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "regress", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        stdout=theirs,
        stderr=subprocess.DEVNULL,
    )
    os.close(theirs)
    seen = b""
    try:
        while select.select([ours], [], [], LIMIT_S)[0]:
            try:
                chunk = os.read(ours, 1 << 16)
            except OSError:  # how Linux says that the other end is closed
                break
            if not chunk:
                break
            seen += chunk
    finally:
        os.close(ours)
    assert process.wait(LIMIT_S) == 0
    return seen.decode()


@pytest.mark.parametrize(
    ("arguments", "environment", "colored"),
    [
        ([], {}, True),
        ([], {"NO_COLOR": "1"}, False),
        ([], {"NO_COLOR": ""}, True),  # no-color.org: present and not empty
        ([], {"TERM": "dumb"}, False),
        (["--color", "never"], {}, False),
        (["--color", "always"], {"NO_COLOR": "1"}, True),
    ],
)
def test_color_on_a_terminal(
    project: Callable[..., Project],
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    environment: dict[str, str],
    colored: bool,
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    seen = on_a_terminal(project().root, ["config", *arguments], **environment)
    assert "time_threshold" in seen
    assert (ESCAPE in seen) is colored


@pytest.mark.parametrize(("color", "colored"), [("auto", False), ("never", False), ("always", True)])
def test_color_elsewhere(project: Callable[..., Project], color: str, colored: bool) -> None:
    p = project()
    assert (ESCAPE in p.regress("config", "--color", color).out) is colored
    assert (ESCAPE in p.regress("list", "-b", "none", "--color", color).err) is colored


# -- when something goes wrong -------------------------------------------------------------------------------------------


def raising(folder: Path, error: str, *arguments: str) -> Result:
    """`regress config` where the command raises."""
    script = f"""
import regress.commands.config as module
def broken(request): raise {error}
module.show_config = broken
from regress.cli import main
main()
"""
    done = subprocess.run(
        [sys.executable, "-c", script, "config", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return Result(done.returncode, done.stdout, done.stderr)


def test_an_internal_error_is_5_in_two_lines_and_with_debug_a_traceback(tmp_path: Path) -> None:
    result = raising(tmp_path, "ZeroDivisionError('by zero')")
    assert (result.code, result.out) == (5, "")
    assert result.err.splitlines() == [
        "error: an internal error: ZeroDivisionError: by zero",
        "fix:   run it again with --debug and report the traceback",
    ]
    debugged = raising(tmp_path, "ZeroDivisionError('by zero')", "--debug")
    assert debugged.code == 5
    assert debugged.err.startswith("Traceback (most recent call last):")
    assert "in broken" in debugged.err


@pytest.mark.parametrize("line", ["re.compile('(')", "open('/nowhere/at/all')"])
def test_an_error_that_the_user_did_not_make_is_not_blamed_on_the_user(tmp_path: Path, line: str) -> None:
    result = raising(tmp_path, f"SystemError() if (re := __import__('re')) and {line} else None")
    assert result.code == 5
    assert "an internal error" in result.err


def test_an_error_in_words_has_a_traceback_with_debug_only(tmp_path: Path) -> None:
    plain = regress(tmp_path, "config")
    assert (plain.code, plain.out) == (2, "")
    assert [line.split(":")[0] for line in plain.err.splitlines()] == ["error", "why", "fix"]
    debugged = regress(tmp_path, "config", "--debug")
    assert debugged.code == 2
    assert "Traceback" in debugged.err
    assert debugged.err.endswith(plain.err)


def test_ctrl_c_is_130_also_before_anything_is_measured(tmp_path: Path) -> None:
    result = raising(tmp_path, "KeyboardInterrupt")
    assert (result.code, result.out) == (130, "")
    assert result.err.strip() == "interrupted"


def test_the_exit_code_is_never_pythons_own(tmp_path: Path) -> None:
    """1 means "regressed": an error must not end with it."""
    for error in ("Exception('x')", "OSError(28, 'full')", "EOFError", "MemoryError", "RecursionError"):
        assert raising(tmp_path, error).code != 1, error


def test_an_update_in_the_middle_of_a_run_does_not_cost_its_report(
    project: Callable[..., Project], tmp_path: Path
) -> None:
    installed = Path(shutil.copytree(ROOT / "regress", tmp_path / "lib" / "regress"))
    p = project(run_rounds=2)
    update = "def setup():\n    for each in pathlib.Path({!r}).rglob('*.py'): each.write_text('raise ImportError')\n"
    suite = f"import pathlib\n{SUITE}{update.format(str(installed / 'report'))}cudatime_work.setup = setup\n"
    p.commit({"proj/__init__.py": CODE, "benchmarks/b.py": suite})
    done = subprocess.run(
        [sys.executable, "-m", "regress", "run", "--output", f"json={tmp_path / 'run.json'}"],
        cwd=p.root,
        env={**os.environ, "PYTHONPATH": str(tmp_path / "lib"), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (installed / "report" / "terminal.py").read_text() == "raise ImportError"
    assert done.returncode == 0, done.stderr
    assert "PASS  1 case" in done.stdout
    assert json.loads((tmp_path / "run.json").read_text())["exit_code"] == 0
