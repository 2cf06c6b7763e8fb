from __future__ import annotations

import math
import random
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

import hypothesis
import pytest
from hypothesis import strategies as st

from regress.model import Case, ChangePoint, Metric, Series, Settings, Verdict, metric_of
from regress.stats.summary import median
from regress.trends import changes_of

SETTINGS = Settings()
HERE = (("version", "1"),)


def series(*parts: tuple[int, float | None], noise: float = 0.004, rounds: int = 2, **changes: Any) -> Series:
    """A series whose level is given in parts; a level of None is that many commits without a result."""
    draw = random.Random(7)
    levels = [level for n, level in parts for _ in range(n)]
    values = {
        at: tuple(level * math.exp(noise * draw.gauss(0, 1)) for _ in range(rounds))
        for at, level in enumerate(levels)
        if level is not None
    }
    columns: dict[str, Any] = {"at": tuple(values), "rounds": tuple(values.values()), "ways": (HERE,) * len(values)}
    columns.update(intervals=(None,) * len(values), failures=("",) * len(values))
    commits = tuple(f"{place:040x}" for place in range(len(levels)))
    about = {"case": Case("ops.cudatime_add", ("1024",)), "metric": metric_of("gpu_time")}
    return Series(
        **{**about, "machine": "box", "device": "GPU-1", "environment": "py", "commits": commits, **columns, **changes}
    )


def found(one_series: Series, **settings: Any) -> tuple[ChangePoint, ...]:
    return changes_of(one_series, replace(SETTINGS, **settings))


def test_a_change_names_its_commit_its_size_and_its_direction() -> None:
    (change,) = found(series((30, 1e-3), (20, 1.1e-3)))
    assert int(change.first, 16) == 30
    assert change.blamed == (change.first,)
    assert int(change.good, 16) == 29
    assert (change.moved, change.large, change.state, change.threshold) == (Verdict.REGRESSED, True, "confirmed", 0.05)
    assert change.ratio == pytest.approx(1.1, rel=0.005)
    assert change.low is not None
    assert change.high is not None
    assert change.low < 1.1 < change.high
    assert change.before == pytest.approx(1e-3, rel=0.005)
    assert change.after == pytest.approx(1.1e-3, rel=0.005)


def test_commits_without_results_in_between_are_blamed_too() -> None:
    (change,) = found(series((20, 1e-3), (4, None), (20, 1.2e-3)))
    assert [int(sha, 16) for sha in change.blamed] == [20, 21, 22, 23, 24]
    assert int(change.first, 16) == 24
    assert int(change.good, 16) == 19


def test_what_lies_beside_the_line_is_followed_by_none_and_follows_none() -> None:
    """The line became slower, and a branch from before that was merged: one change, and the merge is none."""
    beside = frozenset(range(25, 31))
    merged = series((20, 1e-3), (5, 1.3e-3), (6, 1e-3), (20, 1.3e-3), beside=beside)
    (change,) = found(merged)
    assert [int(sha, 16) for sha in (change.good, *change.blamed)] == [19, 20]
    assert len(found(replace(merged, beside=frozenset()))) > 1
    (brought,) = found(series((25, 1e-3), (6, 1.3e-3), (20, 1.3e-3), beside=beside))
    assert [int(sha, 16) for sha in brought.blamed] == [*range(25, 32)], "the merge and what it brought"
    assert int(brought.good, 16) == 24
    assert merged.by_way[HERE] == [*range(25), *range(31, 51)]
    assert replace(merged, beside=frozenset(range(51))).by_way[HERE] == [*range(51)], "better than none"


def test_where_the_place_is_not_sure_its_neighbours_are_blamed_too() -> None:
    (change,) = found(series((40, 1e-3), (40, 1.05e-3), noise=0.03))
    assert len(change.blamed) > 1
    assert f"{40:040x}" in change.blamed
    assert change.first in change.blamed


@pytest.mark.parametrize(
    ("metric", "up"),
    [
        (metric_of("gpu_time"), Verdict.REGRESSED),
        (metric_of("value", "GB/s"), Verdict.IMPROVED),
        (metric_of("value", "score"), Verdict.CHANGED),
    ],
)
def test_the_better_direction_gives_the_word(metric: Metric, up: Verdict) -> None:
    (change,) = found(series((20, 1.0), (20, 1.2), metric=metric))
    assert change.moved is up


