"""`regress bisect` on small repositories: real git, worktrees and processes, the scripted device."""

from __future__ import annotations

import json
import math
import re
import signal
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from regress.commands.bisect import one_case
from regress.commands.bisect.ledger import FILE, NAME, Judged, Probed, SavedBisection
from regress.commands.bisect.search import CommitSearch
from regress.commands.sweep.reporting import _next as after_sweep
from regress.compare.ends import Pair
from regress.errors import NothingMeasured, RegressError, RevisionError
from regress.git import line_between, merged_by, open_repository
from regress.model import METRICS, Case, Changed, ChangePoint, Commit, Contrast, Verdict
from regress.session import Request, Session
from tests.commands.test_check import document
from tests.conftest import Project, Result, inside, start
from tests.report.test_json import validate

pytestmark = pytest.mark.slow

CASE = "b.cudatime_work"
SUITE = "import proj\ndef cudatime_work(): proj.work()\ndef cudatime_other(): proj.other()\n"
NOISY = """\
import math, os, pathlib, random
import regress_scripted as d

LEVELS = {{}}
def level():
    'That of the process: every process that calls it is one more, so that a run repeats exactly.'
    if os.getpid() not in LEVELS:
        with open({counter!r}, "a") as file:
            file.write("x")
            LEVELS[os.getpid()] = math.exp(random.Random(file.tell()).gauss(0, {sd}))
    return LEVELS[os.getpid()]
"""
PLAIN = "import regress_scripted as d\ndef level(): return 1.0\n"


def code(seconds: float, more: str = "", head: str = PLAIN) -> str:
    return head + f"def work():\n    d.kernel('k', {seconds} * level())\n{more}\ndef other(): d.kernel('o', 80e-6)\n"


MEMORY = "    return d.alloc({0} << 20)\n"


def filled(
    p: Project, times: Sequence[float], more: Callable[[int], str] = lambda at: "", head: str = PLAIN
) -> list[str]:
    """One commit for each time of `work`; their full hashes, the oldest first."""
    shas = [p.commit({"proj/__init__.py": code(times[0], more(0), head), "benchmarks/b.py": SUITE}, "commit 0")]
    for at, seconds in enumerate(times[1:], 1):
        shas.append(p.commit({"proj/__init__.py": code(seconds, more(at), head), "NEWS": str(at)}, f"commit {at}"))
    return shas


def bisected(p: Project, *arguments: str) -> tuple[Result, dict[str, Any]]:
    result = p.regress("bisect", *arguments, "--format", "json")
    report = document(result)
    validate(report)
    return result, report


def subjects(commits: Sequence[dict[str, Any]]) -> list[str]:
    return [commit["subject"] for commit in commits]


def states(bisection: dict[str, Any]) -> dict[str, str]:
    return {probe["subject"]: probe["state"] for probe in bisection["probes"]}


# -- what is found -------------------------------------------------------------------------------------------------------


def test_the_planted_commit_among_64_at_one_percent_of_noise(project: Callable[..., Project], tmp_path: Path) -> None:
    p = project()
    noisy = NOISY.format(counter=str(tmp_path / "counter"), sd=0.01)
    shas = filled(p, [50e-6] * 42 + [55e-6] * 23, head=noisy)
    result = p.regress("bisect", CASE, shas[0], "HEAD", "--format", "json", "--output", "text=../seen.txt")
    report = document(result)
    bisection = report["bisection"]
    assert (result.code, report["verdict"]) == (0, "FOUND"), result.err
    assert subjects(bisection["found"]) == ["commit 42"]
    assert bisection["parent"]["subject"] == "commit 41"
    assert bisection["confirmed"]
    assert bisection["confidence"] >= 0.99
    assert bisection["candidates"] == 64
    builds = {shas[0], shas[-1], *(probe["sha"] for probe in bisection["probes"]), bisection["parent"]["sha"]}
    assert len(builds) <= 9
    assert bisection["change"]["verdict"] == bisection["step"]["verdict"] == "regressed"
    assert bisection["step"]["ratio"] == pytest.approx(1.1, rel=0.03)
    assert all(probe["state"] == ("bad" if probe["sha"] in shas[42:] else "good") for probe in bisection["probes"])
    assert [probe["left"] for probe in bisection["probes"]] == sorted(
        (probe["left"] for probe in bisection["probes"]), reverse=True
    )
    assert re.search(r"64 commits: about 6 builds and \d+ rounds, about \d+ s", result.err)
    assert len(re.findall(r"^[0-9a-f]{8} commit \d+: .* left$", result.err, re.MULTILINE)) == len(bisection["probes"])
    text = (p.root.parent / "seen.txt").read_text()
    assert re.search(
        r"^FOUND  [0-9a-f]{8} commit 42 \(Ada Lovelace\), 99\.\d % sure, confirmed ", text, re.MULTILINE
    ), text
    assert f"again regress check {shas[41][:8]} {shas[42][:8]} -b {CASE}" in text
    cache = Session(Request(p.root)).cache
    assert not json.loads((cache / FILE).read_text())[NAME], "what is ended is not kept"


