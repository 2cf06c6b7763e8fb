"""`regress check`: two sides, measured in turn, with a verdict for each case."""

from __future__ import annotations

import contextlib
import fnmatch
import math
import time
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import fields, replace
from typing import Any

from regress.acks import Review, acknowledged
from regress.acks.project import accept, complaints, is_whole, review, unsteady
from regress.compare import CheckSteps, Overall, compare, overall, with_unreached
from regress.config import environment as environment_of
from regress.errors import BuildFailed, Exit, RevisionError, StoreError, exits, ranked
from regress.git import line_between
from regress.history import keep_confirmed, last_aa
from regress.measure.wire import Ceilings
from regress.model import Comparison, Report, SelfCheck, Settings, Side, Stopped, Verdict
from regress.run.execute import Job, JobResult, Watcher, execute
from regress.run.needs import needing_several
from regress.run.plan import FixedRounds
from regress.run.profiled import require_profiler
from regress.session import Request, Session
from regress.session.explanation import MOST_EXPLAINED, Choose, Explaining, can_explain
from regress.session.recorder import Recorder
from regress.session.remarks import device_line, device_uuid, imported_by, remarks, require_values
from regress.session.throughput import Rates
from regress.text.wording import counted, quoted
from regress.units import budget_words, format_duration


def check(
    request: Request,
    base: str | None,
    head: str | None,
    watcher: Watcher,
    *,
    environments: tuple[str, str] = ("", ""),
    record: bool = False,
    choose: Choose | None = None,
    explains: bool = False,
) -> Report:
    """Measure base and head in turn and judge the head.

    `base` None: with uncommitted changes HEAD, on a branch the merge base with the default branch, else HEAD~1; in another
    environment than the head's, what the head is. `head` None: the working tree. `environments` are the names of the base's
    and the head's, empty for the usual one. Results go into the cache; with `record` into results_dir. `choose` says of
    which comparisons it is found out what they come from; None: of none. `explains`: that is all it is for, so where no
    profile can be taken NothingMeasured is raised, and nothing measured.
    """
    start = time.monotonic()
    session = Session(request)
    sides = choose_sides(session, base, head, environments)
    entries = review(session, sides[1])
    try:
        prepared = tuple(session.prepare(side, watcher) for side in sides)
    except BuildFailed as failed:
        return _unbuilt(sides, failed, time.monotonic() - start)
    if explains:
        require_profiler(prepared, session.config.settings.device)
    wanted = session.changed(*sides)
    changed = wanted if request.affected else None
    settings = session.config.settings
    job = session.job(prepared, settings.check_rounds, changed, wanted)
    recorder = Recorder(session, session.config.results_dir if record else session.cache / "history", prepared)
    with session.devices.held(watcher) as locked:
        steps = session.steps(job)
        measured = execute(job, recorder.take, watcher, steps)
        ceilings = session.ceilings(job, measured)
    if measured.unaffected:
        report = _unaffected(session, sides, measured, job, changed or ())
    else:
        recorder.finish(measured)
        require_values(measured)
        named = zip(("--base-env", "--head-env"), environments, strict=True)
        asked = tuple(word for option, name in named if name for word in (option, name))
        report = _judged(session, sides, entries, recorder, measured, job, ceilings, steps, asked)
        extra = [f"affected by {counted(len(changed), 'changed file')}"] if changed is not None else []
        report = replace(report, plan=", ".join([report.plan, *extra, *filter(None, [locked])]))
        if choose is not None and not measured.interrupted:
            explaining = Explaining(session, job, measured, watcher, recorder.keep)
            report = _explained(report, choose(report.comparisons), explaining)
    return replace(report, duration_s=time.monotonic() - start)


def choose_sides(
    session: Session, base: str | None, head: str | None, environments: tuple[str, str] = ("", "")
) -> tuple[Side, Side]:
    """Base and head as asked for, or as chosen; `revision` of each says which and why."""
    before, after = environments
    head_side = session.tree_side("head", after) if head is None else session.revision_side("head", head, "", after)
    if base is not None:
        return session.revision_side("base", base, "", before), head_side
    if environment_of(session.config, before) != environment_of(session.config, after):
        return replace(head_side, name="base", environment=before), head_side
    revision, how = session.repository.default_base(session.own_paths)
    return session.revision_side("base", revision, how, before), head_side


