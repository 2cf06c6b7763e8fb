"""`regress report`: what is recorded of a branch, as the pages show it. Nothing is measured and nothing is written here."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from regress.acks import Ancestry
from regress.acks.project import review
from regress.errors import NoRepository, NothingMeasured
from regress.history import SkippedFile, confirmed_in
from regress.model import Commit, Side
from regress.pages import PageSite
from regress.pages.accounts import explained_in
from regress.pages.branch import Branch, Dated, branch_of, by_date
from regress.pages.contents import Contents
from regress.pages.leaves import Maker
from regress.project import Project, Request
from regress.session import reading
from regress.trends import Past, past_of

if TYPE_CHECKING:
    from regress.run.execute import Watcher


def report(
    request: Request, watcher: Watcher, since: str | None = None, commands: Collection[str] = ()
) -> tuple[PageSite, Path]:
    """The pages of all that is recorded of the branch, and the folder that the configuration has for them.

    With `since` they begin there: at a date, or with a commit. `commands` are those that the reader can be told to run.

    Raises NothingMeasured where no commit of the branch has a result.
    """
    project = Project(request)
    settings, results = project.config.settings, project.config.results_dir
    # Of no commits at all everything is unknown: so it says which have results, for git to tell their order.
    everything = past_of(results, project.cache, (), settings, progress=reading(watcher))
    recorded = {unknown.commit_sha for unknown in everything.unknown}
    branch, ancestry = _branch(project, watcher, everything, recorded, since)
    if not branch.commits:
        raise _nothing(project, branch, recorded, since, everything.skipped)
    for text in project.config.warnings:
        watcher.note(f"warning: {text}")
    past = everything.of(branch.commits)
    entries = review(project, Side("head", branch.all[-1], branch.name), ancestry)
    known = explained_in(project), confirmed_in(project.cache)
    maker = Maker(past, results, branch, settings, entries, *known, frozenset(commands))
    site = PageSite(tuple(maker.leaves()), Contents(project, past, branch).index)
    return site, (project.config.root / settings.report_dir).resolve()


def _branch(
    project: Project, watcher: Watcher, everything: Past, recorded: Collection[str], since: str | None
) -> tuple[Branch, Ancestry]:
    """The branch, and what descends from what; where the repository is not at hand by the dates that were recorded."""
    branch: tuple[Branch, Ancestry]
    try:
        branch = branch_of(project, recorded, since), project.repository
        warnings = project.repository.missing_history()
    except NoRepository as error:
        every = [Commit(unknown.commit_sha, "", "", unknown.date) for unknown in everything.unknown]
        branch = by_date(every, since), Dated(every)
        warnings = [f"commits are ordered by date, without subjects and tags: {error.cause}; fix: {error.fix}"]
    for text in warnings:
        watcher.note(f"warning: {text}")
    return branch


def _nothing(
    project: Project,
    branch: Branch,
    recorded: Collection[str],
    since: str | None,
    skipped: Sequence[SkippedFile],
) -> NothingMeasured:
    if since is not None and recorded:
        return NothingMeasured(
            f"no commit since {since} has results",
            why=f"{project.config.results_dir} has results of {len(recorded)} commits, none of them since then",
            fix="leave --since out",
        )
    for file in skipped if not recorded else ():
        return NothingMeasured(
            "there is nothing to report", why=f"{file.path} cannot be used: {file.why}", fix=file.fix
        )
    why = f"{project.config.results_dir} has no results"
    if recorded:
        why = f"the {len(recorded)} commits with results in {project.config.results_dir} are not on {branch.name}"
    return NothingMeasured("there is nothing to report", why=why, fix="regress run")
