"""A sweep on a cluster: planned here, measured there, followed, merged and judged here.

The driver may end at any time: what it submitted goes on, and the same command takes it up again.
"""

from __future__ import annotations

import hashlib
import math
import secrets
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from regress.cluster.engine import Engine, engine_of, placed
from regress.cluster.plan import MOST_TASKS, Plan, Task, tasks_of
from regress.cluster.runs import Run, costs_of, create, find
from regress.commands.away import in_this_folder, waited
from regress.commands.sweep import opened, words_of
from regress.commands.sweep.cards import anchors
from regress.commands.sweep.choosing import NEW, Asked, Chosen, choose
from regress.commands.sweep.confirming import tentative
from regress.commands.sweep.done import Done, Suite
from regress.commands.sweep.following import Followed, alone, follow, session_of
from regress.commands.sweep.marks import Mark, Told
from regress.commands.sweep.measuring import Sweep
from regress.commands.sweep.reporting import by_weight, news, off_kind, still_open
from regress.config import cache_dir, kinds_of, written_folders
from regress.errors import ConfigError, Exit, NothingMeasured, ranked
from regress.git import publish
from regress.history import Store
from regress.history.kept import read, write
from regress.history.merging import SAME_MACHINE
from regress.model import Cluster, Kind, Report
from regress.run.execute import Watcher
from regress.session import Request, Session
from regress.text.wording import counted, quoted
from regress.trends.events import Events, events_in, marked_new, with_failures, with_shifts

MIRROR = "repository.git"
TOLD = "told.json"
"""What the history said when people were told last."""


@dataclass(frozen=True)
class On:
    """Where a sweep measures."""

    session: Session
    kinds: tuple[Kind, ...]
    cluster: Cluster
    engine: Engine

    @property
    def shared(self) -> Path:
        return Path(self.cluster.shared)


def sweep_on(
    request: Request, asked: Asked, watcher: Watcher, words: str, *, waits: bool = True, budget_s: float = math.inf
) -> tuple[Report, Callable[[], None]]:
    """The sweep, on the kinds of nodes that `words` name; without `waits` one look: what ended is merged, what lacks submitted.
    Call what is returned beside the report once people have that: until then what is new in it stays new.

    Ctrl-C detaches. A run is over once its news is in a report: what a driver that was killed before has not reported, the
    next one does. Raises ConfigError where there is no such kind, and NothingMeasured where no kind takes a job.
    """
    start = time.monotonic()
    on = _on(request, words)
    key = _key(on, asked)
    end_s = start + budget_s
    run = find(on.shared, key)
    if run is None:
        plan, chosen = _plan(on, asked, key, watcher)
        before = _events(on, chosen, plan)
        run = _begun(on, plan, before, watcher) if any(plan.tasks.values()) else None
    else:
        watcher.note(f"{run.name} is resumed")
        plan = run.plan
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


def _begun(on: On, plan: Plan, before: Events, watcher: Watcher) -> Run:
    """The run of that plan, with what people know before it."""
    publish(on.session.repository, plan.tree, on.shared / MIRROR, plan.key)
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


# -- where ---------------------------------------------------------------------------------------------------------------


def _on(request: Request, words: str) -> On:
    session = opened(request)
    cluster = session.config.settings.cluster
    kinds = tuple(kinds_of(cluster, words))
    root = session.repository.root
    if not session.config.path.is_relative_to(root):
        raise ConfigError(
            f"{session.config.path} is outside the repository that it measures",
            why=f"nodes only have what is in {root}",
            fix="keep asv.conf.json and the suite in the repository",
        )
    cluster = placed(cluster, cache_dir(session.config))
    return On(session, kinds, cluster, engine_of(cluster))


def _key(on: On, asked: Asked) -> str:
    """The same for the same request with the same benchmark files, from whichever clone of the project."""
    suite = hashlib.sha256()
    request, config = on.session.request, on.session.config
    for path in sorted(path for path in config.benchmark_dir.rglob("*.py") if path.is_file()):
        suite.update(repr(str(path.relative_to(config.benchmark_dir))).encode() + path.read_bytes())
    parts = (
        asked,
        [kind.name for kind in on.kinds],
        request.patterns,
        request.tags,
        _settings(request),
        suite.hexdigest(),
    )
    return hashlib.sha256(repr((str(config.results_dir), *parts)).encode()).hexdigest()[:16]


