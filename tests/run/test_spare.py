"""Cases of several GPUs beside those of one: who measures at the same time, who waits, and who goes first."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from regress.model import Case, Round
from regress.run import homes, lanes
from regress.run.gpus import Gpu
from regress.run.lanes import at_once
from tests.conftest import LIMIT_S
from tests.run.test_execute import Bench, failures, good
from tests.run.test_lanes import SUITE, WORK, overlap

FOUR = tuple(map(Gpu, ("scripted", "scripted-1", "scripted-2", "scripted-3")))
ONE, TWO, THREE, LAST = ((gpu,) for gpu in FOUR)


class Lane(lanes.Lane):
    """A lane of these GPUs that has no processes."""

    def __init__(self, gpus: tuple[Gpu, ...]) -> None:
        interrupt = SimpleNamespace(set=lambda: self.interrupted.append(True))
        processes: Any = SimpleNamespace(starter=SimpleNamespace(visible="", interrupt=interrupt))
        super().__init__(SimpleNamespace(processes=processes), (), gpus)  # type: ignore[arg-type]
        self.interrupted: list[bool] = []


def share(one: lanes.Lane, other: lanes.Lane) -> bool:
    return homes.apart(one.gpus, other.gpus)


# -- the order, with threads alone ---------------------------------------------------------------------------------------


def test_lanes_of_other_gpus_work_meanwhile_and_those_of_the_same_wait() -> None:
    pair, first, third = Lane(FOUR[:2]), Lane(ONE), Lane(THREE)
    done: list[Lane] = []
    met = threading.Barrier(2)

    def work(lane: Any) -> None:
        if lane is not first:
            met.wait(LIMIT_S)  # each of them until the other one has begun
        assert lane is not first or pair in done
        done.append(lane)

    at_once([pair, first, third], work, share)
    assert set(done) == {pair, first, third}


def test_lanes_of_several_gpus_take_turns_and_no_lane_waits_that_need_not() -> None:
    """The second pair waits for the first one, because of the links, and those of its GPUs do not wait with it."""
    pair, other, third, last = (Lane(gpus) for gpus in (FOUR[:2], FOUR[2:], THREE, LAST))
    done: list[Lane] = []
    met = threading.Barrier(3)

    def work(lane: Any) -> None:
        if lane is not other:
            met.wait(LIMIT_S)
        assert lane is not other or set(done) == {pair, third, last}
        done.append(lane)

    at_once([pair, other, third, last], work, share)
    assert done[-1] is other


def test_a_lane_of_all_gpus_goes_first_and_all_wait_for_it() -> None:
    every, *single = (Lane(gpus) for gpus in (FOUR, ONE, TWO, THREE, LAST))
    done: list[Any] = []
    at_once([every, *single], done.append, share)
    assert done[0] is every
    assert set(done[1:]) == set(single)


def test_where_one_fails_those_that_wait_never_begin() -> None:
    pair, first, third = Lane(FOUR[:2]), Lane(ONE), Lane(THREE)
    begun: list[Any] = []

    def work(lane: Any) -> None:
        begun.append(lane)
        if lane is pair:
            raise OSError("gone")

    with pytest.raises(OSError, match="gone"):
        at_once([pair, first, third], work, share)
    assert first not in begun
    assert [lane.interrupted for lane in (pair, first, third)] == [[True]] * 3


def test_what_a_lane_raises_is_raised_however_late_it_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a loaded machine a second lane may end while the first one is joined."""
    join: Callable[..., None] = threading.Thread.join

    def late(thread: threading.Thread, timeout: float | None = None) -> None:
        for other in threading.enumerate():
            if other.name.startswith("lane"):
                join(other)
        join(thread)

    monkeypatch.setattr(threading.Thread, "join", late)
    good_one, bad = Lane(ONE), Lane(TWO)
    ended = threading.Event()

    def work(lane: Any) -> None:
        if lane is bad:
            ended.wait(LIMIT_S)
            raise OSError("gone")
        ended.set()

    with pytest.raises(OSError, match="gone"):
        at_once([good_one, bad], work)


# -- whole, with real processes ------------------------------------------------------------------------------------------

RANKS = """
import pathlib, time

def meet(ours, theirs):
    (pathlib.Path({root!r}) / ours).touch()
    while not (pathlib.Path({root!r}) / theirs).exists():
        time.sleep(0.01)

def cudatime_pair(): device.kernel("ncclDevKernel_AllReduce", 50e-6)
def cudatime_all(): device.kernel("ncclDevKernel_AllReduce", 50e-6)
cudatime_pair.ranks, cudatime_all.ranks = 2, 4
cudatime_pair.setup = lambda: os.environ["RANK"] == "0" and meet("pair", "single")
{spare}.setup = lambda: meet("single", "pair")
{spare}.timeout = cudatime_pair.timeout = 120
"""
"""The pair and the spare one wait until the other one has come."""


def test_single_cases_are_measured_beside_a_case_of_ranks_on_the_gpus_that_it_leaves(tmp_path: Path) -> None:
    pair = homes.home(Case("b.cudatime_pair"), "b.cudatime_pair", homes.blocks(FOUR, 2))
    names = [f"cudatime_{letter}" for letter in "abcdefgh"]
    of = {name: homes.home(Case(f"b.{name}"), f"b.{name}", homes.blocks(FOUR, 1))[0] for name in names}
    spare = next(name for name in names if of[name] not in pair)
    same = next(name for name in names if of[name] in pair)
    singles = "".join(WORK.format(name) for name in (spare, same))
    bench = Bench(tmp_path)
    bench.write(SUITE + singles + RANKS.format(root=str(tmp_path), spare=spare))
    measured = bench.run(rounds=2, gpus=FOUR)
    assert failures(measured) == {}
    assert good(measured) == {f"b.{name}": 2 for name in (spare, same, "cudatime_pair", "cudatime_all")}
    cards = {name: {facts["gpu_uuid"] for round, facts in bench.kept if round.name == name} for name in good(measured)}
    assert cards == {
        f"b.{spare}": {of[spare].uuid},
        f"b.{same}": {of[same].uuid},
        "b.cudatime_pair": {pair[0].uuid},
        "b.cudatime_all": {FOUR[0].uuid},
    }
    rounds = {name: [round for round in measured.rounds if round.name == name] for name in good(measured)}
    ends = max(map(end, rounds["b.cudatime_all"]))
    assert all(round.started_at >= ends for name, own in rounds.items() if "all" not in name for round in own)
    assert not any(overlap(one, other) for one in rounds[f"b.{same}"] for other in rounds["b.cudatime_pair"])
    beside = {name: {round.facts.get("beside", 1) for round in own} for name, own in rounds.items()}
    assert beside == {"b.cudatime_all": {1}, "b.cudatime_pair": {3}, f"b.{spare}": {3}, f"b.{same}": {2}}


def end(round: Round) -> float:
    return round.started_at + round.duration_s
