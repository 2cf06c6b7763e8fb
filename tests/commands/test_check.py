"""`regress check` on the demo and on small repositories: real git, worktrees and processes, the scripted device."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
import types
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from regress.commands.check import _unprofiled
from regress.commands.demo import PLANTED, create
from regress.errors import NothingMeasured
from regress.measure.backend import cuda
from regress.model import Benchmark
from regress.run.job import JobResult
from regress.session import Request, Session
from tests.conftest import Project, Result, regress, start
from tests.run.test_clocks import RESETS, UUID, Nvml
from tests.run.test_execute import Watch

KERNEL = "import regress_scripted as d\ndef work(): d.kernel('k', {seconds})\n"
SUITE = "import proj\ndef cudatime_work(): proj.work()\ndef cudatime_other(): proj.other()\n"
OTHER = "def other(): d.kernel('o', 80e-6)\n"


def code(seconds: float = 50e-6) -> str:
    return KERNEL.format(seconds=seconds) + OTHER


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("demo") / "d"
    create(folder, scripted=True)
    return folder


def document(result: Result) -> dict[str, Any]:
    assert result.out, result.err
    return dict(json.loads(result.out))


def found(report: dict[str, Any], gating: bool = True) -> dict[tuple[str, str], str]:
    """(benchmark, metric) -> verdict, of everything that is not unchanged."""
    return {
        (row["name"], row["metric"]): row["verdict"]
        for row in report["benchmarks"]
        if row["gates"] is gating and row["verdict"] != "unchanged"
    }


def sha_of(demo: Path, subject: str) -> str:
    log = subprocess.run(["git", "log", "--format=%H %s"], cwd=demo, capture_output=True, text=True, check=True).stdout
    return next(line.split()[0] for line in log.splitlines() if line.partition(" ")[2] == subject)


def test_the_head_of_the_demo_regresses_and_nothing_else_is_named(demo: Path) -> None:
    result = regress(demo, "check", "HEAD~1", "--format", "json", "--output", "text=seen.txt")
    (demo / "seen.txt").rename(demo.parent / "seen.txt")
    report = document(result)
    assert result.code == 1, result.err
    assert (report["verdict"], report["exit_code"]) == ("FAIL", 1)
    subject = report["head"]["subject"]
    assert found(report) == {(planted.benchmark, planted.metric): str(planted.verdict) for planted in PLANTED[subject]}
    text = (demo.parent / "seen.txt").read_text()
    assert re.search(r"^FAIL  18 cases: 2 regressed, 16 unchanged", text, re.MULTILINE)
    assert "simulated, not measured" in text


@pytest.mark.slow
@pytest.mark.parametrize("subject", [subject for subject, planted in PLANTED.items() if planted])
def test_each_planted_change_is_found_by_its_metric(demo: Path, subject: str) -> None:
    sha = sha_of(demo, subject)
    result = regress(demo, "check", f"{sha}~1", sha, "--format", "json")
    report = document(result)
    planted = {(change.benchmark, change.metric): str(change.verdict) for change in PLANTED[subject]}
    everything = {**found(report), **found(report, gating=False)}
    assert planted.items() <= everything.items()
    for (name, metric), verdict in found(report).items():
        assert planted[name, metric] == verdict, "nothing else may be claimed"
    gated = any(verdict == "regressed" for verdict in found(report).values())
    assert result.code == (1 if gated else 0)
    if any(change.metric == "wall_time" for change in PLANTED[subject]):
        reasons = [row["reason"] for row in report["benchmarks"] if row["metric"] == "wall_time"]
        assert any("became synchronous" in (reason or "") for reason in reasons)


def test_a_commit_without_a_change_passes_and_repeats_exactly(
    project: Callable[..., Project],
) -> None:
    p = project()
    p.commit({"proj/__init__.py": code(), "benchmarks/b.py": SUITE})
    p.commit({"README": "more"})
    first = p.regress("check", "--format", "json")
    assert first.code == 0, first.err
    report = document(first)
    assert (report["verdict"], found(report)) == ("PASS", {})
    assert report["base"]["revision"] == "HEAD~1"
    second, third = (document(p.regress("check", "--format", "json"))["benchmarks"] for _ in range(2))
    for rows, rounds in ((report["benchmarks"], 4), (second, 3)):
        assert {row["n"]["head"] for row in rows if row["metric"] == "gpu_time"} == {rounds}
    assert [row["ratio"] for row in second] == [row["ratio"] for row in third]
    assert [row["verdict"] for row in second] == [row["verdict"] for row in report["benchmarks"]]
    assert p.git("status", "--porcelain") == "", "a check leaves the tree as it was"


@pytest.mark.slow
def test_twenty_runs_of_one_check_agree(project: Callable[..., Project]) -> None:
    p = project()
    p.commit({"proj/__init__.py": code(), "benchmarks/b.py": SUITE})
    p.commit({"proj/__init__.py": code(54e-6)})
    verdicts, ratios = set(), []
    for _ in range(20):
        report = document(p.regress("check", "--format", "json"))
        rows = report["benchmarks"]
        verdicts.add(json.dumps([[row["name"], row["metric"], row["verdict"]] for row in rows]))
        ratios.append([row["ratio"] for row in rows])
        assert report["exit_code"] == 1
    assert len(verdicts) == 1
    assert ratios[1:] == ratios[1:2] * 19, "the first one did not know yet which cases are quiet"


def test_a_benchmark_that_fails_on_head_only_is_3_and_the_others_are_measured(project: Callable[..., Project]) -> None:
    p = project()
    p.commit({"proj/__init__.py": code(), "benchmarks/b.py": SUITE})
    p.commit({"proj/__init__.py": code().replace("def work(): d", "def work(): d.nothing; d")})
    result = p.regress("check", "--format", "json")
    report = document(result)
    assert result.code == 3
    assert found(report) == {("b.cudatime_work", "gpu_time"): "failed"}
    (failed,) = [row for row in report["benchmarks"] if row["verdict"] == "failed"]
    assert "has no attribute 'nothing'" in json.dumps(failed)
    assert any(row["name"] == "b.cudatime_other" and row["ratio"] for row in report["benchmarks"])


def test_a_failure_on_both_sides_is_a_line_and_with_strict_3(project: Callable[..., Project]) -> None:
    p = project()
    p.commit({"proj/__init__.py": code(), "benchmarks/b.py": SUITE + "def cudatime_bad(): 1 / 0\n"})
    p.commit({})
    result = p.regress("check")
    assert result.code == 0
    assert "cudatime_bad" in result.out
    assert "ZeroDivisionError" in result.out
    assert p.regress("check", "--strict", "-q").code == 3


def test_a_module_that_cannot_be_imported_is_3_and_named(project: Callable[..., Project]) -> None:
    p = project()
    p.commit(
        {"proj/__init__.py": code(), "benchmarks/b.py": SUITE, "benchmarks/broken.py": "x = 1\nimport missing_thing\n"}
    )
    p.commit({})
    result = p.regress("check")
    assert result.code == 3
    assert "broken.py:2" in result.out
    assert "missing_thing" in result.out


@pytest.mark.parametrize("command", ["check", "run"])
def test_a_module_with_a_syntax_error_costs_only_itself(project: Callable[..., Project], command: str) -> None:
    p = project(check_rounds=2, run_rounds=2)
    modules = {
        "benchmarks/a_broken.py": "def cudatime_gone(: pass\n",
        "benchmarks/b.py": SUITE,
        "benchmarks/z.py": SUITE,
    }
    p.commit({"proj/__init__.py": code(), **modules})
    p.commit({"proj/__init__.py": code(60e-6)})
    result = p.regress(command, "--format", "json")
    report = document(result)
    assert result.code == 3 if command == "run" else report["exit_codes"] == [1, 3]
    (problem,) = report["errors"]
    assert problem["where"] == "benchmarks/a_broken.py:1", "from the top of the repository"
    assert "SyntaxError" in problem["message"]
    timed = {row["name"]: row for row in report["benchmarks"] if row["metric"] == "gpu_time"}
    key = "value" if command == "run" else "head"
    assert {name: row[key] for name, row in timed.items()} == {
        f"{module}.cudatime_{name}": pytest.approx(seconds, rel=0.02)
        for module in ("b", "z")
        for name, seconds in (("work", 60e-6), ("other", 80e-6))
    }


def test_no_match_is_5(project: Callable[..., Project]) -> None:
    p = project()
    p.commit({"proj/__init__.py": code(), "benchmarks/b.py": SUITE})
    p.commit({})
    result = p.regress("check", "-b", "softmx")
    assert (result.code, result.out) == (5, "")
    assert result.err.splitlines()[-3:] == [
        "error: no benchmark matches 'softmx'",
        f"why:   searched in {p.root}/benchmarks",
        "fix:   regress list",
    ]


def test_an_unknown_revision_is_2_with_a_near_name(project: Callable[..., Project]) -> None:
    p = project()
    p.commit({"proj/__init__.py": code(), "benchmarks/b.py": SUITE})
    p.git("tag", "release-1.4")
    result = p.regress("check", "relaese-1.4")
    assert result.code == 2
    assert "relaese-1.4" in result.err
    assert "release-1.4" in result.err.partition("relaese-1.4")[2]


def test_the_first_commit_has_no_parent(project: Callable[..., Project]) -> None:
    p = project()
    p.commit({"proj/__init__.py": code(), "benchmarks/b.py": SUITE})
    result = p.regress("check", "HEAD~1")
    assert result.code == 2
    assert "before the first commit" in result.err


def test_a_shallow_clone_without_a_parent_is_2_and_never_a_pass(
    project: Callable[..., Project], tmp_path: Path
) -> None:
    p = project()
    p.commit({"proj/__init__.py": code(), "benchmarks/b.py": SUITE})
    sha = p.commit({"README": "more"})
    p.git("clone", "-q", "--depth", "1", f"file://{p.root}", str(tmp_path / "clone"))
    result = regress(tmp_path / "clone", "check")
    assert (result.code, result.out) == (2, "")
    assert result.err.splitlines() == [
        "error: HEAD~1: no parent in this shallow clone",
        f"why:   its history begins at {sha[:8]}",
        "fix:   git fetch --deepen 1",
    ]


@pytest.mark.parametrize("revision", ["v1.4", "origin/release", "sha"])
def test_what_a_shallow_clone_lacks_is_fetched_by_the_fix(
    project: Callable[..., Project], tmp_path: Path, revision: str
) -> None:
    p = project(check_rounds=2)
    sha = p.commit({"proj/__init__.py": code(), "benchmarks/b.py": SUITE})
    p.git("tag", "v1.4")
    p.git("branch", "release")
    p.commit({"README": "1"})
    p.git("tag", "v1.5")
    p.commit({"README": "2"})
    clone = tmp_path / "clone"
    p.git("clone", "-q", "--depth", "2", f"file://{p.root}", str(clone))
    wanted = sha[:12] if revision == "sha" else revision
    result = regress(clone, "check", wanted, "HEAD")
    assert result.code == 2
    error, why, fix = result.err.splitlines()
    assert error == f"error: unknown revision {wanted!r}"
    assert why == f"why:   no branch, tag or commit in this shallow clone, {clone}"
    command = fix.removeprefix("fix:   ").partition(", or ")[0]
    subprocess.run(command, shell=True, cwd=clone, check=True, capture_output=True)
    assert regress(clone, "check", wanted, "HEAD", "--quick", "-b", "work").code == 0


def test_changes_in_the_tree_are_the_head_and_are_not_recorded(project: Callable[..., Project]) -> None:
    p = project()
    sha = p.commit({"proj/__init__.py": code(), "benchmarks/b.py": SUITE})
    p.write({"proj/__init__.py": code(60e-6)})
    result = p.regress("check", "--format", "json", "--record")
    report = document(result)
    assert result.code == 1
    assert (report["base"]["sha"], report["head"]["sha"], report["head"]["dirty"]) == (sha, sha, True)
    assert found(report) == {("b.cudatime_work", "gpu_time"): "regressed"}
    assert any("not recorded" in warning for warning in report["warnings"])
    (folder,) = [path for path in (p.root / "history").iterdir() if path.is_dir()]
    (file,) = folder.glob(f"{sha[:8]}-*.json")
    assert json.loads(file.read_text())["results"]["b.cudatime_work"][0] == [pytest.approx(50e-6, rel=0.02)]


def test_a_suite_with_changes_measures_named_revisions_too_and_that_is_said(project: Callable[..., Project]) -> None:
    p = project(check_rounds=2)
    p.commit({"proj/__init__.py": code(), "benchmarks/b.py": SUITE})
    p.commit({"README": "1"})
    p.commit({"README": "2"})
    p.write({"benchmarks/b.py": SUITE + "def cudatime_newest(): proj.work()\n"})
    report = document(p.regress("check", "HEAD~2", "HEAD~1", "--format", "json"))
    assert "b.cudatime_newest" in {row["name"] for row in report["benchmarks"]}
    assert (
        "both sides use the working tree's benchmark files, with uncommitted changes: benchmarks/b.py"
        in report["warnings"]
    )


@pytest.mark.slow
def test_a_head_that_does_not_build_is_3_and_a_base_5(project: Callable[..., Project]) -> None:
    p = project(build="test -f proj/built && touch built-here")
    p.commit({"proj/__init__.py": code(), "benchmarks/b.py": SUITE})
    p.commit({"proj/built": ""})
    good = p.commit({})
    result = p.regress("check", "HEAD~2", "HEAD")
    assert result.code == 5
    assert "base" in result.err
    assert "does not build" in result.err
    assert p.regress("check", "HEAD~1", good, "-q").code == 0
    p.git("rm", "-q", "proj/built")
    p.commit({})
    result = p.regress("check", "HEAD~1", "HEAD")
    assert result.code == 3
    assert "does not build" in result.out
    (error,) = document(p.regress("check", "HEAD~1", "HEAD", "--format", "json"))["errors"]
    assert "does not build" in error["message"]
    assert "fix: cd " in error["detail"]


def test_a_branch_is_compared_with_where_it_left_main(project: Callable[..., Project]) -> None:
    p = project()
    start = p.commit({"proj/__init__.py": code(), "benchmarks/b.py": SUITE})
    p.git("checkout", "-q", "-b", "feature/fast")
    p.commit({"README": "1"})
    p.commit({"README": "2"})
    report = document(p.regress("check", "--format", "json", "--quick"))
    assert report["base"]["sha"] == start
    assert "merge base with main" in report["base"]["revision"]


NOISY = """
import itertools, os, random
def track_noisy(): return random.Random(os.getpid()).uniform(1, 3)
track_noisy.unit = "s"
def cudatime_quiet():
    import regress_scripted as d
    d.kernel("k", 50e-6)
