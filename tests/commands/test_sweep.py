"""`regress sweep` on small repositories: real git, worktrees and processes, the scripted device."""

from __future__ import annotations

import json
import random
import re
import signal
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import pytest

from regress.commands.sweep.bisecting import wanted
from regress.commands.sweep.choosing import Asked, choose
from regress.commands.sweep.done import TRIES
from regress.commands.sweep.measuring import Sweep
from regress.commands.sweep.reporting import _remark
from regress.history import Store
from regress.history.disk import LOCK_NAME
from regress.history.sidecar import ENDING
from regress.model import METRICS, Breakage, Case, Changed, ChangePoint, Commit, Failure, Verdict
from regress.session import Request, Session
from regress.text.wording import quoted
from regress.trends.events import Events, by_history, events_in, events_on, shifts_in
from tests.commands.test_check import code, document
from tests.conftest import Project, inside, interrupted, start
from tests.pages.made import Made, noisy
from tests.report.test_json import validate

pytestmark = pytest.mark.usefixtures("dated")

SUITE = "import proj\ndef cudatime_work(): proj.work()\ndef cudatime_other(): proj.other()\n"
CASES = ("b.cudatime_other", "b.cudatime_work")


def filled(project: Callable[..., Project], times: list[float], **settings: object) -> tuple[Project, list[str]]:
    """A repository with one commit for each time of `work`, and their full hashes, the oldest first."""
    p = project(**settings)
    shas = [p.commit({"proj/__init__.py": code(times[0]), "benchmarks/b.py": SUITE}, "commit 0")]
    shas += [
        p.commit({"proj/__init__.py": code(seconds), "NEWS": str(at)}, f"commit {at}")
        for at, seconds in enumerate(times[1:], 1)
    ]
    return p, shas


def rounds_of(p: Project) -> dict[str, Counter[str]]:
    """By full hash: how many rounds of each benchmark are recorded as the commit's."""
    counts = {}
    for commit in Store(p.root / "history").commits():
        (recorded,) = Store(p.root / "history").load(commit.commit_sha).recorded
        counts[commit.commit_sha] = Counter(round.name for round in recorded.rounds)
    return counts


def swept(p: Project, *arguments: str) -> dict[str, Any]:
    return document(p.regress("sweep", *arguments, "--format", "json"))


def test_a_range_is_measured_and_the_commit_that_did_it_is_named(project: Callable[..., Project]) -> None:
    p, shas = filled(project, [50e-6] * 4 + [60e-6] * 5)
    result = p.regress("sweep", f"{shas[0]}..", "--format", "json", "--output", "text=../seen.txt")
    report = document(result)
    assert (result.code, report["verdict"]) == (1, "FAIL"), result.err
    (change,) = report["changes"]
    assert (change["name"], change["metric"], change["verdict"]) == ("b.cudatime_work", "gpu_time", "regressed")
    assert (change["first"], change["good"], change["state"], change["new"]) == (shas[4], shas[3], "confirmed", True)
    assert [row["subject"] for row in change["blamed"]] == ["commit 4"]
    assert change["ratio"] == pytest.approx(1.2, rel=0.02)
    assert rounds_of(p) == {sha: Counter(dict.fromkeys(CASES, 2)) for sha in shas[1:]}
    text = (p.root.parent / "seen.txt").read_text()
    row = r"^\+ b\.cudatime_work +[\d.]+ us +[\d.]+ us +\+[\d.]+ % .*gpu time +[0-9a-f]{8} commit 4 \(Ada Lovelace\)$"
    assert re.search(row, text, re.MULTILINE), text
    assert re.search(r"^FAIL  1 new regression \(8 of 8 commits measured\) ", text, re.MULTILINE)
    assert f"regress check {shas[3][:8]} {shas[4][:8]} -b b.cudatime_work" in text

    again = p.regress("sweep", f"{shas[0]}..", "--format", "json")
    assert (again.code, document(again)["remark"]) == (
        0,
        f"nothing to measure: {shas[0]}.., all 8 are measured; 1 regression open",
    )
    assert rounds_of(p) == {sha: Counter(dict.fromkeys(CASES, 2)) for sha in shas[1:]}


@pytest.mark.slow
def test_new_commits_are_measured_beside_the_last_head_and_the_last_release(project: Callable[..., Project]) -> None:
    p, shas = filled(project, [50e-6] * 3)
    p.git("tag", "v1", shas[0])
    assert "(1 of 1 commit measured)" in swept(p)["remark"], (
        "where nothing is recorded the newest commit is the new one"
    )
    assert swept(p)["remark"] == f"nothing to measure: no commit is new after {shas[2][:8]}"
    swept(p, shas[0])
    shas += [p.commit({"proj/__init__.py": code(50e-6 + at * 1e-9)}, f"commit {at}") for at in (3, 4)]
    report = p.regress("sweep", "--output", "json=../seen.json")
    assert f"{shas[0][:8]}, {shas[2][:8]} measured again beside them" in report.out
    assert re.search(
        rf"^anchors  v1, {shas[2][:8]}: within [\d.]+ % of when they were recorded$", report.out, re.MULTILINE
    )
    assert "note:" not in report.out
    first, second = json.loads((p.root.parent / "seen.json").read_text())["anchors"]
    assert [row["commit"]["sha"] for row in (first, second)] == [shas[0], shas[2]]
    assert {row["beside"]["sha"] for row in (first, second)} == {shas[4]}
    assert [(row["label"], row["cases"], row["drifted"]) for row in (first, second)] == [
        ("v1", 2, False),
        (None, 2, False),
    ]
    assert 0 < second["recorded_at"] < first["recorded_at"] < time.time(), "the tag was measured later than the head"
    assert set(rounds_of(p)) == {shas[0], *shas[2:]}
    anchors = {(anchor.recorded.commit_sha, anchor.beside): len(anchor.recorded.rounds) for anchor in anchors_of(p)}
    assert anchors == {(shas[0], shas[4]): 4, (shas[2], shas[4]): 4}
    assert rounds_of(p)[shas[2]] == Counter(dict.fromkeys(CASES, 2)), "the results of its own are what they were"
    assert swept(p)["remark"] == f"nothing to measure: no commit is new after {shas[4][:8]}"
    assert len(anchors_of(p)) == 2


