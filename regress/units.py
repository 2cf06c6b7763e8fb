"""Numbers as text: one scale a row, three significant digits, and a word for what is no number.

Inside the program a time is seconds and a memory is bytes; only this module scales them. Every function takes any float
(zero, negative, NaN, infinite) or None and never raises. A missing number is "-", and "us" is written with a plain u, so
that a log in any encoding shows it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

__all__ = [
    "MISSING",
    "budget_words",
    "format_ago",
    "format_alike",
    "format_bytes",
    "format_change",
    "format_duration",
    "format_estimate",
    "format_interval",
    "format_number",
    "format_pair",
    "format_percent",
    "format_rate",
    "format_sum",
    "format_time",
    "format_value",
]

MISSING = "-"
MOST_PERCENT = 10000
_GROUPED = 999_999.5
"""From here on the digits of an integer part stand in groups of three."""
_READ = 1e15
"""From here on nobody reads them."""

Scales = tuple[tuple[str, float], ...]

_TIMES: Scales = (("s", 1.0), ("ms", 1e-3), ("us", 1e-6), ("ns", 1e-9))
_SIZES: Scales = (("TiB", 2.0**40), ("GiB", 2.0**30), ("MiB", 2.0**20), ("KiB", 2.0**10), ("B", 1.0))
_ENERGIES: Scales = (("kJ", 1e3), ("J", 1.0), ("mJ", 1e-3), ("uJ", 1e-6))
_PREFIXES: Scales = (("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3), ("", 1.0))


def _prefixed(unit: str) -> Scales:
    """With decimal prefixes, as data sheets have it."""
    return tuple((f"{prefix}{unit}", factor) for prefix, factor in _PREFIXES)


_SCALES = {
    "s": _TIMES,
    "second": _TIMES,
    "seconds": _TIMES,
    "B": _SIZES,
    "byte": _SIZES,
    "bytes": _SIZES,
    "J": _ENERGIES,
    "B/s": _prefixed("B/s"),
    "FLOP/s": _prefixed("FLOP/s"),
    "Hz": _prefixed("Hz"),
    "count": (("", 1.0),),
    "unit": (("", 1.0),),
}
"""Units that are scaled, by the names that asv and our metrics give them; any other unit is printed as it was declared. What
declares none has asv's "unit"."""

_MINUTE, _HOUR, _DAY, _WEEK, _MONTH, _YEAR = 60.0, 3600.0, 86400.0, 604800.0, 2629800.0, 31557600.0


# -- values with a unit --------------------------------------------------------------------------------------------------


def format_number(value: float | None) -> str:
    """A bare number with three significant digits, never fewer than the integer part has: "0.012", "27.4", "1024",
    "1,234,567"; with a power of ten where that is no longer read."""
    if value is None:
        return MISSING
    if not math.isfinite(value):
        return str(value)
    if value == 0:
        return "0"
    if not 1e-3 <= abs(value) < _READ:
        return f"{value:.2e}"
    return f"{value:,.0f}" if abs(value) >= _GROUPED else f"{value:.{_decimals(value)}f}"


def format_time(seconds: float | None) -> str:
    """A time, scaled: "27.4 us", "1.20 s"."""
    return format_value(seconds, "s")


def format_bytes(size: float | None) -> str:
    """A memory size in binary units: "512 MiB", "96 B"."""
    return format_value(size, "B")


def format_value(value: float | None, unit: str) -> str:
    """A value of a metric. Seconds, bytes and the rates of data sheets are scaled, a count stands alone, any other unit stays
    as it was declared."""
    return _scaled(value, _scale_of((value,), unit))


def format_limit(value: float, unit: str) -> str:
    """A limit that somebody chose, without zeros that say nothing: "2 us", "64 KiB", "2.5 ms"."""
    return re.sub(r"(\.\d*?)0+(?= |$)", lambda zeros: zeros[1].rstrip("."), format_value(value, unit))


def format_rate(value: float | None, unit: str) -> str:
    """Something a second with decimal prefixes, as data sheets have it: "1.48 TB/s", "610 TFLOP/s"."""
    return _scaled(value, _fitting((value,), _prefixed(f"{unit}/s")))


