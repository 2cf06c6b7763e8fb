"""Sweeps on a Slurm where anything happens at any moment: the history is in the end as if nothing had."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from regress.cluster.runs import Run
from tests.cluster.site import Site
from tests.cluster.test_slurm import CARD
from tests.commands.test_check import document
from tests.commands.test_cluster import CODE, SUITE, once, rounds_of
from tests.conftest import Project, Result, regress, start

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("dated")]

LEVELS = [50e-6] * 6 + [56e-6] * 6 + [50e-6] * 6 + [62e-6] * 6
PLANTED = {6: "regressed", 12: "improved", 18: "regressed"}
NODES = ("a1", "h1", "h2")


@pytest.fixture
def history(
    project: Callable[..., Project], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[Project, list[str]]:
    """24 commits with three events, for two kinds of two unlike cards each."""
    monkeypatch.setenv("REGRESS_CACHE_DIR", str(tmp_path / "cache"))
    kind = {"time": "10m", "at_most": 2, "setup": [CARD]}
    kinds = {name: {"partition": name, "gres": f"gpu:{name}:1", **kind} for name in ("h100", "a100")}
    places = {"shared": str(tmp_path / "shared"), "scratch": f"{tmp_path}/disk-$SLURMD_NODENAME"}
    p = project(cluster={**places, "kinds": kinds})
    shas = []
    for at, seconds in enumerate(LEVELS):
        files = {"proj/__init__.py": CODE.format(seconds=seconds), "NEWS": str(at)}
        shas.append(p.commit({**files, **({} if at else {"benchmarks/b.py": SUITE})}, f"commit {at}"))
    return p, shas


def nothing(site: Site, dice: random.Random) -> None:
    pass


def power_cut(site: Site, dice: random.Random) -> None:
    node = dice.choice(NODES)
    site.down(node)
    time.sleep(dice.uniform(0.0, 2.0))
    site.up(node)


def cancelled(site: Site, dice: random.Random) -> None:
    tasks = site.run("squeue", "--noheader", "--array", "--format=%i").split()
    if tasks:
        site.run("scancel", dice.choice(tasks))


def preempted(site: Site, dice: random.Random) -> None:
    words = ("--partition=urgent", f"--nodelist={dice.choice(NODES)}", "--exclusive", "--output=/dev/null")
    site.run("sbatch", *words, "--wrap", "sleep 2")


def killed(site: Site, dice: random.Random) -> None:
    tasks = site.run("squeue", "--noheader", "--array", "--states=R", "--format=%i").split()
    if tasks:
        site.run("scancel", "--signal=KILL", "--full", dice.choice(tasks))


@contextmanager
def impatient(site: Site) -> Iterator[None]:
    """Slurm lets a requeued job wait for two minutes; here it need not."""
    over = threading.Event()

    def hurry() -> None:
        while not over.wait(1.0):
            for job in site.run("squeue", "--noheader", "--array", "--states=PD", "--format=%i|%r").split():
                name, _, why = job.partition("|")
                if why == "BeginTime":
                    site.run("scontrol", "update", f"jobid={name}", "starttime=now")

    thread = threading.Thread(target=hurry)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def swept(p: Project) -> Result:
    return regress(p.root, "sweep", "ALL", "--on", "all", "--format", "json", timeout_s=600)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", range(20))
def test_every_event_is_found_once_whatever_happens(site: Site, history: tuple[Project, list[str]], seed: int) -> None:
    p, shas = history
    dice = random.Random(seed)
    with impatient(site):
        for happens in dice.sample([nothing, power_cut, cancelled, preempted, killed], 3):
            driver = start(p.root, "sweep", "ALL", "--on", "all", "-q")
            time.sleep(dice.uniform(2.0, 20.0))
            happens(site, dice)
            time.sleep(dice.uniform(0.0, 5.0))
            driver.kill()
            driver.communicate()
        result = swept(p)
        for _ in range(5):
            if result.code != 130:
                break
            result = swept(p)  # what was cancelled
    changes = document(result)["changes"]
    told = [(change["machine"], change["name"], shas.index(change["first"]), change["verdict"]) for change in changes]
    events = [(kind, "b.cudatime_work", at, how) for kind in ("h100", "a100") for at, how in PLANTED.items()]
    assert sorted(told) == sorted(events), result.err
    for kind in ("h100", "a100"):
        runs = [Run(folder) for folder in Path(p.root.parent / "shared" / "runs").iterdir()]
        measured = [run for run in runs if not run.plan.key.endswith("-pairs")]
        assert rounds_of(p, kind).keys() == set(shas)
        if len(measured) == 1:  # else a task was given up, and submitted by a new run
            assert rounds_of(p, kind) == once(shas, measured[0], kind)