def unlike_requirements(session: Session, base: Side, head: Side) -> list[str]:
    """The warning that the sides want other things installed than each other, and run in one environment all the same."""
    patterns = session.config.settings.env_key
    kinds = [environment_of(session.config, side.environment) for side in (base, head)]
    if kinds[0] != kinds[1] or kinds[0].installs or not patterns:
        return []
    names = [name for name in session.changed(base, head) if any(_is_named(name, pattern) for pattern in patterns)]
    if not names:
        return []
    return [
        f"{', '.join(names)} differ between the sides, but both run in one environment, and regress installs nothing there"
    ]


def _is_named(name: str, pattern: str) -> bool:
    return fnmatch.fnmatchcase(name if "/" in pattern else name.rpartition("/")[2], pattern)


def _judged(
    session: Session,
    sides: tuple[Side, Side],
    entries: Review,
    recorder: Recorder,
    measured: JobResult,
    job: Job,
    ceilings: Ceilings,
    steps: CheckSteps | FixedRounds,
    environments: tuple[str, ...],
) -> Report:
    settings = session.config.settings
    comparisons = verdicts(steps, measured, settings)
    told_short = short(session, steps, measured, comparisons)
    session.remember(comparisons)
    if session.request.prove:
        comparisons = tuple(
            replace(comparison, critical=comparison.critical or _to_be_proven(comparison)) for comparison in comparisons
        )
    comparisons = with_throughput(comparisons, measured, ceilings)
    whole = is_whole(session) and not measured.interrupted
    comparisons, told = acknowledged(comparisons, entries, sides[0], whole=whole)
    strict, quick = session.request.strict, job.quick
    summed = overall(comparisons, settings, strict=strict, problems=measured.problems, quick=quick)
    if measured.interrupted:
        summed = replace(summed, exit_codes=(Exit.INTERRUPTED, *summed.exit_codes))
    if quick:  # of one round each it says nothing
        summed = replace(summed, geomean=None)
    base, head = (recorder.named(side) for side in sides)
    again = (*environments, *session.again)
    own = ", each with its own suite" if job.own_suites else ""
    gpus = f", on {len(job.gpus)} GPUs at once" if len(job.gpus) > 1 else ""
    gpus += "".join(f", {words}" for words in needing_several(measured, measured.benchmarks))
    warnings = [*told_short, *remarks(session.config, measured, job, ceilings)]
    if head.dirty:
        warnings.append(f"the head has uncommitted changes: it is not recorded as {head.commit.short}")
    warnings += recorder.warnings()
    warnings += unsteady(session, base, head, comparisons)
    _confirmed(session, base, head, comparisons)
    warnings += complaints(session, told)
    warnings += unlike_requirements(session, *sides)
    warnings += [] if head.dirty else session.doubtful_order(*sides)
    if measured.interrupted:
        warnings.append("interrupted: the verdicts use the rounds that were finished")
    report = Report(
        command="check",
        base=base,
        head=head,
        machine=recorder.machine,
        device=device_line(measured.facts.get("head", measured.facts.get("base", {})), measured.rounds),
        plan=f"{counted(summed.cases, 'case')}, interleaved, {rounds_words(job, measured)} a side{own}{gpus}",
        acknowledgements=told,
        last_aa=_last_aa(session, measured, comparisons),
        problems=tuple(measured.problems),
        warnings=tuple(warnings),
        overhead=measured.overhead,
        imported=imported_by(measured),
        suggestions=(
            *suggestions("check", base, head, comparisons, again, session.on_gpus, _unprofiled(measured)),
            *bisect_hint(session, base, head, comparisons),
        ),
        options=(*again, *session.on_gpus),
        recorded=recorder.recorded,
    )
    return with_verdicts(report, comparisons, summed, settings, strict)


def with_verdicts(
    report: Report, comparisons: tuple[Comparison, ...], summed: Overall, settings: Settings, strict: bool
) -> Report:
    """The report with the comparisons, what they come to, and the figures that they rest on."""
    numbers = {field.name: getattr(summed, field.name) for field in fields(summed)}
    return replace(report, state=summed.state, comparisons=comparisons, policy=policy(settings, strict), **numbers)


def _to_be_proven(comparison: Comparison) -> bool:
    """Whether `--prove` is about it: not where the suite itself says of both sides that it does not apply. What this machine
    lacks something for is not proven."""
    base, head = comparison.base_failure, comparison.head_failure
    if comparison.verdict is Verdict.SKIPPED and base is not None and head is not None:
        return comparison.gates and head.message.startswith("needs ")
    return comparison.gates


