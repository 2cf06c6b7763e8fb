"""A sweep on a cluster: planned here, measured there, followed, merged and judged here.

The driver may end at any time: what it handed in goes on, and the same command takes it up again.
"""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from regress.cluster.engine import Engine, engine_of, placed
from regress.cluster.plan import Plan, tasks_of
from regress.cluster.runs import Run, create, find, read, write
from regress.commands.sweep import news, opened, still_open
from regress.commands.sweep.choosing import NEW, Asked, Chosen, choose
from regress.commands.sweep.done import Done
from regress.commands.sweep.following import Followed, follow
from regress.commands.sweep.marks import Mark
from regress.commands.sweep.measuring import Sweep
from regress.config import cache_dir, kinds_of
from regress.errors import ConfigError, Exit, ranked
from regress.git import publish
from regress.history import Store
from regress.history.merging import SAME_MACHINE
from regress.model import Cluster, Kind, Report
from regress.run.execute import Watcher
from regress.session import Request, Session, counted, quoted
from regress.trends.events import Events, events_on, marked_new, shifts_in, with_failures

MIRROR = "repository.git"


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

    def of(self, kind: str) -> Session:
        """The session of a kind, which is a machine of that name."""
        request = self.session.request
        return Session(replace(request, overrides={**request.overrides, "machine": kind}))


def sweep_on(
    request: Request, asked: Asked, watcher: Watcher, words: str, *, waits: bool = True, budget_s: float = math.inf
) -> Report:
    """The sweep, on the kinds of nodes that `words` name; without `waits` one look: what ended is merged, what lacks handed in.

    Ctrl-C detaches. Raises ConfigError where there is no such kind, and NothingMeasured where no kind takes a job.
    """
    start = time.monotonic()
    on = _on(request, words)
    key = _key(on, asked)
    run = find(on.shared, key)
    if run is None:
        plan, chosen = _plan(on, asked, key, watcher)
        if not any(plan.tasks.values()):
            return _report(on, chosen, plan, Followed(), _events(on, chosen, plan), start)
        publish(on.session.repository, plan.tree, on.shared / MIRROR, key)
        run = create(on.shared, plan)
        write(run.folder / "told.json", _events(on, chosen, plan))
        tasks = [f"{counted(len(own), 'task')} on {kind}" for kind, own in plan.tasks.items()]
        watcher.note(f"{run.name}: {', '.join(tasks)}")
    else:
        watcher.note(f"{run.name} is taken up again")
    followed = follow(run, on.kinds, on.engine, on.session, watcher, waits=waits, end_s=start + budget_s)
    chosen = choose(on.session, asked, on.session.recorded())
    report = _report(
        on, chosen, run.plan, followed, read(run.folder / "told.json", Events) or Events((), ()), start, run
    )
    if not followed.interrupted:
        write(run.folder / "told.json", _events(on, chosen, run.plan))
    return report


# -- where ---------------------------------------------------------------------------------------------------------------


def _on(request: Request, words: str) -> On:
    session = opened(request)
    cluster = session.config.settings.cluster
    kinds = tuple(kinds_of(cluster, words))
    root = session.repository.root
    if not session.config.path.is_relative_to(root):
        raise ConfigError(
            f"{session.config.path} lies outside the repository that it measures",
            why=f"nodes read {root}, and what of it lies elsewhere they do not have",
            fix="keep asv.conf.json and the suite in the repository",
        )
    cluster = placed(cluster, cache_dir(session.config))
    return On(session, kinds, cluster, engine_of(cluster))


