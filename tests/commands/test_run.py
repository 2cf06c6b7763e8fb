"""`regress run`: one side measured, printed and recorded, whatever happens on the way."""

from __future__ import annotations

import json
import re
import shlex
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from regress.commands import run as module
from regress.history import Recorded, Store
from regress.report.json import schema
from regress.run.execute import Job, JobResult, Sink, Watcher
from regress.run.execute import execute as really_execute
from regress.session import Request
from tests.conftest import Project, Result, ended, start
from tests.run.test_execute import Watch

CODE = "import regress_scripted as d\ndef work(): d.kernel('k', {seconds})\ndef other(): d.kernel('o', 80e-6)\n"
SUITE = "import proj\ndef cudatime_work(): proj.work()\ndef cudatime_other(): proj.other()\n"


def code(seconds: float = 50e-6) -> str:
    return CODE.format(seconds=seconds)


def measured(p: Project, **files: str) -> str:
    """A commit of the project with its suite."""
    return p.commit({"proj/__init__.py": code(), "benchmarks/b.py": SUITE, **files})


def document(result: Result) -> dict[str, Any]:
    assert result.out, result.err
    data: dict[str, Any] = json.loads(result.out)
    jsonschema.Draft202012Validator(schema()).validate(data)
    return data


def values(report: dict[str, Any]) -> dict[str, float]:
    """Benchmark -> value, of the metric each is about."""
    return {row["name"]: row["value"] for row in report["benchmarks"] if row["primary"]}


def recorded(p: Project, sha: str) -> Recorded:
    """What the store has of a commit; nothing of it may be unreadable."""
    loaded = Store(p.root / "history").load(sha)
    assert loaded.skipped == ()
    (result,) = loaded.recorded
    return result


def files(p: Project) -> list[str]:
    """The files of results, relative to the machine's folder, hidden ones left out."""
    paths = (path for path in (p.root / "history").rglob("*") if path.is_file() and path.name[0] != ".")
    return sorted(path.name for path in paths)


def asvs_values(p: Project, sha: str) -> dict[str, Any]:
    """Name -> values, as they stand in asv's own file."""
    (path,) = (p.root / "history").rglob(f"{sha[:8]}-*.json")
    data = json.loads(path.read_text())
    assert data["commit_hash"] == sha
    where = data["result_columns"].index("result")
    return {name: row[where] for name, row in data["results"].items()}


def test_a_run_is_recorded_and_a_second_one_is_merged(project: Callable[..., Project]) -> None:
    p = project(run_rounds=2)
    sha = measured(p)
    first = document(p.regress("run", "-b", "b.cudatime_work", "--format", "json"))
    assert first["exit_codes"] == [0]
    assert first["recorded"] == str(p.root / "history")
    assert first["head"]["sha"] == sha
    assert values(first) == {"b.cudatime_work": pytest.approx(50e-6, rel=0.02)}
    stem = f"{sha[:8]}-{first['environment']}"
    listed = ["benchmarks.json", "further_metrics.jsonl", "machine.json", f"{stem}.json", f"{stem}.rounds.jsonl"]
    assert files(p) == sorted(listed)
    before = asvs_values(p, sha)
    assert before["b.cudatime_work"] == [pytest.approx(values(first)["b.cudatime_work"], rel=1e-4)]
    assert before["b.cudatime_work.peak_memory"] == [0]
    assert "b.cudatime_other" not in before

    second = document(p.regress("run", "-b", "b.cudatime_other", "--format", "json"))
    assert set(values(second)) == {"b.cudatime_other"}
    both = asvs_values(p, sha)
    assert {name: both[name] for name in before} == before, "the first results stay"
    assert both["b.cudatime_other"] == [pytest.approx(values(second)["b.cudatime_other"], rel=1e-4)]
    kept = recorded(p, sha)
    assert sorted((round.name, round.order) for round in kept.rounds) == [
        (f"b.cudatime_{name}", order) for name in ("other", "work") for order in (0, 1)
    ]
    assert kept.machine.facts["gpu"] == "scripted device"


