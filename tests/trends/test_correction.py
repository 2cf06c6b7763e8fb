"""Histories of what the host's clock reads: the machine is another one each night, and ratios of windows in turn tell."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from regress.history import Recorded
from regress.model import Against, Round, Series
from regress.trends import series_of
from regress.trends.changes import changes_of
from tests.compare.rounds import SETTINGS, benchmark, rounds

from .test_series import recorded

PAIRS, PAIR_SD, MOOD_SD = 4, 0.01, 0.15


def sha(place: int) -> str:
    return f"{place:040x}"


def of_commit(read: float, ratios: Mapping[int, float], chance: random.Random, **more: Any) -> list[Round]:
    """Rounds that read so many seconds, and whose pairs with the commits at these places scatter around those ratios."""
    taken = rounds(metric="wall_time", wall_time=[read * chance.lognormvariate(0, 0.02) for _ in range(PAIRS)], **more)
    return [
        replace(
            round,
            against=[
                Against("wall_time", f"s{other}", sha(other), math.log(ratio) + chance.gauss(0, PAIR_SD), 0.003, 60)
                for other, ratio in ratios.items()
            ],
        )
        for round in taken
    ]


def nights(levels: Sequence[float], seed: int = 1, anchors: Sequence[int] = (0, -1)) -> Series:
    """A commit a night, each against the first one and the one before it; every night the machine is in another mood."""
    chance = random.Random(seed)
    commits = []
    for at, level in enumerate(levels):
        others = sorted({at - 1 if anchor < 0 else anchor for anchor in anchors if anchor < at and at})
        ratios = {other: level / levels[other] for other in others}
        read = 100e-6 * level * chance.lognormvariate(0, MOOD_SD)
        commits.append(recorded(of_commit(read, ratios, chance), defined=benchmark(metric="wall_time")))
    return one(commits)


def one(commits: Sequence[Recorded]) -> Series:
    (series,) = series_of([(sha(at), [commit]) for at, commit in enumerate(commits)], SETTINGS)
    return series


def steps(series: Series) -> list[tuple[int, float]]:
    return [(int(point.first, 16), point.ratio or 0.0) for point in changes_of(series, SETTINGS)]


YEAR = [1.0] * 100 + [1.05] * 80 + [1.08] * 80 + [1.037] * 100
STEPS = [(100, 1.05), (180, 1.03), (260, 0.96)]


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_year_of_moods_hides_no_step_and_makes_none(seed: int) -> None:
    series = nights(YEAR, seed)
    changes = steps(series)
    assert [at for at, _ in changes] == pytest.approx([at for at, _ in STEPS], abs=1)
    assert [ratio for _, ratio in changes] == pytest.approx([ratio for _, ratio in STEPS], abs=0.01)
    read = steps(replace(series, corrected={}))
    assert [at for at, _ in read] != [at for at, _ in changes], "what was read alone does not tell"


def test_the_curve_ends_at_what_was_read_last() -> None:
    series = nights([1.0, 1.0, 2.0, 2.0])
    assert series.curve[-1] == series.values[-1]
    assert series.curve[0] == pytest.approx((series.values[-1] or 0) / 2, rel=0.03)
    assert series.values[0] != pytest.approx(series.curve[0], rel=0.01)


def test_commits_that_nothing_links_are_as_they_were_read() -> None:
    chance = random.Random(1)
    alone = recorded(of_commit(100e-6, {}, chance), defined=benchmark(metric="wall_time"))
    pair = recorded(of_commit(200e-6, {0: 1.5}, chance), defined=benchmark(metric="wall_time"))
    series = one([alone, alone, pair])
    assert set(series.corrected) == {0, 2}
    assert series.curve[1] == series.values[1]
    assert one([alone, alone]).corrected == {}


def test_what_was_measured_in_another_way_is_not_linked() -> None:
    chance = random.Random(1)
    old = recorded(of_commit(100e-6, {}, chance), defined=benchmark(metric="wall_time"))
    new = recorded(of_commit(200e-6, {0: 1.0}, chance), defined=benchmark(metric="wall_time", version="2"))
    assert one([old, new]).corrected == {}


@pytest.mark.parametrize(
    "odd",
    [{"log_ratio": math.nan}, {"log_ratio": 1e300}, {"error": -1.0}, {"error": math.inf}, {"commit": "f" * 40}],
)
def test_a_ratio_that_cannot_be_one_is_none(odd: dict[str, Any]) -> None:
    chance = random.Random(1)
    base = of_commit(100e-6, {}, chance)
    head = [replace(round, against=[replace(round.against[0], **odd)]) for round in of_commit(100e-6, {0: 1.0}, chance)]
    series = one([recorded(side, defined=benchmark(metric="wall_time")) for side in (base, head)])
    assert series.corrected == {}
    assert series.curve == series.values


def test_other_metrics_of_the_case_are_as_they_were() -> None:
    """Device time has no part in the moods of the host."""
    chance = random.Random(1)
    base, head = (recorded(of_commit(100e-6, ratios, chance, gpu_time=[5e-6] * PAIRS)) for ratios in ({}, {0: 1.5}))
    one_series = {series.metric.name: series for series in series_of([(sha(0), [base]), (sha(1), [head])], SETTINGS)}
    assert (one_series["gpu_time"].corrected, set(one_series["wall_time"].corrected)) == ({}, {0, 1})
