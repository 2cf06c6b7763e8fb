"""The rows of comparisons, by verdict: the most serious first, and only what a reader has to act on unless verbose."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from regress.model import Case, Comparison, Failure, Report, Verdict
from regress.report.style import Style, paint, visible
from regress.report.table import Layout, Row
from regress.report.throughput import throughput_words
from regress.units import format_change, format_interval, format_pair, format_percent

__all__ = ["MARKS", "ORDER", "failure_lines", "metric_words", "sections"]

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

MARKS = {
    Verdict.REGRESSED: ("+", "bold red"),
    Verdict.FAILED: ("!", "bold red"),
    Verdict.IMPROVED: ("-", "green"),
    Verdict.UNDECIDED: ("?", "yellow"),
    Verdict.CHANGED: ("~", "cyan"),
    Verdict.INCOMPARABLE: ("~", "yellow"),
    Verdict.NEW: ("*", "cyan"),
    Verdict.GONE: ("x", "cyan"),
    Verdict.SKIPPED: ("/", "dim"),
    Verdict.UNCHANGED: ("=", ""),
}
"""Sign and colour of a verdict. The sign says it without the colour, the section's title says it without the sign."""

_ON_NUMBERS = (Verdict.IMPROVED, Verdict.UNDECIDED, Verdict.UNCHANGED)
"""Verdicts of which a metric that does not gate is shown only if verbose, and is marked."""

_WITHOUT_NUMBERS = (Verdict.INCOMPARABLE, Verdict.NEW, Verdict.GONE, Verdict.SKIPPED)
"""Verdicts on a case rather than on a metric: one row a case says it."""

_LISTS = (Verdict.FAILED.value, Verdict.SKIPPED.value)
"""Titles of the sections that are no tables: what counts there is the reason, not a number."""

_ALIGNS = "lrrlrlllll"
_BLANK = ("",) * (len(_ALIGNS) - 1)
_CHANGE = 4
_ROOMY = 120
"""Columns from which on a terminal has room for rounds and spread; elsewhere they are shown with -v."""

Section = tuple[str, Sequence[Comparison]]


def sections(report: Report, style: Style) -> list[str]:
    """All sections of comparisons as lines, an empty line after each, and the counts of what is folded."""
    chosen = list(_chosen(report, style))
    tables: dict[str, list[Row]] = {}
    for title, found in chosen:
        if title not in _LISTS:
            heading = Row((title, *(_BLANK if tables else _header(report, style))), color="bold", accent=0)
            tables[title] = [heading, *(_row(each, style) for each in found)]
    layout = Layout.of([row for table in tables.values() for row in table], _ALIGNS, style)
    lines: list[str] = []
    for title, found in chosen:
        if title in _LISTS:
            lines += [f"  {paint(title, 'bold', style)}", *_without_values(found, style), ""]
        else:
            lines += [*(line for row in tables[title] for line in layout.lines(row, style)), ""]
    if not style.verbose:
        folded = [f"  {len(found)} {title} (-v lists them)" for title, found in _folded(report)]
        lines += [*folded, ""] if folded else []
    return lines


def metric_words(name: str) -> str:
    """The name of a metric for people: "gpu_time" is "gpu time"."""
    return visible(name).replace("_", " ")


def failure_lines(failures: Iterable[tuple[str, Failure]], style: Style) -> list[str]:
    """Pairs of a side's words ("on head", may be empty) and what happened there, with the traceback or log if verbose."""
    lines = []
    for side, failure in failures:
        kind = "" if failure.kind in ("error", "skipped") else f"{visible(failure.kind)}: "
        lines.append(f"    {side + ': ' if side else ''}{kind}{visible(failure.message)}")
        if failure.where:
            lines.append(f"      at {visible(failure.where)}")
        if style.verbose and failure.detail:
            lines += [f"      {visible(line)}".rstrip() for line in failure.detail.splitlines()]
    return lines


# -- which rows ----------------------------------------------------------------------------------------------------------


def _chosen(report: Report, style: Style) -> Iterable[Section]:
    """Titles and comparisons of the sections to print, none of them empty."""
    folded = _folded(report)
    hidden = {id(each) for _, found in folded for each in found}
    for verdict in ORDER[:-1]:
        found = _of(report.comparisons, verdict, style.verbose)
        if found:
            yield verdict.value, found
    yield from _not_gating(report.comparisons, style.verbose)
    if style.verbose:
        yield from folded
        unchanged = [
            each for each in report.comparisons if each.verdict is Verdict.UNCHANGED and id(each) not in hidden
        ]
        if unchanged:
            yield Verdict.UNCHANGED.value, unchanged


def _of(comparisons: Sequence[Comparison], verdict: Verdict, verbose: bool) -> list[Comparison]:
    found = [each for each in comparisons if each.verdict is verdict]
    if verdict is Verdict.REGRESSED:
        return [each for each in found if each.gates]
    if verdict is Verdict.FAILED or (verdict in _WITHOUT_NUMBERS and not verbose):
        return _one_a_case(found)
    if verdict in _ON_NUMBERS and not verbose:
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
        if _regressed(each) and not each.gates and (verbose or not repeated):
            found.setdefault(f"{metric_words(each.metric.name)} (does not gate)", []).append(each)
    return list(found.items())


def _regressed(comparison: Comparison) -> bool:
    return comparison.verdict is Verdict.REGRESSED


