"""Student's t-test of paired differences: logarithms of ratios in, one a pair; their mean ratio with interval and p out.

The two sides of a pair were measured in turn, so what disturbs one disturbs the other, and the difference of their logarithms
is free of it. Welch's test on the values of either side would throw that away; on values that are centred by their pair it
claims 17.6 % at a nominal 5 %, because the halves of a pair mirror each other (six pairs, simulated). Source: "Student", "The
probable error of a mean", Biometrika 6 (1908).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from regress.stats.summary import critical_t, exp_or_inf, mean_and_variance
from regress.stats.welch import Welch, p_of, smallest_significant


def paired(differences: Sequence[float], confidence: float = 0.95) -> Welch:
    """What pairs say of the ratio: `differences` are logarithms, of the head over the base. The fields are those of Welch's
    test.

    Without any variance p is 1 for no difference and 0 for one. Raises ValueError for no pairs and for what is not finite.
    """
    if not differences or not all(math.isfinite(each) for each in differences):
        raise ValueError("pairs need finite differences, one at least")
    mean, variance = mean_and_variance(differences)
    if len(differences) < 2:
        return Welch(exp_or_inf(mean))
    error, df = math.sqrt(variance / len(differences)), float(len(differences) - 1)
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
