"""The rows of comparisons, by verdict: the most serious first, and only what a reader has to act on unless verbose."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from regress.model import ACK_KINDS, Case, Comparison, Report, Verdict
from regress.report.failures import without_values
from regress.report.rows import ALIGNS, ON_NUMBERS, changes_of, heading, metric_words, row
from regress.report.style import Style, paint, visible
from regress.report.table import Layout, Row
from regress.report.together import Together, gathered
from regress.units import format_percent

__all__ = ["ORDER", "sections"]

ORDER = (
    Verdict.REGRESSED,
    Verdict.FAILED,
    Verdict.IMPROVED,
    Verdict.UNDECIDED,
    Verdict.CHANGED,
    Verdict.INCOMPARABLE,
    Verdict.NEW,
    Verdict.GONE,
    Verdict.SKIPPED,
    Verdict.UNCHANGED,
)
"""Verdicts by how soon the reader has to know."""

_WITHOUT_NUMBERS = (Verdict.INCOMPARABLE, Verdict.NEW, Verdict.GONE, Verdict.SKIPPED)
"""Verdicts on a case rather than on a metric: one row a case says it."""

_LISTS = (Verdict.FAILED.value, Verdict.SKIPPED.value)
"""Titles of the sections that are no tables: what counts there is the reason, not a number."""

_QUIET = (Verdict.UNCHANGED, Verdict.SKIPPED)
"""Verdicts on what is acknowledged that nobody has to be told of."""

Section = tuple[str, Sequence[Comparison]]


def sections(report: Report, style: Style) -> list[str]:
    """All sections of comparisons as lines, an empty line after each, and the counts of what is folded."""
    chosen = list(_chosen(report, style))
    tables: dict[str, list[Row]] = {}
    for title, found in chosen:
        if title not in _LISTS:
            above = heading(title, report, style, columns=not tables)
            shown = found if style.verbose else gathered(found, report.comparisons)
            tables[title] = [above, *(row(each, style) for each in shown)]
    layout = Layout.of([each for table in tables.values() for each in table], ALIGNS, style)
    lines: list[str] = []
    for title, found in chosen:
        if title in _LISTS:
            lines += [f"  {paint(title, 'bold', style)}", *without_values(found, style), ""]
        else:
            lines += [*(line for each in tables[title] for line in layout.lines(each, style)), ""]
    if not style.verbose:
        folded = [_folded_line(title, found, report) for title, found in _folded(report)]
        lines += [*folded, ""] if folded else []
    return lines


# -- which rows ----------------------------------------------------------------------------------------------------------


def _chosen(report: Report, style: Style) -> Iterable[Section]:
    """Titles and comparisons of the sections to print, none of them empty."""
    folded = _folded(report)
    hidden = {id(each) for _, found in folded for each in found}
    alarming = [each for each in report.comparisons if each.acknowledged is None]
    for verdict in ORDER[:-1]:
        found = _of(alarming, verdict, style.verbose)
        if found:
            yield verdict.value, found
    yield from _not_gating(report.comparisons, style.verbose)
    yield from _acknowledged(report.comparisons, style.verbose)
    if style.verbose:
        yield from folded
        unchanged = [each for each in alarming if each.verdict is Verdict.UNCHANGED and id(each) not in hidden]
        if unchanged:
            yield Verdict.UNCHANGED.value, unchanged


def _of(comparisons: Sequence[Comparison], verdict: Verdict, verbose: bool) -> list[Comparison]:
    found = [each for each in comparisons if each.verdict is verdict]
    if verdict is Verdict.REGRESSED:
        return [each for each in found if each.gates]
    if verdict is Verdict.FAILED or (verdict in _WITHOUT_NUMBERS and not verbose):
        return _one_a_case(found)
    if verdict in ON_NUMBERS and not verbose:
        return [each for each in found if each.gates]
    return found


def _one_a_case(comparisons: Sequence[Comparison]) -> list[Comparison]:
    """The first comparison of each case, one that gates if there is any."""
    first: dict[Case, Comparison] = {}
    for each in comparisons:
        known = first.get(each.case)
        if known is None or (each.gates and not known.gates):
            first[each.case] = each
    return list(first.values())


def _not_gating(comparisons: Sequence[Comparison], verbose: bool) -> list[Section]:
    """What regressed in a metric that fails no check: by itself no verdict on the change, but often its explanation.

    A time that contains the gating one (wall time beside GPU time) repeats its regression: one change, one row. A counter is
    among the reasons of the row that gates.
    """
    told = {each.case for each in comparisons if _regressed(each) and each.gates and each.metric.kind == "time"}
    found: dict[str, list[Comparison]] = {}
    for each in comparisons:
        repeated = each.metric.kind == "count" or (each.metric.kind == "time" and each.case in told)
        if _regressed(each) and not each.gates and each.acknowledged is None and (verbose or not repeated):
            found.setdefault(f"{metric_words(each.metric.name)} (does not gate)", []).append(each)
    return list(found.items())


def _acknowledged(comparisons: Sequence[Comparison], verbose: bool) -> Iterator[Section]:
    """What is acknowledged, by kind: what gates and changed, or with -v all of it."""
    for kind in ACK_KINDS:
        found = [each for each in comparisons if each.acknowledged is not None and each.acknowledged.kind == kind]
        shown = found if verbose else [each for each in found if each.gates and each.verdict not in _QUIET]
        if shown:
            yield kind, shown


def _regressed(comparison: Comparison) -> bool:
    return comparison.verdict is Verdict.REGRESSED


def _folded(report: Report) -> list[Section]:
    """Significant changes to the worse that fail no check, by title: "slower, below 5 %", "larger, under the floor"."""
    alpha = report.policy.get("alpha")
    found: dict[str, list[Comparison]] = {}
    for each in report.comparisons:
        worse = _worse_word(each)
        tested = isinstance(alpha, float) and each.p_adjusted is not None and each.p_adjusted < alpha
        if each.verdict is Verdict.UNCHANGED and each.alarms and worse and (each.exact or tested):
            found.setdefault(f"{worse}, {_below_what(each)}", []).append(each)
    return list(found.items())


def _folded_line(title: str, found: Sequence[Comparison], report: Report) -> str:
    """How many are folded under that title, and what of it moved together: that is one change, however small."""
    groups = [each for each in gathered(found, report.comparisons) if isinstance(each, Together)]
    words = "; ".join(f"{visible(each.name)}, {changes_of(each)}" for each in groups)
    return f"  {len(found)} {title} (-v lists them){': ' if words else ''}{words}"


def _below_what(comparison: Comparison) -> str:
    """Why a change to the worse is no regression: a large one can only be under the floor."""
    limit = 1 + comparison.threshold
    large = comparison.ratio is not None and not 1 / limit <= comparison.ratio <= limit
    return "under the floor" if large else f"below {format_percent(comparison.threshold)}"


def _worse_word(comparison: Comparison) -> str:
    """The word for a change to the worse, empty for any other."""
    ratio, better = comparison.ratio, comparison.metric.better
    if ratio is None or not (ratio > 1 if better == "lower" else ratio < 1 and better == "higher"):
        return ""
    if comparison.metric.kind == "memory":
        return "larger"
    if comparison.metric.kind in ("time", "host"):
        return "slower"
    return "higher" if ratio > 1 else "lower"
