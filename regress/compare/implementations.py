"""Implementations of one operation side by side: the fastest at each combination of the other parameters, and where it changes.

A benchmark names its implementations by a parameter of that name. What took the least time is called the fastest where Welch's
test tells it apart from every other implementation there, after Holm over all these tests of the benchmark; else no difference
is shown among those that are not told apart from it.
What casts doubt on the difference of two sides in a check (other processes, throttling, another card) does so here.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from regress.compare.circumstances import conditions, disturbances, unlike_devices
from regress.compare.evidence import Evidence
from regress.compare.pairing import place
from regress.model import (
    METRICS,
    Benchmark,
    Case,
    Contender,
    Crossover,
    Failure,
    Implementations,
    Metric,
    Outcome,
    Round,
    Settings,
    Standing,
    Stretch,
    metric_of,
)
from regress.stats.summary import summarize
from regress.stats.ttests import Welch, holm, welch

IMPLEMENTATION = "implementation"
"""The parameter by which a benchmark names ways to do the same."""

WINDOW_S = 0.7e-6
"""What a window adds to the time of its calls (docs/measuring.md): implementations that were timed with unlike numbers of calls
differ only if the difference is larger than that can make it."""


def has_implementations(benchmark: Benchmark | None) -> bool:
    return benchmark is not None and IMPLEMENTATION in benchmark.param_names


def implementations(
    rounds: Iterable[Round], benchmarks: Mapping[str, Benchmark], settings: Settings
) -> tuple[Implementations, ...]:
    """Of each benchmark that has the parameter, where at least two implementations have times; by name. The order of the rounds
    does not matter."""
    by_name: dict[str, dict[Case, list[Round]]] = {}
    for round in rounds:
        if has_implementations(benchmarks.get(round.name)):
            case = Case.of(round)
            by_name.setdefault(round.name, {}).setdefault(case, []).append(round)
    fields = [_Field.of(benchmarks[name], by_name[name], settings) for name in sorted(by_name)]
    fields = [field for field in fields if field.metric is not None and len(field.timed) > 1]
    return tuple(field.done() for field in fields)


@dataclass(frozen=True)
class _Entry:
    """What is known of one implementation at one combination; `values` are empty where there is a failure."""

    name: str
    others: tuple[str, ...]
    case: Case
    evidence: Evidence
    values: tuple[float, ...] = ()
    failure: Failure | None = None
    center: float = math.inf


@dataclass(frozen=True)
class _Pair:
    """The test of one implementation against the smallest time at that combination."""

    first: _Entry
    other: _Entry
    test: Welch
    doubts: tuple[str, ...]
    p_adjusted: float = 1.0

    def apart(self, alpha: float) -> bool:
        return not self.doubts and self.p_adjusted < alpha


@dataclass(frozen=True)
class _Field:
    """One benchmark: its entries by combination, both in the suite's order."""

    benchmark: Benchmark
    metric: Metric | None
    entries: Mapping[tuple[str, ...], Sequence[_Entry]]
    settings: Settings

    @classmethod
    def of(cls, benchmark: Benchmark, rounds: Mapping[Case, list[Round]], settings: Settings) -> _Field:
        at = benchmark.param_names.index(IMPLEMENTATION)
        cases = sorted((case for case in rounds if at < len(case.params)), key=lambda case: place(case, benchmark))
        members = [_entry(case, at, rounds[case], settings) for case in cases]
        metric = _metric(benchmark, [entry.evidence for entry in members])
        entries: dict[tuple[str, ...], list[_Entry]] = {}
        for entry in members:
            entries.setdefault(entry.others, []).append(
                _timed(entry, metric, settings) if metric is not None else entry
            )
        return cls(benchmark, metric, entries, settings)

    @property
    def timed(self) -> set[str]:
        """The implementations that have a time anywhere."""
        return {entry.name for group in self.entries.values() for entry in group if entry.values}

    def _pairs(self) -> dict[Case, _Pair]:
        """The tests, by the case that is not the first of its combination, adjusted together."""
        pairs = []
        for group in self.entries.values():
            ordered = _by_time(group)
            pairs += [self._pair(ordered[0], other) for other in ordered[1:]]
        tests = {pair.other.case: pair.test.p for pair in pairs if pair.test.p is not None}
        adjusted = dict(zip(tests, holm(list(tests.values())), strict=True))
        return {pair.other.case: replace(pair, p_adjusted=adjusted.get(pair.other.case, 1.0)) for pair in pairs}

    def _pair(self, first: _Entry, other: _Entry) -> _Pair:
        step = max(entry.evidence.clock_step_s() for entry in (first, other)) if self._on_its_clock else 0.0
        test = welch(first.values, other.values, self.settings.confidence, step)
        return _Pair(first, other, test, tuple(self._doubts(first, other, test, step)))

    @property
    def _on_its_clock(self) -> bool:
        return self.metric is not None and self.metric.name == self.benchmark.metric

    def _doubts(self, first: _Entry, other: _Entry, test: Welch, step: float) -> list[str]:
        difference = other.center - first.center
        doubts = []
        if test.p is None:
            doubts.append("one round only")
        elif difference < 2 * step:
            doubts.append("the difference is under two steps of the clock")
        if self.benchmark.needs_device:
            calls = [round.protocol.calls for one in (first, other) for round in one.evidence.good if round.protocol]
            windows = calls and self.metric == METRICS["gpu_time"]
            if windows and difference < WINDOW_S * (1 / min(calls) - 1 / max(calls)):
                doubts.append(
                    f"timed {min(calls)} and {max(calls)} calls a window, which alone can make such a difference"
                )
            # Unlike work may run at unlike clocks: they speak against a difference that they could make.
            tolerance = max(self.settings.clock_tolerance, math.log(test.low) if test.low else 0.0)
            settings = replace(self.settings, clock_tolerance=tolerance)
            doubts += [unlike_devices(first.evidence, other.evidence)]
            names = f"on the {first.evidence.side}", f"on the {other.evidence.side}"
            doubts += disturbances(conditions(first.evidence.good), conditions(other.evidence.good), settings, names)
        return [f"{other.name}: {doubt}" for doubt in doubts if doubt]

    def done(self) -> Implementations:
        assert self.metric is not None
        told = self._pairs()
        names = [name for name in self.benchmark.param_names if name != IMPLEMENTATION]
        standings = tuple(self._standing(others, group, told) for others, group in self.entries.items())
        size = size_of(names, [standing.params for standing in standings])
        at = self.benchmark.param_names.index(IMPLEMENTATION)
        order = self.benchmark.params[at] if at < len(self.benchmark.params) else []
        present = dict.fromkeys(entry.case.params[at] for group in self.entries.values() for entry in group)
        return Implementations(
            name=self.benchmark.name,
            metric=self.metric,
            names=tuple(
                map(plain, sorted(present, key=lambda param: order.index(param) if param in order else len(order)))
            ),
            param_names=tuple(names),
            standings=standings,
            size=size,
            crossovers=crossovers_of(names, standings, size),
        )

    def _standing(self, others: tuple[str, ...], group: Sequence[_Entry], told: Mapping[Case, _Pair]) -> Standing:
        alpha, ordered = self.settings.alpha, _by_time(group)
        level = [entry for entry in ordered if entry.case not in told or not told[entry.case].apart(alpha)]
        return Standing(
            params=others,
            contenders=tuple(_contender(entry, told.get(entry.case), self.settings.confidence) for entry in group),
            leaders=tuple(entry.name for entry in level),
            reasons=tuple(doubt for entry in level if entry.case in told for doubt in told[entry.case].doubts),
        )


