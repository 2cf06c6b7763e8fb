"""`regress sweep --on`: real git and processes, the scripted device, on the engine `local`."""

from __future__ import annotations

import json
import os
import re
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from regress.cluster.engine import Attached, Gone, Place, Queued, Refused
from regress.cluster.plan import Plan, Task
from regress.cluster.runs import End, Run
from regress.commands.away import there
from regress.commands.sweep.choosing import Asked, Chosen, choose
from regress.commands.sweep.cluster import _taken_up
from regress.commands.sweep.planning import On, key_of, on_kinds
from regress.history import Store
from regress.history.kept import write
from regress.model import Kind
from regress.run.execute import Watcher
from regress.session import Request
from tests.cluster.test_following import Told
from tests.commands.test_check import document
from tests.conftest import Project, Result, inside, start
from tests.history.samples import BOX, ENV, benchmark, taken
from tests.history.samples import side as of
from tests.report.test_json import validate

pytestmark = pytest.mark.usefixtures("dated")

SUITE = "import proj\ndef cudatime_work(): proj.work()\ndef cudatime_other(): proj.other()\n"
CASES = ("b.cudatime_other", "b.cudatime_work")
CODE = """
import os, regress_scripted
CARD = {{"scripted-2": 1.06}}.get(os.environ.get("CUDA_VISIBLE_DEVICES"), 1.0)
def work(): regress_scripted.kernel("work", CARD * {seconds})
def other(): regress_scripted.kernel("other", CARD * 80e-6)
"""
KIND: dict[str, Any] = {
    "at_most": 2,
    "time": "10m",
    "setup": ["export CUDA_VISIBLE_DEVICES=scripted-$((REGRESS_SLOT + 1))"],
}
"""Two cards, one 6 % slower than the other."""


def local(project: Callable[..., Project], times: list[float], **kinds: Any) -> tuple[Project, list[str]]:
    """A repository with a commit for each time of `work`, and kinds of nodes that are processes of this host."""
    p = project(cluster={"engine": "local", "kinds": kinds or {"h100": KIND}})
    shas = [p.commit({"proj/__init__.py": CODE.format(seconds=times[0]), "benchmarks/b.py": SUITE}, "commit 0")]
    shas += [
        p.commit({"proj/__init__.py": CODE.format(seconds=seconds), "NEWS": str(at)}, f"commit {at}")
        for at, seconds in enumerate(times[1:], 1)
    ]
    return p, shas


def run_of(p: Project) -> Run:
    """The one that measured; another one has confirmed what is new."""
    runs = map(Run, Path(os.environ["REGRESS_CACHE_DIR"]).glob(f"{p.root.name}-*/cluster/runs/*"))
    (run,) = [run for run in runs if not run.plan.key.endswith("-pairs")]
    return run


def rounds_of(p: Project, kind: str) -> dict[str, Counter[str]]:
    """By full hash: how many rounds of each benchmark are recorded on nodes of the kind."""
    counts: dict[str, Counter[str]] = {}
    store = Store(p.root / "history")
    for commit in store.commits(kind):
        counts[commit.commit_sha] = Counter(
            round.name for recorded in store.load(commit.commit_sha, kind).recorded for round in recorded.rounds
        )
    return counts


def once(shas: list[str], run: Run, kind: str) -> dict[str, Counter[str]]:
    """The same where nothing is lost and nothing is there twice: two rounds of each commit in each of its tasks."""
    tasks = Counter(sha for task in run.plan.tasks[kind] for sha in task.commits)
    return {sha: Counter(dict.fromkeys(CASES, 2 * tasks[sha])) for sha in shas}


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REGRESS_CACHE_DIR", str(tmp_path / "cache"))


@pytest.mark.slow  # the engine slurm shows it too
def test_a_sweep_on_two_kinds_is_two_histories_each_with_its_events(project: Callable[..., Project]) -> None:
    p, shas = local(project, [50e-6] * 4 + [60e-6] * 5, h100=KIND, a100=KIND)
    result = p.regress("sweep", "ALL", "--on", "all", "--format", "json", "--output", "text=../seen.txt")
    assert result.code == 1, result.err
    report = document(result)
    validate(report)
    events = [
        (change["machine"], change["first"], change["good"], change["state"], change["new"])
        for change in report["changes"]
    ]
    assert sorted(events) == [(kind, shas[4], shas[3], "confirmed", True) for kind in ("a100", "h100")]
    assert {change["reason"].partition(" on ")[0] for change in report["changes"]} == {
        f"confirmed by check {shas[3][:8]} {shas[4][:8]}"
    }
    assert report["remark"] == "2 new regressions (h100: 3 of 3 tasks in, a100: 3 of 3 tasks in)"
    run = run_of(p)
    for kind in ("h100", "a100"):
        assert rounds_of(p, kind) == once(shas, run, kind)
        (anchor,) = set.intersection(*(set(task.commits) for task in run.plan.tasks[kind]))
        assert anchor == shas[-1], "what is compared beside every group is one commit"
    again = p.regress("sweep", "ALL", "--on", "all", "--format", "json")
    assert (again.code, document(again)["remark"]) == (
        0,
        "nothing to measure: all is measured on h100, a100; 2 regressions open",
    )