def test_a_machine_that_has_drifted_is_told_of(
    project: Callable[..., Project], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The one that is measured on takes as much longer as a variable says."""
    p = project(sweep_rounds=4)
    slow = "import os, regress_scripted\nSLOW = float(os.environ.get('SLOW', 1))\n"
    work = "def work(): regress_scripted.kernel('k', SLOW * {})\ndef other(): regress_scripted.kernel('o', 80e-6)\n"
    sha = p.commit({"proj/__init__.py": slow + work.format(50e-6), "benchmarks/b.py": SUITE}, "one")
    swept(p)
    p.commit({"proj/__init__.py": slow + work.format(51e-6)}, "two")
    monkeypatch.setenv("SLOW", "1.25")
    report = p.regress("sweep", "--output", "json=../seen.json")
    name = sha[:8]
    assert re.search(
        rf"^note: the machine has drifted since {name} was recorded \(.*\): 1 of 2 cases by \+2\d\.\d %$",
        report.out,
        re.MULTILINE,
    )
    assert (
        f"note: of a change of that case in the same direction since {name}, only what exceeds this drift counts"
        in report.out
    )
    assert "\nanchors  " not in report.out
    (anchor,) = json.loads((p.root.parent / "seen.json").read_text())["anchors"]
    assert anchor["drifted"]
    (moved,) = anchor["moved"]
    assert (moved["name"], moved["metric"], moved["ratio"]) == (
        "b.cudatime_work",
        "gpu_time",
        pytest.approx(1.25, rel=0.02),
    )
    assert anchor["within"] == pytest.approx(moved["ratio"] - 1)


def anchors_of(p: Project) -> tuple[Any, ...]:
    return Store(p.root / "history").anchors()


def test_shards_of_named_commits_are_judged_when_they_are_merged(project: Callable[..., Project]) -> None:
    p, shas = filled(project, [50e-6] * 4 + [60e-6] * 4)
    shards = [p.root.parent / name for name in ("even", "odd")]
    for shard, own in zip(shards, (shas[::2], shas[1::2]), strict=True):
        result = p.regress("sweep", *own, "--into", str(shard), "-b", "work", "--until", "2999-01-01T06:00", "-q")
        assert (result.code, result.err) == (0, ""), "two commits after the step are too few to be sure"
        assert {commit.commit_sha for commit in Store(shard).commits()} == set(own)
    assert not (p.root / "history").exists()
    result = p.regress("merge", *map(str, shards), "--format", "json", "--output", "text=../seen.txt")
    assert result.code == 1, result.err
    report = document(result)
    validate(report)
    assert [(change["first"], change["good"], change["new"]) for change in report["changes"]] == [
        (shas[4], shas[3], True)
    ]
    assert "2 folders: 16 rounds added; 1 new regression" in (p.root.parent / "seen.txt").read_text()

    result = p.regress("merge", *map(str, shards), "--format", "json")
    assert (result.code, document(result)["changes"]) == (0, []), "nobody is told twice"
    result = p.regress("sweep", "EXISTING", "-b", "work", "--format", "json")
    assert [(change["first"], change["new"]) for change in document(result)["changes"]] == [(shas[4], False)]
    assert (result.code, document(result)["remark"].split("; ")[1:]) == (0, ["1 regression open"])


def test_what_was_begun_on_another_card_is_measured_anew(
    project: Callable[..., Project], monkeypatch: pytest.MonkeyPatch
) -> None:
    p, (sha,) = filled(project, [50e-6])
    swept(p)
    (path,) = (p.root / "history").rglob(f"*{ENDING}")
    lines = path.read_text().splitlines(keepends=True)
    last = max(at for at, line in enumerate(lines) if json.loads(line).get("name") == CASES[1])
    path.write_text("".join(lines[:last] + lines[last + 1 :]))
    had = Counter({CASES[0]: 2, CASES[1]: 1})
    assert rounds_of(p) == {sha: had}
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "scripted-1")
    swept(p, "EXISTING")
    assert rounds_of(p) == {sha: had + Counter({CASES[1]: 2})}, "two more rounds, not one, and none of what is whole"
    assert swept(p, "EXISTING")["remark"].startswith("nothing to measure")


def test_what_only_touches_our_own_files_is_no_commit_to_measure(project: Callable[..., Project]) -> None:
    p, shas = filled(project, [50e-6] * 2)
    swept(p)
    p.commit({}, "results of the night")
    assert "history/" in p.git("show", "--stat", "--format=", "HEAD")
    assert swept(p)["remark"] == f"nothing to measure: no commit is new after {shas[1][:8]}"
    assert set(rounds_of(p)) == {shas[1]}


@pytest.mark.slow
def test_what_changed_before_is_not_new(project: Callable[..., Project]) -> None:
    p, _ = filled(project, [50e-6] * 4 + [60e-6] * 4)
    assert p.regress("sweep", "ALL").code == 1
    p.commit({"proj/__init__.py": code(60e-6), "NEWS": "more"}, "more")
    result = p.regress("sweep", "--format", "json", "--output", "text=../seen.txt")
    assert result.code == 0, "nobody is told twice"
    assert [change["new"] for change in document(result)["changes"]] == [False]
    assert "open from before" in (p.root.parent / "seen.txt").read_text()


def test_what_a_killed_sweep_has_not_told_the_next_one_tells(project: Callable[..., Project]) -> None:
    """It is killed while it notifies: all is measured by then."""
    p, shas = filled(project, [50e-6] * 3 + [60e-6] * 3)
    assert p.regress("sweep", "ALL", "-q", "--notify-command", "kill -9 $PPID").code == -signal.SIGKILL
    result = inside(p, "sweep", "ALL", "--format", "json", "--notify-command", f"cat > {p.root}/../told.json")
    report = document(result)
    assert (result.code, report["remark"]) == (1, "1 new regression (nothing left to measure)")
    assert [(change["first"], change["new"]) for change in report["changes"]] == [(shas[3], True)]
    assert json.loads((p.root.parent / "told.json").read_text()) == report
    again = inside(p, "sweep", "ALL", "--format", "json")
    assert again.code == 0, "nobody is told twice"
    assert [change["new"] for change in document(again)["changes"]] == [False]


def test_a_group_keeps_its_worktrees_and_gives_them_back(project: Callable[..., Project], tmp_path: Path) -> None:
    p, shas = filled(project, [50e-6] * 8, worktrees=2, cache_dir=str(tmp_path / "cache"))
    result = inside(p, "sweep", "ALL")
    assert result.code == 0
    assert re.findall(r"^(\d) commits?, ", result.err, re.MULTILINE) == ["4", "4"], "what cannot be in turn is alone"
    assert rounds_of(p) == {sha: Counter(dict.fromkeys(CASES, 2)) for sha in shas}
    left = [tree for sha in shas for tree in tmp_path.glob(f"cache/*/worktrees/*/{sha}")]
    assert 2 <= len(left) <= 6, "no more than the last group's and those that are kept"


@pytest.mark.slow
def test_the_newest_results_alone_are_tentative(project: Callable[..., Project]) -> None:
    p, shas = filled(project, [50e-6] * 6 + [60e-6])
    result = p.regress("sweep", "ALL", "--format", "json")
    (change,) = document(result)["changes"]
    assert (result.code, change["state"], change["first"]) == (0, "tentative", shas[6])
    command = f"regress check {shas[5][:8]} {shas[6][:8]} -b b.cudatime_work"
    assert {"word": "check", "command": command} in document(result)["suggestions"]
    more = p.commit({"proj/__init__.py": code(60e-6), "NEWS": "more"})
    last = p.commit({"proj/__init__.py": code(60e-6), "NEWS": "more still"})
    result = p.regress("sweep", "--format", "json")
    (change,) = document(result)["changes"]
    assert (result.code, change["state"], change["new"]) == (1, "confirmed", True), "it is news that it is sure"
    assert {more, last} <= set(rounds_of(p))


def test_what_a_check_has_confirmed_is_confirmed_in_the_next_sweep(project: Callable[..., Project]) -> None:
    p, shas = filled(project, [50e-6] * 6 + [60e-6])
    assert document(p.regress("sweep", "ALL", "--format", "json"))["changes"][0]["state"] == "tentative"
    assert p.regress("check", shas[5], shas[6], "-q").code == 1
    p.commit({"proj/__init__.py": code(60e-6), "NEWS": "more"})
    (change,) = document(p.regress("sweep", "--format", "json"))["changes"]
    assert change["state"] == "confirmed"
    assert change["reason"].startswith(f"confirmed by check {shas[5][:8]} {shas[6][:8]} on ")


def test_a_sweep_that_bisects_names_the_commit_of_a_range(project: Callable[..., Project]) -> None:
    p, shas = filled(project, [50e-6] * 6 + [60e-6] * 6)
    words = (f"{shas[0]}..", "--steps", "6", "--bisect", "--format", "json")
    result = p.regress("sweep", *words, "--notify-command", "cat > ../told.json")
    report = document(result)
    assert json.loads((p.root.parent / "told.json").read_text()) == report
    (p.root.parent / "told.json").unlink()
    (change,) = report["changes"]
    assert (result.code, change["first"], [row["sha"] for row in change["blamed"]]) == (1, shas[6], [shas[6]])
    assert change["reason"].startswith(f"confirmed by bisect {shas[5][:8]} {shas[6][:8]} on ")
    (search,) = report["bisections"]
    assert (search["confirmed"], search["found"][0]["sha"], search["candidates"] > 1) == (True, shas[6], True)
    validate(report)
    again = swept(p, f"{shas[0]}..", "--steps", "6", "--retry", "--bisect", "--notify-command", "cat > ../told.json")
    assert again["bisections"] == [], "nothing is new"
    assert not (p.root.parent / "told.json").exists()


def test_what_is_bisected_is_new_and_a_range_and_the_worst_first() -> None:
    line = [Commit(f"{at:040x}", f"change {at}", "Ada", at) for at in range(9)]

    def found(name: str, ratio: float, commits: range, **more: Any) -> Changed:
        blamed = tuple(line[at] for at in commits)
        point = ChangePoint(
            blamed[0].sha, tuple(commit.sha for commit in blamed), line[commits[0] - 1].sha, 1.0, ratio, ratio, ratio, ratio,
            Verdict.REGRESSED if ratio > 1 else Verdict.IMPROVED, large=more.get("large", True), threshold=0.05,
            state=more.get("state", "confirmed"), way=(),
        )  # fmt: skip
        case = Case(name, more.get("params", ()))
        return Changed(case, METRICS["gpu_time"], "box", "env", "", point, blamed, more.get("new", True))

    changes = (
        found("maybe", 1.9, range(2, 6), state="tentative"),
        found("a", 1.1, range(2, 6), params=("1",)),
        found("a", 1.2, range(3, 7), params=("2",)),
        found("b", 1.3, range(2, 6)),
        found("one", 1.5, range(3, 4)),
        found("known", 1.5, range(2, 6), new=False),
        found("small", 1.02, range(2, 6), large=False),
        found("better", 0.5, range(2, 6)),
    )
    failure = Failure("error", "boom")
    broken = Breakage(Case("gone"), "box", "env", "", failure, line[2].sha, (line[3], line[4]), new=True)
    asked = list(wanted(Events(changes, (broken,)), [line]))
    assert [(str(range_.case), range_.good, range_.last, range_.metric) for range_ in asked] == [
        ("b", line[1].sha, line[5].sha, "gpu_time"),
        ("a(2)", line[2].sha, line[6].sha, "gpu_time"),
        ("gone", line[2].sha, line[4].sha, ""),
        ("maybe", line[1].sha, line[5].sha, "gpu_time"),
    ]


@pytest.mark.slow
def test_a_budget_measures_the_ends_and_middles_first_and_the_rest_later(project: Callable[..., Project]) -> None:
    p, shas = filled(project, [50e-6] * 9)
    really = Sweep._measure

    def last(sweep: Sweep, *group: Any) -> None:
        really(sweep, *group)
        sweep._end_s = 0.0

    with patch.object(Sweep, "_measure", last):
        result = inside(p, "sweep", "ALL", "--format", "json")
    assert (result.code, document(result)["remark"]) == (0, "nothing new (4 of 9 commits measured)")
    assert set(rounds_of(p)) == {shas[at] for at in (0, 4, 6, 8)}
    go_on = quoted("regress", "sweep", "ALL", "--config", p.root / "asv.conf.json")
    assert {"word": "go on", "command": go_on} in document(result)["suggestions"]
    assert swept(p, "ALL")["remark"] == "nothing new (5 of 5 commits measured)"
    assert set(rounds_of(p)) == set(shas)


@pytest.mark.slow
def test_steps_since_and_tags_choose(project: Callable[..., Project]) -> None:
    p, shas = filled(project, [50e-6] * 7)
    p.git("tag", "v1", shas[1])
    p.git("tag", "-a", "v2", "-m", "two", shas[3])
    swept(p, "TAGS")
    assert set(rounds_of(p)) == {shas[1], shas[3]}
    swept(p, "ALL", "--since", "v2", "--steps", "2")
    assert set(rounds_of(p)) == {shas[1], shas[3], shas[6]}
    assert swept(p, "ALL", "--since", "20 years ago", "--steps", "1")["remark"].startswith("nothing to measure")
    assert swept(p, "ALL", "--since", "2200-01-01")["remark"] == "all commits: there are none"


def test_a_shallow_clone_is_told_of(project: Callable[..., Project]) -> None:
    """It would pass every night: there is never a second commit."""
    p, shas = filled(project, [50e-6] * 2)
    (p.root / ".git" / "shallow").write_text(shas[1] + "\n")
    (warning,) = (text for text in swept(p, "ALL")["warnings"] if "shallow" in text)
    assert "fix: git fetch --unshallow" in warning
    assert set(rounds_of(p)) == {shas[1]}
    assert warning in swept(p, "ALL")["warnings"], "also where nothing is left to measure"


def test_existing_commits_get_what_is_new_in_the_suite(project: Callable[..., Project]) -> None:
    p, shas = filled(project, [50e-6] * 3)
    swept(p, f"{shas[0]}..")
    p.commit({"benchmarks/c.py": SUITE.replace("cudatime_other", "cudatime_third")})
    swept(p, "EXISTING")
    had = Counter({"c.cudatime_work": 2, "c.cudatime_third": 2, **dict.fromkeys(CASES, 2)})
    assert rounds_of(p) == {shas[1]: had, shas[2]: had}


def test_a_merged_branch_follows_the_graph(project: Callable[..., Project]) -> None:
    p, shas = filled(project, [50e-6] * 2)
    p.git("checkout", "-q", "-b", "side")
    side = p.commit({"proj/__init__.py": code(51e-6)})
    p.git("checkout", "-q", "main")
    own = p.commit({"NEWS": "own"})
    p.git("merge", "-q", "--no-ff", "-m", "merged", "side")
    merge = p.git("rev-parse", "HEAD")
    swept(p, f"{shas[1]}..main", "--merges")
    assert set(rounds_of(p)) == {merge}
    swept(p, f"{shas[1]}..main", "--first-parent")
    assert set(rounds_of(p)) == {merge, own}
    swept(p, f"{shas[1]}..main")
    assert set(rounds_of(p)) == {merge, own, side}


@pytest.mark.slow
def test_a_commit_that_does_not_build_is_left_out_and_given_up_after_some_sweeps(
    project: Callable[..., Project],
) -> None:
    p, shas = filled(project, [50e-6] * 3, build=["test ! -f broken", "echo built >> ../builds.log"])
    shas.append(p.commit({"broken": "yes"}, "does not build"))
    p.git("rm", "-q", "broken")
    shas.append(p.commit({"NEWS": "mended"}, "mended"))
    result = p.regress("sweep", "ALL", "--format", "json")
    report = document(result)
    assert (result.code, report["verdict"]) == (3, "FAIL"), result.err
    assert report["remark"] == "nothing new (4 of 5 commits measured, 1 failed)"
    assert any(warning.startswith(f"{shas[3][:8]} was left out: ") for warning in report["warnings"])
    assert set(rounds_of(p)) == {*shas[:3], shas[4]}
    for _ in range(TRIES - 1):
        alone = p.regress("sweep", "ALL")
        assert alone.code == 5, "it alone was tried, and failed"
        assert shas[3][:8] in alone.err
    again = p.regress("sweep", "ALL", "--format", "json")
    assert (again.code, document(again)["remark"]) == (0, "nothing new (nothing left to measure)")
    assert p.regress("sweep", "ALL", "--retry").code == 5


def test_a_newest_commit_that_does_not_build_is_new_until_it_does(
    project: Callable[..., Project], tmp_path: Path
) -> None:
    """The machine may have been at fault; NEW must not pass it over for good."""
    compiler = tmp_path / "compiler"
    compiler.touch()
    p, shas = filled(project, [50e-6] * 2, build=[f"test -f {compiler}"])
    swept(p)
    shas.append(p.commit({"NEWS": "more"}))
    compiler.unlink()
    assert p.regress("sweep").code == 5
    compiler.touch()
    swept(p)
    assert shas[2] in rounds_of(p)


def test_a_benchmark_that_older_commits_do_not_have_or_fail_is_not_tried_again(project: Callable[..., Project]) -> None:
    p = project()
    shas = [p.commit({"proj/__init__.py": code(), "benchmarks/b.py": SUITE})]
    later = "import proj.later\ndef cudatime_later(): proj.later.run()\ndef cudatime_fails(): proj.third()\n"
    work = "import regress_scripted as d\ndef run(): d.kernel('l', 40e-6)\n"
    shas.append(p.commit({"benchmarks/c.py": later, "proj/later.py": work}))
    first = p.regress("sweep", "ALL", "--format", "json")
    assert "(2 of 2 commits measured)" in document(first)["remark"], first.err
    assert document(p.regress("sweep", "ALL", "--format", "json"))["remark"].startswith("nothing to measure")
    had = rounds_of(p)
    assert had[shas[0]] == Counter(dict.fromkeys(CASES, 2))
    assert had[shas[1]]["c.cudatime_later"] == 2


def test_a_commit_on_which_everything_fails_is_told_of(project: Callable[..., Project]) -> None:
    """Also the first one, before which nothing worked."""
    p = project()
    broken = p.commit({"proj/__init__.py": "", "benchmarks/b.py": SUITE}, "lacks what is called")
    p.commit({"proj/__init__.py": code()}, "has it")
    result = p.regress("sweep", "ALL", "--format", "json")
    told = f"nothing gave a number on {broken[:8]}: AttributeError: module 'proj' has no attribute "
    assert any(warning.startswith(told) for warning in document(result)["warnings"]), result.err


def test_a_side_that_cannot_be_measured_does_not_cost_the_others(project: Callable[..., Project]) -> None:
    p = project()
    shas = [p.commit({"proj/__init__.py": "import os\nos._exit(3)\n", "benchmarks/b.py": SUITE}, "dies at import")]
    shas += [p.commit({"proj/__init__.py": code(), "NEWS": str(at)}) for at in range(2)]
    result = p.regress("sweep", "ALL", "--format", "json")
    report = document(result)
    told = "no change can be detected yet (2 of 3 commits measured, 1 failed); it takes at least 2 more commits with results"
    assert (result.code, report["remark"]) == (3, told), result.err
    assert any(shas[0][:8] in warning and "died" in warning for warning in report["warnings"])
    assert set(rounds_of(p)) == set(shas[1:])


@pytest.mark.slow
def test_a_night_without_the_device_measures_nothing_and_is_made_up_for(project: Callable[..., Project]) -> None:
    p = project(device="auto")
    work = "try: import regress_scripted as d\nexcept ImportError: d = None\ndef work(): d.kernel('k', 50e-6)\n"
    shas = [p.commit({"proj/__init__.py": work, "benchmarks/b.py": SUITE.replace("proj.other", "proj.work")})]
    shas.append(p.commit({"NEWS": "more"}))
    for _ in range(2):
        result = p.regress("sweep", "ALL")
        assert result.code == 5
        assert "none of the 2 cases could be measured" in result.err
    config = p.root / "asv.conf.json"
    config.write_text(config.read_text().replace('"auto"', '"fake"'))
    assert "(2 of 2 commits measured)" in swept(p, "ALL")["remark"]
    assert rounds_of(p)[shas[0]] == Counter(dict.fromkeys(CASES, 2))


def test_a_lost_device_is_told_once_not_for_each_commit(project: Callable[..., Project]) -> None:
    p = project(device="auto")
    p.commit({"proj/__init__.py": "", "benchmarks/b.py": "def time_it(): pass\n"})
    for at in range(5):
        p.commit({"NEWS": str(at)})
    swept(p, "--steps", "1", "HEAD")
    (machine,) = (p.root / "history").glob("*/machine.json")
    machine.write_text(json.dumps({**json.loads(machine.read_text()), "gpu": "H100"}))
    result = p.regress("sweep", "ALL")
    assert result.code == 5
    assert "is recorded as a machine with a device (H100), but none is used now" in result.err
    assert result.err.count("trial runs: 0 of") == 1


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["v9..main"], 2, "v9"),
        (["--since", "nonsense"], 2, "nonsense"),
        (["-b", "nothing_like_it"], 5, "no benchmark matches"),
        (["--steps", "0"], 2, "--steps"),
        (["HEAD", "NEW"], 2, "NEW cannot be combined with other commits"),
        (["--until", "2020-01-01T06:00"], 2, "is over"),
    ],
)
def test_what_is_wrong_is_said(project: Callable[..., Project], arguments: list[str], code: int, words: str) -> None:
    p, _ = filled(project, [50e-6])
    result = p.regress("sweep", *arguments)
    assert result.code == code
    assert words in result.err
    assert "fix:" in result.err


SLOW = SUITE + "import pathlib\npathlib.Path({mark!r}).touch()\n"


def test_ctrl_c_keeps_what_is_measured_and_the_next_sweep_goes_on(
    project: Callable[..., Project], tmp_path: Path
) -> None:
    p, shas = filled(project, [50e-6] * 6)
    process = start(p.root, "sweep", "ALL")
    result = interrupted(process, p.root / "history")
    assert result.code == 130, result.err
    assert "go on regress sweep ALL" in re.sub(r" +", " ", result.out)
    swept(p, "ALL")
    assert rounds_of(p) == {sha: Counter(dict.fromkeys(CASES, 2)) for sha in shas}


def test_ctrl_c_before_there_is_a_round_claims_nothing(project: Callable[..., Project], tmp_path: Path) -> None:
    p, _ = filled(project, [50e-6] * 2)
    mark = tmp_path / "mark"
    waits = f"import pathlib, time\ndef setup():\n    pathlib.Path({str(mark)!r}).touch()\n    time.sleep(600)\n"
    (p.root / "benchmarks" / "b.py").write_text(SUITE + waits)
    result = interrupted(start(p.root, "sweep", "ALL"), mark)
    assert (result.code, (p.root / "history").exists()) == (130, False)
    assert "INTERRUPTED  nothing was measured of 2 commits, and nothing is saved" in result.out
    assert re.sub(r" +", " ", result.out).splitlines()[-1] == "go on regress sweep ALL"


@pytest.mark.slow
def test_a_killed_sweep_loses_nothing_and_measures_nothing_twice(project: Callable[..., Project]) -> None:
    """Killed 16 times, of as many histories as that takes; a round that is on disk stays there as it is.

    Every third time at any moment, which a slow machine may spend on starting; else a moment after it has kept some rounds. So
    one of these histories, of 24 rounds, is killed 12 times at most."""
    dice = random.Random(6)
    kills = histories = 0
    while kills < 16:
        p, shas = filled(partial(project, f"project{histories}"), [50e-6 + at * 1e-7 for at in range(6)])
        histories += 1
        kept: dict[tuple[str, str, float], str] = {}
        done = False
        while not done and kills < 16:
            process = start(p.root, "sweep", "ALL", "-q")
            if kills % 3 == 2:
                time.sleep(dice.uniform(0.1, 2.0))
            else:
                enough = len(kept) + dice.randint(3, 5)
                while process.poll() is None and len(lines_of(p)) < enough:
                    time.sleep(0.005)
                time.sleep(dice.uniform(0.0, 0.1))
            done = process.poll() is not None
            process.kill()
            process.communicate()
            kills += not done
            before, kept = kept, lines_of(p)
            assert before.items() <= kept.items()
        assert p.regress("sweep", "ALL", "-q").code == 0
        assert rounds_of(p) == {sha: Counter(dict.fromkeys(CASES, 2)) for sha in shas}
        for file in (p.root / "history").rglob("*.json"):
            json.loads(file.read_text())
        names = {path.name.removesuffix(ENDING) for path in (p.root / "history").rglob("*" + ENDING)}
        assert names == {path.stem for path in (p.root / "history").rglob("*-*.json")}, "asv has all of them"
        # The file of a lock may be left: a killed process holds it no longer, and who writes next takes it away.
        left = [path for path in (p.root / "history").rglob("*") if path.is_file() and path.name != LOCK_NAME]
        assert {path.suffix for path in left} == {".json", ".jsonl"}, "no half-written file"
    assert histories > 1


def lines_of(p: Project) -> dict[tuple[str, str, float], str]:
    """Every recorded round: by commit's file, name and when it began."""
    by_case = {}
    for path in (p.root / "history").rglob("*" + ENDING):
        whole, _, _ = path.read_text().rpartition("\n")
        for line in map(json.loads, whole.split("\n") if whole else ()):
            if line["is"] == "round":
                by_case[path.name, line["name"], line["started_at"]] = json.dumps(line)
    return by_case


@pytest.mark.slow
def test_the_mark_of_new_survives_a_kill(project: Callable[..., Project]) -> None:
    """The newest commit is measured first: were it taken for the last one measured, those before it would be forgotten."""
    p, shas = filled(project, [50e-6] * 2)
    swept(p)
    shas += [p.commit({"NEWS": f"more {at}"}) for at in range(6)]
    process = start(p.root, "sweep", "-q")
    newest = p.root / "history"
    while not list(newest.rglob(f"{shas[-1][:8]}-*{ENDING}")):
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)
    process.kill()
    process.communicate()
    swept(p)
    assert set(rounds_of(p)) == set(shas[1:])
    assert Session(Request(p.root)).cache.exists()


