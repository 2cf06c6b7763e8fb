"""Welch's t-test on logarithms: two samples of round values in, their ratio with interval and p out.

Source: B. L. Welch, "The generalization of 'Student's' problem when several different population variances are involved",
Biometrika 34 (1947), with Satterthwaite's degrees of freedom. On logarithms the difference of means is the logarithm of
the ratio of geometric means, and the test does not depend on the unit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from regress.stats.summary import Summary, critical_t, exp_or_inf, mean_and_variance

POWER = 0.9
"""A change counts as detectable if it would be found with this probability."""


@dataclass(frozen=True)
class Welch:
    """Head against base. All but `ratio` are None if a side has fewer than two values: there is no test then."""

    ratio: float
    """Geometric mean of head over geometric mean of base."""
    low: float | None = None
    high: float | None = None
    p: float | None = None
    """Two-sided, not adjusted for other tests."""
    df: float | None = None
    standard_error: float | None = None
    """Of the logarithm of the ratio."""
    noise: float | None = None
    """Smallest relative change that would have been significant at this confidence: 0.006 is 0.6 %."""


def welch(base: Sequence[float], head: Sequence[float], confidence: float = 0.95, step: float = 0.0) -> Welch:
    """Compare positive values of two sides; swapping them inverts `ratio`, `low` and `high` and leaves the rest.

    `step` is the smallest difference the clock can show, in the unit of the values. A value rounded to steps has an error
    of variance step²/12 (uniform within a step) that ties would hide, so each side's variance is at least that.

    Without any variance on either side the result is the limit for a vanishing one: p is 1 for equal constants and 0 for
    different ones, the interval is the ratio itself, the degrees of freedom are those of equal variances. Raises
    ValueError for an empty side and for values that are not positive and finite.
    """
    _check(base, head, step)
    base_mean, base_error = _mean_and_squared_error(base, step)
    head_mean, head_error = _mean_and_squared_error(head, step)
    difference = head_mean - base_mean
    if len(base) < 2 or len(head) < 2:
        return Welch(exp_or_inf(difference))
    squared = base_error + head_error
    error, df = math.sqrt(squared), float(len(base) + len(head) - 2)
    if 0 < squared < math.inf:
        # Shares instead of the squares of the textbook's formula: tiny variances would underflow.
        df = 1 / ((base_error / squared) ** 2 / (len(base) - 1) + (head_error / squared) ** 2 / (len(head) - 1))
    half = critical_t(df, 1 - confidence) * error
    return Welch(
        ratio=exp_or_inf(difference),
        low=exp_or_inf(difference - half),
        high=exp_or_inf(difference + half),
        p=p_of(difference, error, df),
        df=df,
        standard_error=error,
        noise=smallest_significant(error, df, 1 - confidence),
    )


def smallest_significant(standard_error: float, df: float, alpha: float) -> float:
    """The relative change whose two-sided p would be just `alpha`; for the first of m tests under Holm pass alpha / m."""
    return exp_or_inf(critical_t(df, alpha) * standard_error) - 1


def error_with(rounds: int, base: Summary, head: Summary) -> tuple[float, float]:
    """The standard error of the log ratio, with its degrees of freedom, if each side had `rounds` rounds that scatter like
    these."""
    return math.hypot(base.spread, head.spread) / math.sqrt(rounds), 2.0 * (rounds - 1)


def min_detectable(
    standard_error: float, df: float, threshold: float, *, alpha: float = 0.05, floor: float = 0.0, power: float = POWER
) -> float:
    """The smallest true ratio at which the rule "significant, and estimated above 1 + `threshold`" finds a change.

    It finds one if the estimated log ratio exceeds L = max(ln(1 + threshold), ln(1 + floor), critical t · standard error). The
    estimate is taken as normal around the truth with the observed standard error, so the rule succeeds with probability
    `power` at a true log ratio of L + z(power) · standard error. With a power above one half, this is above the threshold for
    any positive standard error, and equal to it for zero. `floor` is the smallest absolute difference that counts, as a share
    of the base.
    """
    from scipy.special import ndtri

    least = max(math.log1p(threshold), math.log1p(floor), critical_t(df, alpha) * standard_error)
    return exp_or_inf(least + float(ndtri(power)) * standard_error)


def _mean_and_squared_error(values: Sequence[float], step: float) -> tuple[float, float]:
    """Mean of the logarithms and the square of its standard error."""
    mean, variance = mean_and_variance([math.log(value) for value in values])
    relative_step = step * exp_or_inf(-mean) if step else 0.0
    return mean, max(variance, relative_step * relative_step / 12) / len(values)


def p_of(difference: float, error: float, df: float) -> float:
    from scipy.special import stdtr

    if difference == 0:
        return 1.0
    if error == 0:
        return 0.0
    return 2 * float(stdtr(df, -abs(difference) / error))


def _check(base: Sequence[float], head: Sequence[float], step: float) -> None:
    for values in (base, head):
        if not values:
            raise ValueError("a side has no values")
        if not all(0 < value < math.inf for value in values):
            raise ValueError("logarithms need positive, finite values")
    if not 0 <= step < math.inf:
        raise ValueError(f"a clock step is zero or more, not {step}")
