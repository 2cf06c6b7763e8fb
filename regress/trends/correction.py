"""Values of a history, corrected for who measured them: one solution of all ratios that are free of it.

What the host's clock reads of one and the same code moves by 15 % from night to night. Commits whose windows were taken in turn
were measured in the same minute on the same core, and their ratio is free of it. All such ratios of a history together say how
its commits stand to each other. `cards` does the same with what several cards of a kind have read. Where a metric has pairs,
they alone count: they are free of the card too.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from regress.model import Against, Corrected, Round, Way
from regress.stats.ratios import Ratio, values_from
from regress.stats.summary import exp_or_inf

BETWEEN_PAIRS = 0.01
"""What pairs of one case differ by, beside the error of each; as a share."""

LARGEST_LOG_RATIO = 30.0
"""Logarithm of the largest ratio that is believed."""


class Link(NamedTuple):
    """What the pairs of one result say of two commits: the one it is of, by its place, and the other by its hash."""

    at: int
    commit: str
    log_ratio: float
    weight: float


def links_of(at: int, rounds: Iterable[Round]) -> dict[str, list[Link]]:
    """By metric: what the rounds of the commit at that place say of it and others that they took windows in turn with."""
    pairs: dict[tuple[str, str], list[Against]] = {}
    for against in (against for round in rounds for against in round.against):
        if abs(against.log_ratio) <= LARGEST_LOG_RATIO and 0 <= against.error < math.inf:
            pairs.setdefault((against.metric, against.commit), []).append(against)
    links: dict[str, list[Link]] = {}
    for (metric, commit), own in pairs.items():
        weight = sum(1 / (against.error**2 + BETWEEN_PAIRS**2) for against in own)
        links.setdefault(metric, []).append(
            Link(at, commit, statistics.median(against.log_ratio for against in own), weight)
        )
    return links


class Placed(NamedTuple):
    """Where an item lies: the logarithm of its value over that of the item `to`, which is the last one that ratios link it
    with, and the standard error against those that it is compared with directly."""

    log: float
    to: int
    error: float


def placed(ratios: Sequence[Ratio]) -> dict[int, Placed]:
    """By item, of all that stand in a ratio."""
    weights: dict[int, float] = {}
    for ratio in ratios:
        for item in (ratio.item, ratio.to):
            weights[item] = weights.get(item, 0.0) + ratio.weight
    return {item: Placed(log, last, weights[item] ** -0.5) for item, (log, last) in values_from(ratios).items()}


def corrected(
    links: Sequence[Link], values: Mapping[int, float], ways: Mapping[int, Way], places: Mapping[str, int]
) -> dict[int, Corrected]:
    """By place: the corrected value of each commit that is linked with another one measured in the same way. `values` are those
    that were read, `places` those of the commits by hash."""
    ratios = [
        Ratio(link.at, other, link.log_ratio, link.weight)
        for link in links
        if (other := places.get(link.commit, -1)) in values and link.at in values and ways[link.at] == ways[other]
    ]
    every = ((at, values[its.to] * exp_or_inf(its.log), its.error) for at, its in placed(ratios).items())
    return {at: Corrected(value, error) for at, value, error in every if 0 < value < math.inf}
