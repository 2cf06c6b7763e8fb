"""The interval of each value of a series, as its chart draws it.

Two rounds say little of their spread: an interval from them alone is as wide as they happen to lie apart. Where a commit has
fewer than OWN rounds, the spread is that of the rounds around their commit's mean over the whole series, pooled. That of a
corrected value is what its pairs tell.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from regress.model import Corrected, Series
from regress.stats.summary import critical_t, mean_and_variance, summarize

OWN = 4
"""Rounds that are enough for an interval of their own."""
LEAST_DF = 4
"""Degrees of freedom of a pooled spread that is worth using."""
ALPHA = 0.05
NORMAL = 1.96
"""Standard errors to either end of that interval, where the error is known."""

Span = tuple[float, float]


def spans_of(series: Series) -> list[Span]:
    """Ends of the 95 % interval of each value; where nothing tells them, the least and the largest round."""
    pooled, corrected = _pooled(series), series.corrected
    return [
        _span_of(corrected[at]) if at in corrected else _span(rounds, interval, pooled)
        for at, rounds, interval in zip(series.at, series.rounds, series.intervals, strict=True)
        if rounds
    ]


def _span_of(corrected: Corrected) -> Span:
    reach = math.exp(NORMAL * corrected.error)
    return corrected.value / reach, corrected.value * reach


def _pooled(series: Series) -> float | None:
    """Half of the interval of one round, on logarithms; None where too few commits have several rounds."""
    squares, df = 0.0, 0
    for rounds in series.rounds:
        if len(rounds) > 1 and min(rounds) > 0:
            _, variance = mean_and_variance([math.log(value) for value in rounds])
            squares, df = squares + variance * (len(rounds) - 1), df + len(rounds) - 1
    return critical_t(df, ALPHA) * math.sqrt(squares / df) if df >= LEAST_DF else None


def _span(rounds: Sequence[float], recorded: Span | None, pooled: float | None) -> Span:
    if recorded is not None:  # by asv, which keeps no rounds
        return recorded
    low, high = min(rounds), max(rounds)
    if len(rounds) >= OWN:
        summary = summarize(rounds)
        low, high = summary.low, summary.high
    elif pooled is not None and low > 0:
        center, _ = mean_and_variance([math.log(value) for value in rounds])
        half = pooled / math.sqrt(len(rounds))
        low, high = math.exp(center - half), math.exp(center + half)
    return (low, high) if math.isfinite(low) and math.isfinite(high) else (min(rounds), max(rounds))
