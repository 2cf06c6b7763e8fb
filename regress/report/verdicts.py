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
    for title, found in found_of:
        if not is_list(title):
            above = heading(title, report, style, columns=not tables)
            shown = found if style.verbose else gathered(found, whole(title, report))
            tables[title] = [above, *(row(each, style) for each in shown)]
    layout = Layout.of([each for table in tables.values() for each in table], ALIGNS, style)
    lines: list[str] = []
    for title, found in found_of:
        if is_list(title):
            lines += [
                f"  {paint(title, 'bold', style)}",
                *(line for each in without_values(found, style) for line in each),
                "",
            ]
        else:
            lines += [*(line for each in tables[title] for line in layout.lines(each, style)), ""]
    if not style.verbose:
        folded = [_folded_line(title, found, report) for title, found in _folded(report)]
        lines += [*folded, ""] if folded else []
    return lines


# -- which rows ----------------------------------------------------------------------------------------------------------


def chosen(report: Report, verbose: bool = False) -> list[Section]:
    """Titles and comparisons of the sections to show, without empty ones: what a reader has to know; if verbose, all."""
    found: list[Section] = [
        (each.value, _of(_unknown(report), each, verbose)) for each in Verdict if each is not Verdict.UNCHANGED
    ]
    found += _not_gating(report.comparisons, verbose)
    found += _acknowledged(report.comparisons, verbose)
    found += [(drifted(report), [each for each in report.drift if verbose or each.exit_code(report.strict)])]
    found += rest(report, verbose) if verbose else []
    return [(title, each) for title, each in found if each]


def drifted(report: Report) -> str:
    """The title of the section of drift."""
    return f"drift since {report.drift_since}"


def is_list(title: str) -> bool:
    """Whether the section is a list and no table: what counts there is the reason, not a number."""
    return any(each.traits.listed for each in Verdict if each.value == title)


def whole(title: str, report: Report) -> Sequence[Comparison]:
    """All comparisons that the rows below a title were chosen from."""
    return report.drift if title == drifted(report) else report.comparisons


def rest(report: Report, verbose: bool = False) -> list[Section]:
    """What is shown only if verbose: changes for the worse that fail nothing, and what is unchanged."""
    folded = _folded(report)
    hidden = {id(each) for _, found in folded for each in found}
    unchanged = [each for each in _of(_unknown(report), Verdict.UNCHANGED, verbose) if id(each) not in hidden]
    return [*folded, *([(Verdict.UNCHANGED.value, unchanged)] if unchanged else [])]


def _unknown(report: Report) -> list[Comparison]:
    """The comparisons that nobody has acknowledged."""
    return [each for each in report.comparisons if each.acknowledged is None]


def _of(comparisons: Sequence[Comparison], verdict: Verdict, verbose: bool) -> list[Comparison]:
    found = [each for each in comparisons if each.verdict is verdict and not each.unreached]
    if verdict is Verdict.REGRESSED:
        return [each for each in found if each.gates]
    if verdict is Verdict.FAILED or (verdict.traits.of_case and not verbose):
        return _one_a_case(found)
    if verdict.traits.gating_only and not verbose:
        return [each for each in found if each.gates]
    return found


def _one_a_case(comparisons: Sequence[Comparison]) -> list[Comparison]:
    """One comparison of each case: the first that gates, else the first."""
    first: dict[Case, Comparison] = {}
    for each in comparisons:
        known = first.get(each.case)
        if known is None or (each.gates and not known.gates):
            first[each.case] = each
    return list(first.values())


def _not_gating(comparisons: Sequence[Comparison], verbose: bool) -> list[Section]:
    """Regressions of metrics that fail no check: they decide nothing, but often explain a change.

    A time that contains the gating one (wall time beside GPU time) repeats its regression and is left out: one change, one
    row. So is a counter, which is among the reasons of the row that gates.
    """
    told = {each.case for each in comparisons if _regressed(each) and each.gates and each.metric.kind == "time"}
    found: dict[str, list[Comparison]] = {}
    for each in comparisons:
        repeated = each.metric.kind == "count" or (each.metric.kind == "time" and each.case in told)
        if _regressed(each) and not each.gates and each.acknowledged is None and (verbose or not repeated):
            found.setdefault(f"{metric_words(each.metric.name)} (does not gate)", []).append(each)
    return list(found.items())


def _acknowledged(comparisons: Sequence[Comparison], verbose: bool) -> list[Section]:
    """What is acknowledged, by kind: what gates and changed, or if verbose all of it."""
    found: dict[str, list[Comparison]] = {kind: [] for kind in ACK_KINDS}
    for each in comparisons:
        if each.acknowledged is not None and (verbose or (each.gates and not each.verdict.traits.quiet)):
            found[each.acknowledged.kind].append(each)
    return list(found.items())


def _regressed(comparison: Comparison) -> bool:
    return comparison.verdict is Verdict.REGRESSED


def _folded(report: Report) -> list[Section]:
    """Significant changes for the worse that fail no check, by title: "slower, below 5 %", "larger, under the floor"; and what
    there was no time for."""
    alpha = report.policy.get("alpha")
    found: dict[str, list[Comparison]] = {}
    for each in report.comparisons:
        if each.unreached and each.gates:
            found.setdefault(_UNREACHED, []).append(each)
        worse = _worse_word(each)
        tested = isinstance(alpha, float) and each.p_adjusted is not None and each.p_adjusted < alpha
        if each.verdict is Verdict.UNCHANGED and each.alarms and worse and (each.exact or tested):
            found.setdefault(f"{worse}, {_below_what(each)}", []).append(each)
    return list(found.items())


def _folded_line(title: str, found: Sequence[Comparison], report: Report) -> str:
    """How many are folded under that title, and which of them moved together: that is one change, however small."""
    groups = [each for each in gathered(found, report.comparisons) if isinstance(each, Together)]
    words = "; ".join(f"{visible(each.name)}, {range_words(one.ratio for one in each.moved)}" for each in groups)
    if title == _UNREACHED and (critical := sum(each.critical for each in found)):
        words = f"{critical} critical"
    return f"  {len(found)} {title} (-v lists them){': ' if words else ''}{words}"


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
