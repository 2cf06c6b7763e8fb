"""`regress check` on the demo and on small repositories: real git, worktrees and processes, the scripted device."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from regress.commands.demo import PLANTED, create
from tests.conftest import Project, Result, regress, start

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
        (each["name"], each["metric"]): each["verdict"]
        for each in report["benchmarks"]
        if each["gates"] is gating and each["verdict"] != "unchanged"
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
    assert found(report) == {(each.benchmark, each.metric): str(each.verdict) for each in PLANTED[subject]}
    text = (demo.parent / "seen.txt").read_text()
    assert re.search(r"^FAIL  18 cases: 2 regressed, 16 unchanged", text, re.MULTILINE)
    assert "stated by the code, not measured" in text


@pytest.mark.slow
@pytest.mark.parametrize("subject", [subject for subject, planted in PLANTED.items() if planted])
def test_each_planted_change_is_found_by_its_metric(demo: Path, subject: str) -> None:
    sha = sha_of(demo, subject)
    result = regress(demo, "check", f"{sha}~1", sha, "--format", "json")
    report = document(result)
    planted = {(each.benchmark, each.metric): str(each.verdict) for each in PLANTED[subject]}
    everything = {**found(report), **found(report, gating=False)}
    assert planted.items() <= everything.items()
    for (name, metric), verdict in found(report).items():
        assert planted[name, metric] == verdict, "nothing else may be claimed"
    gated = any(verdict == "regressed" for verdict in found(report).values())
    assert result.code == (1 if gated else 0)
    if any(each.metric == "wall_time" for each in PLANTED[subject]):
        reasons = [each["reason"] for each in report["benchmarks"] if each["metric"] == "wall_time"]
        assert any("became synchronous" in (reason or "") for reason in reasons)


def test_a_commit_without_a_change_passes_and_repeats_exactly(project: Callable[..., Project]) -> None:
    p = project()
    p.commit({"proj/__init__.py": code(), "benchmarks/b.py": SUITE})
    p.commit({"README": "more"})
    first = p.regress("check", "--format", "json")
    assert first.code == 0, first.err
    report = document(first)
    assert (report["verdict"], found(report)) == ("PASS", {})
    assert report["base"]["revision"] == "HEAD~1"
    again = document(p.regress("check", "--format", "json"))
    assert [each["ratio"] for each in again["benchmarks"]] == [each["ratio"] for each in report["benchmarks"]]
    assert p.git("status", "--porcelain") == "", "a check leaves the tree as it was"


@pytest.mark.slow
def test_twenty_runs_of_one_check_agree(project: Callable[..., Project]) -> None:
    p = project()
    p.commit({"proj/__init__.py": code(), "benchmarks/b.py": SUITE})
    p.commit({"proj/__init__.py": code(54e-6)})
    outputs = set()
    for _ in range(20):
        report = document(p.regress("check", "--format", "json"))
        outputs.add(
            json.dumps(
                [[each["name"], each["metric"], each["verdict"], each["ratio"]] for each in report["benchmarks"]]
            )
        )
        assert report["exit_code"] == 1
    assert len(outputs) == 1


def test_a_benchmark_that_fails_on_head_only_is_3_and_the_others_are_measured(project: Callable[..., Project]) -> None:
    p = project()
    p.commit({"proj/__init__.py": code(), "benchmarks/b.py": SUITE})
    p.commit({"proj/__init__.py": code().replace("def work(): d", "def work(): d.nothing; d")})
    result = p.regress("check", "--format", "json")
    report = document(result)
    assert result.code == 3
    assert found(report) == {("b.cudatime_work", "gpu_time"): "failed"}
    (failed,) = [each for each in report["benchmarks"] if each["verdict"] == "failed"]
    assert "has no attribute 'nothing'" in json.dumps(failed)
    assert any(each["name"] == "b.cudatime_other" and each["ratio"] for each in report["benchmarks"])


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
    assert "no parent" in result.err


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


def test_a_branch_is_compared_with_where_it_left_main(project: Callable[..., Project]) -> None:
    p = project()
    start = p.commit({"proj/__init__.py": code(), "benchmarks/b.py": SUITE})
    p.git("checkout", "-q", "-b", "feature/fast")
    p.commit({"README": "1"})
    p.commit({"README": "2"})
    report = document(p.regress("check", "--format", "json", "--quick"))
    assert report["base"]["sha"] == start
    assert "merge base with main" in report["base"]["revision"]


def test_quick_judges_nothing(project: Callable[..., Project]) -> None:
    p = project()
    p.commit({"proj/__init__.py": code(), "benchmarks/b.py": SUITE})
    p.commit({"proj/__init__.py": code(100e-6)})
    result = p.regress("check", "--quick", "--format", "json")
    assert result.code == 0
    timed = [each for each in document(result)["benchmarks"] if each["metric"] == "gpu_time"]
    assert [each["verdict"] for each in timed] == ["undecided", "undecided"]


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
    assert {each["verdict"] for each in report["benchmarks"] if each["name"].startswith("b.cuda")} == {"skipped"}
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
    out, err = process.communicate(timeout=60)
    return subprocess.CompletedProcess([], process.returncode, out, err)


def test_ctrl_c_keeps_what_was_measured(project: Callable[..., Project]) -> None:
    p = project(check_rounds=500)
    p.commit({"proj/__init__.py": code(), "benchmarks/b.py": SUITE})
    p.commit({})
    done = interrupt(p, cases=12)
    assert done.returncode == 130, done.stderr
    report = json.loads(done.stdout)
    assert (report["verdict"], report["exit_code"]) == ("INTERRUPTED", 130)
    timed = [each for each in report["benchmarks"] if each["metric"] == "gpu_time"]
    assert timed
    assert all(each["ratio"] for each in timed)
    for file in (p.root / "history").rglob("*.json"):
        json.loads(file.read_text())


def test_an_output_that_cannot_be_written_is_refused_before_measuring(project: Callable[..., Project]) -> None:
    p = project()
    p.commit({"benchmarks/b.py": SUITE})
    for output in ("xml=out.xml", "json=missing/out.json", "json"):
        result = p.regress("check", "--output", output)
        assert (result.code, result.out) == (2, ""), output
        assert output.partition("=")[2] in result.err
