"""What all formats share around the rows: the sides, the verdict line, the smallest change that could be seen, and the command
that measures a case again."""

from __future__ import annotations

import datetime

from regress.errors import Exit
from regress.model import Case, Report, Side, SuiteProblem, Verdict
from regress.text.style import Style, cut, paint, visible
from regress.text.wording import counted, more_with_v, quoted
from regress.units import format_ago, format_change, format_duration, format_interval, format_percent

MEASURED = "measured"
"""The word for cases with a value in the counts of `run`, which has no verdicts."""
_FEW_PROBLEMS = 8
"""Problems of the suite that are shown without -v: a suite for another version of the project may have hundreds."""
_SUBJECT_LIMIT = 60


# -- above the rows ------------------------------------------------------------------------------------------------------


def sides(report: Report, style: Style) -> list[tuple[str, ...]]:
    """For each side its label, its commit, the subject, the age, and how it was chosen."""
    present = [side for side in (report.base, report.head) if side is not None]
    differ = len({side.environment for side in present}) > 1
    labels = ["rev" if len(present) == 1 else visible(side.name) for side in present]
    return [(label, *_side(side, differ, style)) for label, side in zip(labels, present, strict=True)]


def place(report: Report) -> str:
    """Machine and device."""
    machine = visible(report.machine.name) if report.machine else ""
    return "  ".join(part for part in (machine, visible(report.device)) if part)


def when(date: float, style: Style) -> str:
    """How long ago; the day if the style has no `now`."""
    if style.now is not None:
        return format_ago(style.now - date)
    try:
        return datetime.datetime.fromtimestamp(date, datetime.timezone.utc).strftime("%Y-%m-%d")
    except (OverflowError, ValueError, OSError):  # a commit may bear any date
        return "no date"


def _side(side: Side, environments_differ: bool, style: Style) -> tuple[str, ...]:
    subject = visible(side.commit.subject)
    how = [visible(side.revision)]
    how += ["uncommitted changes"] if side.dirty else []
    how += [f"in {visible(side.environment)}"] if side.environment and (environments_differ or style.verbose) else []
    how += [f"by {visible(side.commit.author)}"] if style.verbose and side.commit.author else []
    short = subject if style.verbose else cut(subject, _SUBJECT_LIMIT)
    return (
        visible(side.full_label if style.verbose else side.label),
        short,
        when(side.commit.date, style),
        f"({', '.join(filter(None, how))})" if any(how) else "",
    )


# -- below the rows ------------------------------------------------------------------------------------------------------


def verdict(report: Report, style: Style) -> list[str]:
    """The parts of the verdict line after its word; empty for a command that judges and counts nothing."""
    if not (report.state or report.cases or report.counts or report.remark):
        return []
    cases = counted(report.cases, "case")
    words = "" if _all_measured(report) else counts(report)
    if report.covered is not None:
        cases = f"covered {report.covered[0]} of {cases if report.cases == report.covered[1] else report.covered[1]}"
    parts = [f"{cases}: {words}" if report.cases and words else words or cases]
    if report.drift:
        worse = sum(comparison.exit_code() == Exit.REGRESSED for comparison in report.drift)
        parts[0] += f"; {worse} of {len(report.drift)} drifted since {visible(report.drift_since)}"
    if report.command == "gate" and report.changes:
        parts[0] += f"; {len(report.changes)} open in the history"
    if report.error is not None:
        parts = [visible(report.error.what)]
    elif report.remark:
        parts = [visible(report.remark)]
    elif report.checks and not report.cases and not words:
        parts = []
    if parts and (fatal := sum(problem.fatal for problem in report.problems)):
        parts[0] += f"; {counted(fatal, 'suite problem')}"
    if report.geomean is not None:
        ratio, low, high, over = report.geomean
        interval = f" ({format_interval(low, high)})" if style.verbose else ""
        parts.append(f"geomean {format_change(ratio)}{interval} over {over}")
    if report.across:
        parts.append(f"{visible(report.across)}: a difference between places, not commits")
    if report.command == "run" and report.quick:
        parts.append("not recorded: --quick")
    elif report.command == "run" and report.head is not None and report.head.dirty:
        parts.append("not recorded: uncommitted changes")
    if report.duration_s:
        parts.append(format_duration(report.duration_s))
    return parts


