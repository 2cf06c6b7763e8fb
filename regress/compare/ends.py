"""The ends of a bisection: whether a case differs between them, in which metric, and by how much.

    EndsSteps looks after 6, 12 and 24 rounds a side, until it is sure that there is a change, and how large, or none
    contrast  one metric of the rounds of both, judged once

The rule is that of a check, but for the threshold: who looks for a commit has seen the change already, so what is small counts.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal
from typing import Protocol as Interface

from regress.compare.judge import compare
from regress.model import Batch, Benchmark, Case, Comparison, Contrast, Round, Settings, Verdict

LOOKS = (6, 12, 24)
"""Rounds a side after which the ends are looked at. A look is tested at its share of alpha."""
FINE = 5.0
"""Standard errors of the change that make it known well enough to be looked for."""
VERIFYING, FEWEST, MOST_ROUNDS = 4.0, 6, 24
"""Standard errors that the step is to have when it is verified, and the rounds a side that this may take."""
SHARE = 0.25
"""Of the step, as logarithm: what is less is not it."""

Kind = Literal["noisy", "exact", "failing"]


class EndsMeasured(Interface):
    """What has been measured until now."""

    @property
    def benchmarks(self) -> Mapping[str, Mapping[str, Benchmark]]: ...

    @property
    def cases(self) -> Mapping[str, Sequence[Case]]: ...

    @property
    def rounds(self) -> Sequence[Round]: ...


@dataclass(frozen=True)
class Pair:
    """One round of each side, one after the other; a case that fails is 1, one that works 0."""

    base: float
    head: float


class EndsSteps:
    """The steps of measuring both ends, until `end_s` of the monotonic clock. `metric`: the one that is looked for; empty for
    the one that gates and is worst."""

    def __init__(self, settings: Settings, metric: str = "", end_s: float = math.inf) -> None:
        self.end_s = end_s
        self.enough = False
        """Whether nothing more is to be measured."""
        self._settings, self._metric = settings, metric
        self._asked = 0

    def next(self, measured: EndsMeasured) -> Batch | None:
        cases = dict.fromkeys(case for own in measured.cases.values() for case in own)
        if not self._asked:
            self._asked = LOOKS[0]
            return Batch(dict.fromkeys(cases, LOOKS[0]), title="both ends")
        looks = [look for look in LOOKS if look > self._asked]
        self.enough = not looks or self._is_enough(measured)
        if self.enough:
            return None
        before, self._asked = self._asked, looks[0]
        return Batch(dict.fromkeys(cases, self._asked - before), before, "both ends")

    def comparison(self, measured: EndsMeasured) -> Comparison | None:
        """The metric that is looked for, base against head; None where nothing was measured of it."""
        level = replace(self._settings, alpha=self._settings.alpha / len(LOOKS))
        every = judged(measured, level, self._settings.change_threshold)
        if self._metric:
            every = [
                comparison for comparison in every if comparison.metric.name == self._metric or _stopped(comparison)
            ]
        else:
            every = [comparison for comparison in every if comparison.gates]
        return max(every, key=_worst, default=None)

    def others(self, measured: EndsMeasured) -> list[str]:
        """What else of the case changed and gates, in words: it may be another commit's doing."""
        chosen = self.comparison(measured)
        every = judged(measured, self._settings, self._settings.change_threshold)
        return [
            f"{comparison.metric.name} {comparison.verdict} too (--metric {comparison.metric.name})"
            for comparison in every
            if comparison.gates
            and comparison.verdict.traits.claims
            and chosen is not None
            and comparison.metric.name != chosen.metric.name
        ]

    def _is_enough(self, measured: EndsMeasured) -> bool:
        comparison = self.comparison(measured)
        if comparison is None or comparison.p is None or comparison.verdict is Verdict.UNCHANGED:
            return True
        assert comparison.ratio is not None
        pairs = differences(pairs_of(measured.rounds, comparison.metric.name), "noisy")
        if not comparison.verdict.traits.claims or len(pairs) < 2:
            return False
        mean = math.fsum(pairs) / len(pairs)
        error = math.sqrt(math.fsum((pair - mean) ** 2 for pair in pairs) / (len(pairs) - 1) / len(pairs))
        return abs(mean) >= FINE * error


