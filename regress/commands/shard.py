"""`regress shard`: what a node of a cluster runs, a task of a sweep that was submitted elsewhere."""

from __future__ import annotations

import os
import socket
import time
from dataclasses import replace
from pathlib import Path

from regress.cluster.plan import GROUP, Task
from regress.cluster.runs import Attempt, End, Run
from regress.commands.sweep.choosing import Asked, choose
from regress.commands.sweep.confirming import keep_stood, pair
from regress.commands.sweep.measuring import Sweep
from regress.config import kinds_of
from regress.errors import Exit, NothingMeasured, RegressError
from regress.git import checkout
from regress.history import confirmed_between
from regress.history.kept import read, write
from regress.history.merging import SAME_MACHINE
from regress.run.execute import Watcher
from regress.session import Request, Session

GRACE_S = 180.0
"""A task begins nothing that would end later than that before its job's time is up: what is begun is kept."""


def shard(folder: Path, kind: str, number: int, watcher: Watcher) -> None:
    """Make an attempt at a task of the run in `folder`. All that comes of it is in the attempt's folder, its end last: also of
    an error, which is raised again for the log."""
    start = time.monotonic()
    run = Run(folder)
    attempt = run.begin(kind, number, os.environ.get("REGRESS_JOB", ""))
    try:
        end = _measured(run, kind, run.task(kind, number), attempt, watcher, start)
    except KeyboardInterrupt:
        write(attempt.folder / "end.json", End(Exit.INTERRUPTED))
        raise
    except RegressError as error:
        write(attempt.folder / "end.json", End(error.exit_code, error=(error.what, error.why, error.fix)))
        raise
    write(attempt.folder / "end.json", replace(end, took_s=time.monotonic() - start))


def _measured(run: Run, name: str, task: Task, attempt: Attempt, watcher: Watcher, start: float) -> End:
    scratch = Path(os.environ["REGRESS_SCRATCH"])
    repository, tree = checkout(run.folder.parents[1] / "repository.git", run.plan.tree, scratch)
    plan = run.plan
    request = Request(
        start=tree,
        config_file=tree / plan.config,
        patterns=task.cases or plan.patterns,
        tags=() if task.cases else plan.tags,
        overrides={**plan.settings, "machine": name, "cache_dir": str(scratch / "cache")},
        wait_lock=True,
        into=attempt.results,
        note=watcher.note,
    )
    session = Session(request)
    (kind,) = kinds_of(session.config.settings.cluster, name)
    if kind.gpus > 1:
        session = Session(replace(request, gpus=("all",)))
    require_alike(run, session, name)
    if task.pair:
        return _judged(session, task, plan.environment, watcher, kind.time_s - GRACE_S)
    chosen = choose(session, Asked(task.commits, environment=plan.environment), ())
    end_s = start + max(kind.time_s - GRACE_S, kind.time_s / 2)
    anchor = next(commit for commit in chosen.line if commit.sha == task.anchor)
    swept = Sweep(session, chosen, watcher, (), plan.environment, retry=True, end_s=end_s, group=GROUP, anchor=anchor)
    looked_s = time.monotonic() - start
    swept.measure()
    del repository  # until here it held the worktree
    return _end(session, swept, looked_s)


def _judged(session: Session, task: Task, environment: str, watcher: Watcher, left_s: float) -> End:
    """Both ends of a change, measured in turn here."""
    good, last = task.commits
    request = replace(session.request, into=None)  # the check of a pair is no result of either
    report = pair(request, task.cases, good, last, watcher, environment, left_s)
    keep_stood(session, good, last, report)
    code = Exit.INTERRUPTED if Exit.INTERRUPTED in report.exit_codes else Exit.PASSED
    confirmed = confirmed_between(session.cache, session.machine.name, good, last)
    return End(code, card=", ".join(session.devices.uuids), measured=2, confirmed=confirmed)


def _end(session: Session, swept: Sweep, looked_s: float) -> End:
    """How it ended. Where nothing gave a number, not even the anchor, that is the node's doing rather than the code's."""
    error = None
    code = Exit.FAILED if swept.failed else Exit.PASSED
    if swept.interrupted:
        code = Exit.INTERRUPTED
    elif not swept.measured and swept.failed:
        code, error = Exit.NOTHING, next(iter(swept.failed.values()))
    elif not swept.measured and swept.left:
        why = "a task is a group of commits, each with an unmeasured visit before its rounds"
        error = ("its time was up before any commit gave a number", why, 'give the kind a longer "time"')
        code = Exit.NOTHING
    return End(
        code,
        card=", ".join(session.devices.uuids),
        measured=len(swept.measured),
        cases=len(swept.cases),
        failed=swept.failed,
        tried=swept.done.tried,
        error=error,
        looked_s=looked_s,
        left=len(swept.left),
    )


def require_alike(run: Run, session: Session, kind: str) -> None:
    """Raise NothingMeasured where this node is another machine than those of its kind before it: the values of both would be
    one series."""
    own = {name: session.machine.facts.get(name, "") for name in SAME_MACHINE}
    path = run.folder / kind / "machine.json"
    known = run.plan.facts.get(kind) or _first_of_all(path, own)
    for name, value in own.items():
        if value and known.get(name, value) != value:
            raise NothingMeasured(
                f"this node differs from earlier nodes of kind {kind}",
                why=f"{name} is {value!r} here, and {known[name]!r} there",
                fix=f'give "{kind}" under "cluster" a "constraint" that tells them apart',
            )


def _first_of_all(path: Path, own: dict[str, str]) -> dict[str, str]:
    """What the node that was first wrote there: this one, where it is. Of those that begin at once one is."""
    fresh = path.with_name(f".{path.name}.{os.getpid()}.{socket.gethostname()}")
    write(fresh, own)
    try:
        os.link(fresh, path)
    except FileExistsError:
        pass
    except OSError:  # a network drive without links
        if not path.exists():
            fresh.replace(path)
    fresh.unlink(missing_ok=True)
    return read(path, dict[str, str]) or own