NOTHING_LEFT: Any = SimpleNamespace(measured=[], left=[], failed={}, planned=1)


def test_commits_that_were_only_begun_are_not_called_measured() -> None:
    begun, done = (SimpleNamespace(sha=sha) for sha in ("a", "b"))
    stopped: Any = SimpleNamespace(measured=[begun, done], left=["a", "c"], failed={}, planned=3)
    assert _remark(stopped, Events((), ())) == "nothing new (1 of 3 commits measured, 1 begun)"


def test_what_moved_at_once_in_one_of_several_places_is_one_event_of_a_sweep(tmp_path: Path) -> None:
    """Nine benchmarks became slower at one commit on one machine only, and a tenth there and on the other."""
    names = [f"{module}.time_{word}" for module in ("io", "nn", "ops") for word in "abc"]
    steady = {name: noisy((40, 1e-3)) for name in (*names, "io.time_z")}
    step = noisy((25, 1e-3), (15, 1.2e-3))
    made = Made(tmp_path / "p", 40).record({**steady, "io.time_z": step}, machine="one")
    made.record(
        {**dict.fromkeys(names, step), "io.time_z": step, "io.time_last": noisy((38, 1e-3), (2, 2e-3))}, machine="two"
    )
    session = Session(Request(made.root))
    line = session.repository.commits("HEAD")
    events = events_on(session, line, {*names, "io.time_z", "io.time_last"}, "two")
    changes = tuple(replace(change, new=True) for change in events.changes)
    (shift,) = shifts = shifts_in(session, line, changes)
    assert shift.benchmarks == tuple(names)
    assert (shift.machine, shift.good, [commit.sha for commit in shift.blamed]) == (
        "two",
        made.shas[24],
        [made.shas[25]],
    )
    assert shift.reasons == (
        "9 of them were measured on other machines too and did not move there: was it the machine?",
    )
    told = _remark(NOTHING_LEFT, Events(changes, (), shifts))
    assert told.startswith("9 benchmarks moved at once, 1 new regression, 1 new tentative change (")
    assert shifts_in(session, line, events_on(session, line, names, "one").changes) == ()