def plain(param: str) -> str:
    """A parameter without the quotes of its text."""
    return param[1:-1] if len(param) > 1 and param[0] == param[-1] and param[0] in "'\"" else param


def _entry(case: Case, at: int, rounds: list[Round], settings: Settings) -> _Entry:
    name = plain(case.params[at])
    evidence = Evidence.of(f"side of {name}", rounds, settings.good_rounds)
    others = (*case.params[:at], *case.params[at + 1 :])
    return _Entry(name, others, case, evidence, failure=evidence.failure)


def _metric(benchmark: Benchmark, evidences: Sequence[Evidence]) -> Metric | None:
    """The time that most of them have: the one that the benchmark is about, or wall time where more have that; None where it is
    about no time."""
    own = next((round.protocol.metric for one in evidences for round in one.rounds if round.protocol), benchmark.metric)
    if own not in METRICS or METRICS[own].kind != "time":
        return None
    good = [evidence for evidence in evidences if evidence.failure is None]
    return metric_of(max((own, "wall_time"), key=lambda name: sum(evidence.has(name) for evidence in good)))


def _timed(entry: _Entry, metric: Metric, settings: Settings) -> _Entry:
    """The entry with its values, or with the reason why it has no values."""
    if entry.failure is not None:
        return entry
    if not entry.evidence.has(metric.name):
        return replace(entry, failure=Failure("skipped", f"it has no {metric.name}"))
    values = entry.evidence.values_of(metric.name, every_round=True)
    assert values is not None
    if values.failure is not None:
        return replace(entry, failure=values.failure)
    if min(values.values) <= 0:
        return replace(entry, failure=Failure("error", f"its {metric.name} is zero in some rounds"))
    return replace(entry, values=values.values, center=summarize(values.values, settings.confidence).center)


