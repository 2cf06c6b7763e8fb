"""Changes in a long history: a Series to its ChangePoints.

Results that were measured in unlike ways are series of their own here, so no change of driver or protocol is a change of level.
What repeats exactly changes wherever two neighbouring results differ; of everything else `stats.changepoints` finds the steps.
"""

from __future__ import annotations

import itertools
import math
from bisect import bisect_left
from collections.abc import Collection, Sequence
from dataclasses import replace

from regress.compare.circumstances import alternating, bimodal, disturbances, together
from regress.compare.rule import Rule
from regress.model import ChangePoint, Confirmation, Series, Settings, Way
from regress.stats.changepoints import LEAST, REACH, Step, changepoints, pairs
from regress.stats.modes import two_modes
from regress.stats.summary import median
from regress.trends.outcomes import passed, recovered, relapsed, undoing, with_confirmations


def changes_of(
    series: Series, settings: Settings, known: Sequence[Confirmation] = (), releases: Collection[str] = ()
) -> tuple[ChangePoint, ...]:
    """The change points of a series in the order of its commits, with what is known of pairs that were measured in turn.
    `releases` are full hashes of its commits: an improvement that was released is no short one.

    They are listed from `settings.change_threshold` on, or from the threshold of the series where that is smaller. What is no
    claim in a check is none here: where circumstances speak against a time of the device, its change is not large. From and to
    zero there is no ratio, and the rule of a check decides. What several cards have seen is tentative until a pair confirms it.
    """
    rule = series_rule(series, settings)
    effect = min(settings.change_threshold, rule.threshold)
    released = [at for at, sha in enumerate(series.commits) if sha in releases] if releases else []
    points: list[tuple[int, ChangePoint]] = []
    for way, own in series.by_way.items():
        values = [value for index in own if (value := series.curve[index]) is not None]
        places = [series.at[index] for index in own]
        rounds = [series.rounds[index] for index in own]
        passing: list[Step] = []
        if _repeats(series, own):
            steps = _exact_steps(values, effect)
            changes = [_change(series.commits, places, step, rule, way) for step in steps]
        else:
            steps, passing = _steps(values, rounds, effect or settings.change_threshold, rule)
            changes = [_change(series.commits, places, step, rule, way) for step in steps]
            changes = _without_mixtures(changes, steps, values, rule)
        starts = [step.index for step in steps]
        if series.conditions:
            changes = _undisturbed(changes, starts, places, series, settings)
        changes = _confirmed(changes, _cards_over(starts, places, series), series, known)
        changes, ended = relapsed(changes, starts, [bisect_left(places, at + 1) - 1 for at in released], rule)
        changes = recovered(changes, ended, rule)
        changes = undoing(passed(changes, [steps.index(step) for step in passing]), rule)
        points += zip((places[start] for start in starts), changes, strict=True)
    return tuple(point for _, point in sorted(points, key=lambda pair: pair[0]))


FEWEST, FEWEST_EXACT = LEAST + 1, 2
"""Results that it takes to tell a change from noise, and of what repeats exactly."""


def lacking(series: Series) -> int:
    """How many more results, measured as its newest is, a series needs before a change in it can be found."""
    way = next(
        (way for way, rounds in zip(reversed(series.ways), reversed(series.rounds), strict=True) if rounds), None
    )
    own = series.by_way[way] if way is not None else []
    return max(0, (FEWEST_EXACT if _repeats(series, own) else FEWEST) - len(own))


def _repeats(series: Series, own: Sequence[int]) -> bool:
    return series.metric.exact and all(len(set(series.rounds[index])) <= 1 for index in own)


def _steps(
    values: Sequence[float], rounds: Sequence[Sequence[float]], effect: float, rule: Rule
) -> tuple[list[Step], list[Step]]:
    """The steps in order, and of them those to two values that went back to where they came from."""
    steps = changepoints(values, effect)
    if 0 in values:
        zeros = _zero_steps(rounds, rule)
        told = {step.index for step in zeros}  # the step after zeros may also be one from the level before them
        steps = sorted([*zeros, *(step for step in steps if step.index not in told)], key=lambda step: step.index)
    if any(not 0 < value < math.inf for value in values):
        return steps, []
    large_pairs = [pair for pair in pairs(values, steps, effect) if rule.large(pair[0].ratio)]
    every = sorted([*steps, *(one for pair in large_pairs for one in pair)], key=lambda step: step.index)
    return every, [pair[0] for pair in large_pairs if len(pair) > 1]


