"""Where the level of a sequence of numbers changes: the piecewise constant fit with the least penalised cost.

The cost of a fit is the sum of squared distances to the means of its segments, and a penalty a segment. Optimal partitioning
(B. Jackson et al., "An algorithm for optimal partitioning of data on an interval", IEEE Signal Processing Letters 12, 2005)
and PELT (R. Killick, P. Fearnhead, I. A. Eckley, "Optimal detection of changepoints with a linear computational cost", JASA
107, 2012) minimise it over all places. PELT drops no place while there is no change, and so takes n² steps for the usual
series, which has none. Here places are proposed by seeded intervals (S. Kovács, P. Bühlmann, H. Li, A. Munk, "Seeded binary
segmentation", Biometrika 110, 2023): of each of about 4n intervals of all lengths, the place that splits it best, if splitting
it there gains enough. That takes n log n steps, in arrays. Optimal partitioning among those few is exact; then the best place
of each change between its neighbours joins them, until nothing moves.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]
    Places = npt.NDArray[np.intp]

SHRINK = math.sqrt(0.5)
"""Length of the next shorter seeded intervals."""
GAIN = 0.25
"""A place is a candidate if it gains this share of a penalty: an interval need not span all of the two levels."""
SETTLED = 5
"""Rounds of improving places; two are the rule."""


def segment(values: Floats, penalty: float, least: int) -> list[int]:
    """Starts of the segments after the first, in order; each segment has `least` values or more. Empty for one segment.

    `penalty` is above zero, in the square of the unit of the values. Reversed values give mirrored starts, up to ties.
    """
    import numpy as np

    sums = cumulated(values - values.mean())
    candidates = _candidates(sums, least, GAIN * penalty)
    starts: list[int] = []
    for _ in range(SETTLED if len(candidates) else 0):
        starts = _partition(sums, candidates, penalty, least)
        better = _relocated(sums, starts, least)
        if better == starts:
            break
        candidates = np.union1d(starts, better).astype(np.intp)
    return starts


def _candidates(sums: Floats, least: int, gain: float) -> Places:
    """The best split of each seeded interval whose splitting takes at least `gain` off the sum of squares."""
    import numpy as np

    places = []
    for intervals in _intervals(len(sums) - 1, least):
        first = sums[intervals.starts]
        # CUSUM: its square is what the split takes off the sum of squares
        cusum = sums[intervals.places]
        cusum -= first[:, None]
        cusum -= (sums[intervals.starts + intervals.length] - first)[:, None] * intervals.share
        cusum *= intervals.scale
        np.abs(cusum, out=cusum)
        best = cusum.argmax(1)
        places.append((intervals.starts + best + least)[cusum[intervals.rows, best] ** 2 >= gain])
    return np.unique(np.concatenate(places)) if places else np.zeros(0, np.intp)


@dataclass(frozen=True)
class Intervals:
    """The seeded intervals of one length."""

    length: int
    starts: Places
    rows: Places
    places: Places
    """For each interval, in its own row, where it may be split."""
    share: Floats
    """The part left of such a place, as a share of the length."""
    scale: Floats


@lru_cache(maxsize=8)
def _intervals(n: int, least: int) -> list[Intervals]:
    """All seeded intervals for n values. Of one length they start about half a length apart, the same from both ends."""
    import numpy as np

    every, exact = [], float(n)
    while exact >= 2 * least:
        length = round(exact)
        half = math.ceil((n - length) / length) + 1
        ahead = np.arange(half) * (n - length) // (2 * half - 1)
        starts = np.concatenate((ahead, n - length - ahead))
        left = np.arange(least, length - least + 1)
        scale = np.sqrt(length / (left * (length - left)))
        every.append(Intervals(length, starts, np.arange(2 * half), starts[:, None] + left, left / length, scale))
        exact *= SHRINK
    return every


def _partition(sums: Floats, candidates: Places, penalty: float, least: int) -> list[int]:
    """The candidates at which the least penalised cost has its segments start: dynamic programming over all of them.

    The sum of squared values is left out of every cost; it is the same for all fits.
    """
    import numpy as np

    places = np.concatenate(([0], candidates, [len(sums) - 1]))
    lengths = places[:, None] - places
    costs = sums[places][:, None] - sums[places]
    costs *= -costs / np.maximum(lengths, 1)
    costs[lengths < least] = math.inf
    total, came_from = np.zeros(len(places)), [0] * len(places)
    for place in range(1, len(places)):
        until = total[:place] + costs[place, :place]
        came_from[place] = int(until.argmin())
        total[place] = until[came_from[place]] + penalty
    starts, place = [], came_from[-1]
    while place > 0:
        starts.append(int(places[place]))
        place = came_from[place]
    return starts[::-1]


def _relocated(sums: Floats, starts: list[int], least: int) -> list[int]:
    """The best place of each start while its neighbours stay."""
    ends = [0, *starts, len(sums) - 1]
    return [
        low + least + int(gains_between(sums, low, high, least).argmax())
        for low, high in zip(ends, ends[2:], strict=False)
    ]


def cumulated(values: Floats) -> Floats:
    """Sums of the first 0, 1, 2, ... values."""
    import numpy as np

    sums = np.zeros(len(values) + 1)
    np.cumsum(values, out=sums[1:])
    return sums


def gains_between(sums: Floats, low: int, high: int, least: int) -> Floats:
    """What splitting low ... high at each place takes off the sum of squares, up to the same constant for all places.

    `sums` are cumulative from zero; the places are those that leave `least` values or more on both sides.
    """
    import numpy as np

    places = np.arange(low + least, high - least + 1)
    left, right = sums[places] - sums[low], sums[high] - sums[places]
    gains: Floats = left * left / (places - low) + right * right / (high - places)
    return gains