def test_below_the_threshold_it_is_listed_and_not_large() -> None:
    (change,) = found(series((30, 1e-3), (30, 1.03e-3)))
    assert (change.moved, change.large) == (Verdict.REGRESSED, False)
    assert found(series((30, 1e-3), (30, 1.03e-3)), change_threshold=0.04) == ()


def test_below_the_floor_it_is_not_large() -> None:
    (change,) = found(series((30, 1e-6), (30, 1.15e-6)))  # 0.15 us
    assert not change.large


def test_one_or_two_last_results_are_tentative() -> None:
    for last, state in ((1, "tentative"), (2, "tentative"), (3, "confirmed")):
        (change,) = found(series((30, 1e-3), (last, 1.2e-3)))
        assert (int(change.first, 16), change.state) == (30, state)


def test_down_and_up_again_is_two_events_and_the_second_recovers() -> None:
    slower, back = found(series((20, 1e-3), (10, 1.2e-3), (20, 1.01e-3)))
    assert (slower.moved, slower.state, slower.recovered_by) == (Verdict.REGRESSED, "confirmed", back.first)
    assert (back.moved, back.state, back.recovered_by) == (Verdict.IMPROVED, "recovered", "")


def test_a_rise_in_two_steps_is_recovered_at_once() -> None:
    one, two, back = found(series((20, 1e-3), (20, 1.2e-3), (20, 1.4e-3), (20, 1e-3)))
    assert [one.recovered_by, two.recovered_by, back.state] == [back.first, back.first, "recovered"]


@pytest.mark.parametrize("last", [1.12e-3, 1.19e-3])
def test_what_is_taken_back_in_part_is_not_recovered(last: float) -> None:
    slower, *others = found(series((20, 1e-3), (20, 1.25e-3), (20, last)))
    assert slower.recovered_by == ""
    assert [point.state for point in others] == ["confirmed"]


def test_up_and_down_again_recovers_nothing() -> None:
    faster, slower = found(series((20, 1e-3), (20, 0.8e-3), (20, 1e-3)))
    assert [faster.moved, slower.moved] == [Verdict.IMPROVED, Verdict.REGRESSED]
    assert [faster.state, slower.state] == ["confirmed", "confirmed"]


def test_what_is_tentative_recovers_nothing() -> None:
    slower, back = found(series((20, 1e-3), (20, 1.2e-3), (1, 1e-3)))
    assert (slower.recovered_by, back.state) == ("", "tentative")


def test_where_more_is_better_a_fall_is_recovered_by_a_rise() -> None:
    fall, rise = found(series((20, 100.0), (20, 80.0), (20, 99.0), metric=metric_of("value", "GB/s")))
    assert (fall.moved, fall.recovered_by, rise.state) == (Verdict.REGRESSED, rise.first, "recovered")


def test_another_way_of_measuring_is_another_level_and_no_change() -> None:
    one_series = series((20, 1e-3), (20, 1.3e-3))
    driver = tuple((("driver", "570"),) if place < 20 else (("driver", "580"),) for place in range(40))
    assert found(replace(one_series, ways=driver)) == ()


def test_each_way_has_its_own_changes_even_where_they_alternate() -> None:
    one, other = series((20, 1e-3), (20, 1.1e-3)), series((20, 5e-3), (20, 5.5e-3))
    ways = tuple((("driver", str(place % 2)),) for place in range(40))
    rounds = tuple((one, other)[place % 2].rounds[place] for place in range(40))
    changes = found(replace(one, rounds=rounds, ways=ways))
    assert [(int(point.first, 16), point.way) for point in changes] == [(20, ways[20]), (21, ways[21])]
    assert [int(sha, 16) for sha in changes[1].blamed] == [20, 21]


