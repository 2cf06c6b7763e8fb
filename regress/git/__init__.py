"""The repository under test: revisions, changes, history, and a worktree for each commit that is measured.

repository  what is asked of it
revisions   the commit that a revision means, or why it means none
commits     commits as git lists them
line        those between a good and a bad one
worktrees   a checkout for each commit that is measured
mirrors     the copy of a repository that several nodes read
clones      the clone of a project that is known by its address
running     how git is run, and its errors in our words

All git of the program is here. GitPython runs the commands (imported late: it costs a tenth of a second); the questions are
put to git itself and not to GitPython's object model, which knows no `main@{yesterday}` and cannot make worktrees. No
command runs the user's hooks or writes the user's index, and but for cloning and fetching at a terminal none asks for a
password.
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
