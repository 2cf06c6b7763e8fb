"""Which commits go into which task."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regress.cluster.plan import FEW, GROUP, halving, tasks_of

CASES = ("b.add", "b.mul")


def lacking(count: int) -> dict[str, tuple[str, ...]]:
    return {f"{at:03}": CASES for at in range(count)}


@given(st.integers(1, 300), st.integers(1, 16))
def test_every_commit_is_in_one_task_and_the_anchor_in_all(count: int, at_once: int) -> None:
    found = tasks_of(lacking(count), "000", at_once, CASES)
    assert [each.number for each in found] == list(range(len(found)))
    assert all(each.commits[0] == "000" and each.commits == tuple(sorted(each.commits)) for each in found)
    own = [sha for each in found for sha in each.commits[1:]]
    assert sorted(own) == sorted(lacking(count))[1:]
    assert all(len(each.commits) <= GROUP + 1 for each in found)
    assert len(found) == 1 or all(len(each.commits) > FEW for each in found)


@given(st.integers(20, 300))
def test_a_task_has_no_neighbours_and_covers_all(count: int) -> None:
    found = tasks_of(lacking(count), "000", 1, CASES)
    for each in found:
        places = [int(sha) for sha in each.commits[1:]]
        assert all(later - earlier == len(found) for earlier, later in pairwise(places))
        assert places[0] <= len(found)
        assert places[-1] >= count - len(found)


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
