"""`--suite own`: each side is measured with the benchmark files of its own commit."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

import pytest

from tests.commands.test_check import document
from tests.commands.test_environments import wheel
from tests.conftest import Project

CODE = "import regress_scripted as d\ndef work(): d.kernel('k', {seconds})\n"
BASE = """
import proj
def cudatime_same(): proj.work()
def cudatime_rewritten(): proj.work()
def cudatime_dropped(): proj.work()
def time_marked(): proj.work()
"""
HEAD = """
import proj
def cudatime_same(): proj.work()
def cudatime_rewritten():
    proj.work()
    proj.work()
def cudatime_added(): proj.work()
def time_marked(): proj.work()
time_marked.cuda = True
"""


@pytest.fixture
def p(project: Callable[..., Project]) -> Project:
    """Two commits: the head's code is slower, and its suite is another one."""
    p = project(check_rounds=3, run_rounds=2, environments={"released": {"wheel": "dist/proj-1-py3-none-any.whl"}})
    p.commit({"proj/__init__.py": CODE.format(seconds="50e-6"), "benchmarks/b.py": BASE, ".gitignore": "dist/\n"})
    p.commit({"proj/__init__.py": CODE.format(seconds="60e-6"), "benchmarks/b.py": HEAD})
    return p


def gating(report: dict[str, object]) -> dict[str, tuple[str, bool]]:
    """Name -> verdict and whether there is a ratio, of the metric each case is about."""
    rows = report["benchmarks"]
    assert isinstance(rows, list)
    gating_rows = [row for row in rows if row["gates"] and row["metric"] != "peak_memory"]
    return {row["name"].removeprefix("b."): (row["verdict"], row["ratio"] is not None) for row in gating_rows}


def test_benchmarks_that_are_not_the_same_on_both_sides_get_no_ratio(p: Project) -> None:
    result = p.regress("check", "--suite", "own", "--format", "json", "--output", "text=../seen.txt")
    report = document(result)
    assert result.code == 1, result.err
    assert gating(report) == {
        "cudatime_same": ("regressed", True),
        "cudatime_rewritten": ("incomparable", False),
        "cudatime_dropped": ("gone", False),
        "cudatime_added": ("new", False),
        "time_marked": ("incomparable", False),
    }
    reasons = {row["name"]: row["reason"] for row in report["benchmarks"]}
    assert "the code of the benchmark differs between the sides: b.py" in reasons["b.cudatime_rewritten"]
    assert "different protocol (metric): wall_time on the base, gpu_time on the head" in reasons["b.time_marked"]
    assert any(row["repro"].endswith("--suite own -b b.cudatime_same") for row in report["benchmarks"])
    text = (p.root.parent / "seen.txt").read_text()
    assert "3 rounds a side, each with its own suite" in text
    assert "--suite own -b b.cudatime_same\n" in text


def test_without_it_both_sides_have_the_suite_of_the_checkout(p: Project) -> None:
    report = document(p.regress("check", "--format", "json"))
    assert gating(report) == dict.fromkeys(
        ("cudatime_same", "cudatime_rewritten", "cudatime_added", "time_marked"), ("regressed", True)
    )


def test_a_run_of_an_old_commit_can_take_the_suite_of_that_time(p: Project) -> None:
    report = document(p.regress("run", "HEAD~1", "--suite", "own", "--format", "json"))
    names = {row["name"] for row in report["benchmarks"]}
    assert names == {"b.cudatime_same", "b.cudatime_rewritten", "b.cudatime_dropped", "b.time_marked"}
    p.write({"benchmarks/b.py": "1 / 0"})
    result = p.regress("run", "HEAD", "--suite", "own")
    assert result.code == 0, "what lies in the tree is not looked at"
    assert "2 rounds, with its own suite" in result.out
    assert "the commit itself was measured, from a worktree\n" in result.out


def test_a_wheel_has_the_suite_of_its_commit(p: Project) -> None:
    wheel(p.root / "dist" / "proj-1-py3-none-any.whl", CODE.format(seconds="40e-6"))
    result = p.regress("check", "HEAD~1", "--base-env", "released", "--suite", "own", "--format", "json")
    report = document(result)
    assert gating(report)["cudatime_dropped"] == ("gone", False)
    (same,) = [row for row in report["benchmarks"] if row["name"] == "b.cudatime_same" and row["metric"] == "gpu_time"]
    assert same["ratio"] == pytest.approx(1.5, rel=0.02), "the code is the wheel's"


def test_a_commit_without_a_suite_is_5(p: Project) -> None:
    p.git("rm", "-rq", "benchmarks")
    bare = p.commit({}, "no suite")
    p.commit({"benchmarks/b.py": HEAD})
    result = p.regress("check", "HEAD~1", "--suite", "own")
    assert (result.code, result.out) == (5, "")
    assert result.err.splitlines()[0] == f"error: base {bare[:8]} has no folder benchmarks"
    assert result.err.splitlines()[-1] == "fix:   leave --suite own out"


def test_a_benchmark_that_was_renamed_is_compared_with_what_it_was(p: Project) -> None:
    renamed = "import proj\ndef cudatime_kept(): proj.work()\ncudatime_kept.was = 'b.cudatime_dropped'\n"
    p.commit({"benchmarks/b.py": renamed})
    report = document(p.regress("check", "HEAD~2", "HEAD", "--suite", "own", "--format", "json"))
    assert gating(report)["cudatime_kept"] == ("regressed", True)
    assert "cudatime_dropped" not in gating(report)


def test_a_comment_makes_no_other_benchmark_and_a_helper_does(project: Callable[..., Project]) -> None:
    p = project(check_rounds=2)
    helper = "from .helper import WORK\nclass T:\n    def track_helped(self): return WORK\n"
    plain = 'from importlib.metadata import version\ndef track_plain():\n    "Says {0}."\n    return 5  # {0}\n'
    for word, work in (("once", 5), ("again", 8)):
        files = {
            "benchmarks/a.py": plain.format(word),
            "benchmarks/b.py": helper,
            "benchmarks/helper.py": f"WORK = {work}\n",
        }
        p.commit({"proj/__init__.py": f"# {word}\n", **files})
    report = document(p.regress("check", "HEAD~1", "HEAD", "--suite", "own", "--format", "json"))
    reasons = {row["name"]: (row["verdict"], row["reason"]) for row in report["benchmarks"]}
    assert reasons["b.T.track_helped"] == (
        "incomparable",
        "the code of the benchmark differs between the sides: helper.py",
    )
    assert reasons["a.track_plain"][0] == "unchanged"
    assert p.regress("run", "-q").code == 0
    entry = json.loads((p.root / "history" / "benchmarks.json").read_text())["a.track_plain"]
    assert re.fullmatch("[0-9a-f]{64}", entry["version"]), "a function of that name is no version"
