"""Rounds of a history -> Series and their ChangePoints, and which of them need attention.

past        the recorded results of a project's commits, read a benchmark at a time
renames     benchmarks that continue under another name
points      one result -> a point of each of its series
series      recorded rounds of many commits -> Series
correction  values of a series without the machine's effect, by windows in turn
cards       values as the mean card of a model would read them, by commits measured on several cards
changes     the change points of a Series, and which of them are worth an alert
outcomes    what became of the changes: confirmed in turn, taken back, lost again
anchors     commits measured again: a machine that moved
gating      which series and changes count for their cases
shifts      many unrelated benchmarks that moved at one commit: was it the machine?
manner      whether something was measured differently where it moved
breakages   cases that stopped giving numbers
drift       the sum of all steps since a release
events      all of that over the recorded commits of a project, and what is new

`regress.compare` judges two commits; its tests and rule are used here.
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