def test_nodes_read_the_configuration_that_is_not_committed_yet_and_build_where_this_host_cannot(
    project: Callable[..., Project],
) -> None:
    p, (sha,) = local(project, [50e-6])
    path = p.root / "asv.conf.json"
    config = json.loads(path.read_text())
    kind = {**KIND, "setup": [*KIND["setup"], "export COMPILER=here"]}
    config["regress"] |= {"build": ['test "$COMPILER" = here'], "cluster": {"engine": "local", "kinds": {"new": kind}}}
    path.write_text(json.dumps(config))
    result = p.regress("sweep", "ALL", "--on", "new")
    assert (result.code, "does not build" in result.err) == (5, True), result.err
    kind["build"] = True
    path.write_text(json.dumps(config))
    result = p.regress("sweep", "ALL", "--on", "new")
    assert result.code == 0, result.out + result.err
    assert rounds_of(p, "new") == {sha: Counter(dict.fromkeys(CASES, 2))}


@pytest.mark.slow  # the engine slurm shows it too
def test_a_killed_driver_leaves_its_tasks_running_and_the_same_command_takes_them_up(
    project: Callable[..., Project],
) -> None:
    p, shas = local(project, [50e-6] * 4 + [60e-6] * 5)
    driver = start(p.root, "sweep", "ALL", "--on", "h100")
    while not list(p.root.parent.glob("cache/*/cluster/runs/*/h100/*.0/began.json")):
        assert driver.poll() is None, driver.communicate()
        time.sleep(0.05)
    driver.kill()
    driver.communicate()
    result = p.regress("sweep", "ALL", "--on", "h100", "--format", "json")
    assert result.code == 1, result.err
    assert " is resumed" in result.err
    (change,) = document(result)["changes"]
    assert (change["first"], change["new"]) == (shas[4], True), "nobody was told of it before"
    run = run_of(p)
    assert rounds_of(p, "h100") == once(shas, run, "h100")
    assert run.is_over


def test_ctrl_c_detaches_and_says_how_to_go_on(project: Callable[..., Project]) -> None:
    p, shas = local(project, [50e-6] * 3)
    driver = start(p.root, "sweep", "ALL", "--on", "h100", "--rounds", "2")
    while not list(p.root.parent.glob("cache/*/cluster/runs/*/h100/*.0/began.json")):
        assert driver.poll() is None, driver.communicate()
        time.sleep(0.05)
    driver.send_signal(signal.SIGINT)
    out, err = driver.communicate(timeout=120)
    assert driver.returncode == 130, err
    (again,) = re.findall(r"^go on +regress (.*)$", out, re.MULTILINE)
    assert "kill " in out
    result = p.regress(*again.split())
    assert " is resumed" in result.err
    assert result.code == 0, result.err
    assert rounds_of(p, "h100") == once(shas, run_of(p), "h100")


def test_a_command_goes_to_a_node_and_its_output_and_exit_code_come_back(project: Callable[..., Project]) -> None:
    p, _ = local(project, [50e-6, 60e-6])
    result = p.regress("check", "HEAD~1", "--on", "h100", "-b", "work", "--format", "json")
    assert result.code == 1, result.err
    report = document(result)
    assert (report["verdict"], report["machine"]["name"]) == ("FAIL", "h100")
    assert re.search(r"^on \S+ after \d+ s$", result.err, re.MULTILINE)
    result = p.regress("check", "HEAD~1", "--on", "all", "-b", "no_such_benchmark")
    assert result.code == 5
    assert "no benchmark matches" in result.err


def test_ctrl_c_goes_to_the_node_and_what_was_measured_is_reported(project: Callable[..., Project]) -> None:
    p, _ = local(project, [50e-6, 60e-6])
    driver = start(p.root, "run", "--on", "h100", "--rounds", "500")
    while not list((p.root / "history").rglob("*.jsonl")):
        assert driver.poll() is None, driver.communicate()
        time.sleep(0.05)
    driver.send_signal(signal.SIGINT)
    out, err = driver.communicate(timeout=120)
    assert driver.returncode == 130, err
    assert "the job was asked to end; press Ctrl-C again to cancel it" in err
    assert "INTERRUPTED" in out