@pytest.mark.parametrize("words", [("run",), ("check", "HEAD~1", "HEAD")])
def test_a_tree_that_changes_meanwhile_is_said(project: Callable[..., Project], words: tuple[str, ...]) -> None:
    p = project()
    measured(p)
    writes = f"def track_writes(): return open({str(p.root / 'proj' / 'new.py')!r}, 'w').write('# new')\n"
    p.commit({"benchmarks/c.py": writes})
    said = "the working tree has changes; the commit itself was measured, from a worktree"
    assert said not in p.regress(*words, "-b", "cudatime").out
    result = p.regress(*words)
    assert result.code in (0, 4)
    assert f"warning: {said}" in result.out


@pytest.mark.parametrize("process", ["auto", "fresh"])
def test_where_the_projects_code_came_from_is_recorded(project: Callable[..., Project], process: str) -> None:
    p = project(run_rounds=2, process=process)
    sha = p.commit({"src/proj/__init__.py": code(), "src/proj/extra.py": "", "benchmarks/b.py": SUITE})
    assert p.regress("run", "-q").code == 0
    for round in recorded(p, sha).rounds:
        assert round.facts["project_files"] == ["proj/__init__.py"], "named from src/, where the side's code is"


EDITS = """
import pathlib, proj
def track_edits():
    calls = pathlib.Path({calls!r})
    calls.write_text(calls.read_text() + "x" if calls.exists() else "x")
    if len(calls.read_text()) == 3:
        path = pathlib.Path({edited!r})
        path.write_text(path.read_text() + "# edited")
    return 1
"""


def test_benchmark_files_that_change_meanwhile_end_the_recording(
    project: Callable[..., Project], tmp_path: Path
) -> None:
    p = project(run_rounds=3)
    edits = EDITS.format(calls=str(tmp_path / "calls"), edited=str(p.root / "benchmarks" / "b.py"))
    sha = measured(p, **{"benchmarks/c.py": edits})
    result = p.regress("run", "--format", "json")
    warnings = document(result)["warnings"]
    assert "benchmark files changed during the run: b.py" in warnings
    assert "both sides use the working tree's benchmark files, with uncommitted changes: benchmarks/b.py" in warnings
    (left_out,) = [int(words.split(": ")[1].split()[0]) for words in warnings if words.startswith("not recorded")]
    kept = [round for round in recorded(p, sha).rounds if round.name == "c.track_edits"]
    # The third call is in the second round.
    assert [record.order for record in kept] == [0]
    assert left_out >= 2


def test_a_dirty_tree_that_changes_meanwhile_is_said(project: Callable[..., Project], tmp_path: Path) -> None:
    p = project(run_rounds=3)
    edits = EDITS.format(calls=str(tmp_path / "calls"), edited=str(p.root / "proj" / "__init__.py"))
    measured(p)
    p.write({"benchmarks/c.py": edits})
    result = p.regress("run")
    said = "warning: the working tree changed during the run: proj/__init__.py; its rounds may mix several states"
    assert said in result.out
    assert files(p) == []


def test_the_verdict_line_says_that_nothing_was_recorded(project: Callable[..., Project]) -> None:
    """With -q it is all there is, and whoever runs it that way wants the record."""
    p = project()
    measured(p)
    (p.root / "notes.txt").write_text("a file that git does not know")
    assert "   not recorded: uncommitted changes   " in p.regress("run", "-q").out
    (p.root / "notes.txt").unlink()
    assert "not recorded" not in p.regress("run", "-q").out


