"""When there are enough samples, and what a round's value is: functions of lists of floats."""

from __future__ import annotations

import math
import statistics
from typing import Dict, List, Sequence

from .wire import HOST_METRICS, Protocol

RELATIVE_HALF_WIDTH = 0.005
"""More samples are taken only while the 95 % interval of the median is wider than this to either side."""
FEWEST = 5
FEWEST_LONG = 3
LEAST_FOR_INTERVAL = 6
"""The median is between the smallest and the largest of n values with a probability of 1 - 2 / 2^n."""
LONG_CALL_S = 0.5
KNOWN_TO, KNOWN_BESIDE = 0.007, 0.01
"""Sufficient standard error of a pair's difference, or of a round's value: pairs differ by as much. The second one is for
times measured in addition to device time, which do not gate."""
TIMES_LONGER, TIMES_BESIDE = 4, 8
"""How many times its windows are taken at most while that is not so."""
PATIENCE = 0.8
"""No sample is begun that may not end within this share of the case's timeout."""
COARSE_STEPS = 20
"""Below this number of clock steps a median jumps from step to step, and a trimmed mean is more precise."""


def enough(samples: Sequence[float], protocol: Protocol) -> bool:
    """Whether a round can stop sampling. `samples` are seconds a call, `protocol.calls` of them in each window."""
    if not samples:
        return False
    spent_s = sum(samples) * protocol.calls
    fewest = FEWEST_LONG if statistics.median(samples) > LONG_CALL_S else FEWEST
    fewest = min(fewest, protocol.samples_min)
    if len(samples) >= protocol.samples_max or (spent_s >= protocol.window_budget_s and len(samples) >= fewest):
        return True
    return len(samples) >= protocol.samples_min and _half_width(samples) <= RELATIVE_HALF_WIDTH


def _half_width(samples: Sequence[float]) -> float:
    """Half the 95 % interval of the median over the median: order statistics by the normal approximation of the binomial
    (Conover, Practical Nonparametric Statistics, section 3.2). Infinite if there are too few values for a 95 % interval."""
    if len(samples) < LEAST_FOR_INTERVAL:
        return math.inf
    ordered = sorted(samples)
    middle, reach = len(ordered) / 2, 1.96 * math.sqrt(len(ordered)) / 2
    low = ordered[max(0, math.floor(middle - reach))]
    high = ordered[min(len(ordered) - 1, math.ceil(middle + reach) - 1)]
    center = statistics.median(ordered)
    return (high - low) / 2 / center if center > 0 else 0.0


def windows_enough(protocol: Protocol, windows: int, more: int, error: float) -> bool:
    """Whether this many short windows are enough, whose value has that standard error; else `more` of them are taken."""
    beside = protocol.metric not in HOST_METRICS
    longest = min((TIMES_BESIDE if beside else TIMES_LONGER) * protocol.windows, protocol.samples_max)
    known_to = KNOWN_BESIDE if beside else KNOWN_TO
    return error <= known_to or windows + more > max(protocol.windows, longest)


def error_of_median(values: Sequence[float]) -> float:
    """Standard error of the median, by order statistics: half of its 68 % interval (Conover, Practical Nonparametric
    Statistics, section 3.2). For fewer than four values it is half their range."""
    if not values:
        return math.inf
    ordered, count = sorted(values), len(values)
    reach = math.sqrt(count) / 2 if count >= 4 else count
    low, high = max(0, int(count / 2 - reach)), min(count - 1, int(count / 2 + reach))
    return (ordered[high] - ordered[low]) / 2


def round_value(samples: Sequence[float], step_s: float = 0.0, calls: int = 1) -> float:
    """The value of a round: the median, or where the clock is coarse the mean without the outer fifth at either end."""
    center = statistics.median(samples)
    if center * calls >= COARSE_STEPS * step_s:
        return center
    ordered = sorted(samples)
    cut = len(ordered) // 5
    return statistics.fmean(ordered[cut : len(ordered) - cut])


def lane_value(samples: Sequence[float], lanes: Sequence[int], step_s: float = 0.0, calls: int = 1) -> float:
    """The value of a round whose samples were taken on several lanes: the mean of the lanes' values. A median of all would
    jump between two levels where the lanes have two."""
    return statistics.fmean(round_value(group, step_s, calls) for group in _by_lane(samples, lanes).values())


def centred(samples: Sequence[float], lanes: Sequence[int]) -> List[float]:
    """The samples with every lane brought to the mean level: what varies within the lanes."""
    if not samples:
        return []
    groups = {lane: statistics.median(group) for lane, group in _by_lane(samples, lanes).items()}
    level = statistics.fmean(groups.values())
    return [sample * level / groups[lane] for sample, lane in zip(samples, lanes)]


def _by_lane(samples: Sequence[float], lanes: Sequence[int]) -> Dict[int, List[float]]:
    groups: Dict[int, List[float]] = {}
    for sample, lane in zip(samples, lanes):
        groups.setdefault(lane, []).append(sample)
    return groups


def valid(sample: float) -> bool:
    """Whether a device time can be one; drivers have been seen to give negative ones."""
    return math.isfinite(sample) and sample > 0
