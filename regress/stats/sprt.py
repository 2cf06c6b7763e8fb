"""Which of two levels values belong to, value by value: the sequential probability ratio test.

Source: A. Wald, "Sequential tests of statistical hypotheses", Annals of Mathematical Statistics 16 (1945). The values scatter
around one of the levels as Student's t does, with a deviation that was itself estimated from few values. The evidence of a
single value is clipped, so an outlier, or a deviation estimated too small, cannot decide alone.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence

CLIP = 3.0
"""The most evidence of one value: 20 to 1."""
TAILS = 8
"""Degrees of freedom that values have at most, however well their deviation is known: rounds have outliers."""
DAMPED = 3.0
"""A value more robust deviations than this from the others of its group counts as one at that distance."""
_NORMAL = 1.4826
"""From the median of absolute deviations to the standard deviation of normal values."""


def log_likelihood_ratio(
    values: Iterable[float], low: float, high: float, sd: float, freedom: int = TAILS, clip: float = CLIP
) -> float:
    """Natural logarithm of how much likelier the values are around `high` than around `low`.

    `freedom` are the degrees of freedom that `sd` was estimated with. Without any deviation a value says as much as it can for
    the level that is nearer. Raises ValueError for a negative deviation.
    """
    if not 0 <= sd < math.inf:
        raise ValueError(f"a standard deviation is zero or more, not {sd}")
    tails, total = max(1, min(freedom, TAILS)), []
    for value in values:
        near, far = abs(value - high), abs(value - low)
        if sd:
            says = (tails + 1) / 2 * (_log1p_square(far / sd, tails) - _log1p_square(near / sd, tails))
        else:
            says = 0.0 if near == far else math.copysign(math.inf, far - near)
        total.append(max(-clip, min(clip, says)))
    return math.fsum(total)


def _log1p_square(distance: float, tails: int) -> float:
    """log(1 + distance² / tails), even if the square overflows a float."""
    return math.log1p(distance * distance / tails) if distance < 1e100 else 2 * math.log(distance) - math.log(tails)


def values_to_decide(
    low: float, high: float, sd: float, bound: float, freedom: int = TAILS, clip: float = CLIP
) -> float:
    """How many values at a level move the logarithm to the bound."""
    gain = log_likelihood_ratio([high], low, high, sd, freedom, clip)
    return bound / gain if gain else math.inf


def pooled_sd(groups: Iterable[Sequence[float]]) -> tuple[float, int]:
    """Standard deviation of values around the mean of their own group, and its degrees of freedom; 0.0 if there are none.

    Outliers are damped: one value in fifty that is ten deviations off would make the others seem twice as noisy.
    """
    groups = [group for group in groups if len(group) > 1]
    freedom = sum(map(len, groups)) - len(groups)
    if not freedom:
        return 0.0, 0
    centers = [statistics.median(group) for group in groups]
    shares = [math.sqrt(len(group) / (len(group) - 1)) for group in groups]
    away = [
        share * abs(value - center)
        for group, center, share in zip(groups, centers, shares, strict=True)
        for value in group
    ]
    farthest = DAMPED * _NORMAL * statistics.median(away)
    squares = 0.0
    for group, center in zip(groups, centers, strict=True):
        damped = [max(center - farthest, min(center + farthest, value)) for value in group] if farthest else group
        mean = math.fsum(damped) / len(damped)
        squares += math.fsum((value - mean) ** 2 for value in damped)
    return math.sqrt(squares / freedom), freedom
