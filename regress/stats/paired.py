"""A t-test of paired differences: logarithms of ratios in, one a pair; their mean ratio with interval and p out.

The two sides of a pair were measured in turn, so a disturbance affects both, and the difference of their logarithms is free of
it. Welch's test on the values of each side would ignore that; on values centred by their pair it claims 17.6 % at a nominal 5
%, because the halves of a pair mirror each other (six pairs, simulated).

Occasionally a process has an unlucky memory layout, and its pair is off by 10 % while all others agree to 0.2 %. So from five
pairs on, a fifth of the differences is trimmed at each end. Sources: "Student", "The probable error of a mean", Biometrika 6
(1908); J. W. Tukey and D. H. McLaughlin, "Less vulnerable confidence and significance procedures for location based on a
single sample", Sankhya A 25 (1963).
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from regress.stats.summary import critical_t, exp_or_inf, mean_and_variance
from regress.stats.welch import Welch, p_of, smallest_significant

TRIMMED = 0.2
"""Share of the differences that is left out at either end."""
OF_FEW = {1: 1.0, 2: 1.196, 3: 1.495, 4: 1.363, 5: 1.206, 6: 1.2, 7: 1.14, 8: 1.129, 9: 1.107}
"""Differences -> what the estimate of their spread is multiplied by."""
NORMAL = 1.4826
"""Standard deviation of normal values over the median of their distances from their median."""


def paired(differences: Sequence[float], confidence: float = 0.95) -> Welch:
    """The ratio that the pairs show: `differences` are logarithms of head over base. The fields are those of Welch's test.

    Without any variance p is 1 for no difference and 0 for one. Raises ValueError for no pairs and for values that are not
    finite.
    """
    if not differences or not all(math.isfinite(each) for each in differences):
        raise ValueError("pairs need finite differences, one at least")
    ordered, count = sorted(differences), len(differences)
    cut = int(TRIMMED * count)
    kept = ordered[cut : count - cut]
    mean, _ = mean_and_variance(kept)
    if count < 2:
        return Welch(exp_or_inf(mean))
    # What was trimmed counts as the outermost that was not.
    _, variance = mean_and_variance([min(max(each, kept[0]), kept[-1]) for each in ordered])
    error, df = math.sqrt(variance * count) / len(kept), float(len(kept) - 1)
    half = critical_t(df, 1 - confidence) * error
    return Welch(
        ratio=exp_or_inf(mean),
        low=exp_or_inf(mean - half),
        high=exp_or_inf(mean + half),
        p=p_of(mean, error, df),
        df=df,
        standard_error=error,
        noise=smallest_significant(error, df, 1 - confidence),
    )


def pair_spread(differences: Sequence[float]) -> float:
    """Standard deviation of the differences, as far as those go that are not far off: by the median of their distances from
    their median, which is too small for few by a known factor (C. Croux and P. J. Rousseeuw, "Time-efficient algorithms for two
    highly robust estimators of scale", 1992)."""
    middle, count = statistics.median(differences), len(differences)
    factor = OF_FEW.get(count, count / (count - 0.8))
    return factor * NORMAL * statistics.median(abs(each - middle) for each in differences)