def test_the_first_commit_of_a_branch_does_not_follow_the_last_of_another(tmp_path: Path) -> None:
    """Main became faster where the maintenance branch had left it already, which became slower later on."""
    made = Made(tmp_path / "p", 20)
    made.git("checkout", "-q", "-b", "maintenance", made.shas[9])
    for at in range(12):
        made.git("commit", "-q", "--allow-empty", "-m", f"mend {at}")
    mends = made.git("rev-list", "--reverse", "main..maintenance").split()
    made.record({"x.time_f": noisy((10, 1e-3), (10, 0.8e-3))})
    made.record({"x.time_f": noisy((6, 1e-3), (6, 1.3e-3))}, shas=mends)
    session = Session(Request(made.root))
    branches = ["main", "maintenance"]
    histories = session.histories(branches, session.line(branches, session.recorded()))
    assert [len(history) for history in histories] == [20, 22]
    events = events_in(session, histories, {"x.time_f"}, "box")
    assert [
        (str(change.point.moved), [one.sha for one in change.blamed], change.point.good) for change in events.changes
    ] == [
        ("improved", [made.shas[10]], made.shas[9]),
        ("regressed", [mends[6]], mends[5]),
    ]
    assert [len(own) for _, own in by_history(events.changes, histories)] == [1, 1]


