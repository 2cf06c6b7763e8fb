"""Rounds of two sides to comparisons with verdicts.

A case is compared on the metric it is about, which gates, as its peak memory does; every other metric that both sides have is
compared too and gates nothing. Where one side lost its device time, wall time stands in for it on both. Nothing is turned into
a ratio that was not measured alike on both sides.

The steps: `pairing` finds the rounds of a case on both sides, `evidence` sorts out what cannot be tested, a `draft` collects
what the verdict needs, the tests of all cases are adjusted together (Holm), and `rule` gives the verdicts; what `circumstances`
cast doubt on is at most undecided. What gates is one family, and each metric that does not is one of its own, so that what is
only shown costs neither the gate nor another metric anything. Sides that took windows in turn are tested by the differences
of their pairs, all others by Welch's test of their values.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from regress.compare.circumstances import bimodal, counter_changes, drifting, skew_changes, trending, unlike_devices
from regress.compare.draft import ALSO_GATING, Draft, Subject, Test
from regress.compare.evidence import Draws, Evidence, draws_of, on_one_card
from regress.compare.pairing import Benchmarks, Suites, unlike
from regress.model import (
    METRICS,
    SYNCHRONIZES,
    Against,
    Comparison,
    Failure,
    Metric,
    Pairs,
    Round,
    Settings,
    Summary,
    Verdict,
)
from regress.stats.modes import Modes, jumps, two_modes
from regress.stats.serial import follows
from regress.stats.summary import summarize
from regress.stats.ttests import (
    Welch,
    error_with,
    holm,
    min_detectable,
    pair_spread,
    paired,
    smallest_significant,
    welch,
)

SEVERAL_THREADS_FROM = 0.25
"""A change of what several threads work for is claimed from here up: two sides of one code have been seen 12 % apart in each
of 24 pairs, by how their threads came to lie, and not at all the next time."""


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
    measured there, and is undecided. Parameters are matched by value, and by name where their order differs; a benchmark that
    says with `was` how it was called before is compared with what base has under that name.

    `noise` and `min_detectable` of a comparison are those of the rule in force, that is at the level which Holm demands of
    the first of its tests; `min_detectable` is a factor to the worse, whichever direction that is.
    """
    suites = Suites.of(benchmarks or {}, base_benchmarks, (round.name for round in base))
    drafts: list[Draft] = []
    for case, *sides in suites.pair(base, head):
        base_rounds, head_rounds = on_one_card(*sides)
        base_side = Evidence.of("base", base_rounds, settings.good_rounds)
        head_side = Evidence.of("head", head_rounds, settings.good_rounds)
        drafts += _drafts(Subject(case, base_side, head_side, suites, settings))
    return _judged(drafts, settings)


# -- one case ------------------------------------------------------------------------------------------------------------


def _drafts(subject: Subject) -> Iterator[Draft]:
    """The comparisons of a case: one that says why nothing can be tested, or one a metric."""
    base, head = subject.base, subject.head
    if not base.rounds or not head.rounds:
        yield _one_sided(subject)
        return
    was = subject.suites.renamed.get(subject.case.name)
    renamed = [f"renamed: {was} on the base"] if was is not None else []
    ways = dict.fromkeys((*base.ways(), *head.ways()))
    doubts = (*renamed, *base.notes, *head.notes, *base.flags(), *head.flags(), *ways)
    if base.failure is not None or head.failure is not None:
        yield _without_numbers(subject.start_untested().noted(*doubts), base.failure, head.failure)
        return
    if differences := _differences(subject):
        yield subject.start_untested().settled(Verdict.INCOMPARABLE, *differences).noted(*doubts)
        return
    primary, why = _primary(subject)
    trend = [trending(base, head)] if primary == "gpu_time" else []
    yield _metric_draft(subject, primary, why, primary=True).noted(
        *skew_changes(base, head, primary), *counter_changes(base, head), *trend, *doubts
    )
    both, either = base.metrics() & head.metrics(), base.metrics() | head.metrics()
    # A device time that only one side has is what `why` speaks of.
    others = (both | (either & ALSO_GATING)) - {primary, subject.own}
    for name in sorted(others, key=lambda other: (other not in ALSO_GATING, _rank(other), other)):
        yield _metric_draft(subject, name, primary=False)