def format_pair(first: float | None, second: float | None, unit: str) -> tuple[str, str]:
    """Two values for one row, in one scale, so that the eye can compare them: "980 us", "1015 us"."""
    one, other = format_alike((first, second), unit)
    return one, other


def format_alike(values: Sequence[float | None], unit: str) -> list[str]:
    """Any number of them, in one scale."""
    scale = _scale_of(tuple(values), unit)
    return [_scaled(value, scale) for value in values]


def format_sum(parts: Sequence[float], *wholes: float | None, unit: str) -> list[str]:
    """Parts, then wholes, signed and in one scale with the same digits. The printed parts add up to the first whole: the last
    part takes up what rounding loses."""
    values = [number for number in (*parts, *wholes) if number is not None and math.isfinite(number)]
    largest = max(values, key=abs, default=0.0)
    name, factor = _scale_of((largest,), unit)
    digits = min(9, _decimals(largest / factor)) if largest else 0
    rounded = [None if number is None else round(number / factor, digits) for number in (*parts, *wholes)]
    first = rounded[len(parts)] if wholes and parts else None
    if first is not None:
        rounded[len(parts) - 1] = first - math.fsum(number or 0.0 for number in rounded[: len(parts) - 1])
    signed = (None if number is None else f"{number:+.{digits}f}" for number in rounded)
    return [
        MISSING if text is None else f"{text if text.strip('+-0.') else text[1:]} {name}".rstrip() for text in signed
    ]


def format_estimate(center: float | None, low: float | None, high: float | None, unit: str) -> str:
    """A value and the longer arm of its interval: "27.4 ± 0.2 us". Without an interval, or with an empty one: the value."""
    name, factor = _scale_of((center,), unit)
    if center is None or low is None or high is None or not math.isfinite(center):
        return _scaled(center, (name, factor))
    arm = max(high - center, center - low) / factor
    if not math.isfinite(arm) or arm <= 0:
        return _scaled(center, (name, factor))
    number = format_number(center / factor)
    _, _, fraction = number.partition(".")
    coarse = f"{arm:.{len(fraction)}f}" if "e" not in number and arm < _GROUPED else format_number(arm)
    fine = coarse if coarse.strip("0.") else f"{arm:.1g}"
    return f"{number} ± {fine} {name}".rstrip()


# -- changes -------------------------------------------------------------------------------------------------------------


def format_change(ratio: float | None) -> str:
    """A ratio head/base as a change: "+9.4 %", "-50.0 %", from ten times on "x12.3"; an infinite one is "from zero"."""
    if ratio is None or math.isnan(ratio):
        return MISSING
    if math.isinf(ratio):
        return "from zero"
    if ratio >= 10:
        return f"x{format_number(ratio)}"
    return f"{_signed(ratio)} %"


def format_interval(low: float | None, high: float | None) -> str:
    """An interval of ratios in percent: "+8.8 … +10.1"; from ten times on as `format_change` has it, "x142 … x162"."""
    if low is None or high is None or math.isnan(low) or math.isnan(high):
        return MISSING
    if low >= 10:
        return f"x{format_number(low)} … x{format_number(high)}"
    return f"{_signed(low)} … {_signed(high)}"


def format_percent(share: float | None) -> str:
    """A relative size without a sign, for thresholds, noise and spread: "5 %", "0.6 %", "12.3 %"."""
    if share is None or math.isnan(share):
        return MISSING
    percent = 100 * share
    if percent > MOST_PERCENT:  # of two values that lie far apart; its digits tell nothing
        return f"over {MOST_PERCENT} %"
    if abs(percent) >= 999.5:
        return f"{percent:.0f} %"
    return f"{percent:.2g} %" if abs(percent) < 9.95 else f"{percent:.3g} %"


# -- durations -----------------------------------------------------------------------------------------------------------


