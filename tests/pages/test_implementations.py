"""Which commits of which places have implementations on their page, and what is told of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from regress.history import Store
from regress.model import Benchmark, Commit, Failure, Settings, Side
from regress.pages import Sides
from regress.pages.branch import Branch
from regress.pages.implementations import MOST_TRIES, Beside
from regress.trends import past_of
from tests.history.samples import BOX, ENV, benchmark, taken

NAME = "ops.cudatime_add"
COMMITS = tuple(Commit(f"{at:040x}"[::-1], f"change {at}", "Ada", 1e9 + at) for at in range(8))
TAGS = {COMMITS[1].sha: ("v1.0",), COMMITS[3].sha: ("v1.1",), COMMITS[7].sha: ("v2.0",)}
SETTINGS = Settings()


def suite() -> Benchmark:
    defined = benchmark(NAME, [["'torch'", "'triton'"], ["256", "1024"]])
    defined.param_names[:] = ["implementation", "n"]
    defined.asv["param_names"] = ["implementation", "n"]
    return defined


def record(
    root: Path,
    at: int,
    torch: Sequence[float] = (10e-6, 20e-6),
    triton: Sequence[float] = (5e-6, 40e-6),
    environment: str = ENV,
    **facts: object,
) -> None:
    """Three rounds of each implementation at each size; without a time there is a failure."""
    store, side = Store(root), Side("head", COMMITS[at], "HEAD", environment)
    for way, times in (("'torch'", torch), ("'triton'", triton)):
        for n, seconds in zip(("256", "1024"), times, strict=False):
            failure = None if seconds else Failure("oom", "out of memory")
            for order in range(3):
                round = taken(NAME, [way, n], order, failure=failure, values={"gpu_time": seconds * (1 + order / 1000)})
                round = replace(round, facts={"gpu": "GPU-1", **facts}, values=round.values if seconds else {})
                store.append(side, BOX, environment, round, {}, suite())
    store.finish(side, BOX, environment, python="3.11", benchmarks={NAME: suite()})


def found(root: Path, cache: Path, tags: Mapping[str, tuple[str, ...]] = TAGS) -> tuple[Sides, ...]:
    branch = Branch("main", COMMITS, COMMITS, (), tags)
    series = past_of(root, cache, COMMITS, SETTINGS).series(NAME)
    return Beside(root, branch, SETTINGS).of(NAME, series)


def test_the_newest_commit_and_the_releases_before_it_are_told(tmp_path: Path) -> None:
    for at in (0, 1, 3, 5):
        record(tmp_path / "results", at, triton=(5e-6 + 2e-6 * at, 40e-6))
    sides = found(tmp_path / "results", tmp_path / "cache")
    assert [side.commit for side in sides] == [5, 3, 1]
    assert {(side.place, side.metric, side.names, side.param_names, side.size) for side in sides} == {
        (f"{BOX.name}|GPU-1|{ENV}", "gpu_time", ("torch", "triton"), ("n",), 0)
    }
    assert [side.crossovers for side in sides] == [
        (((), "torch at every n"),),
        (((), "torch at every n"),),
        (((), "triton up to 256, torch from 1024"),),
    ]
    first = sides[-1].combinations[0]
    assert (first.params, first.size, first.outcome, first.leaders) == (("256",), 256.0, "fastest", ("triton",))
    torch, triton = first.times
    assert torch is not None
    assert triton is not None
    assert (torch.params, torch.rounds) == ("'torch', 256", 3)
    assert torch.value == pytest.approx(10e-6, rel=2e-3)
    assert torch.ratio == pytest.approx(10 / 7, rel=1e-3)
    assert triton.ratio is None
    assert triton.low is not None
    assert triton.high is not None
    assert triton.value is not None
    assert triton.low < triton.value < triton.high


def test_a_commit_with_one_implementation_is_passed_over_but_not_for_ever(tmp_path: Path) -> None:
    record(tmp_path / "results", 2)
    for at in range(3, 3 + MOST_TRIES - 1):
        record(tmp_path / "results", at, triton=(0, 0))
    assert [sides.commit for sides in found(tmp_path / "results", tmp_path / "cache", {})] == [2]
    record(tmp_path / "results", 7, triton=(0, 0))
    assert found(tmp_path / "results", tmp_path / "other", {}) == ()


def test_what_failed_is_told_and_so_is_what_speaks_against_a_difference(tmp_path: Path) -> None:
    """The index of a history has no such facts: they are read from the rounds themselves."""
    record(tmp_path / "results", 5, torch=(10e-6, 0), foreign_processes=["4711, python"])
    (sides,) = found(tmp_path / "results", tmp_path / "cache")
    small, large = sides.combinations
    assert (small.outcome, small.reasons) == (
        "no difference shown",
        ("torch: another process computed on the device: 4711, python",),
    )
    assert (large.outcome, large.leaders) == ("alone", ("triton",))
    assert large.times[0] is not None
    assert (large.times[0].value, large.times[0].failure) == (None, "oom")


def test_cards_and_environments_are_places_of_their_own(tmp_path: Path) -> None:
    record(tmp_path / "results", 4)
    record(tmp_path / "results", 5, gpu="GPU-2", torch=(2e-6, 2e-6))
    record(tmp_path / "results", 5, environment="other", triton=(50e-6, 50e-6))
    told = {
        (sides.place, sides.commit): sides.crossovers[0][1] for sides in found(tmp_path / "results", tmp_path / "cache")
    }
    assert told == {
        (f"{BOX.name}|GPU-1|{ENV}", 4): "triton up to 256, torch from 1024",
        (f"{BOX.name}|GPU-2|{ENV}", 5): "torch at every n",
        (f"{BOX.name}|GPU-1|other", 5): "torch at every n",
    }


def test_other_releases_are_another_stamp(tmp_path: Path) -> None:
    stamps = {Beside(tmp_path, Branch("main", COMMITS, COMMITS, (), tags), SETTINGS).stamp for tags in ({}, TAGS)}
    assert len(stamps) == 2
