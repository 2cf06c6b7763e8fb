"""A report as text for people: what was compared, the rows by verdict, one verdict line, and the commands to run next.

Sections that a report does not have are left out, so that one function prints every command.
"""

from __future__ import annotations

import datetime

from regress.errors import RegressError
from regress.model import Report, Side, SuiteProblem
from regress.report import listings, verdicts
from regress.report.bisection import bisection
from regress.report.changes import changes
from regress.report.style import Style, cut, pad, paint, visible
from regress.report.table import align
from regress.units import format_ago, format_change, format_duration, format_interval, format_percent, format_time

__all__ = ["render", "render_error"]

_LABEL = 6
"""Columns of the words at the left: base, head, on, plan, FAIL, why."""
_SUBJECT_LIMIT = 60
_STATE_COLORS = {
    "PASS": "bold green",
    "FAIL": "bold red",
    "UNDECIDED": "bold yellow",
    "NOTHING": "bold red",
    "FOUND": "bold green",
}

FEW_PROBLEMS = 8
"""Problems of the suite that are named without -v; a suite written for another version of the project may have hundreds."""


def render(report: Report, style: Style) -> str:
    """The report as lines of text, without control characters other than newlines and, if wanted, colours."""
    if style.quiet:
        rows = [
            *listings.settings(report, style),
            *listings.listed(report, style),
            *listings.checks(report, style),
            *listings.builds(report, style),
        ]
        lines = rows if report.listed else [*rows, *_verdict(report, style)[:1]]
    else:
        lines = [
            *_header(report, style),
            *listings.settings(report, style),
            *listings.listed(report, style),
            *listings.checks(report, style),
            *listings.builds(report, style),
            *listings.merged(report, style),
            *listings.block(report, style),
            *listings.measurements(report, style),
            *changes(report, style),
            *bisection(report, style),
            *verdicts.sections(report, style),
            *listings.fineness(report, style),
            *_problems(report, style),
            *_warnings(report, style),
            *_verdict(report, style),
            *_footer(report, style),
        ]
    text = "\n".join(lines).rstrip("\n")
    return f"{text}\n" if text else ""


def render_error(error: RegressError, style: Style) -> str:
    """What went wrong, why, and what to do, one line each."""
    lines = [("error", error.what, "bold red"), ("why", error.why, ""), ("fix", error.fix, "green")]
    return "".join(
        f"{paint(pad(word + ':', 7), color or 'bold', style)}{visible(text)}\n" for word, text, color in lines if text
    )


# -- above the rows ------------------------------------------------------------------------------------------------------


def _header(report: Report, style: Style) -> list[str]:
    sides = [side for side in (report.base, report.head) if side is not None]
    lines = []
    if sides:
        differ = len({side.environment for side in sides}) > 1
        labels = ["rev" if len(sides) == 1 else visible(side.name) for side in sides]
        rows = [_side(side, differ, style) for side in sides]
        lines += [f"{_label(label)}{line}" for label, line in zip(labels, align(rows), strict=True)]
    machine = visible(report.machine.name) if report.machine else ""
    place = "  ".join(part for part in (machine, visible(report.device)) if part)
    lines += [f"{_label('on')}{place}"] if place else []
    lines += [f"{_label('plan')}{visible(report.plan)}"] if report.plan else []
    if report.overhead is not None and style.verbose:
        first, case = map(format_time, report.overhead)
        where = f"{first} from the start of a round's process until it can measure, {case} a case beside measuring"
        lines.append(f"{_label('cost')}{where}")
    return [*lines, ""] if lines else []


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
        _when(side.commit.date, style),
        f"({', '.join(filter(None, how))})" if any(how) else "",
    )


def _when(date: float, style: Style) -> str:
    if style.now is not None:
        return format_ago(style.now - date)
    try:
        return datetime.datetime.fromtimestamp(date, datetime.timezone.utc).strftime("%Y-%m-%d")
    except (OverflowError, ValueError, OSError):  # a commit may bear any date
        return "no date"


def _label(word: str) -> str:
    return pad(word, _LABEL - 1) + " "


