"""`regress compare`: the verdicts of `check` from recorded results, and never from another machine's."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from regress.commands.compare import compare_recorded
from regress.errors import NothingMeasured, RegressError, RevisionError
from regress.git import open_repository
from regress.history import Recorded, Store
from regress.model import Report, Side
from regress.report.json import schema
from regress.session import Request
from tests.conftest import Project, Result

CODE = "import regress_scripted as d\ndef work(): d.kernel('k', {seconds})\ndef other(): d.kernel('o', 80e-6)\n"
SUITE = "import proj\ndef cudatime_work(): proj.work()\ndef cudatime_other(): proj.other()\n"

HERE = "box"
ENVIRONMENT = f"worktree-py{sys.version_info.major}.{sys.version_info.minor}"


def document(result: Result) -> dict[str, Any]:
    assert result.out, result.err
    data: dict[str, Any] = json.loads(result.out)
    jsonschema.Draft202012Validator(schema()).validate(data)
    return data


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the one project of this module is measured, by the first test that wants it."""
    return tmp_path_factory.mktemp("compare")


@pytest.fixture
def checked(made: Path, tmp_path: Path) -> tuple[Project, dict[str, Any]]:
    """A copy of a project whose last two commits of three were checked and recorded, and what the check said."""
    first, said = made / "project", made / "check.json"
    if not said.exists():
        p = Project(first, {"check_rounds": 3, "machine": HERE})
        p.commit({"proj/__init__.py": CODE.format(seconds=40e-6), "benchmarks/b.py": SUITE})
        p.commit({"proj/__init__.py": CODE.format(seconds=50e-6)})
        p.commit({"proj/__init__.py": CODE.format(seconds=60e-6)})
        said.write_text(p.regress("check", "HEAD~1", "HEAD", "--record", "--format", "json").out)
    copy: Project = Project.__new__(Project)
    copy.root = Path(shutil.copytree(first, tmp_path / "project"))
    return copy, json.loads(said.read_text())


def compared(p: Project, base: str, head: str, environment: str | None = None, *patterns: str) -> Report:
    return compare_recorded(Request(start=p.root, patterns=patterns), base, head, environment)


def refused(p: Project, base: str, head: str, environment: str | None = None, *patterns: str) -> RegressError:
    with pytest.raises(NothingMeasured) as raised:
        compared(p, base, head, environment, *patterns)
    return raised.value


def short(p: Project, revision: str) -> str:
    return p.git("rev-parse", revision)[:8]


def record_again(p: Project, revision: str, environment: str) -> Recorded:
    """Record what there is of a revision in another environment too."""
    store = Store(p.root / "history")
    side = Side("head", open_repository(p.root).resolve(revision), revision)
    (recorded,) = store.load(side.commit.sha).recorded
    for round in recorded.rounds:
        store.append(side, recorded.machine, environment, round)
    store.finish(side, recorded.machine, environment, python="3.9", benchmarks=recorded.benchmarks)
    return recorded


def test_the_verdicts_are_those_of_the_check(checked: tuple[Project, dict[str, Any]]) -> None:
    p, check = checked
    result = p.regress("compare", "HEAD~1", "HEAD", "--format", "json")
    report = document(result)
    assert (result.code, report["verdict"]) == (1, "FAIL")
    assert report["exit_codes"] == check["exit_codes"]
    for key in ("counts", "cases", "geomean", "noise_floor", "min_detectable", "policy", "environment"):
        assert report[key] == check[key], key
    differing = {"repro", "base_samples", "head_samples"}  # of samples a file keeps four digits
    assert [{key: row[key] for key in row if key not in differing} for row in report["benchmarks"]] == [
        {key: row[key] for key in row if key not in differing} for row in check["benchmarks"]
    ]
    assert {row["name"] for row in report["benchmarks"] if row["verdict"] == "regressed" and row["gates"]} == {
        "b.cudatime_work"
    }


def test_sides_may_be_swapped_and_options_decide(checked: tuple[Project, dict[str, Any]]) -> None:
    p, _ = checked
    swapped = compared(p, "HEAD", "HEAD~1")
    assert (swapped.exit_code, swapped.counts) == (0, {"improved": 1, "unchanged": 1})
    lenient = compare_recorded(Request(start=p.root, overrides={"time_threshold": 0.5}), "HEAD~1", "HEAD")
    assert (lenient.exit_code, lenient.counts) == (0, {"unchanged": 2})