def test_an_improvement(project: Callable[..., Project]) -> None:
    p = project()
    shas = filled(p, [50e-6] * 3 + [45e-6] * 4)
    result, report = bisected(p, CASE, shas[0], shas[-1])
    assert result.code == 0
    assert subjects(report["bisection"]["found"]) == ["commit 3"]
    assert report["bisection"]["step"]["verdict"] == "improved"


def test_a_step_of_memory_takes_one_round_a_probe(project: Callable[..., Project]) -> None:
    p = project()
    shas = filled(p, [50e-6] * 12, lambda at: MEMORY.format(64 if at < 7 else 80))
    result, report = bisected(p, CASE, shas[0], shas[-1])
    bisection = report["bisection"]
    assert result.code == 0, result.err
    assert (bisection["change"]["metric"], bisection["change"]["exact"]) == ("peak_memory", True)
    assert subjects(bisection["found"]) == ["commit 7"]
    assert {probe["pairs"] for probe in bisection["probes"]} == {1}
    assert bisection["confidence"] == pytest.approx(1.0)


def test_the_worst_metric_unless_another_is_named(project: Callable[..., Project]) -> None:
    p = project()
    times = [50e-6] * 3 + [54e-6] * 6
    shas = filled(p, times, lambda at: MEMORY.format(64 if at < 7 else 128))
    assert subjects(bisected(p, CASE, shas[0], shas[-1])[1]["bisection"]["found"]) == ["commit 7"]
    named = bisected(p, CASE, shas[0], shas[-1], "--metric", "gpu_time")[1]["bisection"]
    assert (subjects(named["found"]), named["change"]["metric"]) == (["commit 3"], "gpu_time")


def test_a_case_that_fails(project: Callable[..., Project]) -> None:
    p = project()
    fails = "    raise ValueError('no such {0}')\n"
    shas = filled(p, [50e-6] * 12, lambda at: fails.format(at) if at >= 5 else "")
    result, report = bisected(p, CASE, shas[0], shas[-1])
    bisection = report["bisection"]
    assert result.code == 0, result.err
    assert subjects(bisection["found"]) == ["commit 5"]
    assert bisection["change"]["verdict"] == "failed"
    assert "no such 11" in bisection["change"]["reason"]


@pytest.mark.parametrize(
    ("more", "says", "verdict"),
    [
        (
            lambda at: "NAME = 1\n" if at < 3 else "",
            "cannot be imported: ImportError: cannot import name 'NAME'",
            "failed",
        ),
        (lambda at: f"NAME = {at < 3}\n", "skipped by its setup", "skipped"),
    ],
)
def test_a_case_that_gives_no_number_any_more(
    more: Callable[[int], str], says: str, verdict: str, project: Callable[..., Project]
) -> None:
    p = project()
    suite = (
        "from proj import NAME\nclass T:\n    def setup(self):\n"
        "        if not NAME: raise NotImplementedError\n    def track_t(self): return 5\n"
    )
    shas = filled(p, [50e-6] * 1, more)
    shas += [
        p.commit({"proj/__init__.py": more(at), "benchmarks/b.py": suite, "NEWS": str(at)}, f"commit {at}")
        for at in range(1, 6)
    ]
    result, report = bisected(p, "b.T.track_t", shas[1], shas[-1])
    assert result.code == 0, result.out
    assert subjects(report["bisection"]["found"]) == ["commit 3"]
    assert report["bisection"]["change"]["verdict"] == verdict
    assert says in report["bisection"]["change"]["reason"]