"""


def test_prove_fails_what_could_not_be_shown_in_time(project: Callable[..., Project]) -> None:
    p = project(budget_s=0.01)
    p.commit({"proj/__init__.py": "", "benchmarks/b.py": NOISY})
    p.commit({"README": "1"})
    proving = document(p.regress("check", "--prove", "--format", "json"))
    assert (proving["exit_codes"], proving["verdict"]) == ([5, 4], "NOTHING")
    assert (proving["counts"], proving["covered"]) == ({"undecided": 2}, {"cases": 0, "of": 2})
    short = "the budget of 0.0 s was too short: 2 of 2 cases not reached, as importing the suite took "
    assert any(warning.startswith(short) for warning in proving["warnings"])
    longer = document(p.regress("check", "--prove", "--format", "json", "--budget", "1m", "-b", "quiet"))
    assert (longer["exit_code"], longer["counts"]) == (0, {"unchanged": 1})


def test_quick_judges_nothing(project: Callable[..., Project]) -> None:
    p = project()
    p.commit({"proj/__init__.py": code(), "benchmarks/b.py": SUITE})
    p.commit({"proj/__init__.py": code(100e-6)})
    result = p.regress("check", "--quick", "--format", "json")
    assert result.code == 0
    timed = [row for row in document(result)["benchmarks"] if row["metric"] == "gpu_time"]
    assert [row["verdict"] for row in timed] == ["undecided", "undecided"]
    assert document(result)["geomean"] is None


def test_without_a_device_cuda_cases_are_skipped_and_alone_they_are_5(project: Callable[..., Project]) -> None:
    p = project(device="cpu")
    p.commit({"proj/__init__.py": "def work(): sum(range(2000))\ndef other(): pass\n", "benchmarks/b.py": SUITE})
    p.commit({})
    result = p.regress("check")
    assert result.code == 5
    assert "none of the 2 cases could be measured" in result.err
    assert "needs a CUDA device" in result.err
    p.commit({"benchmarks/b.py": SUITE + "def time_work(): proj.work()\n"})
    result = p.regress("check", "--format", "json", "--time-threshold", "100%")
    assert result.code == 0, result.err
    report = document(result)
    assert {row["verdict"] for row in report["benchmarks"] if row["name"].startswith("b.cuda")} == {"skipped"}
    assert any("2 CUDA cases were skipped" in warning for warning in report["warnings"])


def interrupt(p: Project, cases: int) -> subprocess.CompletedProcess[str]:
    """Start a check, send Ctrl-C once the first measured rounds are on disk."""
    process = start(p.root, "check", "--format", "json", "--record")
    while process.poll() is None:
        lines = [
            line for path in (p.root / "history").rglob("*.rounds.jsonl") for line in path.read_text().splitlines()
        ]
        if sum('"gpu_time"' in line and '"order"' in line for line in lines) >= cases:
            process.send_signal(signal.SIGINT)
            break
        time.sleep(0.02)
    out, err = process.communicate(timeout=120)
    return subprocess.CompletedProcess([], process.returncode, out, err)


def test_ctrl_c_keeps_what_was_measured(project: Callable[..., Project]) -> None:
    p = project(check_rounds=500)
    p.commit({"proj/__init__.py": code(), "benchmarks/b.py": SUITE})
    p.commit({})
    done = interrupt(p, cases=12)
    assert done.returncode == 130, done.stderr
    report = json.loads(done.stdout)
    assert (report["verdict"], report["exit_code"]) == ("INTERRUPTED", 130)
    timed = [row for row in report["benchmarks"] if row["metric"] == "gpu_time"]
    assert timed
    assert all(row["ratio"] for row in timed)
    for file in (p.root / "history").rglob("*.json"):
        json.loads(file.read_text())


def test_an_output_that_cannot_be_written_is_refused_before_measuring(project: Callable[..., Project]) -> None:
    p = project()
    p.commit({"benchmarks/b.py": SUITE})
    for output in ("xml=out.xml", "json=missing/out.json", "json"):
        result = p.regress("check", "--output", output)
        assert (result.code, result.out) == (2, ""), output
        assert output.partition("=")[2] in result.err


# -- which benchmarks ----------------------------------------------------------------------------------------------------

COVERED = """
import proj
class Soft:
    tags = ["core"]
    covers = ["lib/soft/"]
    def cudatime_work(self): proj.work()
