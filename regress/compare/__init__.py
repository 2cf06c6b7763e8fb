"""Rounds of two sides -> Comparisons with verdicts; rounds of a history -> Series and their ChangePoints.

pairing        the rounds of a case on both sides, and whether they were measured alike
evidence       what of one side can be tested: failed rounds and impossible values sorted out
sessions       which of its values are draws of their own: rounds of one session of a machine are alike
circumstances  what forbids to claim a change, and what explains it: clocks, other processes, two modes, counters
draft          a comparison on its way to a verdict
judge          tests of all cases, adjusted together
steps          what a check measures next, and the verdicts on what it has measured so
rule           from the numbers of one comparison to its verdict
acknowledged   which verdicts and changes were seen before, and are no alarm
overall        all comparisons, summed up: exit codes, counts, how fine the run could see
series         recorded rounds of many commits -> Series
past           what is recorded of a project's commits, read a benchmark at a time
corrected      the values of a Series without what the machine did to them, by windows in turn
cards          ... and as the mean card of its kind would have read them, by commits that several cards have read
changes        the change points of a Series, and which of them are worth an alert
confirmations  what pairs of commits that were measured in turn say of them
shifts         many unrelated benchmarks that moved at one commit: was it the machine?
manner         whether something was measured otherwise where it moved
breakages      which cases gave numbers and give none any more
gating         which series speak for their cases, and which of their changes
anchors        commits measured again: a machine that moved
drifting       what the steps since a release add up to
ends           whether two commits differ, for one who looks for the commit between them
bisection      which commit did it: what is measured next, and how sure it is
itself         the comparisons of a side with itself: false alarms, and how fine each case is measured
implementations  of one operation side by side: the fastest at each size
crossing       where along the size that changes
"""

from __future__ import annotations

from regress.compare.acknowledged import Ancestry, Review, acknowledged
from regress.compare.anchors import Anchors, anchor_check, anchors_of, key_of, with_anchors
from regress.compare.breakages import Numbers, breakages_of, numberless, numbers_before
from regress.compare.changes import changes_of
from regress.compare.drifting import drift, drifts
from regress.compare.implementations import has_implementations, implementations
from regress.compare.itself import fineness, summed_up
from regress.compare.judge import compare
from regress.compare.overall import Overall, finer, overall
from regress.compare.pairing import renames
from regress.compare.past import Past, Unknown, past_of
from regress.compare.series import series_of
from regress.compare.steps import Short, Steps, spreads_of, with_unreached

__all__ = [
    "Ancestry",
    "Anchors",
    "Numbers",
    "Overall",
    "Past",
    "Review",
    "Short",
    "Steps",
    "Unknown",
    "acknowledged",
    "anchor_check",
    "anchors_of",
    "breakages_of",
    "changes_of",
    "compare",
    "drift",
    "drifts",
    "fineness",
    "finer",
    "has_implementations",
    "implementations",
    "key_of",
    "numberless",
    "numbers_before",
    "overall",
    "past_of",
    "renames",
    "series_of",
    "spreads_of",
    "summed_up",
    "with_anchors",
    "with_unreached",
]