def test_commits_that_do_not_build_are_passed_over(project: Callable[..., Project]) -> None:
    p = project(build=["test ! -f broken"])
    shas = filled(p, [50e-6] * 5)
    shas.append(p.commit({"broken": "", "NEWS": "5"}, "commit 5"))
    shas.append(p.commit({"proj/__init__.py": code(60e-6), "NEWS": "6"}, "commit 6"))
    (p.root / "broken").unlink()
    shas.append(p.commit({"NEWS": "7"}, "commit 7"))
    shas += [p.commit({"NEWS": str(at)}, f"commit {at}") for at in range(8, 12)]
    result = p.regress("bisect", CASE, shas[0], shas[-1], "--format", "json", "--output", "text=../seen.txt")
    bisection = document(result)["bisection"]
    assert result.code == 4, result.err
    assert subjects(bisection["found"]) == ["commit 5", "commit 6", "commit 7"]
    assert bisection["parent"]["subject"] == "commit 4"
    assert bisection["confirmed"]
    assert {states(bisection)["commit 5"], states(bisection)["commit 6"]} == {"skipped"}
    assert "2 commits of them cannot be measured" in bisection["reason"]
    skipped = next(probe for probe in bisection["probes"] if probe["subject"] == "commit 5")
    assert "does not build" in skipped["reason"]
    text = (p.root.parent / "seen.txt").read_text()
    assert re.search(
        r"^UNDECIDED  one of 3 commits, [0-9a-f]{8} to [0-9a-f]{8}, 99\.\d % sure, confirmed", text, re.MULTILINE
    )
    assert "  one of 3 commits did it:" in text


def test_a_commit_on_which_the_case_fails_is_passed_over(project: Callable[..., Project]) -> None:
    p = project()
    times = [50e-6] * 4 + [60e-6] * 4
    shas = filled(p, times, lambda at: "    raise ValueError('half done')\n" if at == 3 else "")
    result, report = bisected(p, CASE, shas[0], shas[-1])
    assert result.code == 4
    assert subjects(report["bisection"]["found"]) == ["commit 3", "commit 4"]
    assert states(report["bisection"])["commit 3"] == "skipped"


# -- merges --------------------------------------------------------------------------------------------------------------


def merged(p: Project, times: Sequence[float], *, evil: bool = False) -> list[str]:
    """A main line on which a branch with a commit for each of `times` is merged; the merge may slow `work` down itself."""
    shas = filled(p, [50e-6] * 3)
    p.git("checkout", "-q", "-b", "side", shas[1])
    for at, seconds in enumerate(times):
        p.commit({"proj/__init__.py": code(seconds), "SIDE": str(at)}, f"side {at}")
    p.git("checkout", "-q", "main")
    p.commit({"MAIN": "1"}, "main 1")
    p.git("merge", "-q", "--no-ff", "--no-commit", "-s", "ort", "-X", "theirs", "side")
    if evil:
        p.write({"proj/__init__.py": code(60e-6)})
    p.git("add", "-A")
    p.git("commit", "-q", "-m", "Merge side")
    shas += [p.commit({"MAIN": str(at)}, f"main {at}") for at in range(2, 5)]
    return shas


def test_the_search_goes_on_inside_a_merge(project: Callable[..., Project]) -> None:
    p = project()
    shas = merged(p, [50.001e-6, 50.002e-6, 60e-6, 60.001e-6])
    result, report = bisected(p, CASE, shas[0], shas[-1])
    bisection = report["bisection"]
    assert result.code == 0, result.err
    assert subjects(bisection["found"]) == ["side 2"]
    assert subjects(bisection["merges"]) == ["Merge side"]
    assert bisection["parent"]["subject"] == "side 1"