def _settings(request: Request) -> dict[str, object]:
    """What of the command line decides how is measured."""
    return {name: request.overrides[name] for name in ("device", "sweep_rounds") if name in request.overrides}


# -- the plan ------------------------------------------------------------------------------------------------------------


def _plan(on: On, asked: Asked, key: str, watcher: Watcher) -> tuple[Plan, Chosen]:
    """What each kind lacks, in tasks. The suite is looked over once, here."""
    session = on.session
    session.repository.fetch()
    suite = Suite()
    tasks, left, heads, facts = {}, {}, {}, {}
    for kind in on.kinds:
        own = session_of(on.session, kind.name)
        recorded = own.recorded(kind.name)
        mark = Mark(own, asked.environment)
        chosen = choose(own, asked, recorded, mark.read(recorded) if asked.word == NEW else "")
        suite = suite if suite.cases else _suite(on, own, asked, chosen, watcher)
        done = Done(own, suite, asked.retry)
        lacking = {
            commit.sha: [str(case) for case in missing]
            for commit in chosen.line
            if commit.sha in chosen.wanted and (missing := done.missing(commit.sha))
        }
        if chosen.after:
            mark.write(chosen.after)
        lacks = [commit for commit in chosen.line if commit.sha in lacking]
        anchor = anchors(own, chosen.line, suite.names, suite.environment, lacks)[:1]
        every = [str(case) for case in suite.cases]
        costs = costs_of(on.shared, kind)
        wanted = tasks_of(lacking, anchor[0].sha, kind.at_most, every, costs) if lacking else []
        tasks[kind.name] = tuple(wanted[:MOST_TASKS])
        left[kind.name] = len(wanted[MOST_TASKS:])
        heads[kind.name] = chosen.line[-1].sha if asked.word == NEW and not left[kind.name] else ""
        known = Store(own.config.results_dir).machine_facts(kind.name)
        facts[kind.name] = {name: str(known[name]) for name in SAME_MACHINE if known.get(name)}
    repository, config, request = session.repository, session.config, session.request
    ours = written_folders(config)  # not the configuration, which nodes read in the tree
    plan = Plan(
        key=key,
        command=quoted("regress", "sweep", *words_of(on.session.request, asked), "--on", ",".join(tasks)),
        tree=repository.snapshot(ours) if repository.is_dirty(ours) else repository.resolve("HEAD").sha,
        config=config.path.relative_to(repository.root).as_posix(),
        tasks=tasks,
        left=left,
        heads=heads,
        environment=asked.environment,
        recorded_in=suite.environment,
        names=tuple(sorted(suite.names)),
        patterns=request.patterns,
        tags=request.tags,
        settings=_settings(request),
        facts=facts,
    )
    return plan, chosen


def _suite(on: On, own: Session, asked: Asked, chosen: Chosen, watcher: Watcher) -> Suite:
    """The suite, looked over with the newest commit's code: here, or on a node of a kind that builds."""
    builder = next((kind for kind in on.cluster.kinds.values() if kind.build), None)
    if not chosen.wanted:
        return Suite()
    if builder is None:
        return Sweep(own, chosen, watcher, own.recorded(own.machine.name), asked.environment, asked.retry).suite
    file = on.shared / f"suite-{secrets.token_hex(4)}.json"
    watcher.note(f"a node of kind {builder.name} looks the suite over")
    job = in_this_folder(on.cluster, builder, ["sweep", *words_of(own.request, asked), "--look", str(file)])
    code = waited(on.engine.attach(builder, job, f"regress-{file.stem}"), watcher.note)
    suite = read(file, Suite)
    file.unlink(missing_ok=True)
    if code or suite is None:
        raise NothingMeasured(
            f"a node of kind {builder.name} could not look the suite over",
            why=f"its exit code is {code}, and what it said stands above",
            fix=quoted("regress", "doctor", "--on", builder.name),
        )
    return suite


def look_over(request: Request, asked: Asked, file: Path, watcher: Watcher) -> None:
    """What `_suite` has a node do: write what the suite is to the file."""
    session = opened(request)
    recorded = session.recorded(session.machine.name)
    chosen = choose(session, asked, recorded)
    write(file, Sweep(session, chosen, watcher, recorded, asked.environment, asked.retry).suite)


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
