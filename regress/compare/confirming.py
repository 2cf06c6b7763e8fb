"""What a confirmation takes: which comparisons go there, by how many rounds they are decided, and what they are without it."""

from __future__ import annotations

import math
from dataclasses import replace

from regress.model import Comparison, Settings, Verdict
from regress.stats.ttests import min_detectable, smallest_significant

LOOKS = (4, 6, 10, 16, 24)
"""Rounds a side after which a case is looked at."""
SUSPICIOUS = 0.6
"""Of the change that counts: from here up a case goes to confirmation."""
FEWEST, FEWEST_PAIRS, MOST_ROUNDS = 6, 10, 24
"""Rounds a side of a confirmation, or pairs: of ten six count fully, which leaves them five degrees of freedom."""
EXTREME = 10.0
"""From this many changes that count on, a change is confirmed by as many rounds or pairs as a first look takes."""
POWER_AT, POWER_Z = 1.4, 2.4
"""A change of this many thresholds is estimated this many standard errors above the threshold."""
INTERVAL_Z = 2.0
"""Standard errors from an estimate to the end of its interval, with as many rounds as a noisy case needs."""
BESIDE = 10
"""Pairs up to which a case is measured on only because something that gates nothing is undecided."""


def confirming_rounds(comparison: Comparison) -> int:
    """Rounds a side that confirming the comparison takes, by its spread and the change that counts."""
    fewest = FEWEST if comparison.pairs is None else FEWEST_PAIRS
    if comparison.ratio is not None and far_off(comparison) >= EXTREME:
        fewest = LOOKS[0]
    return max(fewest, min(MOST_ROUNDS, _rounds_with_power(comparison)))


def _rounds_with_power(comparison: Comparison) -> int:
    """Rounds a side that tell the change from the smallest one that counts."""
    counts_from = comparison.counts_from or comparison.threshold
    apart = math.log((1 + POWER_AT * counts_from) / (1 + counts_from))
    if comparison.ratio is not None:  # of what is far beyond, a third of the way would be enough
        apart = max(apart, (abs(math.log(comparison.ratio)) - math.log1p(counts_from)) / 3)
    return math.ceil(2 * (POWER_Z * comparison.spread / apart) ** 2)


def deciding_rounds(comparison: Comparison) -> int:
    """Rounds a side after which the interval of the estimate would hold no change that counts; of an estimate near one, those
    that confirm it."""
    assert comparison.ratio is not None
    if is_suspicious(comparison):
        return confirming_rounds(comparison)
    room = math.log1p(comparison.counts_from or comparison.threshold) - abs(math.log(comparison.ratio))
    return max(FEWEST, math.ceil(2 * (INTERVAL_Z * comparison.spread / room) ** 2))


def far_off(comparison: Comparison) -> float:
    """How far the ratio is from unchanged, as a multiple of the smallest change that counts."""
    assert comparison.ratio is not None
    return abs(math.log(comparison.ratio)) / math.log1p(comparison.counts_from or comparison.threshold)


def is_suspicious(comparison: Comparison) -> bool:
    assert comparison.ratio is not None
    least = 1 + SUSPICIOUS * (comparison.counts_from or comparison.threshold)
    return not 1 / least <= comparison.ratio <= least


def is_soon_decided(comparison: Comparison) -> bool:
    """Whether what gates nothing would be decided by a few more pairs."""
    beside = not comparison.gates and comparison.pairs is not None and comparison.verdict is Verdict.UNDECIDED
    return beside and deciding_rounds(comparison) <= BESIDE


def is_worth_confirming(comparison: Comparison) -> bool:
    """Whether what gates nothing may be a change (pairs are few once what gates is settled), and a confirmation could tell."""
    may_be = comparison.pairs is not None and is_suspicious(comparison)
    return comparison.verdict.traits.claims or (may_be and _rounds_with_power(comparison) <= FEWEST_PAIRS)


def screened(comparison: Comparison, level: float, settings: Settings) -> Comparison:
    """A comparison of the screening: it claims nothing that rests on a test. How fine the check could see is how fine its
    confirmation would have seen, at the level that one more case would have been tested with."""
    if comparison.p is None:
        return comparison
    reasons = comparison.reasons
    if comparison.verdict.traits.claims:
        reasons = ("large, but not confirmed before measuring ended", *reasons)
    if not comparison.gates:
        claims = comparison.verdict.traits.claims
        return replace(comparison, verdict=Verdict.UNDECIDED, reasons=reasons) if claims else comparison
    rounds = confirming_rounds(comparison)
    error, freedom = comparison.spread * math.sqrt(2 / rounds), 2 * rounds - 2
    if comparison.pairs is not None:
        level, freedom = level * settings.paired_alpha / settings.alpha, rounds - 1
    noise = smallest_significant(error, freedom, level)
    counts_from = comparison.counts_from or comparison.threshold
    detectable = min_detectable(error, freedom, comparison.threshold, alpha=level, floor=counts_from)
    told = replace(comparison, noise=noise, min_detectable=detectable)
    if not comparison.verdict.traits.claims and comparison.verdict is not Verdict.UNDECIDED:
        return told
    regressed = comparison.verdict is Verdict.REGRESSED
    hint = f"about {deciding_rounds(comparison)} rounds a side would decide"
    return replace(told, verdict=Verdict.UNDECIDED, reasons=(*reasons, hint), unconfirmed=regressed)


def confirmed(comparison: Comparison) -> Comparison:
    tested = comparison.p is not None and comparison.verdict.traits.claims
    return replace(comparison, reasons=("confirmed", *comparison.reasons)) if tested else comparison
