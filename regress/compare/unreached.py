"""What of a check there was no time for."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from regress.compare.pairing import Suites
from regress.compare.rule import is_critical
from regress.model import Benchmark, Case, Comparison, Round, Settings, Verdict, metric_of

NOT_REACHED = "not reached before measuring ended"
NOT_BEGUN = "not started: its rounds take longer than the time left"


class CheckMeasured(Protocol):
    """What has been measured until now."""

    @property
    def benchmarks(self) -> Mapping[str, Mapping[str, Benchmark]]:
        """By side, then by name."""

    @property
    def cases(self) -> Mapping[str, Sequence[Case]]:
        """By side, as that side names them."""

    @property
    def rounds(self) -> Sequence[Round]: ...

    @property
    def costs(self) -> Mapping[Case, float]:
        """Seconds that the unmeasured visits to a case have taken, both sides together; only of what was visited."""


def names_of_cases(measured: CheckMeasured, suites: Suites) -> dict[Case, set[Case]]:
    """What the sides call each case, by its name on head, in the order in which cases are wanted."""
    names: dict[Case, set[Case]] = {}
    for side, cases in measured.cases.items():
        for case in cases:
            names.setdefault(suites.on_head(case) if side == "base" else case, set()).add(case)
    return names


def with_unreached(
    comparisons: Iterable[Comparison], measured: CheckMeasured, settings: Settings
) -> tuple[Comparison, ...]:
    """The comparisons of what was measured, and of what there was no time for."""
    done, suites = reached(comparisons), Suites.of(measured.benchmarks.get("head", {}), measured.benchmarks.get("base"))
    return (*done, *not_reached(names_of_cases(measured, suites), suites, settings, done))


def reached(comparisons: Iterable[Comparison]) -> list[Comparison]:
    """The comparisons, marked as not reached where time ran out before both sides were measured."""
    return [
        replace(comparison, unreached=True, reasons=(NOT_REACHED,)) if _is_cut(comparison) else comparison
        for comparison in comparisons
    ]


def _is_cut(comparison: Comparison) -> bool:
    measured = comparison.base is not None and comparison.head is not None
    return comparison.verdict is Verdict.UNDECIDED and not (
        measured or comparison.base_failure or comparison.head_failure
    )


def not_reached(
    cases: Iterable[Case],
    suites: Suites,
    settings: Settings,
    done: Iterable[Comparison],
    longer: Collection[Case] = (),
) -> list[Comparison]:
    """A comparison of each case that there was no time to measure; `longer` are those that were not begun."""
    known, comparisons = {comparison.case for comparison in done}, []
    for case in cases:
        if case not in known:
            definition = suites.definition(case)
            name, unit = (definition.metric, definition.unit) if definition is not None else ("value", "")
            critical, why = is_critical(case, definition, settings), NOT_BEGUN if case in longer else NOT_REACHED
            metric = metric_of(name, unit, None, False)
            comparisons.append(Comparison(case, metric, Verdict.UNDECIDED, (why,), critical=critical, unreached=True))
    return comparisons
