"""What a check claims of two sides, the history claims of the same rounds in a row of commits, and nothing else."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from regress.model import Benchmark, ChangePoint, Comparison, Round, Verdict
from regress.trends import changes_of, series_of
from tests.trends.test_series import history, recorded

from .rounds import SETTINGS, benchmark, one, rounds, tracked

COMMITS = 10
TRACKED = replace(benchmark("f.track_x", metric="value"), unit="s", needs_device=False)
CLAIMS = (Verdict.REGRESSED, Verdict.IMPROVED)


def noisy(center: float, seed: int, count: int = 2) -> list[float]:
    draw = random.Random(f"{center} {seed}")
    return [center * math.exp(0.002 * draw.gauss(0, 1)) for _ in range(count)]


def under(side: Sequence[Round], **facts: Any) -> list[Round]:
    return [replace(round, facts={**round.facts, **facts}) for round in side]


def both(
    before: Sequence[Sequence[Round]], after: Sequence[Sequence[Round]], defined: Benchmark
) -> tuple[Comparison, list[ChangePoint]]:
    """The comparison of all rounds before with all after, and the changes of the history that they are."""
    base, head = (
        [replace(round, order=at) for at, round in enumerate(one for commit in commits for one in commit)]
        for commits in (before, after)
    )
    (series,) = series_of(history(*(recorded_as(commit, defined) for commit in (*before, *after))), SETTINGS)
    return one(base, head, defined), [*changes_of(series, SETTINGS)]


def recorded_as(commit: Sequence[Round], defined: Benchmark) -> Any:
    every = recorded(list(commit), defined=defined)
    facts = [{**kept.facts, **own.facts} for kept, own in zip(every.rounds, commit, strict=True)]
    return replace(
        every, rounds=tuple(replace(round, facts=own) for round, own in zip(every.rounds, facts, strict=True))
    )


@pytest.mark.parametrize("up", [True, False], ids=["slower", "faster"])
@pytest.mark.parametrize(
    ("facts", "claimed", "word"),
    [
        ({}, True, ""),
        ({"throttled": ["hw_thermal"]}, False, "throttled (hw_thermal)"),
        ({"sm_clock_hz": 1755e6}, False, "SM clock 1980 MHz"),
        (
            {"foreign_processes": ["pid 812 (python), 4.1 GiB"]},
            False,
            "another process computed on the device: pid 812",
        ),
        ({"power_capped": True}, True, ""),
    ],
)
def test_circumstances_forbid_a_claim_here_and_there(facts: dict[str, Any], claimed: bool, word: str, up: bool) -> None:
    quick, slow = (
        [under(rounds(gpu_time=noisy(center, at)), sm_clock_hz=1980e6) for at in range(COMMITS)]
        for center in (1e-3, 1.15e-3)
    )
    changed = [under(commit, **facts) for commit in (slow if up else quick)]
    comparison, (point,) = both(quick if up else slow, changed, benchmark())
    assert (comparison.verdict in CLAIMS, point.large) == (claimed, claimed)
    assert any(word in reason for reason in comparison.reasons) is bool(word)
    assert any(word in reason for reason in point.reasons) is bool(word), "what is not claimed says why"


def test_one_commit_that_was_throttled_among_many_speaks_against_nothing() -> None:
    quick, slow = ([rounds(gpu_time=noisy(center, at)) for at in range(COMMITS)] for center in (1e-3, 1.15e-3))
    slow[3] = under(slow[3], throttled=["hw_thermal"])
    comparison, (point,) = both(quick, slow, benchmark())
    assert (comparison.verdict, point.moved, point.large) == (Verdict.REGRESSED, Verdict.REGRESSED, True)


@pytest.mark.parametrize(
    ("before", "after", "verdict"),
    [
        (0.0, 3.0, Verdict.REGRESSED),
        (3.0, 0.0, Verdict.IMPROVED),
        (0.0, 0.0, None),
    ],
)
def test_from_and_to_zero(before: float, after: float, verdict: Verdict | None) -> None:
    base, head = ([tracked(noisy(center, at), unit="s") for at in range(COMMITS)] for center in (before, after))
    comparison, points = both(base, head, TRACKED)
    large = [point for point in points if point.large]
    assert (comparison.verdict if comparison.verdict in CLAIMS else None) is verdict
    assert [point.moved for point in large] == ([verdict] if verdict else [])
    for point in large:
        assert (int(point.first, 16), point.before == 0, point.after == 0, point.ratio) == (
            COMMITS,
            before == 0,
            after == 0,
            None,
        )


def test_a_zero_now_and_then_is_no_change() -> None:
    values = [0.0 if at % 3 == 0 else noisy(3.0, at)[0] for at in range(2 * COMMITS)]
    sides = [tracked([value], unit="s") for value in values]
    comparison, points = both(sides[:COMMITS], sides[COMMITS:], TRACKED)
    assert (comparison.verdict, points) == (Verdict.UNDECIDED, [])


def test_the_newest_results_alone_make_a_tentative_one() -> None:
    sides = [tracked(noisy(0.0 if at < 9 else 3.0, at), unit="s") for at in range(COMMITS)]
    (series,) = series_of(history(*(recorded_as(side, TRACKED) for side in sides)), SETTINGS)
    (point,) = changes_of(series, SETTINGS)
    assert (point.state, point.large) == ("tentative", True)
