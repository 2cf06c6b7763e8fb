"""Change points over many commits, and cases that stopped giving numbers: new since the last sweep, or still open."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from regress.model import Breakage, Changed, Report, Shift, Verdict, outside
from regress.report.rows import metric_words, range_words
from regress.report.together import FEWEST, how_far
from regress.text.style import Style, cut, visible
from regress.text.table import Layout, Row, titles
from regress.text.wording import counted
from regress.units import format_change, format_interval, format_pair

ALIGNS = "lrrrllll"
_SUBJECT_LIMIT = 50


def changes(report: Report, style: Style) -> list[str]:
    """The sections of change points as lines; unless verbose, those that are not large are only counted."""
    sections = tables(report, style)
    titled = [table for table in sections.values() if any(table[0].cells[1:])]
    for table in titled[1:]:
        table[0] = titles(table[0].cells[0], columns=len(ALIGNS))
    layout = Layout.of([one for table in sections.values() for one in table], ALIGNS, style)
    lines = [
        line
        for table in sections.values()
        for line in (*(text for one in table for text in layout.lines(one, style)), "")
    ]
    folded = folded_line(report, style)
    return [*lines, *([f"  {folded} (-v lists them)", ""] if folded else [])]


def folded_line(report: Report, style: Style) -> str:
    """How many changes are not shown."""
    folded = sum(change.new and not _shown(change, style) for change in report.changes)
    return f"{counted(folded, 'new change')} not shown: small, or not claimed" if folded else ""


def tables(report: Report, style: Style) -> dict[str, list[Row]]:
    """Title -> rows of a table, below the titles of its columns, what hurts first; aligned as ALIGNS says."""
    alarm = "open in the history" if report.command == "gate" else "new"
    every = list(report.changes) if style.verbose else outside(report.changes, report.shifts)
    chosen = [
        (alarm, [change for change in every if change.new and _shown(change, style)]),
        ("open from before", [change for change in every if not change.new and _is_open(change)]),
    ]
    if style.verbose:
        chosen.append(("from before", [change for change in every if not change.new and not _is_open(change)]))
    several = len({(change.machine, change.environment, change.device) for change in report.changes}) > 1
    changed = {
        title: [
            titles(title, "before", "after", "change", "95 % interval", columns=len(ALIGNS)),
            *(one for group in _together(members, style) for one in _rows(group, several)),
        ]
        for title, members in chosen
        if members
    }
    moved = [shift_row(shift) for shift in report.shifts if shift.new or any(map(_is_open, shift.changes))]
    shifts = {"moved at once": [titles("moved at once", columns=len(ALIGNS)), *moved]} if moved else {}
    broken, known = (
        {title: [titles(title, columns=len(ALIGNS)), *_broken_rows(own, style)]} if own else {}
        for title, own in (
            ("stopped giving numbers", [breakage for breakage in report.breakages if breakage.new]),
            ("no numbers, known", [breakage for breakage in report.breakages if not breakage.new]),
        )
    )
    return broken | shifts | changed | known


def _is_open(changed: Changed) -> bool:
    point = changed.point
    worse = point.moved is Verdict.REGRESSED and point.large and not point.recovered_by
    return worse and point.state != "relapsed" and point.acknowledged is None


def _shown(changed: Changed, style: Style) -> bool:
    return style.verbose or changed.point.large


def _together(members: Sequence[Changed], style: Style) -> list[list[Changed]]:
    """Groups of one benchmark that changed alike in one commit, in the order of their first members."""
    groups: dict[object, list[Changed]] = {}
    for at, change in enumerate(members):
        point = change.point
        alike = (
            change.case.name,
            change.metric.name,
            place(change),
            point.moved,
            point.blamed,
            _notes(change),
        )
        own = style.verbose or point.ratio is None
        groups.setdefault(at if own else alike, []).append(change)
    return list(groups.values())


def _rows(group: Sequence[Changed], several: bool) -> Iterator[Row]:
    """A row each, or one for all if there are at least FEWEST."""
    if len(group) < FEWEST:
        yield from (row(change, several) for change in group)
        return
    farthest = max(group, key=lambda change: abs(math.log(change.point.ratio or 1.0)))
    most_of_all = row(farthest, several)
    name = f"{visible(farthest.case.name)}: {len(group)} cases"
    change = range_words(change.point.ratio for change in group)
    most = f"most in {visible(str(farthest.case))}"
    yield replace(
        most_of_all, cells=(name, "", "", change, "", *most_of_all.cells[5:7], f"{most_of_all.cells[7]}, {most}")
    )


def shift_row(shift: Shift) -> Row:
    """The cells of many benchmarks that moved at one commit: how far, and what speaks for another cause; nobody is blamed."""
    most = shift.changes[0]
    ends = list(dict.fromkeys(visible(commit.short) for commit in (shift.blamed[0], shift.blamed[-1])))
    where = (f"on {place(shift)}", f"at {' to '.join(ends)}", f"most in {visible(str(most.case))}")
    words = (*map(visible, shift.reasons), *where)
    change = range_words(member.point.ratio for member in shift.changes)
    kinds = {member.metric.name for member in shift.changes}
    metric = metric_words(kinds.pop()) if len(kinds) == 1 else ""
    mark, color = most.point.moved.look
    name = f"{len(shift.benchmarks)} benchmarks"
    return Row((name, "", "", change, "", metric, "", ", ".join(words)), mark, color, accent=3)


def _broken_rows(breakages: Sequence[Breakage], style: Style) -> Iterator[Row]:
    """A row each; unless verbose, one for all cases of a benchmark that broke alike."""
    groups: dict[object, list[Breakage]] = {}
    for at, breakage in enumerate(breakages):
        groups.setdefault(
            at if style.verbose else (breakage.case.name, place(breakage), breakage.failure, breakage.blamed), []
        ).append(breakage)
    several = len({place(breakage) for breakage in breakages}) > 1
    for group in groups.values():
        first = broken_row(group[0], several)
        name = f"{visible(group[0].case.name)}: {len(group)} cases"
        yield first if len(group) == 1 else replace(first, cells=(name, *first.cells[1:]))


def broken_row(broken: Breakage, several: bool = False) -> Row:
    """The cells of a case that stopped giving numbers, with its place if there are several."""
    mark, color = Verdict.FAILED.look
    failure = broken.failure
    said = visible(failure.message.partition("\n")[0])
    words = (
        _blame(broken),
        said,
        f"at {visible(failure.where)}" if failure.where else "",
        visible(broken.acknowledged.words) if broken.acknowledged is not None else "",
        place(broken) if several else "",
    )
    columns = (visible(str(broken.case)), "", "", visible(failure.kind), "", "", "", ", ".join(filter(None, words)))
    return Row(columns, mark, color, accent=3, subject=_subject(broken))


def row(changed: Changed, several: bool = False) -> Row:
    """The cells of one change, with its place if there are several."""
    point, metric = changed.point, changed.metric
    mark, color = (Verdict.CHANGED if point.state == "relapsed" else point.moved).look
    interval = format_interval(point.low, point.high) if point.low != point.high else "exact" if point.ratio else ""
    change = format_change(point.ratio) if point.ratio is not None else "from zero" if not point.before else "to zero"
    columns = (
        visible(str(changed.case)),
        *format_pair(point.before, point.after, visible(metric.unit)),
        change,
        interval,
        metric_words(metric.name),
        "tentative" if point.state == "tentative" and point.acknowledged is None else "",
        ", ".join(filter(None, [_blame(changed), *_notes(changed), place(changed) if several else ""])),
    )
    return Row(
        columns, mark, color if point.large else "", accent=3, weight=how_far(point.ratio), subject=_subject(changed)
    )


def _blame(changed: Changed | Breakage) -> str:
    """The commit to blame, or how many may be."""
    last = changed.blamed[-1]
    if len(changed.blamed) > 1:
        return f"one of {len(changed.blamed)} commits, {visible(changed.blamed[0].short)} to {visible(last.short)}"
    author = f" ({visible(last.author)})" if last.author else ""
    return f"{visible(last.short)} {_subject(changed)}{author}"


def _subject(changed: Changed | Breakage) -> str:
    """The subject of the commit to blame; empty if there are several."""
    return cut(visible(changed.blamed[0].subject), _SUBJECT_LIMIT) if len(changed.blamed) == 1 else ""


def _notes(changed: Changed) -> tuple[str, ...]:
    point = changed.point
    notes = []
    if point.acknowledged is not None:
        notes.append(visible(point.acknowledged.words))
    if point.is_passing:
        return (*notes, "two results only, then back", *map(visible, point.reasons))
    if point.state == "recovered":
        notes.append("takes an earlier regression back")
    if point.recovered_by:
        notes.append(f"recovered by {visible(point.recovered_by[:8])}")
    lost = ["improvement lost again"] if point.state == "relapsed" else []
    if point.moved is Verdict.REGRESSED and point.undoes:
        lost.append(f"back at the level of before {visible(point.undoes[:8])}")
    notes += [": ".join(lost)] * bool(lost)
    return (*notes, *map(visible, point.reasons))


def place(changed: Changed | Breakage | Shift) -> str:
    return " ".join(filter(None, [visible(changed.machine), visible(changed.environment), visible(changed.device)]))
