"""`regress report` as a user runs it."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from regress.commands.report import report
from regress.history import Store, keep_explanation
from regress.model import Commit, KeptExplanation, Side
from regress.session import Request, Session
from tests.conftest import Project, regress
from tests.history.samples import GPU, WALL, benchmark, taken
from tests.pages.made import QUIET
from tests.report import sample
from tests.report.html.history import CPU, GPUS, LAST, PARSE, Recorder, create, explained


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Path:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
        return create(tmp_path_factory.mktemp("history") / "tensors")


@pytest.fixture
def root(history: Path, tmp_path: Path) -> Path:
    shutil.copytree(history, tmp_path / "tensors")
    return tmp_path / "tensors"


def test_a_report_is_written_and_kept_up_to_date(root: Path) -> None:
    first = regress(root, "report")
    assert first.code == 0, first.err
    assert (root / "report" / "index.html").exists()
    assert first.out == "report/index.html  (9 benchmarks, 26 commits; 9 pages changed)\n"
    assert "warning: history/h100/" in first.err
    assert ": not JSON" in first.err
    before = {path: path.stat().st_mtime_ns for path in (root / "report" / "data" / "b").iterdir()}
    assert regress(root, "report", "-q").out.endswith("0 pages changed)\n")
    assert {path: path.stat().st_mtime_ns for path in (root / "report" / "data" / "b").iterdir()} == before


def test_the_newest_value_of_a_time_has_the_ends_of_its_samples(root: Path) -> None:
    """Of two rounds with three samples each, the last of which is 2 % above the others."""
    site, _ = report(Request(root), QUIET)
    (shard,) = [leaf.make()[0] for leaf in site.leaves if leaf.name == PARSE]
    line = next(one for one in shard.lines if one.metric == "wall_time")
    assert line.samples is not None
    value = line.values[-1] / line.per
    assert (line.samples.n, line.samples.calls) == (6, WALL.calls)
    assert line.samples.low <= value <= line.samples.p95 <= line.samples.high
    assert line.samples.p95 == pytest.approx(1.02 * value, rel=1e-2)


@pytest.mark.parametrize("name, lost", [("cpu-box", 0), ("other", 53)])
def test_results_that_could_not_be_used_are_told_first(root: Path, name: str, lost: int) -> None:
    """A folder may have any name where machine.json says whose it is; where nothing says so, a reader has to know."""
    folder = root / "history" / "cpu-box"
    told = json.loads((folder / "machine.json").read_text())
    (folder / "machine.json").write_text(json.dumps({**told, "machine": name}))
    for path in folder.glob("*.rounds.jsonl"):
        path.unlink()
    folder.rename(folder.with_name("renamed"))
    done = regress(root, "report", "-q")
    assert (done.code, done.err) == (0, "")
    says = f"{lost + 1} of 132 files of results are not in it" if lost else ""
    assert done.out.count("\n") == (2 if lost else 1)
    assert says in done.out
    made = index(root)
    assert made["lost"] == {"files": lost + 1, "of": 132, "newer": 0, "matters": lost > 0}
    assert sum(files for _, files, _, _ in made["skipped"]) == lost + 1
    assert len(made["skipped"]) == (2 if lost else 1)


def test_a_change_that_an_anchor_made_too_is_the_machines(root: Path) -> None:
    """The same of the history as a sweep says of it: only the benchmark that was measured again has another page."""
    assert regress(root, "report", "-q").code == 0
    (before,) = events(root, PARSE)
    assert (before["moved"], before["large"], before["reasons"]) == ("improved", True, [])
    shas = subprocess.run(
        ["git", "rev-list", "--reverse", "HEAD"], cwd=root, capture_output=True, text=True, check=True
    )
    old, new = shas.stdout.split()[10], shas.stdout.split()[27]
    for environment in ("worktree-py3.11", "worktree-py3.12"):
        side = Side("anchor", Commit(old, "change 10", "Ada", 0.0), "HEAD", environment, beside=new)
        for order in range(3):
            again = taken(PARSE, order=order, protocol=WALL, wall_time=0.86 * 1.2e-3 * (1 + order / 1000))
            defined = benchmark(PARSE, metric="wall_time")
            Store(root / "history").append(side, CPU, environment, again, {}, defined)
    assert regress(root, "report", "-q").out.endswith("(9 benchmarks, 26 commits; 1 page changed)\n")
    (event,) = events(root, PARSE)
    assert (event["moved"], event["large"]) == ("improved", False)
    assert event["reasons"][0].startswith(f"{old[:8]}, measured again beside {new[:8]}, moved by -")
    (shard,) = (root / "report" / "data" / "b").glob(f"{PARSE}-*.js")
    assert shard.read_text().count("the machine moved") == 2, "in both environments"


@pytest.mark.parametrize("name", [LAST, "ops.cudatime_before"], ids=["as it is called", "as it was called"])
def test_what_was_explained_on_this_machine_is_shown_at_the_change(root: Path, name: str) -> None:
    """`explain` alone writes into the cache: only the benchmark that it was about has another page."""
    log = ["git", "rev-list", "--reverse", "HEAD"]
    shas = subprocess.run(log, cwd=root, capture_output=True, text=True, check=True).stdout.split()
    if name != LAST:
        before, machine = (
            Commit(shas[0], "change 0", "Ada", 0.0),
            Recorder(root / "history", GPUS["h100"], "worktree-py3.12"),
        )
        machine.put(before, benchmark(name), (), GPU, 0.003, {"gpu_uuid": "GPU-h100"}, None, gpu_time=40e-6)
        machine.finish(before)
        listed = json.loads((root / "history" / "benchmarks.json").read_text())
        listed[LAST]["was"] = [name]
        (root / "history" / "benchmarks.json").write_text(json.dumps(listed))
    assert regress(root, "report", "-q").code == 0
    (event,) = events(root, LAST)
    assert event["told"] is None
    account = explained(name, (), 40e-6, 48e-6, "softmax::rest was added", sample.explanation().kernels[0])
    kept = KeptExplanation(shas[26], shas[27], "h100", "worktree-py3.12", 1e9, account)
    keep_explanation(Session(Request(root)).cache / "history", kept)
    assert regress(root, "report", "-q").out.endswith("(9 benchmarks, 26 commits; 1 page changed)\n")
    (event,) = events(root, LAST)
    assert event["told"]["text"] == "softmax::rest was added"
    assert (event["told"]["base"], event["told"]["head"]) == (shas[26][:12], shas[27][:12])
    (shard,) = (root / "report" / "data" / "b").glob(f"{LAST}-*.js")
    assert f"{name} is 20 % slower: softmax::rest was added (high confidence)" in shard.read_text()
    assert regress(root, "report", "-q").out.endswith("0 pages changed)\n")


def test_a_commit_with_results_of_one_benchmark_makes_one_page_and_the_same_report(root: Path) -> None:
    assert regress(root, "report", "-q").code == 0
    before = stamps(root)
    subprocess.run(["git", "commit", "-q", "--allow-empty", "-m", "more"], cwd=root, check=True)
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=root, capture_output=True, text=True, check=True)
    side = Side("head", Commit(head.stdout.strip(), "more", "Ada", 0.0), "HEAD", "worktree-py3.11")
    again = taken(PARSE, protocol=WALL, wall_time=1.3e-3)
    Store(root / "history").append(side, CPU, side.environment, again, {}, benchmark(PARSE, metric="wall_time"))
    assert regress(root, "report", "-q").out.endswith("(9 benchmarks, 27 commits; 1 page changed)\n")
    assert {name for name, stamp in stamps(root).items() if stamp != before[name]} == {PARSE}
    kept = index(root)
    shutil.rmtree(root / "report")
    assert regress(root, "report", "-q").code == 0
    assert kept == index(root)


def stamps(root: Path) -> dict[str, str]:
    """What each benchmark was made from."""
    manifest = json.loads((root / "report" / "manifest.json").read_text())
    return {name: row["stamp"] for name, row in manifest["benchmarks"].items()}


def index(root: Path) -> dict[str, Any]:
    """The index of the report, but for when it was written."""
    text = (root / "report" / "data" / "index.js").read_text()
    _, _, content = json.loads(text.removeprefix("regress.take(...").removesuffix(");\n"))
    return {key: value for key, value in content.items() if key != "generated"}


def events(root: Path, name: str) -> list[dict[str, Any]]:
    """The changes of a benchmark in the index of the report."""
    made = index(root)
    (own,) = (at for at, entry in enumerate(made["entries"]) if entry["name"] == name)
    every = (dict(zip(made["fields"]["event"], values, strict=True)) for values in made["events"])
    return [row for row in every if row["benchmark"] == own]


def test_progress_is_told_on_stderr(root: Path) -> None:
    assert "making pages: done, 9 of 9 in" in regress(root, "report").err


@pytest.mark.parametrize("since, commits", [("v1.1", 14), ("HEAD~3", 2), ("2026-01-20T00:00:00+00:00", 6)])
def test_a_report_may_begin_later(root: Path, since: str, commits: int) -> None:
    done = regress(root, "report", "-q", "--since", since)
    assert f"{commits} commits;" in done.out, done.err


def test_nothing_since_then(root: Path) -> None:
    done = regress(root, "report", "--since", "2027-01-01")
    assert done.code == 5
    assert "error: no commit since 2027-01-01 has results" in done.err
    assert regress(root, "report", "--since", "v9").code == 2


def test_one_file(root: Path) -> None:
    done = regress(root, "report", "-q", "--single-file", "out/history.html")
    assert done.code == 0
    assert (root / "out" / "history.html").stat().st_size > 200_000
    assert not (root / "report").exists()


def test_a_folder_with_something_else_in_it_is_refused(root: Path) -> None:
    config = json.loads((root / "asv.conf.json").read_text())
    (root / "asv.conf.json").write_text(json.dumps({**config, "regress": {"report_dir": "docs"}}))
    (root / "docs").mkdir()
    (root / "docs" / "guide.md").write_text("read me")
    done = regress(root, "report")
    assert done.code == 2
    assert "docs is not a folder of a report" in done.err
    assert [path.name for path in (root / "docs").iterdir()] == ["guide.md"]


def test_nothing_is_recorded(project: Callable[..., Project]) -> None:
    made = project()
    made.commit({"code.py": ""})
    done = made.regress("report")
    assert done.code == 5
    assert "fix:   regress run" in done.err
    shutil.rmtree(made.root / "history", ignore_errors=True)
    assert made.regress("report").code == 5


def test_results_of_another_branch_only(root: Path) -> None:
    subprocess.run(["git", "checkout", "-q", "--orphan", "other"], cwd=root, check=True)
    subprocess.run(["git", "commit", "-q", "--allow-empty", "-m", "anew"], cwd=root, check=True)
    subprocess.run(["git", "branch", "-q", "-D", "main"], cwd=root, check=True)
    done = regress(root, "report")
    assert done.code == 5
    assert "27 commits with results" in done.err
    assert "are not on other" in done.err
