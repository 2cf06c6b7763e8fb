"""The engine `slurm`, against a real one of three nodes."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from regress.cluster.engine import Gone, Refused
from regress.cluster.plan import Plan, Task
from regress.cluster.runs import Run, Submitted, create
from regress.cluster.slurm import Slurm
from regress.model import Cluster, Kind
from tests.cluster.site import Site, until
from tests.commands.test_check import document
from tests.commands.test_cluster import CODE, SUITE, once, rounds_of
from tests.conftest import Project, start
from tests.report.test_json import validate

CARD = """case $SLURMD_NODENAME$CUDA_VISIBLE_DEVICES in h2*|a11) card=2;; *) card=1;; esac
export CUDA_VISIBLE_DEVICES=scripted-$card"""
"""Of each kind two, one 6 % slower than the other."""
SHARED = "all nodes see 5%u"
"""Neither a shell nor Slurm takes a part of it for something else."""
H100 = Kind("h100", partition="h100", gres="gpu:h100:1", time_s=600.0, at_most=2)
PLACES = [("h100", number) for number in range(4)]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    tasks = {"h100": tuple(Task(number, ("a" * 40,)) for number in range(4))}
    return create(tmp_path, Plan("key", "", "", "asv.conf.json", tasks))


def submitted(
    engine: Slurm, run: Run, what: str, monkeypatch: pytest.MonkeyPatch, tasks: tuple[int, ...] = (0,)
) -> str:
    """A job that does something else than measure."""
    monkeypatch.setattr("regress.cluster.slurm.script", lambda *_, **__: f"#!/bin/bash\n{what}\n")
    job = engine.submit(run, H100, tasks)
    assert job is not None
    run.add(Submitted("h100", job, tasks))
    return job


def states(engine: Slurm, run: Run) -> dict[Any, str]:
    return {place: queued.state for place, queued in (engine.queued(run) or {}).items()}


def test_tasks_wait_run_and_end_as_slurm_says(site: Site, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = Slurm(Cluster())
    job = submitted(engine, run, "sleep 60", monkeypatch, tasks=(0, 1, 2, 3))
    until(lambda: sorted(states(engine, run).values()) == ["running", "running", "waiting", "waiting"], "two of four")
    queued = engine.queued(run) or {}
    assert {state.why for state in queued.values() if state.state == "waiting"} == {"JobArrayTaskLimit"}, "at_most is 2"
    assert {state.node for state in queued.values() if state.state == "running"} == {"h1", "h2"}
    running = next(place for place, state in queued.items() if state.state == "running")
    waiting = next(place for place, state in queued.items() if state.state == "waiting")
    engine.cancel(run, [waiting, running])
    until(lambda: not {waiting, running} & set(states(engine, run)), "the end of what was cancelled")
    assert engine.gone(run, *running, job) == Gone("cancelled")
    assert engine.gone(run, *waiting, job).how in ("cancelled", "unknown")
    assert engine.to_end(run) == f"scancel --name regress-{run.name}"
    engine.cancel(run)
    until(lambda: not states(engine, run), "the end of all")


def test_what_ends_badly_is_said_in_words(site: Site, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = Slurm(Cluster())
    job = submitted(engine, run, "exit 7", monkeypatch)
    until(lambda: engine.gone(run, "h100", 0, job).how == "failed", "the end")
    assert re.fullmatch(r"it ended with exit code 7 on h[12]", engine.gone(run, "h100", 0, job).why)
    assert engine.gone(run, "h100", 0, "4711") == Gone("unknown")
    job = submitted(engine, run, "true", monkeypatch)
    until(lambda: engine.gone(run, "h100", 0, job).how == "ended", "the end")


@pytest.mark.parametrize(
    "kind",
    [
        Kind("h100", partition="nowhere"),
        Kind("h100", partition="a100", gres="gpu:h100:1"),
        Kind("h100", partition="h100", gres="gpu:h100:9"),
    ],
)
def test_what_slurm_does_not_take_is_refused_in_its_own_words(site: Site, run: Run, kind: Kind) -> None:
    with pytest.raises(Refused, match="takes no job of kind h100") as raised:
        Slurm(Cluster()).submit(run, kind, [0])
    assert re.search("invalid partition|not available|gres", raised.value.why, re.IGNORECASE), raised.value.why
    assert raised.value.fix == 'correct "h100" under "cluster" in asv.conf.json'


def test_a_job_that_is_waited_for_gives_its_output_and_exit_code(site: Site, capfd: pytest.CaptureFixture[str]) -> None:
    attached = Slurm(Cluster()).attach(H100, "echo told; echo $SLURMD_NODENAME >&2; exit 4", "regress-test")
    assert attached.wait() == 4
    out, err = capfd.readouterr()
    assert out == "told\n"
    assert re.fullmatch(r"h[12]\n", err), "and nothing of srun's"


@pytest.mark.parametrize("way", ["interrupt", "cancel"])
def test_ctrl_c_reaches_the_job_and_a_second_one_ends_it(site: Site, tmp_path: Path, way: str) -> None:
    mark = tmp_path / "mark"
    text = f"trap 'exit 130' INT; touch {mark}; while :; do sleep 0.1; done"
    attached = Slurm(Cluster()).attach(H100, text, f"regress-test-{way}")
    until(mark.exists, "the job")
    getattr(attached, way)()
    code = attached.wait()
    assert way == "cancel" or code == 130
    until(lambda: not site.run("squeue", "--noheader", f"--name=regress-test-{way}"), "its end")


def says(folder: Path, monkeypatch: pytest.MonkeyPatch, command: str, text: str, code: int = 0) -> None:
    """A command of Slurm's that prints this, on the PATH before the real one."""
    folder.mkdir(exist_ok=True)
    path = folder / command
    path.write_text(f"#!/bin/sh\necho '{text}' >&{2 if code else 1}\nexit {code}\n")
    path.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")


