"""Two levels that the round values of both sides share: a different mixture of them is not a change of the levels.

Some cases have two times, such as 100 us and 113 us depending on where memory or a process lies, and each round gets one. A
test of means mistakes another mixture for a change. This module asks which explains the values better: one level a side, as
after a change of the code, or two levels that both sides share.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from regress.stats.summary import exp_or_inf, mean_and_variance

FALSE_POSITIVES = 0.01
"""How often, at most, normal noise around one level a side is called bimodal: most often if the sides are equal. If they
differ by two standard deviations it is less than one in a thousand, from six rounds a side on."""

CRITICAL = {
    8: 14.2,
    9: 11.7,
    10: 10.1,
    11: 9.0,
    12: 8.3,
    14: 7.2,
    16: 6.5,
    18: 6.05,
    20: 5.7,
    24: 5.2,
    28: 4.87,
    32: 4.65,
    40: 4.33,
    48: 4.11,
}
"""Rounds of both sides together -> what the statistic exceeds with FALSE_POSITIVES, by simulation of 200,000 pairs."""


@dataclass(frozen=True)
class Modes:
    """The two levels, and how often each side was at the upper one."""

    low: float
    high: float
    base_high: int
    base: int
    head_high: int
    head: int
    ratio: float
    """Head over base at equal level: the change without the effect of the mixture."""

    @property
    def apart(self) -> float:
        return self.high / self.low


def two_modes(base: Sequence[float], head: Sequence[float]) -> Modes | None:
    """The modes of positive round values; None if two shared levels do not explain them much better than one level a side.

    The statistic is the sum of squares around the mean of each side, divided by that around two clusters of all values, on
    logarithms. Clusters are split where that sum is smallest, and both must have values of both sides: a level that only one
    side shows is a change of that side. Source: L. Engelman and J. A. Hartigan, "Percentage points of a test for clusters",
    JASA 64 (1969), with means of the sides instead of a common one; the points are from simulation. Below eight values there
    is no test.
    """
    points = list(CRITICAL)
    place = bisect_right(points, len(base) + len(head))
    if not place:
        return None
    sides = [math.log(value) for value in base], [math.log(value) for value in head]
    squares, limit = _halved(sorted(sides[0] + sides[1]))
    clusters = [[[log for log in side if (log >= limit) is upper] for side in sides] for upper in (False, True)]
    if not all(part for cluster in clusters for part in cluster):
        return None
    if sum(map(_squares, sides)) <= CRITICAL[points[place - 1]] * squares:
        return None
    (_, _), (base_high, head_high) = clusters
    low, high = (exp_or_inf(_mean(one + other)) for one, other in clusters)
    return Modes(low, high, len(base_high), len(base), len(head_high), len(head), exp_or_inf(_within(clusters)))


def _halved(ordered: Sequence[float]) -> tuple[float, float]:
    """The least sum of squares around the means of a lower and an upper part, and where the upper one begins."""
    center = _mean(ordered)  # so that the squares below are not small differences of large sums
    shifted = [value - center for value in ordered]
    sums, total = list(accumulate(shifted)), math.fsum(distance * distance for distance in shifted)
    whole, n = sums[-1], len(ordered)
    return min(
        (total - below * below / size - (whole - below) ** 2 / (n - size), ordered[size])
        for size, below in enumerate(sums[:-1], 1)
    )


def _within(clusters: Sequence[Sequence[Sequence[float]]]) -> float:
    """Least squares estimate of the logarithm of head over base in a model with levels and sides."""
    weights = [len(base) * len(head) / (len(base) + len(head)) for base, head in clusters]
    apart = [_mean(head) - _mean(base) for base, head in clusters]
    return sum(weight * distance for weight, distance in zip(weights, apart, strict=True)) / sum(weights)


def _mean(values: Sequence[float]) -> float:
    return mean_and_variance(values)[0]


def _squares(values: Sequence[float]) -> float:
    """Sum of squares around the mean."""
    return mean_and_variance(values)[1] * (len(values) - 1)


def jumps(differences: Sequence[float]) -> float | None:
    """The distance of two levels that processes draw from, if the differences of pairs show it: in some pairs both sides are
    at one level and do not differ, in others they differ by the distance, in either direction. None if the pairs do not show
    this.

    All differences must lie within a quarter of the distance from where these levels would put them, with some in each of the
    three places, and there must be at least eight.
    """
    if len(differences) < min(CRITICAL):
        return None
    apart = max(map(abs, differences))
    near = [round(difference / apart) if apart else 0 for difference in differences]
    apart = (
        _mean([abs(difference) for difference, place in zip(differences, near, strict=True) if place])
        if any(near)
        else 0.0
    )
    close = all(
        abs(difference - place * apart) <= apart / 4 for difference, place in zip(differences, near, strict=True)
    )
    return apart if close and {-1, 0, 1} <= set(near) else None
