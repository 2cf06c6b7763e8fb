"""Change points of one series: values in order, with gaps, to the steps between their levels.

    logarithms      a step is a ratio, whatever the unit
    damping         what lies far from the median of its neighbours is moved to the border of what is usual: F. R. Hampel's
                    filter ("The influence curve and its role in robust estimation", JASA 69, 1974), with the border in place
                    of the median, so that a change of level is not damped away with the outliers; LEAST values in a row that
                    agree are a level and stay, though their neighbours outnumber them
    noise           the median absolute difference of values LAG apart: slow drift and a neighbour's noise count as noise
    candidates      `segmentation`, with a penalty of PENALTY · log n · noise²
    pairs           two values on a level of their own, at the start or in the middle, which would count as outliers: a commit
                    with its fix a day later would never appear. A pair has to be alone in its segment: if other values are as
                    far off, the case scatters, or has two modes
    acceptance      the weakest step is taken out until every one that is left is at least as large as asked for and passes
                    Welch's test between its neighbouring segments (`ttests` has the source), over REACH values at most

The place of a step was chosen to make it large, so the p of its test is no p: ALPHA is what came out well on series whose
steps people have labelled (benchmarks/versus/labelled_steps.py), not an error rate.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from regress.stats.segmentation import cumulated, gains_between, segment
from regress.stats.summary import critical_t, exp_or_inf, mean_and_variance

if TYPE_CHECKING:
    from regress.stats.segmentation import Floats

LEAST = 3
"""Values that a level must last for."""
WINDOW = 3
"""Neighbours on each side that define what is usual."""
USUAL = 3.0
"""Values within this many standard deviations of the neighbours' median are usual."""
LAG, DIFFERENCES = 3, 6
"""Short series have a shorter lag, because as many differences as the lag cross each step, and most must not."""
PENALTY = 10.0
REACH = 30
"""Values on each side that a step is tested and sized on: further away the level may have drifted."""
LEAST_T = 5.0
ALPHA = 1e-3
"""A step needs a t of LEAST_T or, if few values show the noise, one whose p is below ALPHA."""
ALPHA_INTERVAL = 0.05
QUIETEST = 0.1
"""The noise is at least this share of the smallest step asked for: values that repeat exactly have no noise to estimate."""
PLACED = 7.35
"""Possible places of a step: those whose fit is worse by less than this many variances, for 95 %. Source: Y. Eo, J. Morley,
"Likelihood-ratio-based confidence sets for the timing of structural breaks", Quantitative Economics 6 (2015)."""

FAR = 10.0
"""The two are at least this many standard deviations off the values around them. Normal noise never does that, and noise that
jumps that far occasionally seldom does so twice in a row and never again."""
ALIKE = 4.0
"""How far apart the two may be, in the same unit."""
ALONE = 5.0
"""From this distance on, another value counts as off as well."""
AROUND = 6
"""Values of the level around them, at least."""

_TO_DEVIATION = 1.4826
"""A median absolute deviation to a standard deviation, for normal values."""
_EFFICIENCY = 0.37
"""What a value says about the spread through a median absolute deviation, against through the variance."""


@dataclass(frozen=True)
class Step:
    """A change of level. Indices are those of the values given; gaps count."""

    index: int
    """The most likely first value of the new level."""
    earliest: int
    latest: int
    """The first value of the new level is among these, with a confidence of 95 %."""
    before: float
    after: float
    """The levels, in the unit of the values: geometric means of up to REACH damped values."""
    ratio: float
    low: float
    high: float
    """after/before with its 95 % interval, as if the place of the step had been known."""
    brief: bool = False
    """Fewer than LEAST values, the last ones, are at the new level: it may as well be a stray value."""


def changepoints(values: Sequence[float | None], effect: float = 0.02) -> list[Step]:
    """The steps of a series that are at least `effect`, as a relative change (0.02 is 2 %), in order.

    A value that is None, not finite, zero or negative is a gap. Scaling all values changes no place and no ratio; reversing
    them mirrors the places and inverts the ratios, except for a brief step, which exists only at the end. Raises ValueError if
    the effect is not above zero.
    """
    import numpy as np

    if not effect > 0:
        raise ValueError(f"the smallest step is above zero, not {effect}")
    numbers = np.array([math.nan if value is None else value for value in values], dtype=np.float64)
    present = np.flatnonzero(np.isfinite(numbers) & (numbers > 0))
    if len(present) <= LEAST:
        return []
    logs = np.log(numbers[present])
    quietest = QUIETEST * math.log1p(effect)
    usual = damped(logs, quietest)
    noise = max(_noise(usual), quietest)
    levels = _Levels(usual, noise, math.log1p(effect))
    steps = levels.steps(segment(usual, PENALTY * math.log(len(usual)) * noise * noise, LEAST))
    steps += levels.brief(steps[-1].index if steps else 0, logs)
    places = present.tolist()
    return [
        replace(step, index=places[step.index], earliest=places[step.earliest], latest=places[step.latest])
        for step in steps
    ]


