"""A bisection: how far the ends are apart, each probe, and what was found against the commit before it."""

from __future__ import annotations

from collections.abc import Iterator

from regress.model import Bisection, Contrast, Probe, Report
from regress.report.rows import metric_words
from regress.text.style import Style, cut, paint, visible
from regress.text.table import Layout, Row, align, titles
from regress.text.wording import counted, more_with_v
from regress.units import format_change, format_interval, format_pair

_ALIGNS = "lrrrlrll"
_SUBJECT_LIMIT = 50
_FEW = 8
"""Commits that are named without -v where one of several did it."""
_STATES = {
    "good": ("=", ""),
    "bad": ("+", "bold red"),
    "between": ("~", "yellow"),
    "unclear": ("?", "yellow"),
    "skipped": ("/", "dim"),
}
_CHANGE = 3


def bisection(report: Report, style: Style) -> list[str]:
    """The sections of `bisect` as lines: both ends, the probes in their order, the step."""
    found = report.bisection
    if found is None or found.change is None:
        return []
    columns = ("before", "after", "change", "95 % interval", "rounds", "", "")
    tables = [[titles("both ends", *columns), _contrast(str(found.case), found.change)]]
    if found.probes:
        tables.append([titles("probes", columns=len(_ALIGNS)), *(_probe(each, style) for each in found.probes)])
    if found.step is not None and found.parent is not None:
        tables.append([titles("verified", columns=len(_ALIGNS)), _contrast(_between(found), found.step)])
    layout = Layout.of([row for table in tables for row in table], _ALIGNS, style)
    lines = [line for table in tables for line in (*(one for row in table for one in layout.lines(row, style)), "")]
    return [*lines, *_notes(found, style)]


def bisected(report: Report, style: Style) -> list[str]:
    """What a sweep has bisected, a line each: the case, in which metric, and the commit or what else came of it."""
    rows = [(f"  {visible(str(found.case))}", _metric(found), visible(words)) for found, words in report.bisected]
    lines = align(rows) if rows else []
    return [f"  {paint('bisected', 'bold', style)}", *lines, ""] if lines else []


def _metric(found: Bisection) -> str:
    return metric_words(found.change.metric.name) if found.change is not None else ""


def _between(found: Bisection) -> str:
    assert found.parent is not None
    return f"{found.found[-1].short} against {found.parent.short}"


def _contrast(name: str, each: Contrast) -> Row:
    mark, color = each.verdict.look
    cells = (
        visible(name),
        *format_pair(each.before, each.after, visible(each.metric.unit)),
        *_change(each.ratio, each.low, each.high, exact=each.exact),
        str(each.rounds) if each.rounds else "",
        metric_words(each.metric.name),
        ", ".join([str(each.verdict), *map(visible, each.reasons)]),
    )
    return Row(cells, mark, color, accent=_CHANGE)


def _probe(each: Probe, style: Style) -> Row:
    mark, color = _STATES[each.state]
    subject = visible(each.commit.subject)
    name = f"{each.commit.short} {subject if style.verbose else cut(subject, _SUBJECT_LIMIT)}"
    left = f"{counted(each.left, 'commit')} left"
    change = _change(each.ratio, each.low, each.high, exact=each.low == each.high)
    pairs = str(each.pairs) if each.pairs else ""
    note = ", ".join(filter(None, [left, visible(each.reason)]))
    return Row((name, "", "", *change, pairs, each.state, note), mark, color, accent=_CHANGE)


def _change(ratio: float | None, low: float | None, high: float | None, *, exact: bool) -> tuple[str, str]:
    if ratio is None:
        return "", ""
    return format_change(ratio), "exact" if exact else format_interval(low, high) if low is not None else ""


def _notes(found: Bisection, style: Style) -> Iterator[str]:
    for each in found.merges:
        yield f"  brought along by the merge {each.short} {visible(each.subject)}"
    if len(found.found) > 1:
        yield f"  one of {len(found.found)} commits did it:"
        shown = found.found if style.verbose or len(found.found) <= _FEW else found.found[: _FEW - 1]
        yield from (f"    {each.short} {visible(each.subject)} ({visible(each.author)})" for each in shown)
        if len(shown) < len(found.found):
            yield f"    {more_with_v(len(found.found) - len(shown))}"
    yield from (f"  {visible(each)}" for each in found.reasons)
    if found.merges or len(found.found) > 1 or found.reasons:
        yield ""
