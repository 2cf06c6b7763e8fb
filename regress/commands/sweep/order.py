"""Which commits of a range are measured next: first the ends, then ever finer, and soonest where something changed."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

HOT = 8
"""This many times as long counts a gap that a change lies in."""


def next_places(wanted: Sequence[bool], changed: Collection[int], count: int) -> list[int]:
    """This many places that are wanted, in the order they should be measured in.

    `wanted` says of each commit, the oldest first, whether it is to be measured. The middle of the longest gap is next; of a
    gap at the newest end its newest commit, at the oldest end its oldest one. A gap counts for more where one of its places is
    in `changed`, the blamed ranges of changes: what is measured there names the commit.
    """
    left, chosen = list(wanted), list[int]()
    while len(chosen) < count and any(left):
        gap = max(_gaps(left), key=lambda gap: (_weight(gap, changed), gap.stop))
        place = gap[-1] if gap.stop == len(left) else gap[0] if gap.start == 0 else gap[(len(gap) - 1) // 2]
        left[place] = False
        chosen.append(place)
    return chosen


def evenly(count: int, steps: int) -> list[int]:
    """At most this many of `count` places, evenly spread, both ends among them."""
    if steps >= count:
        return list(range(count))
    if steps == 1:
        return [count - 1]
    return sorted({round(step * (count - 1) / (steps - 1)) for step in range(steps)})


def _gaps(wanted: Sequence[bool]) -> Iterator[range]:
    start = None
    for place, is_wanted in enumerate([*wanted, False]):
        if is_wanted and start is None:
            start = place
        elif not is_wanted and start is not None:
            yield range(start, place)
            start = None


def _weight(gap: range, changed: Collection[int]) -> int:
    return len(gap) * (HOT if any(place in gap for place in changed) else 1)
