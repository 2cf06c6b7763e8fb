"""A bisection: the difference between the ends, each probe, and the commit found against the one before it."""

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
"""Commits that are named without -v if one of several did it."""
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
    result = report.bisection
    if result is None or result.change is None:
        return []
    columns = ("before", "after", "change", "95 % interval", "rounds", "", "")
    tables = [[titles("both ends", *columns), _contrast(str(result.case), result.change)]]
    if result.probes:
        tables.append([titles("probes", columns=len(_ALIGNS)), *(_probe(probe, style) for probe in result.probes)])
    if result.step is not None and result.parent is not None:
        tables.append([titles("verified", columns=len(_ALIGNS)), _contrast(_between(result), result.step)])
    layout = Layout.of([row for table in tables for row in table], _ALIGNS, style)
    lines = [line for table in tables for line in (*(one for row in table for one in layout.lines(row, style)), "")]
    return [*lines, *_notes(result, style)]


def bisected(report: Report, style: Style) -> list[str]:
    """What a sweep has bisected, a line each: the case, the metric, and the commit or another outcome."""
    rows = [(f"  {visible(str(result.case))}", _metric(result), visible(words)) for result, words in report.bisected]
    lines = align(rows) if rows else []
    return [f"  {paint('bisected', 'bold', style)}", *lines, ""] if lines else []


def _metric(result: Bisection) -> str:
    return metric_words(result.change.metric.name) if result.change is not None else ""


def _between(result: Bisection) -> str:
    assert result.parent is not None
    return f"{result.found[-1].short} against {result.parent.short}"


def _contrast(name: str, contrast: Contrast) -> Row:
    mark, color = contrast.verdict.look
    cells = (
        visible(name),
        *format_pair(contrast.before, contrast.after, visible(contrast.metric.unit)),
        *_change(contrast.ratio, contrast.low, contrast.high, exact=contrast.exact),
        str(contrast.rounds) if contrast.rounds else "",
        metric_words(contrast.metric.name),
        ", ".join([str(contrast.verdict), *map(visible, contrast.reasons)]),
    )
    return Row(cells, mark, color, accent=_CHANGE)


def _probe(probe: Probe, style: Style) -> Row:
    mark, color = _STATES[probe.state]
    subject = visible(probe.commit.subject)
    name = f"{probe.commit.short} {subject if style.verbose else cut(subject, _SUBJECT_LIMIT)}"
    left = f"{counted(probe.left, 'commit')} left"
    change = _change(probe.ratio, probe.low, probe.high, exact=probe.low == probe.high)
    pairs = str(probe.pairs) if probe.pairs else ""
    note = ", ".join(filter(None, [left, visible(probe.reason)]))
    return Row((name, "", "", *change, pairs, probe.state, note), mark, color, accent=_CHANGE)


def _change(ratio: float | None, low: float | None, high: float | None, *, exact: bool) -> tuple[str, str]:
    if ratio is None:
        return "", ""
    return format_change(ratio), "exact" if exact else format_interval(low, high) if low is not None else ""


def _notes(result: Bisection, style: Style) -> Iterator[str]:
    for merge in result.merges:
        yield f"  brought along by the merge {merge.short} {visible(merge.subject)}"
    if len(result.found) > 1:
        yield f"  one of {len(result.found)} commits did it:"
        shown = result.found if style.verbose or len(result.found) <= _FEW else result.found[: _FEW - 1]
        yield from (f"    {commit.short} {visible(commit.subject)} ({visible(commit.author)})" for commit in shown)
        if len(shown) < len(result.found):
            yield f"    {more_with_v(len(result.found) - len(shown))}"
    yield from (f"  {visible(reason)}" for reason in result.reasons)
    if result.merges or len(result.found) > 1 or result.reasons:
        yield ""
