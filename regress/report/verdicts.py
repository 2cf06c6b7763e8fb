"""The rows of comparisons by verdict, the most serious first; unless verbose, only what a reader has to act on."""

from __future__ import annotations

from collections.abc import Sequence

from regress.model import ACK_KINDS, Case, Comparison, Report, Verdict
from regress.report.failures import without_values
from regress.report.rows import ALIGNS, heading, metric_words, range_words, row
from regress.report.together import Together, gathered
from regress.text.style import Style, paint, visible
from regress.text.table import Layout, Row
from regress.units import format_percent

_UNREACHED = "not reached before measuring ended"

Section = tuple[str, Sequence[Comparison]]
"""A title and what stands below it."""


def sections(report: Report, style: Style) -> list[str]:
    """All sections of comparisons as lines, each followed by an empty line, and the counts of what is folded."""
    found_of = chosen(report, style.verbose)
    tables: dict[str, list[Row]] = {}
    for title, comparisons in found_of:
        if not is_list(title):
            above = heading(title, report, style, columns=not tables)
            shown = comparisons if style.verbose else gathered(comparisons, whole(title, report))
            tables[title] = [above, *(row(item, style) for item in shown)]
    layout = Layout.of([table_row for table in tables.values() for table_row in table], ALIGNS, style)
    lines: list[str] = []
    for title, comparisons in found_of:
        if is_list(title):
            lines += [
                f"  {paint(title, 'bold', style)}",
                *(line for block in without_values(comparisons, style) for line in block),
                "",
            ]
        else:
            lines += [*(line for table_row in tables[title] for line in layout.lines(table_row, style)), ""]
    if not style.verbose:
        folded = [_folded_line(title, comparisons, report) for title, comparisons in _folded(report)]
        lines += [*folded, ""] if folded else []
    return lines


# -- which rows ----------------------------------------------------------------------------------------------------------


def chosen(report: Report, verbose: bool = False) -> list[Section]:
    """Titles and comparisons of the sections to show, without empty ones: what a reader has to know; if verbose, all."""
    shown: list[Section] = [
        (verdict.value, _of(_unknown(report), verdict, verbose))
        for verdict in Verdict
        if verdict is not Verdict.UNCHANGED
    ]
    shown += _not_gating(report.comparisons, verbose)
    shown += _acknowledged(report.comparisons, verbose)
    shown += [
        (drifted(report), [comparison for comparison in report.drift if verbose or comparison.exit_code(report.strict)])
    ]
    shown += rest(report, verbose) if verbose else []
    return [(title, comparisons) for title, comparisons in shown if comparisons]


def drifted(report: Report) -> str:
    """The title of the section of drift."""
    return f"drift since {report.drift_since}"


def is_list(title: str) -> bool:
    """Whether the section is a list and no table: what counts there is the reason, not a number."""
    return any(verdict.traits.listed for verdict in Verdict if verdict.value == title)


def whole(title: str, report: Report) -> Sequence[Comparison]:
    """All comparisons that the rows below a title were chosen from."""
    return report.drift if title == drifted(report) else report.comparisons


def rest(report: Report, verbose: bool = False) -> list[Section]:
    """What is shown only if verbose: changes for the worse that fail nothing, and what is unchanged."""
    folded = _folded(report)
    hidden = {id(comparison) for _, comparisons in folded for comparison in comparisons}
    unchanged = [
        comparison for comparison in _of(_unknown(report), Verdict.UNCHANGED, verbose) if id(comparison) not in hidden
    ]
    return [*folded, *([(Verdict.UNCHANGED.value, unchanged)] if unchanged else [])]


def _unknown(report: Report) -> list[Comparison]:
    """The comparisons that nobody has acknowledged."""
    return [comparison for comparison in report.comparisons if comparison.acknowledged is None]


def _of(comparisons: Sequence[Comparison], verdict: Verdict, verbose: bool) -> list[Comparison]:
    of_verdict = [
        comparison for comparison in comparisons if comparison.verdict is verdict and not comparison.unreached
    ]
    if verdict is Verdict.REGRESSED:
        return [comparison for comparison in of_verdict if comparison.gates]
    if verdict is Verdict.FAILED or (verdict.traits.of_case and not verbose):
        return _one_a_case(of_verdict)
    if verdict.traits.gating_only and not verbose:
        return [comparison for comparison in of_verdict if comparison.gates]
    return of_verdict


