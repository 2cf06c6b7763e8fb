"""Anchors: older commits measured again beside new ones, to tell changes of the machine from changes of the code.

An anchor that moved between then and now shows that the machine changed; `drift` compares the head with one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from regress.compare.rule import Rule
from regress.history import Remeasured
from regress.model import Anchor, AnchorCheck, Case, ChangePoint, Commit, Confirmation, Move, Series, Settings
from regress.stats.summary import geomean
from regress.stats.ttests import Welch, welch
from regress.trends.changes import changes_of, series_rule
from regress.trends.series import series_of

Key = tuple[str, str, str, Case, str]
"""Machine, environment, device, case and metric: values that share these are one series."""


FEWEST_TOGETHER = 5
"""Fewest cases whose times are judged together: fewer may agree by chance."""


class Again(NamedTuple):
    """A commit that was measured again beside another one: its round values, and the run of regress that recorded each."""

    commit: str
    beside: str
    now: tuple[float, ...]
    runs: tuple[str, ...] = ()
    cards: tuple[str, ...] = ()
    """The cards that it was measured on."""


class Anchors:
    """All that was measured again in a history, and what it says of the changes there: older commits beside new ones, and the
    sides of a change in turn. `confirmed` is by machine, case and metric, `releases` as for `changes_of`."""

    def __init__(
        self,
        remeasured: Iterable[Remeasured],
        settings: Settings,
        confirmed: Mapping[tuple[str, str, str], Sequence[Confirmation]] | None = None,
        releases: Collection[str] = (),
    ) -> None:
        self._settings, self._confirmed, self._releases = settings, confirmed or {}, releases
        self._again: dict[str, dict[Key, list[Again]]] = {}
        for anchor in remeasured:
            sha = anchor.recorded.commit_sha
            for series in series_of([(sha, [anchor.recorded])], settings):
                of_name = self._again.setdefault(series.case.name, {})
                again = Again(sha, anchor.beside, series.rounds[0], series.runs.get(0, ()), series.cards.get(0, ()))
                of_name.setdefault(key_of(series), []).append(again)

    def of(self, name: str) -> Mapping[Key, Sequence[Again]]:
        """What was measured again of a benchmark, by series."""
        return self._again.get(name, {})

    def confirmed(self, name: str) -> list[tuple[tuple[str, str, str], Sequence[Confirmation]]]:
        """What was confirmed of a benchmark."""
        return [
            (key, confirmations) for key, confirmations in self._confirmed.items() if key[1].partition("(")[0] == name
        ]

    def changes_of(self, series: Series) -> tuple[ChangePoint, ...]:
        """The change points of the series, with what was confirmed of them; see `with_anchors`."""
        known = self._confirmed.get((series.machine, str(series.case), series.metric.name), ())
        points = changes_of(series, self._settings, known, self._releases)
        again = self.of(series.case.name).get(key_of(series), ())
        if not points or not again or series.corrected:  # then what the machine did is out of it already
            return points
        return with_anchors(points, series, anchors_of(series, again), self._settings)


def key_of(series: Series) -> Key:
    return series.machine, series.environment, series.device, series.case, series.metric.name


def anchors_of(series: Series, again: Iterable[Again]) -> tuple[Anchor, ...]:
    """The anchors of one series, with their values of when they were new. Left out are commits without a result then, and those
    that another card measured then: a difference of cards says nothing about the machine."""
    then = _by_commit(series)
    cards = {series.commits[place]: its for place, its in series.cards.items()}
    return tuple(
        Anchor(sha, beside, then[sha], now, runs)
        for sha, beside, now, runs, own in again
        if then.get(sha) and cards.get(sha, own) == own
    )


def _by_commit(series: Series) -> dict[str, tuple[float, ...]]:
    return {series.commits[place]: rounds for place, rounds in zip(series.at, series.rounds, strict=True)}


def with_anchors(
    points: Sequence[ChangePoint],
    series: Series,
    anchors: Sequence[Anchor],
    settings: Settings,
) -> tuple[ChangePoint, ...]:
    """The change points of a series; those over which an anchor moved the same way say so, and are large only by what is left.

    An anchor bears on a change between its own commit and the one it was measured again beside. Of several the newest one
    speaks. It moved if that is significant and at least `settings.change_threshold`; a single round is no evidence, nor are
    values of zero or commits that the series does not have.
    """
    rule, place = series_rule(series, settings), {sha: i for i, sha in enumerate(series.commits)}
    known = [anchor for anchor in anchors if anchor.commit in place and anchor.beside in place]
    moves = [(anchor, move) for anchor in known if (move := _move(anchor, settings)) is not None]
    moves.sort(key=lambda moved: place[moved[0].commit])
    done = []
    for change in points:
        over = [
            (anchor, move)
            for anchor, move in moves
            if place[anchor.commit] < place[change.first] <= place[anchor.beside]
            and change.ratio is not None
            and (move.ratio > 1) == (change.ratio > 1)
        ]
        done.append(_explained(change, *over[-1], rule) if over else change)
    return tuple(done)


def anchor_check(
    commit: Commit,
    beside: Commit,
    label: str,
    recorded_at: float | None,
    anchored: Iterable[tuple[Series, Anchor]],
    settings: Settings,
) -> AnchorCheck:
    """What the values of one anchor say, each with the series that it is of.

    One of many values moves by chance, so the machine has drifted only where one of them is significant among all (Bonferroni).
    A few rounds seldom prove that of a small drift. So the times are also taken together: where the interval of their geometric
    mean over at least `FEWEST_TOGETHER` cases leaves out 1, and it is off by `settings.change_threshold` or more, it has too.
    """
    seen = [(series, held) for series, anchor in anchored if (held := _against(anchor, settings)) is not None]
    moved = [
        Move(series.case, series.metric, held.ratio, held.p)
        for series, held in seen
        if held.p is not None and _moved(held, settings)
    ]
    times = [held.ratio for series, held in seen if series.primary and series.metric.kind == "time"]
    together = _together(times, settings)
    return AnchorCheck(
        commit=commit,
        beside=beside,
        label=label,
        recorded_at=recorded_at,
        cases=len({series.case for series, _ in seen}),
        within=max((abs(held.ratio - 1) for _, held in seen), default=None),
        moved=tuple(moved),
        together=together,
        drifted=together is not None or any(move.p < settings.alpha / len(seen) for move in moved),
    )


def _together(ratios: Sequence[float], settings: Settings) -> tuple[float, float, float, int] | None:
    if len(ratios) < FEWEST_TOGETHER:
        return None
    mean = geomean(ratios, settings.confidence)
    if mean.low <= 1 <= mean.high or not _listed(mean.center, settings):
        return None
    return mean.center, mean.low, mean.high, mean.n


def _move(anchor: Anchor, settings: Settings) -> Welch | None:
    """How an anchor moved; None where it did not, or where nobody can tell."""
    test = _against(anchor, settings)
    return test if test is not None and _moved(test, settings) else None


def _against(anchor: Anchor, settings: Settings) -> Welch | None:
    """An anchor's values of now against those of then; None if there is no ratio of them."""
    if not anchor.then or not anchor.now or min(*anchor.then, *anchor.now) <= 0:
        return None
    return welch(anchor.then, anchor.now, settings.confidence)


def _moved(test: Welch, settings: Settings) -> bool:
    return test.p is not None and test.p < settings.alpha and _listed(test.ratio, settings)


def _listed(ratio: float, settings: Settings) -> bool:
    listed = 1 + settings.change_threshold
    return not 1 / listed < ratio < listed


def _explained(change: ChangePoint, anchor: Anchor, move: Welch, rule: Rule) -> ChangePoint:
    assert change.ratio is not None
    name, beside = anchor.commit[:8], anchor.beside[:8]
    reason = f"{name}, measured again beside {beside}, moved by {_signed(move.ratio)} itself: the machine moved"
    large = change.large and rule.large(change.ratio / move.ratio)
    return replace(change, large=large, reasons=(*change.reasons, reason))


def _signed(ratio: float) -> str:
    return f"{100 * (ratio - 1):+.1f} %"
