"""Known regressions: the entries of the acknowledgement file, and what they apply to.

file     its text -> Acknowledgements, and edits of the text
review   the state of entries for one head; the comparisons and change points they apply to
project  the file of a project, for the commands that judge
"""

from __future__ import annotations

from regress.acks.file import added, named, parse, read, removed, replaced, until_of
from regress.acks.review import Ancestry, Review, acknowledged

__all__ = [
    "Ancestry",
    "Review",
    "acknowledged",
    "added",
    "named",
    "parse",
    "read",
    "removed",
    "replaced",
    "until_of",
]
