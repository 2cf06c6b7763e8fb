"""Rounds of two sides -> Comparisons with verdicts. Nothing here reads a file or asks git.

pairing        the rounds of a case on both sides, and whether they were measured in the same way
evidence       the testable values of one side: without failed rounds and impossible values, and which are independent draws
circumstances  what prevents a claim, and what explains a change: clocks, other processes, two modes, counters
draft          a comparison on its way to a verdict
testing        the test of one metric of a case
judge          tests of all cases, adjusted together
steps          what a check measures next, and the verdicts on the result
budget         how far cases are, what they cost, and which there is time for
confirming     what a confirmation takes: which comparisons need one, and by how many rounds
unreached      what of a check there was no time for
rule           from the numbers of one comparison to its verdict
overall        all comparisons, summed up: exit codes, counts, smallest detectable change; A/A checks
ends           whether two commits differ, before a bisection between them
bisection      the search for the commit: what is measured next, and the confidence
implementations  of one operation: the fastest at each size, and where that changes

Histories of many commits are in `regress.trends`.
"""

from __future__ import annotations

from regress.compare.implementations import has_implementations, implementations
from regress.compare.judge import compare
from regress.compare.overall import Overall, fineness, finer, overall, spreads_of, summed_up
from regress.compare.pairing import renames
from regress.compare.steps import CheckSteps, Short
from regress.compare.unreached import with_unreached

__all__ = [
    "CheckSteps",
    "Overall",
    "Short",
    "compare",
    "fineness",
    "finer",
    "has_implementations",
    "implementations",
    "overall",
    "renames",
    "spreads_of",
    "summed_up",
    "with_unreached",
]
