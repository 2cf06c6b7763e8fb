"""`regress sweep` of a case that runs in two processes: commits in turn beside an anchor. Real processes, scripted devices."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path

import pytest

from regress.history import Store
from tests.commands.test_check import document
from tests.conftest import Project, inside

pytestmark = pytest.mark.usefixtures("dated")

SUITE = """
import os, proj

class Reduce:
    ranks = 2

    def cudatime_it(self):
        proj.work(int(os.environ["RANK"]))
"""
CODE = """
import regress_scripted as device

def work(rank):
    device.kernel("k", {seconds} * (1 + 0.1 * rank))
    device.kernel("ncclDevKernel_AllReduce", 20e-6)
"""
CLUSTER = {"engine": "local", "kinds": {"h100": {"at_most": 1, "gres": "gpu:h100:2", "time": "10m"}}}


@pytest.mark.parametrize(
    "where", [("--gpus", "0,1"), pytest.param(("--on", "h100"), marks=pytest.mark.slow)], ids=lambda where: where[0]
)
def test_the_commit_that_made_two_ranks_slower_is_found_beside_an_anchor(
    project: Callable[..., Project], tmp_path: Path, where: tuple[str, str]
) -> None:
    p = project(cluster=CLUSTER, cache_dir=str(tmp_path / "cache"))
    shas = [
        p.commit({"benchmarks/b.py": SUITE, "proj/__init__.py": CODE.format(seconds=seconds), "NEWS": str(at)})
        for at, seconds in enumerate([50e-6] * 3 + [60e-6] * 3)
    ]
    result = inside(p, "sweep", "ALL", *where, "--format", "json")
    found = [change for change in document(result)["changes"] if change["metric"] == "gpu_time"]
    assert [(change["first"], change["good"], change["state"]) for change in found] == [(shas[3], shas[2], "confirmed")]
    assert found[0]["ratio"] == pytest.approx(86 / 75, rel=0.02), "the slower rank and the collective"
    assert result.code == 1
    by_run = defaultdict[str, Counter[str]](Counter)
    for sha in shas:
        (recorded,) = Store(p.root / "history").load(sha).recorded
        for round in recorded.rounds:
            assert (round.failure, round.facts["ranks"], len(round.facts["own_s"])) == (None, 2, 2)
            by_run[round.run][sha] += 1
    assert all(len(own) > 1 and own[shas[-1]] > 0 for own in by_run.values()), "the anchor is in each"
    assert set().union(*by_run.values()) == set(shas)