def _key(on: On, asked: Asked) -> str:
    """The same for the same request with the same benchmark files."""
    suite = hashlib.sha256()
    for path in sorted(on.session.config.benchmark_dir.rglob("*.py")):
        suite.update(repr(path).encode() + path.read_bytes())
    request, config = on.session.request, on.session.config
    parts = (
        asked,
        [each.name for each in on.kinds],
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
    first: tuple[Sweep, Chosen] | None = None
    tasks, heads, facts = {}, {}, {}
    for kind in on.kinds:
        own = on.of(kind.name)
        recorded = own.recorded(kind.name)
        mark = Mark(own, asked.environment)
        chosen = choose(own, asked, recorded, mark.read(recorded) if asked.word == NEW else "")
        if first is None:
            first = Sweep(own, chosen, watcher, recorded, asked.environment, asked.retry), chosen
        swept = first[0]
        done = Done(own, swept.done.environment, swept.benchmarks, swept.cases, swept.rounds, asked.retry)
        lacking = {
            each.sha: [str(case) for case in missing]
            for each in chosen.line
            if each.sha in chosen.wanted and (missing := done.missing(each.sha))
        }
        if chosen.after:
            mark.write(chosen.after)
        anchor = _anchor(own, chosen, recorded, lacking)
        every = [str(case) for case in swept.cases]
        tasks[kind.name] = tuple(tasks_of(lacking, anchor, kind.at_most, every)) if lacking else ()
        heads[kind.name] = chosen.line[-1].sha if asked.word == NEW else ""
        known = Store(own.config.results_dir).machine_facts(kind.name)
        facts[kind.name] = {name: str(known[name]) for name in SAME_MACHINE if known.get(name)}
    assert first is not None
    swept, chosen = first
    repository, config, request = session.repository, session.config, session.request
    plan = Plan(
        key=key,
        command=quoted("regress", "sweep", *asked.words, "--on", ",".join(tasks)),
        tree=repository.snapshot(session.own_paths) if session.is_dirty() else repository.resolve("HEAD").sha,
        config=config.path.relative_to(repository.root).as_posix(),
        tasks=tasks,
        heads=heads,
        environment=asked.environment,
        recorded_in=swept.done.environment,
        names=tuple(sorted(swept.names)),
        patterns=request.patterns,
        tags=request.tags,
        settings=_settings(request),
        facts=facts,
    )
    return plan, chosen


def _anchor(session: Session, chosen: Chosen, recorded: frozenset[str], lacking: Mapping[str, object]) -> str:
    """What every task of a kind measures beside its own commits: the newest release with results, else the oldest commit."""
    tags = session.repository.releases_in(chosen.line)
    released = [each.sha for each in chosen.line if each.sha in tags and each.sha in recorded]
    return next(iter([*released[-1:], *lacking]), "")


# -- what came of it -----------------------------------------------------------------------------------------------------


def _events(on: On, chosen: Chosen, plan: Plan) -> Events:
    """What the history says of the kinds."""
    found = events_on(on.session, chosen.line, plan.names, None)
    kinds = {kind.name for kind in on.kinds}
    return replace(
        found,
        changes=tuple(each for each in found.changes if each.machine in kinds),
        breakages=tuple(each for each in found.breakages if each.machine in kinds),
    )


def _report(
    on: On, chosen: Chosen, plan: Plan, followed: Followed, before: Events, start: float, run: Run | None = None
) -> Report:
    session = on.session
    found = marked_new(before, _events(on, chosen, plan))
    opened_ = [each for each in found.changes if each.new and each.point.is_open]
    broken = with_failures(session, found.breakages)
    codes = []
    if followed.interrupted or followed.cancelled:
        codes.append(Exit.INTERRUPTED)
    if opened_:
        codes.append(Exit.REGRESSED)
    if followed.failed or followed.given_up or any(each.new for each in broken):
        codes.append(Exit.FAILED)
    suggestions = []
    if run is not None and not run.is_over:
        suggestions = [("go on", plan.command), ("end them", on.engine.to_end(run))]
    codes = list(ranked(codes))
    return Report(
        command="sweep",
        exit_codes=tuple(codes),
        state=codes[0].word,
        changes=found.changes,
        shifts=shifts_in(session, chosen.line, found.changes),
        breakages=broken,
        remark=_remark(plan, followed, found),
        cases=len(plan.names),
        warnings=(*session.config.warnings, *followed.warnings),
        suggestions=tuple(suggestions),
        recorded=str(session.config.results_dir),
        notify=session.config.settings.notify_command if opened_ or any(each.new for each in broken) else "",
        duration_s=time.monotonic() - start,
    )


def _remark(plan: Plan, followed: Followed, found: Events) -> str:
    """ "2 new regressions (h100: 12 of 12 tasks in, a100: 11 of 12 tasks in); 1 regression open"."""
    if not any(plan.tasks.values()):
        return "; ".join([f"nothing to measure: all is measured on {', '.join(plan.tasks)}", *still_open(found)])
    came = [f"{kind}: {followed.came.get(kind, 0)} of {len(tasks)} tasks in" for kind, tasks in plan.tasks.items()]
    return "; ".join([f"{news(found)} ({', '.join(came)})", *still_open(found)])