def test_what_is_no_number_is_skipped_or_fails_and_the_verdict_line_counts_it(project: Callable[..., Project]) -> None:
    """A `track_*` that returns NaN says that there is no number, as in asv."""
    p = project()
    suite = "\n".join(f"def track_{name}(): return float({name!r})" for name in ("nan", "inf", "1"))
    p.commit({"proj/__init__.py": "", "benchmarks/b.py": suite})
    report = document(p.regress("run", "--format", "json"))
    failures = {row["name"]: row["failure"] and row["failure"]["kind"] for row in report["benchmarks"]}
    assert failures == {"b.track_nan": "skipped", "b.track_inf": "error", "b.track_1": None}
    assert p.regress("run", "-q").out.startswith("FAIL  3 cases: 1 measured, 1 failed, 1 skipped   ")


def test_rows_stand_by_name_and_as_the_suite_orders_parameters(project: Callable[..., Project]) -> None:
    """Whatever order a round has measured them in."""
    p = project()
    suite = "def track_b(n): return 1\ntrack_b.params = [16, 8, 1024]\ndef track_a(): return 1\n"
    p.commit({"proj/__init__.py": "", "benchmarks/b.py": suite})
    rows = document(p.regress("run", "--format", "json"))["benchmarks"]
    assert [(row["name"], row["params"]) for row in rows] == [
        ("b.track_a", []),
        ("b.track_b", ["16"]),
        ("b.track_b", ["8"]),
        ("b.track_b", ["1024"]),
    ]


def test_verbose_says_what_it_cost_beside_measuring(project: Callable[..., Project]) -> None:
    p = project()
    measured(p)
    time = r"\S+ (s|ms|us)"
    pattern = rf"^cost  +{time} to start a round's process, {time} of overhead a case$"
    assert re.search(pattern, p.regress("run", "-v").out, re.MULTILINE)
    assert "beside measuring" not in p.regress("run").out


def test_where_the_time_goes_is_told_by_benchmark_the_slowest_first(project: Callable[..., Project]) -> None:
    """What it waits for says at least how long it took: setups, a setup_cache, and a call that is the end of its process."""
    p = project(run_rounds=2)
    suite = """
import os, time
class Dies:
    def time_die(self): time.sleep(3); os._exit(3)
class Slow:
    params = [1, 2]
    def setup_cache(self): return time.sleep(0.05) or 1
    def setup(self, cache, n): time.sleep(0.1)
    def track_slow(self, cache, n): return n
def track_quick(): return 1
"""
    measured(p, **{"benchmarks/c.py": suite})
    result = p.regress("run", "-b", "^c", "--durations=2", "--format", "json")
    durations = document(result)["durations"]
    dies, slow = durations["slowest"]
    assert (result.code, durations["of"], durations["build_s"]) == (3, 3, 0)
    assert (dies["name"], dies["cases"], dies["first_visits_s"] >= 3) == ("c.Dies.time_die", 1, True)
    assert (slow["name"], slow["cases"]) == ("c.Slow.track_slow", 2)
    assert slow["setup_s"] >= 2 * 3 * 0.1, "of two cases, in a first visit and two rounds"
    assert slow["setup_cache_s"] >= 0.05
    parts = ("setup_cache_s", "setup_s", "first_visits_s", "rounds_s")
    assert slow["seconds"] == pytest.approx(sum(slow[part] for part in parts))


def test_what_was_interrupted_before_the_first_round_claims_nothing(
    project: Callable[..., Project], monkeypatch: pytest.MonkeyPatch
) -> None:
    p = project()
    measured(p)
    monkeypatch.setattr(module, "execute", lambda *_: JobResult(interrupted=True))
    report = module.run(Request(p.root), None, Watch())
    assert (report.state, report.recorded, report.device) == ("INTERRUPTED", "", "")


def test_other_processes_on_the_device_are_said(
    project: Callable[..., Project], monkeypatch: pytest.MonkeyPatch
) -> None:
    p = project()
    measured(p)
    words = "pid 812 (python), 4.1 GiB"

    def execute(job: Job, sink: Sink, watcher: Watcher) -> JobResult:
        job_result = really_execute(job, sink, watcher)
        job_result.rounds = [
            replace(round, facts={**round.facts, "foreign_processes": [words]}) for round in job_result.rounds
        ]
        return job_result

    monkeypatch.setattr(module, "execute", execute)
    report = module.run(Request(start=p.root), None, Watch())
    assert f"contaminated: other processes computed on the device: {words}" in report.warnings


