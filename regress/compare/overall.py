"""The comparisons of a run, summed up: exit codes, the word of the last line, counts, and how fine the run could see. Of a side
with itself (A/A) no change is possible, so every one that is claimed is a false alarm.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from regress.errors import Exit, State, ranked
from regress.model import Case, Comparison, Fineness, Round, SelfCheck, Settings, Spread, SuiteProblem, Verdict
from regress.stats.summary import geomean
from regress.stats.ttests import error_with, min_detectable


@dataclass(frozen=True)
class Overall:
    """What a run came to; the fields are those of Report."""

    exit_codes: tuple[Exit, ...]
    counts: dict[str, int]
    acknowledged: dict[str, int]
    cases: int
    covered: tuple[int, int] | None
    geomean: tuple[float, float, float, int] | None
    noise_floor: tuple[float, float, str] | None
    min_detectable: float | None

    @property
    def state(self) -> State:
        return self.exit_codes[0].word


def overall(
    comparisons: Sequence[Comparison],
    settings: Settings,
    *,
    strict: bool = False,
    problems: Sequence[SuiteProblem] = (),
    quick: bool = False,
) -> Overall:
    """Sum up the comparisons that gate; what does not gate changes neither a code nor a count.

    Exit codes are listed as they rank, the process exits with the first: 5 nothing was compared, 1 regressed, 3 something
    fails on head only or a benchmark file cannot be imported, 4 undecided where it counts. `strict` adds failures on both
    sides to 3 and every undecided case to 4; a critical case that is undecided always counts, and so does what looked worse
    and could not be confirmed. Where most cases are undecided nothing has passed, but in a `quick` look, which decides
    nothing. What is acknowledged is counted and changes no code; what is in quarantine says nothing of the run either.
    """
    gating = [comparison for comparison in comparisons if comparison.gates]
    counted = _most_serious(gating).values()
    speaking = [
        comparison
        for comparison in gating
        if comparison.acknowledged is None or comparison.acknowledged.kind != "quarantine"
    ]
    decided, asked = _covered(counted)
    most_undecided = 2 * decided < asked and not quick
    codes = ranked(_exit_codes(gating, strict, problems, most_undecided))
    detectable = [comparison.min_detectable for comparison in speaking if comparison.min_detectable is not None]
    return Overall(
        exit_codes=codes,
        counts=_counted([comparison.verdict for comparison in counted]),
        acknowledged=_counted([comparison.verdict for comparison in counted if not comparison.alarms]),
        cases=len(counted),
        covered=(decided, asked) if most_undecided or any(comparison.unreached for comparison in gating) else None,
        geomean=_geomean(speaking, settings.confidence),
        noise_floor=_noise_floor(speaking),
        min_detectable=statistics.median(detectable) - 1 if detectable else None,
    )


def finer(comparisons: Iterable[Comparison], settings: Settings) -> tuple[int, float] | None:
    """How many rounds a side a run would take, and the median of the smallest regression, as a relative change, that those
    could have confirmed; None where there were as many."""
    tested = [
        comparison
        for comparison in comparisons
        if comparison.gates and comparison.p is not None and comparison.pairs is None and comparison.sessions is None
    ]
    sides = [
        (comparison, comparison.base, comparison.head)
        for comparison in tested
        if comparison.base is not None and comparison.head is not None
    ]
    rounds, level = settings.run_rounds, settings.alpha / max(1, len(tested))
    few = [side for side in sides if min(side[1].n, side[2].n) < rounds]
    if 2 * len(few) <= len(sides):
        return None
    detectable = []
    for side, base, head in sides:
        error, freedom = error_with(rounds, base, head)
        detectable.append(min_detectable(error, freedom, side.counts_from or side.threshold, alpha=level))
    return rounds, statistics.median(detectable) - 1


def _counted(verdicts: Collection[Verdict]) -> dict[str, int]:
    ranked = sorted(Verdict, key=lambda verdict: verdict.traits.severity)
    return {str(verdict): n for verdict in ranked if (n := sum(other is verdict for other in verdicts))}


def _covered(counted: Iterable[Comparison]) -> tuple[int, int]:
    """How many cases are decided, of those that were to be compared and nobody has acknowledged."""
    asked = [comparison for comparison in counted if comparison.alarms and comparison.verdict.traits.compared]
    return sum(comparison.verdict is not Verdict.UNDECIDED for comparison in asked), len(asked)


def most_serious(gating: Iterable[Comparison]) -> dict[Case, Verdict]:
    """The most serious verdict of each case."""
    return {case: comparison.verdict for case, comparison in _most_serious(gating).items()}


def _most_serious(gating: Iterable[Comparison]) -> dict[Case, Comparison]:
    """The most serious comparison of each case; of several alike, one that nobody has acknowledged."""
    worst: dict[Case, Comparison] = {}
    for comparison in gating:
        worst[comparison.case] = min(worst.get(comparison.case, comparison), comparison, key=_seriousness)
    return worst


def _seriousness(comparison: Comparison) -> tuple[int, bool]:
    return comparison.verdict.traits.severity, not comparison.alarms


def _exit_codes(
    gating: Sequence[Comparison], strict: bool, problems: Sequence[SuiteProblem], most_undecided: bool
) -> Iterator[Exit]:
    codes = {comparison.exit_code(strict) for comparison in gating}
    on_head_only = any(comparison.fails_on_head and comparison.base_failure is None for comparison in gating)
    if (
        not any(comparison.verdict.traits.compared and not comparison.unreached for comparison in gating)
        and not on_head_only
    ):
        yield Exit.NOTHING
    yield from codes
    if any(problem.fatal for problem in problems):
        yield Exit.FAILED
    if most_undecided:
        yield Exit.UNDECIDED


def _geomean(gating: Iterable[Comparison], confidence: float) -> tuple[float, float, float, int] | None:
    """Over the time ratios, one a case: a case has one metric of time that gates."""
    ratios = {
        comparison.case: comparison.ratio
        for comparison in gating
        if comparison.metric.kind == "time" and comparison.ratio is not None and 0 < comparison.ratio < math.inf
    }
    if not ratios:
        return None
    mean = geomean(list(ratios.values()), confidence)
    return mean.center, mean.low, mean.high, mean.n


def _noise_floor(gating: Iterable[Comparison]) -> tuple[float, float, str] | None:
    """Median and largest of the smallest changes that would have been significant, and the case of the largest."""
    noise = [(comparison.noise, str(comparison.case)) for comparison in gating if comparison.noise is not None]
    if not noise:
        return None
    largest, case = max(noise)
    return statistics.median(value for value, _ in noise), largest, case


def summed_up(comparisons: Sequence[Comparison], summed: Overall, commit: str, date: float) -> SelfCheck:
    """What the comparisons came to. A case with a false alarm is nothing else."""
    gating = [comparison for comparison in comparisons if comparison.gates]
    verdicts = most_serious(gating)
    alarmed = {comparison.case for comparison in gating if comparison.verdict.traits.claims}
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
    taken = Counter(Case.of(round) for round in rounds if round.side == "head")
    gating = [comparison for comparison in comparisons if comparison.gates]
    tested = [comparison for comparison in gating if comparison.noise is not None]
    known = {comparison.case for comparison in tested}
    exact = {comparison.case: comparison for comparison in gating if comparison.exact and comparison.case not in known}
    rows = [_row(comparison, taken[comparison.case]) for comparison in (*tested, *exact.values())]
    return tuple(sorted(rows, key=lambda row: -(row.noise or 0.0)))


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


def spreads_of(comparisons: Iterable[Comparison]) -> dict[str, Spread]:
    """What was seen of each case's rounds, by `str` of the case: the largest spread of what gates and is tested."""
    spreads: dict[str, Spread] = {}
    for comparison in comparisons:
        if (
            comparison.gates
            and comparison.p is not None
            and comparison.base is not None
            and comparison.head is not None
        ):
            seen = Spread(comparison.spread, _freedom(comparison))
            spreads[str(comparison.case)] = max(
                spreads.get(str(comparison.case), seen), seen, key=lambda spread: spread.sd
            )
    return spreads


def _freedom(comparison: Comparison) -> int:
    """Degrees of freedom of its spread."""
    if comparison.pairs is not None:
        return comparison.pairs.n - 1
    return sum(summary.n - 1 for summary in (comparison.base, comparison.head) if summary is not None)