def test_b_selects(checked: tuple[Project, dict[str, Any]]) -> None:
    p, _ = checked
    other = compared(p, "HEAD~1", "HEAD", None, "other")
    assert {str(comparison.case) for comparison in other.comparisons} == {"b.cudatime_other"}
    assert other.exit_code == 0
    error = refused(p, "HEAD~1", "HEAD", None, "nothing", "so")
    assert error.what == "no benchmark matches 'nothing' or 'so'"
    assert error.why == f"searched in the results of {short(p, 'HEAD~1')} and {short(p, 'HEAD')}"


def test_a_base_that_came_after_the_head_is_told(checked: tuple[Project, dict[str, Any]]) -> None:
    """What is 20 % slower since then would read as an improvement."""
    p, _ = checked
    again = f"regress check {short(p, 'HEAD~1')} {short(p, 'HEAD')}"
    told = f"the base is newer than the head, so a regression looks like an improvement; swap them: {again}"
    assert told in compared(p, "HEAD", "HEAD~1").warnings
    assert not any("newer" in warning for warning in compared(p, "HEAD~1", "HEAD").warnings)


@pytest.mark.parametrize("command", [["compare", "HEAD~1", "HEAD"], ["report"], ["ack", "--list"]])
def test_what_reads_the_history_tells_of_a_shallow_clone(
    checked: tuple[Project, dict[str, Any]], command: list[str]
) -> None:
    p, _ = checked
    (p.root / ".git" / "shallow").write_text(p.git("rev-parse", "HEAD~1") + "\n")
    result = p.regress(*command)
    assert result.code == (1 if command[0] == "compare" else 0)
    what = (
        "warning: this is a shallow clone: what precedes its first commit is missing from the history; fix: git fetch"
    )
    assert what in result.out + result.err


def test_a_name_that_matches_nothing_is_told_with_the_nearest(checked: tuple[Project, dict[str, Any]]) -> None:
    error = refused(checked[0], "HEAD~1", "HEAD", None, "cudatime_wrok")
    assert error.what == "no benchmark matches 'cudatime_wrok'"
    assert error.fix == "did you mean b.cudatime_work or b.cudatime_other? regress list has all names"


def test_a_commit_without_results_is_5_and_the_nearest_is_named(checked: tuple[Project, dict[str, Any]]) -> None:
    p, _ = checked
    result = p.regress("compare", "HEAD~2", "HEAD")
    assert (result.code, result.out) == (5, "")
    base = short(p, "HEAD~2")
    error, why, fix = result.err.splitlines()
    assert error == f"error: no baseline on this machine ({HERE})"
    assert why.startswith(f"why:   nothing is recorded for {base}; nearest in time is ")
    assert why.split()[-1] in (short(p, "HEAD~1"), short(p, "HEAD"))
    assert fix == f"fix:   regress run {base}"
    assert refused(p, "HEAD", "HEAD~2").what == f"no results of {base} on this machine ({HERE})"


def test_a_baseline_of_another_machine_is_none(checked: tuple[Project, dict[str, Any]]) -> None:
    p, _ = checked
    base, head = short(p, "HEAD~1"), short(p, "HEAD")
    elsewhere = p.root / "history" / "far-away"
    shutil.copytree(p.root / "history" / HERE, elsewhere)
    for path in elsewhere.iterdir():
        path.write_text(path.read_text().replace(f'"{HERE}"', '"far-away"'))
    for path in (p.root / "history" / HERE).glob(f"{base}-*"):
        path.unlink()
    error = refused(p, "HEAD~1", "HEAD")
    assert error.what == f"no baseline on this machine ({HERE})"
    assert error.why == (
        f"{base} was measured on far-away: values from another machine are not a baseline; nearest in time is {head}"
    )
    assert error.fix == f"regress run {base}"
    shutil.rmtree(p.root / "history" / HERE)
    assert refused(p, "HEAD~1", "HEAD").why == (
        f"{base} was measured on far-away: values from another machine are not a baseline; "
        f"nothing is recorded on {HERE} in {p.root / 'history'}"
    )
    there = compare_recorded(Request(start=p.root, overrides={"machine": "far-away"}), "HEAD~1", "HEAD")
    assert there.exit_code == 1, "asked for by name, its own results are compared with each other"


