"""Adjusting p values for the number of tests made in one run."""

from __future__ import annotations

from collections.abc import Sequence


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
