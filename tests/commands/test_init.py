"""`regress init`: in repositories with nothing, with a suite, with a configuration, and where something is wrong."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from regress import config as configuration
from regress.commands.init import files
from regress.commands.init.classified import Classified, covering
from regress.commands.init.text import File
from regress.report.json import schema
from regress.run.job import JobResult
from tests.conftest import Result, interrupted, regress, start

PROJ = "import regress_scripted as d\ndef work(): d.kernel('k', 50e-6)\ndef host(): d.host(20e-6)\n"
OPS = """
import proj
import regress_scripted as d
class Norm:
    def time_trailing(self): proj.work(); d.synchronize()
    def time_free(self): proj.work()
class Mixed:
    params = ["cpu", "cuda"]
    def time_on(self, device): proj.work() if device == "cuda" else proj.host()
class Others:
    def time_host(self): proj.host()
    def time_between(self): proj.work(); d.synchronize(); proj.work()
    def timeraw_import(self): return "pass"
    def track_size(self): return 3
    def cudatime_work(self): proj.work()
    def time_bad(self): 1 / 0
class Elsewhere:
    def setup(self): raise NotImplementedError
    def time_x(self): pass
"""
GPU = "import proj\nimport regress_scripted as d\ndef time_a(): proj.work(); d.synchronize()\n"
CONFIG = """{
  // ours
  "version": 1,
  "project": "proj",
  "repo": ".", /* the folder above */
  'matrix': {"req": {"numpy": []}}  // pinned, see "docs" {
}
"""


@pytest.fixture
def repository(tmp_path: Path) -> Callable[..., Path]:
    """Makes a git repository with these files, committed if there are any."""

    def make(files: Mapping[str, str] | None = None, branch: str = "trunk") -> Path:
        root = tmp_path / "repo"
        root.mkdir()
        subprocess.run(["git", "init", "-q", "-b", branch], cwd=root, check=True)
        for name, text in (files or {}).items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
        if files:
            subprocess.run(["git", "add", "-A"], cwd=root, check=True)
            subprocess.run(["git", "commit", "-q", "-m", "first"], cwd=root, check=True)
        return root

    return make


def document(result: Result) -> dict[str, Any]:
    assert result.out, result.err
    data: dict[str, Any] = json.loads(result.out)
    jsonschema.Draft202012Validator(schema()).validate(data)
    return data


def untracked(root: Path) -> set[str]:
    done = subprocess.run(
        ["git", "status", "--porcelain", "-uall"], cwd=root, capture_output=True, text=True, check=True
    )
    return set(done.stdout.split("\n")) - {""}


# -- where there is nothing ----------------------------------------------------------------------------------------------


def test_where_there_is_no_commit_it_says_to_make_one(repository: Callable[..., Path]) -> None:
    """What is to be tried next would fail."""
    root = repository()
    assert regress(root, "init").out.splitlines()[-3].split() == ["first", "git", "add", "-A", "&&", "git", "commit"]
    refused = regress(root, "run", "--quick")
    assert (refused.code, refused.err.splitlines()[-1]) == (2, "fix:   git add -A && git commit")


def test_a_repository_without_a_suite_gets_one_that_runs(repository: Callable[..., Path]) -> None:
    root = repository({"proj.py": "", ".gitignore": "*.so"})
    result = regress(root, "init")
    assert (result.code, result.err) == (0, "")
    assert [line.split() for line in result.out.splitlines()] == [
        ["ok", "wrote", "asv.conf.json"],
        ["ok", "wrote", ".gitignore:", "__pycache__/,", ".asv/,", "report/"],
        ["ok", "wrote", "benchmarks/__init__.py,", "benchmarks/example.py"],
        [],
        ["try", "regress", "run", "--quick"],
        ["then", "regress", "check"],
    ]
    assert (root / ".gitignore").read_text() == "*.so\n__pycache__/\n.asv/\nreport/\n", "what was there stays"
    loaded = configuration.load(None, root)
    assert (loaded.branches, loaded.project, loaded.warnings) == (("trunk",), "repo", ())
    quick = regress(root, "run", "--quick")
    assert quick.code == 0, quick.out + quick.err
    check = regress(root, "check", "-b", "time_", "--rounds", "2", "-q")
    assert check.code in (0, 4), check.out + check.err  # two rounds of a real clock may decide nothing
    names = {".gitignore", "asv.conf.json", "benchmarks/__init__.py", "benchmarks/example.py"}
    assert {line[3:] for line in untracked(root)} == names, "what runs leave behind is ignored"


def test_asv_reads_what_is_written(repository: Callable[..., Path]) -> None:
    root = repository({"a": ""})
    assert regress(root, "init").code == 0
    script = "import asv.config; c = asv.config.Config.load('asv.conf.json'); print(c.branches, c.results_dir)"
    done = subprocess.run([sys.executable, "-c", script], cwd=root, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['trunk'] history"


@pytest.mark.parametrize(("torch", "benchmarks"), [(True, {"cudatime", "time"}), (False, {"time"})])
def test_the_example_suits_what_is_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, torch: bool, benchmarks: set[str]
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: object() if torch else None)
    _, example = files.write_suite(tmp_path / "benchmarks")
    text = example.read_text()
    compile(text, "example.py", "exec")
    assert set(re.findall(r"def (\w+?)_", text)) == benchmarks
    assert ("import torch" in text) is torch
    assert files.holds_benchmarks(tmp_path / "benchmarks")


@pytest.mark.slow
def test_a_folder_below_gets_a_configuration_of_its_own(repository: Callable[..., Path]) -> None:
    root = repository({"libs/one/one.py": ""})
    result = regress(root, "init", "libs/one")
    assert result.out.splitlines()[-1].split(maxsplit=1) == ["then", "cd libs/one && regress check"]
    loaded = configuration.load(None, root / "libs" / "one")
    assert (loaded.repo, loaded.repo_subdir) == (root, "libs/one")
    assert regress(root / "libs" / "one", "run", "--quick", "-b", "time_").code == 0


def test_scripts_in_benchmarks_are_no_suite_and_stay(repository: Callable[..., Path]) -> None:
    root = repository({"benchmarks/train.py": "raise SystemExit('a day of training')\n"})
    result = regress(root, "init")
    assert result.code == 0
    assert configuration.load(None, root).benchmark_dir == root / "asv_benchmarks"
    assert (root / "benchmarks" / "train.py").read_text().startswith("raise")


@pytest.mark.slow
def test_a_second_time_nothing_is_written(repository: Callable[..., Path]) -> None:
    root = repository({"a": ""})
    assert regress(root, "init").code == 0
    before = {path: path.read_text() for path in root.rglob("*") if path.is_file() and ".git/" not in str(path)}
    again = regress(root, "init")
    assert again.code == 0
    assert "wrote" not in again.out
    assert all(path.read_text() == text for path, text in before.items())


def test_a_configuration_without_a_suite_gets_the_suite_only(repository: Callable[..., Path]) -> None:
    text = '{"version": 1, "repo": ".", "benchmark_dir": "perf"}'
    root = repository({"asv.conf.json": text})
    result = regress(root, "init")
    assert "perf/__init__.py, perf/example.py" in result.out
    assert (root / "asv.conf.json").read_text() == text


# -- an existing suite ---------------------------------------------------------------------------------------------------


@pytest.fixture
def suite(repository: Callable[..., Path]) -> Path:
    return repository(
        {
            "proj/__init__.py": PROJ,
            "asv.conf.json": CONFIG,
            "benchmarks/__init__.py": "",
            "benchmarks/ops.py": OPS,
            "benchmarks/gpu.py": GPU,
            ".gitignore": "__pycache__/\n",
        }
    )


def test_an_existing_suite_is_classified_by_running_it(suite: Path) -> None:
    result = regress(suite, "init", "--device", "fake", "--format", "json", "--output", "text=../seen.txt")
    report = document(result)
    assert result.code == 0, result.err
    assert report["counts"] == {
        "cpu": 4,  # time_on('cpu'), time_host, timeraw_import, track_size
        "trailing": 2,
        "free": 2,
        "waiting": 1,
        "on_device": 1,
        "skipped": 1,
        "failed": 1,
    }
    assert report["cases"] == 12
    assert report["block"]["where"] == "asv.conf.json"
    assert '"cuda": ["^gpu\\\\.", "^ops\\\\.Mixed\\\\.", "^ops\\\\.Norm\\\\."],' in report["block"]["text"]
    checks = {check["name"]: check for check in report["checks"]}
    assert re.fullmatch(r"about .+: 12 cases, 4 rounds a side, builds apart", checks["a check"]["found"])
    assert "ops.Mixed.time_on" in checks["cuda"]["found"]
    assert "ops.Others.time_bad: ZeroDivisionError" in checks["failing"]["found"]
    text = (suite.parent / "seen.txt").read_text()
    assert "\n4 CPU · 2 CUDA with a trailing synchronize · 2 without one · 1 waiting in between · 1 on the dev" in text
    assert "next  regress init --write" in text
    assert untracked(suite) == set(), "looking writes nothing"


def test_write_adds_the_block_and_keeps_everything_else(suite: Path) -> None:
    assert regress(suite, "init", "--device", "fake", "--write").code == 0
    written = (suite / "asv.conf.json").read_text()
    removed = re.sub(r',  // pinned, see "docs" {\n.*\n}\n', '  // pinned, see "docs" {\n}\n', written, flags=re.DOTALL)
    assert removed == CONFIG
    loaded = configuration.load(None, suite)
    assert loaded.settings.cuda == (r"^gpu\.", r"^ops\.Mixed\.", r"^ops\.Norm\.")
    assert (suite / ".gitignore").read_text() == "__pycache__/\nhtml/\nreport/\n"
    listed = regress(suite, "list", "--device", "fake", "--format", "json")
    metrics = {row["name"]: row["metric"] for row in json.loads(listed.out)["benchmarks"]}
    assert metrics["gpu.time_a"] == metrics["ops.Norm.time_free"] == "gpu_time"
    assert metrics["ops.Others.time_host"] == metrics["ops.Others.time_between"] == "wall_time"

    again = regress(suite, "init", "--device", "fake", "--write")
    assert (again.code, again.out) == (2, "")
    assert again.err.splitlines()[0] == f'error: {suite}/asv.conf.json has a "regress" block already'
    assert (suite / "asv.conf.json").read_text() == written
    (suite / "benchmarks" / "more.py").write_text(GPU)
    shown = document(regress(suite, "init", "--device", "fake", "--format", "json"))["block"]
    assert shown["where"] == '"regress" in asv.conf.json'
    assert json.loads("{" + shown["text"].strip().rstrip(",") + "}")["cuda"] == [*loaded.settings.cuda, r"^more\."]


def test_a_suite_without_a_configuration_gets_one_with_its_patterns(suite: Path) -> None:
    (suite / "asv.conf.json").unlink()
    (suite / "benchmarks" / "ops.py").unlink()
    result = regress(suite, "init", "--device", "fake")
    assert result.code == 0, result.err
    assert "1 CUDA with a trailing synchronize" in result.out
    assert "add to" not in result.out
    assert configuration.load(None, suite).settings.cuda == (r"^gpu\.",)


def test_without_a_device_it_says_that_cuda_does_not_show(repository: Callable[..., Path]) -> None:
    root = repository(
        {"asv.conf.json": CONFIG, "benchmarks/b.py": "def time_x(): sum(range(50))\ndef cudatime_y(): 1\n"}
    )
    report = document(regress(root, "init", "--device", "cpu", "--format", "json"))
    assert report["counts"] == {"cpu": 1, "skipped": 1}
    assert any("only a GPU shows which time_* use CUDA" in check["found"] for check in report["checks"])
    assert '// "cuda"' in report["block"]["text"]


def test_compiled_files_that_git_does_not_have_are_named(repository: Callable[..., Path]) -> None:
    root = repository({"asv.conf.json": CONFIG, "benchmarks/b.py": "def track_x(): return 1\n", ".gitignore": "*.so\n"})
    for name in ("proj/_native.so", ".venv/lib/x.so", "build/y.so"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("")
    (check,) = [row for row in document(regress(root, "init", "--format", "json"))["checks"] if row["name"] == "build"]
    assert check["found"].startswith("git does not have proj/_native.so, ")
    assert '"build" under "regress"' in check["fix"]


def test_ctrl_c_writes_nothing_and_says_what_is_known(suite: Path, tmp_path: Path) -> None:
    mark = tmp_path / "slow"
    slow = f"import time\ndef time_zzz():\n    open({str(mark)!r}, 'w').close()\n    time.sleep(600)\n"
    (suite / "benchmarks" / "zzz.py").write_text(slow)
    result = interrupted(start(suite, "init", "--device", "fake", "--write", "--format", "json"), mark)
    assert result.code == 130, result.err
    assert document(result)["block"] is None
    assert (suite / "asv.conf.json").read_text() == CONFIG


# -- where something is wrong --------------------------------------------------------------------------------------------


def test_a_folder_that_is_not_there_or_in_no_repository_is_2(tmp_path: Path) -> None:
    missing = regress(tmp_path, "init", "new one")
    assert (missing.code, missing.out) == (2, "")
    assert missing.err.splitlines()[0] == "error: there is no folder new one"
    assert missing.err.splitlines()[-1] == "fix:   git init 'new one' && regress init 'new one'"
    (tmp_path / "file").write_text("")
    assert regress(tmp_path, "init", "file").err.splitlines()[0] == "error: file is a file"
    (tmp_path / "file").unlink()
    outside = regress(tmp_path, "init")
    assert outside.code == 2
    assert "not in a git repository" in outside.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ('{"version": 1, "repo": }', "is not JSON5"),
        ('{"version": 1, "repo": ".", "regress": {"cud": []}}', 'unknown setting "cud"'),
        ('{"version": 1}', 'has no "repo"'),
    ],
)
def test_a_broken_configuration_is_2_and_stays(repository: Callable[..., Path], text: str, error: str) -> None:
    root = repository({"asv.conf.json": text})
    for arguments in ([], ["--write"]):
        result = regress(root, "init", *arguments)
        assert (result.code, result.out) == (2, "")
        assert error in result.err
    assert (root / "asv.conf.json").read_text() == text
    assert not (root / "benchmarks").exists()


def test_a_suite_that_cannot_be_imported(suite: Path) -> None:
    (suite / "benchmarks" / "broken.py").write_text("import not_there\n")
    some = regress(suite, "init", "--device", "fake")
    assert some.code == 3
    assert "not_there" in some.out
    assert "CUDA with a trailing synchronize" in some.out, "the rest is looked over"
    for name in ("ops", "gpu"):
        (suite / "benchmarks" / f"{name}.py").unlink()
    none = regress(suite, "init", "--device", "fake")
    assert (none.code, none.out) == (5, "")
    assert "could be imported" in none.err
    (suite / "asv.conf.json").unlink()
    (suite / "benchmarks" / "broken.py").write_text("import not_there\ndef time_x(): pass\n")
    fresh = regress(suite, "init", "--device", "fake")
    assert fresh.code == 5
    assert "wrote  asv.conf.json" in fresh.out, "what was written is said all the same"
    assert "could be imported" in fresh.out


def test_a_folder_that_cannot_be_written_is_2(repository: Callable[..., Path]) -> None:
    root = repository({"a": ""})
    (root / ".gitignore").mkdir()
    result = regress(root, "init")
    assert result.code == 2
    assert result.err.splitlines()[:2] == ["error: cannot write .gitignore", "why:   is a directory"]


# -- parts ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        '{"version": 1, "repo": "."}',
        '{\n\t"version": 1,\n\t"repo": ".",\n}\n',
        '{"a": "} // no comment", /* "x": 1, */\n "b": [1, 2,], // }\n\n}  // end }\n',
        "\ufeff{version: 1, 'repo': 'it\\'s',\r\n}\r\n",
        "{}",
        "{// nothing\n}",
        '{"a": {"b": 1}\n    // the end\n}',
    ],
)
def test_a_block_goes_into_any_file(tmp_path: Path, text: str) -> None:
    path = tmp_path / "asv.conf.json"
    path.write_bytes(text.encode())
    file = File.of(path)
    changed = file.with_block({"cuda": ["^ops\\."]})
    path.write_bytes(changed.encode())
    again = File.of(path)
    assert again.data == {**file.data, "regress": {"cuda": ["^ops\\."]}}
    assert again.is_plain is file.is_plain, "plain JSON stays plain"
    kept = re.sub(r"\s", "", text)
    position = -1
    for character in kept:  # all that was there is there, in its order
        position = re.sub(r"\s", "", changed).index(character, position + 1)
    assert ("\r\n" in text) == ("\r\n" in changed)
    assert "\n" not in changed.replace("\r\n", "") or "\r\n" not in text


@pytest.mark.parametrize(
    ("wanted", "others", "expected"),
    [
        ([], ["a.time_x"], []),
        (["a.time_x", "a.B.time_y"], [], [r"^a\."]),
        (["a.B.time_x", "a.B.time_y"], ["a.C.time_x"], [r"^a\.B\."]),
        (["a.B.time_x"], ["a.B.time_x2"], [r"^a\.B\.time_x$"]),
        (["a.time_x", "a.b.time_x"], ["a.b.time_y"], [r"^a\.b\.time_x$", r"^a\.time_x$"]),
        (["ab.time_x"], ["a.time_x"], [r"^ab\."]),
        (["odd name[1]"], ["odd"], [r"^odd\ name\[1\]$"]),
    ],
)
def test_patterns_are_as_few_as_they_can_be_and_meet_no_other(
    wanted: list[str], others: list[str], expected: list[str]
) -> None:
    patterns = covering(wanted, others)
    assert patterns == expected
    assert all(any(re.search(pattern, name) for pattern in patterns) for name in wanted)
    assert not any(re.search(pattern, name) for pattern in patterns for name in others)


def test_tracked_numbers_without_a_direction_are_told_with_the_line_that_declares_it(
    repository: Callable[..., Path],
) -> None:
    root = repository({"proj.py": ""})
    assert regress(root, "init").code == 0
    (root / "benchmarks" / "score.py").write_text("def track_score(): return 5\ntrack_score.unit = 'score'\n")
    output = regress(root, "init").out
    assert "no change in score is known to be worse or better" in output
    assert '"better": {"^score\\\\.": "lower"} under "regress"' in output


# -- quick, and always useful --------------------------------------------------------------------------------------------

SLOW = """
import time
import regress_scripted as d
class Slow:
    params = list(range(12))
    timeout = {timeout}
    def setup(self, n): time.sleep(250 * (n {which}))
    def time_it(self, n): d.host(20e-6)
