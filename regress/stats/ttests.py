"""t-tests on logarithms: the ratio of two sides with interval and p, by round values or by pairs; p values adjusted together.

Welch: B. L. Welch, "The generalization of 'Student's' problem when several different population variances are involved",
Biometrika 34 (1947), with Satterthwaite's degrees of freedom. On logarithms the difference of means is the logarithm of
the ratio of geometric means, and the test does not depend on the unit.

Pairs: the two sides of a pair were measured in turn, so a disturbance affects both, and the difference of their logarithms is
free of it. Welch's test on the values of each side would ignore that; on values centred by their pair it claims 17.6 % at a
nominal 5 %, because the halves of a pair mirror each other (six pairs, simulated). Occasionally a process has an unlucky memory
layout, and its pair is off by 10 % while all others agree to 0.2 %. So from five pairs on, a fifth of the differences is
trimmed at each end. Sources: "Student", "The probable error of a mean", Biometrika 6 (1908); J. W. Tukey and D. H. McLaughlin,
"Less vulnerable confidence and significance procedures for location based on a single sample", Sankhya A 25 (1963).
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from regress.stats.summary import Summary, critical_t, exp_or_inf, mean_and_variance

POWER = 0.9
"""A change counts as detectable if it would be found with this probability."""
TRIMMED = 0.2
"""Share of the differences that is left out at either end."""
OF_FEW = {1: 1.0, 2: 1.196, 3: 1.495, 4: 1.363, 5: 1.206, 6: 1.2, 7: 1.14, 8: 1.129, 9: 1.107}
"""Differences -> what the estimate of their spread is multiplied by."""
NORMAL = 1.4826
"""Standard deviation of normal values over the median of their distances from their median."""


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
    return _tested(difference, error, df, confidence)


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


def _tested(difference: float, error: float, df: float, confidence: float) -> Welch:
    """The t test of a difference of logarithms with this standard error."""
    half = critical_t(df, 1 - confidence) * error
    return Welch(
        ratio=exp_or_inf(difference),
        low=exp_or_inf(difference - half),
        high=exp_or_inf(difference + half),
        p=_p_of(difference, error, df),
        df=df,
        standard_error=error,
        noise=smallest_significant(error, df, 1 - confidence),
    )


def _p_of(difference: float, error: float, df: float) -> float:
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


def paired(differences: Sequence[float], confidence: float = 0.95) -> Welch:
    """The ratio that the pairs show: `differences` are logarithms of head over base. The fields are those of Welch's test.

    Without any variance p is 1 for no difference and 0 for one. Raises ValueError for no pairs and for values that are not
    finite.
    """
    if not differences or not all(math.isfinite(difference) for difference in differences):
        raise ValueError("pairs need finite differences, one at least")
    ordered, count = sorted(differences), len(differences)
    cut = int(TRIMMED * count)
    kept = ordered[cut : count - cut]
    mean, _ = mean_and_variance(kept)
    if count < 2:
        return Welch(exp_or_inf(mean))
    # What was trimmed counts as the outermost that was not.
    _, variance = mean_and_variance([min(max(difference, kept[0]), kept[-1]) for difference in ordered])
    error, df = math.sqrt(variance * count) / len(kept), float(len(kept) - 1)
    return _tested(mean, error, df, confidence)


def pair_spread(differences: Sequence[float]) -> float:
    """Standard deviation of the differences, as far as those go that are not far off: by the median of their distances from
    their median, which is too small for few by a known factor (C. Croux and P. J. Rousseeuw, "Time-efficient algorithms for two
    highly robust estimators of scale", 1992)."""
    middle, count = statistics.median(differences), len(differences)
    factor = OF_FEW.get(count, count / (count - 0.8))
    return factor * NORMAL * statistics.median(abs(difference - middle) for difference in differences)


def holm(ps: Sequence[float]) -> list[float]:
    """Holm's adjusted p values, in the order given: comparing each with alpha keeps any false claim below alpha.

    Valid for tests that depend on each other, as cases of one machine do. Source: S. Holm, "A simple sequentially rejective
    multiple test procedure", Scandinavian Journal of Statistics 6 (1979). Raises ValueError for a p outside 0 to 1.
    """
    if not all(0 <= p <= 1 for p in ps):
        raise ValueError("a p value lies between 0 and 1")
    adjusted = [0.0] * len(ps)
    highest = 0.0
    for rank, index in enumerate(sorted(range(len(ps)), key=ps.__getitem__)):
        highest = max(highest, min(1.0, (len(ps) - rank) * ps[index]))
        adjusted[index] = highest
    return adjusted