def damped(logs: Floats, quietest: float) -> Floats:
    """The values with outliers moved to USUAL standard deviations from the median of their neighbours.

    The standard deviation is that of all distances to such medians, and at least `quietest`. At the ends the neighbours are
    mirrored. LEAST values in a row that are closer to each other than to that median stay where they are.
    """
    import numpy as np

    if len(logs) <= 2 * WINDOW:
        return logs
    padded = np.concatenate((logs[WINDOW:0:-1], logs, logs[-2 : -2 - WINDOW : -1]))
    around = padded[np.arange(len(logs))[:, None] + np.arange(2 * WINDOW + 1)]
    around.partition(WINDOW, axis=1)
    median = around[:, WINDOW]
    border = USUAL * max(_TO_DEVIATION * float(np.median(np.abs(logs - median))), quietest)
    return np.where(_in_a_row(logs) < np.abs(logs - median), logs, np.clip(logs, median - border, median + border))


def _in_a_row(logs: Floats) -> Floats:
    """For each value, the smallest spread of LEAST values in a row that include it."""
    import numpy as np

    runs = np.stack([logs[at : len(logs) - LEAST + 1 + at] for at in range(LEAST)])
    apart = np.full(len(logs) + LEAST - 1, math.inf)
    apart[LEAST - 1 : len(logs)] = runs.max(0) - runs.min(0)
    nearest: Floats = np.min([apart[at : at + len(logs)] for at in range(LEAST)], axis=0)
    return nearest