"""


def asked(repository: Callable[..., Path], suite: str, *words: str, **keys: object) -> tuple[Result, Any]:
    config = {"version": 1, "repo": ".", "results_dir": "../results", "regress": {"device": "fake"}, **keys}
    root = repository({"asv.conf.json": json.dumps(config), "benchmarks/__init__.py": "", "benchmarks/b.py": suite})
    result = regress(root, "init", "--format", "json", *words)
    return result, document(result)


def budget_of(report: Mapping[str, Any]) -> str:
    return str(next(check["found"] for check in report["checks"] if check["name"] == "budget"))


@pytest.mark.slow
def test_a_budget_ends_what_is_under_way_and_says_how_far_it_came(repository: Callable[..., Path]) -> None:
    """The first case is known before the third begins, whose own time-out is much longer than the budget."""
    result, report = asked(repository, SLOW.format(timeout=250, which="== 2"), "--budget", "6s")
    assert (result.code, report["cases"], report["counts"]) == (0, 12, {"cpu": 1})
    assert budget_of(report) == "1 of 12 cases tried"
    words = [row["command"].partition("    # about ") for row in report["suggestions"]]
    assert [command for command, _, _ in words] == [
        "regress init --budget 10m",
        "regress check -b 'b.Slow.time_it(0)'",
        "regress check",
        "regress run",
    ]
    assert all(re.fullmatch(r"[\d.:]+ ?\w*", about) for _, _, about in words[1:])


@pytest.mark.slow
def test_a_benchmark_costs_one_time_out_at_most(repository: Callable[..., Path]) -> None:
    _, report = asked(repository, SLOW.format(timeout=1, which=">= 0"))
    assert budget_of(report) == "1 of 12 cases tried; 11 skipped, because another case of their benchmark timed out"


def test_an_estimate_counts_the_imports_of_both_sides() -> None:
    seen = Classified({}, (), {}, JobResult(start_s=3.0, overhead=(0.5, 0.0)), (), 10)
    assert seen.check_s(4) == 2 * (3.0 + 5 * 0.5)


def test_only_what_is_selected_is_looked_at(repository: Callable[..., Path]) -> None:
    result, report = asked(repository, "def time_a(): pass\ndef time_b(): 1 / 0\n", "-b", "time_a")
    assert (result.code, report["cases"], report["counts"]) == (0, 1, {"cpu": 1})
    assert report["suggestions"][-1]["command"].startswith("regress run -b time_a")


def test_a_check_that_takes_longer_than_its_budget_is_given_one(repository: Callable[..., Path]) -> None:
    _, report = asked(repository, "def time_a(): pass\n", regress={"device": "fake", "budget_s": 0.01})
    commands = [row["command"] for row in report["suggestions"]]
    assert re.match(r"regress check --budget \d+[sm]    # about ", commands[1]), commands


def test_where_everything_fails_nothing_can_be_measured(repository: Callable[..., Path]) -> None:
    result, report = asked(repository, "def time_a(): 1 / 0\n")
    assert (result.code, report["counts"]) == (5, {"failed": 1})


def test_writing_measures_nothing_again_and_says_what_was_not_tried(
    suite: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REGRESS_CACHE_DIR", str(tmp_path / "own"))
    assert regress(suite, "init", "--device", "fake").code == 0
    (kept,) = (tmp_path / "own").rglob("classified.json")
    (state,) = (document := json.loads(kept.read_text()))["suites"].values()
    assert state[1] == "", "what was not tried"
    state[1] = "5 of 12 cases tried"
    kept.write_text(json.dumps(document))
    done = regress(suite, "init", "--device", "fake", "--write")
    assert (done.code, "trial runs" in done.err) == (0, False)
    assert "^gpu\\\\." in (suite / "asv.conf.json").read_text()
    assert re.search(r"budget +5 of 12 cases tried\n +fix: regress init --budget 10m", done.out)


def test_what_is_not_installed_is_said_with_the_command(repository: Callable[..., Path]) -> None:
    result, _ = asked(repository, "import nowhere_to_be_found.inside\ndef time_a(): pass\n")
    assert result.code == 5
    assert f"{sys.executable} -m pip install nowhere_to_be_found, or name an interpreter that has it" in result.err


def test_a_project_that_is_not_built_is_not_to_be_installed(repository: Callable[..., Path]) -> None:
    root = repository(
        {
            "asv.conf.json": '{"version": 1, "repo": "."}',
            "proj/__init__.py": "",
            "benchmarks/b.py": "import proj.fast\ndef time_a(): pass\n",
        }
    )
    result = regress(root, "init")
    assert (result.code, "pip install" in result.err) == (5, False)
    assert result.err.splitlines()[-1].startswith('fix:   build it in place, or set "build" under "regress"')


def test_where_asvs_environment_cannot_be_had_a_worktree_is_offered(repository: Callable[..., Path]) -> None:
    """And what `--write` adds is no change of the project: the commit is measured, and recorded as that."""
    config = CONFIG.replace("'matrix'", '"results_dir": "history", "environment_type": "rattler",\n  \'matrix\'')
    root = repository({"asv.conf.json": config, "proj/__init__.py": PROJ, "benchmarks/ops.py": OPS})
    shown = regress(root, "init", "--device", "fake", "-b", "time_host")
    assert shown.code == 0, shown.err
    assert re.search(
        r"environment +asv has no environment rattler: .*[^. ]; tried in a worktree under this inter", shown.out
    )
    assert '"environment": "worktree",' in shown.out
    assert regress(root, "list", "--device", "fake").code == 5
    assert regress(root, "init", "--device", "fake", "-b", "time_host", "--write").code == 0
    listed = regress(root, "list", "--device", "fake", "-b", "time_host")
    assert (listed.code, "(HEAD, clean" in listed.out) == (0, True), listed.out
