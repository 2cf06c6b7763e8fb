"""`regress compare`: the verdicts of `check` from recorded results; nothing is measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from regress.commands.check import policy, suggestions
from regress.commands.session import Request, Session
from regress.compare import compare, overall
from regress.errors import NothingMeasured
from regress.history import Recorded, Store
from regress.model import Case, Report, Round, Side
from regress.run.plan import select


def compare_recorded(request: Request, base: str, head: str, environment: str | None = None) -> Report:
    """Judge the recorded results of `head` against those of `base`, on this machine.

    Raises NothingMeasured where one of them has none: a baseline from another host is no baseline.
    """
    session = Session(request)
    sides = session.revision_side("base", base), session.revision_side("head", head)
    store = Store(session.config.results_dir)
    warnings = list(session.config.warnings)
    found = []
    for side in sides:
        loaded = store.load(side.commit.sha, session.machine.name, environment)
        warnings += [f"{skipped.path}: {skipped.why}; fix: {skipped.fix}" for skipped in loaded.skipped]
        found.append(loaded.recorded)
    before, after = _pair(sides, found, session, store)
    warnings += [f"{each.source.name}: {note}" for each in (before, after) for note in each.notes]
    settings = session.config.settings
    comparisons = compare(
        _selected(before, request.patterns),
        _selected(after, request.patterns),
        after.benchmarks,
        settings,
        before.benchmarks,
    )
    summed = overall(comparisons, settings, strict=request.strict)
    base_side, head_side = (
        replace(side, environment=each.environment) for side, each in zip(sides, (before, after), strict=True)
    )
    return Report(
        command="compare",
        exit_codes=summed.exit_codes,
        state=summed.state,
        base=base_side,
        head=head_side,
        machine=after.machine,
        plan=f"{summed.cases} cases, recorded earlier",
        comparisons=comparisons,
        counts=summed.counts,
        cases=summed.cases,
        geomean=summed.geomean,
        noise_floor=summed.noise_floor,
        min_detectable=summed.min_detectable,
        warnings=tuple(warnings),
        suggestions=tuple(suggestions("check", base_side, head_side, comparisons)),
        policy=policy(settings, request.strict),
    )


def _pair(
    sides: tuple[Side, Side], found: Sequence[Sequence[Recorded]], session: Session, store: Store
) -> tuple[Recorded, Recorded]:
    """The results of both sides in one environment. Raises NothingMeasured where there is none, or more than one to choose."""
    for side, recorded in zip(sides, found, strict=True):
        if not recorded:
            raise _missing(side, session, store)
    by_environment = [{each.environment: each for each in recorded} for recorded in found]
    common = sorted(set(by_environment[0]) & set(by_environment[1]))
    if len(common) == 1:
        return by_environment[0][common[0]], by_environment[1][common[0]]
    names = common or sorted(set(by_environment[0]) | set(by_environment[1]))
    raise NothingMeasured(
        f"{sides[0].label} and {sides[1].label} have no environment in common"
        if not common
        else f"{sides[0].label} and {sides[1].label} have results in several environments",
        why=f"recorded in {', '.join(names)}",
        fix=f"regress check {sides[0].label} {sides[1].label} --record"
        if not common
        else f"regress compare {sides[0].label} {sides[1].label} --environment {names[0]}",
    )


def _missing(side: Side, session: Session, store: Store) -> NothingMeasured:
    here = store.commits(session.machine.name)
    elsewhere = sorted({each.machine for each in store.commits() if each.commit_sha == side.commit.sha})
    if elsewhere:
        why = f"{side.label} was measured on {', '.join(elsewhere)}: values of another machine are no baseline"
    elif here:
        nearest = min(here, key=lambda each: abs(each.date - side.commit.date))
        why = f"nothing is recorded of {side.label}; nearest in time is {nearest.commit_sha[:8]}"
    else:
        why = f"nothing is recorded on {session.machine.name} in {session.config.results_dir}"
    return NothingMeasured(
        f"no baseline on this machine ({session.machine.name})", why=why, fix=f"regress run {side.label}"
    )


def _selected(recorded: Recorded, patterns: Sequence[str]) -> list[Round]:
    """The rounds of the cases that match."""
    wanted = set(select(recorded.benchmarks.values(), patterns))
    return [each for each in recorded.rounds if Case(each.name, tuple(each.params)) in wanted]
