"""Which commit did it: a search over the commits between a good and a bad one, by pairs of rounds.

Any commit of the line may be the first at the new level. Each measured commit is compared with the good end in pairs of rounds,
so that a drift of the machine affects both alike. Each pair multiplies the odds of all commits on either side (a probabilistic
bisection: each probe is a sequential test between "as good" and "the whole step", and later probes correct a wrong one). The
next commit to measure is the one that halves what is left; a probe ends once it is sure.

A probe that is surely between both levels splits the change in parts: the search continues in the larger one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Literal

from regress.stats.sprt import CLIP, log_likelihood_ratio, pooled_sd, values_to_decide
from regress.stats.summary import critical_t

SURE = 0.99
"""Probability from which on a commit has been found."""
DOUBT = 0.01
"""A probe is measured until its probability of being good, or bad, is this close to one."""
WORTH = 0.004
"""A commit whose probability of being bad is this close to 0 or 1 is not worth measuring."""
AT_ONCE = 2
"""Pairs of rounds that are asked for: two, so that each side goes first once."""
MOST_PAIRS = 40
"""Pairs of a probe. What is unclear by then stays so."""
SPLITTING, APART, PART = 8, 4.0, 0.2
"""A probe is between both levels if, after SPLITTING pairs, its mean is APART standard errors and this part of the step away
from either."""
VERIFICATIONS, AGAIN = 4, 2
"""Ranges that are verified, and how often the same one: where rounds disagree, another one may have become likely."""
EXACTLY = 20.0
"""What an exact value says, as the logarithm of odds."""
TRUSTED = 0.5
"""How much recorded results decide where the search begins: they are of other sessions, and never part of the claim."""


SESSIONS = 0.02
"""How much the results of one commit are taken to scatter from session to session."""


@dataclass(frozen=True)
class Ask:
    """This many pairs of rounds of the candidate with that number and of the good end."""

    candidate: int
    pairs: int


@dataclass(frozen=True)
class CandidateRange:
    """Candidates after `good` up to `bad`, of which one did it; `good` is -1 for the good end itself."""

    good: int
    bad: int


@dataclass(frozen=True)
class ProbeReading:
    """What was measured of a probe: its logarithmic change from the good end, with 95 % interval, and how likely it is bad."""

    change: float
    low: float
    high: float
    bad: float
    between: bool = False
    """Surely at neither level."""

    @property
    def state(self) -> Literal["good", "bad", "between", "unclear"]:
        if self.between:
            return "between"
        return "bad" if self.bad >= 1 - DOUBT else "good" if self.bad <= DOUBT else "unclear"


@dataclass(frozen=True)
class Search:
    """What is known of the candidates 0 to `count` - 1, the oldest first; the last is the bad end. Immutable.

    `size` is the step, as logarithm of bad/good; `ends` are the differences of the pairs that showed it. A search that is
    `exact` sees each probe's level at once: its difference is nearer to zero or to the step.
    """

    count: int
    size: float
    ends: tuple[float, ...] = ()
    exact: bool = False
    weights: tuple[float, ...] = ()
    """What recorded results say, as probabilities of the candidates; empty: nothing."""
    measured: Mapping[int, tuple[float, ...]] = field(default_factory=dict)
    """By candidate, in the order of the first measurement: the differences of its pairs, logarithms of probe/good."""
    untestable: frozenset[int] = frozenset()
    """Candidates that do not build, or do not run."""
    verifying: tuple[tuple[CandidateRange, tuple[float, ...]], ...] = ()
    """Ranges that were to be verified, with the differences of pairs of both their ends."""

    # -- results come in -------------------------------------------------------------------------------------------------

    def with_pairs(self, candidate: int, differences: Sequence[float]) -> Search:
        known = self.measured.get(candidate, ())
        return replace(self, measured={**self.measured, candidate: (*known, *differences)})

    def without(self, candidate: int) -> Search:
        """It cannot be measured."""
        return replace(self, untestable=self.untestable | {candidate})

    def verified(self, place: CandidateRange, differences: Sequence[float]) -> Search:
        """Both ends of a range were measured against each other."""
        return replace(self, verifying=(*self.verifying, (place, tuple(differences))))

    # -- what it asks for ------------------------------------------------------------------------------------------------

    def ask(self) -> Ask | None:
        """What to measure next; None where one range is sure, or nothing could add to what is known."""
        if self.is_sure:
            return None
        bad = _sums(self.probabilities)
        worth = [
            candidate
            for candidate in self._testable(*self._bounds)
            if len(self.measured.get(candidate, ())) < self._most and WORTH < bad[candidate] < 1 - WORTH
        ]
        if not worth:
            return None
        last = list(self.measured)[-1] if self.measured else -1
        if last in worth and DOUBT < bad[last] < 1 - DOUBT:
            return Ask(last, self._at_once)
        likely = _sums(self._posterior(self.weights))
        chosen = max(
            worth,
            key=lambda candidate: (min(likely[candidate], 1 - likely[candidate]) * self._builds(candidate), -candidate),
        )
        return Ask(chosen, self._at_once)

    def to_verify(self) -> tuple[CandidateRange, int] | None:
        """The range whose ends are to be measured against each other, and how often they have been: what is sure, or else all
        that is likely. None if there is no more to be gained from it."""
        place, tried = self.best()[0] if self.is_sure else self.likely(), [candidate for candidate, _ in self.verifying]
        again = tried.count(place)
        return None if again >= AGAIN or len(tried) >= VERIFICATIONS else (place, again)

    def expected(self) -> tuple[int, int]:
        """About how many probes and pairs of rounds the search still takes."""
        masses = [mass for _, mass in self._ranges(self._posterior(self.weights)) if mass > 0]
        bits = -math.fsum(mass * math.log2(mass) for mass in masses)
        probes = math.ceil(bits - 1e-9)
        if self.exact:
            return probes, probes
        _, _, level, step = self._levels
        sd, freedom = self.sd
        pairs = values_to_decide(level, step, sd, math.log(1 / DOUBT - 1), freedom)
        return probes, probes * max(AT_ONCE, min(MOST_PAIRS, math.ceil(pairs)))

    @property
    def _at_once(self) -> int:
        return 1 if self.exact else AT_ONCE

    @property
    def _most(self) -> int:
        return 1 if self.exact else MOST_PAIRS

    def _testable(self, low: int, high: int) -> list[int]:
        return [candidate for candidate in range(low + 1, high) if candidate not in self.untestable]

    def _builds(self, candidate: int) -> float:
        """How likely it can be measured: what is broken is so for some commits, the more of them the more have been met."""
        if candidate in self.measured or not self.untestable:
            return 1.0
        near = min(abs(candidate - other) for other in self.untestable)
        return 1 - 2 ** -(near / len(self.untestable))

    # -- what it knows ---------------------------------------------------------------------------------------------------

    @cached_property
    def sd(self) -> tuple[float, int]:
        """Standard deviation of a pair's difference, and its degrees of freedom."""
        return pooled_sd([self.ends, *self.measured.values()])

    @cached_property
    def probabilities(self) -> list[float]:
        """Of each candidate, that it did it; by what was measured here alone."""
        return self._posterior(())

    @property
    def is_sure(self) -> bool:
        return self.best()[1] >= SURE

    def best(self) -> tuple[CandidateRange, float]:
        """The likeliest range between two testable neighbours, and its probability."""
        return max(self._ranges(self.probabilities), key=lambda weighed: weighed[1])

    def mass(self, place: CandidateRange) -> float:
        """The probability that it was one of that range."""
        return math.fsum(self.probabilities[place.good + 1 : place.bad + 1])

    def likely(self, probability: float = SURE) -> CandidateRange:
        """The shortest range of candidates that holds that probability."""
        ranges = [(place, mass) for place, mass in self._ranges(self.probabilities)]
        shortest, first, held = CandidateRange(ranges[0][0].good, ranges[-1][0].bad), 0, 0.0
        for place, mass in ranges:
            held += mass
            while held - ranges[first][1] >= probability and first < len(ranges) - 1:
                held -= ranges[first][1]
                first += 1
            if held >= probability and place.bad - ranges[first][0].good < shortest.bad - shortest.good:
                shortest = CandidateRange(ranges[first][0].good, place.bad)
        return shortest

    def standing(self, candidate: int) -> ProbeReading:
        """Of a candidate that was measured."""
        values, (sd, freedom) = self.measured[candidate], self.sd
        mean = math.fsum(values) / len(values)
        half = 0.0 if self.exact or not freedom else critical_t(freedom, 0.05) * sd / math.sqrt(len(values))
        bad = _sums(self.probabilities)[candidate]
        return ProbeReading(mean, mean - half, mean + half, bad, candidate in self._narrowed[4])

    @property
    def is_split(self) -> bool:
        """Whether the change came in several parts, of which the search is after one."""
        low, high = self._bounds
        return (low, high) != (-1, self.count - 1)

    @property
    def sought(self) -> float:
        """The step that is looked for now, as a logarithm: all of it, or the larger part."""
        _, _, level, step = self._levels
        return step - level

    @cached_property
    def _bounds(self) -> tuple[int, int]:
        """The candidate that is good, and the one that is bad."""
        return self._levels[:2]

    @cached_property
    def _levels(self) -> tuple[int, int, float, float]:
        """The candidate that is good, the one that is bad, and the level of either, by all that was measured at it."""
        return self._refined(*self._narrowed[:4])

    @cached_property
    def _narrowed(self) -> tuple[int, int, float, float, frozenset[int]]:
        """The same by the ends, or by the probes that split the change, and which these are."""
        low, high, splits = -1, self.count - 1, set[int]()
        level, step = (0.0, 0.0), (self.size, self._error_of(len(self.ends)))
        for candidate, values in self.measured.items():
            if self.exact or not low < candidate < high or len(values) < SPLITTING:
                continue
            mean, error = math.fsum(values) / len(values), self._error_of(len(values))
            share = (mean - level[0]) / (step[0] - level[0])
            apart = all(abs(mean - other) > APART * math.hypot(error, its) for other, its in (level, step))
            if apart and PART < share < 1 - PART:
                splits.add(candidate)
                if share > 0.5:
                    high, step = candidate, (mean, error)
                else:
                    low, level = candidate, (mean, error)
        return low, high, level[0], step[0], frozenset(splits)

    def _error_of(self, pairs: int) -> float:
        return self.sd[0] / math.sqrt(pairs) if pairs else 0.0

    def _refined(self, low: int, high: int, level: float, step: float) -> tuple[int, int, float, float]:
        """The levels, by all probes that seem to be on one of them: the ends alone give them roughly."""
        inside = {candidate: values for candidate, values in self.measured.items() if low < candidate < high}
        if self.exact or not inside:
            return low, high, level, step
        bad = _sums(self._odds(low, high, level, step, ()))
        at_step = [(1.0, values) for values in (self.measured.get(high, self.ends),)]
        at_step += [(bad[candidate], values) for candidate, values in inside.items()]
        step = _mean(at_step)
        if low >= 0:
            level = _mean(
                [(1.0, self.measured[low]), *((1 - bad[candidate], values) for candidate, values in inside.items())]
            )
        return low, high, level, step

    def _posterior(self, weights: Sequence[float]) -> list[float]:
        """Probabilities of the candidates to be the first one that is bad."""
        return self._odds(*self._levels, weights)

    def _odds(self, low: int, high: int, level: float, step: float, weights: Sequence[float]) -> list[float]:
        (sd, freedom), clip = ((0.0, 0), EXACTLY) if self.exact else (self.sd, CLIP)
        logs = [-math.inf] * self.count
        sum_of_later = 0.0
        for candidate in range(high, low, -1):
            if candidate < high and candidate in self.measured:
                sum_of_later += log_likelihood_ratio(self.measured[candidate], level, step, sd, freedom, clip)
            known = TRUSTED * weights[candidate] + (1 - TRUSTED) / self.count if weights else 1.0
            logs[candidate] = sum_of_later + math.log(known)
        for place, values in self.verifying:
            says = log_likelihood_ratio(values, 0.0, step - level, sd, freedom, clip)
            for candidate in range(max(low, place.good) + 1, min(high, place.bad) + 1):
                logs[candidate] += says
        most = max(logs)
        odds = [math.exp(log - most) for log in logs]
        total = math.fsum(odds)
        return [weight / total for weight in odds]

    def _ranges(self, probabilities: Sequence[float]) -> Iterator[tuple[CandidateRange, float]]:
        """The ranges between neighbours that can be measured, with their probabilities."""
        low, high = self._bounds
        for good, bad in pairwise([low, *self._testable(low, high), high]):
            yield CandidateRange(good, bad), math.fsum(probabilities[good + 1 : bad + 1])


