"""The cells of a row: of one comparison, or of the cases of a benchmark that moved together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from regress.model import Acknowledgement, Comparison, Report, Throughput, Verdict
from regress.report.together import Together, weight_of
from regress.text.style import Style, visible
from regress.text.table import Row
from regress.text.wording import counted
from regress.units import format_change, format_interval, format_pair, format_percent, format_rate

ALIGNS = "lrrlrlllll"
_BLANK = ("",) * (len(ALIGNS) - 1)
_CHANGE, _METRIC = 4, 8

_ROOMY = 120
"""Columns from which on a terminal has room for rounds and spread; elsewhere they are shown with -v."""


def metric_words(name: str) -> str:
    """The name of a metric for people: "gpu_time" is "gpu time"."""
    return visible(name).replace("_", " ")


def heading(title: str, report: Report, style: Style, *, columns: bool) -> Row:
    """The row above a section; only the first section's has the titles of the columns."""
    return Row((title, *(titles(report, style) if columns else _BLANK)), color="bold", accent=0)


def row(shown: Comparison | Together, style: Style) -> Row:
    """The row of a comparison, or of several that moved together."""
    line = _together(shown) if isinstance(shown, Together) else _comparison(shown, style)
    return replace(line, weight=weight_of(shown))


def in_words(cells: Sequence[str]) -> str:
    """A row of values before and after as a sentence, without the name: "27.4 us -> 30.0 us, +9.4 %, ..., gpu time"."""
    _, before, after, *others = cells
    return ", ".join(filter(None, (" -> ".join(filter(None, (before, after))), *others)))


def range_words(ratios: Iterable[float | None]) -> str:
    """How far several changes go, "+8.0 … +11.2 %" or "+8.0 %"; empty if none of them has a ratio."""
    known = [ratio for ratio in ratios if ratio is not None]
    if not known:
        return ""
    low, high = min(known), max(known)
    if format_change(low) == format_change(high):
        return format_change(low)
    interval = format_interval(low, high)
    return interval if interval.startswith("x") else f"{interval} %"


def reasons_of(comparison: Comparison, leave_out: str = "") -> str:
    """Why the verdict is what it is, and what else is to be known."""
    reasons = [visible(reason) for reason in comparison.reasons if reason != leave_out]
    if comparison.verdict.traits.gating_only and not comparison.gates:
        reasons.append("cannot fail the check")
    if comparison.acknowledged is not None:
        failure = comparison.head_failure or comparison.base_failure
        reasons = [
            acknowledged_words(comparison.acknowledged),
            *([visible(failure.message)] if failure else []),
            *reasons,
        ]
    return ", ".join((["critical"] if comparison.critical else []) + list(dict.fromkeys(reasons)))


def acknowledged_words(entry: Acknowledgement) -> str:
    """ "until v1.6: fused in #412"; the section says the kind."""
    return ": ".join(filter(None, (visible(entry.until_words), visible(entry.reason))))


# -- cells ---------------------------------------------------------------------------------------------------------------


def titles(report: Report, style: Style) -> tuple[str, ...]:
    """Titles of the columns after the name."""
    confidence = report.policy.get("confidence")
    interval = f"{format_percent(confidence)} interval" if isinstance(confidence, float) else "interval"
    rounds = ("rounds", "spread") if _detailed(style) else ("", "")
    declared = style.verbose and any(comparison.head_throughput is not None for comparison in report.comparisons)
    return ("base", "head", "throughput" if declared else "", "change", interval, *rounds, "", "")


def _comparison(comparison: Comparison, style: Style) -> Row:
    mark, color = comparison.verdict.look
    change = _change(comparison)
    columns = (
        visible(str(comparison.case)),
        *_values(comparison),
        throughput_words(comparison.head_throughput) if style.verbose else "",
        change,
        _interval(comparison),
        *(_rounds(comparison) if _detailed(style) else ("", "")),
        metric_words(comparison.metric.name),
        reasons_of(comparison, leave_out=change),
    )
    return Row(columns, mark, color, accent=_CHANGE)


def _together(group: Together) -> Row:
    """What holds for all of them, and the name of the one that moved most, to be measured again."""
    first, farthest = group.moved[0], group.farthest
    mark, color = first.verdict.look
    word = "best" if first.verdict is Verdict.IMPROVED else "worst"
    critical = sum(comparison.critical for comparison in group.moved)
    notes = ["critical" if critical == len(group.moved) else f"{critical} critical"] if critical else []
    entries = {comparison.acknowledged for comparison in group.moved}
    notes += [acknowledged_words(entry) for entry in entries if entry is not None and len(entries) == 1]
    notes += [visible(reason) for reason in dict.fromkeys(group.reasons)]
    notes.append(f"{word} {visible(str(farthest.case))}")
    if any(set(comparison.reasons) != set(group.reasons) for comparison in group.moved):
        notes.append("more reasons with -v")
    columns = {
        0: visible(group.name),
        _CHANGE: range_words(comparison.ratio for comparison in group.moved),
        _METRIC: metric_words(first.metric.name),
    }
    columns[_METRIC + 1] = ", ".join(notes)
    return Row(tuple(columns.get(place, "") for place in range(len(ALIGNS))), mark, color, accent=_CHANGE)


def _detailed(style: Style) -> bool:
    return style.verbose or style.width is None or style.width >= _ROOMY


def _values(comparison: Comparison) -> tuple[str, str]:
    base, head = comparison.base, comparison.head
    unit = visible(comparison.metric.unit)
    texts = format_pair(base.center if base else None, head.center if head else None, unit)
    return texts[0] if base else "", texts[1] if head else ""


def _change(comparison: Comparison) -> str:
    """The change, or nothing if there is none to give; from zero there is no ratio, but a word."""
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
    """How many rounds each side has, and its spread: "5+5", "1.5/1.2 %"; or how many pairs, and theirs: "6 pairs", "0.9 %";
    or how many sessions: "3+4 sessions"."""
    if comparison.pairs is not None:
        pairs = comparison.pairs
        return counted(pairs.n, "pair"), format_percent(pairs.spread) if pairs.n > 1 else ""
    sides = [side for side in (comparison.base, comparison.head) if side is not None]
    known = any(side.n > 1 for side in sides)  # one round has none
    spread = "/".join(format_percent(side.spread if side.n > 1 else None).removesuffix(" %") for side in sides)
    unit = " sessions" if comparison.sessions is not None and not comparison.alone else ""
    return "+".join(str(side.n) for side in sides) + unit, f"{spread} %" if known and not comparison.exact else ""


def throughput_words(throughput: Throughput | None) -> str:
    """What is known of it, bytes first; nothing if nothing is."""
    if throughput is None:
        return ""
    parts = (
        _rate(throughput.bytes_per_s, "B", throughput.share_of_copy, "copy"),
        _rate(throughput.flops_per_s, "FLOP", throughput.share_of_matmul, "matmul"),
    )
    return "; ".join(filter(None, parts))


def _rate(rate: float | None, unit: str, share: float | None, ceiling: str) -> str:
    if rate is None:
        return ""
    return format_rate(rate, unit) + (f", {format_percent(share)} of {ceiling}" if share is not None else "")
