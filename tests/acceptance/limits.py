"""What has to hold: every limit of the acceptance table, and how a value is held against it."""

from __future__ import annotations

from dataclasses import dataclass

PROCESSES = 20
"""Fresh processes between which the spread is taken."""
FEW_PROCESSES = 6
"""The same where several tools are compared."""


@dataclass(frozen=True)
class Class:
    """Operations of about one duration. `spread` is the most that the median over them of the coefficient of variation
    between processes may be; where it is not `required`, it is an aim and reported."""

    title: str
    from_s: float
    spread: float
    required: bool


CLASSES = (
    Class("from 45 us", 45e-6, 0.003, required=True),
    Class("10 to 45 us", 10e-6, 0.008, required=True),
    Class("5 to 10 us", 5e-6, 0.015, required=False),
    Class("under 5 us", 0.0, 0.025, required=False),
)

AGREE_S = 2e-6
AGREE_SHARE = 0.03
"""A device time agrees with the profiler's where it is within either."""

SPIN_S = 1e-3
SPIN_SHARE = 0.01

CONTINUITY_AT_S = (15e-6, 20e-6, 25e-6)
CONTINUITY_S = 1e-6
CONTINUITY_SHARE = 0.05
"""Where a case changes from many calls a window to one, it must not look like a regression."""

SLEEP_S = 20e-6
LONGER = 1.07
LONGER_SEEN = (1.05, 1.09)
"""Between these a kernel made 7 % longer has to come out."""
LEFT_SHARE = 0.01
"""A device time that a change leaves alone moves by less."""


def class_of(seconds: float) -> Class:
    """The class that an operation of this device time belongs to."""
    return next(length for length in CLASSES if seconds >= length.from_s)


def agrees(ours_s: float, busy_s: float, span_s: float) -> bool:
    """Whether a device time agrees with the profiler's: not less than its kernels took, not more than the span from the first
    kernel's start to the last one's end, give or take 2 us or 3 %.

    With one kernel both are its time. With several, the truth lies between: tracing lengthens the gaps between kernels.
    """
    return busy_s - allowance_s(busy_s) <= ours_s <= span_s + allowance_s(span_s)


def allowance_s(seconds: float) -> float:
    """How far a device time may be from this one of the profiler's."""
    return max(AGREE_S, AGREE_SHARE * seconds)


def continuous(one_s: float, many_s: float) -> bool:
    """Whether one call a window and many calls a window give the same time of a call."""
    return abs(one_s - many_s) <= max(CONTINUITY_S, CONTINUITY_SHARE * one_s)