def test_a_sweep_of_few_commits_says_that_nothing_can_be_told_yet(tmp_path: Path) -> None:
    made = Made(tmp_path / "p", 4).record({"x.time_f": [1e-3] * 2 + [None] * 2, "x.time_g": noisy((4, 1e-3))})
    session = Session(Request(made.root))

    def told(names: set[str]) -> str:
        return _remark(NOTHING_LEFT, events_on(session, session.repository.commits("HEAD"), names, "box"))

    assert told({"x.time_g"}) == "nothing new (0 of 1 commit measured)"
    assert told({"x.time_f"}) == (
        "no change can be detected yet (0 of 1 commit measured); it takes at least 2 more commits with results"
    )
    assert told({"x.time_f", "x.time_g"}) == (
        "nothing new (0 of 1 commit measured); 1 of 2 cases cannot be judged yet: it takes at least 2 more commits with results"
    )


STOPPING = {
    "benchmarks/fine.py": "def track_fine(): return 5\n",
    "benchmarks/b.py": """
import os
import proj
def track_raises():
    if proj.N > 1: raise RuntimeError("device lost")
    return 5
def track_dies():
    if proj.N > 1: os.kill(os.getpid(), 9)
    return 5
class Skips:
    def setup(self):
        if proj.N > 1: raise NotImplementedError
    def track_skips(self): return 5
""",
    "benchmarks/names.py": "from proj import NAME\nclass T:\n    params = [1, 2]\n    def track_named(self, n): return 5\n",
}


