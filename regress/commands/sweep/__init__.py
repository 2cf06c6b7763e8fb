"""`regress sweep`: many commits, measured in groups, and what changed among them.

marks      up to where the commits of the branches are measured, and what people know of their events
choosing   which commits the words on the command line are about
order      which of them are measured next
done       what is measured already, and what cannot be
measuring  group after group
groups     which commits a group has, and what is measured again beside them
building   the builds of a group, several at once
cards      groups of several cards, and which commit all of them have in common
confirming what was seen over several cards, measured in turn
bisecting  the commits of what is new and may be due to several
reporting  what there is to say

and on nodes of a cluster

cluster    planned, followed, merged and judged here
planning   what each kind of nodes lacks, in tasks
following  one run, until nothing is left to wait for
arrivals   the results of its tasks
progress   how far it is
"""

from __future__ import annotations

import math
import time
from dataclasses import replace

from regress.commands.sweep.bisecting import Bisected, bisect_new
from regress.commands.sweep.choosing import ALL, NEW, TAGS, Asked, Chosen, choose
from regress.commands.sweep.confirming import Confirmed, confirm, tentative
from regress.commands.sweep.marks import Mark, Reported, Untold
from regress.commands.sweep.measuring import Sweep
from regress.commands.sweep.reporting import nothing, report_of, standing
from regress.errors import NothingMeasured, RegressError
from regress.run.execute import Watcher
from regress.session import Request, Session
from regress.text.wording import counted
from regress.trends.events import Events, events_in, marked_new, with_manners, with_shifts
from regress.units import format_duration


def sweep(
    request: Request, asked: Asked, watcher: Watcher, *, budget_s: float = math.inf, bisects: bool = False
) -> Reported:
    """Measure and record the commits that were asked for and are not measured yet, until all are or the budget ends; with
    `bisects` spend what is left of it on new events that several commits may be to blame for.

    Where a sweep was killed the next one goes on, and what was new in it is new until it is reported: call what is returned
    beside the report once people have that. Where all is measured, the report has what stands in the history.
    """
    start = time.monotonic()
    session = opened(request)
    untold = Untold(session, session.machine.name, asked)
    return untold.alone(watcher.note, lambda: _swept(session, asked, watcher, untold, start, budget_s, bisects))


def _swept(
    session: Session, asked: Asked, watcher: Watcher, untold: Untold, start: float, budget_s: float, bisects: bool
) -> Reported:
    """The sweep that no other process is at."""
    request = session.request
    if asked.word in (NEW, ALL, TAGS):
        session.repository.fetch()
    recorded = session.recorded(session.machine.name)
    mark = Mark(session, asked.environment)
    after = mark.read(recorded) if asked.word == NEW else ""
    chosen = choose(session, asked, recorded, after)
    if not chosen.wanted:
        return nothing(session, f"{chosen.words}: there are none", start), lambda: None
    if chosen.after:
        mark.write(chosen.after)
    end_s = start + budget_s
    run = Sweep(session, chosen, watcher, recorded, asked.environment, asked.retry, end_s=end_s)
    now = events_in(session, chosen.histories, run.names, session.machine.name)
    before = untold.read()
    unsure = run.several and tentative(now.changes)  # of a sweep whose budget ended before they were measured in turn
    if not run.left and not run.failed and not unsure and before is None:
        report = standing(session, chosen, now, start)
    else:
        if before is None:
            before = now
            untold.write(before)
        run.measure()
        require_measured(run, budget_s)
        events = _found(session, chosen, run, before)
        confirmed, bisected = Confirmed(), Bisected()
        if run.several and not run.interrupted:
            confirmed = confirm(request, events.changes, watcher, environment=asked.environment, end_s=end_s)
            events = _found(session, chosen, run, before) if confirmed.pairs else events
        if bisects and not run.interrupted and not confirmed.interrupted:
            bisected = bisect_new(
                request, events, chosen.histories, watcher, environment=asked.environment, end_s=end_s
            )
            events = (
                _found(session, chosen, run, before) if bisected.bisections else events
            )  # what is confirmed is known by now
        options = [*words_of(request, asked), *(["--bisect"] if bisects else [])]
        report = report_of(session, chosen, run, events, confirmed, bisected, options, start)

    def told() -> None:
        if asked.word == NEW and not run.left and not run.failed and not run.interrupted:
            mark.write(chosen.line[-1].sha)
        untold.forget()

    return report, told


def opened(request: Request) -> Session:
    """The session of a sweep. Raises RegressError where the request measures nothing that can be recorded."""
    if request.quick:
        raise RegressError(
            "a sweep measures for the history, and --quick measures nothing",
            why="it takes one sample without warm-up, to see whether everything runs",
            fix="regress run --quick REV, or leave --quick out",
        )
    return Session(request)


def require_measured(run: Sweep, budget_s: float) -> None:
    """Raise NothingMeasured where not one commit has given a number, and why."""
    if run.measured:
        return
    if run.failed:
        what, why, fix = next(iter(run.failed.values()))
        raise NothingMeasured(what, why=why, fix=fix)
    if run.is_over:
        raise NothingMeasured(
            f"the budget of {format_duration(budget_s)} ended before a commit had given a number",
            why=f"a commit is {counted(len(run.cases), 'case')}, each with an unmeasured visit before its rounds",
            fix="give it a longer --budget, or a part of the suite with -b",
        )


def _found(session: Session, chosen: Chosen, run: Sweep, before: Events) -> Events:
    """What the history says by now, and what of it nobody knew before."""
    events = marked_new(before, events_in(session, chosen.histories, run.names, session.machine.name))
    return with_shifts(session, chosen.histories, replace(events, changes=with_manners(session, events.changes)))


def words_of(request: Request, asked: Asked) -> list[str]:
    """What asks for these commits and cases again, measured in the same way."""
    given = request.overrides
    named = (
        ("--since", asked.since),
        ("--steps", str(asked.steps) if asked.steps else None),
        ("--env", asked.environment or None),
        ("--machine", given.get("machine")),
        ("--device", given.get("device")),
        ("--rounds", str(given["sweep_rounds"]) if "sweep_rounds" in given else None),
        ("--config", str(request.config_file) if request.config_file is not None else None),
        ("--gpus", ",".join(request.gpus)),
        ("--into", str(request.into) if request.into is not None else None),
    )
    words = [
        *asked.words,
        *(word for name, value in named if value for word in (name, value)),
        *([f"--{asked.only}"] if asked.only else []),
        *(["--retry"] if asked.retry else []),
    ]
    words += [word for pattern in request.patterns for word in ("-b", pattern)]
    return words + [word for tag in request.tags for word in ("--tag", tag)]
