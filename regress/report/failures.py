"""What failed or was skipped: no tables, as what counts there is the reason, not a number."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from regress.model import Comparison, Failure, Verdict
from regress.report.rows import MARKS, reasons_of
from regress.report.style import Style, paint, visible

__all__ = ["failure_lines", "without_values"]


def without_values(comparisons: Sequence[Comparison], style: Style) -> list[str]:
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
        reasons = reasons_of(
            replace(first, reasons=tuple(r for r in first.reasons if not any(text in r for text in said)))
        )
        lines.append(f"{paint(mark, color, style)} {paint(name, 'bold', style)}{'  ' + reasons if reasons else ''}")
        lines += failure_lines(_failures(first), style)
    return lines


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
