"""A sample of round values, summarised."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Summary:
    """Centre and interval of the round values of one side.

    `center`, `low` and `high` are in the metric's base unit (seconds, bytes or the tracked unit); `n` counts rounds. With one
    round the interval is the value itself.
    """

    center: float
    low: float
    high: float
    confidence: float
    n: int
    spread: float = 0.0
    """Standard deviation of the logarithms of the round values: 0.02 is about 2 % from round to round."""


def median(values: Sequence[float]) -> float:
    """The median of finite values, which is finite too, even where the sum of the middle two would overflow."""
    middle = statistics.median(values)
    return middle if math.isfinite(middle) else statistics.median_low(values)


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least this share of the values does not exceed; for 20 or fewer, the largest at 0.95."""
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)]


def summarize(values: Sequence[float], confidence: float = 0.95) -> Summary:
    """Centre, confidence interval and spread of finite values, which are taken as independent draws.

    Positive values are summarised on their logarithms: the centre is the geometric mean, the interval is Student's t for the
    mean of the logarithms, transformed back. If any value is zero or negative, centre and interval are those of the plain
    mean, and the spread is the standard deviation relative to the centre (infinite around a centre of zero). If all values are
    equal, they are exactly the centre and interval. Raises ValueError for no values, for values that are not finite and for a
    confidence outside 0 to 1.
    """
    _check(values, confidence)
    least = min(values)
    if max(values) == least:
        return Summary(least, least, least, confidence, len(values))
    if least > 0:
        center, variance = mean_and_variance([math.log(value) for value in values])
        half = _half_width(variance, len(values), confidence)
        low, high = exp_or_inf(center - half), exp_or_inf(center + half)
        return Summary(exp_or_inf(center), low, high, confidence, len(values), math.sqrt(variance))
    center, variance = mean_and_variance(values)
    half = _half_width(variance, len(values), confidence)
    spread = math.sqrt(variance) / abs(center) if center else math.inf
    return Summary(center, center - half, center + half, confidence, len(values), spread)


def geomean(ratios: Sequence[float], confidence: float = 0.95) -> Summary:
    """Geometric mean of positive ratios with its t interval: `summarize` across cases, where `n` counts the cases.

    The interval says how far the mean would move for other cases of the same kind; it is not the measuring error of this
    one. Raises ValueError for no ratios and for one that is not positive and finite.
    """
    if any(ratio <= 0 for ratio in ratios):
        raise ValueError("a geometric mean needs positive ratios")
    return summarize(ratios, confidence)


def mean_and_variance(values: Sequence[float]) -> tuple[float, float]:
    """Mean and unbiased variance (0.0 for one value) of finite values, the same for every order of them.

    Sums are exactly rounded and relative to the smallest value, so equal values have a variance of exactly zero.
    """
    origin, n = min(values), len(values)
    shift = math.fsum((value - origin) / n for value in values)
    if n < 2:
        return origin + shift, 0.0
    deviations = [value - origin - shift for value in values]
    try:
        return origin + shift, math.fsum(deviation * deviation for deviation in deviations) / (n - 1)
    except OverflowError:
        return origin + shift, math.inf


def critical_t(df: float, alpha: float) -> float:
    """The two-sided critical value of Student's t: |t| exceeds it with probability `alpha`; `df` need not be whole."""
    # scipy.special and not scipy.stats: the same numbers, and the import takes a fraction of the time.
    from scipy.special import stdtrit

    return -float(stdtrit(df, alpha / 2))


def exp_or_inf(x: float) -> float:
    """exp(x), infinite where a float cannot hold it: the interval of two very different values reaches that far."""
    try:
        return math.exp(x)
    except OverflowError:
        return math.inf


def _half_width(variance: float, n: int, confidence: float) -> float:
    return critical_t(n - 1, 1 - confidence) * math.sqrt(variance / n)


def _check(values: Sequence[float], confidence: float) -> None:
    if not values:
        raise ValueError("no values to summarise")
    if not all(math.isfinite(value) for value in values):
        raise ValueError("only finite values can be summarised")
    if not 0 < confidence < 1:
        raise ValueError(f"a confidence lies between 0 and 1, not at {confidence}")