def test_exact_values_change_wherever_they_differ() -> None:
    mib = 1024.0 * 1024
    one_series = series(
        (3, 100 * mib), (1, None), (1, 130 * mib), (2, 131 * mib), noise=0.0, metric=metric_of("peak_memory")
    )
    (change,) = found(one_series)  # 131 against 130 is below what is listed
    assert (int(change.first, 16), change.state, change.large, change.threshold) == (4, "confirmed", True, 0.10)
    assert (change.ratio, change.low, change.high) == (1.3, 1.3, 1.3)
    assert [int(sha, 16) for sha in change.blamed] == [3, 4]


def test_one_more_of_what_is_counted_is_a_change_and_so_is_the_first() -> None:
    launches = series((3, 0.0), (2, 200.0), (1, 201.0), noise=0.0, metric=metric_of("launches"))
    first, more = found(launches)
    assert (int(first.first, 16), first.ratio, first.moved, first.large) == (3, None, Verdict.REGRESSED, True)
    assert (int(more.first, 16), more.ratio, more.large) == (5, 1.005, True)


def test_exact_values_that_do_not_repeat_are_tested() -> None:
    assert found(series((20, 1e6), noise=0.01, metric=metric_of("peak_memory"))) == ()


THRESHOLDS = {r"ops\..*": {"time": 0.15}, "ops": {"host_time": 0.5}}


def test_a_threshold_by_pattern_counts() -> None:
    (change,) = found(series((30, 1e-3), (30, 1.1e-3)), thresholds=THRESHOLDS)
    assert (change.threshold, change.large) == (0.15, False)
    host = series((30, 1e-3), (30, 1.3e-3), metric=metric_of("host_time"), primary=False)
    assert found(host)[0].threshold == 0.20
    assert found(host, thresholds=THRESHOLDS)[0].threshold == 0.5


def test_what_the_benchmark_declares_comes_first() -> None:
    (change,) = found(series((30, 1e-3), (30, 1.1e-3), threshold=0.2), thresholds=THRESHOLDS)
    assert (change.threshold, change.large) == (0.2, False)


def test_a_threshold_below_what_is_listed_is_honoured() -> None:
    one_series = series((40, 1e-3), (40, 1.012e-3), noise=0.001)
    assert found(one_series) == ()
    assert [change.large for change in found(one_series, thresholds={".*": {"time": 0.01}})] == [True]


@pytest.mark.parametrize("parts", [(), ((1, 1e-3),), ((5, None),), ((40, 1e-3),)])
def test_nothing_has_changed(parts: tuple[tuple[int, float | None], ...]) -> None:
    assert found(series(*parts)) == ()


def test_columns_of_unlike_length_are_refused() -> None:
    with pytest.raises(ValueError, match="one length"):
        replace(series((3, 1.0)), at=(0,))


# -- two values, and two modes -------------------------------------------------------------------------------------------


def given(values: list[float], **changes: Any) -> Series:
    return replace(series((len(values), 1.0)), rounds=tuple((value,) for value in values), **changes)


def quiet(n: int, level: float, noise: float = 0.004) -> list[float]:
    draw = random.Random(3)
    return [level * math.exp(noise * draw.gauss(0, 1)) for _ in range(n)]


def test_two_values_at_the_start_are_a_level_that_nothing_confirms() -> None:
    """277, 276 | 998 ... 998 | 275: neither end of the history is at 998."""
    first, last = found(given([277e-6, 276e-6, *quiet(20, 998e-6), 275e-6]))
    assert (int(first.first, 16), first.moved, first.state, first.is_open) == (2, Verdict.REGRESSED, "tentative", False)
    assert first.before == pytest.approx(276.5e-6, rel=0.001)
    assert (int(last.first, 16), last.moved, last.state) == (22, Verdict.IMPROVED, "tentative")


@pytest.mark.parametrize("factor", [3.6, 1 / 3.6])
def test_two_values_in_the_middle_come_and_go(factor: float) -> None:
    away = [factor * 1e-3, factor * 1.002e-3]
    there, back = found(given([*quiet(12, 1e-3), *away, *quiet(12, 1e-3)]))
    assert [int(point.first, 16) for point in (there, back)] == [12, 14]
    assert [point.moved is Verdict.REGRESSED for point in (there, back)] == [factor > 1, factor < 1]
    assert [point.is_passing and not point.is_open for point in (there, back)] == [True, True]


