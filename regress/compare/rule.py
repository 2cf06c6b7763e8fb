"""The rule: when a change of one metric is regressed, improved, unchanged, or not yet decided.

    regressed   significant, and ratio above 1 + d, and difference at least the floor
    improved    the same the other way, ratio below 1 / (1 + d)
    unchanged   the interval of the ratio holds no change that would count: none that is large and at least the floor
    undecided   otherwise, with the reason

"Significant" is the caller's: an adjusted p below alpha, or two exact values that differ. What is large but surely under the
floor is unchanged, and says so. Where higher is better the words change places; where the direction is unknown, what moved has
`changed`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from regress.model import (
    HOST_METRICS,
    NEGATIVE,
    Benchmark,
    Better,
    Case,
    Metric,
    Settings,
    Verdict,
    declared_words,
)
from regress.stats.summary import summarize
from regress.units import format_limit


def better_of(name: str, benchmark: Benchmark | None, settings: Settings) -> Better | None:
    """Which direction the benchmark of that name declares as the better one, or else the settings do: of several patterns the
    last one."""
    declared = benchmark.declared.get("better") if benchmark is not None else None
    if declared in ("lower", "higher"):
        return declared  # type: ignore[no-any-return]
    return next(
        (settings.better[pattern] for pattern in reversed([*settings.better]) if re.search(pattern, name)), None
    )


@dataclass(frozen=True)
class Rule:
    """What makes a change of one metric large: `threshold` is d, `floor` is in the unit of the metric."""

    threshold: float
    floor: float
    better: Better
    unit: str
    resolution: float = 0.0
    """Difference in the unit of the metric that the clock cannot show: under it nothing is claimed, and nothing ruled out."""

    @classmethod
    def of(
        cls, case: Case, metric: Metric, settings: Settings, clock_step_s: float = 0.0, in_turn: bool = False
    ) -> Rule:
        """The rule for a metric of a case by the settings; the clock tells apart what is two steps of it. One more or less of
        what is counted is a change. `in_turn`: whether the sides took windows in turn."""
        thresholds = {"memory": settings.memory_threshold, "count": 0.0}
        thresholds["host"] = settings.host_threshold if in_turn else settings.host_apart_threshold
        floors = {
            "time": settings.time_floor_s,
            "host": settings.host_floor_s if in_turn else settings.host_apart_floor_s,
            "memory": float(settings.memory_floor_bytes),
        }
        threshold = _threshold_by_name(case, metric, settings)
        if threshold is None:
            threshold = thresholds.get(metric.kind, settings.time_threshold)
        return cls(threshold, floors.get(metric.kind, 0.0), metric.better, metric.unit, 2 * clock_step_s)

    def counts_from(self, level: float) -> float:
        """The smallest relative change that counts, where `level` is the geometric mean of base and head."""
        if not self.floor:
            return self.threshold
        half = self.floor / level / 2 if level else math.inf
        root = half + math.hypot(half, 1)
        return max(self.threshold, root * root - 1)  # `root**2` raises where a float cannot hold it

    def large(self, ratio: float) -> bool:
        return ratio > 1 + self.threshold or ratio < 1 / (1 + self.threshold)

    def moved(self, up: bool) -> Verdict:
        """The verdict on a change that counts, by its direction."""
        if self.better == "unknown":
            return Verdict.CHANGED
        return Verdict.REGRESSED if up == (self.better == "lower") else Verdict.IMPROVED

    def counts(self, ratio: float, level: float) -> bool:
        """Whether a change by the ratio is large, and at least the floor. `level` is the geometric mean of base and head in the
        unit of the metric, so that the difference is the same whichever side is the base."""
        return self.large(ratio) and _difference(ratio, level) >= self.floor

    def decide(
        self, ratio: float, low: float, high: float, *, significant: bool, level: float, spread: float
    ) -> tuple[Verdict, str]:
        """The verdict on a ratio with its interval, and what kept it from being decided (else empty).

        `level` is the geometric mean of both sides in the unit of the metric, `spread` the larger one of the two.
        """
        large, told_apart = self.large(ratio), _difference(ratio, level) >= self.resolution
        if significant and told_apart and self.counts(ratio, level):
            return self.moved(ratio > 1), ""
        if not self.counts(low, level) and not self.counts(high, level):
            return Verdict.UNCHANGED, self.under_floor if self.large(low) or self.large(high) else ""
        beyond = f"the interval includes changes beyond {_percent(self.threshold)}"
        what = "large, but not significant" if large else f"significant, but {beyond}" if significant else beyond
        if significant and large:
            limit = self.floor if told_apart else self.resolution
            under = "the floor" if told_apart else "two steps of the clock"
            what = f"difference under {under}, {format_limit(limit, self.unit)}"
        return Verdict.UNDECIDED, f"{what} (spread {_percent(spread)})"

    def decide_without_ratio(
        self, base: Sequence[float], head: Sequence[float], *, exact: bool, confidence: float = 0.95
    ) -> tuple[Verdict, str]:
        """The verdict on round values of which some are zero or negative, and the reason.

        From or to zero is significant if the interval of the other side, of at least two rounds unless `exact`, lies above
        the floor, which alone says what is large. Negative values that are not all the same cannot be compared.
        """
        values = {*base, *head}
        if min(values) < 0:
            same = len(values) == 1
            return (Verdict.UNCHANGED, "the same negative value") if same else (Verdict.INCOMPARABLE, NEGATIVE)
        if values == {0}:
            return Verdict.UNCHANGED, "zero on both sides"
        if any(base) and any(head):
            return Verdict.UNDECIDED, "zero in some rounds: there is no ratio"
        word, other = ("to zero", base) if any(base) else ("from zero", head)
        side = summarize(other, confidence)
        if min(len(base), len(head)) < 2 and not exact:
            return Verdict.UNDECIDED, f"{word}, n = 1"
        if side.low > self.floor:
            return self.moved(other is head), word
        if side.high <= self.floor:
            return Verdict.UNCHANGED, f"{word}, {self.under_floor}"
        return Verdict.UNDECIDED, f"{word}, but not significant (spread {_percent(side.spread)})"

    @property
    def under_floor(self) -> str:
        return f"difference under the floor of {format_limit(self.floor, self.unit)}"


def _threshold_by_name(case: Case, metric: Metric, settings: Settings) -> float | None:
    """What the last pattern that fits the case says about the metric, or about its kind. Patterns match as asv's do."""
    for pattern, by_metric in reversed(list(settings.thresholds.items())):
        threshold = by_metric.get(metric.name, by_metric.get(metric.kind))
        if threshold is not None and re.match(pattern, str(case)):
            return threshold
    return None


