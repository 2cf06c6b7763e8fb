"""The statistics that asv keeps for a list of values: median, quartiles, and a 99 % interval of the median.

They follow the definitions of asv_runner 0.3 (`asv_runner.statistics.compute_stats`), so asv's pages and comparisons treat our
files like its own. Verdicts never use them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

TAIL = 0.005
"""Probability on either side of the 99 % interval."""


def quantile(ordered: Sequence[float], q: float) -> float:
    """The quantile of sorted values, interpolated between neighbours (Hyndman and Fan's type 7)."""
    position = (len(ordered) - 1) * q
    below = math.floor(position)
    part = position - below
    if part == 0:
        return ordered[below]
    return (1 - part) * ordered[below] + part * ordered[below + 1]


def median_interval(ordered: Sequence[float]) -> tuple[float, float]:
    """A 99 % interval of the median of sorted values; infinite on both sides for a single one.

    From 8 values on it is between two order statistics (binomial, without assumptions). Below that, no order statistic is far
    enough out, so the tails of the posterior under Laplace-distributed noise are used, but never inside the values.
    """
    n = len(ordered)
    if n == 1:
        return -math.inf, math.inf
    below, outermost = 0.0, -1
    for k in range(n):
        below += math.comb(n, k) / 2**n
        if below > TAIL:
            break
        outermost = k
    if outermost >= 0:
        return ordered[outermost], ordered[n - 1 - outermost]
    # Scaled by a power of two, which is exact: sums and quotients of what a float can hold may be more or less than it can.
    power = math.frexp(max(map(abs, ordered)))[1]
    scaled = [math.ldexp(value, -power) for value in ordered]
    mirrored = [-value for value in reversed(scaled)]
    return _unscaled(_laplace_low(scaled), power), _unscaled(-_laplace_low(mirrored), power)


def _unscaled(value: float, power: int) -> float:
    try:
        return math.ldexp(value, power)
    except OverflowError:
        return math.copysign(math.inf, value)


def _laplace_low(y: Sequence[float]) -> float:
    """The 0.5 % quantile of the posterior p(m | y) ~ S(m)^-n, S(m) = sum |y_i - m|, or the smallest value if that is lower.

    S is linear between neighbours, with slope 2k - n above k values, so the integral over each piece is known. Lengths are in
    units of S at the median, where S is smallest: no power of it can overflow.
    """
    n, nu = len(y), len(y) - 1
    unit = _distances(y, quantile(y, 0.5))
    if unit == 0:
        return y[0]
    s = [_distances(y, value) / unit for value in y]
    left, right = math.pow(s[0], -nu) / (nu * n), math.pow(s[-1], -nu) / (nu * n)
    total = left + right
    for k in range(1, n):
        slope = 2 * k - n
        if slope == 0:
            total += (y[k] - y[k - 1]) / unit * math.pow(s[k], -n)
        else:
            total += (math.pow(s[k - 1], -nu) - math.pow(s[k], -nu)) / (nu * slope)
    wanted = TAIL * total
    if wanted >= left:
        return y[0]
    return y[0] - (math.pow(nu * n * wanted, -1 / nu) - s[0]) * unit / n


def _distances(values: Sequence[float], point: float) -> float:
    return math.fsum(abs(value - point) for value in values)
