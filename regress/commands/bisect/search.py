"""One line of commits, searched: both ends, probe after probe, and what was found against the commit before it.

What is measured goes to the ledger at once, and what is asked for next follows from the ledger alone: a search that was killed
goes on as if nothing had been.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence

from regress.commands.bisect.ledger import Judged, Probed, SavedBisection
from regress.commands.bisect.meter import FRESH, CommitSkipped, Meter, PairSteps
from regress.compare.bisection import SURE, CandidateRange, Search
from regress.compare.ends import (
    SHARE,
    EndsSteps,
    Kind,
    Pair,
    contrast,
    differences,
    judged,
    kind_of,
    pairs_of,
    verifying_rounds,
)
from regress.errors import NothingMeasured
from regress.model import Commit, Comparison, Contrast, Failure, Metric, Verdict
from regress.run.environments import Prepared
from regress.run.execute import JobResult


class CommitSearch:
    """The search among `commits`, those after `good` up to a bad one, the oldest first. `told` is called after each probe.

    It begins nothing after `ends`, by the monotonic clock.
    """

    def __init__(
        self,
        meter: Meter,
        ledger: SavedBisection,
        good: Commit,
        commits: Sequence[Commit],
        told: Callable[[CommitSearch, Commit], None],
        ends: float = math.inf,
    ) -> None:
        self.meter, self.good, self.commits = meter, good, tuple(commits)
        self._ledger, self._told, self._end_s = ledger, told, ends
        self._place = {commit.sha: at for at, commit in enumerate(commits)}
        self._ready: Prepared | None = None
        self.weights: tuple[float, ...] = ()
        """What recorded results say of each commit; empty: nothing."""
        self.interrupted = False

    # -- what is known ---------------------------------------------------------------------------------------------------

    @property
    def ends(self) -> Judged | None:
        return self._ledger.entries.ends

    @property
    def probes(self) -> dict[str, Probed]:
        """By full hash, in the order of the first measurement."""
        return dict(self._ledger.entries.probes)

    @property
    def verified(self) -> tuple[tuple[CandidateRange, Judged], ...]:
        """The ranges that were to be verified, and what came out."""
        return tuple((self._range(judgement), judgement) for judgement in self._ledger.entries.verified)

    @property
    def confirmed(self) -> tuple[CandidateRange, Judged] | None:
        """What was verified and is so, by the rule of a check and by all that was measured."""
        steps = [(place, judgement) for place, judgement in self.verified if self._is_step(judgement)]
        if not steps:
            return None
        search = self.state()
        return next((step for step in reversed(steps) if search.mass(step[0]) >= SURE), None)

    @property
    def is_over(self) -> bool:
        return time.monotonic() > self._end_s

    def state(self, probes: dict[str, Probed] | None = None) -> Search:
        """The search as it stands after these probes (all of them)."""
        exact = self._kind != "noisy"
        apart = [] if exact else self._differences(self._known_ends.pairs)
        size = 1.0 if exact else math.fsum(apart) / len(apart)
        search = Search(len(self.commits), size, tuple(apart), exact, self.weights)
        for sha, probed in (self.probes if probes is None else probes).items():
            at = self._place[sha]
            search = search.without(at) if probed.skipped else search.with_pairs(at, self._differences(probed.pairs))
        if probes is None:
            for place, judgement in self.verified:
                search = search.verified(place, self._differences(judgement.pairs))
        return search

    def _differences(self, pairs: Sequence[Pair]) -> list[float]:
        known = self._known_ends.contrast
        change = (known.after or 0.0) - (known.before or 0.0)
        return differences(pairs, self._kind, change if self._kind == "exact" else 1.0)

    def commit_at(self, place: int) -> Commit:
        return self.good if place < 0 else self.commits[place]

    def _range(self, verified: Judged) -> CandidateRange:
        return CandidateRange(self._place.get(verified.good, -1), self._place[verified.bad])

    def _is_step(self, verified: Judged) -> bool:
        """Whether what was verified moved as the ends did."""
        if self._kind == "noisy":
            return verified.contrast.verdict is self._known_ends.contrast.verdict
        return bool(verified.pairs) and min(self._differences(verified.pairs)) > SHARE

    # -- measuring -------------------------------------------------------------------------------------------------------

    def measure_ends(self, metric: str = "") -> Judged | None:
        """Whether the ends differ, and how; None where time was over before that was known, and after Ctrl-C. `metric`: what to
        look at, empty for the worst that gates."""
        if self.ends is not None:
            return self.ends
        ready, good_s = self.meter.prepare(self.good, "base")
        self._ready = ready
        bad, bad_s = self.meter.prepare(self.commits[-1], "head")
        steps, began = EndsSteps(self.meter.settings, metric, self._end_s), time.monotonic()
        measured = self.meter.measure(ready, bad, steps)
        self.interrupted = measured.interrupted
        if measured.interrupted or not steps.enough:
            return None
        comparison = steps.comparison(measured)
        if comparison is None:
            nothing = Contrast(Metric(metric or "value", "", "tracked"), Verdict.UNDECIDED, reasons=("not measured",))
            self._ledger.ends(Judged(nothing, ()))
            return self.ends
        pairs = pairs_of(measured.rounds, comparison.metric.name)
        took_s = (time.monotonic() - began) / max(1, len(pairs))
        kind, failure = kind_of(comparison), comparison.head_failure
        more = steps.others(measured)
        if kind == "noisy" and not _all_positive(pairs):
            kind, more = None, [*more, "some rounds are zero or negative, so there is no ratio to search for"]
        self._ledger.ends(
            Judged(
                contrast(comparison, more),
                tuple(pairs),
                kind,
                _kind_of_failure(failure) if failure is not None else "",
                seconds=(max(good_s, bad_s), took_s),
            )
        )
        return self.ends

    def search(self) -> None:
        """Until a commit or a range is confirmed, nothing more can be told apart, time is over, or Ctrl-C."""
        while self.confirmed is None and not self.interrupted and not self.is_over:
            search = self.state()
            ask = search.ask()
            if ask is not None:
                self._probe(self.commits[ask.candidate])
            elif not self._verify(search):
                return

    def _probe(self, commit: Commit) -> None:
        """Measure the commit for as long as the search wants more of it."""
        before = self.probes.get(commit.sha, Probed()).pairs

        def more(measured: JobResult) -> int:
            new = self._pairs(measured)
            if new:
                self._ledger.probe(commit.sha, Probed((*before, *new)))
            elif measured.rounds:  # it gives no values, and will give none
                return 0
            ask = self.state().ask()
            wanted = ask is not None and self.commits[ask.candidate] == commit and not self.is_over
            return ask.pairs if ask is not None and wanted else 0

        try:
            measured = self.meter.probe(
                self._good_ready(), commit, PairSteps(self.meter.case, self._first(), more, self._end_s)
            )
            self.interrupted = measured.interrupted
            new = self._pairs(measured)
            if new:
                self._ledger.probe(commit.sha, Probed((*before, *new)))
            elif not (self.interrupted or self.is_over or before):
                raise CommitSkipped(self._why_not(measured))
        except CommitSkipped as skipped:
            self._ledger.probe(commit.sha, Probed(skipped=str(skipped)))
        if not self.interrupted and commit.sha in self.probes:
            self._told(self, commit)

    def _verify(self, search: Search) -> bool:
        """Measure both ends of the likeliest range against each other in fresh rounds; whether there was anything to verify."""
        wanted = search.to_verify()
        if wanted is None:
            return False
        place, again = wanted
        good, bad = self.commit_at(place.good), self.commit_at(place.bad)
        kind = self._kind
        rounds = verifying_rounds(search.sd[0], search.sought, again) if kind == "noisy" else 1
        first = FRESH + self._first() if kind == "noisy" else 0
        base, _ = self.meter.prepare(good, "base")
        told = f"verifying: {bad.short} against {good.short}"
        steps = PairSteps(
            self.meter.case, first, lambda measured: 0 if measured.rounds else rounds, self._end_s, told, afresh=True
        )
        try:
            measured = self.meter.probe(base, bad, steps)
        except CommitSkipped as skipped:
            nothing = Contrast(self._metric, Verdict.UNDECIDED, reasons=(str(skipped),))
            self._ledger.verified(Judged(nothing, (), good=good.sha, bad=bad.sha))
            return True
        self.interrupted = measured.interrupted
        cut = self.is_over and sum(round.side == "head" for round in measured.rounds) < rounds
        if not (measured.interrupted or cut):
            least = math.expm1(abs(search.sought) * SHARE) if kind == "noisy" else self.meter.settings.change_threshold
            comparison = self._of_metric(judged(measured, self.meter.settings, least))
            pairs = tuple(self._pairs(measured))
            told_apart = (
                contrast(comparison)
                if comparison is not None
                else Contrast(self._metric, Verdict.UNDECIDED, reasons=("not measured",))
            )
            self._ledger.verified(Judged(told_apart, pairs, good=good.sha, bad=bad.sha))
        return True

    # -- rounds ----------------------------------------------------------------------------------------------------------

    @property
    def _known_ends(self) -> Judged:
        assert self.ends is not None, "the ends are measured first"
        return self.ends

    @property
    def _kind(self) -> Kind:
        kind = self._known_ends.kind
        assert kind is not None, "without a difference there is nothing to search for"
        return kind

    @property
    def _metric(self) -> Metric:
        return self._known_ends.contrast.metric

    def _first(self) -> int:
        """The number of the next round. What is exact comes with the first rounds of a process only."""
        return self._ledger.entries.pairs if self._kind == "noisy" else 0

    def _good_ready(self) -> Prepared:
        if self._ready is None:
            self._ready, _ = self.meter.prepare(self.good, "base")
        return self._ready

    def _pairs(self, measured: JobResult) -> list[Pair]:
        """What was measured of the metric; of a case that fails, whether it does."""
        if self._kind != "failing":
            return pairs_of(measured.rounds, self._metric.name)
        failures = {round.side: round.failure for round in measured.rounds if round.failure is not None}
        if "head" not in failures and not any(round.side == "head" for round in measured.rounds):
            return []
        if any(_kind_of_failure(failure) != self._known_ends.failure for failure in failures.values()):
            return []
        # A base without rounds has worked all the same: in the unmeasured visit.
        return [Pair(float("base" in failures), float("head" in failures))]

    def _why_not(self, measured: JobResult) -> str:
        """Why a commit gave no values. Raises NothingMeasured where it is the good end that gave none."""
        failures = {round.side: round.failure for round in measured.rounds if round.failure is not None}
        if "base" in failures:
            why = failures["base"].message
            raise NothingMeasured(f"the good end {self.good.short} fails now", why=why, fix="regress check, then again")
        if "head" in failures:
            another = " in another way" if self._kind == "failing" else ""
            return f"it fails{another}: {failures['head'].message}"
        return f"it has no {self._metric.name}"

    def _of_metric(self, every: Sequence[Comparison]) -> Comparison | None:
        alike = [comparison for comparison in every if comparison.metric.name == self._metric.name]
        return alike[0] if alike else next(iter(every), None)


def _all_positive(pairs: Sequence[Pair]) -> bool:
    return bool(pairs) and min(min(pair.base, pair.head) for pair in pairs) > 0


def _kind_of_failure(failure: Failure) -> str:
    """What tells one failure from another: messages may have addresses and times in them."""
    return f"{failure.kind}: {failure.message.partition(':')[0]}"
