"""Rounds of two sides to comparisons with verdicts.

A case is compared on the metric it is about, which gates, as its peak memory does; every other metric that both sides have is
compared too and gates nothing. Where one side lost its device time, wall time stands in for it on both. Nothing is turned into
a ratio that was not measured alike on both sides.

The steps: `pairing` finds the rounds of a case on both sides, `evidence` sorts out what cannot be tested, the tests of all
cases are adjusted together (Holm), and `rule` gives the verdicts. What gates is one family, and each metric that does not is
one of its own, so that what is only shown costs neither the gate nor another metric anything.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from regress.compare.evidence import Evidence, Values
from regress.compare.pairing import Benchmarks, Suites, unlike
from regress.compare.rule import Rule, declared_threshold
from regress.model import (
    METRICS,
    Benchmark,
    Case,
    Comparison,
    Failure,
    Metric,
    Round,
    Settings,
    Summary,
    Verdict,
    metric_of,
)
from regress.stats.multiple import holm
from regress.stats.summary import summarize
from regress.stats.welch import min_detectable, smallest_significant, welch

ALSO_GATING = frozenset({"peak_memory"})
"""Metrics that gate beside the one that a case is about."""


def compare(
    base: Sequence[Round],
    head: Sequence[Round],
    benchmarks: Benchmarks | None,
    settings: Settings,
    base_benchmarks: Benchmarks | None = None,
) -> tuple[Comparison, ...]:
    """Every case and metric of the rounds, base against head, ordered by case; the order of the rounds does not matter.

    `benchmarks` are the definitions of head and, without `base_benchmarks`, of base too. A case with rounds on one side only
    is `new` or `gone`, unless `base_benchmarks` is given and the other side's definitions have the case: then it was only not
    measured there, and is undecided. Parameters are matched by value, and by name where their order differs.

    `noise` and `min_detectable` of a comparison are those of the rule in force, that is at the level which Holm demands of
    the first of its tests; `min_detectable` is a factor to the worse, whichever direction that is.
    """
    suites = Suites(benchmarks or {}, base_benchmarks)
    drafts: list[_Draft] = []
    for case, base_rounds, head_rounds in suites.pair(base, head):
        base_side = Evidence.of("base", base_rounds, settings.good_rounds)
        head_side = Evidence.of("head", head_rounds, settings.good_rounds)
        drafts += _drafts(_Subject(case, base_side, head_side, suites, settings))
    return _judged(drafts, settings)


@dataclass(frozen=True)
class _Test:
    """What the verdict on a test needs beside the p values of the others."""

    ratio: float
    low: float
    high: float
    p: float
    df: float
    standard_error: float
    base: Summary
    head: Summary


@dataclass(frozen=True)
class _Draft:
    """A comparison on the way: one with a `test` gets its verdict once the p values of all are known."""

    comparison: Comparison
    rule: Rule
    notes: tuple[str, ...] = ()
    """Shown after the reasons of the verdict."""
    test: _Test | None = None

    def settled(self, verdict: Verdict, *reasons: str, **changes: Any) -> _Draft:
        """With a verdict, its reasons (empty ones do not count) and further fields of the comparison."""
        told = self.comparison.reasons + tuple(filter(None, reasons))
        return replace(self, comparison=replace(self.comparison, verdict=verdict, reasons=told, **changes))

    def noted(self, *notes: str) -> _Draft:
        return replace(self, notes=self.notes + tuple(filter(None, notes)))

    def done(self) -> Comparison:
        return replace(self.comparison, reasons=self.comparison.reasons + self.notes)


@dataclass(frozen=True)
class _Subject:
    """A case with the evidence of both sides, and what its benchmark declares about deciding."""

    case: Case
    base: Evidence
    head: Evidence
    suites: Suites
    settings: Settings

    @property
    def benchmark(self) -> Benchmark | None:
        return self.suites.definition(self.case)

    @property
    def own(self) -> str:
        """The metric the case is about, whether it has a value or not."""
        for each in (*self.head.rounds, *self.base.rounds):
            if each.protocol is not None:
                return each.protocol.metric
        if self.benchmark is not None:
            return self.benchmark.metric
        present = self.base.metrics() | self.head.metrics()
        return next((name for name in METRICS if name in present), "value")

    def clock_step_s(self, metric: str) -> float:
        """The coarser one of both sides' clock steps, a call; 0.0 for all but the metric that clock has timed."""
        return max(self.base.clock_step_s(), self.head.clock_step_s()) if metric == self.own else 0.0

    def start(self, name: str, base: Values | None, head: Values | None, *, primary: bool = True) -> _Draft:
        """The comparison of a metric before it is decided. A declared threshold is about the primary metric only."""
        present = [each for each in (base, head) if each is not None]
        metric = self._metric(name, present)
        rule = Rule.of(metric, self.settings, self.clock_step_s(name))
        threshold, complaint = declared_threshold(self.benchmark) if primary else (None, "")
        if threshold is not None:
            rule = replace(rule, threshold=threshold)
        confidence = self.settings.confidence
        comparison = Comparison(
            case=self.case,
            metric=metric,
            verdict=Verdict.UNDECIDED,
            base=summarize(base.values, confidence) if base is not None and base.values else None,
            head=summarize(head.values, confidence) if head is not None and head.values else None,
            gates=primary or name in ALSO_GATING,
            threshold=rule.threshold,
            critical=self._declared("critical") is True,
        )
        return _Draft(comparison, rule).noted(complaint, *(note for each in present for note in each.notes))

    def start_untested(self) -> _Draft:
        """The one comparison of a case whose metrics are not compared."""
        base, head = (side.values_of(self.own, every_round=False) for side in (self.base, self.head))
        return self.start(self.own, base, head)

    def _metric(self, name: str, values: Sequence[Values]) -> Metric:
        units = sorted({unit for each in values for unit in each.units})
        unit = units[0] if units else self.benchmark.unit if self.benchmark is not None else ""
        better = self._declared("better")
        exact = bool(values) and all(each.exact for each in values)
        return metric_of(name, unit, better if isinstance(better, str) else None, exact)

    def _declared(self, name: str) -> object:
        return self.benchmark.declared.get(name) if self.benchmark is not None else None


