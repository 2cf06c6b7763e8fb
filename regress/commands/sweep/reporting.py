"""What a sweep has to say: what is new, what stands, and what to do next."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from regress.acks.project import accept, accept_failing, complaints, is_whole, review
from regress.commands.sweep.bisecting import Bisected
from regress.commands.sweep.choosing import Chosen
from regress.commands.sweep.confirming import Confirmed
from regress.commands.sweep.measuring import Sweep
from regress.errors import Exit, exits, ranked
from regress.model import Breakage, Changed, Report, Side, Verdict, outside
from regress.session import Session
from regress.text.wording import counted, quoted
from regress.trends.events import Events, anchors_beside, by_event, by_history, with_failures, with_shifts


def _all_done(chosen: Chosen) -> str:
    if chosen.after:
        return f"nothing to measure: no commit is new after {chosen.after[:8]}"
    count = len(chosen.wanted)
    return f"nothing to measure: {chosen.words}, {'it is' if count == 1 else f'all {count} are'} measured"


def nothing(session: Session, remark: str, start: float) -> Report:
    return Report(
        command="sweep",
        state="PASS",
        machine=session.machine,
        remark=remark,
        warnings=session.warnings,
        duration_s=time.monotonic() - start,
    )


def standing(session: Session, chosen: Chosen, events: Events, start: float) -> Report:
    """Nothing was to be measured: what stands in the history, of which nothing is new."""
    report = nothing(session, "; ".join([_all_done(chosen), *still_open(events)]), start)
    changes = tuple(sorted(events.changes, key=by_weight))
    shifts = with_shifts(session, chosen.histories, events).shifts
    return replace(report, changes=changes, shifts=shifts, breakages=with_failures(session, events.breakages))


def report_of(
    session: Session,
    chosen: Chosen,
    run: Sweep,
    events: Events,
    confirmed: Confirmed,
    bisected: Bisected,
    options: Sequence[str],
    start: float,
) -> Report:
    opened = [change for change in events.changes if change.new and change.point.is_open]
    broken = with_failures(session, events.breakages)
    new_broken = [breakage for breakage in broken if breakage.new]
    fails = run.failed or new_broken or any(problem.fatal for problem in run.problems)
    interrupted = run.interrupted or confirmed.interrupted or bisected.interrupted
    codes = exits(interrupted=interrupted, failed=bool(fails))
    codes = ranked([*codes, Exit.REGRESSED] if opened else codes)
    warnings = [
        *run.warnings,
        *(f"{sha[:8]} was left out: {what}: {why}" for sha, (what, why, _) in run.failed.items()),
        *confirmed.warnings,
        *bisected.warnings,
        *([] if broken or events.numberless else _numberless(run)),
        *_never(events),
        *off_kind(events),
    ]
    if is_whole(session):
        head = Side("head", chosen.line[-1], "")
        warnings += complaints(session, review(session, head).entries_of(run.cases))
    anchors = []
    if run.beside is not None:
        anchors = anchors_beside(session, chosen.line, run.names, session.machine.name, run.beside)
    suggestions = _suggestions(chosen, events, opened, new_broken)
    if run.left:
        suggestions.append(("go on", quoted("regress", "sweep", *options)))
    plan = [
        f"{chosen.words}: {counted(run.planned, 'commit')} to measure",
        counted(len(run.cases), "case"),
        f"{counted(run.rounds, 'round')} a commit",
        *([f"{', '.join(run.anchors)} measured again beside them"] if run.anchors else []),
        *([f"{counted(confirmed.pairs, 'pair')} of commits measured side by side"] if confirmed.pairs else []),
    ]
    return Report(
        command="sweep",
        exit_codes=codes,
        state=codes[0].word,
        machine=run.machine,
        device=run.device,
        plan=", ".join(plan),
        changes=tuple(sorted(events.changes, key=by_weight)),
        shifts=events.shifts,
        breakages=broken,
        anchors=tuple(anchors),
        bisected=bisected.bisections,
        notify=session.config.settings.notify_command if opened or run.failed or new_broken else "",
        remark=_remark(run, events, interrupted=interrupted),
        cases=len(run.cases),
        problems=tuple(run.problems),
        warnings=tuple(dict.fromkeys(warnings)),
        suggestions=tuple(suggestions),
        recorded=run.recorded,
        duration_s=time.monotonic() - start,
    )


def _suggestions(
    chosen: Chosen, history: Events, opened: Sequence[Changed], broken: Sequence[Breakage]
) -> list[tuple[str, str]]:
    """What says more of the first of each kind of news, and what accepts it."""
    new = [change for change in outside(history.changes, history.shifts) if change.new]
    events = [event for history, own in by_history(new, chosen.histories) for event in by_event(own, history)]
    narrowest = [min(event, key=lambda change: len(change.blamed)) for event in events]
    unsure = [change for change in narrowest if change.point.state == "tentative"]
    firsts = [*{(breakage.case.name, breakage.blamed): breakage for breakage in reversed(broken)}.values()]
    return [
        *(_again(shift.changes[0]) for shift in history.shifts if shift.new),
        *map(_next, [*unsure[:2], *(change for change in narrowest if change.point.is_open)][:3]),
        *map(_next_of_broken, firsts[::-1][:3]),
        *(accept([(change.case, change.metric) for change in opened]) or accept_failing(firsts)),
    ]


def _numberless(run: Sweep) -> list[str]:
    """The line on commits on which everything failed. At the start of a history, or put right at once, that is no event."""
    if not run.numberless:
        return []
    (sha, failure), *others = run.numberless.items()
    which = f"{sha[:8]} and {counted(len(others), 'other commit')}" if others else sha[:8]
    return [f"nothing gave a number on {which}: {failure.message}; fix: {quoted('regress', 'run', sha[:8])}"]


def _never(events: Events) -> list[str]:
    """The line on what fails from its first commit on: nothing has got worse, and nobody was told of it before."""
    if not events.numberless:
        return []
    first, *others = sorted(events.numberless)
    what = f"{first} and {counted(len(others), 'other case')} fail" if others else f"{first} fails"
    return [f"{what} wherever measured and never gave a number; fix: {quoted('regress', 'run', '-b', str(first))}"]


def off_kind(events: Events) -> list[str]:
    """A line on each card that is off its kind: what it read is corrected, and it may be ill."""
    look = ("nvidia-smi", "-q", "-d", "CLOCK,POWER,TEMPERATURE", "-i")
    return [f"{level.words}; fix: {quoted(*look, level.card)}" for level in events.cards if level.is_off]


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


def _remark(run: Sweep, events: Events, *, interrupted: bool = False) -> str:
    """ "1 case stopped giving numbers, 1 new regression (3 of 5 commits measured, 1 begun); 4 regressions open"."""
    if interrupted and not run.recorded:
        return f"nothing was measured of {counted(run.planned, 'commit')}, and nothing is saved"
    begun = {commit.sha for commit in run.measured}.intersection(run.left)
    done = len(run.measured) - len(begun)
    measured = [f"{done} of {counted(run.planned, 'commit')} measured" if run.planned else "nothing left to measure"]
    measured += [f"{len(begun)} begun" + ", whose rounds are kept" * interrupted] if begun else []
    measured += [f"{len(run.failed)} failed"] if run.failed else []
    words, still = news(events), still_open(events)
    young, of, takes = _untold(events)
    if young == of and young and words == NO_NEWS:
        words, still = "no change can be detected yet", [takes, *still]
    elif young:
        still.append(f"{young} of {counted(of, 'case')} cannot be judged yet: {takes}")
    return "; ".join([f"{words} ({', '.join(measured)})", *still])


NO_NEWS = "nothing new"


def news(events: Events) -> str:
    """What is new: "1 case stopped giving numbers, 1 new regression"."""
    broken = sum(breakage.new for breakage in events.breakages)
    words = [f"{counted(broken, 'case')} stopped giving numbers"] if broken else []
    words += [f"{len(shift.benchmarks)} benchmarks moved at once" for shift in events.shifts if shift.new]
    kinds = Counter(
        _kind(change) for change in sorted(outside(events.changes, events.shifts), key=by_weight) if change.new
    )
    words += [f"{number} new {kind}{'s' * (number > 1)}" for kind, number in kinds.items()]
    return ", ".join(words) or NO_NEWS


def still_open(events: Events) -> list[str]:
    """What is not new, and nobody has accepted: "4 regressions open"."""
    before = [
        (sum(change.point.is_open for change in events.changes if not change.new), "regression", "open"),
        (
            sum(breakage.acknowledged is None and not breakage.new for breakage in events.breakages),
            "case",
            "known without a number",
        ),
    ]
    return [f"{counted(number, noun)} {what}" for number, noun, what in before if number]


def _untold(events: Events) -> tuple[int, int, str]:
    """How many cases have too few results for a change to be told, of how many that give numbers, and what it takes."""
    broken = {breakage.case for breakage in events.breakages}
    lacking = [lacks for case, lacks in events.lacking.items() if case not in broken]
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
