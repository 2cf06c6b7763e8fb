"""How well does this machine measure? A side is measured against itself, with all that a check does (A/A)."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from regress.commands.check import policy, rounds_words, short, verdicts
from regress.compare import Overall, fineness, overall, summed_up
from regress.errors import Exit, StoreError
from regress.history import keep_aa
from regress.measure.wire import Ceilings
from regress.model import Benchmark, Comparison, Report, Round, SelfCheck, Side
from regress.run.environments import Prepared, identity_of
from regress.run.execute import Job, JobResult, Watcher, execute
from regress.session import Request, Session
from regress.session.checkout import Checkout
from regress.session.remarks import device_line, device_uuid, remarks, require_values
from regress.text.wording import counted, quoted
from regress.units import format_percent


def check_itself(request: Request, watcher: Watcher) -> Report:
    """Check HEAD, or the working tree where it has changes, against itself. What that came to is kept in the cache, for
    checks on the same device. The rounds are not kept: they would be filed as twice as many of one side."""
    start = time.monotonic()
    session = Session(request)
    head = session.tree_side("head")
    prepared = tuple(session.prepare(side, watcher) for side in (replace(head, name="base"), head))
    settings = session.config.settings
    job, checkout = session.job(prepared, settings.check_rounds), Checkout(session, prepared)
    with session.devices.held(watcher) as locked:
        steps = session.steps(job)
        measured = execute(job, _let_go, watcher, steps)
    require_values(measured)
    comparisons = verdicts(steps, measured, settings)
    session.remember(comparisons)
    report = _report(session, job, measured, comparisons, locked)
    warnings = [*short(session, steps, measured, comparisons), *report.warnings, *checkout.warnings()]
    kept = ""
    if report.aa is not None and report.exit_code in (Exit.PASSED, Exit.REGRESSED):
        try:
            kept = str(keep_aa(session.cache, session.machine.name, device_uuid(measured), report.aa))
        except StoreError as error:
            warnings.append(f"{error.what}, so checks will not show this: {error.why}; fix: {error.fix}")
    return replace(report, warnings=tuple(warnings), recorded=kept, duration_s=time.monotonic() - start)


def _let_go(round: Round, facts: Mapping[str, Any], benchmark: Benchmark) -> None:
    """Rounds of two sides that are one commit would be filed as one side's."""


def _report(
    session: Session, job: Job, measured: JobResult, comparisons: tuple[Comparison, ...], locked: str
) -> Report:
    settings, side, facts = session.config.settings, job.sides[-1], measured.facts.get("head", {})
    summed = overall(comparisons, settings)
    self_check = summed_up(comparisons, summed, side.side.label, time.time())
    code = _code(self_check, summed)
    codes = (Exit.INTERRUPTED, code) if measured.interrupted else (code,)
    warnings = remarks(session.config, measured, job, Ceilings())
    if measured.interrupted:
        warnings.append("interrupted: this uses the rounds that were finished, and is not kept")
    return Report(
        command="doctor",
        exit_codes=codes,
        state=codes[0].word,
        head=_named(side, facts),
        machine=session.machine,
        device=device_line(facts, measured.rounds),
        plan=_plan(job, measured, summed, locked),
        comparisons=comparisons,
        counts=summed.counts,
        remark="" if code == Exit.NOTHING else _remark(self_check),
        cases=summed.cases,
        geomean=summed.geomean,
        noise_floor=summed.noise_floor,
        min_detectable=summed.min_detectable,
        aa=self_check,
        fineness=fineness(comparisons, measured.rounds),
        problems=tuple(measured.problems),
        warnings=tuple(warnings),
        overhead=measured.overhead,
        suggestions=tuple(_suggestions(comparisons)),
        options=("--aa",),
        policy=policy(settings, session.request.strict),
    )


def _code(self_check: SelfCheck, summed: Overall) -> Exit:
    """A false alarm is a regression that is none."""
    if Exit.NOTHING in summed.exit_codes:
        return Exit.NOTHING
    undecided = Exit.UNDECIDED if Exit.UNDECIDED in summed.exit_codes else Exit.PASSED
    return Exit.REGRESSED if self_check.false_alarms else undecided


def _named(side: Prepared, facts: Mapping[str, Any]) -> Side:
    """The side with the environment it was measured in."""
    return replace(side.side, environment=identity_of(side, str(facts.get("python", "")) or "unknown").name)


def _suggestions(comparisons: Sequence[Comparison]) -> Iterator[tuple[str, str]]:
    """What to run next after a false alarm: what disturbs the machine, and the worst case again."""
    alarms = [comparison for comparison in comparisons if comparison.gates and comparison.verdict.traits.claims]
    if alarms:
        worst = max(alarms, key=lambda comparison: abs(math.log(comparison.ratio)) if comparison.ratio else math.inf)
        yield "why", "regress doctor"
        yield "again", quoted("regress", "doctor", "--aa", "-b", str(worst.case))


def _plan(job: Job, measured: JobResult, summed: Overall, locked: str) -> str:
    words = f"{counted(summed.cases, 'case')} against {'itself' if summed.cases == 1 else 'themselves'}"
    return ", ".join(filter(None, [words, "interleaved", f"{rounds_words(job, measured)} a side", locked]))


def _remark(self_check: SelfCheck) -> str:
    """ "0 false alarms in 40 cases: 38 unchanged (95 %), 2 undecided (5 %)"."""
    cases = len(self_check.cases)
    shares = [(self_check.unchanged, "unchanged"), (self_check.undecided, "undecided")]
    words = [f"{number} {word} ({format_percent(number / cases)})" for number, word in shares if number]
    told = self_check.false_alarms + self_check.unchanged + self_check.undecided
    words += [f"{cases - told} without a verdict"] if cases > told else []
    alarms = f"{counted(self_check.false_alarms, 'false alarm')} in {counted(cases, 'case')}"
    return f"{alarms}: {', '.join(words)}" if words else alarms