# -- one case ------------------------------------------------------------------------------------------------------------


def _drafts(subject: _Subject) -> Iterator[_Draft]:
    """The comparisons of a case: one that says why nothing can be tested, or one a metric."""
    base, head = subject.base, subject.head
    if not base.rounds or not head.rounds:
        yield _one_sided(subject)
        return
    doubts = (*base.notes, *head.notes, *base.flags(), *head.flags())
    if base.failure is not None or head.failure is not None:
        yield _without_numbers(subject.start_untested().noted(*doubts), base.failure, head.failure)
        return
    if differences := [*subject.suites.differences(subject.case), *unlike(base, head)]:
        yield subject.start_untested().settled(Verdict.INCOMPARABLE, *differences).noted(*doubts)
        return
    primary, why = _primary(subject)
    yield _metric_draft(subject, primary, why, primary=True).noted(*doubts)
    both, either = base.metrics() & head.metrics(), base.metrics() | head.metrics()
    # A device time that only one side has is what `why` speaks of.
    others = (both | (either & ALSO_GATING)) - {primary, subject.own}
    for name in sorted(others, key=lambda each: (each not in ALSO_GATING, _rank(each), each)):
        yield _metric_draft(subject, name, primary=False)


def _one_sided(subject: _Subject) -> _Draft:
    """A case with rounds on one side only."""
    missing, present = ("base", subject.head) if not subject.base.rounds else ("head", subject.base)
    draft = subject.start_untested().noted(*present.notes, *present.flags())
    if params := subject.suites.params_differ(subject.case):
        return draft.settled(Verdict.INCOMPARABLE, params)
    if subject.suites.is_defined(subject.case, missing):
        return draft.settled(Verdict.UNDECIDED, f"not measured on the {missing}")
    if missing == "head":
        return draft.settled(Verdict.GONE, base_failure=present.failure)
    if present.failure is not None:
        return _without_numbers(draft, None, present.failure, "new")
    return draft.settled(Verdict.NEW)


def _without_numbers(draft: _Draft, base: Failure | None, head: Failure | None, *reasons: str) -> _Draft:
    """What a failure on one side or on both comes to."""
    skipped = all(each.kind == "skipped" for each in (base, head) if each is not None)
    verdict = Verdict.SKIPPED if skipped else Verdict.FAILED
    return draft.settled(verdict, *reasons, base_failure=base, head_failure=head)


def _primary(subject: _Subject) -> tuple[str, str]:
    """The metric that speaks for the case, and why it is not the one the case is about."""
    base, head = subject.base.has("gpu_time"), subject.head.has("gpu_time")
    if subject.own != "gpu_time" or (base and head):
        return subject.own, ""
    if base:
        return "wall_time", "became synchronous: gpu_time exists only on the base"
    if head:
        return "wall_time", "no longer synchronous: gpu_time exists only on the head"
    return "wall_time", "gpu_time exists on neither side"


def _rank(metric: str) -> int:
    return list(METRICS).index(metric) if metric in METRICS else len(METRICS)


# -- one metric ----------------------------------------------------------------------------------------------------------


