"""The repository under test: revisions, changes, history, and a worktree for each commit that is measured.

repository  what is asked of it
revisions   the commit that a revision means, or why it means none
commits     commits as git lists them
worktrees   a checkout for each commit that is measured
running     how git is run, and its errors in our words

All git of the program is here. GitPython runs the commands (imported late: it costs a tenth of a second); the questions are
put to git itself and not to GitPython's object model, which knows no `main@{yesterday}` and cannot make worktrees. No
command runs the user's hooks, asks for a password, or writes the user's index.
"""

from __future__ import annotations

from regress.git.repository import Repository, open_repository

__all__ = ["Repository", "open_repository"]
