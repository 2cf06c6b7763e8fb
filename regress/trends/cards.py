"""What several cards of a kind have read of one history, as the mean one of them would have read it.

Cards of one model differ by some percent, all the time, and so does a card from job to job. As logarithms

    what a job has read of a commit  =  the commit  +  what its card adds  +  what the job adds

where the job adds something around zero. What cards add is known from the commits that several of them have measured, which
a sweep over several cards takes care of: its anchor is in each of its jobs. All readings count at once, by `ratios`: a job is
an item as a commit is, and a reading is the ratio between them. What a job adds is tied to zero by how far jobs of a card lie
apart beyond noise: where that is nothing, the scatter of the few rounds of one anchor is not carried into all that it stands
beside.

Cards that no commit links are levels of their own, as drivers are.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import NamedTuple

from regress.compare.evidence import Values
from regress.model import Case, Corrected, Round, Series, Settings, Way
from regress.stats.ratios import Ratio
from regress.stats.summary import exp_or_inf, mean_and_variance
from regress.trends.correction import placed

QUIETEST = 1e-4
"""Standard deviation of a logarithm that rounds and jobs have at least: equal values have no noise to estimate."""
OFF = 3.0
"""A card is off its kind beyond this many standard deviations of the other cards, and by `change_threshold`."""
FEWEST_OTHERS = 3
"""Other cards that say what is usual for the kind."""

_TO_DEVIATION = 1.4826
"""A median absolute deviation to a standard deviation, for normal values."""


class Reading(NamedTuple):
    """The round values that one job, which is a run on one card, has read of the commit at that place."""

    at: int
    way: Way
    card: str
    run: str
    values: tuple[float, ...]


def readings_of(at: int, way: Way, values: Values) -> list[Reading]:
    """A commit's values, grouped by the job that read them."""
    jobs = set(zip(values.cards, values.runs, strict=True))
    if len(jobs) == 1:  # most are of one
        return [Reading(at, way, *jobs.pop(), values.values)]
    own: dict[tuple[str, str], list[float]] = {}
    for card, run, value in zip(values.cards, values.runs, values.values, strict=True):
        own.setdefault((card, run), []).append(value)
    return [Reading(at, way, card, run, tuple(own_values)) for (card, run), own_values in own.items()]


def cards_of(readings: Iterable[Reading], ways: Mapping[int, Way]) -> dict[int, tuple[str, ...]]:
    """By place: the cards that have read its value in the way that counts there."""
    cards: dict[int, tuple[str, ...]] = {}
    for reading in readings:
        before = cards.get(reading.at, ())
        if reading.way == ways.get(reading.at) and reading.card not in before:
            cards[reading.at] = (*before, reading.card)
    return cards


@dataclass(frozen=True)
class Kind:
    """The readings of a case and metric as one curve, by place; only those taken in the way that counts there."""

    corrected: Mapping[int, Corrected] = field(default_factory=dict)
    apart: Mapping[int, str] = field(default_factory=dict)
    """The cards that are linked with those of that place, where not all are."""
    factors: Mapping[str, float] = field(default_factory=dict)
    """By card that commits link with others: how its readings stand to those of their mean, in the way of the newest commit."""

    def ways(self, ways: Mapping[int, Way]) -> tuple[Way, ...]:
        """The ways, one for each part of the cards that nothing links with the others."""
        if not self.apart:
            return tuple(ways.values())
        made: dict[tuple[Way, str], Way] = {}  # equal ways are one object, which is looked at first
        named = ((way, self.apart.get(at, "")) for at, way in ways.items())
        return tuple(
            made.setdefault((way, cards), (*way, ("gpu_uuid", cards))) if cards else way for way, cards in named
        )


def kind_of(readings: Iterable[Reading], ways: Mapping[int, Way]) -> Kind:
    """The readings of several cards as one curve. `ways` are those that count, by place; values that have no logarithm are
    left as they were read."""
    by_way: dict[Way, list[Reading]] = {}
    for reading in readings:
        if reading.values and min(reading.values) > 0:
            by_way.setdefault(reading.way, []).append(reading)
    corrected: dict[int, Corrected] = {}
    apart: dict[int, str] = {}
    factors: dict[int, Mapping[str, float]] = {}
    for way, own in by_way.items():
        if len({reading.card for reading in own}) < 2:
            continue
        levels = _levels(own)
        for at, (part, value) in levels.places.items():
            if ways.get(at) == way:
                if part.several:
                    corrected[at] = value
                if len(levels.parts) > 1:
                    apart[at] = ", ".join(sorted(part.logs))
                factors[at] = part.factors
    return Kind(corrected, apart, {card: factor for at in sorted(factors) for card, factor in factors[at].items()})


class _Part(NamedTuple):
    """Cards that commits link."""

    logs: Mapping[str, float]
    """What each adds, as logarithms; their sum is zero."""

    @property
    def several(self) -> bool:
        return len(self.logs) > 1

    @property
    def factors(self) -> dict[str, float]:
        factors = {card: exp_or_inf(log) for card, log in self.logs.items()} if self.several else {}
        return {card: factor for card, factor in factors.items() if 0 < factor < math.inf}


class _Levels(NamedTuple):
    parts: Sequence[_Part]
    places: Mapping[int, tuple[_Part, Corrected]]


