"""`regress profile CASE`: cases run under the profiler, each in a process of its own."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from regress.errors import Exit, ProfileError, RegressError, RevisionError, exits
from regress.measure.wire import CALL_MARK, CALLS_SKIPPED, Ceilings
from regress.model import Benchmark, CallProfile, Case, Explanation, Failure, Report, Round, Throughput
from regress.run.execute import Job, Watcher, discover
from regress.run.plan import Selection, select
from regress.run.problems import where_searched
from regress.run.profiled import CALLS, Profiled, profiled
from regress.run.unmatched import nothing_matches
from regress.session import Request, Session, counted
from regress.session.remarks import device_line
from regress.session.throughput import declares_work, throughput, work_of
from regress.traces import chrome
from regress.traces.calls import call_profile, of_components
from regress.traces.kernels import explain
from regress.traces.timeline import Timeline, between

COMPONENT = "component"
"""The parameter by which a benchmark names the parts of a whole."""
FOLDER = "profiles"
"""Of the cache: traces, a file for each case and commit."""


@dataclass(frozen=True)
class ProfiledCases:
    """The cases that were asked for, and what is needed to run them."""

    job: Job
    benchmarks: Mapping[str, Benchmark]
    cases: list[Case]


@dataclass
class _Seen:
    """What was profiled, as far as it got."""

    found: list[CallProfile] = field(default_factory=list)
    timelines: dict[Case, Timeline] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)
    ceilings: Ceilings = field(default_factory=Ceilings)
    interrupted: bool = False


def profile_cases(
    request: Request,
    revisions: Sequence[str],
    watcher: Watcher,
    calls: int | None = None,
    environment: str = "",
    against: Sequence[str] = (),
) -> Report:
    """Profile the cases that match, with the code of one revision (none: the working tree). `against` has the name of a case
    that the other is compared with: the raw operation below a wrapper.

    Raises NothingMeasured where no case matches, RegressError where several do that are to be compared with one.
    """
    start = time.monotonic()
    revision, calls = only(revisions), calls or CALLS
    if len(against) > 1:
        why = "--against takes several exports, but only one case"
        raise RegressError(f"--against names {len(against)} cases", why=why, fix="name one")
    words = request.patterns
    session = Session(replace(request, patterns=(*words, *against)) if against else request)
    side = session.one_side(revision, environment)
    chosen = choose(session, session.job((session.prepare(side, watcher),), 1))
    if against:
        chosen = replace(chosen, cases=[_one(chosen, *against), _one(chosen, *words)])
    seen = _Seen()
    with session.devices.held(watcher) as locked:
        _profile(session, chosen, seen, watcher, calls)
    cases = counted(len(chosen.cases), "case")
    codes = exit_codes(seen.found, seen.interrupted)
    return Report(
        command="profiled",
        exit_codes=codes,
        state=codes[0].word,
        head=side,
        machine=session.machine,
        device=device_line(seen.facts, [_round(seen.facts)]),
        plan=", ".join(filter(None, [cases, f"up to {counted(calls, 'call')} of each", locked])),
        profiled=tuple(seen.found if against else _with_shares(seen.found, chosen.benchmarks)),
        profiled_difference=_difference(session, chosen, seen) if against else None,
        cases=len(seen.found),
        warnings=tuple(_warnings(session, chosen.job, seen)),
        duration_s=time.monotonic() - start,
    )


def only(revisions: Sequence[str]) -> str | None:
    """The one revision that was given, if any. Raises RevisionError for more."""
    if len(revisions) > 1:
        raise RevisionError(
            f"{counted(len(revisions), 'revision')} and one case: {', '.join(revisions)}",
            why="a case is profiled at one commit",
            fix="name one, or none for the working tree",
        )
    return revisions[0] if revisions else None


def choose(session: Session, job: Job) -> ProfiledCases:
    """The cases that match what was asked for. Raises NothingMeasured, with names that are near, where none does."""
    suite = discover(job, job.sides[0])
    cases = select(suite.benchmarks, job.selection)
    if not cases:
        searched = where_searched(session.config.benchmark_dir, suite.problems)
        raise nothing_matches(job.selection, searched, (each.name for each in suite.benchmarks))
    return ProfiledCases(job, {each.name: each for each in suite.benchmarks}, cases)


def _one(chosen: ProfiledCases, pattern: str) -> Case:
    """The one case of that name. Raises RegressError."""
    cases = select(chosen.benchmarks.values(), Selection((pattern,)))
    if len(cases) != 1:
        raise RegressError(
            f"{counted(len(cases), 'case')} match {pattern!r}; --against compares one with another",
            why=", ".join(map(str, cases[:3])) + (", …" if len(cases) > 3 else ""),
            fix="name one case: regress list",
        )
    return cases[0]


def _profile(session: Session, chosen: ProfiledCases, seen: _Seen, watcher: Watcher, calls: int) -> None:
    """Case after case. What is there at Ctrl-C is kept."""
    watcher.start(len(chosen.cases), "profiling")
    (side,), folder = chosen.job.sides, session.cache / FOLDER
    try:
        for case in chosen.cases:
            recorded = profiled(side, chosen.job, chosen.benchmarks[case.name], case, folder, calls)
            if declares_work(recorded.facts) and seen.ceilings == Ceilings():
                seen.ceilings = session.device_ceilings(chosen.job, recorded.facts)
            seen.facts = {**seen.facts, **recorded.facts}
            seen.found.append(_told(recorded, chosen.benchmarks[case.name], seen))
            watcher.advance(str(case))
    except KeyboardInterrupt:
        seen.interrupted = True


def _difference(session: Session, chosen: ProfiledCases, seen: _Seen) -> Explanation | None:
    """Where the difference between the two cases goes; None where one of them has no trace."""
    base, head = (seen.timelines.get(case) for case in chosen.cases)
    if base is None or head is None:
        return None
    return explain(base, head, session.config.settings.time_threshold)


def _told(recorded: Profiled, benchmark: Benchmark, seen: _Seen) -> CallProfile:
    """What the trace of a case says, or why there is none."""
    case = recorded.case
    component = ""
    if COMPONENT in benchmark.param_names:
        component = case.params[benchmark.param_names.index(COMPONENT)].strip("'\"")
    if recorded.trace is None:
        return CallProfile(case, component=component, failure=recorded.failure)

    def rate(seconds: float) -> Throughput | None:
        facts = recorded.facts
        return throughput(seconds, work_of(case, benchmark, facts), seen.ceilings) if declares_work(facts) else None

    try:
        timeline = between(chrome.read(recorded.trace), CALL_MARK, CALLS_SKIPPED)
    except (ProfileError, KeyError) as error:
        return CallProfile(case, component=component, failure=Failure("error", f"its trace cannot be read: {error}"))
    seen.timelines[case] = timeline
    found = call_profile(case, timeline, CALL_MARK, recorded.seconds, rate)
    flags = (*recorded.flags, *found.flags)
    return replace(found, trace=str(recorded.trace), component=component, flags=flags)


def _with_shares(found: list[CallProfile], benchmarks: Mapping[str, Benchmark]) -> list[CallProfile]:
    """The cases, those of one whole together, the largest component first."""
    wholes: dict[tuple[Any, ...], list[CallProfile]] = {}
    for each in found:
        names = benchmarks[each.case.name].param_names
        others = [value for name, value in zip(names, each.case.params, strict=False) if name != COMPONENT]
        key = (each.case.name, *others) if each.component else (each.case,)
        wholes.setdefault(key, []).append(each)
    shared = []
    for group in wholes.values():
        parts = of_components(group) if group[0].component else group
        shared += sorted(parts, key=lambda each: -(each.share or 0.0))
    return shared


def exit_codes(found: Iterable[CallProfile], interrupted: bool) -> tuple[Exit, ...]:
    found = list(found)
    failed = any(each.failure is not None and each.failure.kind != "skipped" for each in found)
    return exits(interrupted=interrupted, nothing=all(each.totals is None for each in found), failed=failed)


def _round(facts: Mapping[str, Any]) -> Round:
    return Round("", [], "head", 0, facts=dict(facts))


def _warnings(session: Session, job: Job, seen: _Seen) -> list[str]:
    warnings = [*session.config.warnings, *(text for each in job.sides for text in each.warnings)]
    if any(each.totals is not None and not each.on_device for each in seen.found):
        why = seen.facts.get("no_device")
        warnings.append(f"no device work was recorded, only operators on the host{f': {why}' if why else ''}")
    if seen.ceilings.failure is not None:
        warnings.append(f"some shares of the device's peak are unknown: {seen.ceilings.failure.message}")
    if seen.facts.get("scripted"):
        warnings.append("the device is scripted: times are stated by the code, not measured")
    return warnings
