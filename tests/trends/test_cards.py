"""Histories over several cards of a kind: cards and jobs differ, the code does not, and what it does is found all the same."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import replace

import pytest

from regress.model import ChangePoint, Confirmation, Series, Verdict
from regress.trends import changes_of, series_of
from regress.trends.cards import as_the_mean_card, card_levels, read_by
from tests.cards import Kind, gpu_time, places, sha, spread, steps, trial
from tests.compare.rounds import MIB, SETTINGS, one


def found(series: Series, known: Sequence[Confirmation] = ()) -> list[tuple[int, str]]:
    return [(int(point.first, 16), point.state) for point in changes_of(series, SETTINGS, known)]


EIGHT_CARDS = {
    "as assumed": {},
    "noisy rounds": {"round_sd": 0.01},
    "jobs of a card vary": {"job_sd": 0.015},
}


@pytest.mark.parametrize("noise", EIGHT_CARDS.values(), ids=EIGHT_CARDS)
def test_a_step_over_eight_cards_is_found_at_its_commit_and_no_other(noise: dict[str, float]) -> None:
    """The cards differ by 3 %, the step is 5 %."""
    unseen = 0
    for seed in range(8):
        series, at = trial(seed, 120, 8, 1.05, **noise)
        assert found(series) == [(at, "tentative")]
        unseen += places(replace(series, corrected={}, factors={})) != [at]
    assert unseen, "what was read alone does not tell"


def test_two_halves_on_two_cards_keep_the_event_at_the_seam() -> None:
    """The cards are apart by as much as the step, the other way: what was read is level."""
    kind = Kind(random.Random(1), [0.0, -math.log(1.05)])
    times = steps({12: 1.05}, 24)
    first = [(0, range(at, at + 4)) for at in (0, 4, 8)]
    second = [(1, range(at, at + 4)) for at in (12, 16, 20)]
    series = gpu_time(kind.history(times, [*first, *((card, [0, *own]) for card, own in second)]))
    assert found(series) == [(12, "tentative")]
    assert series.cards[0] == ("GPU-0", "GPU-1")
    assert series.factors == {"GPU-0": pytest.approx(1.025, abs=0.005), "GPU-1": pytest.approx(0.976, abs=0.005)}
    apart = gpu_time(kind.history(times, [*first, *second]))
    assert (found(apart), len(apart.by_way), apart.corrected) == ([], 2, {}), "nothing links the cards"


PLANTED = {
    "layer_norm": {7: 1.12, 15: 1 / 1.12},
    "softmax": {4: 1.2},
    "attention": {11: 0.85},
    "matmul": {18: 1.08},
    "gelu": {9: 1.3, 20: 1 / 1.3},
}
"""Seven events in 24 commits."""


@pytest.mark.parametrize("groups", ["spread", "neighbours"])
def test_groups_in_turn_over_two_cards_show_seven_events_once_at_their_commits(groups: str) -> None:
    chance = random.Random(2)
    in_turn = spread(24, 4, lambda job: job % 2, anchor=0)
    if groups == "neighbours":
        in_turn = [(job % 2, [0, *range(max(1, 4 * job), 4 * job + 4)]) for job in range(6)]
    for times in PLANTED.values():
        kind = Kind(chance, [0.03, -0.03], round_sd=0.003)
        series = gpu_time(kind.history(steps(times, 24), in_turn))
        points = changes_of(series, SETTINGS)
        assert [int(point.first, 16) for point in points] == list(times)
        assert [int(sha, 16) for point in points for sha in point.blamed] == list(times), "one commit each"


def test_a_change_over_cards_is_sure_once_a_pair_in_turn_has_confirmed_it() -> None:
    kind = Kind(random.Random(3), [0.03, -0.03])
    series = gpu_time(kind.history(steps({12: 1.1}, 24), spread(24, 4, lambda job: job % 2, anchor=0)))
    (alone,) = changes_of(series, SETTINGS)
    assert (alone.state, alone.is_open) == ("tentative", False)
    assert alone.reasons == ("seen over 2 cards, and not yet in turn on one",)

    def told(verdict: Verdict, ratio: float) -> ChangePoint:
        said = Confirmation(sha(11), sha(12), verdict, ratio, "check", 1.75e9)
        (point,) = changes_of(series, SETTINGS, [said])
        return point

    sure, none = told(Verdict.REGRESSED, 1.098), told(Verdict.UNCHANGED, 1.001)
    assert (sure.state, sure.is_open, sure.reasons[0][:18]) == ("confirmed", True, "confirmed by check")
    assert (none.state, none.large, none.is_open) == ("tentative", False, False)
    assert none.reasons[0].startswith("not confirmed side by side: check 00000000 00000000 on ")
    assert told(Verdict.IMPROVED, 0.9).state == "tentative", "that is another change"


def test_an_improvement_takes_a_regression_back_once_both_are_sure() -> None:
    kind = Kind(random.Random(3), [0.03, -0.03])
    series = gpu_time(kind.history(steps({8: 1.1, 16: 1 / 1.1}, 24), spread(24, 4, lambda job: job % 2, anchor=0)))
    worse = Confirmation(sha(7), sha(8), Verdict.REGRESSED, 1.1, "check", 1.75e9)
    better = Confirmation(sha(15), sha(16), Verdict.IMPROVED, 0.91, "check", 1.75e9)
    assert found(series, [worse]) == [(8, "confirmed"), (16, "tentative")]
    assert changes_of(series, SETTINGS, [worse])[0].is_open
    assert found(series, [worse, better]) == [(8, "confirmed"), (16, "recovered")]
    assert not changes_of(series, SETTINGS, [worse, better])[0].is_open


def test_what_one_card_has_seen_is_sure_by_itself() -> None:
    """A second card comes late; what the first one knew by then stays known."""
    kind = Kind(random.Random(4), [0.03, -0.03])
    groups = [*((0, range(at, at + 4)) for at in range(0, 80, 4)), *((1, [0, *range(at, at + 4)]) for at in (80, 84))]
    series = gpu_time(kind.history(steps({30: 1.1}, 88), groups))
    assert found(series) == [(30, "confirmed")]


def test_exact_values_are_never_adjusted() -> None:
    kind = Kind(random.Random(5), [0.03, -0.03])
    history = kind.history(
        steps({}, 8), spread(8, 2, lambda job: job % 2, 0), peak_memory=[MIB] * 2, exact={"peak_memory"}
    )
    (memory,) = (series for series in series_of(history, SETTINGS) if series.metric.name == "peak_memory")
    assert (memory.metric.exact, memory.corrected, memory.curve) == (True, {}, (MIB,) * 8)


def test_cards_of_unlike_drivers_are_levels_of_their_own() -> None:
    """Also where both have measured the anchor, of which the later way counts."""
    kind = Kind(random.Random(6), [0.0, 0.2])
    old = kind.history(steps({}, 8), [(0, [0, 2, 4, 6])])
    new = kind.history(steps({}, 8), [(1, [0, 1, 3, 5, 7])], driver="580")
    both = [(commit, [*one, *other]) for (commit, one), (_, other) in zip(old, new, strict=True)]
    series = gpu_time(
        [(commit, [replace(own[0], rounds=sum((one.rounds for one in own), ()))]) for commit, own in both]
    )
    assert (found(series), series.corrected, len(series.by_way)) == ([], {}, 2)


def test_a_card_that_is_slower_than_its_kind_is_named() -> None:
    kind = Kind(random.Random(7), [0.005, -0.005, 0.002, 0.08])
    history = kind.history(steps({10: 1.1}, 24), spread(24, 3, lambda job: job % 4, anchor=0))
    levels = card_levels(read_by(series_of(history, SETTINGS)), SETTINGS)
    assert [level.card for level in levels if level.is_off] == ["GPU-3"]
    assert [level.factor for level in levels] == pytest.approx([0.985, 0.976, 0.982, 1.061], abs=0.01)
    assert levels[3].words == "box: GPU-3 is 5.8 % slower than the mean of 4 cards (H100)"
    alike = Kind(random.Random(7), [0.005, -0.005, 0.002, 0.008]).history(
        [1.0] * 24, spread(24, 3, lambda job: job % 4, 0)
    )
    assert not any(level.is_off for level in card_levels(read_by(series_of(alike, SETTINGS)), SETTINGS))


def test_commits_on_unlike_cards_are_compared_as_the_mean_card_has_read_them_and_nothing_is_claimed() -> None:
    kind = Kind(random.Random(8), [0.1, -0.1], reacts_sd=0.0)
    history = kind.history(steps({6: 1.1}, 12), spread(12, 2, lambda job: job % 2))
    base, head = (history[at][1][0].rounds for at in (2, 9))
    assert one(base, head).verdict is Verdict.INCOMPARABLE
    series = series_of(history, SETTINGS)
    comparison = one(as_the_mean_card(base, series, "base"), as_the_mean_card(head, series, "head"))
    assert comparison.verdict is Verdict.UNDECIDED
    assert comparison.ratio == pytest.approx(1.1, abs=0.01)
    assert any(reason.startswith("corrected for the card: GPU-0") for reason in comparison.reasons)


def test_readings_that_no_cards_can_have_break_nothing() -> None:
    """A broken file may have any number."""
    kind = Kind(random.Random(9), [709.0, -735.0])
    history = kind.history([1.0] * 8, spread(8, 2, lambda job: job % 2))
    (series,) = series_of(history, SETTINGS)
    assert all(0 < factor < math.inf for factor in series.factors.values())
    assert len(card_levels(read_by([series]), SETTINGS)) == len(series.factors) < 2
