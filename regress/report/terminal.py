"""A report as text for people: what was compared, the rows by verdict, one verdict line, and the commands to run next.

Sections that a report does not have are left out, so that one function prints every command.
"""

from __future__ import annotations

from collections.abc import Sequence

from regress.errors import RegressError
from regress.model import Report
from regress.report import anchors, listings, summary, verdicts
from regress.report.bisection import bisected, bisection
from regress.report.calls import call_profiles
from regress.report.changes import changes
from regress.report.explained import explained, sentences
from regress.report.implementations import implementations
from regress.report.implementations import sentences as answers
from regress.report.metered import metered
from regress.text.style import Style, cells, pad, paint, visible
from regress.text.table import align, shortened
from regress.units import format_time

_LABEL = 6
"""Columns of the words at the left: base, head, on, plan, FAIL, why."""
_STATE_COLORS = {
    "PASS": "bold green",
    "FAIL": "bold red",
    "UNDECIDED": "bold yellow",
    "NOTHING": "bold red",
    "FOUND": "bold green",
}


def render(report: Report, style: Style) -> str:
    """The report as lines of text, without control characters other than newlines and, if wanted, colours."""
    if style.quiet:
        rows = [
            *listings.settings(report, style),
            *listings.listed(report, style),
            *listings.checks(report, style),
            *listings.builds(report, style),
            *listings.acknowledgements(report, style),
            *sentences(report, style),
            *(answers(report) if report.command == "fastest" else []),
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
            *listings.acknowledgements(report, style),
            *listings.block(report, style),
            *listings.measurements(report, style),
            *listings.durations(report, style),
            *implementations(report, style),
            *call_profiles(report, style),
            *metered(report, style),
            *listings.profile(report, style),
            *bisection(report, style),
            *verdicts.sections(report, style),
            *explained(report, style),
            *changes(report, style),
            *bisected(report, style),
            *listings.fineness(report, style),
            *_problems(report, style),
            *_anchors(report, style),
            *_warnings(report, style),
            *_verdict(report, style),
            *(_found(report, style) if report.command == "explain" else []),
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
    rows = summary.sides(report, style)
    lines = []
    if rows:
        lines += [f"{_label(row[0])}{line}" for row, line in zip(rows, _fitting(rows, style), strict=True)]
    place = summary.place(report)
    lines += [f"{_label('on')}{place}"] if place else []
    lines += [f"{_label('plan')}{visible(report.plan)}"] if report.plan else []
    if style.verbose:
        lines += [
            f"{_label('code')}{visible(name)}: {visible(', '.join(files))}"
            for name, files in report.imported.items()
            if files
        ]
    if report.overhead is not None and style.verbose:
        first, case = map(format_time, report.overhead)
        where = f"{first} to start a round's process, {case} of overhead a case"
        lines.append(f"{_label('cost')}{where}")
    return [*lines, ""] if lines else []


def _fitting(rows: Sequence[tuple[str, ...]], style: Style) -> list[str]:
    """The sides as lines without their labels, with as much of the subjects as there is room for."""
    lines = align([row[1:] for row in rows])
    over = 0 if style.width is None else _LABEL + max(map(cells, lines)) - style.width
    if over <= 0:
        return lines
    widest = max(cells(subject) for _, _, subject, *_ in rows)
    cuts = [shortened(subject, over - widest + cells(subject)) for _, _, subject, *_ in rows]
    return align([(sha, cut, *rest) for (_, sha, _, *rest), cut in zip(rows, cuts, strict=True)])


def _label(word: str) -> str:
    return pad(word, _LABEL - 1) + " "


# -- below the rows ------------------------------------------------------------------------------------------------------


def _problems(report: Report, style: Style) -> list[str]:
    lines = [line for block in summary.problem_blocks(report, style) for line in block]
    return [f"  {paint('suite problems', 'bold', style)}", *lines, ""] if lines else []


def _anchors(report: Report, style: Style) -> list[str]:
    steady = anchors.steady(report, style)
    lines = [f"anchors  {steady}"] if steady else []
    lines += [f"{paint('note:', 'yellow', style)} {text}" for text in anchors.notes(report, style)]
    return [*lines, ""] if lines else []


def _warnings(report: Report, style: Style) -> list[str]:
    lines = [f"{paint('warning:', 'yellow', style)} {visible(text)}" for text in report.warnings]
    return [*lines, ""] if lines else []


def _verdict(report: Report, style: Style) -> list[str]:
    """The verdict line and, below it, how small a change this run could have seen."""
    parts = summary.verdict(report, style)
    if not (parts or report.state):
        return []
    state = f"{paint(visible(report.state), _STATE_COLORS.get(report.state, 'bold'), style)}  " if report.state else ""
    error = (("why", report.error.why), ("fix", report.error.fix)) if report.error else ()
    said = (f"{word}: {visible(text)}" for word, text in error if text)
    below = filter(None, (*said, summary.questions(report), summary.power(report), summary.last_aa(report, style)))
    return [(state + "   ".join(parts)).rstrip(), *(" " * _LABEL + line for line in below)]


def _found(report: Report, style: Style) -> list[str]:
    """What was found out, a line each: above it are pages of where it comes from."""
    return [*sentences(report, style), ""] if report.explained else []


def _footer(report: Report, style: Style) -> list[str]:
    rows = [(word, command) for word, command in dict.fromkeys(report.suggestions)]
    rows += [("saved", report.recorded)] if report.recorded else []
    width = max([_LABEL - 1, *(len(visible(word)) for word, _ in rows)])
    return [f"{paint(pad(visible(word), width), 'dim', style)} {visible(text)}" for word, text in rows]