@pytest.mark.parametrize(
    "text",
    [
        "sbatch: error: Batch job submission failed: Unable to contact slurm controller (connect failure)",
        "sbatch: error: Batch job submission failed: Socket timed out on send/recv operation",
    ],
)
def test_a_controller_that_is_down_refuses_no_job(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    says(tmp_path / "bin", monkeypatch, "sbatch", text, code=1)
    says(tmp_path / "bin", monkeypatch, "squeue", "slurm_load_jobs error: Unable to contact slurm controller", code=1)
    engine = Slurm(Cluster())
    assert engine.submit(run, H100, [0]) is None
    run.add(Submitted("h100", "7", (0,)))
    assert engine.queued(run) is None


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ("JobState=NODE_FAIL ExitCode=0:0 NodeList=node7", "node7 went down"),
        ("JobState=OUT_OF_MEMORY ExitCode=0:125 NodeList=node7", "it ran out of memory on node7"),
        ("JobState=TIMEOUT ExitCode=0:15 NodeList=node7", "its time was up"),
        ("JobState=FAILED ExitCode=0:9 NodeList=node7", "it was killed by signal 9 on node7"),
    ],
)
def test_what_killed_a_job_is_said_in_words(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, facts: str, words: str
) -> None:
    says(tmp_path / "bin", monkeypatch, "scontrol", f"JobId=7 ArrayTaskId=0 {facts}")
    assert Slurm(Cluster()).gone(run, "h100", 0, "7") == Gone("failed", words)