@pytest.mark.parametrize(
    ("words", "taken"),
    [
        ("check HEAD~1 --on h100 -q", "check HEAD~1 -q --machine h100 --gpus all"),
        ("--on=h100 run --machine mine", "run --machine mine --gpus all"),
        ("run --gpus 0 --on h100", "run --gpus 0 --machine h100"),
    ],
)
def test_the_words_that_a_node_gets(words: str, taken: str) -> None:
    assert " ".join(there(words.split(), Kind("h100", gres="gpu:h100:2"), several=True)) == taken


def test_two_kinds_are_too_many_for_one_command(project: Callable[..., Project]) -> None:
    p, _ = local(project, [50e-6], h100=KIND, a100=KIND)
    result = p.regress("run", "--on", "all")
    assert (result.code, "this command is one job" in result.err) == (2, True)
    result = p.regress("run", "--on", "b200")
    assert (result.code, "the kinds are: h100, a100" in result.err) == (2, True)


@pytest.mark.parametrize("words", [("--on", "h100", "--bisect"), ("--no-wait",)])
def test_what_a_sweep_cannot_do_it_does_not_leave_out_in_silence(
    project: Callable[..., Project], words: Sequence[str]
) -> None:
    result = inside(project(), "sweep", *words)
    assert (result.code, words[-1] in result.err) == (2, True), result.err


def test_without_a_cluster_the_kinds_are_what_lacks(project: Callable[..., Project]) -> None:
    result = project().regress("check", "HEAD~1", "--on", "h100")
    assert (result.code, "the configuration has no kinds" in result.err) == (2, True), result.err


def test_two_clones_with_one_results_dir_follow_one_run(project: Callable[..., Project], tmp_path: Path) -> None:
    p, _ = local(project, [50e-6])
    config = json.loads((p.root / "asv.conf.json").read_text())
    p.commit({"asv.conf.json": json.dumps({**config, "results_dir": str(tmp_path / "results")})})
    p.git("clone", "-q", ".", str(tmp_path / "clone"))
    roots = (p.root, tmp_path / "clone")
    keys = [key_of(on_kinds(Request(root), "h100"), Asked(("ALL",))) for root in roots]
    assert keys[0] == keys[1] != key_of(on_kinds(Request(p.root, patterns=("work",)), "h100"), Asked(("ALL",)))


class Instant:
    """An engine whose tasks are done as soon as they are submitted, with made up results: a commit's time by its full hash."""

    def __init__(self, times: Mapping[str, float], how: str = "") -> None:
        self._times, self._how = times, how

    def submit(self, run: Run, kind: Kind, tasks: Sequence[int], exclude: Sequence[str] = ()) -> str:
        if self._how == "refuses":
            raise Refused("Slurm takes no job of kind h100", why="Invalid account", fix='correct "h100"')
        for number in [] if self._how == "cancels" else tasks:
            attempt = run.begin(kind.name, number, "1")
            store, machine = Store(attempt.results), type(BOX)(kind.name, BOX.facts)
            for at, (sha, seconds) in enumerate(self._times.items()):
                for order in range(2):
                    values = taken(benchmark().name, order=order, started_at=10.0 * at + order, gpu_time=seconds)
                    store.append(of(sha, date=1e9 + at), machine, ENV, values, {"gpu_uuid": "GPU-1"}, benchmark())
                store.finish(
                    of(sha, date=1e9 + at), machine, ENV, python="3.12", benchmarks={benchmark().name: benchmark()}
                )
            failed = {sha: ("it does not build", "exit code 2", "")} if self._how == "fails" else {}
            write(attempt.folder / "end.json", End(3 if failed else 0, measured=1, failed=failed))
        return "1"

    def queued(self, run: Run) -> Mapping[Place, Queued]:
        return {}

    def gone(self, run: Run, kind: str, task: int, job: str) -> Gone:
        return Gone("cancelled")

    def cancel(self, run: Run, places: Sequence[Place] | None = None) -> None:
        raise AssertionError("nothing is to be cancelled")

    def to_end(self, run: Run) -> str:
        return f"scancel --name regress-{run.name}"

    def attach(self, kind: Kind, text: str, name: str) -> Attached:
        raise NotImplementedError


