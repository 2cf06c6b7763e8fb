"""Do rounds follow each other? A machine that drifts makes neighbours alike, and an interval of independent draws too narrow.

The lag-one autocorrelation of both sides together, after Box, Jenkins & Reinsel, Time Series Analysis, 2.1.5; of independent
draws it is near -1/n with a standard deviation of about 1/sqrt(n) (Bartlett 1946).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

FEWEST = 8
"""Fewest values a side for a result."""
LEAST, SURE = 0.4, 2.5
"""An autocorrelation counts if it is at least this large, and this many standard deviations of independent draws."""


def autocorrelation(*sides: Sequence[float]) -> float | None:
    """Lag-one autocorrelation of positive values around the level of their side, in the order they were measured in; None if
    one side has too few, or does not vary."""
    if any(len(side) < FEWEST or min(side) <= 0 for side in sides):
        return None
    together = squares = 0.0
    for side in sides:
        logs = [math.log(value) for value in side]
        mean = math.fsum(logs) / len(logs)
        rest = [value - mean for value in logs]
        together += math.fsum(one * other for one, other in pairwise(rest))
        square = math.fsum(value * value for value in rest)
        if square == 0:
            return None
        squares += square
    return together / squares


def follows(*sides: Sequence[float]) -> float | None:
    """The autocorrelation if it is large and not due to chance, else None."""
    correlation = autocorrelation(*sides)
    deviation = 1 / math.sqrt(sum(map(len, sides)))
    return correlation if correlation is not None and correlation > max(LEAST, SURE * deviation) else None