def test_a_merge_that_did_it_itself_is_named(project: Callable[..., Project]) -> None:
    p = project()
    shas = merged(p, [50.001e-6, 50.002e-6], evil=True)
    result, report = bisected(p, CASE, shas[0], shas[-1])
    bisection = report["bisection"]
    assert result.code == 0, result.err
    assert subjects(bisection["found"]) == ["Merge side"]
    assert "its branch alone does not show the change" in bisection["reason"]


# -- what there is to search ---------------------------------------------------------------------------------------------


def test_ends_that_do_not_differ(project: Callable[..., Project]) -> None:
    p = project()
    shas = filled(p, [50e-6] * 4)
    result, report = bisected(p, CASE, shas[0], shas[-1])
    assert (result.code, report["verdict"]) == (5, "NOTHING")
    assert report["remark"].startswith(f"nothing to bisect: gpu time of {shas[0][:8]} and {shas[-1][:8]}: unchanged, ")
    assert re.search(r" % \([-+]\d.* … ", report["remark"])
    assert not report["bisection"]["probes"]


def test_what_touches_only_results_is_no_candidate(project: Callable[..., Project]) -> None:
    p = project()
    shas = filled(p, [50e-6] * 2)
    p.commit({"history/x.json": "{}"}, "results")
    assert p.regress("bisect", CASE, shas[1], "HEAD").code == 5
    shas.append(p.commit({"proj/__init__.py": code(60e-6)}, "slower"))
    p.commit({"history/y.json": "{}"}, "more results")
    _, report = bisected(p, CASE, shas[0], "HEAD")
    assert report["bisection"]["candidates"] == 2
    assert subjects(report["bisection"]["found"]) == ["slower"]


def test_the_line_follows_first_parents(project: Callable[..., Project]) -> None:
    p = project()
    shas = merged(p, [50e-6, 51e-6])
    repository = open_repository(p.root)
    good, bad = repository.resolve(shas[0]), repository.resolve("HEAD")
    line = line_between(repository, good, bad)
    assert [commit.subject for commit in line] == [
        "commit 1",
        "commit 2",
        "main 1",
        "Merge side",
        "main 2",
        "main 3",
        "main 4",
    ]
    ((base, parent),) = merged_by(repository, line[3], line[2])
    assert (base.subject, parent.subject) == ("commit 1", "side 1")
    assert [commit.subject for commit in line_between(repository, base, parent)] == ["side 0", "side 1"]
    side = repository.resolve("side~1")
    assert [commit.subject for commit in line_between(repository, side, bad)] == [
        "Merge side",
        "main 2",
        "main 3",
        "main 4",
    ]


def test_ends_that_are_none(project: Callable[..., Project]) -> None:
    p = project()
    merged(p, [50e-6, 51e-6])
    repository = open_repository(p.root)
    main, side, first = (repository.resolve(word) for word in ("main", "side", "main~5"))
    swapped = p.regress("bisect", CASE, "main", "main~5", "--metric", "gpu_time")
    assert (swapped.code, swapped.err.splitlines()) == (
        2,
        [
            f"error: cannot bisect {CASE}: BAD, {first.short}, does not come after GOOD, {main.short}",
            "why:   GOOD is to be the older one; an improvement is found in that order too",
            f"fix:   regress bisect {CASE} --metric gpu_time {first.short} {main.short}",
        ],
    )
    apart = repository.resolve("main~4")
    with pytest.raises(RevisionError, match="does not come after") as branches:
        line_between(repository, side, apart)
    assert "two branches" in branches.value.why or "other way round" in branches.value.why
    with pytest.raises(RevisionError, match="cannot bisect CASE"):
        line_between(repository, main, main)


CASES = [Case("a.time_f", ("1",)), Case("a.time_f", ("2",)), Case("a.time_g"), Case("b.time_softmax")]


@pytest.mark.parametrize(
    ("words", "number"), [("a.time_f(1)", 0), ("a.time_g", 2), ("softmax", 3), (r"f\(2", 1), ("time_[g]$", 2)]
)
def test_one_case(words: str, number: int) -> None:
    assert one_case(words, CASES) == CASES[number]


