"""Rounds of two sides -> Comparisons with verdicts.

pairing        the rounds of a case on both sides, and whether they were measured alike
evidence       what of one side can be tested: failed rounds and impossible values sorted out
circumstances  what forbids to claim a change, and what explains it: clocks, throttling, other processes, counters
draft          a comparison on its way to a verdict
judge          tests of all cases, adjusted together
steps          what a check measures next, and the verdicts on what it has measured so
rule           from the numbers of one comparison to its verdict
overall        all comparisons, summed up: exit codes, counts, how fine the run could see
itself         the comparisons of a side with itself: false alarms, and how fine each case is measured
"""

from __future__ import annotations

from regress.compare.itself import fineness, summed_up
from regress.compare.judge import compare
from regress.compare.overall import Overall, overall
from regress.compare.pairing import renames
from regress.compare.steps import Steps

__all__ = ["Overall", "Steps", "compare", "fineness", "overall", "renames", "summed_up"]
