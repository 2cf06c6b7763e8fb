"""`regress profile CASE`: cases run under the profiler, each in a process of its own."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from regress.errors import Exit, ProfileError, RegressError, RevisionError, exits
from regress.measure.wire import CALL_MARK, CALLS_SKIPPED, Ceilings
from regress.model import Benchmark, CallProfile, Case, Explanation, Failure, Metered, Report, Round, Throughput
from regress.run.execute import Job, Watcher, discover
from regress.run.plan import Selection, select
from regress.run.problems import where_searched
from regress.run.profiled import CALLS, profiled
from regress.run.unmatched import nothing_matches
from regress.session import Request, Session
from regress.session.remarks import SCRIPTED, device_line
from regress.session.throughput import declares_work, throughput, work_of
from regress.text.wording import counted, first_of
from regress.traces import chrome
from regress.traces.calls import call_profile, of_components
from regress.traces.kernels import explain
from regress.traces.timeline import Timeline, between

COMPONENT = "component"
"""The parameter by which a benchmark names the parts of a whole."""
FOLDER = "profiles"
"""Of the cache: traces, a file for each case and commit."""


Outcome = TypeVar("Outcome", bound=CallProfile | Metered)


@dataclass(frozen=True)
class ProfiledCases:
    """The cases that were asked for, and what is needed to run them."""

    session: Session
    job: Job
    benchmarks: Mapping[str, Benchmark]
    cases: list[Case]


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
    chosen = choose(session, revision, watcher, environment)
    if against:
        chosen = replace(chosen, cases=[_one(chosen, *against), _one(chosen, *words)])
    profiler = _Profiler(chosen, calls)
    with session.devices.held(watcher) as locked:
        profiles, interrupted = case_after_case(chosen, watcher, "profiling", lambda case: [profiler.profile(case)])
    cases = counted(len(chosen.cases), "case")
    report = report_on("profiled", chosen, profiles, interrupted, start)
    return replace(
        report,
        device=device_line(profiler.facts, [Round("", [], "head", 0, facts=dict(profiler.facts))]),
        plan=", ".join(filter(None, [cases, f"up to {counted(calls, 'call')} of each", locked])),
        profiled=tuple(profiles if against else _with_shares(profiles, chosen.benchmarks)),
        profiled_difference=profiler.difference() if against else None,
        warnings=(*report.warnings, *profiler.warnings(profiles)),
    )


# -- what --ncu and `once` do alike --------------------------------------------------------------------------------------


def only(revisions: Sequence[str]) -> str | None:
    """The one revision that was given, if any. Raises RevisionError for more."""
    if len(revisions) > 1:
        raise RevisionError(
            f"{counted(len(revisions), 'revision')} and one case: {', '.join(revisions)}",
            why="a case is profiled at one commit",
            fix="name one, or none for the working tree",
        )
    return revisions[0] if revisions else None


def choose(session: Session, revision: str | None, watcher: Watcher, environment: str) -> ProfiledCases:
    """The cases that match what was asked for, made ready with the code of that revision. Raises NothingMeasured, with similar
    names, where none does."""
    job = session.job((session.prepare(session.one_side(revision, environment), watcher),), 1)
    suite = discover(job, job.sides[0], watcher)
    cases = select(suite.benchmarks, job.selection)
    if not cases:
        searched = where_searched(session.config.benchmark_dir, suite.problems)
        raise nothing_matches(job.selection, searched, (benchmark.name for benchmark in suite.benchmarks))
    return ProfiledCases(session, job, {benchmark.name: benchmark for benchmark in suite.benchmarks}, cases)


def case_after_case(
    chosen: ProfiledCases, watcher: Watcher, doing: str, outcomes: Callable[[Case], Iterable[Outcome]]
) -> tuple[list[Outcome], bool]:
    """What comes out of each case, and whether Ctrl-C ended it: what is there by then is kept."""
    all_outcomes: list[Outcome] = []
    watcher.start(len(chosen.cases), doing)
    try:
        for case in chosen.cases:
            for outcome in outcomes(case):
                all_outcomes.append(outcome)
            watcher.advance(str(case))
    except KeyboardInterrupt:
        return all_outcomes, True
    return all_outcomes, False


def report_on(
    command: str, chosen: ProfiledCases, outcomes: Sequence[CallProfile | Metered], interrupted: bool, start: float
) -> Report:
    """The report on what was found of the cases, since `start` on the monotonic clock, but for what only one profiler tells."""
    codes = exit_codes(outcomes, interrupted)
    side = chosen.job.sides[0]
    return Report(
        command=command,
        exit_codes=codes,
        state=codes[0].word,
        head=side.side,
        machine=chosen.session.machine,
        cases=len(outcomes),
        warnings=(*chosen.session.config.warnings, *side.warnings),
        duration_s=time.monotonic() - start,
    )


def exit_codes(outcomes: Sequence[CallProfile | Metered], interrupted: bool = False) -> tuple[Exit, ...]:
    failed = any(outcome.failure is not None and outcome.failure.kind != "skipped" for outcome in outcomes)
    return exits(interrupted=interrupted, nothing=all(outcome.is_empty for outcome in outcomes), failed=failed)


# -- under torch.profiler ------------------------------------------------------------------------------------------------


def _one(chosen: ProfiledCases, pattern: str) -> Case:
    """The one case of that name. Raises RegressError."""
    cases = select(chosen.benchmarks.values(), Selection((pattern,)))
    if len(cases) != 1:
        raise RegressError(
            f"{counted(len(cases), 'case')} match {pattern!r}; --against compares one with another",
            why=first_of(cases, 3),
            fix="name one case: regress list",
        )
    return cases[0]


@dataclass
class _Profiler:
    """Profiles cases, and keeps what is said of all of them."""

    chosen: ProfiledCases
    calls: int
    timelines: dict[Case, Timeline] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)
    ceilings: Ceilings = field(default_factory=Ceilings)

    def profile(self, case: Case) -> CallProfile:
        """What the trace of the case says, or why there is none."""
        session, job, benchmark = self.chosen.session, self.chosen.job, self.chosen.benchmarks[case.name]
        recorded = profiled(job.sides[0], job, benchmark, case, session.cache / FOLDER, self.calls)
        facts = recorded.facts
        if declares_work(facts) and self.ceilings == Ceilings():
            self.ceilings = session.device_ceilings(job, facts)
        self.facts = {**self.facts, **facts}
        component = ""
        if COMPONENT in benchmark.param_names:
            component = case.params[benchmark.param_names.index(COMPONENT)].strip("'\"")
        if recorded.trace is None:
            return CallProfile(case, component=component, failure=recorded.failure)

        def rate(seconds: float) -> Throughput | None:
            return throughput(seconds, work_of(case, benchmark, facts), self.ceilings) if declares_work(facts) else None

        try:
            timeline = between(chrome.read(recorded.trace), CALL_MARK, CALLS_SKIPPED)
        except (ProfileError, KeyError) as error:
            failure = Failure("error", f"its trace cannot be read: {error}")
            return CallProfile(case, component=component, failure=failure)
        self.timelines[case] = timeline
        profile = call_profile(case, timeline, CALL_MARK, recorded.seconds, rate)
        flags = (*recorded.flags, *profile.flags)
        return replace(profile, trace=str(recorded.trace), component=component, flags=flags)

    def difference(self) -> Explanation | None:
        """Where the difference between the two cases goes; None where one of them has no trace."""
        base, head = (self.timelines.get(case) for case in self.chosen.cases)
        if base is None or head is None:
            return None
        return explain(base, head, self.chosen.session.config.settings.time_threshold)

    def warnings(self, profiles: Iterable[CallProfile]) -> Iterator[str]:
        if any(profile.totals is not None and not profile.on_device for profile in profiles):
            why = self.facts.get("no_device")
            yield f"no device work was recorded, only operators on the host{f': {why}' if why else ''}"
        if self.ceilings.failure is not None:
            yield f"some shares of the device's peak are unknown: {self.ceilings.failure.message}"
        if self.facts.get("scripted"):
            yield SCRIPTED


def _with_shares(profiles: list[CallProfile], benchmarks: Mapping[str, Benchmark]) -> list[CallProfile]:
    """The cases, those of one whole together, the largest component first."""
    wholes: dict[tuple[Any, ...], list[CallProfile]] = {}
    for profile in profiles:
        names = benchmarks[profile.case.name].param_names
        others = [value for name, value in zip(names, profile.case.params, strict=False) if name != COMPONENT]
        key = (profile.case.name, *others) if profile.component else (profile.case,)
        wholes.setdefault(key, []).append(profile)
    shared = []
    for group in wholes.values():
        parts = of_components(group) if group[0].component else group
        shared += sorted(parts, key=lambda profile: -(profile.share or 0.0))
    return shared