def test_what_gives_no_number_any_more_is_told_once_with_its_commit(project: Callable[..., Project]) -> None:
    p = project()
    shas = [p.commit({"proj/__init__.py": "N = 1\nNAME = 1\n", **STOPPING}, "one")]
    assert p.regress("sweep").code == 0
    shas.append(p.commit({"proj/__init__.py": "N = 1\nNAME = 2\n"}, "two"))
    shas.append(p.commit({"proj/__init__.py": "N = 2\nNAME = 2\n"}, "three"))
    shas.append(p.commit({"proj/__init__.py": "N = 2\n"}, "four"))
    result = p.regress("sweep", "--format", "json", "--output", "text=../seen.txt", "--output", "github=../seen.log")
    report = document(result)
    validate(report)
    assert (result.code, report["verdict"]) == (3, "FAIL"), result.err
    by_case = {(breakage["name"], *breakage["params"]): breakage for breakage in report["breakages"]}
    assert {
        name: (benchmark["failure"]["kind"], benchmark["blamed"][-1]["subject"]) for name, benchmark in by_case.items()
    } == {
        ("b.track_raises",): ("error", "three"),
        ("b.track_dies",): ("signal", "three"),
        ("b.Skips.track_skips",): ("skipped", "three"),
        ("names.T.track_named", "1"): ("error", "four"),
        ("names.T.track_named", "2"): ("error", "four"),
    }
    assert {(row["new"], row["good"]) for row in by_case.values()} == {(True, shas[1]), (True, shas[2])}
    assert by_case["b.track_raises",]["failure"]["message"] == "RuntimeError: device lost"
    text, log = (p.root.parent / "seen.txt").read_text(), (p.root.parent / "seen.log").read_text()
    row = r"^! names\.T\.track_named: 2 cases +error +[0-9a-f]{8} four \(Ada Lovelace\), cannot be imported: ImportError: "
    assert re.search(row, text, re.MULTILINE), text
    assert "FAIL  5 cases stopped giving numbers (3 of 3 commits measured); 1 suite problem" in text
    assert f"regress check {shas[1][:8]} {shas[2][:8]} -b b.track_raises" in text
    assert re.search(r"::error file=benchmarks/b.py,line=\d+,title=stopped giving numbers%3A b.track_raises::", log), (
        log
    )

    p.commit({"proj/__init__.py": "N = 2\nNAME = 1\n"}, "five: names are there again")
    again = p.regress("sweep", "--format", "json")
    later = document(again)["breakages"]
    assert (again.code, {row["name"] for row in later if not row["new"]}) == (
        0,
        {"b.track_raises", "b.track_dies", "b.Skips.track_skips"},
    ), "what is known is listed, and fails nothing again"
    assert len(later) == 3
    assert p.regress("ack", "b.track_raises", "--reason", "gone on purpose").code == 0
    assert p.regress("ack", "--all-open", "--reason", "the others").code == 0
    never = "def track_never(): raise RuntimeError\n"
    p.commit({"proj/__init__.py": "N = 2\nNAME = 1\n", "benchmarks/never.py": never}, "six")
    known = document(p.regress("sweep", "--format", "json"))
    told = "never.track_never fails wherever measured and never gave a number; fix: regress run -b never.track_never"
    assert told in known["warnings"]
    assert {breakage["name"]: breakage["acknowledged"]["reason"] for breakage in known["breakages"]} == {
        "b.track_raises": "gone on purpose",
        "b.track_dies": "the others",
        "b.Skips.track_skips": "the others",
    }
    assert known["remark"] == "nothing new (1 of 2 commits measured)"
    assert p.regress("ack", "--all-open", "--reason", "x").code == 2, "nothing is open any more"


