"""`regress sweep`: many commits, measured in groups, and what changed among them.

marks      up to where the commits of the branches are measured, and what people know of their events
choosing   which commits the words on the command line are about
order      which of them are measured next
done       what is measured already, and what cannot be
measuring  group after group
cards      groups of several cards, and which commit all of them have in common
confirming what was seen over several cards, measured in turn
bisecting  the commits of what is new and may be due to several
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

from regress.acks.project import accept, accept_failing, complaints, is_whole, review
from regress.commands.sweep.bisecting import Bisected, bisect_new
from regress.commands.sweep.choosing import ALL, NEW, TAGS, Asked, Chosen, choose
from regress.commands.sweep.confirming import Confirmed, confirm, tentative
from regress.commands.sweep.marks import Mark, Untold
from regress.commands.sweep.measuring import Sweep
from regress.errors import Exit, NothingMeasured, RegressError, exits, ranked
from regress.model import Breakage, Changed, Report, Side, Verdict, outside
from regress.run.execute import Watcher
from regress.session import Request, Session
from regress.text.wording import counted, quoted
from regress.trends.events import (
    Events,
    anchors_beside,
    by_event,
    by_history,
    events_in,
    marked_new,
    with_failures,
    with_manners,
    with_shifts,
)
from regress.units import format_duration


def sweep(
    request: Request, asked: Asked, watcher: Watcher, *, budget_s: float = math.inf, bisects: bool = False
) -> tuple[Report, Callable[[], None]]:
    """Measure and record the commits that were asked for and are not measured yet, until all are or the budget ends; with
    `bisects` spend what is left of it on new events that several commits may be to blame for.

    Where a sweep was killed the next one goes on, and what was new in it is new until it is reported: call what is returned
    beside the report once people have that. Where all is measured, the report has what stands in the history.
    """
    start = time.monotonic()
    session = opened(request)
    if asked.word in (NEW, ALL, TAGS):
        session.repository.fetch()
    recorded = session.recorded(session.machine.name)
    mark = Mark(session, asked.environment)
    after = mark.read(recorded) if asked.word == NEW else ""
    chosen = choose(session, asked, recorded, after)
    if not chosen.wanted:
        return _nothing(session, f"{chosen.words}: there are none", start), lambda: None
    if chosen.after:
        mark.write(chosen.after)
    end_s = start + budget_s
    run = Sweep(session, chosen, watcher, recorded, asked.environment, asked.retry, end_s=end_s)
    now, untold = events_in(session, chosen.histories, run.names, session.machine.name), Untold(session, asked)
    before = untold.read()
    unsure = run.several and tentative(now.changes)  # of a sweep whose budget ended before they were measured in turn
    if not run.left and not run.failed and not unsure and before is None:
        report = _standing(session, chosen, now, start)
    else:
        if before is None:
            before = now
            untold.write(before)
        run.measure()
        require_measured(run, budget_s)
        found = _found(session, chosen, run, before)
        confirmed, bisected = Confirmed(), Bisected()
        if run.several and not run.interrupted:
            confirmed = confirm(request, found.changes, watcher, environment=asked.environment, end_s=end_s)
            found = _found(session, chosen, run, before) if confirmed.pairs else found
        if bisects and not run.interrupted and not confirmed.interrupted:
            bisected = bisect_new(request, found, chosen.histories, watcher, environment=asked.environment, end_s=end_s)
            found = (
                _found(session, chosen, run, before) if bisected.found else found
            )  # what is confirmed is known by now
        options = [*words_of(request, asked), *(["--bisect"] if bisects else [])]
        report = _report(session, chosen, run, found, confirmed, bisected, options, start)

    def told() -> None:
        if asked.word == NEW and not run.left and not run.failed and not run.interrupted:
            mark.write(chosen.line[-1].sha)
        untold.forget()

    return report, told


def opened(request: Request) -> Session:
    """The session of a sweep. Raises RegressError where the request measures nothing that can be recorded."""
    if request.quick:
        raise RegressError(
            "a sweep measures for the history, and --quick measures nothing",
            why="it takes one sample without warm-up, to see whether everything runs",
            fix="regress run --quick REV, or leave --quick out",
        )
    return Session(request)


def require_measured(run: Sweep, budget_s: float) -> None:
    """Raise NothingMeasured where not one commit has given a number, and why."""
    if run.measured:
        return
    if run.failed:
        what, why, fix = next(iter(run.failed.values()))
        raise NothingMeasured(what, why=why, fix=fix)
    if run.is_over:
        raise NothingMeasured(
            f"the budget of {format_duration(budget_s)} ended before a commit had given a number",
            why=f"a commit is {counted(len(run.cases), 'case')}, each with an unmeasured visit before its rounds",
            fix="give it a longer --budget, or a part of the suite with -b",
        )


def _found(session: Session, chosen: Chosen, run: Sweep, before: Events) -> Events:
    """What the history says by now, and what of it nobody knew before."""
    found = marked_new(before, events_in(session, chosen.histories, run.names, session.machine.name))
    return with_shifts(session, chosen.histories, replace(found, changes=with_manners(session, found.changes)))


def words_of(request: Request, asked: Asked) -> list[str]:
    """What asks for these commits and cases again."""
    named = (
        ("--since", asked.since),
        ("--steps", str(asked.steps) if asked.steps else None),
        ("--env", asked.environment or None),
        ("--machine", request.overrides.get("machine")),
        ("--gpus", ",".join(request.gpus)),
        ("--into", str(request.into) if request.into is not None else None),
    )
    found = [
        *asked.words,
        *(word for name, value in named if value for word in (name, value)),
        *([f"--{asked.only}"] if asked.only else []),
    ]
    found += [word for pattern in request.patterns for word in ("-b", pattern)]
    return found + [word for tag in request.tags for word in ("--tag", tag)]


def _all_done(chosen: Chosen) -> str:
    if chosen.after:
        return f"nothing to measure: no commit is new after {chosen.after[:8]}"
    count = len(chosen.wanted)
    return f"nothing to measure: {chosen.words}, {'it is' if count == 1 else f'all {count} are'} measured"


def _nothing(session: Session, remark: str, start: float) -> Report:
    return Report(
        command="sweep",
        state="PASS",
        machine=session.machine,
        remark=remark,
        warnings=session.config.warnings,
        duration_s=time.monotonic() - start,
    )


def _standing(session: Session, chosen: Chosen, found: Events, start: float) -> Report:
    """Nothing was to be measured: what stands in the history, of which nothing is new."""
    report = _nothing(session, "; ".join([_all_done(chosen), *still_open(found)]), start)
    changes = tuple(sorted(found.changes, key=by_weight))
    shifts = with_shifts(session, chosen.histories, found).shifts
    return replace(report, changes=changes, shifts=shifts, breakages=with_failures(session, found.breakages))


def _report(
    session: Session,
    chosen: Chosen,
    run: Sweep,
    found: Events,
    confirmed: Confirmed,
    bisected: Bisected,
    options: Sequence[str],
    start: float,
) -> Report:
    opened = [each for each in found.changes if each.new and each.point.is_open]
    broken = with_failures(session, found.breakages)
    fails = run.failed or any(each.new for each in broken) or any(each.fatal for each in run.problems)
    interrupted = run.interrupted or confirmed.interrupted or bisected.interrupted
    codes = exits(interrupted=interrupted, failed=bool(fails))
    codes = ranked([*codes, Exit.REGRESSED] if opened else codes)
    warnings = [
        *run.warnings,
        *(f"{sha[:8]} was left out: {what}: {why}" for sha, (what, why, _) in run.failed.items()),
        *confirmed.warnings,
        *bisected.warnings,
    ]
    warnings += [*_never(found), *off_kind(found)]
    anchors = []
    if run.beside is not None:
        anchors = anchors_beside(session, chosen.line, run.names, session.machine.name, run.beside)
    if is_whole(session):
        head = Side("head", chosen.line[-1], "")
        warnings += complaints(session, review(session, head).entries_of(run.cases))
    new = [each for each in outside(found.changes, found.shifts) if each.new]
    events = [event for history, own in by_history(new, chosen.histories) for event in by_event(own, history)]
    single = [min(each, key=lambda one: len(one.blamed)) for each in events]
    tentative = [each for each in single if each.point.state == "tentative"]
    suggestions = [_again(each.changes[0]) for each in found.shifts if each.new]
    suggestions += [_next(each) for each in [*tentative[:2], *(each for each in single if each.point.is_open)][:3]]
    firsts = {(each.case.name, each.blamed): each for each in reversed(broken) if each.new}
    suggestions += [_next_of_broken(each) for each in [*reversed(firsts.values())][:3]]
    suggestions += accept([(each.case, each.metric) for each in opened]) or accept_failing([*firsts.values()])
    if run.left:
        suggestions.append(("go on", quoted("regress", "sweep", *options)))
    plan = [
        f"{chosen.words}: {counted(run.planned, 'commit')} to measure",
        counted(len(run.cases), "case"),
        f"{counted(run.rounds, 'round')} a commit",
        *([f"beside {', '.join(run.anchors)} again"] if run.anchors else []),
        *([f"{counted(confirmed.pairs, 'pair')} in turn"] if confirmed.pairs else []),
    ]
    return Report(
        command="sweep",
        exit_codes=codes,
        state=codes[0].word,
        machine=run.machine,
        device=run.device,
        plan=", ".join(plan),
        changes=tuple(sorted(found.changes, key=by_weight)),
        shifts=found.shifts,
        breakages=broken,
        anchors=tuple(anchors),
        bisected=bisected.found,
        notify=session.config.settings.notify_command
        if opened or run.failed or any(each.new for each in broken)
        else "",
        remark=_remark(run, found),
        cases=len(run.cases),
        problems=tuple(run.problems),
        warnings=tuple(dict.fromkeys(warnings)),
        suggestions=tuple(suggestions),
        recorded=str(session.config.results_dir),
        duration_s=time.monotonic() - start,
    )


def _never(found: Events) -> list[str]:
    """The line on what fails from its first commit on: nothing has got worse, and nobody was told of it before."""
    if not found.numberless:
        return []
    first, *others = sorted(found.numberless)
    what = f"{first} and {counted(len(others), 'other case')} fail" if others else f"{first} fails"
    return [f"{what} wherever measured and never gave a number; fix: {quoted('regress', 'run', '-b', str(first))}"]


def off_kind(found: Events) -> list[str]:
    """A line on each card that is off its kind: what it read is corrected, and it may be ill."""
    look = ("nvidia-smi", "-q", "-d", "CLOCK,POWER,TEMPERATURE", "-i")
    return [f"{each.words}; fix: {quoted(*look, each.card)}" for each in found.cards if each.is_off]


def _next(changed: Changed) -> tuple[str, str]:
    """What says more of a change: measuring it again side by side, or finding the commit where several may be it."""
    point, case = changed.point, str(changed.case)
    if len(changed.blamed) > 1:
        last = changed.blamed[-1].short
        return "find", quoted("regress", "bisect", case, point.good[:8], last, "--metric", changed.metric.name)
    return _again(changed)


def _again(changed: Changed) -> tuple[str, str]:
    """Both commits in turn, on the machine of today: if it did the change, there is none."""
    ends = changed.point.good[:8], changed.point.first[:8]
    return "check", quoted("regress", "check", *ends, "-b", str(changed.case))


def _next_of_broken(broken: Breakage) -> tuple[str, str]:
    """The same of a case that stopped giving numbers."""
    ends, case = (broken.good[:8], broken.first.short), str(broken.case)
    if len(broken.blamed) > 1:
        return "find", quoted("regress", "bisect", case, *ends)
    return "check", quoted("regress", "check", *ends, "-b", case)


def _remark(run: Sweep, found: Events) -> str:
    """ "1 case stopped giving numbers, 1 new regression (3 of 5 commits measured, 1 begun); 4 regressions open"."""
    begun = {each.sha for each in run.measured}.intersection(run.left)
    done = len(run.measured) - len(begun)
    measured = [f"{done} of {counted(run.planned, 'commit')} measured" if run.planned else "nothing left to measure"]
    measured += [f"{len(begun)} begun"] if begun else []
    measured += [f"{len(run.failed)} failed"] if run.failed else []
    words, still = news(found), still_open(found)
    young, of, takes = _untold(found)
    if young == of and young and words == NO_NEWS:
        words, still = "no change can be detected yet", [takes, *still]
    elif young:
        still.append(f"{young} of {counted(of, 'case')} cannot be judged yet: {takes}")
    return "; ".join([f"{words} ({', '.join(measured)})", *still])


NO_NEWS = "nothing new"


def news(found: Events) -> str:
    """What is new: "1 case stopped giving numbers, 1 new regression"."""
    broken = sum(each.new for each in found.breakages)
    words = [f"{counted(broken, 'case')} stopped giving numbers"] if broken else []
    words += [f"{len(each.benchmarks)} benchmarks moved at once" for each in found.shifts if each.new]
    kinds = Counter(_kind(each) for each in sorted(outside(found.changes, found.shifts), key=by_weight) if each.new)
    words += [f"{number} new {kind}{'s' * (number > 1)}" for kind, number in kinds.items()]
    return ", ".join(words) or NO_NEWS


def still_open(found: Events) -> list[str]:
    """What is not new, and nobody has accepted: "4 regressions open"."""
    before = [
        (sum(each.point.is_open for each in found.changes if not each.new), "regression", "open"),
        (
            sum(each.acknowledged is None and not each.new for each in found.breakages),
            "case",
            "known without a number",
        ),
    ]
    return [f"{counted(number, noun)} {what}" for number, noun, what in before if number]


def _untold(found: Events) -> tuple[int, int, str]:
    """How many cases have too few results for a change to be told, of how many that give numbers, and what it takes."""
    broken = {each.case for each in found.breakages}
    lacking = [lacks for case, lacks in found.lacking.items() if case not in broken]
    takes = f"it takes at least {counted(max(lacking, default=0), 'more commit')} with results"
    return sum(lacks > 0 for lacks in lacking), len(lacking), takes


def by_weight(changed: Changed) -> int:
    """Sorts changes, what hurts first: regressions, what is tentative, the others."""
    return 0 if changed.point.is_open else 1 if _is_tentative(changed) else 2


def _is_tentative(changed: Changed) -> bool:
    return changed.point.state == "tentative" and changed.point.acknowledged is None


def _kind(changed: Changed) -> str:
    if changed.point.acknowledged is not None:
        return "acknowledged regression"
    if _is_tentative(changed):
        return "tentative change"
    if changed.point.state == "relapsed":
        return "relapse"
    words = {Verdict.REGRESSED: "regression", Verdict.IMPROVED: "improvement"}
    return words.get(changed.point.moved, "change") if changed.point.large else "small change"
