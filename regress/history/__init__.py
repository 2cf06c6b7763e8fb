"""Recorded results: asv's files on one side, Round on the other. The only place that knows asv's format.

store          Store: append a round, finish a side, load a commit, list what there is
sidecar        one line a round, beside asv's file: what asv has no place for
cells          Round values -> rows of asv's file
reading        rows of asv's file -> Round, where there is no sidecar
names          which metric stands under which name, and the entries of benchmarks.json
results_file   asv's result file, version 2: text <-> rows
intervals      the statistics that asv keeps of a list of values
merging        other folders of results into this one
uniting        several files about one result into one
aa             the last A/A check on each device
machine        the name and the facts of this machine
disk           atomic, locked writing, and errors that say what to do
"""

from __future__ import annotations

from regress.history.aa import keep_aa, last_aa
from regress.history.machine import this_machine
from regress.history.merging import Merging
from regress.history.store import CommitResults, Loaded, Recorded, SkippedFile, Store

__all__ = ["CommitResults", "Loaded", "Merging", "Recorded", "SkippedFile", "Store", "keep_aa", "last_aa", "this_machine"]