def test_what_fails_again_is_tried_once_a_sweep(project: Callable[..., Project]) -> None:
    p = project(device="cpu")
    suite = "import proj\ndef track_a(): return 5\ndef track_b(): return proj.N\n"
    p.commit({"proj/__init__.py": "", "benchmarks/b.py": suite})
    p.regress("sweep", "ALL")
    again = p.regress("sweep", "ALL", "--retry", "--format", "json")
    assert document(again)["remark"].startswith("no change can be detected yet (0 of 1 commit measured)"), again.err
    assert document(p.regress("sweep", "ALL", "--format", "json"))["remark"].startswith("nothing to measure")


def test_a_file_that_cannot_be_imported_is_no_pass(project: Callable[..., Project]) -> None:
    p = project()
    p.commit({"proj/__init__.py": code(50e-6), "benchmarks/b.py": SUITE, "benchmarks/stale.py": "import nowhere\n"})
    assert p.regress("sweep", "ALL").code == 3
    p.commit({"proj/__init__.py": code(50e-6), "benchmarks/stale.py": ""})
    assert p.regress("sweep", "ALL").code == 0, "an older commit that cannot import a file lacks what is new"


def test_of_a_group_in_which_one_commit_fails_the_others_are_measured_in_full(project: Callable[..., Project]) -> None:
    p = project()
    suite = "import proj\ndef track_a():\n    assert proj.N < 3\n    return 5\n"
    shas = [p.commit({"proj/__init__.py": "N = 0\n", "benchmarks/b.py": suite})]
    shas += [p.commit({"proj/__init__.py": f"N = {at}\n"}) for at in (1, 2, 3)]
    report = swept(p, "ALL")
    assert not [warning for warning in report["warnings"] if "left out" in warning]
    assert rounds_of(p) == {sha: Counter({"b.track_a": 2}) for sha in shas[:3]} | {shas[3]: Counter({"b.track_a": 1})}
    assert [breakage["first"] for breakage in report["breakages"]] == [shas[3]]


