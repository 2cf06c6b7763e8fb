"""Rounds of a history -> Series and their ChangePoints, and what of that somebody should look at.

past        what is recorded of a project's commits, read a benchmark at a time
renames     benchmarks that went on under another name
series      recorded rounds of many commits -> Series
correction  values of a series without what the machine did to them, by windows in turn
cards       and as the mean card of a kind would have read them, by commits that several cards have read
changes     the change points of a Series, and which of them are worth an alert
confirmations  what pairs of commits that were measured in turn say of them
anchors     commits measured again: a machine that moved
gating      which series speak for their cases, and which of their changes
shifts      many unrelated benchmarks that moved at one commit: was it the machine?
manner      whether something was measured differently where it moved
breakages   which cases gave numbers and give none any more
drift       what the steps since a release add up to
events      all of that over the recorded commits of a project, and what of it nobody knew before

Of two commits `regress.compare` judges, whose tests and rule are used here.
"""

from __future__ import annotations

from regress.trends.anchors import Anchors, anchor_check, anchors_of, key_of, with_anchors
from regress.trends.breakages import Numbers, breakages_of, numberless, numbers_before
from regress.trends.changes import changes_of
from regress.trends.drift import drift, drifts
from regress.trends.past import Past, Unknown, past_of
from regress.trends.series import series_of

__all__ = [
    "Anchors",
    "Numbers",
    "Past",
    "Unknown",
    "anchor_check",
    "anchors_of",
    "breakages_of",
    "changes_of",
    "drift",
    "drifts",
    "key_of",
    "numberless",
    "numbers_before",
    "past_of",
    "series_of",
    "with_anchors",
]
