"""Acknowledgements, matched with comparisons and change points.

A verdict stays what it is; an acknowledgement that acts on it keeps it from being an alarm.

    accepted     acts on a regression up to the accepted level plus the threshold; above that it alarms again
    noise        acts on every verdict from numbers: they are listed and prove nothing
    quarantine   acts on everything, failures too
    known        acts on what a history says up to the commit `seen`: changes, and cases that stopped giving numbers

On machines that a job shares with others, what the host's clock reads is noise without an entry.

A level is a ratio to the value at `since`, and a base may already have a part of it. A base that descends from `seen` has all
of it. Any other base says so in its own copy of the file, because an entry lands together with its change: what that copy
accepts is in the base, and the ratio of both levels is left for the head. This survives a rebase, a squash and another machine,
which hashes and seconds do not.

`until`: "next tag" ends at the first tag that has the entry in its own copy of the file. A tag that the head itself bears is
what the head is released as, and ends nothing yet. A date counts to its end.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from functools import cache, cached_property
from pathlib import Path
from typing import Protocol

from regress.acks.file import parse
from regress.errors import ConfigError
from regress.model import (
    HOST_METRICS,
    LIFTED,
    NEXT_TAG,
    Acknowledgement,
    Breakage,
    Case,
    ChangePoint,
    Comparison,
    Metric,
    Reviewed,
    Series,
    Side,
    Verdict,
)
from regress.text.wording import near_names, quoted

SLACK = 1e-4
"""A level is written with some digits."""


def acknowledged(
    comparisons: Sequence[Comparison], review: Review, base: Side, *, whole: bool
) -> tuple[tuple[Comparison, ...], tuple[Reviewed, ...]]:
    """The comparisons of the reviewed head with `base`, each with the acknowledgement that acts on it; and the entries to tell
    of, which have expired or match nothing. Only where the `whole` suite was looked at is there anything to tell."""
    done = tuple(review.of(comparison, base.commit.sha) for comparison in comparisons)
    told = review.entries_of([comparison.case for comparison in comparisons]) if whole else ()
    return done, tuple(reviewed for reviewed in told if reviewed.state != "active")


class Ancestry(Protocol):
    """Which commits there are and which descends from which, as a Repository knows it."""

    def has(self, sha: str) -> bool:
        """Whether the commit is here at all."""

    def is_ancestor(self, old: str, new: str) -> bool:
        """Whether `new` is or descends from `old`."""

    def last_release(self, sha: str, *, itself: bool = False) -> str | None:
        """The tag of the release before the commit, or with `itself` its own."""

    def content(self, revision: str, path: Path) -> str | None:
        """The text of a file as a commit has it."""


class Review:
    """The entries of an acknowledgement file as they stand for one head.

    `known` are cases beyond those that are judged: a pattern that is the name of one of them is no regular expression.
    `here` is the machine of what is compared, `shared` are those on which other jobs may run beside ours.
    """

    def __init__(
        self,
        entries: Sequence[Acknowledgement],
        path: Path,
        repository: Ancestry,
        head: Side,
        now: float,
        known: Iterable[Case] = (),
        here: str = "",
        shared: Collection[str] = (),
    ) -> None:
        self.entries = tuple(entries)
        self._path, self._repository, self._head, self._now = path, repository, head, now
        self._here, self._shared = here, shared
        self._names = {name for case in known for name in (case.name, str(case))}
        self._at = cache(self._read_at)
        self._descends = cache(repository.is_ancestor)
        self._has = cache(repository.has)

    # -- until -----------------------------------------------------------------------------------------------------------

    @cached_property
    def active(self) -> tuple[Acknowledgement, ...]:
        return tuple(entry for entry in self.entries if not self.expired[entry])

    @cached_property
    def _of_sides(self) -> tuple[Acknowledgement, ...]:
        """Those that are about what a case does, and not about a history up to a commit."""
        return tuple(entry for entry in self.active if entry.kind != "known")

    @cached_property
    def expired(self) -> dict[Acknowledgement, str]:
        """By entry what has ended it; empty where nothing has."""
        return {entry: self._ended_by(entry) for entry in self.entries}

    def _ended_by(self, entry: Acknowledgement) -> str:
        sha = self._head.commit.sha
        if entry.until == LIFTED:
            return ""
        if entry.until == NEXT_TAG:
            same = self._last_release and any(_same(entry, accepted) for accepted in self._at(self._last_release))
            return f"{self._last_release} has it" if same else ""
        if re.fullmatch(r"\d{4}-\d\d-\d\d", entry.until):
            today = datetime.datetime.fromtimestamp(self._now).date()
            return f"{entry.until} is over" if today > datetime.date.fromisoformat(entry.until) else ""
        tag = f"refs/tags/{entry.until}"
        own = not self._head.dirty and self._descends(sha, tag)
        return f"{entry.until} is there" if self._descends(tag, sha) and not own else ""

    @cached_property
    def _last_release(self) -> str | None:
        return self._repository.last_release(self._head.commit.sha, itself=self._head.dirty)

    def _read_at(self, revision: str) -> tuple[Acknowledgement, ...]:
        """The entries that the file had at a commit; one that cannot be read had none."""
        text = self._repository.content(revision, self._path)
        try:
            return parse(text, self._path.name) if text is not None else ()
        except ConfigError:
            return ()

    # -- which entry -----------------------------------------------------------------------------------------------------

    def match(self, case: Case, metric: Metric | None, entries: Iterable[Acknowledgement]) -> Acknowledgement | None:
        """The entry that is the most about a metric of a case, or about all of them (None); of equals the first."""
        metrics = ("", metric.name) if metric is not None else ("",)
        matches = [
            (rank, not entry.metric, at, entry)
            for at, entry in enumerate(entries)
            if entry.metric in metrics and (rank := self._rank(case, entry.pattern)) is not None
        ]
        return min(matches, key=lambda match: match[:3])[3] if matches else None

    def _rank(self, case: Case, pattern: str) -> int | None:
        """0 where the pattern is the case's name, 1 its benchmark's, 2 where it is an expression that is found in it."""
        if pattern in (str(case), case.name):
            return int(pattern == case.name)
        if pattern in self._names:
            return None
        try:
            return 2 if re.search(pattern, str(case)) else None
        except re.error:
            return None

    def entries_of(self, cases: Collection[Case]) -> tuple[Reviewed, ...]:
        """All entries, matched with all cases that there are; where none is known, none is unused."""
        return tuple(self._reviewed(entry, cases) for entry in self.entries)

    def _reviewed(self, entry: Acknowledgement, cases: Collection[Case]) -> Reviewed:
        remove = f"regress ack --remove {quoted(entry.pattern)}"
        if cases and not any(self._rank(case, entry.pattern) is not None for case in cases):
            names = {name for case in cases for name in (case.name, str(case))}
            near = near_names(entry.pattern, names, 1)
            fix = f'write "{near[0]}", or {remove}' if near else remove
            return Reviewed(entry, "unused", "no benchmark matches", fix)
        if self.expired[entry]:
            again = f"regress ack {quoted(entry.pattern)} --replace --reason …"
            return Reviewed(entry, "expired", self.expired[entry], f"{remove}, or {again}")
        return Reviewed(entry, "active")

    # -- comparisons -----------------------------------------------------------------------------------------------------

    def of(self, comparison: Comparison, base: str) -> Comparison:
        """The comparison with the entry that acts on it, or why one that is about it does not."""
        entry = self.match(comparison.case, comparison.metric, self._of_sides)
        entry = entry or self._of_shared(self._here, comparison.metric)
        if entry is None:
            return self._expired(comparison)
        if entry.kind == "quarantine" or (entry.kind == "noise" and comparison.verdict.traits.compared):
            return replace(comparison, acknowledged=entry)
        if entry.kind == "noise" or comparison.verdict is not Verdict.REGRESSED:
            return comparison
        if not self._head.dirty and entry.since and self._descends(self._head.commit.sha, entry.since):
            return comparison  # the change came later
        if self._is_within(comparison, entry, base):
            return replace(comparison, acknowledged=entry)
        return replace(comparison, reasons=(*comparison.reasons, f"above what is {_accepted_words(entry)}"))

    def _of_shared(self, machine: str, metric: Metric) -> Acknowledgement | None:
        """What stands for an entry where a value says as much of the jobs beside ours as of the code."""
        if machine not in self._shared or metric.name not in HOST_METRICS:
            return None
        reason = f'other jobs run on nodes of kind {machine}, which is not "exclusive" under "cluster"'
        return Acknowledgement("", "noise", reason, metric.name, until=LIFTED)

    def _expired(self, comparison: Comparison) -> Comparison:
        entry = self.match(comparison.case, comparison.metric, self.entries)
        if entry is None or comparison.verdict is not Verdict.REGRESSED:
            return comparison
        reason = f"no longer {entry.kind}: {self.expired[entry]}"
        return replace(comparison, reasons=(*comparison.reasons, reason))

    def _is_within(self, comparison: Comparison, entry: Acknowledgement, base: str) -> bool:
        large = comparison.threshold if comparison.counts_from is None else comparison.counts_from
        if entry.value is not None:
            return comparison.head is not None and comparison.head.center <= entry.value * (1 + large) * (1 + SLACK)
        return comparison.ratio is not None and self._allows(entry, comparison.metric, comparison.ratio, base, large)

    def _allows(self, entry: Acknowledgement, metric: Metric, ratio: float, base: str, large: float) -> bool:
        """Whether the ratio to a value at the commit `base` is within what is left of the level there."""
        there = entry if entry.seen and self._descends(entry.seen, base) else self.accepted_at(base, entry)
        before = (there.level if there is not None else None) or 1.0
        return _is_up_to(ratio, (entry.level or 1.0) / before, metric, large)

    def accepted_at(self, revision: str, entry: Acknowledgement) -> Acknowledgement | None:
        """What the file accepted at a commit of the same cases and metric."""
        return next((accepted for accepted in self._at(revision) if _about_the_same(entry, accepted)), None)

    # -- change points ---------------------------------------------------------------------------------------------------

    def of_changes(self, series: Series, points: Sequence[ChangePoint]) -> tuple[ChangePoint, ...]:
        """The change points of a series, the regressions among them with the entry that acts on them."""
        about = self.match(series.case, series.metric, self._of_sides)
        known = [entry for entry in self.active if entry.kind == "known"]
        before = self.match(series.case, series.metric, known) if known else None
        entries = (about, before, self._of_shared(series.machine, series.metric))
        return tuple(self._with_entry(point, entries, series.metric, points) for point in points)

    def of_breakages(self, breakages: Iterable[Breakage]) -> tuple[Breakage, ...]:
        """What stopped giving numbers, each with the entry that acts on it: a quarantine, or what is known up to a commit
        that has it."""
        return tuple(replace(breakage, acknowledged=self._of_breakage(breakage)) for breakage in breakages)

    def _of_breakage(self, broken: Breakage) -> Acknowledgement | None:
        acting = (
            entry
            for entry in self.active
            if entry.kind == "quarantine" or (entry.kind == "known" and self._descends(broken.first.sha, entry.seen))
        )
        return self.match(broken.case, None, acting)

    def _with_entry(
        self,
        point: ChangePoint,
        entries: Iterable[Acknowledgement | None],
        metric: Metric,
        points: Sequence[ChangePoint],
    ) -> ChangePoint:
        """The change point, a large regression with the first entry that acts on it. One that relapsed needs none."""
        if point.moved is not Verdict.REGRESSED or not point.large or point.state == "relapsed":
            return point
        acting = (entry for entry in entries if entry is not None and self._acts(entry, point, metric, points))
        entry = next(acting, None)
        return point if entry is None else replace(point, acknowledged=entry)

    def _acts(self, entry: Acknowledgement, point: ChangePoint, metric: Metric, points: Sequence[ChangePoint]) -> bool:
        """Whether a change is one that the entry is about; of several since `since` each has to leave the level alone."""
        if entry.kind == "known":
            return point.state != "tentative" and self._descends(point.blamed[-1], entry.seen)
        if entry.kind != "accepted":
            return True
        after = [later for later in points if later.way == point.way and self._is_after(later, entry.since)]
        if point not in after:
            return False
        if entry.value is not None:
            return point.after <= entry.value * (1 + point.threshold) * (1 + SLACK)
        if point.ratio is None or not after[0].before:
            return False
        large, level = point.threshold, entry.level or 1.0
        up_to_here = _is_up_to(point.after / after[0].before, level, metric, large)
        return up_to_here and self._allows(entry, metric, point.ratio, point.good, large)

    def _is_after(self, point: ChangePoint, since: str) -> bool:
        """Whether the change came after a commit; after one that is not here any more it may have."""
        if not since or not self._has(since):
            return True
        return self._descends(since, point.blamed[-1]) and not self._descends(point.blamed[-1], since)


def _same(one: Acknowledgement, other: Acknowledgement) -> bool:
    """Whether both acknowledge the same, whatever the words."""
    return replace(one, reason="", link="", until="") == replace(other, reason="", link="", until="")


def _about_the_same(one: Acknowledgement, other: Acknowledgement) -> bool:
    return (one.pattern, one.metric, other.kind) == (other.pattern, other.metric, "accepted")


def _is_up_to(ratio: float, level: float, metric: Metric, large: float) -> bool:
    """Whether a ratio is no worse than a level plus the threshold."""
    if ratio <= 0:
        return metric.better != "higher"
    if metric.better == "higher":
        ratio, level = 1 / ratio, 1 / level
    return ratio <= level * (1 + large) * (1 + SLACK)


def _accepted_words(entry: Acknowledgement) -> str:
    accepted = f"{entry.value:,.10g}" if entry.level is None else f"{100 * (entry.level - 1):+.1f} %"
    return f"accepted, {accepted}"
