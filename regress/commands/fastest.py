"""`regress fastest`: which implementation is the quickest at each size, from recorded results; nothing is measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from regress.commands.compare import missing, recorded_side, selected
from regress.compare import has_implementations, implementations
from regress.errors import NothingMeasured
from regress.history import Loaded, Recorded, Store, left_out
from regress.model import Report, Side
from regress.run.unmatched import nothing_matches
from regress.session import Request, Session
from regress.text.wording import counted, quoted


def fastest(request: Request, revision: str | None, environment: str | None = None) -> Report:
    """The implementations of each benchmark that has several, at that revision; None is the newest one up to HEAD with results.

    Raises NothingMeasured where it has no results on this machine, or has them in several environments and none is named, and
    where none of the benchmarks has implementations to compare.
    """
    session = Session(request)
    store = Store(session.config.results_dir)
    side = _newest(session, store) if revision is None else recorded_side(session, store, "head", revision)
    loaded = store.load(side.commit.sha, session.machine.name)
    if not loaded.recorded:
        raise missing(side, loaded, session, store)
    recorded = _in_environment(side, loaded, environment)
    selection = session.selection()
    rounds = selected(recorded, selection)
    if selection.words and not rounds:
        raise nothing_matches(selection, f"searched in the results of {side.label}", recorded.benchmarks)
    operations = implementations(rounds, recorded.benchmarks, session.config.settings)
    if not operations:
        raise _none(recorded, side)
    cases = sum(len(standing.contenders) for operation in operations for standing in operation.standings)
    warnings = [*session.warnings, *(left.words for left in left_out(loaded.skipped))]
    warnings += [f"{recorded.source.name}: {note}" for note in recorded.notes]
    return Report(
        command="fastest",
        head=replace(side, environment=recorded.environment),
        machine=recorded.machine,
        plan=f"{counted(cases, 'case')}, recorded earlier",
        implementations=operations,
        cases=cases,
        warnings=tuple(warnings),
        options=("--environment", environment) if environment else (),
    )


def _newest(session: Session, store: Store) -> Side:
    """The newest commit up to HEAD that has results on this machine; HEAD where none has."""
    recorded = {commit.commit_sha for commit in store.commits(session.machine.name)}
    every = session.repository.commits("HEAD") if recorded else []
    newest = next((commit for commit in reversed(every) if commit.sha in recorded), None)
    if newest is None:
        return session.revision_side("head", "HEAD")
    return Side("head", newest, "newest with results")


def _in_environment(side: Side, loaded: Loaded, environment: str | None) -> Recorded:
    by_environment = {recorded.environment: recorded for recorded in loaded.recorded}
    if environment is None and len(by_environment) == 1:
        return loaded.recorded[0]
    if environment is not None and environment in by_environment:
        return by_environment[environment]
    names = sorted(by_environment)
    what = f"{side.label} has " + (f"no results in {environment}" if environment else "results in several environments")
    fix = quoted("regress", "fastest", side.label, "--environment", names[0])
    raise NothingMeasured(what, why=f"it is recorded in {', '.join(names)}", fix=fix)


def _none(recorded: Recorded, side: Side) -> NothingMeasured:
    named: Sequence[str] = sorted(
        name for name, benchmark in recorded.benchmarks.items() if has_implementations(benchmark)
    )
    what = f"{side.label} has no implementations to compare"
    if named:
        why = f"of {', '.join(named)} fewer than two have a time"
        return NothingMeasured(what, why=why, fix=quoted("regress", "run", side.label, "-b", named[0]))
    return NothingMeasured(
        what,
        why="none of the benchmarks has a parameter named implementation",
        fix="give one that parameter and measure it: see docs/implementations.md",
    )