def test_a_tree_with_changes_is_measured_but_not_recorded(project: Callable[..., Project]) -> None:
    p = project(run_rounds=2)
    sha = measured(p)
    p.write({"proj/__init__.py": code(70e-6)})
    result = p.regress("run", "--format", "json", "--output", f"text={p.root.parent / 'seen.txt'}")
    report = document(result)
    assert (result.code, report["recorded"], report["head"]["dirty"]) == (0, None, True)
    assert values(report)["b.cudatime_work"] == pytest.approx(70e-6, rel=0.02), "the tree, not the commit"
    said = f"the tree has uncommitted changes: the results are not recorded as {sha[:8]}"
    assert said in report["warnings"]
    assert said in (p.root.parent / "seen.txt").read_text()
    assert files(p) == []


def test_a_failing_benchmark_is_3_and_the_others_are_measured_and_recorded(project: Callable[..., Project]) -> None:
    p = project(run_rounds=2)
    bad = "def cudatime_bad():\n    raise KeyError('gone')\n"
    sha = measured(p, **{"benchmarks/bad.py": bad})
    result = p.regress("run", "--format", "json")
    report = document(result)
    assert (result.code, report["exit_codes"]) == (3, [3])
    assert values(report) == {
        "b.cudatime_work": pytest.approx(50e-6, rel=0.02),
        "b.cudatime_other": pytest.approx(80e-6, rel=0.02),
        "bad.cudatime_bad": None,
    }
    (error,) = report["errors"]
    assert (error["name"], error["message"]) == ("bad.cudatime_bad", "KeyError: 'gone'")
    assert error["where"].endswith("bad.py:2")
    assert asvs_values(p, sha)["bad.cudatime_bad"] is None, "how asv writes a failure"
    only_bad = p.regress("run", "-b", "bad", "--format", "json")
    assert (only_bad.code, document(only_bad)["exit_codes"]) == (5, [5, 3]), "nothing was measured, which is worse"


NO_VALUES = """
import math, pathlib
CALLS = pathlib.Path({calls!r})
def track_good(): return 2.0
def track_infinite(): return math.inf
def track_nan(): return math.nan
def track_negative(): return -1.0
def track_once_infinite():
    CALLS.write_text((CALLS.read_text() if CALLS.exists() else "") + "x")
    return math.inf if len(CALLS.read_text()) == 3 else 2.0
"""


def test_values_that_are_none_are_told_as_a_check_tells_them(project: Callable[..., Project], tmp_path: Path) -> None:
    p = project(run_rounds=5)
    suite = NO_VALUES.format(calls=str(tmp_path / "calls")) + "for each in list(vars().values()):\n"
    sha = p.commit({"proj/__init__.py": "", "benchmarks/b.py": f"{suite}    if callable(each): each.unit = 's'\n"})
    result = p.regress("run", "--format", "json")
    report = document(result)
    assert (result.code, report["exit_codes"]) == (3, [3])
    none = {f"b.track_{name}": None for name in ("infinite", "nan")}
    assert values(report) == {"b.track_good": 2.0, "b.track_negative": -1.0, "b.track_once_infinite": 2.0, **none}
    said = {error["name"]: error["message"] for error in report["errors"]}
    assert said["b.track_infinite"] == "infinite value in 5 of 5 rounds"
    assert "b.track_negative" not in said
    assert "b.track_nan" not in said, "which is how a benchmark says that there is no number"
    assert len(recorded(p, sha).rounds) == 25
    text = p.regress("run").out
    assert "NaN value in 5 of 5 rounds" in text
    assert p.regress("run", "-b", "nan").code == 5