@pytest.mark.parametrize("strays", [(6,), (6, 9), (6, 7, 15), (6, 7, 8, 20)])
def test_a_stray_value_or_several_are_no_level_of_two(strays: tuple[int, ...]) -> None:
    values = quiet(30, 1e-3)
    for at in strays:
        values[at] *= 3.6
    assert [point for point in found(given(values)) if point.is_passing] == []


def test_noise_that_jumps_now_and_then_raises_no_alarm_by_pairs() -> None:
    """Of 600 histories of noise alone that jumps by up to 30 %, and of as many of normal noise."""
    counts = {0.0: 0, 0.04: 0}
    for jumps in counts:
        for seed in range(600):
            draw = random.Random(seed)
            values = [
                1e-3 * math.exp(0.01 * draw.gauss(0, 1) + (draw.uniform(-0.3, 0.3) if draw.random() < jumps else 0))
                for _ in range(draw.randint(12, 120))
            ]
            by_pairs = [point for point in found(given(values)) if point.is_passing or int(point.first, 16) == 2]
            assert not any(point.is_open for point in by_pairs)
            counts[jumps] += bool(by_pairs)
    assert counts == {0.0: 0, 0.04: 2}


def test_a_history_that_jumps_between_two_levels_has_two_modes_and_no_regression() -> None:
    """3.5 and 95 ms all along, as memory happens to lie: first more of one, then more of the other."""
    draw = random.Random(5)
    values = [(95e-3 if draw.random() < (0.25 if at < 40 else 0.9) else 3.5e-3) for at in range(80)]
    changes = found(given([value * math.exp(0.01 * draw.gauss(0, 1)) for value in values]))
    assert changes
    assert not any(point.large for point in changes)
    assert all(point.reasons[-1].startswith("bimodal") for point in changes)


def jumping(n: int, noise: float = 0.01) -> list[float]:
    draw = random.Random(5)
    return [draw.choice([3.5e-3, 95e-3]) * math.exp(noise * draw.gauss(0, 1)) for _ in range(n)]


def test_a_history_that_jumps_since_a_month_has_two_modes_by_now() -> None:
    changes = found(given([*quiet(300, 95e-3), *jumping(30), *quiet(8, 95e-3)]))
    last = next(point for point in reversed(changes) if point.moved is Verdict.REGRESSED)
    assert not last.large
    assert last.reasons[-1].startswith("bimodal")
    assert not any(point.is_open for point in changes)


def test_what_jumped_long_ago_makes_no_change_of_today_one_of_modes() -> None:
    last = found(given([*jumping(80), *quiet(70, 3.5e-3), *quiet(20, 95e-3)]))[-1]
    assert (int(last.first, 16), last.is_open, last.reasons) == (150, True, ())


def test_a_level_that_is_new_is_a_change_however_it_scatters_afterwards() -> None:
    draw = random.Random(5)
    values = [*quiet(40, 3.5e-3), *((95e-3 if draw.random() < 0.9 else 3.5e-3) for _ in range(40))]
    values[10] = values[25] = 95e-3
    assert any(point.is_open for point in found(given(values)))


RUNNERS = (1.04e-3, 0.92e-3, 0.82e-3, 0.71e-3, 0.53e-3)
"""What five models of CPU in a pool of runners need for the same work."""
MOSTLY_FAST, MOSTLY_SLOW = (3, 2, 1, 4, 1), (10, 1, 1, 1, 0)
"""How often each of them comes."""


def pooled(*parts: tuple[int, Sequence[int], float], seed: int = 5) -> list[float]:
    """So many values each, on runners that come with these weights, times a factor."""
    draw = random.Random(seed)
    return [
        factor * level * math.exp(0.015 * draw.gauss(0, 1))
        for n, weights, factor in parts
        for level in draw.choices(RUNNERS, weights, k=n)
    ]


def test_another_mixture_of_runners_is_no_regression() -> None:
    """Five levels in turn, first more of the fast ones, then of the slow ones."""
    reasons = []
    for seed in range(35):
        changes = found(given(pooled((70, MOSTLY_FAST, 1.0), (60, MOSTLY_SLOW, 1.0), seed=seed)))
        assert not any(point.large and point.moved is Verdict.REGRESSED for point in changes), f"seed {seed}"
        reasons += [reason for point in changes for reason in point.reasons]
    assert (
        sum(reason.startswith("alternating: its levels have hardly moved, the upper ones") for reason in reasons) > 20
    )


