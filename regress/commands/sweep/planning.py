"""What a sweep on a cluster submits: what each kind of nodes lacks, in tasks."""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass
from pathlib import Path

from regress.cluster.engine import Engine, engine_of, placed
from regress.cluster.plan import MOST_TASKS, Plan, tasks_of
from regress.cluster.runs import costs_of
from regress.commands.away import in_this_folder, waited
from regress.commands.sweep import opened, words_of
from regress.commands.sweep.cards import anchors
from regress.commands.sweep.choosing import NEW, Asked, Chosen, choose
from regress.commands.sweep.done import Done, Suite
from regress.commands.sweep.marks import Mark
from regress.commands.sweep.measuring import Sweep
from regress.config import cache_dir, kinds_of, written_folders
from regress.errors import ConfigError, NothingMeasured
from regress.history import Store
from regress.history.kept import read, write
from regress.history.merging import SAME_MACHINE
from regress.model import Cluster, Kind
from regress.run.execute import Watcher
from regress.session import Request, Session
from regress.text.wording import quoted


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


def on_kinds(request: Request, words: str) -> On:
    """The kinds that the words name. Raises ConfigError where there is none of these, or they cannot see the suite."""
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


def key_of(on: On, asked: Asked) -> str:
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


def plan_of(on: On, asked: Asked, key: str, watcher: Watcher) -> tuple[Plan, Chosen]:
    """What each kind lacks, in tasks. The suite is looked over once, here."""
    session = on.session
    session.repository.fetch()
    suite = Suite()
    tasks, left, heads, facts = {}, {}, {}, {}
    for kind in on.kinds:
        own = on.session.of(kind.name)
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
