"""The engine of one host: processes in the place of jobs."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from regress.cluster.local import Local
from regress.cluster.plan import Plan, Task
from regress.cluster.runs import Run, create
from regress.history.kept import write
from regress.model import Cluster, Kind
from tests.conftest import LIMIT_S

HOLDS = Kind("h100", at_most=1, setup=('echo "$REGRESS_JOB $REGRESS_SLOT $PWD"', "yes | head -1", "exec sleep 600"))
"""Its task says where it runs, and then does nothing."""


def test_a_task_outlives_its_driver_and_the_next_one_ends_it(tmp_path: Path) -> None:
    run = create(tmp_path, Plan("key", "", "", "asv.conf.json", {"h100": (Task(0, ("a",)), Task(1, ("b",)))}))
    first = Local(Cluster("local", kinds={"h100": HOLDS}))
    job = first.submit(run, HOLDS, [0, 1])
    assert {place: it.state for place, it in (first.queued(run) or {}).items()} == {
        ("h100", 0): "running",
        ("h100", 1): "waiting",
    }
    del first
    gc.collect()  # an object that warns of a process it leaves behind fails the test

    second = Local(Cluster("local", kinds={"h100": HOLDS}))
    try:
        assert (second.queued(run) or {}).keys() == {("h100", 0)}, "what waits is lost with its driver"
        _until(lambda: _said(run).count("\n") == 2)
        assert _said(run) == f"{job} 0 {run.folder}\ny\n", (
            "no complaint of `yes`: it ends by the signal that Python ignores"
        )
    finally:
        second.cancel(run)
    _until(lambda: not second.queued(run))
    assert second.gone(run, "h100", 0, job).how == "failed"
    assert second.gone(run, "h100", 1, job).how == "unknown"


def test_a_run_is_there_once_all_is_that_belongs_to_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without what people knew before it all of the history would be new."""
    names: list[str] = []

    def written(path: Path, value: object) -> None:
        names.append(path.name)
        write(path, value)

    monkeypatch.setattr("regress.cluster.runs.write", written)
    create(tmp_path, Plan("key", "", "", "asv.conf.json", {"h100": ()}), {"told.json": {}})
    assert names == ["told.json", "plan.json"]


def _said(run: Run) -> str:
    log = run.log("h100", 0)
    return log.read_text() if log.exists() else ""


def _until(holds: Callable[[], bool], limit_s: float = LIMIT_S) -> None:
    end = time.monotonic() + limit_s
    while not holds():
        assert time.monotonic() < end, "it never came"
        time.sleep(0.01)