def test_a_metric_that_there_is_not_is_refused_before_anything_is_measured(project: Callable[..., Project]) -> None:
    result = project().regress("bisect", "a.time_f", "HEAD~1", "HEAD", "--metric", "gpu_tme")
    assert (result.code, result.out) == (2, "")
    assert "there is no metric gpu_tme" in result.err
    assert result.err.endswith("fix:   --metric gpu_time\n")


def test_several_cases_or_none() -> None:
    with pytest.raises(RegressError, match="is 2 cases") as several:
        one_case("a.time_f", CASES)
    assert several.value.exit_code == 2
    with pytest.raises(NothingMeasured, match="no case") as near:
        one_case("b.time_sofmax", CASES)
    assert near.value.fix.startswith("name b.time_softmax")
    with pytest.raises(NothingMeasured) as none:
        one_case("(", CASES)
    assert none.value.fix == "regress list"


def test_a_check_of_several_commits_names_the_bisection(project: Callable[..., Project]) -> None:
    p = project()
    shas = filled(p, [50e-6] * 2 + [60e-6] * 2)
    short = [sha[:8] for sha in shas]
    told = document(p.regress("check", shas[0], "HEAD", "--rounds", "5", "--format", "json"))["suggestions"]
    assert {"word": "find", "command": f"regress bisect {CASE} {short[0]} {short[3]}"} in told
    told = document(p.regress("check", shas[1], shas[2], "--rounds", "5", "--format", "json"))["suggestions"]
    assert [row["word"] for row in told] == ["why", "again", "accept"], "of one commit there is nothing to look for"


def test_a_sweep_names_the_bisection_where_several_commits_may_be_to_blame() -> None:
    commits = [Commit(str(at) * 40, f"commit {at}", "Ada", 0.0) for at in range(3)]
    good, *blamed = (commit.sha for commit in commits)
    point = ChangePoint(
        blamed[0], tuple(blamed), good, 1.0, 1.1, 1.1, 1.1, 1.1, Verdict.REGRESSED, True, 0.05, "confirmed", ()
    )
    case, metric = Case("b.f", ("'x y'",)), METRICS["peak_memory"]
    several = Changed(case, metric, "m", "e", "", point, tuple(commits[1:]))
    assert after_sweep(several) == (
        "find",
        """regress bisect 'b.f('"'"'x y'"'"')' 00000000 22222222 --metric peak_memory""",
    )
    assert after_sweep(replace(several, blamed=(commits[1],)))[0] == "check"


# -- what is kept --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_a_bisection_that_was_stopped_goes_on(project: Callable[..., Project], how: signal.Signals) -> None:
    p = project()
    shas = filled(p, [50e-6] * 20 + [60e-6] * 13)
    process = start(p.root, "bisect", CASE, shas[0], "HEAD", "--format", "json")
    assert process.stderr is not None
    first = next(line[:8] for line in process.stderr if line.endswith(" left\n"))
    process.send_signal(how)
    out, _ = process.communicate(timeout=120)
    if how == signal.SIGINT:
        assert process.returncode == 130
        assert next(probe["sha"][:8] for probe in json.loads(out)["bisection"]["probes"]) == first
    result, report = bisected(p, CASE, shas[0], "HEAD")
    bisection = report["bisection"]
    assert result.code == 0, result.err
    assert re.search(r"resuming: \d+ commits? probed before", result.err)
    assert subjects(bisection["found"]) == ["commit 20"]
    assert bisection["probes"][0]["sha"][:8] == first
    told = re.findall(r"^([0-9a-f]{8}) commit \d+: .* left$", result.err, re.MULTILINE)
    assert told
    assert told[0] != first, "what was measured before is not measured again"