def _explained(report: Report, chosen: Sequence[Comparison], explaining: Explaining) -> Report:
    """The report with what the chosen ones come from. The verdicts stay, whatever becomes of that."""
    explaining.explain(chosen[:MOST_EXPLAINED])
    warnings = list(report.warnings)
    if len(chosen) > MOST_EXPLAINED:
        warnings.append(f"{MOST_EXPLAINED} of {len(chosen)} regressions are explained, the largest")
    warnings += (f"the explanation is not kept: {why}" for why in explaining.unkept)
    codes, state = report.exit_codes, report.state
    if explaining.interrupted:
        done = f"{len(explaining.explained)} of {len(chosen[:MOST_EXPLAINED])}"
        warnings.append(f"interrupted: the verdicts are complete, {done} explained")
        codes, state = ranked([Exit.INTERRUPTED, *codes]), Exit.INTERRUPTED.word
    return replace(
        report, explained=tuple(explaining.explained), warnings=tuple(warnings), exit_codes=codes, state=state
    )


def _last_aa(session: Session, measured: JobResult, comparisons: Sequence[Comparison]) -> SelfCheck | None:
    """The last A/A check on the device that was measured on, if any case of this check was in it."""
    last = last_aa(session.cache, session.machine.name, device_uuid(measured))
    names = {str(comparison.case) for comparison in comparisons}
    return last if last is not None and not names.isdisjoint(last.cases) else None


def verdicts(steps: CheckSteps | FixedRounds, measured: JobResult, settings: Settings) -> tuple[Comparison, ...]:
    """What the rounds come to that these steps have asked for."""
    if isinstance(steps, CheckSteps):
        return steps.verdicts(measured)
    base, head = measured.of("base"), measured.of("head")
    judged = compare(base, head, measured.benchmarks.get("head"), settings, measured.benchmarks.get("base"))
    return with_unreached(judged, measured, settings)


def short(
    session: Session, steps: CheckSteps | FixedRounds, measured: JobResult, comparisons: Sequence[Comparison]
) -> list[str]:
    """The warning that there was not enough time, and how much would have been."""
    if measured.interrupted:
        return []
    budget = f"the budget of {format_duration(session.config.settings.budget_s)}"
    if isinstance(steps, FixedRounds):
        over = time.monotonic() >= steps.end_s
        return [f"{budget} ended before every case had its {counted(steps.rounds, 'round')}"] if over else []
    shortfall = steps.short(measured, comparisons)
    if shortfall is None:
        return []
    what = "some cases that look slower were not confirmed"
    if shortfall.unreached:
        what = f"{shortfall.unreached} of {counted(shortfall.cases, 'case')} not reached"
        if measured.start_s > session.config.settings.budget_s / 2:
            what += f", as importing the suite took {format_duration(measured.start_s)}"
    whole = "all of it" if shortfall.cases == 1 else f"all {shortfall.cases}"
    enough = f"; --budget {budget_words(shortfall.whole_s)} would cover {whole}" if shortfall.whole_s else ""
    return [f"{budget} was too short: {what}{enough}"]


def rounds_words(job: Job, measured: JobResult) -> str:
    """How many rounds there were a side: "5 rounds", "4 to 34 rounds"."""
    if job.rounds:
        return counted(job.rounds, "round")
    taken = Counter((round.side, round.name, *round.params) for round in measured.rounds).values()
    fewest, most = min(taken, default=0), max(taken, default=0)
    return f"{fewest} to {counted(most, 'round')}" if fewest < most else counted(most, "round")


def with_throughput(
    comparisons: Sequence[Comparison], measured: JobResult, ceilings: Ceilings
) -> tuple[Comparison, ...]:
    """The comparisons with the work a second of either side, where the case declares its work."""
    base, head = (Rates.of(measured.of(name), measured.benchmarks.get(name, {}), ceilings) for name in ("base", "head"))
    return tuple(
        replace(
            comparison,
            base_throughput=base.of_time(comparison.case, comparison.metric, comparison.base),
            head_throughput=head.of_time(comparison.case, comparison.metric, comparison.head),
        )
        for comparison in comparisons
    )


def policy(settings: Settings, strict: bool) -> dict[str, Any]:
    """The figures that the verdicts rest on."""
    names = ("time_threshold", "memory_threshold", "host_threshold", "alpha", "confidence")
    floors = ("time_floor_s", "memory_floor_bytes", "host_floor_s")
    return {**{name: getattr(settings, name) for name in (*names, *floors)}, "strict": strict}