def format_duration(seconds: float | None, *, rough: bool = False) -> str:
    """How long something took: "0.4 s", "40 s", "2:51", "1:02:51". `rough`, for estimates: "40 s", "3 min", "2.5 h"."""
    if seconds is None or not math.isfinite(seconds):
        return MISSING
    if abs(seconds) < 9.95 and not rough:
        return f"{seconds:.1f} s"
    if abs(seconds) < 59.5:
        return f"{seconds:.0f} s"
    if rough:
        return _rough(seconds)
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def budget_words(seconds: float) -> str:
    """So much time or a little more, as --budget takes it: "40s", "6m"."""
    tens, minutes = math.ceil(seconds / 10), math.ceil(seconds / 60)
    return f"{10 * tens}s" if tens <= 12 else f"{minutes}m"


def format_ago(seconds: float | None) -> str:
    """How long ago something was: "5 min ago", "2 h ago", "3 days ago". Clocks differ, so a negative age is "in 5 min"."""
    if seconds is None or not math.isfinite(seconds):
        return MISSING
    text = _age(abs(seconds))
    return f"{text} ago" if seconds >= 0 else f"in {text}"


# -- parts ---------------------------------------------------------------------------------------------------------------


def _decimals(value: float) -> int:
    """Digits after the point that show three significant digits; judged after rounding, so that 9.999 is "10.0"."""
    rounded = float(f"{abs(value):.2e}")
    return max(0, 2 - math.floor(math.log10(rounded)))


def _scale_of(values: tuple[float | None, ...], unit: str) -> tuple[str, float]:
    """Name and factor of the scale for these values: the one that suits their geometric mean.

    The mean keeps both ends of an extreme pair readable (1 us beside 1 s is "0.001 ms", "1000 ms"), which neither the
    scale of the smaller nor that of the larger value does.
    """
    return _fitting(values, _SCALES.get(unit, ((unit, 1.0),)))


def _fitting(values: tuple[float | None, ...], scales: Scales) -> tuple[str, float]:
    """The one of these scales that suits the values."""
    sizes = [abs(value) for value in values if value is not None and math.isfinite(value) and value != 0]
    if not sizes:
        return ("B", 1.0) if scales is _SIZES else scales[0]
    middle = math.exp(math.fsum(math.log(size) for size in sizes) / len(sizes))
    for name, factor in scales:
        if float(f"{middle / factor:.2e}") >= 1:
            return name, factor
    return scales[-1]


def _scaled(value: float | None, scale: tuple[str, float]) -> str:
    if value is None:
        return MISSING
    name, factor = scale
    number = value / factor
    whole = name in ("", "B") and math.isfinite(number) and number == round(number) and abs(number) < _GROUPED
    return f"{number:.0f} {name}".rstrip() if whole else f"{format_number(number)} {name}".rstrip()


def _signed(ratio: float) -> str:
    percent = 100 * (ratio - 1)
    if abs(percent) >= _GROUPED:
        return f"{'+' * (percent > 0)}{format_number(percent)}"
    text = f"{percent:+.1f}" if abs(percent) < 99.95 else f"{percent:+.0f}"
    return "0.0" if text in ("+0.0", "-0.0") else text


def _rough(seconds: float) -> str:
    size = abs(seconds)
    if size < 90 * _MINUTE:
        return f"{seconds / _MINUTE:.0f} min"
    if size < 48 * _HOUR:
        return f"{seconds / _HOUR:.2g} h"
    return f"{seconds / _DAY:.0f} days"


def _age(seconds: float) -> str:
    if seconds < 59.5:
        return f"{seconds:.0f} s"
    if seconds < 59.5 * _MINUTE:
        return f"{seconds / _MINUTE:.0f} min"
    if seconds < 47.5 * _HOUR:
        return f"{seconds / _HOUR:.0f} h"
    for limit, size, word in ((2 * _WEEK, _DAY, "days"), (9 * _WEEK, _WEEK, "weeks"), (2 * _YEAR, _MONTH, "months")):
        if seconds < limit:
            return f"{seconds / size:.0f} {word}"
    return f"{seconds / _YEAR:.0f} years"