def is_critical(case: Case, benchmark: Benchmark | None, settings: Settings) -> bool:
    """Whether the benchmark says so itself, or the settings do of the case."""
    declared = benchmark is not None and benchmark.declared.get("critical") is True
    return declared or any(re.match(pattern, str(case)) for pattern in settings.critical)


def also_gates(metric: str, case: Case, benchmark: Benchmark | None, settings: Settings) -> bool:
    """Whether the benchmark or the settings say that the metric gates for the case, which does not by itself."""
    declared = benchmark is not None and metric in declared_words(benchmark, "gates")
    return declared or any(
        metric in metrics and re.match(pattern, str(case)) for pattern, metrics in settings.gates.items()
    )


def host_gates(own: str, case: Case, benchmark: Benchmark | None, settings: Settings) -> bool:
    """Whether a check of the case, which is about the metric `own`, may fail for what the host's clock read."""
    return own in HOST_METRICS or any(also_gates(metric, case, benchmark, settings) for metric in HOST_METRICS)


def declared_threshold(benchmark: Benchmark | None) -> tuple[float | None, str]:
    """The `threshold` that a benchmark declares (0.05 is 5 %), and what is wrong with one that cannot be used."""
    value = benchmark.declared.get("threshold") if benchmark is not None else None
    if value is None:
        return None, ""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < float("inf"):
        return (
            None,
            f"the declared threshold {value!r} is not a relative change like 0.05, so the configured one applies",
        )
    return float(value), ""


def _difference(ratio: float, level: float) -> float:
    """Between two sides of that ratio whose geometric mean is `level`."""
    if not 0 < ratio < math.inf:
        return math.inf
    return level * abs(math.sqrt(ratio) - 1 / math.sqrt(ratio))


def _percent(share: float) -> str:
    return f"{100 * share:.2g} %" if share < 1 else f"{100 * share:.0f} %"