def _differences(subject: Subject) -> list[str]:
    """Why the two sides are not two measurements of the same thing, in words; empty if they are."""
    base, head = subject.base, subject.head
    device = unlike_devices(base, head) if subject.on_device else ""
    return [*subject.suites.differences(subject.case), *unlike(base, head, subject.own), *filter(None, [device])]


def _one_sided(subject: Subject) -> Draft:
    """A case with rounds on one side only."""
    missing, present = ("base", subject.head) if not subject.base.rounds else ("head", subject.base)
    draft = subject.start_untested().noted(*present.notes, *present.flags(), *present.ways())
    if params := subject.suites.params_differ(subject.case):
        return draft.settled(Verdict.INCOMPARABLE, params)
    if subject.suites.is_defined(subject.case, missing):
        return draft.settled(Verdict.UNDECIDED, f"not measured on the {missing}")
    if missing == "head":
        return draft.settled(Verdict.GONE, base_failure=present.failure)
    if present.failure is not None:
        return _without_numbers(draft, None, present.failure, "new")
    return draft.settled(Verdict.NEW)


def _without_numbers(draft: Draft, base: Failure | None, head: Failure | None, *reasons: str) -> Draft:
    """The verdict on a failure on one side or both."""
    skipped = all(failure.kind == "skipped" for failure in (base, head) if failure is not None)
    verdict = Verdict.SKIPPED if skipped else Verdict.FAILED
    return draft.settled(verdict, *reasons, base_failure=base, head_failure=head)


def _primary(subject: Subject) -> tuple[str, str]:
    """The metric that speaks for the case, and why it is not the one the case is about."""
    base, head = subject.base.has("gpu_time"), subject.head.has("gpu_time")
    if subject.own != "gpu_time" or (base and head):
        return subject.own, ""
    if base:
        return "wall_time", _lost("became synchronous", subject.head, "gpu_time exists only on the base")
    if head:
        return "wall_time", _lost("no longer synchronous", subject.base, "gpu_time exists only on the head")
    return "wall_time", "gpu_time exists on neither side"


def _lost(word: str, without: Evidence, what: str) -> str:
    """What became of the device time: the word if the side without it waits for the device, else its flags say why."""
    return f"{word}: {what}" if any(SYNCHRONIZES in round.flags for round in without.good) else what


def _rank(metric: str) -> int:
    return list(METRICS).index(metric) if metric in METRICS else len(METRICS)


# -- one metric ----------------------------------------------------------------------------------------------------------


def _metric_draft(subject: Subject, name: str, why: str = "", *, primary: bool) -> Draft:
    """The comparison of one metric of a case that was measured alike on both sides."""
    base, head = (side.values_of(name, every_round=primary) for side in (subject.base, subject.head))
    draft = subject.start(name, base, head, primary=primary).settled(Verdict.UNDECIDED, why)
    if base is None or head is None:
        return draft.settled(Verdict.INCOMPARABLE, f"{name} exists only on the {'head' if base is None else 'base'}")
    if base.failure is not None or head.failure is not None:
        return _without_numbers(draft, base.failure, head.failure)
    if differences := unlike(subject.base, subject.head, name):
        return draft.settled(Verdict.INCOMPARABLE, *differences)
    if len(base.units | head.units) > 1:
        one, other = (" and ".join(sorted(side.units)) for side in (base, head))
        return draft.settled(Verdict.INCOMPARABLE, f"different unit: {one} on the base, {other} on the head")
    if base.exact and head.exact:
        torn = [side for side, values in (("base", base), ("head", head)) if len(set(values.values)) > 1]
        if not torn:
            return _exact(draft, base.values[0], head.values[0])
        draft = draft.noted(f"exact values differ between rounds of {' and '.join(torn)}, so they were tested")
    elif base.exact or head.exact:
        draft = draft.noted(f"exact only on the {'base' if base.exact else 'head'}, so it was tested")
    draws = draws_of(base, head) if not subject.pairs(name) else Draws(base.values, head.values)
    draft = _apart(draft, draws)
    base_draws, head_draws = _drawn(subject, draft, draws.base), _drawn(subject, draft, draws.head)
    if len(base_draws) < len(draws.base) or len(head_draws) < len(draws.head):
        draft = draft.noted("all rounds of a side share the value of one setup_cache")
    return _tested(subject, draft, base_draws, head_draws)