@pytest.fixture
def instantly(project: Callable[..., Project], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """`sweep ALL --on h100` of ten commits, the later half slower, with the tasks done at once. Nothing is left for a second
    sweep."""
    p = project(cluster={"engine": "local", "kinds": {"h100": KIND}})
    shas = [p.commit({"NEWS": str(at)}, f"commit {at}") for at in range(10)]
    times = {sha: 1e-3 * (1 + 1e-4 * (at % 3)) * (1.0 if at < 5 else 1.2) for at, sha in enumerate(shas)}
    plans: list[Plan] = []

    def planned(on: On, asked: Asked, key: str, watcher: Watcher) -> tuple[Plan, Chosen]:
        tasks = () if plans else (Task(0, tuple(shas), shas[-1]),)
        plans.append(
            Plan(key, "regress sweep ALL --on h100", "", "asv.conf.json", {"h100": tasks}, names=(benchmark().name,))
        )
        return plans[-1], choose(on.session, asked, ())

    def sweep(how: str = "") -> Result:
        monkeypatch.setattr("regress.commands.sweep.planning.engine_of", lambda _: Instant(times, how))
        return inside(p, "sweep", "ALL", "--on", "h100", "--format", "json")

    monkeypatch.setattr("regress.commands.sweep.cluster.plan_of", planned)
    monkeypatch.setattr("regress.commands.sweep.cluster.publish", lambda *_: None)
    monkeypatch.setattr("regress.commands.sweep.following.POLL_S", (0.0, 0.0))
    return sweep


def fresh(result: Result) -> list[bool]:
    """Of each change whether it is new."""
    return [change["new"] for change in document(result)["changes"]]


@pytest.mark.parametrize(
    ("how", "code", "said"),
    [
        ("refuses", 5, "Slurm takes no job of kind h100"),
        ("cancels", 130, "1 task was cancelled; the same command submits them again"),
        ("fails", 1, "was left out: it does not build: exit code 2    # log: "),
    ],
)
def test_exit_codes_say_what_became_of_the_tasks(
    instantly: Callable[..., Result], how: str, code: int, said: str
) -> None:
    result = instantly(how)
    assert (result.code, said in result.out + result.err) == (code, True), result.out + result.err
    assert how != "fails" or document(result)["exit_codes"] == [1, 3]
    if how != "fails":
        again = instantly()
        assert (again.code, fresh(again)) == (1, [True]), "nothing was lost"


def test_what_a_killed_driver_has_not_reported_the_next_one_does_and_only_that(
    instantly: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr("regress.commands.sweep.cluster._report", lambda *_: 1 / 0)
        assert instantly().code == 5
    assert fresh(instantly()) == [True]
    assert fresh(instantly()) == [False]
    assert document(instantly())["remark"].startswith("nothing to measure: all is measured on h100; 1 regression open")


def test_what_a_driver_reports_at_ctrl_c_is_not_new_to_the_next_one(
    instantly: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = iter(["submitted"])

    def interrupt(*_: object) -> None:
        if next(looks, "merged") == "merged":
            raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("regress.commands.sweep.following.RunNotes.tell", interrupt)
        first = instantly()
    assert (first.code, fresh(first)) == (130, [True])
    assert fresh(instantly()) == [False]


def test_of_two_drivers_that_come_at_once_one_plans(
    project: Callable[..., Project], monkeypatch: pytest.MonkeyPatch
) -> None:
    p, (sha,) = local(project, [50e-6])
    on, asked, watchers = on_kinds(Request(p.root), "h100"), Asked(("ALL",)), (Told(), Told())
    runs, planned = list[Run | None](), list[str]()

    def take_up(watcher: Told) -> None:
        runs.append(_taken_up(on, asked, "key", watcher)[0])

    second = threading.Thread(target=take_up, args=(watchers[1],))

    def plan(on: On, asked: Asked, key: str, watcher: Watcher) -> tuple[Plan, Chosen]:
        planned.append(key)
        second.start()
        while not watchers[1].notes:
            time.sleep(0.01)
        return Plan(key, "", sha, "asv.conf.json", {"h100": (Task(0, (sha,), sha),)}), choose(on.session, asked, ())

    monkeypatch.setattr("regress.commands.sweep.cluster.plan_of", plan)
    take_up(watchers[0])
    second.join()
    names = {run.name for run in runs if run is not None}
    assert (len(runs), len(names), planned) == (2, 1, ["key"])
    assert watchers[1].notes == ["another driver plans this sweep; waiting until it has", f"{names.pop()} is resumed"]


def one_each(lacking: Sequence[str], anchor: str, *_: object) -> list[Task]:
    others = [sha for sha in lacking if sha != anchor]
    return [Task(number, (sha, anchor), anchor) for number, sha in enumerate(others)]


def test_what_is_more_than_one_run_has_is_for_the_next(
    project: Callable[..., Project], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("regress.commands.sweep.planning.MOST_TASKS", 1)
    p, shas = local(project, [50e-6] * 4, h100=KIND)
    monkeypatch.setattr("regress.commands.sweep.planning.tasks_of", one_each)
    left, nothing = (inside(p, "sweep", "ALL", "--on", "h100", "--format", "json") for _ in range(2))
    said = [
        [warning for warning in document(result)["warnings"] if "than one run has" in warning]
        for result in (left, nothing)
    ]
    assert said == [
        ["h100: 2 more tasks than one run has; the same command submits what is left"],
        ["h100: 1 more task than one run has; the same command submits what is left"],
    ]
    assert sum(sha in rounds_of(p, "h100") for sha in shas) == 3, "two commits and the anchor"
