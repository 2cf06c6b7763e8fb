"""The repository under test: revisions, changes, history, and a worktree for each commit that is measured.

repository  questions to it
revisions   the commit that a revision means, or why it means none
commits     commits as git lists them
releases    its tags, and where in a history they are
line        those between a good and a bad one
worktrees   a checkout for each commit that is measured
mirrors     the copy of a repository that several nodes read
clones      the clone of a project that is known by its address
running     how git is run, and its errors in our words

All use of git is here. GitPython runs the commands (imported late: it costs a tenth of a second). We ask git itself instead of
GitPython's object model, which does not know `main@{yesterday}` and cannot make worktrees. No command runs the user's hooks or
writes the user's index, and only cloning and fetching at a terminal may ask for a password.
"""

from __future__ import annotations

from regress.git.clones import Clone
from regress.git.line import line_between, merged_by
from regress.git.mirrors import checkout, publish
from regress.git.repository import Repository, iso_date, open_repository

__all__ = [
    "Clone",
    "Repository",
    "checkout",
    "iso_date",
    "line_between",
    "merged_by",
    "open_repository",
    "publish",
]