@pytest.mark.parametrize("detached", [False, True])
@pytest.mark.parametrize("branches", [["HEAD"], ["v1"]])
@pytest.mark.slow
def test_a_branch_may_be_any_revision(project: Callable[..., Project], branches: list[str], detached: bool) -> None:
    p, shas = filled(project, [50e-6, 50e-6, 50e-6], sweep_rounds=2)
    config = json.loads((p.root / "asv.conf.json").read_text())
    (p.root / "asv.conf.json").write_text(json.dumps({**config, "branches": branches}))
    p.git("commit", "-qam", "configured")
    p.git("tag", "v1")
    if detached:
        p.git("checkout", "-q", "--detach")
    assert p.regress("sweep", "NEW", "-q").code == 0
    assert p.regress("sweep", "ALL", "-q").code == 0
    assert set(rounds_of(p)) >= set(shas)
    assert p.regress("report", "-q").code == 0


def test_since_a_release_leaves_out_the_patches_of_older_ones(project: Callable[..., Project]) -> None:
    """Releases are tagged on branches of their own, and the patch of the old one is the newest commit of all."""
    p, _ = filled(project, [50e-6])
    for number in (1, 2, 3):
        p.commit({"NEWS": str(number)})
        p.git("switch", "-qc", f"rel-{number}")
        p.commit({"VERSION": f"{number}.0"})
        p.git("tag", f"v{number}.0")
        p.git("switch", "-q", "main")
    for number in (2, 1):
        p.git("switch", "-q", f"rel-{number}")
        p.commit({"VERSION": f"{number}.1"})
        p.git("tag", f"v{number}.1")
    p.git("switch", "-q", "main")
    session = Session(Request(p.root))

    def chosen(since: str) -> set[str]:
        wanted = choose(session, Asked(("TAGS",), since), ()).wanted
        return {name for sha, names in session.repository.releases.all().items() if sha in wanted for name in names}

    assert chosen("v2.0") == {"v2.0", "v2.1", "v3.0"}
    assert chosen("v2.1") == {"v2.1", "v3.0"}
    assert chosen("v1.0") == {"v1.0", "v1.1", "v2.0", "v2.1", "v3.0"}


def test_a_range_needs_no_branch_and_what_does_says_so(project: Callable[..., Project]) -> None:
    p, shas = filled(project, [50e-6, 50e-6, 50e-6], sweep_rounds=2)
    config = json.loads((p.root / "asv.conf.json").read_text())
    (p.root / "asv.conf.json").write_text(json.dumps({**config, "branches": ["gone"]}))
    p.git("commit", "-qam", "configured")
    assert p.regress("sweep", f"{shas[0]}..{shas[2]}", "-q").code == 0
    assert set(rounds_of(p)) == set(shas[1:])
    assert p.regress("sweep", shas[0], "-q").code == 0
    result = p.regress("sweep", "ALL")
    assert (result.code, "there is no branch 'gone' here" in result.err) == (2, True), result.err


def test_the_project_may_be_a_bare_repository(project: Callable[..., Project], tmp_path: Path) -> None:
    p, shas = filled(project, [50e-6, 60e-6], sweep_rounds=2, run_rounds=2)
    p.git("clone", "-q", "--bare", ".", str(tmp_path / "bare.git"))
    p.git("rm", "-rqf", "proj")
    config = json.loads((p.root / "asv.conf.json").read_text())
    (p.root / "asv.conf.json").write_text(json.dumps({**config, "repo": "../bare.git", "branches": ["main"]}))
    assert p.regress("sweep", "ALL", "-q").code == 0
    assert set(rounds_of(p)) == set(shas)
    assert p.regress("check", "HEAD~1", "-q").code == 1
    assert p.regress("run", "-q").code == 0
    assert p.regress("report", "-q").code == 0


def test_what_the_hosts_clock_reads_is_compared_however_the_machine_is(
    project: Callable[..., Project], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every night the machine takes as much longer as a variable says; one commit takes 10 % more than those before it."""
    p = project(sweep_rounds=3)
    work = "import os, regress_scripted\nSLOW = float(os.environ.get('SLOW', 1))\n"
    work += "def work(): regress_scripted.host({} * SLOW)\n"
    suite = "import proj\ndef time_work(): proj.work()\n"
    times = [50e-6] * 6 + [55e-6] * 5
    shas = [p.commit({"proj/__init__.py": work.format(times[0]), "benchmarks/b.py": suite}, "commit 0")]
    swept(p)
    for night, slow in ((times[1:7], 1.4), (times[7:8], 0.8), (times[8:11], 1.2)):
        shas += [
            p.commit(
                {"proj/__init__.py": work.format(seconds), "NEWS": str(len(shas) + at)}, f"commit {len(shas) + at}"
            )
            for at, seconds in enumerate(night)
        ]
        monkeypatch.setenv("SLOW", str(slow))
        report = swept(p)
    (change,) = report["changes"]
    assert (change["first"], change["good"], change["metric"]) == (shas[6], shas[5], "wall_time")
    assert change["ratio"] == pytest.approx(1.1, rel=0.02)
    assert report["anchors"] == [], "what the machine did is out of it"
    anchors = Counter(anchor.beside for anchor in anchors_of(p) if anchor.recorded.commit_sha == shas[0])
    assert len(anchors) == 4, "each group, and that of the second night alone"