def cudatime_other(): proj.other()
cudatime_other.covers = "lib/other.py"
"""


@pytest.mark.slow
def test_affected_measures_what_covers_a_changed_file(project: Callable[..., Project]) -> None:
    p = project(check_rounds=2)
    p.commit({"proj/__init__.py": code(), "benchmarks/b.py": COVERED, "benchmarks/c.py": SUITE, "lib/other.py": "1"})
    p.commit({"lib/soft/k.cu": "1", "docs/a.md": "1"})
    result = p.regress("check", "--affected", "--format", "json", "--output", "text=seen.txt")
    report = document(result)
    assert {row["name"] for row in report["benchmarks"]} == {"b.Soft.cudatime_work"}
    assert "affected by 2 changed files" in (p.root / "seen.txt").read_text()
    assert any("2 of 4 benchmarks declare no `covers`" in warning for warning in report["warnings"])
    (p.root / "seen.txt").unlink()
    # The working tree counts too, on top of what was committed since the base.
    p.write({"lib/other.py": "2"})
    report = document(p.regress("check", "HEAD~1", "--affected", "--format", "json"))
    assert {row["name"] for row in report["benchmarks"]} == {"b.Soft.cudatime_work", "b.cudatime_other"}
    report = document(p.regress("check", "--affected", "--format", "json"))
    assert {row["name"] for row in report["benchmarks"]} == {"b.cudatime_other"}
    p.write({"benchmarks/c.py": SUITE + "# edited"})
    report = document(p.regress("check", "--affected", "--format", "json", "-b", "work"))
    assert {row["name"] for row in report["benchmarks"]} == {"c.cudatime_work"}


@pytest.mark.slow
def test_nothing_affected_is_a_pass_unless_something_could_not_be_asked(project: Callable[..., Project]) -> None:
    p = project()
    p.commit({"proj/__init__.py": code(), "benchmarks/b.py": COVERED, "lib/other.py": "1", "lib/soft/k.cu": "1"})
    p.commit({"docs/a.md": "1"})
    result = p.regress("check", "--affected")
    assert result.code == 0, result.err
    assert re.search(r"^PASS  nothing affected ", result.out, re.MULTILINE)
    assert "plan  1 changed file, covered by no benchmark" in result.out
    report = document(p.regress("check", "--affected", "--format", "json"))
    assert (report["verdict"], report["remark"], report["benchmarks"]) == ("PASS", "nothing affected", [])
    assert p.regress("check", "--affected", "-b", "softmx", "-q").code == 5, "no such benchmark"
    p.commit({"benchmarks/broken.py": "import missing_thing\n"})
    assert p.regress("check", "--affected", "-q").code == 3, "it may cover what was changed"


def test_a_tag_selects(project: Callable[..., Project]) -> None:
    p = project(check_rounds=2, run_rounds=2)
    p.commit({"proj/__init__.py": code(), "benchmarks/b.py": COVERED})
    p.commit({})
    for command in ("check", "run"):
        report = document(p.regress(command, "--tag", "core", "--format", "json"))
        assert {row["name"] for row in report["benchmarks"]} == {"b.Soft.cudatime_work"}
    missing = p.regress("run", "--tag", "cores")
    assert (missing.code, missing.err.splitlines()[-3]) == (5, "error: no benchmark matches the tag 'cores'")


# -- what benchmarks declare ---------------------------------------------------------------------------------------------

DECLARING = """
import proj
{}
def cudatime_work(): proj.work()
class Class:
    {}
    def cudatime_work(self): proj.work()
    def cudatime_own(self): proj.work()
    {}
