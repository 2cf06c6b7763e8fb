"""The report on a suite that was tried: what it is made of, what a check of it takes, and what to look after."""

from __future__ import annotations

import json
from pathlib import Path

from regress.commands.init.classified import MOVABLE, Classified, Kind
from regress.compare.confirming import LOOKS
from regress.errors import exits
from regress.git import Repository
from regress.model import Case, Check, Report
from regress.session import Session
from regress.session.remarks import device_line
from regress.text.wording import counted, first_of, quoted
from regress.units import budget_words, format_duration

ABOUT = "    # "
"""Between a command and how long it takes: a shell takes no notice of that."""
COMPILED = ("*.so", "*.pyd")
NO_PROJECT = {"build", "dist", "env", "venv", "site-packages", "node_modules"}
"""Folders whose compiled files are not the project's own."""


def selected(session: Session) -> list[str]:
    return [word for pattern in session.request.patterns for word in ("-b", pattern)]


def described(session: Session, seen: Classified) -> Report:
    """The report on a suite: what it is made of, what a check of it takes, and what to look after."""
    measured, rounds = seen.measured, session.config.settings.check_rounds or LOOKS[0]
    took = f"about {format_duration(seen.check_s(rounds), rough=True)}"
    plan = f"{counted(seen.cases, 'case')}, {counted(rounds, 'round')} a side, builds apart"
    known = any(round.failure is None for round in seen.rounds)
    estimate = (Check("a check", "ok", f"{took}: {plan}"),) if known else ()
    fatal = any(problem.fatal for problem in seen.problems)
    hopeless = bool(seen.kinds) and set(seen.kinds.values()) == {Kind.FAILED}
    codes = exits(interrupted=seen.interrupted, nothing=hopeless, failed=fatal)
    return Report(
        command="init",
        exit_codes=codes,
        state=codes[0].word if codes[0] else "",
        machine=session.machine,
        device=device_line(measured.facts.get("head", {}), measured.rounds),
        checks=() if seen.interrupted else (*estimate, *_doubts(session, seen)),
        counts={kind.name.lower(): number for kind, number in seen.counts.items()},
        cases=seen.cases,
        remark=seen.words,
        problems=seen.problems,
        suggestions=_next(session, seen, rounds),
        warnings=(*session.config.warnings, *measured.warnings),
    )


def _next(session: Session, seen: Classified, rounds: int) -> tuple[tuple[str, str], ...]:
    """What to run next, and about how long it takes by what was measured."""
    good = [Case.of(round) for round in seen.rounds if round.failure is None]
    left = seen.cases - len(seen.kinds) - seen.given_up
    more = (("go on", _further(session)),) if left > 0 else ()
    if not good:
        return (*more, ("next", "regress doctor"))
    one, asked = min(map(str, good)), selected(session)
    settings = session.config.settings
    check_s, run_s = seen.check_s(rounds), seen.check_s(settings.run_rounds) / 2
    longer = ("--budget", budget_words(check_s)) if check_s > settings.budget_s else ()
    return (
        *more,
        ("try", quoted("regress", "check", "-b", one) + _about(seen.check_s(rounds, 1))),
        ("then", quoted("regress", "check", *longer, *asked) + _about(check_s)),
        ("keep", quoted("regress", "run", *asked) + _about(run_s)),
    )


def _about(seconds: float) -> str:
    return f"{ABOUT}about {format_duration(seconds, rough=True)}"


def _doubts(session: Session, seen: Classified) -> list[Check]:
    """What the reader has to see to, or should know before adding the block."""
    doubts = untried(session, seen.left)
    facts, counts = seen.measured.facts.get("head", {}), seen.counts
    if "no_device" in facts:
        what = f"{facts['no_device']}; only a GPU shows which time_* use CUDA"
        doubts.append(Check("CUDA device", "warn", what, "regress init, on a machine with a GPU"))
    if Kind.UNKNOWN in counts:
        what = f"calls cannot be counted here: {counted(counts[Kind.UNKNOWN], 'time_* case')} may or may not use CUDA"
        doubts.append(Check("CUDA device", "warn", what, 'name those that are in "cuda" under "regress"'))
    mixed = {case.name for case, kind in seen.kinds.items() if kind in MOVABLE}
    mixed &= {case.name for case, kind in seen.kinds.items() if kind is Kind.CPU}
    if mixed:
        what = f"{counted(len(mixed), 'benchmark')} with cases on the CPU too, which keep wall time: {', '.join(sorted(mixed))}"
        doubts.append(Check("cuda", "ok", what))
    units, patterns = seen.undirected()
    patterns = [pattern for pattern in patterns if pattern not in session.config.settings.better]
    if patterns:
        what = f"no change in {', '.join(unit or 'no unit' for unit in units)} is known to be worse or better"
        line = json.dumps({**session.config.settings.better, **dict.fromkeys(patterns, "lower")})
        doubts.append(
            Check("better", "warn", what, f'"better": {line} under "regress", with "higher" where more is better')
        )
    failed = [case for case, kind in seen.kinds.items() if kind is Kind.FAILED]
    if failed:
        failure = next(round.failure for round in seen.rounds if round.failure and round.failure.kind != "skipped")
        what = f"{counted(len(failed), 'case')}, the first of them {failed[0]}: {failure.message}"
        doubts.append(Check("failing", "warn", what, quoted("regress", "run", "--quick", "-b", str(failed[0]))))
    compiled = [] if session.config.settings.build or session.repository.is_bare else _compiled(session.repository)
    if compiled:
        what = f"git does not have {first_of(compiled)}, and a commit's worktree has what git has"
        doubts.append(Check("build", "warn", what, 'set the command that compiles it: "build" under "regress"'))
    return doubts


def untried(session: Session, left: str) -> list[Check]:
    """The word that not all cases were tried, where that is so, and how to go on."""
    return [Check("budget", "warn", left, _further(session))] if left else []


def _further(session: Session) -> str:
    return quoted("regress", "init", "--budget", "10m", *selected(session))


def _compiled(repository: Repository) -> list[str]:
    """Compiled files of the working tree that git does not have, without those of environments and build folders."""
    names = repository.not_in_git(*COMPILED)
    return [
        name for name in names if not any(part in NO_PROJECT or part.startswith(".") for part in Path(name).parts[:-1])
    ]