def _one_a_case(comparisons: Sequence[Comparison]) -> list[Comparison]:
    """One comparison of each case: the first that gates, else the first."""
    first: dict[Case, Comparison] = {}
    for comparison in comparisons:
        known = first.get(comparison.case)
        if known is None or (comparison.gates and not known.gates):
            first[comparison.case] = comparison
    return list(first.values())


def _not_gating(comparisons: Sequence[Comparison], verbose: bool) -> list[Section]:
    """Regressions of metrics that fail no check: they decide nothing, but often explain a change.

    A time that contains the gating one (wall time beside GPU time) repeats its regression and is left out: one change, one
    row. So is a counter, which is among the reasons of the row that gates.
    """
    told = {
        comparison.case
        for comparison in comparisons
        if _regressed(comparison) and comparison.gates and comparison.metric.kind == "time"
    }
    by_title: dict[str, list[Comparison]] = {}
    for comparison in comparisons:
        repeated = comparison.metric.kind == "count" or (comparison.metric.kind == "time" and comparison.case in told)
        if (
            _regressed(comparison)
            and not comparison.gates
            and comparison.acknowledged is None
            and (verbose or not repeated)
        ):
            by_title.setdefault(f"{metric_words(comparison.metric.name)} (cannot fail the check)", []).append(
                comparison
            )
    return list(by_title.items())


def _acknowledged(comparisons: Sequence[Comparison], verbose: bool) -> list[Section]:
    """What is acknowledged, by kind: what gates and changed, or if verbose all of it."""
    by_kind: dict[str, list[Comparison]] = {kind: [] for kind in ACK_KINDS}
    for comparison in comparisons:
        if comparison.acknowledged is not None and (
            verbose or (comparison.gates and not comparison.verdict.traits.quiet)
        ):
            by_kind[comparison.acknowledged.kind].append(comparison)
    return list(by_kind.items())


def _regressed(comparison: Comparison) -> bool:
    return comparison.verdict is Verdict.REGRESSED


def _folded(report: Report) -> list[Section]:
    """Significant changes for the worse that fail no check, by title: "slower, below 5 %", "larger, under the floor"; and what
    there was no time for."""
    alpha = report.policy.get("alpha")
    by_title: dict[str, list[Comparison]] = {}
    for comparison in report.comparisons:
        if comparison.unreached and comparison.gates:
            by_title.setdefault(_UNREACHED, []).append(comparison)
        worse = _worse_word(comparison)
        tested = isinstance(alpha, float) and comparison.p_adjusted is not None and comparison.p_adjusted < alpha
        if comparison.verdict is Verdict.UNCHANGED and comparison.alarms and worse and (comparison.exact or tested):
            by_title.setdefault(f"{worse}, {_below_what(comparison)}", []).append(comparison)
    return list(by_title.items())


def _folded_line(title: str, comparisons: Sequence[Comparison], report: Report) -> str:
    """How many are folded under that title, and which of them moved together: that is one change, however small."""
    groups = [group for group in gathered(comparisons, report.comparisons) if isinstance(group, Together)]
    words = "; ".join(f"{visible(group.name)}, {range_words(one.ratio for one in group.moved)}" for group in groups)
    if title == _UNREACHED and (critical := sum(comparison.critical for comparison in comparisons)):
        words = f"{critical} critical"
    return f"  {len(comparisons)} {title} (-v lists them){': ' if words else ''}{words}"


def _below_what(comparison: Comparison) -> str:
    """Why a change for the worse is no regression: a large one can only be under the floor."""
    limit = 1 + comparison.threshold
    large = comparison.ratio is not None and not 1 / limit <= comparison.ratio <= limit
    return "under the floor" if large else f"below {format_percent(comparison.threshold)}"


def _worse_word(comparison: Comparison) -> str:
    """The word for a change for the worse; empty for any other."""
    ratio, better = comparison.ratio, comparison.metric.better
    if ratio is None or not (ratio > 1 if better == "lower" else ratio < 1 and better == "higher"):
        return ""
    if comparison.metric.kind == "memory":
        return "larger"
    if comparison.metric.kind in ("time", "host"):
        return "slower"
    return "higher" if ratio > 1 else "lower"
