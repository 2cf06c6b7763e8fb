"""The search for the commit that did it, as a pure machine: what it asks for, what it says, how sure it is."""

from __future__ import annotations

import itertools
import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regress.compare.bisection import DOUBT, MOST_PAIRS, SURE, CandidateRange, Search, weights_of
from tests.bisections import Model, Tally, bisected, searched, tally

STEP = math.log(1.1)


def exact(count: int, first: int, broken: frozenset[int] = frozenset()) -> Search:
    """A search whose probes say at once what they are."""
    search = Search(count, 1.0, exact=True)
    for _ in range(count + 1):
        ask = search.ask()
        if ask is None:
            return search
        assert ask.candidate not in search.measured
        assert ask.candidate not in search.untestable
        if ask.candidate in broken:
            search = search.without(ask.candidate)
        else:
            search = search.with_pairs(ask.candidate, [float(ask.candidate >= first)])
    raise AssertionError("it goes on for ever")


@given(st.integers(1, 200), st.data())
def test_what_is_exact_takes_no_more_probes_than_halving(count: int, data: st.DataObject) -> None:
    first = data.draw(st.integers(0, count - 1))
    search = exact(count, first)
    assert search.best()[0] == CandidateRange(first - 1, first)
    assert search.best()[1] > 0.999
    assert len(search.measured) <= math.ceil(math.log2(count)) if count > 1 else not search.measured


@given(st.integers(2, 60), st.data())
def test_what_cannot_be_measured_is_left_in_the_range(count: int, data: st.DataObject) -> None:
    first = data.draw(st.integers(0, count - 1))
    broken = frozenset(data.draw(st.sets(st.integers(0, count - 2))))
    place, sure = exact(count, first, broken).best()
    assert sure > 0.99
    assert place.good < first <= place.bad
    assert set(range(place.good + 1, place.bad)) <= broken, "nothing that could be measured is between"
    assert place.good not in broken
    assert place.bad not in broken


def test_commits_that_do_not_build_are_kept_away_from() -> None:
    search = Search(64, 1.0, exact=True).without(31)
    ask = search.ask()
    assert ask is not None
    assert abs(ask.candidate - 31) > 1, "what is broken is so for some commits"
    broken = frozenset(range(20, 45))
    searched = exact(64, 50, broken)
    assert len(searched.untestable) <= 8


def test_probabilities_are_such() -> None:
    search = Search(8, STEP, (0.09, 0.1, 0.095, 0.1))
    assert search.probabilities == pytest.approx([1 / 8] * 8)
    for candidate, value in ((3, 0.0), (5, 0.1), (4, 0.05)):
        search = search.with_pairs(candidate, [value, value + 0.001])
        assert sum(search.probabilities) == pytest.approx(1)
        assert all(0 <= probability <= 1 for probability in search.probabilities)
    assert search.likely().good >= 3
    assert search.likely().bad <= 5


@given(st.permutations([(1, 0.0), (3, 0.002), (5, 0.097), (6, 0.094)]))
def test_the_order_of_probes_does_not_matter(order: list[tuple[int, float]]) -> None:
    search = Search(8, STEP, (0.09, 0.1, 0.095, 0.1))
    expected = search
    for candidate, value in sorted(order):
        expected = expected.with_pairs(candidate, [value, value + 0.004])
    for candidate, value in order:
        search = search.with_pairs(candidate, [value, value + 0.004])
    assert search.probabilities == pytest.approx(expected.probabilities)


def test_an_improvement_is_found_like_a_regression() -> None:
    down = searched(Model(64, 20, -0.1, 0.01), seed=3)
    up = searched(Model(64, 20, 0.1, 0.01), seed=3)
    assert down.best()[0] == up.best()[0] == CandidateRange(19, 20)


def test_a_probe_ends_once_it_is_sure() -> None:
    search = searched(Model(64, 40, STEP, 0.01), seed=1)
    assert search.best()[0] == CandidateRange(39, 40)
    assert search.best()[1] >= SURE
    for candidate in search.measured:
        assert search.standing(candidate).state == ("bad" if candidate >= 40 else "good")
    assert max(map(len, search.measured.values())) <= 4


def test_the_search_ends_where_nothing_can_be_told_apart() -> None:
    search = searched(Model(16, 8, 0.02, 0.08), seed=1)
    assert max(map(len, search.measured.values())) <= MOST_PAIRS
    assert search.ask() is None


