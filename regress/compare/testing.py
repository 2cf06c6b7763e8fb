"""The test of one metric of a case: exact values, values of rounds, or pairs of rounds.

Sides that took windows in turn are tested by the differences of their pairs, all others by Welch's test of their values.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import replace

from regress.compare.circumstances import bimodal, drifting
from regress.compare.draft import Draft, Subject, Test
from regress.compare.evidence import Draws, draws_of
from regress.compare.pairing import unlike
from regress.model import Against, Metric, Pairs, Settings, Summary, Verdict
from regress.stats.modes import Modes, jumps, two_modes
from regress.stats.serial import follows
from regress.stats.summary import summarize
from regress.stats.ttests import Welch, pair_spread, paired, welch

SEVERAL_THREADS_FROM = 0.25
"""A change of what several threads work for is claimed from here up: two sides of one code have been seen 12 % apart in each
of 24 pairs, by how their threads came to lie, and not at all the next time."""


def with_test(subject: Subject, name: str, why: str = "", *, primary: bool) -> Draft:
    """The comparison of one metric of a case, with its test or the reason why there is none."""
    base, head = (side.values_of(name, every_round=primary) for side in (subject.base, subject.head))
    draft = subject.start(name, base, head, primary=primary).settled(Verdict.UNDECIDED, why)
    if base is None or head is None:
        return draft.settled(Verdict.INCOMPARABLE, f"{name} exists only on the {'head' if base is None else 'base'}")
    if base.failure is not None or head.failure is not None:
        return draft.failed(base.failure, head.failure)
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
        draft = draft.noted(
            "all rounds of a side share the value of one setup_cache; declare exact = True if it repeats exactly"
        )
    return _by_values(subject, draft, base_draws, head_draws)


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


def _by_values(subject: Subject, draft: Draft, base: tuple[float, ...], head: tuple[float, ...]) -> Draft:
    """Welch's test, or the reason why there can be no test."""
    settings = subject.settings
    sides = summarize(base, settings.confidence), summarize(head, settings.confidence)
    draft = draft.settled(Verdict.UNDECIDED, base=sides[0], head=sides[1])
    if min(*base, *head) <= 0:
        return draft.settled(*draft.rule.decide_without_ratio(base, head, exact=False, confidence=settings.confidence))
    if against := subject.pairs(draft.comparison.metric.name):
        pinned = all(round.protocol is None or round.protocol.pinned for round in subject.head.good)
        return _by_pairs(draft, against, sides, settings, pinned)
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


def _by_pairs(
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
