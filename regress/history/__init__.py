"""Recorded results: asv's files on one side, Round on the other. The only place that knows asv's format.

store          Store: append a round, finish a side, load a commit, list what there is
sidecar        one line a round, beside asv's file: what asv has no place for
explanations   what differences come from, beside the results of their head
cells          Round values -> rows of asv's file
reading        rows of asv's files -> tables, if there is no sidecar
recorded       both put together: what is recorded of a commit on a machine in an environment
loading        a commit's files -> Recorded
archive        everything below results_dir, a benchmark at a time
index          what was read of it, kept in a cache; index_files makes its files
sources        which files of results there are, and what each holds; rows those of asv's files
names          which metric stands under which name, and the entries of benchmarks.json
results_file   asv's result file: text <-> rows
first_format   asv's format of before 2019
json_text      JSON with bare NaN and Infinity, fast
merging        other folders of results into this one
parts          what a folder has of one result, read for merging
uniting        several files about one result into one
kept           small files of the cache, each of entries of one type
memory         what a machine remembers of past checks: scatter, verdicts, confirmed changes, the last A/A check
machine        the name and the facts of this machine
disk           atomic, locked writing, and errors that say what to do
"""

from __future__ import annotations

from regress.history.archive import Archive, Place
from regress.history.explanations import explanations_in, keep_explanation
from regress.history.index_files import without_gc
from regress.history.machine import this_machine
from regress.history.memory import (
    LastVerdict,
    add_confirmed,
    confirmed_between,
    confirmed_in,
    keep_aa,
    keep_confirmed,
    keep_unchanged,
    last_aa,
    last_verdicts,
    remember_noise,
    remember_verdicts,
    remembered_noise,
)
from regress.history.merging import Merging
from regress.history.reading import NUMBERS, AsvTable, interval_of, is_number
from regress.history.recorded import CommitResults, LeftOut, Loaded, Recorded, SkippedFile, left_out
from regress.history.store import Remeasured, Store, new_run

__all__ = [
    "NUMBERS",
    "Archive",
    "AsvTable",
    "CommitResults",
    "LastVerdict",
    "LeftOut",
    "Loaded",
    "Merging",
    "Place",
    "Recorded",
    "Remeasured",
    "SkippedFile",
    "Store",
    "add_confirmed",
    "confirmed_between",
    "confirmed_in",
    "explanations_in",
    "interval_of",
    "is_number",
    "keep_aa",
    "keep_confirmed",
    "keep_explanation",
    "keep_unchanged",
    "last_aa",
    "last_verdicts",
    "left_out",
    "new_run",
    "remember_noise",
    "remember_verdicts",
    "remembered_noise",
    "this_machine",
    "without_gc",
]