def test_several_environments_are_never_chosen_among(checked: tuple[Project, dict[str, Any]]) -> None:
    p, _ = checked
    base, head = short(p, "HEAD~1"), short(p, "HEAD")
    record_again(p, "HEAD", "conda-py3.9")
    assert compared(p, "HEAD~1", "HEAD").exit_code == 1, "only one environment has both"
    record_again(p, "HEAD~1", "conda-py3.9")
    error = refused(p, "HEAD~1", "HEAD")
    assert error.what == f"{base} and {head} have results in several environments"
    assert error.fix == f"regress compare {base} {head} --environment conda-py3.9"
    chosen = compared(p, "HEAD~1", "HEAD", "conda-py3.9")
    assert chosen.exit_code == 1
    assert [side.environment for side in (chosen.base, chosen.head) if side] == ["conda-py3.9"] * 2
    assert refused(p, "HEAD~1", "HEAD", "conda-py4").what == f"{base} and {head} do not both have results in conda-py4"


def test_without_a_common_environment_it_says_where_each_is_recorded(checked: tuple[Project, dict[str, Any]]) -> None:
    p, _ = checked
    base, head = short(p, "HEAD~1"), short(p, "HEAD")
    record_again(p, "HEAD~1", "conda-py3.9")
    for path in (p.root / "history" / HERE).glob(f"{base}-{ENVIRONMENT}*"):
        path.unlink()
    error = refused(p, "HEAD~1", "HEAD")
    assert error.what == f"{base} and {head} have no environment in common"
    assert error.why == f"{base} is recorded in conda-py3.9; {head} is recorded in {ENVIRONMENT}"
    assert error.fix == f"regress check {base} {head} --record"


def test_a_file_that_cannot_be_read_is_named_and_the_rest_is_used(checked: tuple[Project, dict[str, Any]]) -> None:
    p, _ = checked
    (sidecar,) = (p.root / "history" / HERE).glob(f"{short(p, 'HEAD')}-*.rounds.jsonl")
    results = sidecar.with_name(sidecar.name.removesuffix(".rounds.jsonl") + ".json")
    results.write_text('{"commit_hash": "')
    report = compared(p, "HEAD~1", "HEAD")
    assert report.exit_code == 1, "the sidecar has the rounds"
    assert [str(results) in warning for warning in report.warnings] == [True]
    sidecar.unlink()
    error = refused(p, "HEAD~1", "HEAD")
    assert error.what == f"no results of {short(p, 'HEAD')} on this machine ({HERE})"
    assert error.why.startswith(f"{results} cannot be used: ")
    assert error.fix


def test_a_renamed_benchmark_is_compared_and_found_by_its_new_name(tmp_path: Path) -> None:
    p = Project(tmp_path / "renamed", {"run_rounds": 3, "machine": HERE})
    p.commit({"proj/__init__.py": CODE.format(seconds=50e-6), "benchmarks/b.py": SUITE})
    assert p.regress("run", "-q").code == 0
    suite = SUITE.replace("cudatime_work", "cudatime_fast") + "cudatime_fast.was = 'b.cudatime_work'\n"
    p.commit({"proj/__init__.py": CODE.format(seconds=60e-6), "benchmarks/b.py": suite})
    assert p.regress("run", "-q").code == 0
    for patterns in ((), ("b.cudatime_fast",)):
        comparisons = {own.case.name: own for own in compared(p, "HEAD~1", "HEAD", None, *patterns).comparisons if own.gates
                 and own.metric.name == "gpu_time"}  # fmt: skip
        assert set(comparisons) == ({"b.cudatime_fast"} if patterns else {"b.cudatime_fast", "b.cudatime_other"})
        assert comparisons["b.cudatime_fast"].ratio == pytest.approx(1.2, rel=0.02)


def test_other_declared_sampling_is_a_mark_across_which_nothing_is_claimed(tmp_path: Path) -> None:
    p = Project(tmp_path / "marked", {"run_rounds": 3, "machine": HERE})
    suite = "import proj\nclass Suite:\n    repeat = {}\n    def cudatime_work(self): proj.work()\n"
    for seconds, repeat in ((50e-6, 5), (70e-6, 8)):
        p.commit({"proj/__init__.py": CODE.format(seconds=seconds), "benchmarks/b.py": suite.format(repeat)})
        assert p.regress("run", "-q").code == 0
    (comparison,) = [one for one in compared(p, "HEAD~1", "HEAD").comparisons if one.metric.name == "gpu_time"]
    assert (str(comparison.verdict), comparison.ratio) == ("incomparable", None)
    assert comparison.reasons == ("different declared repeat: 5 on the base, 8 on the head",)
    # Measured again as head was: what was measured differently is no part of the base any more, and that is said.
    assert p.regress("run", "HEAD~1", "-q").code == 0
    report = compared(p, "HEAD~1", "HEAD")
    (comparison,) = [comparison for comparison in report.comparisons if comparison.metric.name == "gpu_time"]
    assert comparison.ratio == pytest.approx(1.4, rel=0.02)
    assert [warning.partition(": ")[2] for warning in report.warnings] == [
        "b.Suite.cudatime_work: 3 older rounds were measured differently (other declared repeat) and are left out"
    ]