def _stopped(comparison: Comparison) -> bool:
    """Whether it gives a number on the base and none on the head, because it fails or is skipped there."""
    return comparison.base_failure is None and comparison.head_failure is not None


def _worst(comparison: Comparison) -> tuple[bool, bool, int, float]:
    """What gives no number is worse than what changed, and the larger of two changes is worse."""
    traits = comparison.verdict.traits
    size = abs(math.log(comparison.ratio)) if comparison.ratio else math.inf if comparison.ratio is None else 0.0
    return traits.listed, traits.claims, -traits.severity, size if traits.claims else 0.0


def judged(measured: EndsMeasured, settings: Settings, least: float) -> list[Comparison]:
    """Base against head by the rule of a check, where `least` is the smallest relative change that counts."""
    lowered = replace(settings, time_threshold=least, memory_threshold=least, host_threshold=least, thresholds={})
    sides = [[round for round in measured.rounds if round.side == side] for side in ("base", "head")]
    base, head = (_without_thresholds(measured.benchmarks.get(side, {})) for side in ("base", "head"))
    return list(compare(sides[0], sides[1], head, lowered, base))


def _without_thresholds(benchmarks: Mapping[str, Benchmark]) -> dict[str, Benchmark]:
    return {
        name: replace(
            benchmark, declared={key: value for key, value in benchmark.declared.items() if key != "threshold"}
        )
        for name, benchmark in benchmarks.items()
    }


def kind_of(comparison: Comparison) -> Kind | None:
    """How to search for the change between the ends; None if there is no change."""
    if _stopped(comparison):
        return "failing"
    if not comparison.verdict.traits.claims:
        return None
    return "exact" if comparison.exact else "noisy"


def contrast(comparison: Comparison, more: Iterable[str] = ()) -> Contrast:
    """What a bisection shows of the comparison, with more reasons."""
    base, head = comparison.base, comparison.head
    failure = comparison.head_failure
    said = (failure.message,) if failure is not None else ()
    reasons = [reason for reason in comparison.reasons if not any(text in reason for text in said)]
    return Contrast(
        comparison.metric,
        comparison.verdict,
        base.center if base is not None else None,
        head.center if head is not None else None,
        comparison.ratio,
        comparison.low,
        comparison.high,
        comparison.exact,
        min((summary.n for summary in (base, head) if summary is not None), default=0),
        (*said, *reasons, *more),
    )


def verifying_rounds(sd: float, size: float, again: int = 0) -> int:
    """Rounds a side that verifying such a step takes, where `sd` is the deviation of a pair's difference; more of them after
    `again` times that did not confirm it."""
    return min(MOST_ROUNDS, (1 + again) * max(FEWEST, math.ceil((VERIFYING * sd / size) ** 2)))


def pairs_of(rounds: Iterable[Round], metric: str) -> list[Pair]:
    """The rounds that both sides have a value of, by their number."""
    sides: dict[str, dict[int, float]] = {"base": {}, "head": {}}
    for round in rounds:
        value = round.values.get(metric)
        if round.failure is None and value is not None and 0 <= value.value < math.inf:
            sides[round.side][round.order] = value.value
    return [Pair(sides["base"][order], sides["head"][order]) for order in sorted(sides["base"].keys() & sides["head"])]


def differences(pairs: Iterable[Pair], kind: Kind, change: float = 1.0) -> list[float]:
    """What each pair says: the logarithm of its ratio; of an exact value the part of the `change` between the ends; of a case
    that fails 1."""
    if kind == "noisy":
        return [math.log(pair.head / pair.base) for pair in pairs if pair.head > 0 and pair.base > 0]
    return [(pair.head - pair.base) / change for pair in pairs]
