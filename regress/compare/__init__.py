"""Rounds of two sides -> Comparisons with verdicts. Nothing here reads a file or asks git.

pairing        the rounds of a case on both sides, and whether they were measured alike
evidence       what of one side can be tested: failed rounds and impossible values sorted out, and which are draws of their own
circumstances  what forbids to claim a change, and what explains it: clocks, other processes, two modes, counters
draft          a comparison on its way to a verdict
judge          tests of all cases, adjusted together
steps          what a check measures next, and the verdicts on what it has measured so
rule           from the numbers of one comparison to its verdict
overall        all comparisons, summed up: exit codes, counts, how fine the run could see; those of a side with itself
ends           whether two commits differ, for one who looks for the commit between them
bisection      which commit did it: what is measured next, and how sure it is
implementations  of one operation side by side: the fastest at each size, and where along the size that changes

Histories of many commits are `regress.trends`'s.
"""

from __future__ import annotations

from regress.compare.implementations import has_implementations, implementations
from regress.compare.judge import compare
from regress.compare.overall import Overall, fineness, finer, overall, summed_up
from regress.compare.pairing import renames
from regress.compare.steps import Short, Steps, spreads_of, with_unreached

__all__ = [
    "Overall",
    "Short",
    "Steps",
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
