"""`regress build`: commits made ready to measure, measuring nothing."""

from __future__ import annotations

import time
from collections.abc import Sequence

from regress.config import environment as environment_of
from regress.errors import BuildFailed, Exit, RevisionError, exits
from regress.model import Built, Commit, Report, Side
from regress.run.environments import prepare
from regress.run.execute import Watcher
from regress.session import Request, Session
from regress.text.wording import quoted


def build(request: Request, revisions: Sequence[str], watcher: Watcher, environments: Sequence[str] = ()) -> Report:
    """Check out and build each commit in each environment (none: the usual one). A commit that does not build is a row, and
    the others are built all the same; Ctrl-C keeps what is finished."""
    start = time.monotonic()
    session = Session(request)
    for revision in revisions:
        if ".." in revision:
            raise RevisionError(
                f"{revision} is a range, and build takes commits",
                fix=f"git rev-list {quoted(revision)} | xargs regress build",
            )
    resolved: dict[Commit, str] = {}
    for revision in revisions:
        resolved.setdefault(session.repository.resolve(revision), revision)
    for name in environments:
        environment_of(session.config, name)  # all that is named is known before the first is built
    sides = [
        Side("commit", commit, revision, environment)
        for environment in dict.fromkeys(environments or ("",))
        for commit, revision in resolved.items()
    ]
    builds: list[Built] = []
    interrupted = False
    watcher.start(len(sides), "building")
    try:
        for side in sides:
            builds.append(_built(session, side, watcher))
            session.repository.worktrees.release()
            watcher.advance(f"{side.label} {builds[-1].state}")
    except KeyboardInterrupt:
        interrupted = True
    failed = any(built.state == "failed" for built in builds)
    codes = exits(interrupted=interrupted, failed=failed)
    return Report(
        command="build",
        exit_codes=codes,
        state=codes[0].word,
        builds=tuple(builds),
        remark=_counts(builds, len(sides)),
        warnings=session.config.warnings,
        suggestions=tuple(_next([commit.short for commit in resolved], environments))
        if codes == (Exit.PASSED,)
        else (),
        duration_s=time.monotonic() - start,
    )


def _built(session: Session, side: Side, watcher: Watcher) -> Built:
    steps: list[str] = []
    """What was done; nothing where all of it was done before."""

    def note(text: str) -> None:
        steps.append(text)
        watcher.note(text)

    start = time.monotonic()
    log = session.cache / "builds" / f"{side.commit.sha}.log"
    try:
        prepared = prepare(side, session.config, session.repository, session.cache, note)
    except BuildFailed as error:
        took_s = time.monotonic() - start
        return Built(side, "failed", took_s, str(log), error.cause, error.fix)
    logged = str(log) if log.exists() else ""
    if steps:
        return Built(side, "built", time.monotonic() - start, logged)
    environment = prepared.environment
    nothing = not (session.config.settings.build or environment.wheel or environment.fetch)
    return Built(side, "ready" if nothing else "reused", prepared.build_s, logged)


def _counts(builds: Sequence[Built], wanted: int) -> str:
    """ "2 built, 1 reused, 1 not reached"."""
    states = [built.state for built in builds]
    counts = {state: states.count(state) for state in ("built", "reused", "ready", "failed")}
    words = [f"{number} {state}" for state, number in counts.items() if number]
    if counts["ready"]:
        words.append('nothing to build: "build" under "regress" is empty')
    return ", ".join([*words, *([f"{wanted - len(builds)} not reached"] if wanted > len(builds) else [])])


def _next(revisions: list[str], environments: Sequence[str]) -> list[tuple[str, str]]:
    """The command that measures what was built, where one does."""
    if len(revisions) == 2 and len(set(environments)) < 2:
        named = [word for name in environments for word in ("--base-env", name, "--head-env", name)]
        return [("next", quoted("regress", "check", *revisions, *named))]
    return []
