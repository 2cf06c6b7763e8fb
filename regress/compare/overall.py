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
    gating = [each for each in comparisons if each.gates]
    counted = _most_serious(gating).values()
    speaking = [each for each in gating if each.acknowledged is None or each.acknowledged.kind != "quarantine"]
    decided, asked = _covered(counted)
    most_undecided = 2 * decided < asked and not quick
    codes = ranked(_exit_codes(gating, strict, problems, most_undecided))
    detectable = [each.min_detectable for each in speaking if each.min_detectable is not None]
    return Overall(
        exit_codes=codes,
        counts=_counted([each.verdict for each in counted]),
        acknowledged=_counted([each.verdict for each in counted if not each.alarms]),
        cases=len(counted),
        covered=(decided, asked) if most_undecided or any(each.unreached for each in gating) else None,
        geomean=_geomean(speaking, settings.confidence),
        noise_floor=_noise_floor(speaking),
        min_detectable=statistics.median(detectable) - 1 if detectable else None,
    )


def finer(comparisons: Iterable[Comparison], settings: Settings) -> tuple[int, float] | None:
    """How many rounds a side a run would take, and the median of the smallest regression, as a relative change, that those
    could have confirmed; None where there were as many."""
    tested = [
        each
        for each in comparisons
        if each.gates and each.p is not None and each.pairs is None and each.sessions is None
    ]
    sides = [(each, each.base, each.head) for each in tested if each.base is not None and each.head is not None]
    rounds, level = settings.run_rounds, settings.alpha / max(1, len(tested))
    few = [each for each in sides if min(each[1].n, each[2].n) < rounds]
    if 2 * len(few) <= len(sides):
        return None
    found = []
    for each, base, head in sides:
        error, freedom = error_with(rounds, base, head)
        found.append(min_detectable(error, freedom, each.counts_from or each.threshold, alpha=level))
    return rounds, statistics.median(found) - 1


def _counted(verdicts: Collection[Verdict]) -> dict[str, int]:
    ranked = sorted(Verdict, key=lambda each: each.traits.severity)
    return {str(verdict): n for verdict in ranked if (n := sum(each is verdict for each in verdicts))}


def _covered(counted: Iterable[Comparison]) -> tuple[int, int]:
    """How many cases are decided, of those that were to be compared and nobody has acknowledged."""
    asked = [each for each in counted if each.alarms and each.verdict.traits.compared]
    return sum(each.verdict is not Verdict.UNDECIDED for each in asked), len(asked)


def most_serious(gating: Iterable[Comparison]) -> dict[Case, Verdict]:
    """The verdict that counts of each case."""
    return {case: each.verdict for case, each in _most_serious(gating).items()}


def _most_serious(gating: Iterable[Comparison]) -> dict[Case, Comparison]:
    """The comparison that counts of each case: of equals one that nobody has acknowledged."""
    found: dict[Case, Comparison] = {}
    for each in gating:
        found[each.case] = min(found.get(each.case, each), each, key=_seriousness)
    return found


def _seriousness(each: Comparison) -> tuple[int, bool]:
    return each.verdict.traits.severity, not each.alarms


def _exit_codes(
    gating: Sequence[Comparison], strict: bool, problems: Sequence[SuiteProblem], most_undecided: bool
) -> Iterator[Exit]:
    codes = {each.exit_code(strict) for each in gating}
    on_head_only = any(each.fails_on_head and each.base_failure is None for each in gating)
    if not any(each.verdict.traits.compared and not each.unreached for each in gating) and not on_head_only:
        yield Exit.NOTHING
    yield from codes
    if any(problem.fatal for problem in problems):
        yield Exit.FAILED
    if most_undecided:
        yield Exit.UNDECIDED


def _geomean(gating: Iterable[Comparison], confidence: float) -> tuple[float, float, float, int] | None:
    """Over the time ratios, one a case: a case has one metric of time that gates."""
    ratios = {
        each.case: each.ratio
        for each in gating
        if each.metric.kind == "time" and each.ratio is not None and 0 < each.ratio < math.inf
    }
    if not ratios:
        return None
    mean = geomean(list(ratios.values()), confidence)
    return mean.center, mean.low, mean.high, mean.n


def _noise_floor(gating: Iterable[Comparison]) -> tuple[float, float, str] | None:
    """Median and largest of the smallest changes that would have been significant, and the case of the largest."""
    noise = [(each.noise, str(each.case)) for each in gating if each.noise is not None]
    if not noise:
        return None
    largest, case = max(noise)
    return statistics.median(value for value, _ in noise), largest, case


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


def spreads_of(comparisons: Iterable[Comparison]) -> dict[str, Spread]:
    """What was seen of each case's rounds, by `str` of the case: the largest spread of what gates and is tested."""
    found: dict[str, Spread] = {}
    for each in comparisons:
        if each.gates and each.p is not None and each.base is not None and each.head is not None:
            seen = Spread(each.spread, _freedom(each))
            found[str(each.case)] = max(found.get(str(each.case), seen), seen, key=lambda spread: spread.sd)
    return found


def _freedom(comparison: Comparison) -> int:
    """Degrees of freedom of its spread."""
    if comparison.pairs is not None:
        return comparison.pairs.n - 1
    return sum(each.n - 1 for each in (comparison.base, comparison.head) if each is not None)
