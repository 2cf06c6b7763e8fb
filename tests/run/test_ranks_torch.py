"""Ranks with torch.distributed: the process group of a suite, by gloo on the CPU."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from regress.run import ranks, replies
from tests.conftest import ended
from tests.run.test_execute import Bench, failures

pytest.importorskip("torch.distributed")

SUITE = """
import os, time
import torch
import torch.distributed as dist

torch.set_num_threads(1)

class Together:
    ranks = 2
    timeout = 3
    repeat = 10

    def setup(self):
        open({pids!r}, "a").write(f"{{os.getpid()}} ")
        dist.init_process_group("gloo")
        self.rank = dist.get_rank()
        self.x = torch.ones(1 << 10)

def work(seconds):
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass

class Reduces(Together):
    def time_alike(self):
        work(2e-3)
        dist.all_reduce(self.x)
    def time_late(self):
        work(2e-3 * (1 + 0.5 * self.rank))
        dist.all_reduce(self.x)
    def track_sum(self):
        x = torch.full((4,), float(1 + self.rank))
        dist.all_reduce(x)
        return float(x[0])

class Fails(Together):
    def time_other_collective(self):
        dist.all_reduce(self.x) if self.rank else dist.barrier()
        time.sleep(600)
    def time_dies(self):
        if self.rank: os._exit(3)
        dist.all_reduce(self.x)
    def time_deadlock(self):
        if self.rank: dist.recv(self.x, 0)
        else: dist.recv(self.x, 1)
"""


def test_a_process_group_of_two(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One run for all: the import of torch is what takes the time."""
    monkeypatch.setattr(replies, "GRACE_S", 2.0)
    monkeypatch.setattr(ranks, "SETTLE_S", 2.0)
    pids, bench = tmp_path / "pids", Bench(tmp_path)
    bench.write(SUITE.format(pids=str(pids)))
    measured = bench.run(rounds=1, settings={"device": "cpu"})
    rounds = {round.name.removeprefix("b."): round for round, _ in bench.kept if round.failure is None}
    assert set(rounds) == {"Reduces.time_alike", "Reduces.time_late", "Reduces.track_sum"}, failures(measured)
    assert rounds["Reduces.track_sum"].values["value"].value == 3.0
    alike, late = (rounds[f"Reduces.time_{name}"] for name in ("alike", "late"))
    assert alike.values["wall_time"].value >= 2e-3
    assert late.values["wall_time"].value >= 3e-3, "the slowest"
    own = late.facts["own_s"]
    assert own[1] - own[0] > 0.5e-3, "the other one waited for it"
    told = {name.removeprefix("b.Fails.time_"): failure.message for name, failure in failures(measured).items()}
    assert re.match(r"rank 1 ended without a result \(exit code 3\); rank 0", told["dies"])
    assert re.match(
        r"took longer than 3 s: rank 0 is in recv \(b.py:\d+\), rank 1 is in recv \(b.py:\d+\)", told["deadlock"]
    )
    assert re.match(r"took longer than 3 s: rank 0 .*, rank 1 |rank \d: RuntimeError", told["other_collective"])
    assert all(ended(int(pid)) for pid in pids.read_text().split())