def test_without_slurm_the_fix_says_where_to_go(run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    from regress.errors import NothingMeasured

    with pytest.raises(NothingMeasured, match="no Slurm here"):
        Slurm(Cluster()).submit(run, H100, [0])


def on_site(project: Callable[..., Project], tmp_path: Path, times: list[float]) -> tuple[Project, list[str]]:
    """A history whose nodes have disks of their own."""
    kinds = {
        name: {
            "partition": name,
            "gres": f"gpu:{name}:1",
            "time": "10m",
            "at_most": 2,
            "setup": [CARD],
        }
        for name in ("h100", "a100")
    }
    places = {"shared": str(tmp_path / SHARED), "scratch": f"{tmp_path}/disk-$SLURMD_NODENAME"}
    p = project(cluster={**places, "kinds": kinds})
    shas = [p.commit({"proj/__init__.py": CODE.format(seconds=times[0]), "benchmarks/b.py": SUITE}, "commit 0")]
    shas += [
        p.commit({"proj/__init__.py": CODE.format(seconds=seconds), "NEWS": str(at)}, f"commit {at}")
        for at, seconds in enumerate(times[1:], 1)
    ]
    return p, shas


def test_a_job_whose_answer_was_lost_is_not_submitted_again(
    site: Site, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = Slurm(Cluster())
    assert engine.queued(run) == {}
    monkeypatch.setattr("regress.cluster.slurm.script", lambda *_, **__: "#!/bin/bash\nsleep 60\n")
    job = engine.submit(run, H100, (1, 2))
    assert job is not None
    until(lambda: states(engine, run).keys() == {("h100", 1), ("h100", 2)}, "both tasks")
    assert run.submitted == (Submitted("h100", job, (1, 2)),)
    engine.cancel(run)


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ("run -b work --rounds 2", 0, "h100"),
        pytest.param("gate HEAD~1 -b work", 1, "FAIL", marks=pytest.mark.slow),
        pytest.param("bisect b.cudatime_work HEAD~1 HEAD", 0, "commit 1", marks=pytest.mark.slow),
        pytest.param("explain b.cudatime_work HEAD~1", 0, "work", marks=pytest.mark.slow),
        pytest.param("profile b.cudatime_work", 0, "work", marks=pytest.mark.slow),
        pytest.param("run -b no_such_benchmark", 5, "", marks=pytest.mark.slow),
    ],
)
def test_a_command_is_one_job_with_its_output_and_exit_code(
    site: Site, project: Callable[..., Project], tmp_path: Path, words: str, code: int, said: str
) -> None:
    p, _ = on_site(project, tmp_path, [50e-6, 60e-6])
    result = p.regress(*words.split(), "--on", "h100")
    assert result.code == code, result.out + result.err
    assert said in result.out
    assert len(re.findall(r"^on h[12] after \d+ s$", result.err, re.MULTILINE)) == 1
    assert "srun: " not in result.err, "what the job says is all that is said"


@pytest.mark.slow  # the engine shows that the signal arrives, the engine local what a command makes of it
def test_ctrl_c_is_sent_on_and_the_job_reports_what_it_has_measured(
    site: Site, project: Callable[..., Project], tmp_path: Path
) -> None:
    p, _ = on_site(project, tmp_path, [50e-6, 60e-6])
    driver = start(p.root, "run", "--on", "h100", "--rounds", "500")
    until(lambda: list((p.root / "history").rglob("*.jsonl")) or driver.poll() is not None, "the first round")
    driver.send_signal(signal.SIGINT)
    out, err = driver.communicate(timeout=120)
    assert (driver.returncode, "INTERRUPTED" in out) == (130, True), out + err
    until(lambda: not site.run("squeue", "--noheader", "--partition=h100"), "the end of the job")


def test_a_sweep_of_two_kinds_survives_its_driver_and_a_killed_task(
    site: Site, project: Callable[..., Project], tmp_path: Path, dated: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REGRESS_CACHE_DIR", str(tmp_path / "cache"))
    p, shas = on_site(project, tmp_path, [50e-6] * 4 + [60e-6] * 5)
    driver = start(p.root, "sweep", "ALL", "--on", "all")
    until(lambda: list((tmp_path / SHARED).glob("runs/*/*/*.0/began.json")) or driver.poll(), "the first task")
    driver.kill()
    driver.communicate()
    (folder,) = (tmp_path / SHARED).glob("runs/*")
    run = Run(folder)
    kind, number = next(
        (k, int(path.parent.name[0])) for k in run.plan.tasks for path in folder.glob(f"{k}/*.0/began.json")
    )
    (job,) = [submission.job for submission in run.submitted if submission.kind == kind]
    site.run("scancel", "--signal=KILL", "--full", f"{job}_{number}")
    result = p.regress("sweep", "ALL", "--on", "all", "--format", "json")
    assert result.code == 1, result.err
    report = document(result)
    validate(report)
    assert {(change["machine"], change["first"], change["good"], change["new"]) for change in report["changes"]} == {
        (kind, shas[4], shas[3], True) for kind in ("h100", "a100")
    }
    assert {change["state"] for change in report["changes"]} == {"confirmed"}
    for kind in ("h100", "a100"):
        assert rounds_of(p, kind) == once(shas, run, kind)
    nodes = {attempt.began.node for kind in run.plan.tasks for task in run.plan.tasks[kind]
             for attempt in run.attempts(kind, task.number) if attempt.began is not None}  # fmt: skip
    assert nodes <= {"a1", "h1", "h2"}
    assert {path.name for path in tmp_path.glob("disk-*")} >= {f"disk-{node}" for node in nodes}