def _sums(probabilities: Sequence[float]) -> list[float]:
    """Of each candidate, the probability that it is at the new level: that it or one before it did it."""
    return [min(mass, 1.0) for mass in accumulate(probabilities)]


def _mean(weighted: Sequence[tuple[float, Sequence[float]]]) -> float:
    total = math.fsum(weight * len(values) for weight, values in weighted)
    return math.fsum(weight * value for weight, values in weighted for value in values) / total


def weights_of(count: int, levels: Mapping[int, Sequence[float]], size: float, sd: float) -> tuple[float, ...]:
    """The probabilities of `count` candidates to have made a step of that size, by logarithms of recorded values.

    `levels` are by candidate, -1 for the good end; `sd` is the deviation of a pair's difference. Sessions differ by more than
    rounds do, so each commit counts as one value.
    """
    means = {at: math.fsum(values) / len(values) for at, values in levels.items()}
    spread = math.hypot(SESSIONS, sd)
    logs = []
    for candidate in range(count):
        apart = [mean - (size if at >= candidate else 0.0) for at, mean in means.items()]
        level = math.fsum(apart) / len(apart) if apart else 0.0
        logs.append(-math.fsum((distance - level) ** 2 for distance in apart) / (2 * spread * spread))
    most = max(logs)
    odds = [math.exp(log - most) for log in logs]
    total = math.fsum(odds)
    return tuple(weight / total for weight in odds)