# -- below the rows ------------------------------------------------------------------------------------------------------


def _problems(report: Report, style: Style) -> list[str]:
    lines = []
    problems = sorted(report.problems, key=lambda each: not each.fatal)
    shown = problems if style.verbose else problems[:FEW_PROBLEMS]
    for each in shown:
        mark, color = ("!", "bold red") if each.fatal else ("?", "yellow")
        lines.append(f"{paint(mark, color, style)} {visible(each.where)}")
        lines += _problem_text(each, style)
    if len(shown) < len(problems):
        lines.append(f"  … and {len(problems) - len(shown)} more; -v shows them")
    return [f"  {paint('suite problems', 'bold', style)}", *lines, ""] if lines else []


def _problem_text(problem: SuiteProblem, style: Style) -> list[str]:
    detail = problem.detail.splitlines() if style.verbose else []
    return [f"    {visible(problem.message)}", *(f"      {visible(line)}".rstrip() for line in detail)]


def _warnings(report: Report, style: Style) -> list[str]:
    lines = [f"{paint('warning:', 'yellow', style)} {visible(text)}" for text in report.warnings]
    return [*lines, ""] if lines else []


def _verdict(report: Report, style: Style) -> list[str]:
    """The verdict line and, below it, how small a change this run could have seen."""
    if not (report.state or report.cases or report.counts or report.remark):
        return []
    state = f"{paint(visible(report.state), _STATE_COLORS.get(report.state, 'bold'), style)}  " if report.state else ""
    cases = "1 case" if report.cases == 1 else f"{report.cases} cases"
    counts = _counts(report)
    parts = [f"{cases}: {counts}" if report.cases and counts else counts or cases]
    if report.remark:
        parts = [visible(report.remark)]
    elif report.checks and not report.cases and not counts:
        parts = []
    if report.geomean is not None:
        ratio, low, high, over = report.geomean
        interval = f" ({format_interval(low, high)})" if style.verbose else ""
        parts.append(f"geomean {format_change(ratio)}{interval} over {over}")
    if report.duration_s:
        parts.append(format_duration(report.duration_s))
    lines = [(state + "   ".join(parts)).rstrip()]
    below = filter(None, (_power(report), _last_aa(report, style)))
    return [*lines, *(" " * _LABEL + line for line in below)]


def _counts(report: Report) -> str:
    order = [verdict.value for verdict in verdicts.ORDER]
    words = [word for word in order if report.counts.get(word)]
    words += sorted(word for word, count in report.counts.items() if count and word not in order)
    return ", ".join(f"{report.counts[word]} {visible(word)}" for word in words)


def _power(report: Report) -> str:
    parts = []
    if report.noise_floor is not None:
        median, largest, case = report.noise_floor
        parts.append(f"noise floor {format_percent(median)} (median), {format_percent(largest)} ({visible(case)})")
    if report.min_detectable is not None:
        smallest = format_percent(report.min_detectable)
        parts.append(f"smallest regression it could confirm {smallest} (median)")
    return "; ".join(parts)


def _last_aa(report: Report, style: Style) -> str:
    """What the last A/A check on the device came to."""
    last = report.last_aa
    if last is None:
        return ""
    alarms = "1 false alarm" if last.false_alarms == 1 else f"{last.false_alarms} false alarms"
    cases = "1 case" if len(last.cases) == 1 else f"{len(last.cases)} cases"
    parts = [f"{alarms} in {cases}", f"{last.undecided} undecided"]
    if last.min_detectable is not None:
        parts.append(f"smallest confirmable {format_percent(last.min_detectable)} (median)")
    return f"A/A {_when(last.date, style)} on this machine: {', '.join(parts)}"


def _footer(report: Report, style: Style) -> list[str]:
    rows = [(word, command) for word, command in dict.fromkeys(report.suggestions)]
    rows += [("kept", report.recorded)] if report.recorded else []
    width = max([_LABEL - 1, *(len(visible(word)) for word, _ in rows)])
    return [f"{paint(pad(visible(word), width), 'dim', style)} {visible(text)}" for word, text in rows]
