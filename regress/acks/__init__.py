"""What is worse and known to be: the entries of the acknowledgement file, and on what they act.

file     its text -> Acknowledgements, and changes of the text
review   entries as they stand for one head; comparisons and change points that they act on
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
