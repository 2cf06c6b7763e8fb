"""A sweep on a cluster: planned here, measured there, followed, merged and judged here.

The driver may end at any time: what it submitted goes on, and the same command takes it up again.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace

from regress.cluster.plan import Plan, Task
from regress.cluster.runs import Run, create, find
from regress.commands.sweep.choosing import Asked, Chosen, choose
from regress.commands.sweep.confirming import tentative
from regress.commands.sweep.following import Followed, alone, follow
from regress.commands.sweep.marks import Reported, Told
from regress.commands.sweep.planning import On, key_of, on_kinds, plan_of
from regress.commands.sweep.reporting import by_weight, news, off_kind, still_open
from regress.errors import Exit, ranked
from regress.git import publish
from regress.history.kept import one_at_a_time, read, write
from regress.model import Report
from regress.run.execute import Watcher
from regress.session import Request
from regress.text.wording import counted
from regress.trends.events import Events, events_in, marked_new, with_failures, with_shifts

MIRROR = "repository.git"
TOLD = "told.json"
"""What the history said when people were told last."""


def sweep_on(
    request: Request, asked: Asked, watcher: Watcher, words: str, *, waits: bool = True, budget_s: float = math.inf
) -> Reported:
    """The sweep, on the kinds of nodes that `words` name; without `waits` one look: what ended is merged, what lacks submitted.
    Call what is returned beside the report once people have that: until then what is new in it stays new.

    Ctrl-C detaches. A run is over once its news is in a report: what a driver that was killed before has not reported, the
    next one does. Raises ConfigError where there is no such kind, and NothingMeasured where no kind takes a job.
    """
    start = time.monotonic()
    on = on_kinds(request, words)
    key = key_of(on, asked)
    end_s = start + budget_s
    run, plan, before = _taken_up(on, asked, key, watcher)
    runs, followed = list[Run](), Followed(settled=True)
    with ExitStack() as followers:
        if run is not None:
            runs.append(run)
            followers.enter_context(alone(run, watcher))
            before = _told(run)
            followed = _followed(on, run, watcher, waits, end_s)
        chosen = choose(on.session, asked, on.session.recorded())
        pairs = _pairs(on, plan, chosen, before, watcher) if followed.settled else None
        if pairs is not None:
            if run is not None:
                run.close()  # the run of the pairs knows what people know
            runs.append(pairs)
            followers.enter_context(alone(pairs, watcher))
            before = _told(pairs)
            followed.add(_followed(on, pairs, watcher, waits, end_s))
        now = _events(on, chosen, plan)
        report = _report(on, chosen, plan, followed, marked_new(before, now), runs, start)
        held = followers.pop_all()  # nobody else follows these runs before people have the report

    def told() -> None:
        with held:
            for own in runs:
                _tell(own, now)
            if runs and followed.settled:
                runs[-1].close()

    return report, told


def _taken_up(on: On, asked: Asked, key: str, watcher: Watcher) -> tuple[Run | None, Plan, Events]:
    """The run of the request that is not over, or a new one, None where nothing is to be measured; with its plan, and what the
    history says before it. Of two drivers that come at once one plans, and the other finds what that has begun."""
    lock, words = on.session.cache / "planning" / key, "another driver plans this sweep; waiting until it has"
    with one_at_a_time(lock, lambda: watcher.note(words)):
        run = find(on.shared, key)
        if run is not None:
            watcher.note(f"{run.name} is resumed")
            return run, run.plan, _told(run)
        plan, chosen = plan_of(on, asked, key, watcher)
        before = _events(on, chosen, plan)
        return _begun(on, plan, before, watcher) if any(plan.tasks.values()) else None, plan, before


def _begun(on: On, plan: Plan, before: Events, watcher: Watcher) -> Run:
    """The run of that plan, with what people know before it."""
    commits = {sha for own in plan.tasks.values() for task in own for sha in task.commits}
    publish(on.session.repository, plan.tree, on.shared / MIRROR, plan.key, commits)
    run = create(on.shared, plan, {TOLD: Told(before.changes, before.breakages)})
    tasks = [f"{counted(len(own), 'task')} on {kind}" for kind, own in plan.tasks.items() if own]
    watcher.note(f"{run.name}: {', '.join(tasks)}")
    return run


def _tell(run: Run, events: Events) -> None:
    write(run.folder / TOLD, Told(events.changes, events.breakages))


def _told(run: Run) -> Events:
    return (read(run.folder / TOLD, Told) or Told()).events


def _followed(on: On, run: Run, watcher: Watcher, waits: bool, end_s: float) -> Followed:
    return follow(run, on.kinds, on.engine, on.session, watcher, waits=waits, end_s=end_s)


def _pairs(on: On, plan: Plan, chosen: Chosen, before: Events, watcher: Watcher) -> Run | None:
    """The run that measures in turn, each in one job, what the history has seen over several jobs; None where nothing is left
    to confirm."""
    key = f"{plan.key}-pairs"
    if (run := find(on.shared, key)) is not None:
        return run
    events = _events(on, chosen, plan)
    tasks = {
        kind.name: tuple(
            Task(number, ends, cases=tuple(dict.fromkeys(str(change.case) for change in own)), pair=True)
            for number, (ends, own) in enumerate(
                tentative([e for e in events.changes if e.machine == kind.name]).items()
            )
        )
        for kind in on.kinds
    }
    if not any(tasks.values()):
        return None
    return _begun(on, replace(plan, key=key, tasks=tasks, left={}, heads={}), before, watcher)


# -- what came of it -----------------------------------------------------------------------------------------------------


def _events(on: On, chosen: Chosen, plan: Plan) -> Events:
    """What the history says of the kinds."""
    events = events_in(on.session, chosen.histories, plan.names, None)
    kinds = {kind.name for kind in on.kinds}
    return replace(
        events,
        changes=tuple(change for change in events.changes if change.machine in kinds),
        breakages=tuple(breakage for breakage in events.breakages if breakage.machine in kinds),
    )


def _report(
    on: On, chosen: Chosen, plan: Plan, followed: Followed, history: Events, runs: Sequence[Run], start: float
) -> Report:
    session = on.session
    opened_ = [change for change in history.changes if change.new and change.point.is_open]
    broken = with_failures(session, history.breakages)
    codes = []
    if followed.interrupted or followed.cancelled:
        codes.append(Exit.INTERRUPTED)
    if opened_:
        codes.append(Exit.REGRESSED)
    if followed.failed or followed.given_up or any(breakage.new for breakage in broken):
        codes.append(Exit.FAILED)
    suggestions = [] if followed.settled else [("go on", plan.command), ("end them", on.engine.to_end(runs[-1]))]
    codes = list(ranked(codes))
    return Report(
        command="sweep",
        exit_codes=tuple(codes),
        state=codes[0].word,
        changes=tuple(sorted(history.changes, key=by_weight)),
        shifts=with_shifts(session, chosen.histories, history).shifts,
        breakages=broken,
        remark=_remark(plan, followed, history, runs),
        cases=len(plan.names),
        warnings=(*session.warnings, *followed.warnings, *_left(plan), *off_kind(history)),
        suggestions=tuple(suggestions),
        recorded=str(session.config.results_dir),
        notify=session.config.settings.notify_command if opened_ or any(breakage.new for breakage in broken) else "",
        duration_s=time.monotonic() - start,
    )


def _left(plan: Plan) -> list[str]:
    return [
        f"{kind}: {counted(number, 'more task')} than one run has; the same command submits what is left"
        for kind, number in plan.left.items()
        if number
    ]


def _remark(plan: Plan, followed: Followed, events: Events, runs: Sequence[Run]) -> str:
    """ "2 new regressions (h100: 12 of 12 tasks in, a100: 11 of 12 tasks in); 1 regression open"."""
    if not runs:
        return "; ".join([f"nothing to measure: all is measured on {', '.join(plan.tasks)}", *still_open(events)])
    wanted = Counter[str]()
    for run in runs:
        wanted.update({kind: len(tasks) for kind, tasks in run.plan.tasks.items()})
    came = [f"{kind}: {followed.came[kind]} of {counted(number, 'task')} in" for kind, number in wanted.items()]
    return "; ".join([f"{news(events)} ({', '.join(came)})", *still_open(events)])