# -- several cards -------------------------------------------------------------------------------------------------------


OVER = "seen over"


def _cards_over(starts: Sequence[int], places: Sequence[int], series: Series) -> list[int]:
    """How many cards it takes for the levels before and after each step; one where it has measured all of them."""
    if not series.factors:
        return [1 for _ in starts]
    borders, counts = [0, *starts, len(places)], []
    for low, start, high in zip(borders, starts, borders[2:], strict=False):
        own = [set(series.cards.get(at, ())) for at in places[max(low, start - REACH) : min(high, start + REACH)]]
        counts.append(1 if set.intersection(*own) else len(set.union(*own)))
    return counts


def _confirmed(
    points: Sequence[ChangePoint], over: Sequence[int], series: Series, known: Sequence[Confirmation]
) -> list[ChangePoint]:
    """The changes, by how many cards each takes, with what pairs that were measured in turn say. A model of what cards add may
    be wrong, and a pair needs none: without one, what was seen over several cards is tentative."""
    doubtful = [
        replace(point, state="tentative") if cards > 1 else point for point, cards in zip(points, over, strict=True)
    ]
    done = list(with_confirmations(doubtful, series, known)) if known else doubtful
    for at, cards in enumerate(over):
        if cards > 1 and done[at] is doubtful[at]:
            done[at] = replace(
                done[at], reasons=(*done[at].reasons, f"{OVER} {cards} cards, and not yet in turn on one")
            )
    return done


def why_tentative(point: ChangePoint) -> str:
    """Why a tentative change is not sure."""
    return next((reason for reason in point.reasons if reason.startswith(OVER)), "too few results at the new level")


# -- several levels ------------------------------------------------------------------------------------------------------

AROUND = 60
"""Results on each side of a change in which shared levels are looked for: what jumped long ago may have been repaired since."""
FEWEST_RUNS = 6
"""A series with this many runs on the two sides of a border alternates."""
KNOWN, SHARE = 5, 0.1
"""A level is known if at least this many values before a change, and this share of them, are at it."""
KNOWN_LATELY, SHARE_LATELY = 2, 0.25
"""The same of the values since another change, which may have moved the levels."""
HALF = 0.5
"""Share of a step, as a logarithm, by which the outermost level of a series that alternates moves if the code has changed."""
STEADY = 20
"""A series has stopped to alternate after this many values on one side of the border."""


def _without_mixtures(
    changes: Sequence[ChangePoint], steps: Sequence[Step], values: Sequence[float], rule: Rule
) -> list[ChangePoint]:
    """The changes; one whose sides share their levels is not large, and says why: another mixture of levels is no change.

    Machines of a pool have a level each, and so has a case whose memory may lie in several ways. A level that occurred only
    once or twice before is new, and so is one that only one side has. Since the last change, two are enough to know it.
    """
    ends = [step.index for step in steps[1:]] + [len(values)]
    done, last = list[ChangePoint](), 0
    for change, step, end in zip(changes, steps, ends, strict=False):
        if change.large and change.ratio is not None:
            far, reach = max(0, step.index - AROUND), step.index + AROUND
            slices = (far, step.index), (max(far, last), step.index), (step.index, reach), (step.index, min(end, reach))
            before, lately, after, level = ([value for value in values[low:high] if value > 0] for low, high in slices)
            known = max(KNOWN, math.ceil(SHARE * len(before)))
            reason = _of_modes(before, after, known, rule) or _mixture(before, level, known, step)
            if not reason and last > far:
                reason = _mixture(lately, level, max(KNOWN_LATELY, math.ceil(SHARE_LATELY * len(lately))), step)
            if reason:
                change = replace(change, large=False, reasons=(*change.reasons, reason))
            else:
                last = step.index
        done.append(change)
    return done


def _of_modes(before: Sequence[float], after: Sequence[float], known: int, rule: Rule) -> str:
    """Which two levels the values before and after a step share, in words; empty if they do not. `known` is how many values
    before it takes to know a level."""
    modes = two_modes(before, after)
    if modes is None or not rule.large(modes.apart) or rule.large(modes.ratio):
        return ""
    rarer = min(modes.base_high, modes.base - modes.base_high)
    return bimodal(modes, "results", "before", "since") if rarer >= known else ""