def _levels(readings: Sequence[Reading]) -> _Levels:
    """The readings of one way, solved. Commits are items by their places, cards and jobs below zero."""
    cards = {card: -1 - number for number, card in enumerate(dict.fromkeys(reading.card for reading in readings))}
    logs: dict[tuple[int, str, str], list[float]] = {}
    for reading in readings:
        logs.setdefault((reading.at, reading.card, reading.run), []).extend(map(math.log, reading.values))
    noise = _noise(logs.values())
    jobs_vary = _variance_of_jobs(logs, noise)
    ratios, jobs = [], dict[tuple[str, str], int]()
    for (at, card, run), own in logs.items():
        job = cards[card]
        if jobs_vary > QUIETEST**2:
            job = jobs.setdefault((card, run), -1 - len(cards) - len(jobs))
        ratios.append(Ratio(at, job, statistics.median(own), len(own) / noise**2))
    ratios += [Ratio(job, cards[card], 0.0, 1 / jobs_vary) for (card, _), job in jobs.items()]
    solved = placed(ratios)
    members: dict[int, list[str]] = {}
    for card, item in cards.items():
        members.setdefault(solved[item].to, []).append(card)
    parts, level = dict[int, _Part](), dict[int, float]()
    for last, names in members.items():
        level[last] = statistics.fmean(solved[cards[card]].log for card in names)
        parts[last] = _Part({card: level[last] - solved[cards[card]].log for card in names})
    places = {}
    for at in {at for at, _, _ in logs}:
        its = solved[at]
        value = exp_or_inf(its.log - level[its.to])
        if 0 < value < math.inf:
            places[at] = parts[its.to], Corrected(value, its.error)
    return _Levels([*parts.values()], places)


def _noise(logs: Iterable[Sequence[float]]) -> float:
    """Standard deviation of a round in its job. The median of the distances says it, so that stray rounds do not."""
    apart = [abs(one - other) for own in logs for one, other in pairwise(own)]
    return max(QUIETEST, _TO_DEVIATION * statistics.median(apart) / math.sqrt(2) if apart else 0.0)


def _variance_of_jobs(logs: Mapping[tuple[int, str, str], Sequence[float]], noise: float) -> float:
    """Variance of what jobs of one card add: that of what they have read of one commit, beyond noise."""
    again: dict[tuple[int, str], list[Sequence[float]]] = {}
    for (at, card, _), own in logs.items():
        again.setdefault((at, card), []).append(own)
    squares = expected = 0.0
    df = 0
    for jobs in again.values():
        if len(jobs) > 1:
            _, variance = mean_and_variance([statistics.median(own) for own in jobs])
            squares += variance * (len(jobs) - 1)
            expected += (len(jobs) - 1) * statistics.fmean(noise**2 / len(own) for own in jobs)
            df += len(jobs) - 1
    return max(0.0, (squares - expected) / df) if df else 0.0


def as_the_mean_card(rounds: Iterable[Round], every: Iterable[Series], side: str) -> list[Round]:
    """The rounds of a side as the mean card would have read them, by what these series say of their cards. They are of no card
    then, and of one session, so nothing is claimed by them. A round whose card is not known there is as it was."""
    factors = {(series.case, series.metric.name): series.factors for series in every if series.factors}
    done = []
    for round in rounds:
        case, card = Case(round.name, tuple(round.params)), str(round.facts.get("gpu_uuid", ""))
        own = {name: factors[case, name][card] for name in round.values if card in factors.get((case, name), ())}
        if own:
            values = {
                name: replace(value, value=value.value / own.get(name, 1.0)) for name, value in round.values.items()
            }
            facts = {name: fact for name, fact in round.facts.items() if name != "gpu_uuid"}
            flags = [*round.flags, f"corrected for the card: {card}"]
            round = replace(round, values=values, facts=facts, flags=flags, run=side)
        done.append(round)
    return done


class Read(NamedTuple):
    """How the cards of a kind have read one time of a case: each over their mean."""

    machine: str
    kind: str
    factors: Mapping[str, float]


def read_by(every: Iterable[Series]) -> list[Read]:
    """Of the times that cases are about, those that several cards have read."""
    times = (series for series in every if series.primary and series.metric.kind == "time" and series.factors)
    return [Read(series.machine, series.device, series.factors) for series in times]


class CardLevel(NamedTuple):
    """A card beside the others of its kind, over all cases that they have read."""

    machine: str
    kind: str
    card: str
    factor: float
    """Its times over those of the mean card."""
    others: int
    is_off: bool
    """Whether the other cards are alike, and it is not."""

    @property
    def words(self) -> str:
        far, which = 100 * abs(self.factor - 1), "slower" if self.factor > 1 else "faster"
        return (
            f"{self.machine}: {self.card} is {far:.2g} % {which} than the mean of {self.others + 1} cards ({self.kind})"
        )


def card_levels(read: Iterable[Read], settings: Settings) -> list[CardLevel]:
    """The cards of each kind that has several."""
    logs: dict[tuple[str, str], dict[str, list[float]]] = {}
    for record in read:
        of_kind = logs.setdefault((record.machine, record.kind), {})
        for card, factor in record.factors.items():
            of_kind.setdefault(card, []).append(math.log(factor))
    levels = []
    for (machine, kind), cards in sorted(logs.items()):
        means = {card: statistics.fmean(own) for card, own in sorted(cards.items())}
        for card, mean in means.items():
            others = [other_mean for other, other_mean in means.items() if other != card]
            off = _is_off(mean, others, settings.change_threshold)
            levels.append(CardLevel(machine, kind, card, exp_or_inf(mean), len(others), off))
    return levels


def _is_off(log: float, others: Sequence[float], threshold: float) -> bool:
    if len(others) < FEWEST_OTHERS:
        return False
    usual, variance = mean_and_variance(others)
    return abs(log - usual) > max(OFF * math.sqrt(variance), math.log1p(threshold))