def test_the_series_of_a_parameter_whose_repr_has_an_address_goes_on(tmp_path: Path) -> None:
    p = Project(tmp_path / "addresses", {"run_rounds": 3, "machine": HERE})
    suite = """
import proj
class Thing:
    def __init__(self):
        import os
        self.moves = bytearray(os.getpid() % 4096)
class Suite:
    params = [[lambda: proj.work(), Thing(), Thing(), proj.other]]
    def cudatime_work(self, call): call() if callable(call) else proj.work()
"""
    for seconds in (50e-6, 60e-6):
        p.commit({"proj/__init__.py": CODE.format(seconds=seconds), "benchmarks/b.py": suite})
        assert p.regress("run", "-q").code == 0
    comparisons = [
        comparison for comparison in compared(p, "HEAD~1", "HEAD").comparisons if comparison.metric.name == "gpu_time"
    ]
    assert {comparison.case.params[0]: round(comparison.ratio or 0, 1) for comparison in comparisons} == {
        "<function Suite.<lambda>>": 1.2,
        "<benchmarks.b.Thing object> (0)": 1.2,
        "<benchmarks.b.Thing object> (1)": 1.2,
        "<function other>": 1.0,
    }


def test_results_of_a_commit_that_was_rebased_away_are_used_and_called_off_branch(tmp_path: Path) -> None:
    p = Project(tmp_path / "rebased", {"run_rounds": 3, "machine": HERE})
    p.commit({"proj/__init__.py": CODE.format(seconds=50e-6), "benchmarks/b.py": SUITE, ".gitignore": "history/\n"})
    holding = "import regress_scripted as d\ndef work(): return d.alloc({} << 20)\ndef other(): d.kernel('o', 80e-6)\n"
    gone = p.commit({"proj/__init__.py": holding.format(8)})
    assert p.regress("run", "-q").code == 0
    p.write({"proj/__init__.py": holding.format(16)})
    p.git("commit", "-q", "-a", "--amend", "-m", "again")
    assert p.regress("run", "-q").code == 0
    before = compared(p, gone, "HEAD")
    # Here the worktree that it was measured in holds it; a clone does not have it.
    p.git("clone", "-q", f"file://{p.root}", str(tmp_path / "clone"))
    p.root = Path(shutil.copytree(p.root / "history", tmp_path / "clone" / "history")).parent
    after = compared(p, gone[:8], "HEAD")
    for report, revision in ((before, gone), (after, gone[:8])):
        assert report.base is not None
        assert report.head is not None
        assert (report.base.revision, report.head.revision) == (f"{revision}, off-branch", "HEAD")
        assert report.counts == {"regressed": 1, "unchanged": 1}
    ((_, again), _) = after.suggestions
    assert again.startswith(f"regress compare {gone[:8]} "), "git cannot check it out any more"
    with pytest.raises(RevisionError):
        compared(p, "0" * 8, "HEAD")


@pytest.mark.slow
def test_sessions_apart_claim_nothing_and_the_command_that_tells_is_named(project: Callable[..., Project]) -> None:
    """A run of each commit: the machine may have been another one. What a sweep has measured in turn is of one session."""
    p = project(run_rounds=3, machine=HERE, sweep_rounds=3)
    p.commit({"proj/__init__.py": CODE.format(seconds=50e-6), "benchmarks/b.py": SUITE})
    p.commit({"proj/__init__.py": CODE.format(seconds=60e-6)})
    for revision in ("HEAD~1", "HEAD"):
        assert p.regress("run", revision, "-q").code == 0
    result = p.regress("compare", "HEAD~1", "HEAD")
    assert result.code == 4, result.out
    assert "each side was measured in one session, not in the same: sessions may differ for other reasons" in result.out
    assert f"check regress check {short(p, 'HEAD~1')} {short(p, 'HEAD')} -b b.cudatime_work" in result.out
    assert "smallest detectable" not in result.out
    shutil.rmtree(p.root / "history")
    assert p.regress("sweep", "ALL", "-q").code == 0
    assert p.regress("compare", "HEAD~1", "HEAD").code == 1