def _mixture(before: Sequence[float], after: Sequence[float], known: int, step: Step) -> str:
    """That the series alternates between levels which have hardly moved, in words; empty if it is not so.

    A change of the code moves all levels by its ratio, the outermost one too. If values on both sides of the border between the
    means go on to alternate, and the outermost level has moved by less than half of the step, most of it is another mixture.
    """
    up, border = step.ratio > 1, math.sqrt(step.before) * math.sqrt(step.after)
    beyond = [[(value > border) is up for value in side] for side in (before, after)]
    runs = 1 + sum(one != other for one, other in itertools.pairwise(itertools.chain(*beyond)))
    steady = all(beyond[1]) and len(after) >= STEADY
    if runs < FEWEST_RUNS or steady or sum(beyond[0]) < known:
        return ""
    rank = min(known, LEAST)
    was = sorted(before, reverse=up)[rank - 1]
    now = sorted(after, reverse=up)[math.ceil(rank * len(after) / len(before)) - 1]
    if (math.log(now) - math.log(was)) / math.log(step.ratio) >= HALF:
        return ""
    return alternating(up, (sum(beyond[0]), len(before)), (sum(beyond[1]), len(after)))


def series_rule(series: Series, settings: Settings) -> Rule:
    """What is large in the series: what the benchmark declares of the metric it is about, else what the settings say."""
    rule = Rule.of(series.case, series.metric, settings)
    declared = series.threshold if series.primary else None
    return rule if declared is None else replace(rule, threshold=declared)


# -- one change ----------------------------------------------------------------------------------------------------------


def _exact_steps(values: Sequence[float], effect: float) -> list[Step]:
    """Every change from one result to the next, but for those smaller than `effect`, or from or to a negative value."""
    steps = []
    for index, (before, after) in enumerate(itertools.pairwise(values), 1):
        ratio = after / before if before and after else math.nan
        if before != after and min(before, after) >= 0 and not 1 / (1 + effect) < ratio < 1 + effect:
            steps.append(Step(index, index, index, before, after, ratio, ratio, ratio))
    return steps


def _zero_steps(rounds: Sequence[Sequence[float]], rule: Rule) -> list[Step]:
    """The changes from zero or to it that the rule of a check would claim, by all rounds of the results that are zero in a row,
    or are not."""
    groups = itertools.groupby(enumerate(rounds), key=lambda item: median(item[1]) == 0)
    inside = [list(group) for _, group in groups]
    runs = [(group[0][0], [value for _, own in group for value in own]) for group in inside]
    steps = []
    for (_, before), (at, after) in itertools.pairwise(runs):
        verdict, _ = rule.decide_without_ratio(before, after, exact=False)
        if verdict.traits.claims:
            brief = at == runs[-1][0] and len(rounds) - at < LEAST
            levels = median(before), median(after)
            steps.append(Step(at, at, at, *levels, math.nan, math.nan, math.nan, brief))
    return steps


def _undisturbed(
    points: Sequence[ChangePoint], starts: Sequence[int], places: Sequence[int], series: Series, settings: Settings
) -> list[ChangePoint]:
    """The changes; one whose levels were measured under circumstances that forbid a claim is not large, and says why."""
    borders = [0, *starts, len(places)]
    levels = [
        together([series.conditions[at] for at in places[low:high] if at in series.conditions])
        for low, high in itertools.pairwise(borders)
    ]
    done = []
    for point, before, after in zip(points, levels, levels[1:], strict=False):
        doubts = disturbances(before, after, settings, ("before", "after"))
        done.append(replace(point, large=False, reasons=(*point.reasons, *doubts)) if doubts else point)
    return done


def _change(commits: Sequence[str], places: Sequence[int], step: Step, rule: Rule, way: Way) -> ChangePoint:
    """`places` are those of the values that the step was found in, among the commits."""
    good, last = places[step.earliest - 1], places[step.latest]
    if 0 in (step.before, step.after):
        verdict, _ = rule.decide_without_ratio([step.before], [step.after], exact=True)
        ratio = low = high = None
    else:
        ratio, low, high = step.ratio, step.low, step.high
        level = math.sqrt(step.before) * math.sqrt(step.after)
        verdict, _ = rule.decide(ratio, low, high, significant=True, level=level, spread=0.0)
    return ChangePoint(
        first=commits[places[step.index]],
        blamed=tuple(commits[good + 1 : last + 1]),
        good=commits[good],
        before=step.before,
        after=step.after,
        ratio=ratio,
        low=low,
        high=high,
        moved=rule.moved(step.after > step.before),
        large=verdict.traits.claims,
        threshold=rule.threshold,
        state="tentative" if step.brief else "confirmed",
        way=way,
    )