@pytest.mark.parametrize(("smaller", "larger"), [(1.04, 1.10), (1.07, 1.08), (1.08, 1.09)])
def test_a_change_in_two_parts_is_searched_in_the_larger(smaller: float, larger: float) -> None:
    """A probe between both is at neither level; where one part is clearly the larger one, it counts as good or bad at once."""
    model = Model(64, 40, math.log(larger), 0.006, {10: math.log(smaller)})
    searches = [bisected(model, random.Random(seed)) for seed in range(10)]
    for search, place, confirmed in searches:
        assert place in (CandidateRange(39, 40), CandidateRange(9, 10)) or not confirmed
        if search.is_split:
            assert search.sought < 0.75 * search.size
            assert "between" in [search.standing(candidate).state for candidate in search.measured]
    assert sum(place == CandidateRange(39, 40) and confirmed for _, place, confirmed in searches) >= 7
    assert any(search.is_split for search, *_ in searches) or larger > 1.09


def test_a_wrong_range_is_taken_back_by_verifying_it() -> None:
    search = searched(Model(64, 40, STEP, 0.01), seed=1)
    refuted = search.verified(CandidateRange(39, 40), [0.0, 0.01, -0.01, 0.0, 0.0, 0.01])
    assert refuted.best()[1] < search.best()[1]
    agreed = search.verified(CandidateRange(39, 40), [0.1, 0.09, 0.1, 0.095])
    assert agreed.best()[1] > search.best()[1]


def test_recorded_results_choose_the_first_probe_and_claim_nothing() -> None:
    levels = {at: [0.002 * (at % 3) + (STEP if at >= 20 else 0.0)] for at in range(-1, 64, 4)}
    weights = weights_of(64, levels, STEP, 0.01)
    assert sum(weights) == pytest.approx(1)
    assert sum(weights[16:24]) > 0.9
    search = Search(64, STEP, (0.09, 0.1, 0.095, 0.1), weights=weights)
    ask = search.ask()
    assert ask is not None
    assert ask.candidate in range(15, 24)
    assert search.probabilities == pytest.approx([1 / 64] * 64)


@pytest.mark.parametrize("claimed", [5, 60])
def test_wrong_recorded_results_cost_probes_and_no_error(claimed: int) -> None:
    weights = tuple(1.0 if at == claimed else 0.0 for at in range(64))
    search = searched(Model(64, 30, STEP, 0.01), seed=2, weights=weights)
    assert search.best()[0] == CandidateRange(29, 30)
    assert len(search.measured) <= 9


def test_without_recorded_values_nothing_is_known() -> None:
    assert weights_of(4, {}, STEP, 0.01) == pytest.approx([0.25] * 4)


def test_what_is_expected_is_about_what_it_takes() -> None:
    search = Search(64, STEP, (0.09, 0.1, 0.095, 0.1))
    assert search.expected()[0] == 6
    assert Search(1, STEP, (0.1, 0.1)).expected() == (0, 0)
    assert Search(64, 1.0, exact=True).expected() == (6, 6)


@pytest.mark.parametrize(
    ("model", "fewest_right", "most_builds"),
    [
        (Model(64, 0, math.log(1.1), 0.01), 100, 6.2),
        (Model(64, 0, math.log(1.1), 0.03), 95, 6.6),
        (Model(64, 0, math.log(1.05), 0.021 / math.sqrt(2)), 97, 6.6),
    ],
    ids=["+10 %, sd 1 %", "+10 %, sd 3 %", "+5 %, pair sd 2.1 %"],
)
def test_how_often_it_is_right(model: Model, fewest_right: int, most_builds: float) -> None:
    """`python -m tests.bisections` prints the same of as many runs as one likes."""
    counts: Tally = tally(model, 100, seed=1)
    assert counts.right >= fewest_right
    assert counts.wrong_and_sure == counts.wrong_and_confirmed == 0
    assert counts.confirmed >= fewest_right
    assert counts.builds / counts.runs <= most_builds


def test_confidence_is_what_it_says() -> None:
    """Of results that are called so sure, so many are right: within what chance leaves open in as many runs."""
    tallies = [tally(Model(64, 0, math.log(1.05), 0.03), 150, seed=seed) for seed in (1, 2)]
    claimed = sum(one.confidence for one in tallies)
    right, runs = sum(one.right for one in tallies), sum(one.runs for one in tallies)
    assert right >= claimed - 3 * math.sqrt(runs * DOUBT) - 1
    assert right <= runs


def test_a_line_of_one_commit_needs_no_probe() -> None:
    search = Search(1, STEP, (0.1, 0.09))
    assert search.ask() is None
    assert search.best() == (CandidateRange(-1, 0), 1.0)


def test_ranges_hold_everything_once() -> None:
    search = Search(10, STEP, (0.1, 0.09)).without(3).without(4).with_pairs(5, [0.0, 0.01])
    places = [place for place, _ in search._ranges(search.probabilities)]
    assert [
        *itertools.chain.from_iterable(range(candidate.good + 1, candidate.bad + 1) for candidate in places)
    ] == list(range(10))
    assert CandidateRange(2, 5) in places
