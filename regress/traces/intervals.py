"""Sets of times: what some intervals cover, taken together."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from itertools import pairwise

Interval = tuple[float, float]
"""Start and end; nothing if the end is not after the start."""


def union(intervals: Iterable[Interval]) -> list[Interval]:
    """What they cover, as intervals in order that neither overlap nor touch."""
    covered: list[Interval] = []
    for start, end in sorted(interval for interval in intervals if interval[1] > interval[0]):
        if covered and start <= covered[-1][1]:
            if end > covered[-1][1]:
                covered[-1] = (covered[-1][0], end)
        else:
            covered.append((start, end))
    return covered


def length(covered: Iterable[Interval]) -> float:
    """How long the intervals of a union are in all."""
    return sum(end - start for start, end in covered)


def intersection(left: list[Interval], right: list[Interval]) -> list[Interval]:
    """What two unions have in common."""
    common, i, j = [], 0, 0
    while i < len(left) and j < len(right):
        start, end = max(left[i][0], right[j][0]), min(left[i][1], right[j][1])
        if end > start:
            common.append((start, end))
        if left[i][1] < right[j][1]:
            i += 1
        else:
            j += 1
    return common


def without(left: list[Interval], right: list[Interval]) -> list[Interval]:
    """The part of the first union outside the second."""
    if not left:
        return []
    return intersection(left, complement(right, left[0][0], left[-1][1]))


def complement(covered: list[Interval], start: float, end: float) -> list[Interval]:
    """What a union leaves open between two times."""
    inside = intersection(covered, [(start, end)])
    edges = [(start, start), *inside, (end, end)]
    return [(before[1], after[0]) for before, after in pairwise(edges) if after[0] > before[1]]


class Within:
    """Whether a time is in one of some intervals, ends included; they may overlap."""

    def __init__(self, intervals: Iterable[Interval]) -> None:
        self._covered = union(intervals)
        self._starts = [start for start, _ in self._covered]

    def __contains__(self, time: float) -> bool:
        index = bisect_right(self._starts, time) - 1
        return index >= 0 and time <= self._covered[index][1]
