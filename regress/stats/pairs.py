"""Two neighbouring values on their own level, at the start or in the middle of a series.

`changepoints` requires three values for a level, and calls one or two at the end brief. Elsewhere, two would count as outliers
of the level around them, however far off they are, and a commit with its fix a day later would never appear. So this module
looks for a pair that is alone in its segment: if other values are as far off, the case scatters, or has two modes.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Sequence

from regress.stats.changepoints import LEAST, Step
from regress.stats.summary import critical_t, exp_or_inf, mean_and_variance

FAR = 10.0
"""The two are at least this many standard deviations off the values around them. Normal noise never does that, and noise that
jumps that far occasionally seldom does so twice in a row and never again."""
ALIKE = 4.0
"""How far apart the two may be, in the same unit."""
ALONE = 5.0
"""From this distance on, another value counts as off as well."""
AROUND = 6
"""Values of the level around them, at least."""
ALPHA_INTERVAL = 0.05
_TO_DEVIATION = 1.4826


def pairs(values: Sequence[float], steps: Sequence[Step], effect: float) -> list[tuple[Step, ...]]:
    """Of positive values with these steps, further ones: there and back around each pair in the middle, or from a pair at the
    start. All are `brief`. The level that a pair leaves is off by `effect` or more."""
    ends = [0, *(each.index for each in steps), len(values)]
    logs = [math.log(value) for value in values]
    found = (_pair(logs, low, high, math.log1p(effect)) for low, high in itertools.pairwise(ends))
    return [each for each in found if each]


def _pair(logs: Sequence[float], low: int, high: int, effect: float) -> tuple[Step, ...]:
    if high - low < AROUND + LEAST - 1:
        return ()
    level = statistics.median(logs[low:high])
    apart = [each - level for each in logs[low:high]]
    spread = max(_TO_DEVIATION * statistics.median(map(abs, apart)), effect / FAR)
    far = [low + at for at, each in enumerate(apart) if abs(each) >= ALONE * spread]
    if len(far) != LEAST - 1 or far[1] != far[0] + 1 or not (far[1] < high - 1 and (far[0] > low or low == 0)):
        return ()
    off = [logs[at] - level for at in far]
    if min(map(abs, off)) < FAR * spread or abs(off[0] - off[1]) > ALIKE * spread:
        return ()
    around = [logs[at] for at in range(low, high) if at not in far]
    mean, variance = mean_and_variance(around)
    there = statistics.fmean(logs[at] for at in far)
    half = critical_t(len(around) - 1.0, ALPHA_INTERVAL) * math.sqrt(variance * (1 / len(far) + 1 / len(around)))
    back = _step(far[1] + 1, there, mean, half)
    return (back,) if far[0] == 0 else (_step(far[0], mean, there, half), back)


def _step(at: int, before: float, after: float, half: float) -> Step:
    size = after - before
    levels = exp_or_inf(before), exp_or_inf(after)
    ratios = exp_or_inf(size), exp_or_inf(size - half), exp_or_inf(size + half)
    return Step(at, at, at, *levels, *ratios, brief=True)
