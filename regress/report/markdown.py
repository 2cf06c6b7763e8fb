"""A report as a comment for a pull request: the verdict in one line, what changed, and the rest folded.

It stays under LIMIT, whatever is measured, and says how many rows that costs and where they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from regress.errors import Exit
from regress.model import Comparison, Report, Verdict
from regress.report import anchors, changes, explained, implementations, listings, summary, verdicts
from regress.report.bisection import bisected, bisection
from regress.report.calls import call_profiles
from regress.report.failures import without_values
from regress.report.gfm import PagePart, code, fence, fit, fold, table, words
from regress.report.metered import metered
from regress.report.rows import ALIGNS, row
from regress.report.rows import titles as rows_titles
from regress.report.together import gathered
from regress.text.style import Style, visible
from regress.text.table import Row, align
from regress.text.wording import counted

LIMIT = 60_000
"""Bytes. A comment on GitHub may have 65,536 characters; who posts it may want to add a line."""

_SIGNS = {"PASS": "✅", "FOUND": "✅", "FAIL": "❌", "UNDECIDED": "❔"}
_STOP = "⛔"
_FEW = 10
"""Warnings that are shown."""
_WORST = 20
"""Rows of each section that is not folded that are there whatever else is; of what fails, all are."""
_COMMAND = 1_000
"""Characters of a command."""
_NARROW = Style(width=80)
"""Without the columns that a narrow terminal has no room for."""


def render(report: Report, style: Style) -> str:
    """The report as GitHub Flavored Markdown. Of the style, `verbose` and `quiet` are heeded."""
    plain = Style(verbose=style.verbose)
    parts = [_heading(report, plain)]
    if not style.quiet:
        parts += [_sides(report, plain), *_error(report)]
        parts += [
            *_measured(report, plain),
            *_implementations(report, plain),
            *_compared(report, plain),
            *_explained(report, plain),
            *_changes(report, plain),
            *_folded(report, plain),
        ]
        parts += [*_listings(report), *_problems(report), _warnings(report)]
        parts += [*_how(report, plain), *_commands(report), _place(report)]
    return fit(parts, LIMIT, f"all are in {code('--output json=FILE')}, and in the text with {code('-v')}.")


# -- above and below the rows --------------------------------------------------------------------------------------------


def _heading(report: Report, style: Style) -> PagePart:
    said = [words(part) for part in summary.verdict(report, style)[:1]]
    if not report.state:
        return PagePart(f"### {' '.join([code(f'regress {report.command}'), *said])}\n\n")
    sign = _SIGNS.get(report.state, _STOP)
    return PagePart(f"### {sign} {' · '.join([words(report.state), *said])}\n\n")


def _sides(report: Report, style: Style) -> PagePart:
    lines = [
        " ".join(filter(None, (f"**{words(label)}**", words(sha), words(subject), words(how))))
        for label, sha, subject, _, how in summary.sides(report, style)
    ]
    return PagePart("<br>\n".join(lines) + "\n\n" if lines else "")


def _error(report: Report) -> Iterator[PagePart]:
    if report.error is not None:
        said = [("why", report.error.why), ("fix", report.error.fix)]
        lines = [f"{word}: {visible(text)}" for word, text in said if text]
        yield fence([lines]).whole() if lines else PagePart()


def _warnings(report: Report) -> PagePart:
    lines = [f"> **warning:** {words(text)}" for text in report.warnings[:_FEW]]
    more = len(report.warnings) - len(lines)
    lines += [f"> … and {more} more"] if more > 0 else []
    return PagePart("<br>\n".join(lines) + "\n\n" if lines else "")


def _how(report: Report, style: Style) -> Iterator[PagePart]:
    """All about the measurement that is no result."""
    rows = [(side.name, visible(side.full_label)) for side in (report.base, report.head) if side is not None]
    rows += [("plan", visible(report.plan)), ("power", summary.power(report)), ("", summary.last_aa(report, style))]
    rows = [(visible(word), text) for word, text in rows if text]
    if rows:
        yield fold("how it was measured", fence([line] for line in align(rows))).whole()


def _commands(report: Report) -> Iterator[PagePart]:
    """What to run next. Half a command is of no use: one that is too long is left out."""
    lines = [f"{visible(command)}  # {visible(word)}" for word, command in dict.fromkeys(report.suggestions)]
    lines = [line for line in lines if len(line) <= _COMMAND]
    if lines:
        yield fence([lines], "sh", longest=2 * _COMMAND).whole()


def _place(report: Report) -> PagePart:
    """The line below all: where, and what the verdict's line has no room for."""
    parts = [f"on {summary.place(report)}"] if summary.place(report) else []
    parts += summary.verdict(report, Style())[1:]
    text = " · ".join(words(piece) for part in parts for piece in part.split("  ") if piece.strip())
    return PagePart(f"<sub>{text}</sub>\n\n" if text else "")