def test_only_skipped_cases_are_5(project: Callable[..., Project]) -> None:
    p = project(run_rounds=2)
    suite = "class S:\n    def setup(self): raise NotImplementedError\n    def time_it(self): pass\n"
    p.commit({"proj/__init__.py": "", "benchmarks/b.py": suite})
    result = p.regress("run")
    assert result.code == 5
    assert "NOTHING" in result.out
    assert "skipped by its setup" in result.out


@pytest.mark.parametrize("revision", ["HEAD~1..HEAD", "main...HEAD"])
def test_a_range_is_refused_with_what_to_do_instead(project: Callable[..., Project], revision: str) -> None:
    p = project()
    measured(p)
    result = p.regress("run", revision)
    assert (result.code, result.out) == (2, "")
    assert result.err.splitlines() == [
        f"error: {revision} is a range, and run measures one commit",
        "why:   a range may mean hours of measuring",
        f"fix:   regress sweep {shlex.quote(revision)}",
    ]


def test_a_suite_that_is_not_there_is_5(project: Callable[..., Project]) -> None:
    p = project()
    p.git("rm", "-r", "-q", "--cached", "--ignore-unmatch", "benchmarks")
    (p.root / "benchmarks" / "__init__.py").unlink()
    (p.root / "benchmarks").rmdir()
    p.commit({"proj/__init__.py": code()})
    result = p.regress("run")
    assert (result.code, result.out) == (5, "")
    assert f"there is no folder {p.root / 'benchmarks'}" in result.err
    assert 'why:   asv.conf.json has no "benchmark_dir", so it is benchmarks' in result.err


def test_another_revision_is_measured_while_the_tree_stays_as_it_is(project: Callable[..., Project]) -> None:
    p = project(run_rounds=2)
    old = measured(p)
    new = p.commit({"proj/__init__.py": code(60e-6)})
    p.write({"proj/__init__.py": code(90e-6), "notes.txt": "mine"})
    before = p.git("status", "--porcelain", "--", "proj", "notes.txt", "benchmarks")
    result = p.regress("run", "HEAD~1", "-b", "work", "--format", "json")
    report = document(result)
    assert result.code == 0, result.err
    assert (report["head"]["sha"], report["head"]["dirty"]) == (old, False)
    assert values(report) == {"b.cudatime_work": pytest.approx(50e-6, rel=0.02)}
    assert recorded(p, old).rounds
    assert Store(p.root / "history").load(new).recorded == ()
    assert p.git("status", "--porcelain", "--", "proj", "notes.txt", "benchmarks") == before
    assert p.git("rev-parse", "HEAD") == new
    assert (p.root / "proj" / "__init__.py").read_text() == code(90e-6)


# -- the end comes early -------------------------------------------------------------------------------------------------


PID_SUITE = """
import os, proj
with open({folder!r} + "/" + str(os.getpid()), "w"): pass
def cudatime_work(): proj.work()
def cudatime_other(): proj.other()
"""


@pytest.fixture
def long_run(project: Callable[..., Project], tmp_path: Path) -> Iterator[tuple[Project, subprocess.Popen[str], Path]]:
    """A run of very many rounds, once some of them are on disk; and a folder with a file for each process it started."""
    pids = tmp_path / "pids"
    pids.mkdir()
    p = project(run_rounds=1000)
    p.commit({"proj/__init__.py": code(), "benchmarks/b.py": PID_SUITE.format(folder=str(pids))})
    process = start(p.root, "run", "--format", "json")
    with process:
        try:
            while sum(path.read_text().count('"order"') for path in (p.root / "history").rglob("*.rounds.jsonl")) < 4:
                assert process.poll() is None, process.communicate()[1]
                time.sleep(0.02)
            yield p, process, pids
        finally:
            process.kill()


