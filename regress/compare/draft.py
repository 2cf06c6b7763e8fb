"""A comparison on its way to a verdict: the case with its evidence, the draft, and the numbers of its test."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from regress.compare.circumstances import conditions, disturbances
from regress.compare.evidence import Evidence, Values
from regress.compare.pairing import Suites
from regress.compare.rule import Rule, also_gates, better_of, declared_threshold, is_critical
from regress.model import (
    METRICS,
    Against,
    Benchmark,
    Case,
    Comparison,
    Failure,
    Metric,
    Pairs,
    Settings,
    Summary,
    Verdict,
    metric_of,
)
from regress.stats.summary import summarize

ALSO_GATING = frozenset({"peak_memory"})
"""Metrics that gate beside the one that a case is about."""

DEVICE_METRICS = frozenset({"gpu_time", "cold_time"})
"""What a case on a device is about."""


@dataclass(frozen=True)
class Test:
    """What the verdict on a test needs beside the p values of the others."""

    ratio: float
    low: float
    high: float
    p: float
    df: float
    standard_error: float
    base: Summary
    head: Summary
    pairs: Pairs | None = None


@dataclass(frozen=True)
class Draft:
    """A comparison without its final verdict: one with a `test` gets that once all p values are known."""

    comparison: Comparison
    rule: Rule
    doubts: tuple[str, ...] = ()
    """Why nothing may be claimed, whatever the numbers say."""
    notes: tuple[str, ...] = ()
    """Shown after the reasons of the verdict."""
    test: Test | None = None

    def settled(self, verdict: Verdict, *reasons: str, **changes: Any) -> Draft:
        """With a verdict, its reasons (empty ones do not count) and further fields of the comparison."""
        told = self.comparison.reasons + tuple(filter(None, reasons))
        return replace(self, comparison=replace(self.comparison, verdict=verdict, reasons=told, **changes))

    def failed(self, base: Failure | None, head: Failure | None, *reasons: str) -> Draft:
        """With the verdict on a failure on one side or both."""
        skipped = all(failure.kind == "skipped" for failure in (base, head) if failure is not None)
        verdict = Verdict.SKIPPED if skipped else Verdict.FAILED
        return self.settled(verdict, *reasons, base_failure=base, head_failure=head)

    def noted(self, *notes: str) -> Draft:
        return replace(self, notes=self.notes + tuple(filter(None, notes)))

    def doubted(self, *doubts: str) -> Draft:
        return replace(self, doubts=self.doubts + doubts)

    def done(self) -> Comparison:
        comparison = replace(self.comparison, reasons=self.comparison.reasons + self.doubts + self.notes)
        if comparison.alone:
            comparison = replace(comparison, min_detectable=None, unconfirmed=comparison.verdict is Verdict.REGRESSED)
        return (
            replace(comparison, verdict=Verdict.UNDECIDED)
            if self.doubts and comparison.verdict.traits.claims
            else comparison
        )


@dataclass(frozen=True)
class Subject:
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
        for round in (*self.head.rounds, *self.base.rounds):
            if round.protocol is not None:
                return round.protocol.metric
        if self.benchmark is not None:
            return self.benchmark.metric
        present = self.base.metrics() | self.head.metrics()
        return next((name for name in METRICS if name in present), "value")

    @property
    def on_device(self) -> bool:
        """Whether the case computes on a device."""
        return self.own in DEVICE_METRICS or (self.benchmark is not None and self.benchmark.needs_device)

    def pairs(self, metric: str) -> list[Against]:
        """The head's good rounds compared with those of the base that they took windows in turn with; empty if too few did to
        speak for the case."""
        bases = {(round.run, round.side, round.order) for round in self.base.good}
        runs = {round.run for round in self.base.good}
        asked = [round for round in self.head.good if metric in round.values and round.run in runs]
        pairs = [
            against
            for round in asked
            for against in round.against
            if against.metric == metric and (round.run, against.side, round.order) in bases
        ]
        return pairs if len(pairs) >= self.settings.good_rounds * len(asked) else []

    def clock_step_s(self, metric: str) -> float:
        """The coarser one of both sides' clock steps, a call; 0.0 for all but the metric that clock has timed."""
        return max(self.base.clock_step_s(), self.head.clock_step_s()) if metric == self.own else 0.0

    def start(self, name: str, base: Values | None, head: Values | None, *, primary: bool = True) -> Draft:
        """The comparison of a metric before it is decided. A declared threshold is about the primary metric only."""
        present = [side for side in (base, head) if side is not None]
        metric = self._metric(name, present)
        rule = Rule.of(self.case, metric, self.settings, self.clock_step_s(name), in_turn=bool(self.pairs(name)))
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
            base_samples=self.base.samples_of(name),
            head_samples=self.head.samples_of(name),
            gates=primary or name in ALSO_GATING or also_gates(name, self.case, self.benchmark, self.settings),
            threshold=rule.threshold,
            critical=is_critical(self.case, self.benchmark, self.settings),
        )
        disturbed = self.on_device and metric.kind == "time"
        doubts = (
            disturbances(conditions(self.base.good), conditions(self.head.good), self.settings) if disturbed else []
        )
        draft = Draft(comparison, rule, tuple(doubts))
        return draft.noted(complaint, *(note for side in present for note in side.notes))

    def start_untested(self) -> Draft:
        """The one comparison of a case whose metrics are not compared."""
        base, head = (side.values_of(self.own, every_round=False) for side in (self.base, self.head))
        return self.start(self.own, base, head)

    def _metric(self, name: str, values: Sequence[Values]) -> Metric:
        units = sorted({unit for side in values for unit in side.units})
        unit = units[0] if units else self.benchmark.unit if self.benchmark is not None else ""
        better = better_of(self.case.name, self.benchmark, self.settings)
        exact = bool(values) and all(side.exact for side in values)
        return metric_of(name, unit, better, exact)