def test_what_moves_all_levels_of_a_pool_is_a_change() -> None:
    for seed in range(12):
        changes = found(given(pooled((70, MOSTLY_SLOW, 1.0), (40, MOSTLY_SLOW, 1.4), seed=seed)))
        worse = next(point for point in changes if point.large)
        assert (worse.is_open, int(worse.first, 16) in (70, 71)) == (True, True), f"seed {seed}"
        assert worse.ratio == pytest.approx(1.4, rel=0.15)


def test_a_level_that_is_steady_is_no_mixture_whatever_strays_into_it() -> None:
    """A regression of twenty results is taken back for good; some results stray on either side of each change."""
    values = [*quiet(40, 1e-3), *quiet(20, 1.2e-3), *quiet(60, 1e-3)]
    for at, level in ((10, 1.2e-3), (25, 1.2e-3), (48, 1e-3), (90, 1.2e-3)):
        values[at] = level
    worse, better = found(given(values))
    assert (worse.large, worse.is_open, worse.recovered_by) == (True, False, better.first)


@pytest.mark.parametrize("level", [1.3e-3, 1 / 1.3 * 1e-3], ids=["up", "down"])
@pytest.mark.parametrize("before", [9, 30])
@pytest.mark.parametrize("length", [1, 2, 3, 4, 5])
def test_a_plateau_keeps_its_commits_from_sweep_to_sweep(length: int, before: int, level: float) -> None:
    """Some commits are slower, or faster, and then it is taken back: no sweep blames another, and what was sure stays."""
    every = series((before, 1e-3), (length, level), (8, 1e-3))
    there, back = before, before + length
    for n in range(before + 1, before + length + 9):
        seen = replace(
            every, **{name: getattr(every, name)[:n] for name in ("at", "rounds", "ways", "intervals", "failures")}
        )
        states = {int(point.first, 16): (point.state, bool(point.recovered_by)) for point in found(seen)}
        assert set(states) <= {there, back}, f"after {n} commits"
        if length >= 3 and n >= there + 3:
            assert states[there][0] == "confirmed"
        if length >= 3 and n > back:
            sure = "recovered" if level > 1e-3 else "relapsed" if before == 30 else "confirmed"
            assert states[back][0] == ("tentative" if n < back + 3 else sure)
            assert states[there][1] == (level > 1e-3 and n >= back + 3), "a regression that was taken back says so"
    assert len(states) == (0 if length == 1 else 2), "one value is a stray, two are told"


def test_a_level_behind_zeros_is_one_change_from_zero() -> None:
    """A tracked error was tiny, then none, then large: the last commit has one change, from the zeros before it."""
    every = series((6, 8.7e-16), (5, 0.0), (12, 1.1e-13), rounds=1, metric=metric_of("value", "", "lower"))
    assert [(int(point.first, 16), point.before == 0, point.after == 0) for point in found(every)] == [
        (6, False, True),
        (11, True, False),
    ]


# -- short improvements --------------------------------------------------------------------------------------------------


def states(one_series: Series, releases: Collection[str] = ()) -> list[tuple[int, str, str]]:
    """Where it changed, which way, and what became of it."""
    every = changes_of(one_series, SETTINGS, releases=releases)
    return [(int(change.first, 16), str(change.moved), change.state) for change in every if change.large]


@pytest.mark.parametrize("noise", [0.004, 0.015])
@pytest.mark.parametrize(
    ("visit", "state"), [(2, "recovered"), (5, "relapsed"), (10, "relapsed"), (11, "confirmed"), (40, "confirmed")]
)
def test_the_end_of_an_improvement_is_a_regression_unless_that_was_short(visit: int, state: str, noise: float) -> None:
    """A visit to a better level, in the middle of a history: most of the recent past was no better than what follows it."""
    every = series((30, 1e-3), (visit, 0.7e-3), (60, 1e-3), noise=noise)
    better = "recovered" if visit == 2 else "confirmed"
    assert states(every) == [(30, "improved", better), (30 + visit, "regressed", state)]
    assert [point.is_open for point in found(every)] == [False, state == "confirmed"]
    rate = replace(every, metric=metric_of("value", "GB/s"), rounds=tuple((1 / a, 1 / b) for a, b in every.rounds))
    assert states(rate) == states(every)