def test_what_was_not_selected_is_not_gone(project: Callable[..., Project]) -> None:
    p = project(run_rounds=2)
    both = "import proj\n" + "".join(f"def cudatime_{name}(): proj.work()\n" for name in ("work", "other", "last"))
    p.commit(
        {
            "proj/__init__.py": "import regress_scripted as d\ndef work(): d.kernel('k', 50e-6)\n",
            "benchmarks/b.py": both,
        }
    )
    assert p.regress("run", "-q").code == 0
    p.commit({"benchmarks/b.py": both.replace("def cudatime_last(): proj.work()\n", "")})
    assert p.regress("run", "-q", "-b", "cudatime_work").code == 0
    report = json.loads(p.regress("compare", "HEAD~1", "HEAD", "--format", "json").out)
    verdicts = {
        row["name"]: (row["verdict"], row["reason"]) for row in report["benchmarks"] if row["metric"] == "gpu_time"
    }
    assert verdicts["b.cudatime_work"][0] == "unchanged"
    assert verdicts["b.cudatime_other"] == ("undecided", "not measured on the head")
    assert verdicts["b.cudatime_last"][0] == "gone"


def elsewhere(p: Project, machine: str, factor: float) -> None:
    """Another machine with another GPU, that recorded the same, so many times as slow."""
    for path in (p.root / "history" / HERE).iterdir():
        text = path.read_text().replace(f'"{HERE}"', f'"{machine}"')
        target = p.root / "history" / machine / path.name
        target.parent.mkdir(exist_ok=True)
        lines = text.splitlines() if path.suffix == ".jsonl" else []
        rounds = [json.loads(line) for line in lines]
        for round in rounds:
            for value in round.get("values", {}).values() if round["is"] == "round" else ():
                value["value"] *= factor if value["unit"] == "s" else 1
            if "run" in round:
                round["run"] += f" on {machine}"
            if round["is"] == "process":
                round["facts"]["gpu_uuid"] = f"GPU-of-{machine}"
        target.write_text("".join(json.dumps(round) + "\n" for round in rounds) if rounds else text)


def test_two_machines_are_compared_on_request_and_nothing_is_said_of_commits(
    checked: tuple[Project, dict[str, Any]],
) -> None:
    p, _ = checked
    elsewhere(p, "gpu-2", 1.3)
    result = p.regress("compare", "HEAD", "HEAD", "--head-machine", "gpu-2", "--format", "json")
    report = document(result)
    assert (result.code, report["verdict"], report["across"]) == (0, "", f"gpu-2 against {HERE}")
    times = [row for row in report["benchmarks"] if row["metric"] == "gpu_time"]
    assert {(series["verdict"], round(series["ratio"], 3)) for series in times} == {("changed", 1.3)}
    text = p.regress("compare", "HEAD", "HEAD", "--head-machine", "gpu-2")
    assert (text.code, f"gpu-2 against {HERE}: a difference between places" in text.out, "regressed" in text.out) == (
        0,
        True,
        False,
    )
    assert "regress ack" not in text.out
    same = document(p.regress("compare", "HEAD", "HEAD", "--head-machine", HERE, "--format", "json"))
    assert (same["across"], same["verdict"]) == (None, "PASS")


def test_a_machine_without_results_of_the_commit_says_who_has_some(checked: tuple[Project, dict[str, Any]]) -> None:
    p, _ = checked
    result = p.regress("compare", "HEAD~1", "HEAD", "--head-machine", "nobody")
    assert (result.code, f"--head-machine {HERE}" in result.err) == (5, True)


def test_two_environments_are_compared_on_request(checked: tuple[Project, dict[str, Any]]) -> None:
    p, _ = checked
    for path in [*(p.root / "history" / HERE).iterdir()]:
        if ENVIRONMENT in path.name:
            text = path.read_text().replace(f'"{ENVIRONMENT}"', '"next"')
            path.with_name(path.name.replace(ENVIRONMENT, "next")).write_text(text)
    result = p.regress("compare", "HEAD", "HEAD", "--base-env", ENVIRONMENT, "--head-env", "next", "--format", "json")
    report = document(result)
    assert (result.code, report["across"]) == (0, f"next against {ENVIRONMENT}")
    assert {row["verdict"] for row in report["benchmarks"] if row["gates"]} == {"unchanged"}