def _folded(report: Report) -> list[Section]:
    """Significant changes to the worse that fail no check, by title: "slower, below 5 %", "larger, under the floor"."""
    alpha = report.policy.get("alpha")
    found: dict[str, list[Comparison]] = {}
    for each in report.comparisons:
        worse = _worse_word(each)
        tested = isinstance(alpha, float) and each.p_adjusted is not None and each.p_adjusted < alpha
        if each.verdict is Verdict.UNCHANGED and each.gates and worse and (each.exact or tested):
            found.setdefault(f"{worse}, {_below_what(each)}", []).append(each)
    return list(found.items())


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


# -- rows ----------------------------------------------------------------------------------------------------------------


def _header(report: Report, style: Style) -> tuple[str, ...]:
    """Titles of the columns after the name."""
    confidence = report.policy.get("confidence")
    interval = f"{format_percent(confidence)} interval" if isinstance(confidence, float) else "interval"
    rounds = ("rounds", "spread") if _detailed(style) else ("", "")
    declared = style.verbose and any(each.head_throughput is not None for each in report.comparisons)
    return ("base", "head", "throughput" if declared else "", "change", interval, *rounds, "", "")


def _row(comparison: Comparison, style: Style) -> Row:
    mark, color = MARKS[comparison.verdict]
    change = _change(comparison)
    columns = (
        visible(str(comparison.case)),
        *_values(comparison),
        throughput_words(comparison.head_throughput) if style.verbose else "",
        change,
        _interval(comparison),
        *(_rounds(comparison) if _detailed(style) else ("", "")),
        metric_words(comparison.metric.name),
        _reasons(comparison, leave_out=change),
    )
    return Row(columns, mark, color, accent=_CHANGE)


def _detailed(style: Style) -> bool:
    return style.verbose or style.width is None or style.width >= _ROOMY


def _values(comparison: Comparison) -> tuple[str, str]:
    base, head = comparison.base, comparison.head
    unit = visible(comparison.metric.unit)
    texts = format_pair(base.center if base else None, head.center if head else None, unit)
    return texts[0] if base else "", texts[1] if head else ""


def _change(comparison: Comparison) -> str:
    """The change, or nothing where there is none to give; from zero there is no ratio, but a word."""
    if comparison.ratio is not None:
        return format_change(comparison.ratio)
    zero = comparison.base is not None and comparison.base.center == 0
    return "from zero" if zero and comparison.head is not None and comparison.head.center != 0 else ""


def _interval(comparison: Comparison) -> str:
    if not _change(comparison):
        return ""
    if comparison.exact:
        return "exact"
    return format_interval(comparison.low, comparison.high) if comparison.low is not None else ""


def _rounds(comparison: Comparison) -> tuple[str, str]:
    """How many rounds each side has, and its spread: "5+5", "1.5/1.2 %"."""
    sides = [side for side in (comparison.base, comparison.head) if side is not None]
    spread = "/".join(format_percent(side.spread).removesuffix(" %") for side in sides)
    return "+".join(str(side.n) for side in sides), f"{spread} %" if sides and not comparison.exact else ""


def _reasons(comparison: Comparison, leave_out: str = "") -> str:
    reasons = [visible(reason) for reason in comparison.reasons if reason != leave_out]
    if comparison.verdict in _ON_NUMBERS and not comparison.gates:
        reasons.append("does not gate")
    return ", ".join((["critical"] if comparison.critical else []) + list(dict.fromkeys(reasons)))


# -- failures ------------------------------------------------------------------------------------------------------------


def _without_values(comparisons: Sequence[Comparison], style: Style) -> list[str]:
    """What failed or was skipped, with the reason; unless verbose, cases of one benchmark with one reason are one row."""
    groups: dict[tuple[object, ...], list[Comparison]] = {}
    for each in comparisons:
        alike = (str(each.case),) if style.verbose else _what_happened(each)
        groups.setdefault(alike, []).append(each)
    lines = []
    for group in groups.values():
        first = group[0]
        mark, color = MARKS[first.verdict]
        name = visible(_name_of(group))
        said = [failure.message for _, failure in _failures(first)]
        reasons = _reasons(
            replace(first, reasons=tuple(r for r in first.reasons if not any(text in r for text in said)))
        )
        lines.append(f"{paint(mark, color, style)} {paint(name, 'bold', style)}{'  ' + reasons if reasons else ''}")
        lines += failure_lines(_failures(first), style)
    return lines


def _what_happened(comparison: Comparison) -> tuple[object, ...]:
    """Equal for cases that are one row: failures of one benchmark, and whatever is skipped for one reason."""
    failures = tuple((side, each.kind, each.message, each.where) for side, each in _failures(comparison))
    return (
        failures
        if comparison.verdict is Verdict.SKIPPED and failures
        else (comparison.case.name, comparison.reasons, failures)
    )


def _name_of(group: Sequence[Comparison]) -> str:
    names = list(dict.fromkeys(each.case.name for each in group))
    if len(group) == 1:
        return str(group[0].case)
    if len(names) == 1:
        return f"{names[0]}: {len(group)} cases"
    return f"{len(group)} cases of {len(names)} benchmarks"


def _failures(comparison: Comparison) -> list[tuple[str, Failure]]:
    base, head = comparison.base_failure, comparison.head_failure
    if base is not None and head is not None and (base.message, base.where) == (head.message, head.where):
        return [("on both sides", head)]
    return [(words, each) for words, each in (("on base", base), ("on head", head)) if each is not None]