def test_what_is_slower_than_before_a_short_improvement_is_a_regression() -> None:
    assert states(series((30, 1e-3), (5, 0.7e-3), (20, 1.2e-3)))[-1] == (35, "regressed", "confirmed")
    later = series((30, 1e-3), (5, 0.7e-3), (20, 1e-3), (20, 1.2e-3))
    assert states(later)[1:] == [(35, "regressed", "relapsed"), (55, "regressed", "confirmed")]
    partly = series((30, 1e-3), (5, 0.7e-3), (20, 0.9e-3))
    assert states(partly)[-1] == (35, "regressed", "relapsed"), "10 % better than for most of the time"


def test_a_level_has_to_be_known_before_an_improvement_of_it_is_short() -> None:
    assert states(series((9, 1e-3), (4, 0.7e-3), (20, 1e-3)))[-1] == (13, "regressed", "confirmed")
    assert states(series((10, 1e-3), (4, 0.7e-3), (20, 1e-3)))[-1] == (14, "regressed", "relapsed")


def test_short_improvements_that_are_most_of_the_recent_past_were_none() -> None:
    every = series((40, 1e-3), (6, 0.7e-3), (4, 1e-3), (6, 0.7e-3), (8, 1e-3))
    assert states(every)[-1] == (56, "regressed", "confirmed")


def test_a_short_improvement_takes_no_regression_back() -> None:
    every = series((20, 0.7e-3), (30, 1e-3), (5, 0.7e-3), (20, 1e-3))
    assert states(every) == [(20, "regressed", "confirmed"), (55, "regressed", "relapsed")]
    assert [point.is_open for point in found(every)] == [True, False, False]
    mended = series((20, 0.7e-3), (30, 1e-3), (5, 0.7e-3), (20, 1e-3), (20, 0.7e-3))
    assert not any(point.is_open for point in found(mended))


@pytest.mark.parametrize(("at", "state"), [(29, "relapsed"), (30, "confirmed"), (36, "confirmed"), (37, "relapsed")])
def test_an_improvement_that_was_released_is_no_short_one(at: int, state: str) -> None:
    """Also by a commit without a result, the newest of which before it has the improvement."""
    every = series((30, 1e-3), (5, 0.7e-3), (2, None), (20, 1e-3))
    assert states(every, {every.commits[at]})[-1] == (37, "regressed", state)


def test_one_value_of_what_is_exact_is_an_improvement_of_its_own() -> None:
    memory = series((12, 100e6), (1, 80e6), (5, 100e6), noise=0.0, metric=metric_of("peak_memory"))
    assert states(memory) == [(12, "improved", "confirmed"), (13, "regressed", "relapsed")]


@hypothesis.settings(max_examples=30, deadline=None)
@hypothesis.given(
    older=st.lists(st.tuples(st.integers(3, 20), st.sampled_from([0.7e-3, 1e-3, 1.3e-3])), max_size=5),
    jumps=st.integers(0, 40),
    visit=st.integers(3, 30),
    after=st.sampled_from([1e-3, 1.3e-3]),
)
def test_what_was_long_ago_says_nothing_of_the_last_changes(
    older: list[tuple[int, float]], jumps: int, visit: int, after: float
) -> None:
    last = series((65, 1e-3), (visit, 0.7e-3), (20, after)).rounds
    draw = random.Random(jumps)
    past = (*series(*older).rounds, *((draw.choice([1e-3, after]),) for _ in range(jumps)))
    long, short = (states(given([median(round) for round in rounds])) for rounds in ((*past, *last), last))
    there = len(past)
    late = [entry for entry in long if entry[0] >= there + 60 and entry[1] == "regressed"]
    assert late == [(there + at, moved, state) for at, moved, state in short if moved == "regressed"]
