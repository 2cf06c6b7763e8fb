"""Which commits go into which task."""

from __future__ import annotations

import heapq
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regress.cluster.plan import FEW, GROUP, START, TASK_S, Costs, Task, halving, tasks_of

CASES = ("b.add", "b.mul")


def lacking(count: int) -> dict[str, tuple[str, ...]]:
    return {f"{at:03}": CASES for at in range(count)}


@given(st.integers(1, 300), st.integers(1, 16))
def test_every_commit_is_in_one_task_and_the_anchor_in_all(count: int, at_once: int) -> None:
    tasks = tasks_of(lacking(count), "000", at_once, CASES)
    assert [task.number for task in tasks] == list(range(len(tasks)))
    assert all(task.commits[0] == "000" and task.commits == tuple(sorted(task.commits)) for task in tasks)
    own = [sha for task in tasks for sha in task.commits[1:]]
    assert sorted(own) == sorted(lacking(count))[1:]
    assert all(len(task.commits) <= GROUP + 1 for task in tasks)
    assert len(tasks) == 1 or all(len(task.commits) > FEW for task in tasks)


@given(st.integers(20, 300))
def test_a_task_has_no_neighbours_and_covers_all(count: int) -> None:
    tasks = tasks_of(lacking(count), "000", 1, CASES)
    for task in tasks:
        places = [int(sha) for sha in task.commits[1:]]
        assert all(later - earlier == len(tasks) for earlier, later in pairwise(places))
        assert places[0] <= len(tasks)
        assert places[-1] >= count - len(tasks)


def test_an_anchor_that_lacks_nothing_is_measured_again_beside_the_others() -> None:
    (task,) = tasks_of(lacking(3), "v1", 4, CASES)
    assert task.commits == ("v1", "000", "001", "002")
    assert task.cases == (), "all that was asked for"


def test_commits_of_a_task_lack_the_same() -> None:
    part = {**lacking(2), "002": ("b.mul",)}
    whole, rest = tasks_of(part, "000", 4, CASES)
    assert (whole.commits, whole.cases) == (("000", "001"), ())
    assert (rest.commits, rest.cases) == (("000", "002"), ("b.mul",))


@pytest.mark.parametrize(
    ("count", "order"), [(1, [0]), (2, [0, 1]), (5, [0, 4, 2, 1, 3]), (8, [0, 4, 2, 6, 1, 5, 3, 7])]
)
def test_the_first_tasks_cover_all_coarsely(count: int, order: list[int]) -> None:
    assert halving(count) == order


def seconds(task: Task, costs: Costs, cases: int) -> float:
    """What it takes: each group of commits has the anchor beside it."""
    own = len(task.commits) - 1
    return costs.start_s + (own + -(-own // GROUP)) * cases * costs.case_s


@settings(max_examples=30)
@given(st.integers(30, 1000), st.integers(1, 16), st.floats(1.0, 120.0), st.floats(0.1, 1.0), st.integers(1, 200))
def test_tasks_are_sized_by_what_earlier_ones_took(
    count: int, at_once: int, start_s: float, case_s: float, cases: int
) -> None:
    costs = Costs(start_s, case_s, time_s=4 * 3600.0)
    names = [str(number) for number in range(cases)]
    tasks = tasks_of({f"{at:04}": names for at in range(count)}, "0000", at_once, names, costs)
    takes = [seconds(task, costs, cases) for task in tasks]
    assert len(tasks) == 1 or all(start_s <= START * took for took in takes), "the start is a tenth at most"
    longest_s = max(TASK_S, 2 * start_s / START, 2 * (FEW + 1) * cases * case_s)
    assert all(took <= start_s + longest_s * (1 + 1 / FEW) for took in takes)


@settings(max_examples=30)
@given(st.integers(30, 1000), st.sampled_from([1, 2, 4, 8]), st.booleans())
def test_rows_of_tasks_keep_all_nodes_busy(count: int, at_once: int, known: bool) -> None:
    costs = Costs(10.0, 0.5, time_s=3600.0)
    tasks = tasks_of(lacking(count), "000", at_once, CASES, costs if known else None)
    takes = [seconds(task, costs, len(CASES)) for task in tasks]
    busy = [0.0] * at_once
    for took in takes:
        heapq.heappush(busy, heapq.heappop(busy) + took)
    largest, ideal = max(takes), sum(takes) / at_once
    assert max(busy) <= max(1.3 * ideal, largest), (len(tasks), takes)


def test_a_task_is_no_longer_than_its_job() -> None:
    few, most = Costs(30.0, 1.0, time_s=600.0).sizes(cases=100)
    assert (few, most) == (4, 4), "eight commits would take 800 s"