def track_score(): return proj.SCORE
track_score.exact = True
"""


def test_declarations_count_on_functions_classes_and_modules(project: Callable[..., Project]) -> None:
    p = project(check_rounds=3)
    p.commit(
        {
            "proj/__init__.py": code() + "SCORE = 1.0\n",
            "benchmarks/plain.py": DECLARING.format("", "pass", ""),
            "benchmarks/module.py": DECLARING.format("threshold = 0.5\ncritical = True\nbetter = 'higher'", "pass", ""),
            "benchmarks/class_.py": DECLARING.format(
                "", "threshold = 0.5; critical = True", "cudatime_own.threshold = 0.1"
            ),
            "benchmarks/function.py": DECLARING.format(
                "", "pass", "cudatime_own.threshold = 0.5; cudatime_own.critical = True"
            )
            + "track_score.better = 'lower'\n",
        }
    )
    p.commit({"proj/__init__.py": code(60e-6) + "SCORE = 2.0\n"})
    report = document(p.regress("check", "--format", "json"))
    rows = {row["name"]: row for row in report["benchmarks"] if row["metric"] in ("gpu_time", "value")}
    assert {name: (row["verdict"], row["critical"]) for name, row in rows.items() if row["metric"] == "gpu_time"} == {
        "plain.cudatime_work": ("regressed", False),
        "plain.Class.cudatime_work": ("regressed", False),
        "plain.Class.cudatime_own": ("regressed", False),
        "module.cudatime_work": ("unchanged", True),
        "module.Class.cudatime_work": ("unchanged", True),
        "module.Class.cudatime_own": ("unchanged", True),
        "class_.cudatime_work": ("regressed", False),
        "class_.Class.cudatime_work": ("unchanged", True),
        "class_.Class.cudatime_own": ("regressed", True),
        "function.cudatime_work": ("regressed", False),
        "function.Class.cudatime_work": ("regressed", False),
        "function.Class.cudatime_own": ("unchanged", True),
    }
    assert {name: (row["verdict"], row["better"]) for name, row in rows.items() if row["metric"] == "value"} == {
        "plain.track_score": ("changed", "unknown"),
        "module.track_score": ("improved", "higher"),
        "class_.track_score": ("changed", "unknown"),
        "function.track_score": ("regressed", "lower"),
    }


def test_a_case_for_several_gpus_is_a_row_with_its_reason(project: Callable[..., Project]) -> None:
    p = project(check_rounds=2, run_rounds=2)
    suite = SUITE + "cudatime_other.gpus = 2\n"
    p.commit({"proj/__init__.py": code(), "benchmarks/b.py": suite})
    p.commit({})
    result = p.regress("check")
    assert result.code == 0, result.err
    assert "b.cudatime_other\n    on both sides: needs 2 GPUs: one is used; name more with --gpus" in result.out
    report = document(p.regress("run", "--format", "json"))
    assert report["exit_code"] == 0
    (skipped,) = [row for row in report["benchmarks"] if row["name"] == "b.cudatime_other"]
    assert skipped["failure"]["message"] == "needs 2 GPUs: one is used; name more with --gpus"


# -- others on the device ------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_process_that_joins_during_a_round_makes_its_time_undecided(project: Callable[..., Project]) -> None:
    p = project(check_rounds=3, run_rounds=2)
    shared = "def setup(self): d.company(812)\n    def cudatime_work(self): proj.work()\n"
    shared = f"import proj, regress_scripted as d\nclass Shared:\n    {shared}"
    p.commit({"proj/__init__.py": code(), "benchmarks/b.py": SUITE, "benchmarks/c.py": shared})
    p.commit({"proj/__init__.py": code(100e-6)})
    report = document(p.regress("check", "--format", "json", "-b", "c.Shared"))
    (timed,) = [row for row in report["benchmarks"] if row["metric"] == "gpu_time"]
    assert timed["verdict"] == "undecided"
    assert "another process computed on the device: pid 812 (other), 1.0 GiB" in timed["reason"]
    alone = document(p.regress("check", "--format", "json", "-b", "b.cudatime_work"))
    assert found(alone) == {("b.cudatime_work", "gpu_time"): "regressed"}
    said = "contaminated: other processes computed on the device: pid 812 (other), 1.0 GiB"
    assert said in document(p.regress("run", "--format", "json"))["warnings"]


# -- clocks --------------------------------------------------------------------------------------------------------------


def test_without_a_gpu_there_are_no_clocks_to_lock(project: Callable[..., Project]) -> None:
    p = project()
    p.commit({"proj/__init__.py": code(), "benchmarks/b.py": SUITE})
    p.commit({})
    for command in ("check", "run"):
        result = p.regress(command, "--lock-clocks")
        assert (result.code, result.out) == (2, "")
        assert result.err.splitlines()[-3:] == [
            "error: there are no clocks to lock",
            "why:   the device is set to fake",
            "fix:   leave --lock-clocks out",
        ]


def test_two_sides_of_one_commit_are_told_of(project: Callable[..., Project]) -> None:
    """A job that names the same commit twice would pass for ever."""
    p = project()
    p.commit({"proj/__init__.py": code(), "benchmarks/b.py": SUITE})
    session = Session(Request(start=p.root))
    head = session.revision_side("head", "HEAD")
    (told,) = session.doubtful_order(replace(head, name="base"), head)
    assert told.startswith(f"both sides are {head.commit.short}: there is nothing to find")
    assert session.doubtful_order(replace(head, environment="next"), head) == []


def test_what_cannot_be_profiled_is_not_to_be_explained() -> None:
    """A laptop without torch: `explain` would measure, and fail."""
    timed = Benchmark("b.time_work", "time", "seconds", [], [], "1", metric="wall_time", needs_device=False)
    program = replace(timed, name="c.Sums", program="google-benchmark")
    suite = {"head": {timed.name: timed, program.name: program}}
    able, unable = (
        JobResult(benchmarks=suite, facts={"head": facts}) for facts in ({"torch": "2.11"}, {"numpy": "2.1"})
    )
    assert (_unprofiled(able), _unprofiled(unable)) == ({"c.Sums"}, {"c.Sums", "b.time_work"})


def test_the_clocks_of_the_measured_device_are_locked_while_it_is_measured(
    project: Callable[..., Project], monkeypatch: pytest.MonkeyPatch
) -> None:
    p = project(device="cuda", cache_dir="cache", lock_dir="locks")
    nvml, watch = Nvml(), Watch()
    monkeypatch.setitem(sys.modules, "pynvml", nvml)
    monkeypatch.setattr(cuda, "CudaBackend", lambda: types.SimpleNamespace(facts=lambda: {"gpu_uuid": UUID}))
    session = Session(Request(start=p.root, lock_clocks=True))
    with session.devices.held(watch) as words:
        assert words.startswith("SM clock locked at 1980 MHz")
        assert [name for name, _ in nvml.calls] == ["SetGpu", "SetMemory"]
    assert nvml.calls[2:] == RESETS
    with Session(Request(start=p.root)).devices.held(watch) as words:
        assert (words, nvml.calls[4:]) == ("", [])
    # What a killed run has left is given back also where nobody asks for a lock.
    (file,) = (p.root / "cache" / "clocks").iterdir()
    file.write_text(json.dumps({"uuid": UUID, "pid": 1}))
    with Session(Request(start=p.root)).devices.held(watch):
        assert nvml.calls[4:] == RESETS


def test_a_gpu_is_measured_by_one_process_at_a_time(
    project: Callable[..., Project], monkeypatch: pytest.MonkeyPatch
) -> None:
    p = project(device="cuda", cache_dir="cache", lock_dir="locks")
    monkeypatch.setattr(cuda, "CudaBackend", lambda: types.SimpleNamespace(facts=lambda: {"gpu_uuid": UUID}))
    first, second = (Session(Request(start=p.root)) for _ in range(2))
    with first.devices.held(Watch()):
        with pytest.raises(NothingMeasured, match=rf"{UUID} is being measured by process {os.getpid()} of"):
            with second.devices.held(Watch()):
                raise AssertionError("both measure")
    with second.devices.held(Watch()) as words:
        assert words == ""
