"""`regress doctor --aa`: a side against itself, with real processes and in steps; and what later checks say of it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from regress.compare import CheckSteps, steps
from regress.history.memory import AA_FILE as FILE
from regress.session import Request, Session
from tests.conftest import Project, Result, inside, interrupted, start

CODE = "import regress_scripted as d\ndef work(): d.kernel('k', 50e-6)\ndef other(): d.kernel('o', 80e-6)\n"
SUITE = "import proj\ndef cudatime_work(): proj.work()\ndef cudatime_other(): proj.other()\n"
NOISY = """
import os, random
def track_noisy(): return random.Random(os.getpid()).uniform(1, 3)
track_noisy.unit = "s"
"""
TAKES_SIDES = """
import os
import regress_scripted as d
def setup_cache():
    second = os.path.exists({marker!r})
    open({marker!r}, "a").close()
    return {factor} if second else 1.0
def cudatime_planted(factor): d.kernel("k", 50e-6 * factor)
"""
"""Its setup_cache runs once a side, on the base first: the second one leaves the factor."""


def document(result: Result) -> dict[str, Any]:
    assert result.out, result.err
    return dict(json.loads(result.out))


def filled(project: Callable[..., Project], suite: str = SUITE, **settings: object) -> Project:
    p = project(**settings)
    p.commit({"proj/__init__.py": CODE, "benchmarks/b.py": suite})
    return p


def kept(p: Project) -> dict[str, Any]:
    """By machine, then by device: what the cache has."""
    path = Session(Request(p.root)).cache / FILE
    return dict(json.loads(path.read_text())["machines"]) if path.exists() else {}


def last_aa(p: Project, *options: str) -> dict[str, Any] | None:
    aa = document(p.regress("check", "HEAD", "--rounds", "2", "--format", "json", *options))["last_aa"]
    assert aa is None or isinstance(aa, dict)
    return aa


@pytest.mark.slow
def test_a_quiet_suite_gives_no_false_alarm_and_checks_show_that(project: Callable[..., Project]) -> None:
    p = filled(project)
    sha = p.git("rev-parse", "HEAD")
    assert last_aa(p) is None
    result = p.regress("doctor", "--aa", "--format", "json", "--machine", "box", "--output", "text=../seen.txt")
    aa = document(result)["aa"]
    assert (result.code, aa["verdict"], aa["head"]["sha"], aa["base"]) == (0, "PASS", sha, None)
    assert aa["counts"] == {"unchanged": 2}
    summary = aa["summary"]
    assert summary["commit"] == sha[:8]
    told = [summary[name] for name in ("cases", "false_alarms", "undecided", "unchanged")]
    assert told == [2, 0, 0, 2]
    rows = {row["name"]: row for row in aa["fineness"]}
    assert {name: row["rounds"] for name, row in rows.items()} == {"b.cudatime_work": 4, "b.cudatime_other": 4}
    for column in rows.values():
        assert 0 < column["spread"] < column["noise"] < 0.05 < column["min_detectable"] < 0.07
    assert {row["repro"] for row in aa["benchmarks"]} == {
        f"regress doctor --aa -b b.cudatime_{name}" for name in ("work", "other")
    }
    text = (p.root.parent / "seen.txt").read_text()
    assert re.search(r"^PASS  0 false alarms in 2 cases: 2 unchanged \(100 %\) ", text, re.MULTILINE)
    assert re.search(r"^= b\.cudatime_work +4 +[\d.]+ % +[\d.]+ % +5\.\d+ %  gpu time$", text, re.MULTILINE)

    assert last_aa(p, "--machine", "box", "-b", "work") == summary, "it was about more cases, this one among them"
    assert last_aa(p) is None, "on another machine"
    shown = p.regress("check", "HEAD", "--rounds", "2", "--machine", "box").out
    line = r"^      A/A \d+ s ago on this machine: 0 false alarms in 2 cases, 0 undecided, smallest detectable regression 5\."
    assert re.search(line, shown, re.MULTILINE)
    assert p.git("status", "--porcelain") == ""


@pytest.mark.slow
def test_it_is_not_shown_where_it_says_nothing(project: Callable[..., Project]) -> None:
    p = filled(project)
    assert p.regress("doctor", "--aa", "-q", "-b", "work").code == 0
    assert last_aa(p, "-b", "other") is None, "about none of its cases"
    ((machine, devices),) = kept(p).items()
    (uuid,) = devices
    assert uuid == "scripted"
    path = Session(Request(p.root)).cache / FILE
    path.write_text(path.read_text().replace('"scripted"', '"GPU-9"'))
    assert last_aa(p) is None, "on another device"
    assert p.regress("doctor", "--aa", "-q", "-b", "other").code == 0
    assert {uuid: row["cases"] for uuid, row in kept(p)[machine].items()} == {
        "GPU-9": ["b.cudatime_work"],
        "scripted": ["b.cudatime_other"],
    }


def test_a_noisy_suite_leaves_cases_undecided(project: Callable[..., Project]) -> None:
    p = filled(project, NOISY)
    with patch.object(steps, "LOOKS", (4,)), patch.object(CheckSteps, "_confirmable", lambda check_steps, suspects: []):
        result = inside(p, "doctor", "--aa", "--format", "json")
    aa = document(result)["aa"]
    assert (result.code, aa["verdict"]) == (4, "UNDECIDED"), "what cannot be told is no alarm, and no pass"
    assert (aa["summary"]["undecided"], aa["summary"]["unchanged"]) == (1, 0)
    (row,) = aa["fineness"]
    assert (row["verdict"], row["rounds"]) == ("undecided", 4)
    assert row["min_detectable"] > row["noise"] > 0.05, "what a check of it could see"
    assert aa["remark"] == "0 false alarms in 1 case: 1 undecided (100 %)"


@pytest.mark.parametrize(("factor", "verdict"), [(1.2, "regressed"), (0.8, "improved")])
@pytest.mark.slow
def test_a_change_that_cannot_be_is_a_false_alarm(
    project: Callable[..., Project], tmp_path: Path, factor: float, verdict: str
) -> None:
    p = filled(project, TAKES_SIDES.format(marker=str(tmp_path / "base-was-here"), factor=factor))
    result = p.regress("doctor", "--aa", "--format", "json")
    aa = document(result)["aa"]
    assert (result.code, aa["verdict"], aa["counts"]) == (1, "FAIL", {verdict: 1})
    assert (aa["summary"]["false_alarms"], aa["summary"]["unchanged"]) == (1, 0)
    (row,) = aa["fineness"]
    assert (row["verdict"], row["rounds"]) == (verdict, 10), "four that made it suspicious, six that confirmed it"
    (alarm,) = [row for row in aa["benchmarks"] if row["gates"] and row["verdict"] == verdict]
    assert alarm["ratio"] == pytest.approx(factor, rel=0.02)
    assert {"word": "again", "command": "regress doctor --aa -b b.cudatime_planted"} in document(result)["suggestions"]
    last = last_aa(p)
    assert last is not None
    assert last["false_alarms"] == 1


def test_the_working_tree_is_measured_against_itself(project: Callable[..., Project]) -> None:
    p = filled(project)
    p.write({"proj/__init__.py": CODE.replace("50e-6", "70e-6")})
    aa = document(p.regress("doctor", "--aa", "--format", "json", "-b", "work"))["aa"]
    assert aa["head"]["dirty"] is True
    assert aa["summary"]["commit"].endswith("+changes")
    (row,) = [entry for entry in aa["benchmarks"] if entry["metric"] == "gpu_time"]
    assert (row["base"], row["head"]) == (pytest.approx(70e-6, rel=0.02), pytest.approx(70e-6, rel=0.02))


def test_where_nothing_can_be_measured_it_is_5_and_nothing_is_kept(project: Callable[..., Project]) -> None:
    p = filled(project, "def time_work(): 1 / 0\n")
    result = p.regress("doctor", "--aa")
    assert result.code == 5
    assert "ZeroDivisionError" in result.out
    assert result.out.splitlines()[-1].startswith("NOTHING  1 case: 1 failed")
    assert p.regress("doctor", "--aa", "-b", "nowhere").code == 5
    p.write({"benchmarks/b.py": SUITE})
    assert p.regress("doctor", "--aa", "--device", "cpu").code == 5
    assert kept(p) == {}


def test_after_ctrl_c_it_says_what_it_has_and_keeps_nothing(project: Callable[..., Project], tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    p = filled(
        project, f"def time_work():\n    import time\n    time.sleep(0.01)\n    open({str(seen)!r}, 'a').close()\n"
    )
    result = interrupted(start(p.root, "doctor", "--aa", "--format", "json"), seen)
    assert result.code == 130, result.err
    told = json.loads(result.out)
    assert (told["aa"]["verdict"], told["exit_codes"][0]) == ("INTERRUPTED", 130)
    assert any("not kept" in warning for warning in told["warnings"])
    assert kept(p) == {}


def test_what_is_about_aa_alone_is_refused_without_it(project: Callable[..., Project]) -> None:
    p = filled(project)
    result = p.regress("doctor", "--budget", "1m")
    assert (result.code, result.out) == (2, "")
    assert "need --aa" in result.err


def test_a_cache_that_cannot_be_written_costs_the_memory_only(project: Callable[..., Project]) -> None:
    p = filled(project)
    (Session(Request(p.root)).cache / FILE).mkdir(parents=True)
    result = p.regress("doctor", "--aa", "-b", "work")
    assert result.code == 0
    assert "checks will not show this" in result.out