def suggestions(
    command: str,
    base: Side,
    head: Side,
    comparisons: Sequence[Comparison],
    options: Sequence[str] = (),
    on_gpus: Sequence[str] = (),
    unprofiled: Collection[str] = (),
) -> list[tuple[str, str]]:
    """What to run next: what made the worst case slower, the case again, by itself, or a way to live with it. Benchmarks that
    are `unprofiled` cannot be explained, and nothing is explained on several GPUs."""
    worst = _alarming(comparisons)
    if not worst:
        return []
    words = ["regress", command, base.commit.short]
    if not head.dirty:
        words.append(head.commit.short)
    again = [("again", quoted(*words, *options, *on_gpus, "-b", str(worst[0].case)))]
    slower = next(
        (comparison for comparison in worst if can_explain(comparison) and comparison.case.name not in unprofiled), None
    )
    if slower is not None and command == "check":  # what can be measured again
        again.insert(0, ("why", quoted("regress", "explain", str(slower.case), *words[2:], *options)))
    return again + accept(
        [(comparison.case, comparison.metric) for comparison in worst if comparison.verdict is Verdict.REGRESSED]
    )


def _unprofiled(measured: JobResult) -> set[str]:
    """The benchmarks of which no profile can be taken: what programs measure; on a real device without torch, whose profiler is
    used, all of them."""
    able = all("torch" in facts or "scripted" in facts for facts in measured.facts.values())
    every = [benchmark for own in measured.benchmarks.values() for benchmark in own.values()]
    return {benchmark.name for benchmark in every if benchmark.program or not able}


def _alarming(comparisons: Sequence[Comparison]) -> list[Comparison]:
    """What regressed, or fails on the head only, the farthest first."""
    alarming = [
        comparison
        for comparison in comparisons
        if comparison.alarms
        and (
            comparison.verdict is Verdict.REGRESSED
            or (comparison.verdict is Verdict.FAILED and not comparison.base_failure)
        )
    ]
    return sorted(
        alarming, key=lambda comparison: -abs(math.log(comparison.ratio)) if comparison.ratio else 0.0
    )  # worse may be less


def _confirmed(session: Session, base: Side, head: Side, comparisons: Sequence[Comparison]) -> None:
    """Keep what is claimed of two commits for the history, which may have seen it once only."""
    if head.dirty or base.environment != head.environment:
        return
    results = [
        (comparison.case, comparison.metric, comparison.verdict, comparison.ratio)
        for comparison in comparisons
        if comparison.gates
    ]
    with contextlib.suppress(StoreError):
        keep_confirmed(session.cache, session.machine.name, "check", base.commit.sha, head.commit.sha, results)


def bisect_hint(session: Session, base: Side, head: Side, comparisons: Sequence[Comparison]) -> list[tuple[str, str]]:
    """The command that finds the commit of the worst regression, where several lie between the sides."""
    worst = next(iter(_alarming(comparisons)), None)
    if worst is None or head.dirty or base.environment != head.environment:
        return []
    try:
        between = line_between(session.repository, base.commit, head.commit, session.own_paths)
    except RevisionError:  # on two branches
        return []
    ends = base.commit.short, head.commit.short
    return [("find", quoted("regress", "bisect", str(worst.case), *ends, *session.again))] if len(between) > 1 else []


def _unaffected(
    session: Session, sides: tuple[Side, Side], measured: JobResult, job: Job, changed: Sequence[str]
) -> Report:
    """Nothing to measure is a pass; a benchmark file that cannot be imported might have been affected, and is none."""
    fatal = any(problem.fatal for problem in measured.problems)
    base, head = sides
    return Report(
        command="check",
        exit_codes=exits(failed=fatal),
        state="FAIL" if fatal else "PASS",
        base=base,
        head=head,
        plan=f"{counted(len(changed), 'changed file')}, covered by no benchmark",
        remark="nothing affected",
        problems=tuple(measured.problems),
        warnings=tuple(remarks(session.config, measured, job, Ceilings())),
        policy=policy(session.config.settings, session.request.strict),
    )


def _unbuilt(sides: tuple[Side, Side], failed: BuildFailed, duration_s: float) -> Report:
    base, head = sides
    return Report(
        command="check",
        exit_codes=(BuildFailed.exit_code,),
        state="FAIL",
        base=base,
        head=head,
        error=Stopped(failed.what, failed.why, failed.fix),
        duration_s=duration_s,
    )
