"""What failed or was skipped, as lists: what counts there is the reason, not a number."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from regress.model import Case, Comparison, Failure, Verdict
from regress.report.rows import reasons_of
from regress.text.style import Style, paint, visible


def without_values(comparisons: Iterable[Comparison], style: Style) -> list[list[str]]:
    """The lines of each comparison that failed or was skipped, with the reason."""
    blocks = []
    for group in alike(comparisons, style.verbose):
        first = group[0]
        mark, color = first.verdict.look
        reasons = reasons_beside(first)
        title = f"{paint(mark, color, style)} {paint(visible(name_of(group)), 'bold', style)}"
        blocks.append([f"{title}  {reasons}" if reasons else title, *failure_lines(failures_of(first), style)])
    return blocks


def alike(comparisons: Iterable[Comparison], verbose: bool = False) -> list[list[Comparison]]:
    """Groups with one reason: of one benchmark, or skipped ones of any; if verbose, one group a case."""
    groups: dict[tuple[object, ...], list[Comparison]] = {}
    for comparison in comparisons:
        groups.setdefault((str(comparison.case),) if verbose else _what_happened(comparison), []).append(comparison)
    return list(groups.values())


def reasons_beside(comparison: Comparison) -> str:
    """Its reasons, without those that repeat the message of the failure."""
    said = [failure.message for _, failure in failures_of(comparison)]
    other = tuple(reason for reason in comparison.reasons if not any(text in reason for text in said))
    return reasons_of(replace(comparison, reasons=other))


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
    """Equal for cases that share a row: failures of one benchmark, or whatever is skipped for one reason and not critical."""
    failures = tuple((side, failure.kind, failure.message, failure.where) for side, failure in failures_of(comparison))
    return (
        failures
        if comparison.verdict is Verdict.SKIPPED and failures and not comparison.critical
        else (comparison.case.name, comparison.critical, comparison.reasons, failures)
    )


def name_of(group: Sequence[Comparison]) -> str:
    """The case, or how many cases of which benchmark."""
    names = list(dict.fromkeys(comparison.case.name for comparison in group))
    if len(group) == 1:
        return str(group[0].case)
    if len(names) == 1:
        return f"{names[0]}: {len(group)} cases"
    return f"{len(group)} cases of {len(names)} benchmarks"


def failures_of(comparison: Comparison) -> list[tuple[str, Failure]]:
    """Pairs of a side's words and what happened there."""
    base, head = comparison.base_failure, comparison.head_failure
    if base is not None and head is not None and (base.message, base.where) == (head.message, head.where):
        return [("on both sides", head)]
    return [(words, failure) for words, failure in (("on base", base), ("on head", head)) if failure is not None]


def case_lines(case: Case, failure: Failure, style: Style) -> list[str]:
    """A case that gave no number, and why."""
    mark, color = verdict_of(failure).look
    return [f"{paint(mark, color, style)} {visible(str(case))}", *failure_lines([("", failure)], style)]


def verdict_of(failure: Failure) -> Verdict:
    return Verdict.SKIPPED if failure.kind == "skipped" else Verdict.FAILED
