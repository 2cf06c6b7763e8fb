"""The comparisons of a side with itself (A/A): no change is possible, so every one that is claimed is a false alarm."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence

from regress.compare.overall import Overall, most_serious
from regress.model import Case, Comparison, Fineness, Round, SelfCheck, Verdict


def summed_up(comparisons: Sequence[Comparison], summed: Overall, commit: str, date: float) -> SelfCheck:
    """What the comparisons came to. A case with a false alarm is nothing else."""
    gating = [each for each in comparisons if each.gates]
    verdicts = most_serious(gating)
    alarmed = {each.case for each in gating if each.verdict.traits.claims}
    others = Counter(verdict for case, verdict in verdicts.items() if case not in alarmed)
    return SelfCheck(
        date=date,
        commit=commit,
        cases=tuple(str(case) for case in verdicts),
        false_alarms=len(alarmed),
        undecided=others[Verdict.UNDECIDED],
        unchanged=others[Verdict.UNCHANGED],
        noise_floor=_finite(summed.noise_floor[0]) if summed.noise_floor is not None else None,
        min_detectable=_finite(summed.min_detectable),
    )


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def fineness(comparisons: Iterable[Comparison], rounds: Iterable[Round]) -> tuple[Fineness, ...]:
    """How fine each case was measured, the noisiest first: in the metrics that were tested, or else in an exact one."""
    taken = Counter(Case(each.name, tuple(each.params)) for each in rounds if each.side == "head")
    gating = [each for each in comparisons if each.gates]
    tested = [each for each in gating if each.noise is not None]
    known = {each.case for each in tested}
    exact = {each.case: each for each in gating if each.exact and each.case not in known}
    rows = [_row(each, taken[each.case]) for each in (*tested, *exact.values())]
    return tuple(sorted(rows, key=lambda each: -(each.noise or 0.0)))


def _spread(comparison: Comparison) -> float | None:
    """Of rounds, or of pairs; what is exact has none."""
    if comparison.exact:
        return None
    return comparison.spread if comparison.pairs is None else comparison.pairs.spread


def _row(comparison: Comparison, rounds: int) -> Fineness:
    least = comparison.min_detectable
    return Fineness(
        case=comparison.case,
        metric=comparison.metric,
        verdict=comparison.verdict,
        rounds=rounds,
        spread=_spread(comparison),
        noise=comparison.noise,
        min_detectable=None if least is None else least - 1,
    )