def _by_time(group: Sequence[_Entry]) -> list[_Entry]:
    """Those that have a time, the smallest first."""
    return sorted((entry for entry in group if entry.values), key=lambda entry: entry.center)


def _contender(entry: _Entry, pair: _Pair | None, confidence: float) -> Contender:
    if not entry.values:
        return Contender(entry.name, entry.case, failure=entry.failure)
    summary = summarize(entry.values, confidence)
    if pair is None or pair.test.p is None:
        return Contender(entry.name, entry.case, summary)
    test = pair.test
    return Contender(entry.name, entry.case, summary, None, test.ratio, test.low, test.high, pair.p_adjusted)


_NUMBER = re.compile(r"[^\w-]*(-?\d[\d_]*\.?\d*(?:e[+-]?\d+)?)\s*(ki|mi|gi|k|m|g)?\b", re.IGNORECASE)
_SUFFIX = {"k": 1e3, "m": 1e6, "g": 1e9, "ki": 2.0**10, "mi": 2.0**20, "gi": 2.0**30}


def number_of(param: str) -> float | None:
    """The number that a parameter is, or begins with: 4096, '64k', (1024, 1024)."""
    match = _NUMBER.match(param)
    return float(match[1].replace("_", "")) * _SUFFIX.get((match[2] or "").lower(), 1.0) if match else None


def size_of(names: Sequence[str], combinations: Sequence[tuple[str, ...]]) -> str:
    """The parameter that has several values, all of them different numbers: of several such parameters the one with the most
    values, the first of equals. Empty if there is none."""
    best, most = "", 1
    for at, name in enumerate(names):
        values = {combination[at] for combination in combinations}
        numbers = {number_of(value) for value in values}
        if None not in numbers and len(numbers) == len(values) > most:
            best, most = name, len(values)
    return best


def crossovers_of(names: Sequence[str], standings: Sequence[Standing], size: str) -> tuple[Crossover, ...]:
    """One for each combination of the parameters that are not the size, in the order of the standings."""
    if not size:
        return ()
    at = names.index(size)
    groups: dict[tuple[str, ...], list[Standing]] = {}
    for standing in standings:
        groups.setdefault((*standing.params[:at], *standing.params[at + 1 :]), []).append(standing)
    by_rest = {rest: stretches_of(group, at) for rest, group in groups.items()}
    return tuple(Crossover(rest, stretches, words(stretches, size)) for rest, stretches in by_rest.items())


def stretches_of(standings: Sequence[Standing], at: int) -> tuple[Stretch, ...]:
    """The standings along the parameter at that place, those next to each other with the same outcome as one."""
    ordered = sorted(standings, key=lambda standing: number_of(standing.params[at]) or 0.0)
    groups = [(key, list(group)) for key, group in itertools.groupby(ordered, key=_what)]
    return tuple(Stretch(*key, group[0].params[at], group[-1].params[at]) for key, group in groups)


def _what(standing: Standing) -> tuple[Outcome, tuple[str, ...]]:
    return standing.outcome, tuple(
        contender.name for contender in standing.contenders if contender.name in standing.leaders
    )


def words(stretches: Sequence[Stretch], size: str) -> str:
    """ "triton up to 512, no difference shown between torch and triton at 1024, torch from 2048"."""
    if len(stretches) == 1:
        only = stretches[0]
        everywhere = f"at every {size}" if only.outcome in ("fastest", "alone") else f"at any {size}"
        return f"{_who(only)} {everywhere if only.first != only.last else f'at {_bare(only.first)}'}"
    last = len(stretches) - 1
    return ", ".join(f"{_who(stretch)} {_where(stretch, at == 0, at == last)}" for at, stretch in enumerate(stretches))


def _who(stretch: Stretch) -> str:
    *others, last = stretch.names or ("",)
    if stretch.outcome == "no difference shown":
        return f"{stretch.outcome} between {', '.join(others)} and {last}"
    return {"fastest": last, "alone": f"only {last}"}.get(stretch.outcome, stretch.outcome)


def _where(stretch: Stretch, first: bool, last: bool) -> str:
    low, high = _bare(stretch.first), _bare(stretch.last)
    if first:
        return f"up to {high}"
    if last:
        return f"from {low}"
    return f"at {low}" if low == high else f"from {low} to {high}"


def _bare(param: str) -> str:
    return param.strip("'\"")