def _noise(values: Floats) -> float:
    """Standard deviation from value to value, whatever the levels do."""
    import numpy as np

    lag = max(1, min(LAG, len(values) // DIFFERENCES))
    return _TO_DEVIATION * float(np.median(np.abs(values[lag:] - values[:-lag]))) / math.sqrt(2)


@dataclass(frozen=True)
class _Tested:
    """Welch's test at each start: means of the two levels, error and degrees of freedom of their difference."""

    starts: list[int]
    before: Floats
    after: Floats
    error: Floats
    df: Floats


class _Levels:
    """Damped logarithms, their noise, and the smallest step to report."""

    def __init__(self, values: Floats, noise: float, effect: float) -> None:
        self.n, self.noise, self.effect = len(values), noise, effect
        self.df_noise = _EFFICIENCY * (self.n - LAG)
        """Degrees of freedom of the noise, which is the lower limit of any variance."""
        self.center = float(values.mean())
        centered = values - self.center
        self.sums, self.squares = cumulated(centered), cumulated(centered * centered)

    def steps(self, starts: list[int]) -> list[Step]:
        """The steps at these starts, less the weakest one until all that are left pass."""
        import numpy as np
        from scipy.special import stdtrit

        left = list(starts)
        while left:
            tested = self._tested(left)
            size = np.abs(tested.after - tested.before)
            critical = np.maximum(-stdtrit(np.maximum(tested.df, self.df_noise), ALPHA / 2), LEAST_T)
            strengths = np.minimum(size / self.effect, size / tested.error / critical)
            weakest = int(strengths.argmin())
            if strengths[weakest] >= 1:
                return self._sized(tested)
            del left[weakest]
        return []

    def _tested(self, starts: list[int]) -> _Tested:
        """Each start between its neighbours, on REACH values at most. The variance of a side is that of the noise at least."""
        import numpy as np

        at = np.array(starts)
        low = np.maximum(np.array([0, *starts[:-1]]), at - REACH)
        high = np.minimum(np.array([*starts[1:], self.n]), at + REACH)
        sides = []
        for start, end in ((low, at), (at, high)):
            n = end - start
            mean = (self.sums[end] - self.sums[start]) / n
            variance = (self.squares[end] - self.squares[start] - n * mean * mean) / (n - 1)
            sides.append((mean, np.maximum(variance, self.noise**2) / n, n - 1))
        (before, one, one_df), (after, other, other_df) = sides
        squared = one + other
        df = 1 / ((one / squared) ** 2 / one_df + (other / squared) ** 2 / other_df)
        return _Tested(starts, before, after, np.sqrt(squared), df)

    def _sized(self, tested: _Tested) -> list[Step]:
        from scipy.special import stdtrit

        halves = -stdtrit(tested.df, ALPHA_INTERVAL / 2) * tested.error
        ends = [0, *tested.starts, self.n]
        columns = (ends, ends[1:-1], ends[2:], tested.before.tolist(), tested.after.tolist(), halves.tolist())
        return [
            self._step(start, *self._places(low, start, high), before, after, half)
            for low, start, high, before, after, half in zip(*columns, strict=False)
        ]

    def _places(self, low: int, start: int, high: int) -> tuple[int, int]:
        """The range around `start` that may contain the step."""
        import numpy as np

        gains = gains_between(self.sums, low, high, LEAST)
        best = gains[start - low - LEAST]
        # Gains are up to a constant: it is the one that makes the difference what the split leaves of the sum of squares.
        rest = float(self.squares[high] - self.squares[low] - best)
        as_good = np.flatnonzero(gains >= best - PLACED * max(rest / (high - low - 2), self.noise**2))
        return int(as_good[0]) + low + LEAST, int(as_good[-1]) + low + LEAST

    def brief(self, low: int, logs: Floats) -> list[Step]:
        """The step to a new level that only the last one or two values have; `logs` are the values before damping.

        It has to exceed the error of a single value beside a level. Of two values, the one closer to the level counts.
        """
        for count in range(LEAST - 1, 0, -1):
            start = self.n - count
            first = max(low, start - REACH)
            n = start - first
            if n < LEAST:
                continue
            level = float(self.sums[start] - self.sums[first]) / n
            variance = (float(self.squares[start] - self.squares[first]) - n * level * level) / (n - 1)
            error = math.sqrt(max(variance, self.noise**2) * (1 + 1 / n))
            distances = (logs[start:] - self.center - level).tolist()
            same = min(distances) > 0 or max(distances) < 0
            away = min(distances, key=abs) if same else 0.0
            if abs(away) >= max(self.effect, max(critical_t(max(n - 1.0, self.df_noise), ALPHA), LEAST_T) * error):
                half = critical_t(n - 1.0, ALPHA_INTERVAL) * error
                return [self._step(start, start, start, level, level + away, half, brief=True)]
        return []

    def _step(
        self, start: int, earliest: int, latest: int, before: float, after: float, half: float, *, brief: bool = False
    ) -> Step:
        size = after - before
        levels = exp_or_inf(self.center + before), exp_or_inf(self.center + after)
        ratios = exp_or_inf(size), exp_or_inf(size - half), exp_or_inf(size + half)
        return Step(start, earliest, latest, *levels, *ratios, brief)


# -- two neighbouring values on a level of their own ----------------------------------------------------------------------


def pairs(values: Sequence[float], steps: Sequence[Step], effect: float) -> list[tuple[Step, ...]]:
    """Of positive values with these steps, further ones: there and back around each pair in the middle, or from a pair at the
    start. All are `brief`. The level that a pair leaves is off by `effect` or more."""
    ends = [0, *(step.index for step in steps), len(values)]
    logs = [math.log(value) for value in values]
    candidates = (_pair(logs, low, high, math.log1p(effect)) for low, high in itertools.pairwise(ends))
    return [candidate for candidate in candidates if candidate]


def _pair(logs: Sequence[float], low: int, high: int, effect: float) -> tuple[Step, ...]:
    if high - low < AROUND + LEAST - 1:
        return ()
    level = statistics.median(logs[low:high])
    apart = [log - level for log in logs[low:high]]
    spread = max(_TO_DEVIATION * statistics.median(map(abs, apart)), effect / FAR)
    far = [low + at for at, distance in enumerate(apart) if abs(distance) >= ALONE * spread]
    if len(far) != LEAST - 1 or far[1] != far[0] + 1 or not (far[1] < high - 1 and (far[0] > low or low == 0)):
        return ()
    off = [logs[at] - level for at in far]
    if min(map(abs, off)) < FAR * spread or abs(off[0] - off[1]) > ALIKE * spread:
        return ()
    around = [logs[at] for at in range(low, high) if at not in far]
    mean, variance = mean_and_variance(around)
    there = statistics.fmean(logs[at] for at in far)
    half = critical_t(len(around) - 1.0, ALPHA_INTERVAL) * math.sqrt(variance * (1 / len(far) + 1 / len(around)))
    back = _pair_step(far[1] + 1, there, mean, half)
    return (back,) if far[0] == 0 else (_pair_step(far[0], mean, there, half), back)


def _pair_step(at: int, before: float, after: float, half: float) -> Step:
    size = after - before
    levels = exp_or_inf(before), exp_or_inf(after)
    ratios = exp_or_inf(size), exp_or_inf(size - half), exp_or_inf(size + half)
    return Step(at, at, at, *levels, *ratios, brief=True)