def _metric_draft(subject: _Subject, name: str, why: str = "", *, primary: bool) -> _Draft:
    """The comparison of one metric of a case that was measured alike on both sides."""
    base, head = (side.values_of(name, every_round=primary) for side in (subject.base, subject.head))
    draft = subject.start(name, base, head, primary=primary).settled(Verdict.UNDECIDED, why)
    if base is None or head is None:
        return draft.settled(Verdict.INCOMPARABLE, f"{name} exists only on the {'head' if base is None else 'base'}")
    if base.failure is not None or head.failure is not None:
        return _without_numbers(draft, base.failure, head.failure)
    if len(base.units | head.units) > 1:
        one, other = (" and ".join(sorted(each.units)) for each in (base, head))
        return draft.settled(Verdict.INCOMPARABLE, f"unlike unit: {one} on the base, {other} on the head")
    if base.exact and head.exact:
        torn = [side for side, each in (("base", base), ("head", head)) if len(set(each.values)) > 1]
        if not torn:
            return _exact(draft, base.values[0], head.values[0])
        draft = draft.noted(f"exact values differ between rounds of {' and '.join(torn)}, so they were tested")
    elif base.exact or head.exact:
        draft = draft.noted(f"exact only on the {'base' if base.exact else 'head'}, so it was tested")
    base_draws, head_draws = _draws(subject, draft, base.values), _draws(subject, draft, head.values)
    if len(base_draws) < len(base.values) or len(head_draws) < len(head.values):
        draft = draft.noted("every round of a side repeats the value of its one setup_cache")
    return _tested(subject, draft, base_draws, head_draws)


def _draws(subject: _Subject, draft: _Draft, values: tuple[float, ...]) -> tuple[float, ...]:
    """The values that are draws of their own: rounds share a setup_cache, and what was tracked in it is one value."""
    shared = subject.benchmark is not None and subject.benchmark.setup_cache_key is not None
    if draft.comparison.metric.kind == "tracked" and shared and len(set(values)) == 1:
        return values[:1]
    return values


def _exact(draft: _Draft, base: float, head: float) -> _Draft:
    """Two values that repeat exactly: no test could add to them."""
    if base == 0 or head == 0:
        return draft.settled(*draft.rule.decide_zero(summarize([base]), summarize([head]), exact=True), exact=True)
    ratio = head / base
    verdict, reason = draft.rule.decide(ratio, ratio, ratio, significant=True, difference=head - base, spread=0.0)
    return draft.settled(verdict, reason, exact=True, ratio=ratio, low=ratio, high=ratio)


def _tested(subject: _Subject, draft: _Draft, base: tuple[float, ...], head: tuple[float, ...]) -> _Draft:
    """Welch's test where there can be one, else the reason why there is none."""
    settings = subject.settings
    sides = summarize(base, settings.confidence), summarize(head, settings.confidence)
    draft = draft.settled(Verdict.UNDECIDED, base=sides[0], head=sides[1])
    if min(*base, *head) == 0:
        return draft.settled(*draft.rule.decide_zero(*sides, exact=False))
    found = welch(base, head, settings.confidence, subject.clock_step_s(draft.comparison.metric.name))
    if found.low is None or found.high is None or found.p is None or found.df is None or found.standard_error is None:
        single = [f"the {side}" for side, values in (("base", base), ("head", head)) if len(values) < 2]
        return draft.settled(Verdict.UNDECIDED, f"n = 1 on {' and '.join(single)}", ratio=found.ratio)
    test = _Test(found.ratio, found.low, found.high, found.p, found.df, found.standard_error, *sides)
    return replace(draft, test=test)


# -- all of them ---------------------------------------------------------------------------------------------------------


def _judged(drafts: Sequence[_Draft], settings: Settings) -> tuple[Comparison, ...]:
    """The comparisons with their verdicts, once every p of a family is known."""
    done = list(drafts)
    families: dict[str, dict[int, _Test]] = {}
    for index, each in enumerate(drafts):
        if each.test is not None:
            family = "gates" if each.comparison.gates else each.comparison.metric.name
            families.setdefault(family, {})[index] = each.test
    for tests in families.values():
        adjusted = holm([test.p for test in tests.values()])
        for (index, test), p_adjusted in zip(tests.items(), adjusted, strict=True):
            done[index] = _decided(drafts[index], test, p_adjusted, settings.alpha, len(tests))
    return tuple(each.done() for each in done)


def _decided(draft: _Draft, test: _Test, p_adjusted: float, alpha: float, tests: int) -> _Draft:
    """The verdict of one test out of so many."""
    rule, significant = draft.rule, p_adjusted < alpha
    verdict, reason = rule.decide(
        test.ratio,
        test.low,
        test.high,
        significant=significant,
        difference=test.head.center - test.base.center,
        spread=max(test.base.spread, test.head.spread),
    )
    level, error = alpha / tests, test.standard_error
    floor = rule.floor / test.base.center
    same = error == 0 and significant
    return draft.settled(
        verdict,
        reason,
        "all rounds of a side gave the same value" if same else "",
        ratio=test.ratio,
        low=test.low,
        high=test.high,
        p=test.p,
        p_adjusted=p_adjusted,
        noise=smallest_significant(error, test.df, level),
        min_detectable=min_detectable(error, test.df, rule.threshold, alpha=level, floor=floor),
    )