# -- rows ----------------------------------------------------------------------------------------------------------------


def _compared(report: Report, style: Style) -> Iterator[PagePart]:
    """What changed. What is undecided is shown where that is the verdict."""
    for title, comparisons in verdicts.chosen(report, style.verbose):
        if title in _shown(report):
            part = _section(title, title, comparisons, report, style)
            yield replace(part, reserved=len(part.rows) if title == Verdict.FAILED.value else _WORST)


def _folded(report: Report, style: Style) -> Iterator[PagePart]:
    """The rest."""
    rest = [] if style.verbose else verdicts.rest(report)
    for title, comparisons in (*verdicts.chosen(report, style.verbose), *rest):
        if title not in _shown(report):
            yield fold(f"{len(comparisons)} {title}", _section(title, "case", comparisons, report, style))


def _shown(report: Report) -> tuple[str, ...]:
    """Titles of the sections that are not folded."""
    leading = [verdict.value for verdict in Verdict if verdict.traits.leads]
    return (
        *leading,
        verdicts.drifted(report),
        *((Verdict.UNDECIDED.value,) if Exit.UNDECIDED in report.exit_codes else ()),
    )


def _section(title: str, above: str, comparisons: Sequence[Comparison], report: Report, style: Style) -> PagePart:
    if verdicts.is_list(title):
        part = fence(without_values(comparisons, style))
        return _titled(title, part) if above == title else part
    cells = style if style.verbose else _NARROW
    rows = comparisons if style.verbose else gathered(comparisons, verdicts.whole(title, report))
    titles = Row((above, *rows_titles(report, cells)))
    return table([titles, *(row(item, cells) for item in rows)], ALIGNS, bold=above == title)


def _titled(title: str, part: PagePart) -> PagePart:
    return replace(part, before=f"**{title}**\n\n{part.before}")


def _measured(report: Report, style: Style) -> Iterator[PagePart]:
    rows = listings.measured(report, style)
    if rows:
        yield table(rows, listings.MEASURED)
    for title, blocks in listings.unmeasured(report, style):
        part = _titled(title, fence(blocks))
        yield replace(part, reserved=len(part.rows) if title == Verdict.FAILED.value else 0)


def _implementations(report: Report, style: Style) -> Iterator[PagePart]:
    for operation in report.implementations:
        yield _titled(
            implementations.title(operation),
            table(implementations.rows(operation, style), implementations.aligns(operation)),
        )
        for line in (*implementations.crossovers(operation), *implementations.reasons(operation, style)):
            yield PagePart(f"{words(line)}\n\n")


def _explained(report: Report, style: Style) -> Iterator[PagePart]:
    """The cause of each as a line, where the time went folded below it."""
    for account in report.explained:
        sentence = f"{words(f'is {explained.amount(account)}')}: {words(explained.why(account))}"
        yield PagePart(f"**{code(str(account.case))}** {sentence}\n\n")
        lines = explained.block(account, style)
        if lines:
            yield fold("where the time went", fence([line] for line in lines))


def _changes(report: Report, style: Style) -> Iterator[PagePart]:
    for rows in changes.tables(report, style).values():
        yield replace(table(rows, changes.ALIGNS), reserved=_WORST)
    folded = changes.folded_line(report, style)
    if folded:
        yield PagePart(f"{folded}\n\n")
    steady = anchors.steady(report, style)
    for text in (*([f"anchors: {steady}"] if steady else ()), *anchors.notes(report, style)):
        yield PagePart(f"{words(text)}\n\n")


def _listings(report: Report) -> Iterator[PagePart]:
    """The tables of the commands that judge nothing, as the text has them."""
    parts = (
        listings.settings,
        listings.listed,
        listings.checks,
        listings.builds,
        listings.merged,
        listings.acknowledgements,
        listings.block,
        listings.durations,
        listings.fineness,
        listings.profile,
        bisection,
        bisected,
        call_profiles,
        metered,
    )
    for part in parts:
        lines = part(report, Style())
        if lines:
            yield fence([line] for line in lines[:-1])


def _problems(report: Report) -> Iterator[PagePart]:
    count = len(report.problems)
    if count:
        part = fence(summary.problem_blocks(report, Style()))
        yield fold(counted(count, "suite problem"), part).whole()