def test_a_budget_ends_it_and_restart_forgets(project: Callable[..., Project]) -> None:
    p = project()
    shas = filled(p, [50e-6] * 10 + [60e-6] * 6)
    none, report = bisected(p, CASE, shas[0], "HEAD", "--budget", "0.01s")
    assert (none.code, report["verdict"]) == (5, "NOTHING")
    really = CommitSearch.measure_ends

    def ends_alone(line: CommitSearch, metric: str = "") -> Judged | None:
        bound, line._end_s = line._end_s, math.inf
        judged, line._end_s = really(line, metric), bound
        return judged

    with patch.object(CommitSearch, "measure_ends", ends_alone):
        result = inside(p, "bisect", CASE, shas[0], "HEAD", "--budget", "0.01s", "--format", "json")
    report = document(result)
    assert (result.code, report["verdict"]) == (4, "UNDECIDED")
    assert len(report["bisection"]["found"]) == 15, "the ends alone were measured"
    (suggestion,) = report["suggestions"]
    assert suggestion["command"] == f"regress bisect {CASE} {shas[0]} HEAD"
    with pytest.MonkeyPatch.context() as another:
        another.setenv("CUDA_VISIBLE_DEVICES", "scripted-1")
        other = p.regress("bisect", CASE, shas[0], "HEAD", "--budget", "0.01s")
    assert "resuming" not in other.err, "rounds of another card are not those of this one"
    same = p.regress("bisect", CASE, shas[0], "HEAD", "--budget", "0.01s")
    assert "resuming" in same.err
    again = p.regress("bisect", CASE, shas[0], "HEAD", "--restart")
    assert again.code == 0
    assert "resuming" not in again.err


def test_recorded_rounds_say_where_to_begin(project: Callable[..., Project]) -> None:
    p = project()
    shas = filled(p, [50e-6] * 20 + [60e-6] * 13)
    for at in (0, 18, 21, 32):
        assert p.regress("run", shas[at], "--rounds", "2", "-q").code == 0
    result, report = bisected(p, CASE, shas[0], "HEAD")
    bisection = report["bisection"]
    assert result.code == 0, result.err
    assert subjects(bisection["found"]) == ["commit 20"]
    assert {probe["sha"] for probe in bisection["probes"][:2]} <= set(shas[17:23])
    assert len(bisection["probes"]) <= 4, "five halve 32"


def test_the_ledger_gives_back_what_it_was_given(tmp_path: Path) -> None:
    contrast = Contrast(
        METRICS["gpu_time"], Verdict.REGRESSED, 1e-3, 1.1e-3, 1.1, 1.0, None, rounds=6, reasons=("why",)
    )
    ends = Judged(contrast, (Pair(1e-3, 1.1e-3),), "noisy", seconds=(1.5, 0.1))
    ledger, other = (SavedBisection(tmp_path, (word, "x")) for word in ("one", "other"))
    other.probe("c" * 40, Probed(skipped="it does not build"))
    ledger.ends(ends)
    ledger.probe("b" * 40, Probed((Pair(1.0, 2.0),)))
    ledger.probe("a" * 40, Probed(skipped="it does not build"))
    ledger.probe("b" * 40, Probed((Pair(1.0, 2.0), Pair(1.5, 2.5))))
    ledger.verified(Judged(contrast, (), good="a" * 40, bad="b" * 40))
    entries = SavedBisection(tmp_path, ("one", "x")).entries
    assert entries == ledger.entries
    assert list(entries.probes) == ["b" * 40, "a" * 40], "in the order they were begun"
    assert entries.pairs == 3
    SavedBisection(tmp_path, ("one", "x")).forget()
    assert SavedBisection(tmp_path, ("one", "x")).entries.ends is None
    assert SavedBisection(tmp_path, ("other", "x")).entries == other.entries


@pytest.mark.parametrize("text", ["", "{", '{"format": 1, "bisections": {"KEY": {"ends": 3}}}', '{"format": 2}'])
def test_a_ledger_that_cannot_be_read_is_begun_anew(tmp_path: Path, text: str) -> None:
    key = SavedBisection(tmp_path, ("one",))._key
    (tmp_path / FILE).write_text(text.replace("KEY", key))
    ledger = SavedBisection(tmp_path, ("one",))
    assert ledger.entries.ends is None
    ledger.probe("a" * 40, Probed(skipped="why"))
    assert SavedBisection(tmp_path, ("one",)).entries == ledger.entries