def verdict_line(report: Report, style: Style) -> str:
    """Word and parts as one line of plain text."""
    return "  ".join(filter(None, (visible(report.state), "   ".join(verdict(report, style)))))


def questions(report: Report) -> str:
    """The answers to the questions of a gate."""
    return " · ".join(f"{visible(asked)} {answer}" for asked, answer in report.questions)


def counts(report: Report) -> str:
    """Cases by verdict: "2 regressed, 16 unchanged"."""
    order = [MEASURED, *(kind.value for kind in Verdict)]
    words = [word for word in order if report.counts.get(word)]
    words += sorted(word for word, count in report.counts.items() if count and word not in order)
    return ", ".join(f"{report.counts[word]} {visible(word)}{_known(report, word)}" for word in words)


def _all_measured(report: Report) -> bool:
    """Whether `run` got a value of every case."""
    return {word for word, count in report.counts.items() if count} == {MEASURED}


def _known(report: Report, word: str) -> str:
    """How many cases with that verdict are acknowledged: " (acknowledged)", " (2 acknowledged)"."""
    known = report.acknowledged.get(word, 0)
    return "" if not known else " (acknowledged)" if known == report.counts[word] else f" ({known} acknowledged)"


def power(report: Report) -> str:
    """The smallest regression that half of the cases could show; with more rounds, if there were few; and the noisiest case."""
    if report.min_detectable is None:
        return ""
    now = format_percent(report.min_detectable)
    parts = [f"smallest detectable regression +{now}"]
    if report.finer is not None:
        rounds, least = report.finer[0], format_percent(report.finer[1])
        parts += [f"with {rounds} rounds a side about +{least}"] if least != now else []
    if report.noise_floor is not None and report.noise_floor[1] > report.noise_floor[0]:
        parts.append(f"noisiest is {visible(report.noise_floor[2])}")
    return "; ".join(parts)


def last_aa(report: Report, style: Style) -> str:
    """The result of the last A/A check on the device."""
    last = report.last_aa
    if last is None:
        return ""
    parts = [
        f"{counted(last.false_alarms, 'false alarm')} in {counted(len(last.cases), 'case')}",
        f"{last.undecided} undecided",
    ]
    if last.min_detectable is not None:
        parts.append(f"smallest detectable regression {format_percent(last.min_detectable)} (median)")
    return f"A/A {when(last.date, style)} on this machine: {', '.join(parts)}"


def sorted_problems(report: Report) -> list[SuiteProblem]:
    """Problems of the suite, the fatal ones first."""
    return sorted(report.problems, key=lambda problem: not problem.fatal)


def problem_blocks(report: Report, style: Style) -> list[list[str]]:
    """The lines of each problem of the suite; unless verbose, of the first few, and how many more there are."""
    problems = sorted_problems(report)
    shown = problems if style.verbose else problems[:_FEW_PROBLEMS]
    blocks = [_problem(problem, style) for problem in shown]
    left = len(problems) - len(shown)
    return [*blocks, *([[f"  {more_with_v(left)}"]] if left else [])]


def _problem(problem: SuiteProblem, style: Style) -> list[str]:
    mark, color = ("!", "bold red") if problem.fatal else ("?", "yellow")
    detail = problem.detail.splitlines() if style.verbose else []
    return [
        f"{paint(mark, color, style)} {visible(problem.where)}",
        f"    {visible(problem.message)}",
        *(f"      {visible(line)}".rstrip() for line in detail),
    ]


def again(report: Report, case: Case) -> str:
    """The command that measures or compares this case again. It does not name a working tree or the side of an A/A check, which
    are the default."""
    present = [side for side in (report.base, report.head) if side is not None and report.aa is None]
    words = ["regress", report.command, *(side.commit.short for side in present if not side.dirty)]
    return quoted(*words, *report.options, "-b", str(case))
