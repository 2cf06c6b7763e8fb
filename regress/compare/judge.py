"""Rounds of two sides to comparisons with verdicts.

A case is compared on the metric it is about, which gates, as its peak memory does; every other metric that both sides have is
compared too and gates nothing. Where one side lost its device time, wall time stands in for it on both. Nothing is turned into
a ratio that was not measured alike on both sides.

The steps: `pairing` finds the rounds of a case on both sides, `evidence` sorts out what cannot be tested, a `draft` collects
what the verdict needs, `testing` tests each metric, the tests of all cases are adjusted together (Holm), and `rule` gives the
verdicts; what `circumstances` cast doubt on is at most undecided. What gates is one family, and each metric that does not is
one of its own, so that what is only shown costs neither the gate nor another metric anything.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from regress.compare.circumstances import counter_changes, skew_changes, trending, unlike_devices
from regress.compare.draft import ALSO_GATING, Draft, Subject, Test
from regress.compare.evidence import Evidence, on_one_card
from regress.compare.pairing import Benchmarks, Suites, unlike
from regress.compare.testing import with_test
from regress.model import METRICS, SYNCHRONIZES, Comparison, Round, Settings, Verdict
from regress.stats.ttests import error_with, holm, min_detectable, smallest_significant


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
        yield subject.start_untested().noted(*doubts).failed(base.failure, head.failure)
        return
    if differences := _differences(subject):
        yield subject.start_untested().settled(Verdict.INCOMPARABLE, *differences).noted(*doubts)
        return
    primary, why = _primary(subject)
    trend = [trending(base, head)] if primary == "gpu_time" else []
    yield with_test(subject, primary, why, primary=True).noted(
        *skew_changes(base, head, primary), *counter_changes(base, head), *trend, *doubts
    )
    both, either = base.metrics() & head.metrics(), base.metrics() | head.metrics()
    # A device time that only one side has is what `why` speaks of.
    others = (both | (either & ALSO_GATING)) - {primary, subject.own}
    for name in sorted(others, key=lambda other: (other not in ALSO_GATING, _rank(other), other)):
        yield with_test(subject, name, primary=False)


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
        return draft.failed(None, present.failure, "new")
    return draft.settled(Verdict.NEW)


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