def _apart(draft: Draft, draws: Draws) -> Draft:
    """With what it means that no session has both sides."""
    draft = draft.settled(Verdict.UNDECIDED, sessions=draws.sessions)
    return draft.doubted(draws.note) if draft.comparison.alone else draft.noted(draws.note)


def _drawn(subject: Subject, draft: Draft, values: tuple[float, ...]) -> tuple[float, ...]:
    """The values that are draws of their own: rounds share a setup_cache, and what was tracked in it is one value."""
    shared = subject.benchmark is not None and subject.benchmark.setup_cache_key is not None
    if draft.comparison.metric.kind == "tracked" and shared and len(set(values)) == 1:
        return values[:1]
    return values


def _exact(draft: Draft, base: float, head: float) -> Draft:
    """Two values that repeat exactly: no test could add to them."""
    if min(base, head) <= 0:
        return draft.settled(*draft.rule.decide_without_ratio([base], [head], exact=True), exact=True)
    ratio = head / base
    level = math.sqrt(base) * math.sqrt(head)
    verdict, reason = draft.rule.decide(ratio, ratio, ratio, significant=True, level=level, spread=0.0)
    return draft.settled(verdict, reason, exact=True, ratio=ratio, low=ratio, high=ratio)


def _tested(subject: Subject, draft: Draft, base: tuple[float, ...], head: tuple[float, ...]) -> Draft:
    """Welch's test, or the reason why there can be no test."""
    settings = subject.settings
    sides = summarize(base, settings.confidence), summarize(head, settings.confidence)
    draft = draft.settled(Verdict.UNDECIDED, base=sides[0], head=sides[1])
    if min(*base, *head) <= 0:
        return draft.settled(*draft.rule.decide_without_ratio(base, head, exact=False, confidence=settings.confidence))
    if against := subject.pairs(draft.comparison.metric.name):
        pinned = all(round.protocol is None or round.protocol.pinned for round in subject.head.good)
        return _paired(draft, against, sides, settings, pinned)
    result = welch(base, head, settings.confidence, _step(subject, draft.comparison.metric, (*base, *head)))
    draft = _moded(draft, two_modes(base, head), result.ratio)
    if draft.comparison.gates and (alike := follows(base, head)) is not None:
        draft = draft.noted(drifting(alike))
    test = _test(result, sides)
    if test is None:
        single = [f"the {side}" for side, values in (("base", base), ("head", head)) if len(values) < 2]
        return draft.settled(Verdict.UNDECIDED, f"n = 1 on {' and '.join(single)}", ratio=result.ratio)
    return replace(draft, test=test)


def _test(result: Welch, sides: tuple[Summary, Summary], pairs: Pairs | None = None) -> Test | None:
    """What the rule decides by; None if there were too few values for a test."""
    if (
        result.low is None
        or result.high is None
        or result.p is None
        or result.df is None
        or result.standard_error is None
    ):
        return None
    return Test(result.ratio, result.low, result.high, result.p, result.df, result.standard_error, *sides, pairs)


def _step(subject: Subject, metric: Metric, values: Iterable[float]) -> float:
    """The smallest difference that the values can show. That all rounds of a side agree on a whole number is no proof that it
    has no noise: what was rounded to it may have had. A number that repeats is declared `exact`."""
    different = set(values)
    if metric.kind == "tracked" and len(different) > 1 and all(value == int(value) for value in different):
        return 1.0
    return subject.clock_step_s(metric.name)