def all_ended(pids: Path) -> bool:
    """Whether every process ends that wrote its number."""
    numbers = [int(path.name) for path in pids.iterdir()]
    assert numbers
    return all(map(ended, numbers))


def test_ctrl_c_keeps_the_rounds_and_is_130(long_run: tuple[Project, subprocess.Popen[str], Path]) -> None:
    p, process, pids = long_run
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=120)
    report = document(Result(process.returncode, out, err))
    assert (process.returncode, report["exit_codes"]) == (130, [130]), err
    assert values(report)["b.cudatime_work"] == pytest.approx(50e-6, rel=0.02)
    sha = p.git("rev-parse", "HEAD")
    assert asvs_values(p, sha)["b.cudatime_work"] == [pytest.approx(50e-6, rel=0.02)]
    assert len(recorded(p, sha).rounds) >= 4
    assert all_ended(pids)


def test_a_driver_that_is_killed_leaves_whole_files_and_no_worker(
    long_run: tuple[Project, subprocess.Popen[str], Path],
) -> None:
    p, process, pids = long_run
    process.kill()
    process.communicate(timeout=120)
    assert all_ended(pids)
    for path in (p.root / "history").rglob("*.json"):
        json.loads(path.read_text())
    sha = p.git("rev-parse", "HEAD")
    kept = len(recorded(p, sha).rounds)
    assert kept >= 4
    after = p.regress("run", "--rounds", "2", "--format", "json")
    assert after.code == 0, after.err
    assert len(recorded(p, sha).rounds) == kept + 4, "what the killed run had measured is there, and more can be added"
    assert set(asvs_values(p, sha)) >= {"b.cudatime_work", "b.cudatime_other"}


@pytest.mark.parametrize("at", ["python/late", None], ids=["in another folder", "not there yet"])
def test_what_is_installed_is_not_measured_in_place_of_a_commit_without_the_package(
    at: str | None, project: Callable[..., Project], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    p = project(run_rounds=2, sweep_rounds=2)
    installed = tmp_path / "site" / "late"
    installed.mkdir(parents=True)
    (installed / "__init__.py").write_text("N = 1000\n")
    monkeypatch.setenv("PYTHONPATH", str(installed.parent))
    before = {f"{at}/__init__.py": "N = 1\n"} if at else {"NEWS": ""}
    old = p.commit(
        {"proj/__init__.py": code(), "benchmarks/b.py": "import late\ndef track_n(): return late.N\n", **before}
    )
    new = p.commit({"late/__init__.py": "N = 2\n"})
    refused = p.regress("check", old, new, "--rounds", "2")
    assert refused.code == 5
    assert f"base {old[:8]} would not be measured: it has no late to import" in refused.err
    swept = p.regress("sweep", "ALL")
    assert (swept.code, [commit.commit_sha for commit in Store(p.root / "history").commits()]) == (3, [new])
    assert f"{old[:8]} was left out: " in swept.out
    assert p.regress("run", old).code == 5
    report = document(p.regress("run", "--format", "json"))
    assert (values(report), report["imported"]) == ({"b.track_n": 2.0}, {"head": ["late/__init__.py"]})


def test_a_quick_look_is_kept_nowhere(project: Callable[..., Project]) -> None:
    """Its one sample without warm-up would be pooled with real rounds, and blame a commit later."""
    p = project(run_rounds=2)
    sha = measured(p)
    result = p.regress("run", "--quick")
    assert (result.code, "not recorded: --quick" in result.out, files(p)) == (0, True, [])
    assert p.regress("run").code == 0
    p.commit({"NEWS": ""})
    assert p.regress("run", "--quick", sha).code == p.regress("check", "--quick", "--record").code == 0
    assert Counter(round.name for round in recorded(p, sha).rounds) == {"b.cudatime_work": 2, "b.cudatime_other": 2}
    assert [commit.commit_sha for commit in Store(p.root / "history").commits()] == [sha]
    assert p.regress("sweep", "--quick").code == 2
