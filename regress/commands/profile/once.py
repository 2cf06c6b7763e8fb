"""`regress once`: a case in a plain process, for tools that watch a program from outside."""

from __future__ import annotations

from collections.abc import Sequence

from regress.commands.profile.case import choose, only
from regress.errors import NothingMeasured, RegressError
from regress.model import Failure
from regress.run.execute import Watcher
from regress.run.plain import Plain, plain
from regress.session import Request, Session
from regress.text.wording import counted, first_of, quoted


def once(request: Request, revisions: Sequence[str], watcher: Watcher, calls: int = 1, environment: str = "") -> Plain:
    """The program that sets the case up, warms it up and calls it, with the code of one revision (none: the working tree).

    Raises RegressError where several cases match, NothingMeasured where none does or it cannot be run here.
    """
    session = Session(request)
    chosen = choose(session, only(revisions), watcher, environment)
    if len(chosen.cases) > 1:
        raise RegressError(
            f"{counted(len(chosen.cases), 'case')} match {chosen.job.selection.words}; once runs one",
            why=first_of(chosen.cases, 3),
            fix=f"regress once {quoted(str(chosen.cases[0]))}",
        )
    (case,) = chosen.cases
    outcome = plain(chosen.job.sides[0], chosen.job, chosen.benchmarks[case.name], case, calls)
    if isinstance(outcome, Failure):
        raise NothingMeasured(f"{case} cannot be run", why=outcome.message, fix="regress list")
    return outcome