def _paired(
    draft: Draft, against: Sequence[Against], sides: tuple[Summary, Summary], settings: Settings, pinned: bool
) -> Draft:
    """The test of the differences of pairs. Where the sides share no zygote, they differ by where the memory of their
    interpreters lies in all pairs of an origin alike: then the mean of each origin is one draw."""
    differences = [pair.log_ratio for pair in against]
    if not all(pair.common for pair in against):
        by_origin: dict[str, list[float]] = {}
        for pair in against:
            by_origin.setdefault(pair.origin, []).append(pair.log_ratio)
        differences = [statistics.fmean(logs) for logs in by_origin.values()]
    result = paired(differences, settings.confidence)
    error = statistics.median(pair.error for pair in against)
    pairs = Pairs(len(differences), pair_spread(differences), error)
    draft = draft.settled(Verdict.UNDECIDED, pairs=pairs)
    if not pinned and abs(math.log(result.ratio)) < math.log1p(SEVERAL_THREADS_FROM):
        draft = draft.doubted(f"several threads work for it: under {SEVERAL_THREADS_FROM:.0%} nothing is claimed")
    if error > math.log1p(draft.rule.threshold) / 2:
        draft = draft.doubted(f"a pair is known to ±{100 * error:.2g} % only")
    values = [math.exp(difference) for difference in differences]
    if draft.comparison.gates and (alike := follows(values)) is not None:
        draft = draft.noted(drifting(alike))
    if (apart := jumps(differences)) is not None and draft.rule.large(math.exp(apart)):
        draft = draft.noted(f"bimodal: pairs differ by nothing, or by {100 * math.expm1(apart):.2g} % either way")
    test = _test(result, sides, pairs)
    if test is None:
        what = "one pair only" if all(pair.common for pair in against) else "all pairs come from one origin"
        return draft.settled(Verdict.UNDECIDED, what, ratio=result.ratio)
    return replace(draft, test=test)


def _moded(draft: Draft, modes: Modes | None, ratio: float) -> Draft:
    """What two levels say that are apart by enough to count. Only a change within the levels can be claimed then: how often
    each of them came up is not the code's doing."""
    rule = draft.rule
    if modes is None or not rule.counts(modes.apart, math.sqrt(modes.low) * math.sqrt(modes.high)):
        return draft
    within = rule.large(modes.ratio) and (modes.ratio > 1) == (ratio > 1)
    return draft.noted(bimodal(modes)) if within else draft.doubted(bimodal(modes))


# -- all of them ---------------------------------------------------------------------------------------------------------


def _judged(drafts: Sequence[Draft], settings: Settings) -> tuple[Comparison, ...]:
    """The comparisons with their verdicts, once every p of a family is known."""
    done = list(drafts)
    families: dict[str, dict[int, Test]] = {}
    for index, draft in enumerate(drafts):
        if draft.test is not None:
            family = "gates" if draft.comparison.gates else draft.comparison.metric.name
            families.setdefault(family, {})[index] = draft.test
    for tests in families.values():
        adjusted = holm([test.p for test in tests.values()])
        among = Among(len(tests), len({drafts[index].comparison.case for index in tests}), settings.run_rounds)
        for (index, test), p_adjusted in zip(tests.items(), adjusted, strict=True):
            alpha = settings.alpha if test.pairs is None else settings.paired_alpha
            done[index] = _decided(drafts[index], test, p_adjusted, alpha, among)
    return tuple(draft.done() for draft in done)


class Among(NamedTuple):
    """The family that a test is one of: how many tests, of how many cases, and how many rounds a side are usual."""

    tests: int
    cases: int
    enough: int


def _are_few(test: Test, enough: int, level: float) -> bool:
    """Whether more rounds, as noisy as these, would show the change that they show."""
    if test.pairs is not None or min(test.base.n, test.head.n) >= enough:
        return False
    error, freedom = error_with(enough, test.base, test.head)
    return abs(math.log(test.ratio)) > math.log1p(smallest_significant(error, freedom, level))


def _decided(draft: Draft, test: Test, p_adjusted: float, alpha: float, among: Among) -> Draft:
    """The verdict of one test among those of its family."""
    rule, significant = draft.rule, p_adjusted < alpha
    middle = math.sqrt(test.base.center) * math.sqrt(test.head.center)
    verdict, reason = rule.decide(
        test.ratio,
        test.low,
        test.high,
        significant=significant,
        level=middle,
        spread=max(test.base.spread, test.head.spread) if test.pairs is None else test.pairs.spread,
    )
    level, error = alpha / among.tests, test.standard_error
    if (
        not significant
        and not draft.comparison.alone
        and rule.counts(test.ratio, middle)
        and _are_few(test, among.enough, level)
    ):
        others = "" if among.cases == 1 else f" among {among.cases} cases"
        unit = "rounds" if draft.comparison.sessions is None else "sessions"
        reason = f"{test.base.n}+{test.head.n} {unit}: too few to claim{others}"
    floor = max(rule.floor, rule.resolution) / test.base.center
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
        counts_from=rule.counts_from(middle),
        noise=smallest_significant(error, test.df, level),
        min_detectable=min_detectable(error, test.df, rule.threshold, alpha=level, floor=floor),
    )
