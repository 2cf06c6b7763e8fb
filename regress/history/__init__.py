"""Recorded results: asv's files on one side, Round on the other. The only place that knows asv's format.

store          Store: append a round, finish a side, load a commit, list what there is
sidecar        one line a round, beside asv's file: what asv has no place for
cells          Round values -> rows of asv's file
reading        rows of asv's file -> results, where there is no sidecar
recorded       both put together: what is recorded of a commit on a machine in an environment
loading        a commit's files -> Recorded
archive        everything below results_dir, a benchmark at a time
index          what was read of it, kept in a cache; index_files makes its files
states         which files of results there are, and in which state
sources        what each holds, as the index keeps it
names          which metric stands under which name, and the entries of benchmarks.json
results_file   asv's result file: text <-> rows
first_format   asv's format of before 2019
bulk           making millions of small objects
json_text      JSON with bare NaN and Infinity, fast
intervals      the statistics that asv keeps of a list of values
aa             the last A/A check on each device
machine        the name and the facts of this machine
disk           atomic, locked writing, and errors that say what to do
"""

from __future__ import annotations

from regress.history.aa import keep_aa, last_aa
from regress.history.archive import Archive, Place
from regress.history.bulk import without_gc
from regress.history.machine import this_machine
from regress.history.reading import NUMBERS, AsvResult, is_number
from regress.history.recorded import CommitResults, Loaded, Recorded, SkippedFile
from regress.history.store import Store

__all__ = [
    "NUMBERS",
    "Archive",
    "AsvResult",
    "CommitResults",
    "Loaded",
    "Place",
    "Recorded",
    "SkippedFile",
    "Store",
    "is_number",
    "keep_aa",
    "last_aa",
    "this_machine",
    "without_gc",
]
